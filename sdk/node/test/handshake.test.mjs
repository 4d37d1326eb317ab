import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frame, requestFrame, startWorker, wire, withWorker } from './support/peer.mjs';

const HELLO = 'export default { fetch() { return new Response("hello") } };';

async function withStarting(source, options, body) {
  const peer = await startWorker(source, options);
  try {
    await body(peer);
  } finally {
    await peer.stop();
  }
}

/** The application cannot be loaded: FAILED, the same on standard error, exit code 1. */
function failsToLoad(source, expected, options = {}) {
  return withStarting(source, options, async (peer) => {
    peer.hello();
    const failed = await peer.control.takeKind(wire.FAILED);
    const { code } = await peer.exit;
    assert.match(failed.payload.toString(), expected);
    assert.match(peer.stderr, expected);
    assert.equal(code, 1);
  });
}

test('READY names the version, the runtime and the library', () => withStarting(HELLO, {}, async (peer) => {
  const ready = await peer.greet();
  const [runtime, version, library] = ready.payload.toString('latin1', 8).split('\n');
  assert.equal(ready.payload.readUInt16LE(0), 1);
  assert.equal(ready.payload.readUInt32LE(4), ready.payload.length - 8);
  assert.match(runtime, /^(node|bun)$/);
  assert.match(version, /^\d+\.\d+\.\d+/);
  assert.match(library, /^\d+\.\d+\.\d+$/);
}));

test('nothing is written on a data lane before READY', () => withStarting(
  'await new Promise((resolve) => setTimeout(resolve, 50));' + HELLO, {}, async (peer) => {
    peer.hello();
    peer.lane.send(requestFrame(0, 0));
    await peer.lane.answer(0);
    assert.deepEqual(peer.control.frames.map(({ kind }) => kind), [wire.LOADED, wire.READY]);
  },
));

test('a version in the range is taken, and a range without it is refused', async () => {
  await withStarting(HELLO, {}, async (peer) => {
    const ready = await peer.greet({ lowest: 0, highest: 9 });
    assert.equal(ready.payload.readUInt16LE(0), 1);
  });
  await withStarting(HELLO, {}, async (peer) => {
    peer.hello({ lowest: 2, highest: 3 });
    const failed = await peer.control.takeKind(wire.FAILED);
    assert.match(failed.payload.toString(), /speaks version 1 .* server speaks 2 to 3/);
    assert.equal((await peer.exit).code, 1);
  });
});

test('an application that throws says so with its stack and its cause', () => failsToLoad(
  'throw new Error("no database", { cause: new Error("no such host") });', /no database[\s\S]*app\.mjs[\s\S]*no such host/,
));

test('a syntax error is told with its file', () => failsToLoad('export default {', /app\.mjs:1/));

test('a missing file is told by its name', () => withStarting(HELLO, { name: 'app.mjs', file: 'other.mjs' }, async (peer) => {
  peer.hello();
  assert.match((await peer.control.takeKind(wire.FAILED)).payload.toString(), /other\.mjs/);
}));

test('a default export of another shape is told what shapes there are', async () => {
  await failsToLoad('export const fetch = () => {};', /has no default export[\s\S]*export default \{ fetch/);
  await failsToLoad('export default { handler() {} };', /without fetch \(an object with handler\)/);
  await failsToLoad('export default 7;', /without fetch \(a number\)/);
});

test('a function, CommonJS and compiled CommonJS are applications', async () => {
  const cases = [
    ['app.mjs', 'export default function (request, env, ctx) { return new Response("hello") }'],
    ['app.cjs', 'module.exports = { fetch() { return new Response("hello") } };'],
    ['app.cjs', 'module.exports = () => new Response("hello");'],
    ['app.cjs', 'exports.__esModule = true; exports.default = { fetch() { return new Response("hello") } };'],
    ['app.mjs', 'class App { #text = "hello"; fetch() { return new Response(this.#text) } } export default new App();'],
  ];
  for (const [name, source] of cases) {
    await withWorker(source, { name }, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), 'hello', source);
    });
  }
});

test('TypeScript runs where the runtime strips types, else the error says which do', async () => {
  const source = 'export default { fetch(request: Request): Response { return new Response("typed") } };';
  await withStarting(source, { name: 'app.ts' }, async (peer) => {
    peer.hello();
    const first = await peer.control.take(() => true);
    if (first.kind === wire.READY) {
      peer.lane.send(requestFrame(0, 0));
      assert.equal((await peer.lane.answer(0)).body.toString(), 'typed');
    } else {
      assert.match(first.payload.toString(), /22\.18 and 23\.6/);
    }
  });
});

test('the application sees its own command line and environment, and nothing of onehop\'s', () => withWorker(
  `export default { fetch(request, env) { return Response.json({
    argv: process.argv.slice(2), file: process.argv[1].endsWith('/app.mjs'), set: env.GREETING, loaded: env.LOADED,
    left: Object.keys(process.env).filter((name) => name.startsWith('ONEHOP_')) }) } };
   process.env.LOADED = 'while loading';`,
  { args: ['--flag', 'value'], env: { GREETING: 'hi', ONEHOP_PLATFORM_RESPONSE: '1', ONEHOP_OTHER: '1' } },
  async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    assert.deepEqual(JSON.parse((await lane.answer(0)).body), {
      argv: ['--flag', 'value'], file: true, set: 'hi', loaded: 'while loading', left: [],
    });
  },
));

test('PONG carries the token, the counts and the memory', () => withWorker(HELLO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0), requestFrame(1, 0));
  await lane.answer(1);
  peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.from('12345678')));
  const { payload } = await peer.control.takeKind(wire.PONG);
  assert.equal(payload.toString('latin1', 0, 8), '12345678');
  assert.equal(payload.readUInt32LE(12), 0);
  assert.equal(payload.readBigUInt64LE(16), 2n);
  assert.ok(payload.readBigUInt64LE(24) > 1_000_000n);
  assert.ok(payload.readBigUInt64LE(32) > 10_000_000n);
}));

test('PONG tells how long the event loop stood still', () => withWorker(
  'export default { fetch() { const end = Date.now() + 150; while (Date.now() < end); return new Response("") } };', {},
  async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    await lane.answer(0);
    peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
    const { payload } = await peer.control.takeKind(wire.PONG);
    assert.ok(payload.readUInt32LE(8) >= 120_000, `${payload.readUInt32LE(8)} us`);
    peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
    assert.ok((await peer.control.takeKind(wire.PONG)).payload.readUInt32LE(8) < 100_000, 'a PONG starts anew');
  },
));

test('the end of the control lane is the end of the worker', () => withWorker(HELLO, {}, async (peer) => {
  peer.control.socket.destroy();
  await peer.exit;
}));

test('a broken frame ends the worker, which says why', async () => {
  const cases = [
    [(peer) => peer.lane.send(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0])), /4294967295 bytes/],
    [(peer) => peer.lane.send(frame(0x55, 0, 0, 0)), /kind 0x55 has no place/],
    [(peer) => peer.lane.send(frame(wire.DATA, 0, 3, 0, Buffer.from('x'))), /never given out/],
    [(peer) => peer.lane.send(frame(wire.REQUEST, 4, 0, 0)), /unknown flags/],
    [(peer) => peer.lane.send(frame(wire.REQUEST, 1, 0, 0, Buffer.alloc(10))), /REQUEST with 10 bytes/],
    [(peer) => peer.lane.send(frame(wire.REQUEST, 1, 64, 0, Buffer.alloc(44))), /slot 64 is not below 64/],
    [(peer) => peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(3))), /PING with 3 bytes/],
  ];
  for (const [breakIt, expected] of cases) {
    await withWorker(HELLO, {}, async (peer) => {
      breakIt(peer);
      assert.equal((await peer.exit).code, 1);
      assert.match(peer.stderr, expected);
    });
  }
});
