import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { PassThrough, pipeline } from 'node:stream';
import { after, test } from 'node:test';
import { AsyncLocalStorage } from 'node:async_hooks';
import { FILE_BYTES_MIN, PART_BYTES, installFileAnswers } from '../../src/node-http/file-answer.mjs';

const FOLDER = fs.mkdtempSync(path.join(os.tmpdir(), 'onehop-files-'));
const BYTES = Buffer.alloc(PART_BYTES * 2 + 12_345, 'the bytes of a large file\n');
const LARGE = path.join(FOLDER, 'large.txt');
const OUTSIDE = fs.mkdtempSync(path.join(os.tmpdir(), 'onehop-other-'));
fs.writeFileSync(LARGE, BYTES);
fs.writeFileSync(path.join(FOLDER, 'small.txt'), BYTES.subarray(0, FILE_BYTES_MIN - 1));
fs.writeFileSync(path.join(OUTSIDE, 'large.txt'), BYTES);

/** Responses and what stands for their exchange: a server that sends files, or only so much of them. */
const exchanges = new WeakMap();
installFileAnswers(FOLDER, (response) => exchanges.get(response));

class FakeExchange {
  over = false;
  waiting = 0;
  written = 0;
  whenFileSent = null;
  parts = [];

  /** @param {http.ServerResponse} response @param {(part: object) => number} sends bytes of a part that are sent */
  constructor(response, sends) {
    this.response = response;
    this.sends = sends;
    this.lane = { writeFilePart: (_, part) => this.#send(part) };
  }

  flush() {}

  #send(part) {
    this.parts.push(part);
    setImmediate(() => {
      const { ino, dev } = fs.statSync(path.join(FOLDER, part.path), { bigint: true });
      const isMeant = ino === part.inode && dev === part.device;
      const count = isMeant ? this.sends(part) : 0;
      const bytes = fs.readFileSync(path.join(FOLDER, part.path)).subarray(part.offset, part.offset + count);
      if (count > 0) this.response.write(bytes);
      const call = this.whenFileSent;
      this.whenFileSent = null;
      call(count);
    });
  }
}

/**
 * What a client gets of an answer, and what the application sees of it: with Node alone, and taken over.
 * @param {(request, response, note: (what: string) => void) => void} answer
 */
async function compare(answer, { sends = (part) => part.length, headers = {}, method = 'GET' } = {}) {
  const seen = [];
  for (const isTakenOver of [false, true]) {
    const events = [];
    const closed = [];
    let exchange = null;
    const server = http.createServer((request, response) => {
      if (isTakenOver) exchanges.set(response, exchange = new FakeExchange(response, sends));
      for (const name of ['pipe', 'unpipe', 'finish', 'close']) response.on(name, () => events.push(`response ${name}`));
      closed.push(once(response, 'close'));
      answer(request, response, Object.assign((what) => events.push(what), { closed }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    // A client that leaves as soon as it has all bytes would be seen or not, by chance.
    const agent = new http.Agent({ keepAlive: true });
    const request = http.request({ port, headers, method, agent }).end();
    const [response] = await once(request, 'response');
    const body = Buffer.concat(await response.toArray());
    await Promise.all(closed);
    agent.destroy();
    server.close();
    await once(server, 'close');
    delete response.headers.date;
    seen.push({ events: events.sort(), status: response.statusCode, headers: response.headers, body, parts: exchange?.parts ?? [] });
  }
  const [alone, { parts, ...taken }] = seen;
  delete alone.parts;
  assert.ok(taken.body.equals(alone.body), `${taken.body.length} bytes instead of ${alone.body.length}`);
  assert.deepEqual({ ...taken, body: null }, { ...alone, body: null });
  return { ...taken, parts };
}

/** Opens a file and listens to all but its bytes, and how fast they flow (pause, resume), which is never the same. */
function open(name, options, note) {
  const stream = fs.createReadStream(name, options);
  for (const event of ['open', 'ready', 'end', 'close', 'error']) stream.on(event, () => note(`stream ${event}`));
  stream.on('close', () => note(`read ${stream.bytesRead}`));
  note.closed.push(once(stream, 'close').catch(() => {}));
  return stream;
}

after(() => {
  for (const folder of [FOLDER, OUTSIDE]) fs.rmSync(folder, { recursive: true });
});

test('a file that is piped into an answer is sent by the server, part by part', async () => {
  const { body, parts, events } = await compare((request, response, note) => {
    response.setHeader('Content-Length', BYTES.length);
    open(LARGE, {}, note).pipe(response);
  });
  assert.ok(body.equals(BYTES));
  assert.deepEqual(parts.map(({ offset, length }) => [offset, length]), [[0, PART_BYTES], [PART_BYTES, PART_BYTES], [PART_BYTES * 2, 12_345]]);
  assert.equal(parts[0].path, 'large.txt');
  assert.ok(events.includes('stream end') && events.includes('response finish') && events.includes(`read ${BYTES.length}`));
});

test('so is a range of it, a head that was written before, and a pipeline', async () => {
  const range = { start: 1000, end: 1000 + FILE_BYTES_MIN - 1 };
  const ranged = await compare((request, response, note) => {
    response.writeHead(206, { 'content-length': FILE_BYTES_MIN, 'content-range': 'bytes 1000-66535/*' });
    open(LARGE, range, note).pipe(response);
  });
  assert.ok(ranged.body.equals(BYTES.subarray(1000, 1000 + FILE_BYTES_MIN)));
  assert.deepEqual(ranged.parts.map(({ offset, length }) => [offset, length]), [[1000, FILE_BYTES_MIN]]);

  const piped = await compare((request, response, note) => {
    response.setHeader('content-length', String(BYTES.length));
    pipeline(open(LARGE, { start: 0, end: BYTES.length + 7 }, note), response, (error) => note(`called with ${error}`));
  });
  assert.equal(piped.parts.length, 3);
  assert.ok(piped.events.includes('called with undefined'));
});

test('what the server does not send is read here: another file, a part that breaks off', async () => {
  const answer = (request, response, note) => {
    response.setHeader('content-length', BYTES.length);
    open(LARGE, {}, note).pipe(response);
  };
  assert.equal((await compare(answer, { sends: () => 0 })).parts.length, 1);
  assert.equal((await compare(answer, { sends: () => 70_001 })).parts.length, 1);
  const sends = ({ offset, length }) => (offset === 0 ? length : 5);
  assert.equal((await compare(answer, { sends })).parts.length, 2);
});

test('listeners of the stream run in the context of who opened it', async () => {
  const storage = new AsyncLocalStorage();
  const { events } = await compare((request, response, note) => {
    response.setHeader('content-length', BYTES.length);
    storage.run('here', () => {
      const stream = fs.createReadStream(LARGE);
      stream.on('end', () => note(`end ${storage.getStore()}`));
      stream.pipe(response);
    });
  });
  assert.ok(events.includes('end here'));
});

test('a stream that is stopped between two parts goes on as Node lets it', async () => {
  await compare((request, response, note) => {
    response.setHeader('content-length', BYTES.length);
    const stream = open(LARGE, {}, note);
    stream.pipe(response);
    stream.once('ready', () => setImmediate(() => {
      stream.unpipe(response);
      setImmediate(() => stream.pipe(response));
    }));
  });
});

const LONG_WAY = {
  'no length is promised': (response) => fs.createReadStream(LARGE).pipe(response),
  'more is promised than the file has': (response) => {
    response.setHeader('content-length', BYTES.length + 4);
    fs.createReadStream(LARGE).on('end', () => response.end('more')).pipe(response, { end: false });
  },
  'the file is small': (response) => {
    response.setHeader('content-length', FILE_BYTES_MIN - 1);
    fs.createReadStream(path.join(FOLDER, 'small.txt')).pipe(response);
  },
  'the file is elsewhere': (response) => {
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(path.join(OUTSIDE, 'large.txt')).pipe(response);
  },
  'the path leads out of the folder': (response) => {
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(path.join(FOLDER, '..', path.basename(OUTSIDE), 'large.txt')).pipe(response);
  },
  'somebody counts the bytes': (response, note) => {
    response.setHeader('content-length', BYTES.length);
    let count = 0;
    fs.createReadStream(LARGE).on('data', (bytes) => { count += bytes.length; }).on('end', () => note(`counted ${count}`)).pipe(response);
  },
  'somebody counts the bytes later': (response, note) => {
    response.setHeader('content-length', BYTES.length);
    const stream = fs.createReadStream(LARGE);
    stream.pipe(response);
    let count = 0;
    process.nextTick(() => stream.on('data', (bytes) => { count += bytes.length; }).on('end', () => note(`counted ${count}`)));
  },
  'the bytes go to somebody else too': (response, note) => {
    response.setHeader('content-length', BYTES.length);
    const stream = fs.createReadStream(LARGE);
    const other = new PassThrough().on('end', () => note('other end'));
    stream.pipe(other).resume();
    stream.pipe(response);
  },
  'the stream makes text': (response) => {
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(LARGE, { encoding: 'latin1' }).pipe(response);
  },
  'the descriptor is the application\'s': (response) => {
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(LARGE, { fd: fs.openSync(LARGE) }).pipe(response);
  },
  'the file system is the application\'s': (response) => {
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(LARGE, { fs: { ...fs } }).pipe(response);
  },
  'the answer is compressed on the way': (response) => {
    response.setHeader('content-length', BYTES.length);
    const { write } = response;
    response.write = function changed(bytes, ...rest) {
      return write.call(this, Buffer.from(bytes).fill('x'), ...rest);
    };
    fs.createReadStream(LARGE).pipe(response);
  },
  'something was sent before': (response) => {
    response.setHeader('content-length', BYTES.length + 5);
    response.write('first');
    fs.createReadStream(LARGE).pipe(response);
  },
};

for (const [why, answer] of Object.entries(LONG_WAY)) {
  test(`bytes go the long way where ${why}`, async () => {
    const { parts } = await compare((request, response, note) => answer(response, note));
    assert.deepEqual(parts, []);
  });
}

test('HEAD and 304 have no bytes to be sent', async () => {
  const send = (status) => (request, response) => {
    response.statusCode = status;
    response.setHeader('content-length', BYTES.length);
    fs.createReadStream(LARGE).pipe(response);
  };
  assert.deepEqual((await compare(send(200), { method: 'HEAD' })).parts, []);
  // That 304 has no body is found out with its head: the server sends none of it.
  await compare(send(304), { sends: () => 0 });
});

test('a file that is missing is the error that it always was', async () => {
  const { events, status } = await compare((request, response, note) => {
    response.setHeader('content-length', BYTES.length);
    open(path.join(FOLDER, 'missing'), {}, note).on('error', () => {
      response.removeHeader('content-length');
      response.statusCode = 404;
      response.end();
    }).pipe(response);
  });
  assert.equal(status, 404);
  assert.ok(events.includes('stream error'));
});
