/**
 * Whether this Node can be driven: a few requests to a server of its own, over a lane that nobody else sees, and
 * what comes of them compared with what must. It knows no application and leaves nothing behind.
 */
import { EventEmitter } from 'node:events';
import { http } from './node-modules.mjs';

/** Longer than any of it takes; a machine may be busy. */
const PATIENCE_MILLISECONDS = 5_000;
const WINDOW_BYTES = 262_144;
const GET = 1;
const POST = 3;

/** @returns {Promise<string|null>} why not, or null where all is well */
export async function selfTest() {
  let timer;
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`it took more than ${PATIENCE_MILLISECONDS} ms`)), PATIENCE_MILLISECONDS);
    });
    await Promise.race([run(), late]);
    return null;
  } catch (error) {
    return `Node ${process.versions.node}: ${error?.message ?? error}`;
  } finally {
    clearTimeout(timer);
  }
}

async function run() {
  // Loaded here, so that what this Node lacks is an answer and not the end of the process.
  const { dispatcher } = await import('./dispatcher.mjs');
  const { NodeExchange } = await import('./exchange.mjs');
  const server = http.createServer(answer);
  server._handle = { close() {} };
  // Tracing tools wrap the prototype's, and would see these requests.
  server.emit = EventEmitter.prototype.emit;
  const ask = (method, target, fields, body) => new Promise((resolve, reject) => {
    const lane = new TestLane(resolve, reject);
    const exchange = new NodeExchange(lane, 0, 0, headOf(method, target, fields), body);
    lane.exchange = exchange;
    exchange.isPublished = false;
    exchange.begin();
    dispatcher(server).call(exchange);
  });
  const empty = new Uint8Array(0);
  const whole = await ask(GET, '/whole?a=1', 'Host:x\nX-A:1\nx-a:2\n', empty);
  expect('a short answer', whole, '201|X-Case:a|X-Case:b|Content-Type:text/plain|15|/whole?a=1 1, 2');
  expect('a body', await ask(POST, '/echo', 'Host:x\n', Buffer.from('body')), '200||-1|body');
  expect('an answer in pieces', await ask(GET, '/pieces', 'Host:x\n', empty), '200|Trailer:X-T|-1|one two|X-T:t');
  await expectEvents(server, ask);
  if (server._connections !== 0) throw new Error('it does not count what is over');
}

function answer(request, response) {
  if (request.url === '/echo') {
    request.pipe(response);
  } else if (request.url === '/pieces') {
    response.writeHead(200, { Trailer: 'X-T' });
    response.write('one ');
    setImmediate(() => {
      response.addTrailers({ 'X-T': 't' });
      response.end('two');
    });
  } else {
    response.statusCode = 201;
    response.setHeader('X-Case', ['a', 'b']);
    response.setHeader('Content-Type', 'text/plain');
    response.end(`${request.url} ${request.headers['x-a']}`);
  }
}

/** 'finish' and 'close' come, in this order, and never twice. */
async function expectEvents(server, ask) {
  const seen = [];
  const closed = new Promise((resolve) => {
    server.once('request', (_, response) => {
      response.on('finish', () => seen.push('finish'));
      response.on('close', () => resolve(seen.push('close')));
    });
  });
  await ask(GET, '/events', 'Host:x\n', new Uint8Array(0));
  await closed;
  await new Promise(setImmediate);
  if (seen.join() !== 'finish,close') throw new Error(`a response told ${seen.join()} of its end`);
}

function expect(what, found, wanted) {
  if (found !== wanted) throw new Error(`${what} became ${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`);
}

function headOf(method, target, fields) {
  const fixed = Buffer.alloc(44);
  fixed[0] = method;
  return `${fixed.latin1Slice()}${target}\nx\n\n\n${fields}`;
}

/** Takes what an exchange writes, and gives it as one text when it is over. */
class TestLane {
  streamWindow = WINDOW_BYTES;
  streams = new Set();
  runtime = { lanes: [] };
  #text = '';
  #body = '';

  constructor(resolve, reject) {
    this.resolve = resolve;
    this.reject = reject;
  }

  sendable(exchange) {
    return exchange.credit;
  }

  writeWholeText(_exchange, status, fields, text) {
    this.#head(status, fields, Buffer.byteLength(text));
    this.#body = text;
    return true;
  }

  writeHead(_exchange, status, fields, length, bytes, count) {
    this.#head(status, fields, length);
    this.#body += Buffer.from(bytes.subarray(0, count)).toString();
  }

  writeData(exchange, pieces, count) {
    exchange.credit -= count;
    const bytes = Buffer.alloc(count);
    pieces.moveInto(bytes, 0, count);
    this.#body += bytes.toString();
  }

  writeEnd() {}

  writeTrailers(_exchange, fields) {
    this.#body += `|${fields.trimEnd()}`;
  }

  writeInformational() {}
  writeCredit() {}
  consumed() {}

  writeReset() {
    this.reject(new Error('it broke an answer off'));
  }

  over() {
    this.resolve(this.#text + this.#body);
  }

  #head(status, fields, length) {
    this.#text = `${status}|${fields.trimEnd().replaceAll('\n', '|')}|${length}|`;
  }
}
