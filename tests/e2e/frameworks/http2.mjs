// The cases that are one request, over HTTP/2 with Node's client: many on one connection, as clients have them.

import { connect, constants } from 'node:http2';

/** What HTTP/2 says otherwise, or not at all (RFC 9113 section 8.2.2 and 8.3.1). */
const LEFT_OUT = ['connection', 'host', 'keep-alive', 'transfer-encoding', 'upgrade'];
/** Node's client sends this field once. */
const ONCE = 'user-agent';

/**
 * A connection in clear text.
 * @param {import('node:test').TestContext} test
 * @param {number} port
 */
export function open(test, port) {
  const session = connect(`http://127.0.0.1:${port}`, { maxHeaderListPairs: 1_000, settings: { enablePush: false, maxHeaderListSize: 1 << 20 } });
  // Its streams tell.
  session.on('error', () => {});
  test.after(() => session.destroy());
  return session;
}

/**
 * The response to a request of cases.mjs, in the form of wire.mjs; `patience` is how long a piece of it may take.
 * @param {import('node:http2').ClientHttp2Session} session
 * @param {any} request
 * @param {number} [patience]
 */
export async function ask(session, request, patience = 5_000) {
  const { body, chunks = body === undefined ? [] : [body], trailers = [] } = request;
  const stream = session.request(headOf(request), { endStream: chunks.length === 0, waitForTrailers: trailers.length > 0 });
  const answer = { interim: [], status: 0, reason: '', fields: [], body: Buffer.alloc(0), trailers: [], end: 'reset' };
  const pieces = [];
  const timer = setTimeout(() => {
    answer.end = 'silent';
    stream.close(constants.NGHTTP2_CANCEL);
  }, patience);
  stream.on('headers', (head, flags, raw) => answer.interim.push({ status: head[':status'], reason: '', fields: fieldsOf(raw) }));
  stream.on('response', (head, flags, raw) => Object.assign(answer, { status: head[':status'], fields: fieldsOf(raw) }));
  stream.on('trailers', (head, flags, raw) => (answer.trailers = fieldsOf(raw)));
  stream.on('data', (piece) => timer.refresh() && pieces.push(piece));
  let isAtEnd = false;
  stream.on('end', () => (isAtEnd = true));
  stream.on('wantTrailers', () => stream.sendTrailers(grouped(trailers)));
  // What it was reset with, 'close' tells.
  stream.on('error', () => {});
  const closed = new Promise((resolve) => stream.on('close', resolve));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await closed;
  clearTimeout(timer);
  if (isAtEnd && stream.rstCode === constants.NGHTTP2_NO_ERROR) answer.end = 'whole';
  return { ...answer, body: Buffer.concat(pieces) };
}

/** What remains in HTTP/2 of a response of HTTP/1.1, beside the actual one: no reason, and names in lower case. */
export function inHttp2(answer, actual) {
  // Node's client drops what came with a reset.
  if (['closed', 'reset'].includes(answer.end) && actual.end === 'reset') return actual;
  const interim = answer.interim.map(({ status, fields }) => ({ status, reason: '', fields: lowered(fields) }));
  return { ...answer, interim, reason: '', fields: lowered(answer.fields), trailers: lowered(answer.trailers) };
}

function headOf({ method = 'GET', target, fields = [], body }) {
  // A target may be a whole URL.
  const [, host, path] = /^http:\/\/([^/]*)(.*)$/.exec(target) ?? ['', hostOf(fields), target];
  const sent = lowered(fields).filter(([name], place, all) => !LEFT_OUT.includes(name) && (name !== ONCE || all.findIndex(([other]) => other === ONCE) === place));
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  return { ':method': method, ':scheme': 'http', ':authority': host, ':path': path, ...grouped(sent), ...length };
}

const hostOf = (fields) => fields.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? 'example.test';
const lowered = (fields) => fields.map(([name, value]) => [name.toLowerCase(), value]);

function grouped(fields) {
  const all = {};
  for (const [name, value] of lowered(fields)) (all[name] ??= []).push(value);
  return all;
}

/** The fields of a list of names and values, without pseudo-header fields. */
function fieldsOf(raw) {
  const fields = [];
  for (let place = 0; place < raw.length; place += 2) fields.push([raw[place], raw[place + 1]]);
  return fields.filter(([name]) => !name.startsWith(':'));
}
