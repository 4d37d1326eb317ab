// Writes REQUEST heads for tests, as docs/worker-protocol.md says, from what a client would have sent.

import { INTERNED } from '../../src/fetch/names.mjs';

const METHODS = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'CONNECT', 'TRACE'];

/**
 * @typedef {object} Asked
 * @property {string} [method]
 * @property {string} [target]
 * @property {string} [authority]
 * @property {string} [tls] facts about the connection; '' is a connection without encryption
 * @property {[string, string][]} [fields]
 * @property {string | Uint8Array | null} [body]
 * @property {boolean} [streaming] the body comes in pieces after the head
 * @property {'interned' | 'full'} [spelling] how names of the table are written
 */

/**
 * @param {Asked} asked
 * @returns {string}
 */
export function headOf({ method = 'GET', target = '/', authority = 'example.com', tls = '', fields = [], spelling } = {}) {
  const prefix = Buffer.alloc(44);
  prefix[0] = Math.max(METHODS.indexOf(method), 0);
  prefix[2] = 4;
  prefix.writeUInt16LE(54321, 4);
  prefix.set([192, 0, 2, 7], 8);
  prefix.writeBigUInt64LE(0x0123456789abcdefn, 24);
  let block = `${target}\n${authority}\n${tls}\n${prefix[0] === 0 ? method : ''}\n`;
  let facts = tls === '' ? 0 : 1;
  for (const [name, value] of fields) {
    const [begin, own] = spell(name, spelling);
    if (own) facts |= 16;
    block += `${begin}${value}\n`;
  }
  prefix[1] = facts;
  prefix.writeUInt32LE(block.length, 40);
  return prefix.toString('latin1') + block;
}

/**
 * @param {string} name
 * @param {'interned' | 'full'} [spelling]
 * @returns {[string, boolean]}
 */
function spell(name, spelling = 'interned') {
  const number = INTERNED.findIndex((known) => known.toLowerCase() === name.toLowerCase());
  if (number < 0) return [`${name}:`, false];
  if (spelling === 'interned' && INTERNED[number] === name) return [String.fromCharCode(0x80 | number), false];
  if (spelling === 'interned' && name === name.toLowerCase()) return [String.fromCharCode(0xc0 | number), false];
  return [`${name}:`, true];
}

/**
 * A source with this body.
 * @param {Asked} asked
 * @returns {import('../../src/fetch/request.mjs').Source & { cancelled: number, controller: AbortController }}
 */
export function sourceOf({ body = null, streaming = false } = {}) {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : (body ?? new Uint8Array(0));
  const pieces = streaming ? [bytes.slice(0, 3), bytes.slice(3, 4), bytes.slice(4)].filter((piece) => piece.length) : [];
  const controller = new AbortController();
  return {
    complete: streaming ? null : bytes,
    read: async () => pieces.shift() ?? null,
    cancel() {
      this.cancelled++;
    },
    signal: () => controller.signal,
    cancelled: 0,
    controller,
  };
}
