// The names of fields as the worker protocol writes them (docs/worker-protocol.md, "Head blocks").
// Owns the table of interned names and the cache of spellings; knows nothing of values or of objects.

import { ownText } from './head.mjs';

/** The interned names in the protocol's order; the index is the number on the wire. */
export const INTERNED = [
  'Accept', 'Accept-Encoding', 'Accept-Language', 'Accept-Ranges', 'Access-Control-Allow-Credentials',
  'Access-Control-Allow-Headers', 'Access-Control-Allow-Methods', 'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers', 'Access-Control-Request-Headers', 'Access-Control-Request-Method', 'Age', 'Allow',
  'Authorization', 'Cache-Control', 'Content-Disposition', 'Content-Encoding', 'Content-Language', 'Content-Length',
  'Content-Location', 'Content-Range', 'Content-Security-Policy', 'Content-Type', 'Cookie', 'Date', 'ETag', 'Expires',
  'Forwarded', 'Host', 'If-Match', 'If-Modified-Since', 'If-None-Match', 'If-Range', 'If-Unmodified-Since',
  'Last-Modified', 'Link', 'Location', 'Origin', 'Priority', 'Range', 'Referer', 'Referrer-Policy', 'Retry-After',
  'Sec-Fetch-Dest', 'Sec-Fetch-Mode', 'Sec-Fetch-Site', 'Sec-Fetch-User', 'Sec-WebSocket-Accept', 'Sec-WebSocket-Key',
  'Sec-WebSocket-Protocol', 'Sec-WebSocket-Version', 'Server', 'Set-Cookie', 'Strict-Transport-Security', 'Upgrade',
  'Upgrade-Insecure-Requests', 'User-Agent', 'Vary', 'WWW-Authenticate', 'X-Content-Type-Options', 'X-Forwarded-For',
  'X-Frame-Options', 'X-Powered-By', 'X-Requested-With',
];

/** The first byte of an interned name; what is below begins a name in full. */
export const INTERNED_BYTE_MIN = 0x80;

/** The interned names in lower case, by number. */
export const LOWER = INTERNED.map((name) => name.toLowerCase());

/** Marks a field name in a block whose low six bits are the name's number. */
const LOWER_CASE_MARK = 0xc0;

/** Spellings that are remembered; more than any application writes, and a bound for those made up by clients. */
const SPELLINGS_MAX = 1024;

/** Characters of the longest spelling that is remembered. */
const SPELLING_CHARACTERS_MAX = 64;

/** RFC 9110 section 5.6.2: what a name may consist of. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * What a name is in a block.
 * @typedef {object} Name
 * @property {string} lower the name in lower case
 * @property {string} record how a record of this name begins: one interned character, or the name and a colon
 * @property {string} titled the interned character for the usual spelling, '' where the name is not interned
 */

/** @type {Map<string, Name>} */
const known = new Map();
for (const [number, spelling] of INTERNED.entries()) {
  const name = {
    lower: LOWER[number],
    record: String.fromCharCode(LOWER_CASE_MARK | number),
    titled: String.fromCharCode(INTERNED_BYTE_MIN | number),
  };
  known.set(spelling, name);
  known.set(name.lower, name);
}
const KNOWN_AT_START = known.size;

/**
 * The name behind a spelling, or undefined where it is no field name at all.
 * @param {string} spelling
 * @returns {Name | undefined}
 */
export function nameOf(spelling) {
  return known.get(spelling) ?? learn(spelling);
}

/**
 * How a record of an interned name begins where it is sent.
 * @param {string} lower
 */
export function recordOf(lower) {
  return /** @type {Name} */ (known.get(lower)).record;
}

/** @param {string} spelling */
function learn(spelling) {
  if (typeof spelling !== 'string' || !TOKEN.test(spelling)) return undefined;
  // What is remembered must not keep the head that it was cut from.
  const own = ownText(spelling);
  const lower = own.toLowerCase();
  const name = known.get(lower) ?? { lower, record: ownText(`${lower}:`), titled: '' };
  if (own.length <= SPELLING_CHARACTERS_MAX) {
    // Spellings may come from clients: forgetting all but the table is simple, and happens only under abuse.
    if (known.size >= SPELLINGS_MAX) forget();
    known.set(own, name);
  }
  return name;
}

function forget() {
  let place = 0;
  for (const spelling of known.keys()) {
    if (place++ >= KNOWN_AT_START) known.delete(spelling);
  }
}
