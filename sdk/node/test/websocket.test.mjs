import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { creditFrame, dataFrame, frame, readResponse, requestFrame, resetFrame, wire, withWorker } from './support/peer.mjs';

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const FIELDS = [
  ['Upgrade', 'websocket'], ['Sec-WebSocket-Key', KEY], ['Sec-WebSocket-Version', '13'],
];
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** Echoes; `log` tells what the socket has seen. */
const ECHO = `const log = [];
  export default { fetch(request) {
    if (request.url.endsWith('/log')) return Response.json(log);
    const { socket, response } = onehop.upgradeWebSocket(request, { protocol: ['chat', 'other'], maxPayload: 70_000 });
    socket.binaryType = 'arraybuffer';
    log.push('state ' + socket.readyState);
    socket.onopen = () => log.push('open ' + socket.readyState + ' ' + socket.protocol);
    socket.addEventListener('message', ({ data }) => socket.send(data));
    socket.onerror = ({ message }) => log.push('error ' + message);
    socket.onclose = ({ code, reason, wasClean }) => log.push('close ' + code + ' ' + reason + ' ' + wasClean);
    return response;
  } };`;

/** One frame as a client sends it. */
function clientFrame(opcode, payload, { final = true, masked = true, reserved = 0, claimed } = {}) {
  const bytes = Buffer.from(payload);
  const length = claimed ?? bytes.length;
  const head = [(final ? 0x80 : 0) | (reserved << 4) | opcode];
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  if (length < 126) head.push(length);
  else if (length < 65_536) head.push(126, length >> 8, length & 255);
  else head.push(127, 0, 0, 0, 0, (length >>> 24) & 255, (length >>> 16) & 255, (length >>> 8) & 255, length & 255);
  if (masked) {
    head[1] |= 0x80;
    for (let index = 0; index < bytes.length; index += 1) bytes[index] ^= mask[index & 3];
  }
  return Buffer.concat([Buffer.from(head), mask, bytes]);
}

function closePayload(code, reason = '') {
  return Buffer.concat([Buffer.of(code >> 8, code & 255), Buffer.from(reason)]);
}

/** A client's end of a WebSocket on slot 0. */
class Client {
  #bytes = Buffer.alloc(0);
  ended = false;

  constructor(lane, slot = 0, generation = 0) {
    this.lane = lane;
    this.slot = slot;
    this.generation = generation;
  }

  static async open(lane, { slot = 0, generation = 0, fields = FIELDS, end = true } = {}) {
    lane.send(requestFrame(slot, generation, { facts: 4, fields, end }));
    const response = readResponse(await lane.takeKind(wire.RESPONSE, slot));
    assert.equal(response.status, 101);
    assert.equal(response.ended, false);
    const client = new Client(lane, slot, generation);
    client.fields = response.fields;
    return client;
  }

  send(...frames) {
    const bytes = Buffer.concat(frames);
    for (let at = 0; at < bytes.length; at += 60_000) {
      this.lane.send(dataFrame(this.slot, this.generation, bytes.subarray(at, at + 60_000)));
    }
  }

  end() {
    this.lane.send(dataFrame(this.slot, this.generation, '', true));
  }

  /** The next frame of the server, which must be whole and not masked; null at its end. */
  async take() {
    for (;;) {
      const found = this.#cut();
      if (found !== null) return found;
      if (this.ended) return null;
      const next = await this.lane.take(({ kind, slot }) => slot === this.slot && (kind === wire.DATA || kind === wire.RESET));
      if (next.kind === wire.RESET) {
        this.ended = true;
        return null;
      }
      this.#bytes = Buffer.concat([this.#bytes, next.payload]);
      if (next.payload.length > 0) this.lane.credit(this.slot, this.generation, next.payload.length);
      this.ended = next.flags === wire.END;
    }
  }

  #cut() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return null;
    assert.equal(bytes[1] & 0x80, 0, 'a server does not mask');
    let length = bytes[1] & 0x7f;
    let at = 2;
    if (length === 126) [length, at] = [bytes.readUInt16BE(2), 4];
    else if (length === 127) [length, at] = [Number(bytes.readBigUInt64BE(2)), 10];
    if (bytes.length < at + length) return null;
    this.#bytes = bytes.subarray(at + length);
    return { opcode: bytes[0] & 15, final: bytes[0] >> 7 === 1, payload: bytes.subarray(at, at + length) };
  }
}

async function log(lane) {
  lane.send(requestFrame(50, log.generation = (log.generation ?? -1) + 1, { target: '/log' }));
  return JSON.parse((await lane.answer(50)).body);
}

function withEcho(body, options = { hello: { streamWindow: 200_000 } }) {
  log.generation = -1;
  return withWorker(ECHO, options, (peer, lane) => body(lane, peer));
}

test('the handshake answers the key, and the socket opens', () => withEcho(async (lane) => {
  const client = await Client.open(lane);
  const accept = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  assert.equal(accept, 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  assert.ok(client.fields.includes(`${accept}\n`), client.fields);
  assert.ok(client.fields.includes('websocket\n'), client.fields);
  assert.deepEqual(await log(lane), ['state 0', 'open 1 ']);
}));

test('a protocol is taken that both speak', () => withEcho(async (lane) => {
  await Client.open(lane, { fields: [...FIELDS, ['Sec-WebSocket-Protocol', 'mqtt, other, chat']] });
  assert.deepEqual(await log(lane), ['state 0', 'open 1 other']);
}));

test('text and bytes of all lengths come back', () => withEcho(async (lane) => {
  const client = await Client.open(lane);
  for (const length of [0, 1, 125, 126, 127, 4096, 65_535, 65_536, 70_000]) {
    const payload = Buffer.alloc(length, 'x');
    client.send(clientFrame(length % 2 === 0 ? TEXT : BINARY, payload));
    const echo = await client.take();
    assert.equal(echo.opcode, length % 2 === 0 ? TEXT : BINARY);
    assert.ok(echo.payload.equals(payload), `${length} bytes`);
  }
  client.send(clientFrame(TEXT, 'grüße 👋'));
  assert.equal((await client.take()).payload.toString(), 'grüße 👋');
}));

test('frames byte by byte, and many in one piece, are read alike', () => withEcho(async (lane) => {
  const client = await Client.open(lane, { end: false });
  for (const byte of clientFrame(TEXT, 'slow '.repeat(40))) client.send(Buffer.of(byte));
  assert.equal((await client.take()).payload.toString(), 'slow '.repeat(40));
  client.send(...Array.from({ length: 100 }, (_, index) => clientFrame(TEXT, `${index}`)));
  for (let index = 0; index < 100; index += 1) assert.equal((await client.take()).payload.toString(), `${index}`);
}));

test('a message in fragments is one message, with a ping between them', () => withEcho(async (lane) => {
  const client = await Client.open(lane);
  const text = Buffer.from('grüße');
  client.send(
    clientFrame(TEXT, text.subarray(0, 3), { final: false }), clientFrame(PING, 'now'),
    clientFrame(0, text.subarray(3, 4), { final: false }), clientFrame(0, '', { final: false }), clientFrame(0, text.subarray(4)),
  );
  const pong = await client.take();
  assert.deepEqual([pong.opcode, pong.payload.toString()], [PONG, 'now']);
  assert.equal((await client.take()).payload.toString(), 'grüße');
}));

test('a close frame is answered with its code, and the exchange ends', () => withEcho(async (lane) => {
  const client = await Client.open(lane);
  client.send(clientFrame(CLOSE, closePayload(4001, 'bye')));
  const close = await client.take();
  assert.deepEqual([close.opcode, close.payload.readUInt16BE(0)], [CLOSE, 4001]);
  assert.equal(await client.take(), null);
  client.end();
  assert.deepEqual((await log(lane)).slice(2), ['close 4001 bye true']);
  // The slot is free again.
  await Client.open(lane, { generation: 1 });
}));

test('a slot may be used again once the worker has ended its tunnel', () => withEcho(async (lane) => {
  for (let generation = 0; generation < 3; generation += 1) {
    const client = await Client.open(lane, { generation });
    client.send(clientFrame(CLOSE, closePayload(1000)));
    assert.equal((await client.take()).payload.readUInt16BE(0), 1000);
    assert.equal(await client.take(), null);
  }
}));

test('a close frame without a code is 1005', () => withEcho(async (lane) => {
  const client = await Client.open(lane);
  client.send(clientFrame(CLOSE, ''));
  assert.equal((await client.take()).payload.length, 0);
  assert.deepEqual((await log(lane)).slice(2), ['close 1005  true']);
}));

test('what breaks the protocol is told its code and fails the socket', async () => {
  const cases = [
    ['a frame that is not masked', [clientFrame(TEXT, 'x', { masked: false })], 1002],
    ['a reserved bit', [clientFrame(TEXT, 'x', { reserved: 4 })], 1002],
    ['a reserved opcode', [clientFrame(3, 'x')], 1002],
    ['a reserved control opcode', [clientFrame(11, 'x')], 1002],
    ['a continuation of nothing', [clientFrame(0, 'x')], 1002],
    ['a message in another', [clientFrame(TEXT, 'x', { final: false }), clientFrame(TEXT, 'y')], 1002],
    ['a ping in fragments', [clientFrame(PING, 'x', { final: false })], 1002],
    ['a ping of 126 bytes', [clientFrame(PING, 'x'.repeat(126))], 1002],
    ['a close of one byte', [clientFrame(CLOSE, 'x')], 1002],
    ['a close with 1005', [clientFrame(CLOSE, closePayload(1005))], 1002],
    ['a close with 999', [clientFrame(CLOSE, closePayload(999))], 1002],
    ['a close with 2999', [clientFrame(CLOSE, closePayload(2999))], 1002],
    ['a reason that is not UTF-8', [clientFrame(CLOSE, Buffer.concat([closePayload(1000), Buffer.of(0xff)]))], 1007],
    ['text that is not UTF-8', [clientFrame(TEXT, Buffer.of(0xc3, 0x28))], 1007],
    ['half a letter', [clientFrame(TEXT, Buffer.of(0xc3))], 1007],
    ['a surrogate', [clientFrame(TEXT, Buffer.of(0xed, 0xa0, 0x80))], 1007],
    ['a message too long', [clientFrame(BINARY, '', { claimed: 70_001 })], 1009],
    ['fragments too long', [clientFrame(BINARY, 'x'.repeat(40_000), { final: false }), clientFrame(0, 'x'.repeat(40_000))], 1009],
    ['a claim of 2^32 bytes and more', [Buffer.of(0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4)], 1009],
  ];
  await withEcho(async (lane) => {
    for (const [generation, [name, frames, code]] of cases.entries()) {
      const client = await Client.open(lane, { generation });
      client.send(...frames);
      const close = await client.take();
      assert.deepEqual([close?.opcode, close?.payload.readUInt16BE(0)], [CLOSE, code], name);
      assert.equal(await client.take(), null, name);
      client.end();
      const seen = (await log(lane)).slice(-2);
      assert.match(seen[0], /^error /, name);
      assert.equal(seen[1], 'close 1006  false', name);
    }
  });
});

test('a client that goes away closes the socket', () => withEcho(async (lane) => {
  await Client.open(lane);
  lane.send(resetFrame(0, 0, wire.CLIENT_GONE));
  assert.deepEqual((await log(lane)).slice(2), ['close 1006  false']);
  const client = await Client.open(lane, { slot: 1 });
  client.end();
  assert.equal(await client.take(), null);
  assert.deepEqual((await log(lane)).slice(5), ['close 1006  false']);
}));

test('a request that asks for no WebSocket is answered by the response', () => withEcho(async (lane) => {
  const without = (name) => FIELDS.filter(([other]) => other !== name);
  const cases = [
    [without('Upgrade'), 426], [[...without('Upgrade'), ['Upgrade', 'h2c']], 426],
    [[...without('Sec-WebSocket-Version'), ['Sec-WebSocket-Version', '8']], 426], [without('Sec-WebSocket-Version'), 426],
    [without('Sec-WebSocket-Key'), 400], [[...without('Sec-WebSocket-Key'), ['Sec-WebSocket-Key', 'c2hvcnQ=']], 400],
  ];
  for (const [generation, [fields, status]] of cases.entries()) {
    lane.send(requestFrame(0, generation, { facts: 4, fields }));
    assert.equal((await lane.answer(0)).status, status);
    assert.equal((await log(lane)).at(-1), 'close 1006  false');
  }
  lane.send(requestFrame(0, cases.length, { method: 'POST', facts: 4, fields: FIELDS }));
  assert.equal((await lane.answer(0)).status, 400);
  lane.send(requestFrame(0, cases.length + 1, { fields: FIELDS }));
  assert.equal((await lane.answer(0)).status, 500, 'the server does not know of an upgrade');
}));

const DRIVEN = `const log = []; let socket;
  const actions = {
    send: () => socket.send('sent'),
    blob: () => { socket.send(new Blob(['from a ', 'blob'])); socket.send('behind'); log.push(socket.bufferedAmount); },
    close: () => { socket.close(3001, 'done'); log.push(socket.readyState); socket.send('never'); },
    buffered: () => { for (let i = 0; i < 5; i++) socket.send('x'.repeat(1000)); log.push(socket.bufferedAmount); },
    amount: () => log.push(socket.bufferedAmount),
    flood: () => { const piece = new Uint8Array(4_000_000); for (let i = 0; i < 6; i++) socket.send(piece); },
    errors: () => { for (const args of [[1001], [999], [3000, 'x'.repeat(124)]]) {
      try { socket.close(...args); } catch (error) { log.push(error.name); } } },
  };
  export default { fetch(request) {
    const name = new URL(request.url).pathname.slice(1);
    if (name === 'log') return Response.json(log);
    if (actions[name]) { actions[name](); return new Response(''); }
    const upgraded = onehop.upgradeWebSocket(request);
    socket = upgraded.socket;
    try { socket.send('early'); } catch (error) { log.push(error.name); }
    socket.onmessage = async ({ data }) => log.push(data instanceof Blob ? await data.text() : data);
    socket.onerror = ({ message }) => log.push(message);
    socket.onclose = ({ code, wasClean }) => log.push(code + ' ' + wasClean);
    if (name === 'closed-early') socket.close(1000, 'no');
    return upgraded.response;
  } };`;

function withDriven(body, options = {}) {
  log.generation = -1;
  return withWorker(DRIVEN, options, async (peer, lane) => {
    let generation = 0;
    const act = async (name) => {
      lane.send(requestFrame(51, generation, { target: `/${name}` }));
      generation += 1;
      assert.equal((await lane.answer(51)).status, 200, peer.stderr);
    };
    await body(lane, act, peer);
  });
}

test('a socket sends by itself, blobs in their turn', () => withDriven(async (lane, act) => {
  const client = await Client.open(lane);
  await act('send');
  assert.equal((await client.take()).payload.toString(), 'sent');
  await act('blob');
  const blob = await client.take();
  assert.deepEqual([blob.opcode, blob.payload.toString()], [BINARY, 'from a blob']);
  assert.equal((await client.take()).payload.toString(), 'behind');
  await act('amount');
  client.send(clientFrame(BINARY, 'bytes'));
  let seen = await log(lane);
  // A blob is read when it can be.
  while (seen.length < 4) seen = await log(lane);
  assert.deepEqual(seen, ['InvalidStateError', 19, 0, 'bytes']);
}));

test('close waits for the client\'s close frame', () => withDriven(async (lane, act) => {
  const client = await Client.open(lane);
  await act('errors');
  await act('close');
  const close = await client.take();
  assert.deepEqual([close.payload.readUInt16BE(0), close.payload.toString('utf8', 2)], [3001, 'done']);
  client.send(clientFrame(TEXT, 'late'), clientFrame(CLOSE, closePayload(3001)));
  assert.equal(await client.take(), null);
  assert.deepEqual(
    await log(lane), ['InvalidStateError', 'InvalidAccessError', 'InvalidAccessError', 'SyntaxError', 2, '3001 true'],
  );
}));

test('a socket that was closed before it opened closes as soon as it is open', () => withDriven(async (lane) => {
  lane.send(requestFrame(0, 0, { facts: 4, fields: FIELDS, target: '/closed-early' }));
  await lane.takeKind(wire.RESPONSE, 0);
  const client = new Client(lane);
  assert.equal((await client.take()).payload.readUInt16BE(0), 1000);
}));

test('what has no credit waits, and bufferedAmount says how much', () => withDriven(async (lane, act) => {
  const client = await Client.open(lane);
  await act('buffered');
  assert.deepEqual((await log(lane)).slice(1), [5 * 1004 - 2000]);
  for (let index = 0; index < 5; index += 1) assert.equal((await client.take()).payload.length, 1000);
  await act('amount');
  assert.equal((await log(lane)).at(-1), 0);
}, { hello: { streamWindow: 2000 } }));

test('a client that does not read fails its socket in the end, and the pongs it is owed are one', () => withDriven(async (lane, act) => {
  const client = await Client.open(lane);
  await act('buffered');
  client.send(clientFrame(PING, 'first'), clientFrame(PING, 'second'));
  for (let index = 0; index < 5; index += 1) assert.equal((await client.take()).payload.length, 1000);
  const pong = await client.take();
  assert.deepEqual([pong.opcode, pong.payload.toString()], [PONG, 'second']);
  await act('flood');
  await lane.takeKind(wire.RESET, 0);
  const seen = await log(lane);
  assert.match(seen.at(-2), /bytes wait for the client/);
  assert.equal(seen.at(-1), '1006 false');
}, { hello: { streamWindow: 2000 } }));

test('an unread tunnel beyond its window breaks the protocol', () => withEcho(async (lane, peer) => {
  await Client.open(lane);
  lane.send(dataFrame(0, 0, Buffer.alloc(3000)));
  assert.equal((await peer.exit).code, 1);
}, { hello: { streamWindow: 2000 } }));

test('a worker that is drained says 1001 to its sockets, those that come too', () => withEcho(async (lane, peer) => {
  const client = await Client.open(lane);
  peer.control.send(frame(wire.DRAIN, 0, 0, 0));
  assert.equal((await client.take()).payload.readUInt16BE(0), 1001);
  client.send(clientFrame(CLOSE, closePayload(1001)));
  assert.equal(await client.take(), null);
  client.end();
  const late = await Client.open(lane, { slot: 1 });
  assert.equal((await late.take()).payload.readUInt16BE(0), 1001);
  lane.send(resetFrame(1, 0, wire.CLIENT_GONE));
  peer.control.send(frame(wire.RETIRE, 0, 0, 0));
  assert.equal((await peer.exit).code, 0);
}));

test('events run in the context of the handler that asked for the socket', () => withWorker(
  `import { AsyncLocalStorage } from 'node:async_hooks';
  const store = new AsyncLocalStorage();
  export default { fetch(request) {
    return store.run(new URL(request.url).pathname, () => {
      const { socket, response } = onehop.upgradeWebSocket(request);
      socket.onmessage = () => socket.send(String(store.getStore()));
      return response;
    });
  } };`, {}, async (peer, lane) => {
    for (const slot of [0, 1]) lane.send(requestFrame(slot, 0, { facts: 4, fields: FIELDS, target: `/${slot}` }));
    for (const slot of [0, 1]) await lane.takeKind(wire.RESPONSE, slot);
    const clients = [0, 1].map((slot) => new Client(lane, slot));
    for (const client of clients) client.send(clientFrame(TEXT, 'who'));
    for (const [slot, client] of clients.entries()) assert.equal((await client.take()).payload.toString(), `/${slot}`);
    lane.send(creditFrame(0, 0, 1));
  },
));
