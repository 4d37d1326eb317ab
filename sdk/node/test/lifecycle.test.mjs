import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frame, isNoTiming, requestFrame, wire, withWorker } from './support/peer.mjs';

const RETIRE = frame(wire.RETIRE, 0, 0, 0);
const DRAIN = frame(wire.DRAIN, 0, 0, 0);

const GATED = `let open; const gate = new Promise((resolve) => { open = resolve; });
  export default { async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === '/open') { open(); return new Response('opened'); }
    if (pathname === '/later') {
      ctx.waitUntil(gate.then(() => new Promise((resolve) => setTimeout(resolve, 50))).then(() => console.log('done later')));
      return new Response('answered');
    }
    if (pathname === '/rejects') ctx.waitUntil(Promise.reject(new Error('in the background')));
    if (pathname === '/wait') await gate;
    return new Response(pathname);
  } };`;

test('a worker that retires with nothing to do leaves with code 0', () => withWorker(GATED, {}, async (peer) => {
  peer.control.send(RETIRE);
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
}));

test('a worker that retires finishes what is in flight', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/wait' }));
  peer.control.send(DRAIN, RETIRE);
  lane.send(requestFrame(1, 0, { target: '/open' }));
  assert.equal((await lane.answer(0)).body.toString(), '/wait');
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
}));

test('what stood in the data lane before RETIRE is answered', async () => {
  for (let round = 0; round < 5; round += 1) {
    await withWorker(GATED, { hello: { perTurn: 2 } }, async (peer, lane) => {
      lane.send(...Array.from({ length: 30 }, (_, slot) => requestFrame(slot, 0, { target: `/${slot}` })));
      peer.control.send(RETIRE);
      // No credit: a write to a worker that has left would throw away what is still to be read.
      for (let slot = 0; slot < 30; slot += 1) {
        assert.equal((await lane.answer(slot, { credit: false })).body.toString(), `/${slot}`);
      }
      assert.deepEqual(await peer.exit, { code: 0, signal: null });
    });
  }
});

test('a worker that is drained leaves in peace when its data lanes end first', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/wait' }));
  peer.control.send(DRAIN);
  peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
  await peer.control.takeKind(wire.PONG);
  lane.socket.destroy();
  peer.control.send(RETIRE);
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
}));

test('a worker whose data lane ends without a word is given up', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.socket.destroy();
  assert.equal((await peer.exit).code, 1);
}));

test('a worker that retires waits for waitUntil', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/later' }));
  assert.equal((await lane.answer(0)).body.toString(), 'answered');
  peer.control.send(RETIRE);
  lane.send(requestFrame(1, 0, { target: '/open' }));
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
  assert.match(peer.stdout, /done later/);
}));

test('a promise handed to waitUntil that rejects is told and ends nothing', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/rejects' }));
  await lane.answer(0);
  lane.send(requestFrame(0, 1));
  await lane.answer(0);
  peer.control.send(RETIRE);
  assert.equal((await peer.exit).code, 0);
  assert.match(peer.stderr, /waitUntil of 0000000000000001 GET \/rejects: Error: in the background/);
}));

test('a large answer is written as a whole before a retiring worker leaves', () => withWorker(
  'export default { fetch() { return new Response(new Uint8Array(3_000_000)) } };',
  { hello: { streamWindow: 4_000_000, laneWindow: 4_000_000 } }, async (peer, lane) => {
    lane.socket.pause();
    lane.send(requestFrame(0, 0));
    peer.control.send(RETIRE);
    peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
    await peer.control.takeKind(wire.PONG);
    lane.socket.resume();
    assert.equal((await lane.answer(0, { credit: false })).body.length, 3_000_000);
    assert.equal((await peer.exit).code, 0);
  },
));

test('SIGTERM drains: DRAIN, what comes is refused, what is in flight is finished', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/wait' }), requestFrame(1, 0));
  await lane.answer(1);
  peer.child.kill('SIGTERM');
  await peer.control.takeKind(wire.DRAIN);
  lane.send(requestFrame(1, 1, { target: '/new' }));
  const reset = await lane.takeKind(wire.RESET, 1);
  assert.equal(reset.payload.readUInt32LE(0), wire.REFUSED);
  assert.equal(reset.generation, 1);
  lane.send(requestFrame(1, 2));
  await lane.takeKind(wire.RESET, 1);
  assert.equal(peer.child.exitCode, null);
}));

test('SIGTERM refuses what waits for its turn, and the worker leaves when it is quiet', () => withWorker(
  `export default { fetch() { process.kill(process.pid, 'SIGTERM'); return new Promise((resolve) => setTimeout(resolve, 20, new Response('x'))) } };`,
  { hello: { perTurn: 1 } }, async (peer, lane) => {
    lane.send(requestFrame(0, 0), ...Array.from({ length: 40 }, (_, index) => requestFrame(index + 1, 0)));
    await lane.answer(0);
    const refused = [];
    await peer.exit;
    for (const { kind, slot, payload } of lane.frames) if (kind === wire.RESET) refused.push([slot, payload.readUInt32LE(0)]);
    assert.ok(refused.length > 30, `${refused.length} refused`);
    assert.ok(refused.every(([, code]) => code === wire.REFUSED));
    assert.equal((await peer.exit).code, 0);
  },
));

test('RETIRE after SIGTERM ends the wait', () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0));
  await lane.answer(0);
  peer.child.kill('SIGTERM');
  await peer.control.takeKind(wire.DRAIN);
  const at = Date.now();
  peer.control.send(RETIRE);
  assert.equal((await peer.exit).code, 0);
  assert.ok(Date.now() - at < 450, `${Date.now() - at} ms`);
}));

test('SIGINT is left to the server', () => withWorker(GATED, {}, async (peer, lane) => {
  peer.child.kill('SIGINT');
  lane.send(requestFrame(0, 0));
  await lane.answer(0);
}));

test('an application that handles SIGTERM itself decides itself', () => withWorker(
  `process.on('SIGTERM', () => console.log('mine')); ${GATED}`, {}, async (peer, lane) => {
    peer.child.kill('SIGTERM');
    lane.send(requestFrame(0, 0));
    await lane.answer(0);
    assert.deepEqual(peer.control.frames.filter(isNoTiming), []);
  },
));
