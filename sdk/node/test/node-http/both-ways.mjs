/**
 * Runs one request listener two ways, behind Node's own parser and socket, and over the frames of a lane that only
 * keeps them, so that what comes of both can be compared.
 */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { dispatcher } from '../../src/node-http/dispatcher.mjs';
import { NodeExchange } from '../../src/node-http/exchange.mjs';
import { METHODS } from '../../src/wire.mjs';

const WINDOW_BYTES = 262_144;
/** What is the connection's and not the answer's. */
const NOT_COMPARED = /^(?:date|connection|keep-alive|transfer-encoding)$/i;

/**
 * @param {http.RequestListener} listener
 * @param {{method?: string, target?: string, fields?: [string, string][], body?: string, options?: http.ServerOptions}} request
 */
export async function alone(listener, { method = 'GET', target = '/', fields = [], body = '', options = {} } = {}) {
  const server = http.createServer(options, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = net.connect(server.address().port, '127.0.0.1');
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: x', 'Connection: close', ...fields.map(([name, value]) => `${name}: ${value}`)];
  if (body !== '') lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
  const pieces = [];
  socket.on('data', (bytes) => pieces.push(bytes));
  socket.on('error', () => {});
  await once(socket, 'close');
  server.close();
  server.closeAllConnections();
  return readAnswer(Buffer.concat(pieces), method);
}

/** The same over frames. */
export function framed(listener, request = {}, countsHeads = false) {
  const server = http.createServer(request.options ?? {}, listener);
  server._handle = { close() {} };
  return new Promise((resolve) => {
    const lane = new KeepingLane(resolve);
    lane.countsHeads = countsHeads;
    lane.exchange = open(lane, request);
    lane.exchange.begin();
    dispatcher(server).call(lane.exchange);
  });
}

/** An exchange that has not begun. */
export function open(lane, { method = 'GET', target = '/', fields = [], body = '' } = {}) {
  const fixed = Buffer.alloc(44);
  fixed[0] = Math.max(0, METHODS.indexOf(method));
  fixed[2] = 4;
  fixed.set([127, 0, 0, 1], 8);
  const named = fixed[0] === 0 ? method : '';
  const block = [['Host', 'x'], ...fields].map(([name, value]) => `${name}:${value}\n`).join('');
  const length = body === '' ? '' : `Content-Length:${Buffer.byteLength(body)}\n`;
  const head = `${fixed.latin1Slice()}${target}\nx\n\n${named}\n${block}${length}`;
  return new NodeExchange(lane, 0, 0, head, body === null ? null : Buffer.from(body));
}

/** Keeps what an exchange writes; `resolve` is given the answer when it is over. */
export class KeepingLane {
  streamWindow = WINDOW_BYTES;
  streams = new Set();
  runtime = { lanes: [], leaving: false };
  informational = [];
  answer = { status: 0, fields: [], length: null, body: Buffer.alloc(0), trailers: [], broken: false };
  credited = 0;
  heads = 0;

  constructor(resolve = () => {}) {
    this.resolve = resolve;
  }

  sendable(exchange) {
    return exchange.credit;
  }

  writeWholeText(_exchange, status, fields, text) {
    this.#head(status, fields, Buffer.byteLength(text));
    this.#add(Buffer.from(text));
    return true;
  }

  writeHead(_exchange, status, fields, length, bytes, count) {
    this.#head(status, fields, length);
    this.#add(bytes.subarray(0, count));
  }

  writeData(exchange, pieces, count) {
    exchange.credit -= count;
    const bytes = Buffer.alloc(count);
    pieces.moveInto(bytes, 0, count);
    this.#add(bytes);
    // The client takes it in a later turn.
    setImmediate(() => exchange.over || exchange.credited(count));
  }

  writeEnd() {}

  writeTrailers(_exchange, block) {
    this.answer.trailers = records(block);
  }

  writeInformational(_exchange, status, block) {
    this.informational.push([status, records(block)]);
  }

  writeCredit(_slot, _generation, bytes) {
    this.credited += bytes;
  }

  writeReset() {
    this.answer.broken = true;
  }

  consumed() {}

  over() {
    const { length, fields, ...answer } = this.answer;
    // The server writes this one.
    if (length !== null && length >= 0 && answer.status !== 204) fields.push(['Content-Length', String(length)]);
    this.resolve({ ...answer, fields: comparable(fields), informational: this.informational, ...(this.countsHeads ? { heads: this.heads } : {}) });
  }

  #head(status, fields, length) {
    this.heads += 1;
    this.answer.status = status;
    this.answer.fields = records(fields);
    this.answer.length = length;
  }

  #add(bytes) {
    this.answer.body = Buffer.concat([this.answer.body, bytes]);
  }
}

function records(block) {
  return block.split('\n').slice(0, -1).map((record) => {
    const colon = record.indexOf(':');
    return [record.slice(0, colon), record.slice(colon + 1)];
  });
}

function readAnswer(bytes, method) {
  const informational = [];
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return { status: 0, fields: [], body: bytes, trailers: [], broken: true, informational };
    const [first, ...lines] = bytes.latin1Slice(0, end).split('\r\n');
    const status = Number(first.split(' ')[1]);
    const fields = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
    bytes = bytes.subarray(end + 4);
    if (status < 200) {
      informational.push([status, fields]);
      continue;
    }
    const find = (name) => fields.find(([found]) => found.toLowerCase() === name)?.[1];
    const answer = { status, body: bytes, trailers: [], broken: false };
    if (find('transfer-encoding') !== undefined && method !== 'HEAD') Object.assign(answer, readChunks(bytes));
    else if (find('content-length') !== undefined && method !== 'HEAD' && status !== 304) {
      // A client takes no more.
      answer.body = bytes.subarray(0, Number(find('content-length')));
      answer.broken = bytes.length < Number(find('content-length'));
    }
    return { ...answer, fields: comparable(fields), informational };
  }
}

function readChunks(bytes) {
  const pieces = [];
  for (;;) {
    const end = bytes.indexOf('\r\n');
    if (end < 0) return { body: Buffer.concat(pieces), broken: true, trailers: [] };
    const size = Number.parseInt(bytes.latin1Slice(0, end), 16);
    bytes = bytes.subarray(end + 2);
    if (size === 0) {
      const trailers = bytes.latin1Slice().split('\r\n').filter((line) => line !== '');
      return { body: Buffer.concat(pieces), broken: false, trailers: trailers.map((line) => line.split(': ')) };
    }
    pieces.push(bytes.subarray(0, size));
    bytes = bytes.subarray(size + 2);
  }
}

/** Sorted: the server orders its own fields among the application's. */
function comparable(fields) {
  const kept = fields.filter(([name]) => !NOT_COMPARED.test(name)).map(([name, value]) => [name.toLowerCase(), value]);
  return kept.sort((one, other) => (one[0] + one[1] < other[0] + other[1] ? -1 : 1));
}
