import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { creditFrame, dataFrame, readResponse, requestFrame, resetFrame, wire, withWorker } from './support/peer.mjs';

const TINY = { streamWindow: 1000, laneWindow: 4000 };

/** Answers a question about the worker's own state through slot 60. */
async function ask(lane, generation) {
  lane.send(requestFrame(60, generation, { target: '/ask' }));
  return (await lane.answer(60)).body.toString();
}

const COUNTING = `
  let pulled = 0; let cancelled = null;
  export default { fetch(request) {
    if (request.url.endsWith('/ask')) return new Response(pulled + ' ' + cancelled);
    return new Response(new ReadableStream({
      pull(c) { pulled += 1; c.enqueue(new Uint8Array(400).fill(pulled)); },
      cancel(reason) { cancelled = reason?.name ?? String(reason); },
    }, { highWaterMark: 0 }));
  } };`;

test('a stream is pulled only while there is credit, and goes on with it', () => withWorker(COUNTING, { hello: TINY }, async (peer, lane) => {
  lane.send(requestFrame(0, 0));
  const head = readResponse(await lane.takeKind(wire.RESPONSE, 0));
  assert.equal(head.length, -1);
  let received = head.body.length;
  while (received < 1000) received += (await lane.takeKind(wire.DATA, 0)).payload.length;
  assert.equal(received, 1000);
  assert.equal(await ask(lane, 0), '3 null');
  lane.send(creditFrame(0, 0, 200));
  assert.equal((await lane.takeKind(wire.DATA, 0)).payload.length, 200);
  assert.equal(await ask(lane, 1), '3 null');
  lane.send(creditFrame(0, 0, 1));
  assert.equal((await lane.takeKind(wire.DATA, 0)).payload.length, 1);
  assert.equal(await ask(lane, 2), '4 null');
}));

test('the credit of the lane holds for all its streams together', () => withWorker(
  COUNTING, { hello: { streamWindow: 3000, laneWindow: 4000 } }, async (peer, lane) => {
    lane.send(requestFrame(0, 0), requestFrame(1, 0));
    let received = 0;
    while (received < 4000) received += (await lane.takeKind(wire.DATA)).payload.length;
    assert.equal(received, 4000);
    lane.send(creditFrame(wire.LANE_SLOT, 0, 100));
    assert.equal((await lane.takeKind(wire.DATA)).payload.length, 100);
    assert.equal(lane.frames.filter((frame) => frame.kind === wire.DATA).length, 0);
  },
));

test('a reset cancels the stream of the answer', () => withWorker(COUNTING, { hello: TINY }, async (peer, lane) => {
  lane.send(requestFrame(0, 0));
  await lane.takeKind(wire.DATA, 0);
  lane.send(resetFrame(0, 0, wire.CLIENT_GONE), creditFrame(0, 0, 500), requestFrame(1, 0, { target: '/ask' }));
  await lane.answer(1);
  assert.match(await ask(lane, 0), /AbortError$/);
}));

test('a stream that answers a request which is gone is cancelled', () => withWorker(
  `let cancelled = 0;
  export default { async fetch(request) {
    if (request.url.endsWith('/ask')) return new Response(String(cancelled));
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    return new Response(new ReadableStream({ cancel() { cancelled += 1; } }));
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0), resetFrame(0, 0, wire.CLIENT_GONE));
    let seen = await ask(lane, 0);
    for (let generation = 1; seen === '0'; generation += 1) seen = await ask(lane, generation);
    assert.equal(seen, '1');
  },
));

test('large texts and bytes are sent in pieces as credit comes', () => withWorker(
  `export default { fetch(request) {
    return new Response(request.url.endsWith('/text') ? 'ü'.repeat(100_000) : new Uint8Array(200_000).fill(7));
  } };`, { hello: { streamWindow: 70_000, laneWindow: 90_000 } }, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/text' }), requestFrame(1, 0, { target: '/bytes' }));
    const text = await lane.answer(0);
    const bytes = await lane.answer(1);
    assert.equal(text.length, 200_000);
    assert.equal(text.body.toString(), 'ü'.repeat(100_000));
    assert.ok(bytes.body.equals(Buffer.alloc(200_000, 7)));
  },
));

test('with no credit at all a short answer goes through whole', () => withWorker(
  'export default { fetch() { return new Response("hello") } };', { hello: { streamWindow: 0, laneWindow: 0 } },
  async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const answer = readResponse(await lane.takeKind(wire.RESPONSE, 0));
    assert.deepEqual([answer.ended, answer.length, answer.body.toString()], [true, 5, 'hello']);
  },
));

test('with no credit at all a longer answer still has its head', () => withWorker(
  'export default { fetch() { return new Response("x".repeat(20_000)) } };',
  { hello: { streamWindow: 0, laneWindow: 0 } },
  async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const head = readResponse(await lane.takeKind(wire.RESPONSE, 0));
    assert.deepEqual([head.ended, head.length, head.body.length], [false, 20_000, 0]);
    lane.send(creditFrame(0, 0, 3), creditFrame(wire.LANE_SLOT, 0, 100_000));
    assert.equal((await lane.takeKind(wire.DATA, 0)).payload.toString(), 'xxx');
    lane.send(creditFrame(0, 0, 100_000));
    const rest = await lane.takeKind(wire.DATA, 0);
    assert.deepEqual([rest.payload.length, rest.flags], [19_997, wire.END]);
  },
));

test('a stream that ends sends its end', () => withWorker(
  `export default { fetch() {
    const pieces = ['one ', 'two'];
    return new Response(new ReadableStream({ pull(c) {
      if (pieces.length > 0) c.enqueue(new TextEncoder().encode(pieces.shift())); else c.close();
    } }));
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const answer = await lane.answer(0);
    assert.equal(answer.body.toString(), 'one two');
    assert.equal(answer.reset, undefined);
  },
));

test('what a stream gives in one turn goes out in one frame with its end, and nothing waits for the next turn', () => withWorker(
  `const gates = [];
  export default { fetch(request) {
    if (request.url.endsWith('/next')) { gates.shift()(); return new Response('next'); }
    let made = 0;
    return new Response(new ReadableStream({
      async pull(c) {
        if (made === 64) await new Promise((resolve) => gates.push(resolve));
        if (made === 128) c.close(); else c.enqueue(new Uint8Array(100).fill(made));
        made += 1;
      },
    }));
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0), requestFrame(1, 0));
    for (const slot of [0, 1]) {
      await lane.takeKind(wire.RESPONSE, slot);
      const first = await lane.takeKind(wire.DATA, slot);
      assert.deepEqual([first.payload.length, first.flags], [6_400, 0]);
      lane.send(requestFrame(60, slot, { target: '/next' }));
      const second = await lane.takeKind(wire.DATA, slot);
      assert.deepEqual([second.payload.length, second.flags], [6_400, wire.END]);
    }
  },
));

test('a stream that breaks sends what it gave before', () => withWorker(
  `export default { fetch() {
    let made = 0;
    return new Response(new ReadableStream({ pull(c) {
      if (made++ === 3) throw new Error('broken'); else c.enqueue(new Uint8Array(10));
    } }, { highWaterMark: 0 }));
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const answer = await lane.answer(0);
    assert.deepEqual([answer.body.length, answer.reset], [30, wire.HANDLER_FAILED]);
  },
));

const UPLOAD = `
  let gate; let seen = 0;
  export default { async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/ask') return new Response(String(seen));
    if (pathname === '/ignore') return new Promise((resolve) => { gate = resolve; });
    if (pathname === '/open') { gate(new Response('ignored')); return new Response('opened'); }
    if (pathname === '/first') {
      const reader = request.body.getReader();
      seen = (await reader.read()).value.length;
      return new Promise((resolve) => { gate = resolve; });
    }
    let bytes = 0;
    for await (const piece of request.body) bytes += piece.length;
    return new Response(String(bytes));
  } };`;

test('an upload many times the window is taken as it is read', () => withWorker(UPLOAD, { hello: TINY }, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { method: 'POST', end: false }));
  let stream = 1000;
  let whole = 4000;
  for (let left = 50_000; left > 0;) {
    const count = Math.min(stream, whole, left, 333);
    if (count > 0) {
      left -= count;
      stream -= count;
      whole -= count;
      lane.send(dataFrame(0, 0, Buffer.alloc(count), left === 0));
    } else {
      const credit = await lane.takeKind(wire.CREDIT);
      if (credit.slot === wire.LANE_SLOT) whole += credit.payload.readUInt32LE(0);
      else stream += credit.payload.readUInt32LE(0);
    }
  }
  assert.equal((await lane.answer(0)).body.toString(), '50000');
}));

test('a body that nobody reads gets no credit until its exchange is over', () => withWorker(UPLOAD, { hello: TINY }, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { method: 'POST', target: '/ignore', body: 'x'.repeat(600), end: false }), dataFrame(0, 0, 'y'.repeat(400)));
  assert.equal(await ask(lane, 0), '0');
  assert.deepEqual(lane.frames.filter((frame) => frame.kind === wire.CREDIT), []);
  lane.send(requestFrame(1, 0, { target: '/open' }));
  assert.equal((await lane.answer(0)).body.toString(), 'ignored');
  const credit = await lane.takeKind(wire.CREDIT);
  assert.deepEqual([credit.slot, credit.payload.readUInt32LE(0)], [wire.LANE_SLOT, 1000]);
  // What was on its way is credited to the lane, too.
  lane.send(dataFrame(0, 0, 'z'.repeat(500)));
  assert.equal((await lane.takeKind(wire.CREDIT)).payload.readUInt32LE(0), 500);
}));

test('a reset in the middle of an upload is an error for who reads it', () => withWorker(
  `let seen = 'nothing';
  export default { async fetch(request) {
    if (request.url.endsWith('/ask')) return new Response(seen);
    try { await request.text(); } catch (error) { seen = error.name; }
    return new Response('late');
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { method: 'POST', body: 'x', end: false }));
    assert.equal(await ask(lane, 0), 'nothing');
    lane.send(resetFrame(0, 0, wire.CLIENT_GONE));
    let seen = await ask(lane, 1);
    for (let generation = 2; seen === 'nothing'; generation += 1) seen = await ask(lane, generation);
    assert.match(seen, /Error$/);
    assert.doesNotMatch(peer.stderr, /Error/);
  },
));

test('a server that sends more than it may has broken the protocol', async () => {
  await withWorker(UPLOAD, { hello: TINY }, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { method: 'POST', target: '/ignore', end: false }), dataFrame(0, 0, Buffer.alloc(1001)));
    assert.equal((await peer.exit).code, 1);
    assert.match(peer.stderr, /more of a body than it had credit for/);
  });
  await withWorker(UPLOAD, { hello: { streamWindow: 1000, laneWindow: 1500 } }, async (peer, lane) => {
    for (const slot of [0, 1]) {
      lane.send(requestFrame(slot, 0, { method: 'POST', target: '/ignore', end: false }), dataFrame(slot, 0, Buffer.alloc(900)));
    }
    assert.equal((await peer.exit).code, 1);
    assert.match(peer.stderr, /more on a lane than it had credit for/);
  });
});

test('a client that waits for 100 is asked for its body when somebody reads it, once', () => withWorker(UPLOAD, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { method: 'POST', target: '/ignore', end: false, facts: 2 }));
  assert.equal(await ask(lane, 0), '0');
  assert.deepEqual(lane.frames, []);
  lane.send(requestFrame(1, 0, { method: 'POST', end: false, facts: 2 }));
  const informational = await lane.takeKind(wire.INFORMATIONAL, 1);
  assert.deepEqual([...informational.payload], [100, 0, 0, 0, 0, 0, 0, 0]);
  lane.send(dataFrame(1, 0, 'a'), dataFrame(1, 0, 'b', true));
  assert.equal((await lane.answer(1)).body.toString(), '2');
  assert.deepEqual(lane.frames.filter((frame) => frame.kind === wire.INFORMATIONAL), []);
}));

test('a body is echoed as it comes', () => withWorker(
  'export default { fetch(request) { return new Response(request.body) } };', { hello: TINY }, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { method: 'POST', body: 'one', end: false }));
    assert.equal((await lane.takeKind(wire.RESPONSE, 0)).flags, 0);
    assert.equal((await lane.takeKind(wire.DATA, 0)).payload.toString(), 'one');
    lane.send(dataFrame(0, 0, 'two'));
    assert.equal((await lane.takeKind(wire.DATA, 0)).payload.toString(), 'two');
    lane.send(dataFrame(0, 0, '', true));
    assert.equal((await lane.takeKind(wire.DATA, 0)).flags, wire.END);
  },
));

test('a server that takes nothing for a while loses nothing', () => withWorker(
  `export default { fetch(request) { return new Response(new URL(request.url).pathname.repeat(9000)) } };`,
  { hello: { laneWindow: 100_000_000 } }, async (peer, lane) => {
    lane.socket.pause();
    lane.send(...Array.from({ length: 64 }, (_, slot) => requestFrame(slot, 0, { target: `/${slot}` })));
    // The worker has begun all of them when it answers a PING; its socket takes only a part.
    peer.control.send(Buffer.concat([Buffer.from([8, 0, 0, 0, wire.PING, 0, 0, 0, 0, 0, 0, 0]), Buffer.alloc(8)]));
    await peer.control.takeKind(wire.PONG);
    lane.socket.resume();
    for (let slot = 0; slot < 64; slot += 1) {
      assert.equal((await lane.answer(slot)).body.toString(), `/${slot}`.repeat(9000));
    }
  },
));

test('what an application wrote before it broke off leaves, though the server takes nothing at that moment', () => withWorker(
  `import http from 'node:http';
  http.createServer((request, response) => {
    if (request.url === '/fill') return response.end('x'.repeat(60_000));
    response.write('first');
    response.on('close', () => console.log('broken off'));
    setTimeout(() => response.destroy(), 1);
  }).listen(3000);`,
  { hello: { laneWindow: 100_000_000 } }, async (peer, lane) => {
    lane.socket.pause();
    lane.send(...Array.from({ length: 60 }, (_, slot) => requestFrame(slot, 0, { target: '/fill' })));
    peer.control.send(Buffer.concat([Buffer.from([8, 0, 0, 0, wire.PING, 0, 0, 0, 0, 0, 0, 0]), Buffer.alloc(8)]));
    await peer.control.takeKind(wire.PONG);
    lane.send(requestFrame(60, 0, { target: '/broken' }));
    while (!peer.stdout.includes('broken off')) await once(peer.child.stdout, 'data');
    lane.socket.resume();
    assert.equal((await lane.takeKind(wire.DATA, 60)).payload.toString(), 'first');
    await lane.takeKind(wire.RESET, 60);
  },
));
