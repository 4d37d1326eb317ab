// Evaluates every expression of table/ twice, on the platform's objects and then on ours, and compares what came of it: value, or class and
// message of the error. `node table.mjs` prints what differs; what may differ stands in differences.mjs with a reason, and an
// entry there that is not needed is a failure too.

import { createServer } from 'node:http';
import { inspect } from 'node:util';
import { install } from '../../src/fetch/install.mjs';
import { createRequest } from '../../src/fetch/request.mjs';
import { headOf, sourceOf } from './frames.mjs';
import { differences } from './differences.mjs';
import { cases as bodies } from './table/bodies.mjs';
import { cases as headers } from './table/headers.mjs';
import { cases as requests } from './table/requests.mjs';
import { cases as responses } from './table/responses.mjs';

/** Milliseconds after which an expression counts as hanging. */
const PATIENCE_MILLISECONDS = 3000;

/**
 * Runs the table in this process. The fetch objects stay installed.
 * @returns {Promise<{ cases: number, expected: number, failures: string[] }>}
 */
export async function runTable() {
  // Node's own body methods leave rejected promises behind where a stream fails.
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
  const server = createServer(echo).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const world = { echo: `127.0.0.1:${/** @type {any} */ (server.address()).port}`, inspect, shape, read };
  const all = [...requests, ...headers, ...bodies, ...responses];
  const platform = await evaluateAll(all, { ...world, request: platformRequest });
  install();
  const ours = await evaluateAll(all, { ...world, request: (asked) => createRequest(headOf(asked), sourceOf(asked)) });
  server.closeAllConnections();
  server.close();
  return compare(all, platform, ours);
}

/**
 * @param {any[]} all
 * @param {string[]} platform
 * @param {string[]} ours
 */
function compare(all, platform, ours) {
  const failures = [];
  const unused = new Map(differences.map((entry) => [entry, true]));
  let expected = 0;
  const names = new Set();
  for (const [place, [written]] of all.entries()) {
    // Bun prints functions in its own way.
    const name = written.replace(/\s+/g, ' ').replaceAll('"', "'");
    if (names.has(name)) failures.push(`two cases are named ${name}`);
    names.add(name);
    if (platform[place] === ours[place]) continue;
    const entry = differences.find(({ where, what, like = () => '' }) => {
      return where() && what.test(name) && like(platform[place]) === like(ours[place]);
    });
    if (entry === undefined) failures.push(`${name}\n    platform: ${platform[place]}\n    ours:     ${ours[place]}`);
    else {
      expected++;
      unused.delete(entry);
    }
  }
  for (const entry of unused.keys()) {
    if (entry.where()) failures.push(`the known difference ${entry.what} is none any more (${entry.why})`);
  }
  return { cases: all.length, expected, failures };
}

/**
 * @param {any[]} all
 * @param {any} world
 */
async function evaluateAll(all, world) {
  const results = [];
  for (const [, expression] of all) results.push(await evaluate(expression, world));
  return results;
}

/**
 * @param {(world: any) => unknown} expression
 * @param {any} world
 */
async function evaluate(expression, world) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MILLISECONDS, 'hangs');
  });
  try {
    const value = await Promise.race([(async () => describe(await expression(world)))(), late]);
    return JSON.stringify(value);
  } catch (error) {
    return `${error?.constructor?.name}: ${error?.name} ${normalised(String(error?.message))}`;
  } finally {
    clearTimeout(timer);
  }
}

/** The engine's own messages name the class as it was declared, which nobody can choose. @param {string} message */
function normalised(message) {
  return message.replace(/#<_?(\w+)>|\[object (\w+)\]/, (_, name, tag) => name ?? tag);
}

/** @param {any} value */
async function describe(value) {
  if (typeof value === 'string' && value.length > 200) return `${value.slice(0, 200)} (${value.length} characters)`;
  if (typeof value !== 'object' || value === null) return value === null ? null : `${typeof value} ${String(value)}`;
  if (value instanceof ArrayBuffer) return { ArrayBuffer: [...new Uint8Array(value)].join().slice(0, 200) };
  if (ArrayBuffer.isView(value)) return { [value.constructor.name]: [...new Uint8Array(value.buffer)].join().slice(0, 200) };
  if (value instanceof Blob) return { Blob: value.type, size: value.size, text: (await value.text()).slice(0, 200), name: /** @type {any} */ (value).name };
  if (value instanceof FormData) return { FormData: await describe([...value]) };
  if (value instanceof Headers) return { Headers: [...value] };
  if (value instanceof Error) return { Error: `${value.name} ${value.message}` };
  if (value instanceof Request) return { Request: [value.method, value.url, [...value.headers]] };
  if (value instanceof Response) return { Response: [value.status, [...value.headers], await value.text()] };
  if (Array.isArray(value)) return Promise.all(value.map(describe));
  const entries = await Promise.all(Object.keys(value).map(async (key) => [key, await describe(value[key])]));
  return Object.fromEntries(entries);
}

/** What kind of value it is, where the value itself says nothing that could be compared. @param {any} value */
function shape(value) {
  return value instanceof ReadableStream ? `a stream, ${value.locked ? 'locked' : 'not locked'}` : value;
}

/** All bytes of a stream. @param {ReadableStream | null} stream */
async function read(stream) {
  if (stream === null) return null;
  const reader = stream.getReader();
  const all = [];
  for (let step = await reader.read(); !step.done; step = await reader.read()) all.push(...step.value);
  return new TextDecoder().decode(new Uint8Array(all));
}

/** @param {import('./frames.mjs').Asked} asked */
function platformRequest(asked) {
  const { method = 'GET', target = '/', authority = 'example.com', tls = '', fields = [], streaming } = asked;
  const source = sourceOf(asked);
  /** @type {any} */
  const init = { method, headers: fields };
  if (streaming) {
    init.duplex = 'half';
    init.body = new ReadableStream({
      type: 'bytes',
      async pull(controller) {
        const piece = await source.read();
        if (piece !== null) return controller.enqueue(piece);
        controller.close();
        /** @type {any} */ (controller).byobRequest?.respond(0);
      },
    });
  } else if (source.complete?.length) init.body = source.complete;
  return new Request(`${tls === '' ? 'http' : 'https'}://${authority}${target}`, init);
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function echo(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { host, ...others } = request.headers;
  // A copy of headers that are not the platform's own comes in the standard's order.
  const headers = Object.fromEntries(Object.entries(others).sort());
  // The time would be another on each call.
  response.sendDate = false;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ method: request.method, url: request.url, headers, body: Buffer.concat(pieces).toString() }));
}

if (process.argv[1]?.endsWith('table.mjs')) {
  process.exitCode = 1;
  const { cases, expected, failures } = await runTable();
  for (const failure of failures) console.log(`not equal: ${failure}`);
  console.log(`${cases} expressions, ${expected} known differences, ${failures.length} failures`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}
