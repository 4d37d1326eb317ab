// What two answers differ in, each difference with a name of its own, so that a list can explain exactly that one.

import { gunzipSync, inflateSync } from 'node:zlib';

/** Fields of the connection: the server's own business, on either side. */
const CONNECTION = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);
const SHOWN_MAX = 300;

/**
 * @param {any} expected
 * @param {any} actual
 * @returns {Array<{ what: string, alone: unknown, below: unknown }>}
 */
export function differences(expected, actual) {
  const found = [];
  const compare = (what, alone, below) => JSON.stringify(alone) !== JSON.stringify(below) && found.push({ what, alone, below });
  compare('status', expected.status, actual.status);
  // Another status is another answer: all else would only repeat that.
  if (expected.status !== actual.status) return found;
  compare('end', expected.end, actual.end);
  compare('reason', expected.reason, actual.reason);
  compare('interim', expected.interim.map(plain), actual.interim.map(plain));
  compareFields('field', expected.fields, actual.fields, compare);
  compareFields('trailer', expected.trailers, actual.trailers, compare);
  compareBodies(decoded(expected), decoded(actual), compare);
  return found;
}

const plain = ({ status, fields }) => ({ status, fields: [...fields].filter(([name]) => !CONNECTION.has(name.toLowerCase())).map(([name, value]) => `${name.toLowerCase()}: ${value}`).sort() });

function compareFields(kind, expected, actual, compare) {
  const [left, right] = [grouped(expected), grouped(actual)];
  for (const name of new Set([...left.keys(), ...right.keys()])) {
    if (CONNECTION.has(name)) continue;
    const [one, other] = [left.get(name), right.get(name)];
    compare(`${kind} ${name}`, one?.values, other?.values);
    if (one && other) compare(`case of ${kind} ${name}`, one.names, other.names);
  }
}

function grouped(fields) {
  const groups = new Map();
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    if (!groups.has(key)) groups.set(key, { names: [], values: [] });
    groups.get(key).names.push(name);
    groups.get(key).values.push(value);
  }
  return groups;
}

/** Where a compressed stream is flushed depends on when its pieces come: what it says is compared, not its bytes. */
function decoded({ fields, body, end }) {
  const coding = fields.find(([name]) => name.toLowerCase() === 'content-encoding')?.[1];
  if (end !== 'whole' || body.length === 0) return body;
  if (coding === 'gzip') return gunzipSync(body);
  return coding === 'deflate' ? inflateSync(body) : body;
}

function compareBodies(expected, actual, compare) {
  if (expected.equals(actual)) return;
  const [left, right] = [parsed(expected), parsed(actual)];
  if (left === undefined || right === undefined) {
    compare('body', shown(expected), shown(actual));
    if (shown(expected) === shown(actual)) compare('body', `${expected.length} bytes`, `${actual.length} bytes, others`);
    return;
  }
  compareValues('body', left, right, compare);
}

/** Bodies that are JSON are compared member by member. */
export function compareValues(path, left, right, compare) {
  const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject(left) || !isObject(right)) return compare(path, left, right);
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) compareValues(`${path}.${key}`, left[key], right[key], compare);
  return undefined;
}

function parsed(body) {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function shown(body) {
  const text = body.toString('latin1');
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}… (${text.length} bytes)` : text;
}

/**
 * Keeps the list of explained differences, and which of them were met.
 * @param {any[]} entries
 */
export function explanations(entries) {
  const used = new Set();
  const fits = (pattern, value) => pattern === undefined || (pattern instanceof RegExp ? pattern.test(String(value)) : Array.isArray(pattern) ? pattern.includes(value) : pattern === value);
  return {
    /** The entry that explains a difference. */
    find(difference) {
      const { app, version, over, name, what } = difference;
      const entry = entries.find((one) => fits(one.app, app) && fits(one.version, version) && fits(one.over, over) && fits(one.case, name) && fits(one.what, what) && (one.if === undefined || one.if(difference)));
      if (entry) used.add(entry);
      return entry;
    },
    /** Reasons that nothing needed. */
    unused: () => entries.filter((entry) => !used.has(entry)).map((entry) => `${entry.open ? 'mended, take it off the list: ' : ''}${entry.reason}`),
  };
}
