import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestFrame, wire, withWorker } from './support/peer.mjs';

/** A handler fails before its answer's head: 500, and standard error says for which request. */
function failsWith500(handler, expected, request = {}) {
  return withWorker(`export default { ${handler} };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/path?query', id: 0xabn, ...request }));
    const answer = await lane.answer(0);
    assert.equal(answer.status, 500);
    assert.equal(answer.body.toString(), request.method === 'HEAD' ? '' : 'Internal Server Error');
    lane.send(requestFrame(0, 1));
    await lane.answer(0);
    assert.match(peer.stderr, expected);
    assert.match(peer.stderr, new RegExp(`00000000000000ab ${request.method ?? 'GET'} /path\\?query`));
  });
}

test('a handler that throws is answered with 500', () => failsWith500('fetch() { throw new Error("oops") }', /oops[\s\S]*app\.mjs/));

test('a handler that rejects is answered with 500', () => failsWith500('async fetch() { throw new Error("oops") }', /oops/));

test('HEAD is answered with 500 too', () => failsWith500('fetch() { throw "text" }', /text/, { method: 'HEAD' }));

test('a method of its own is told by its name', () => failsWith500('fetch() { throw new Error("x") }', /x/, { method: 'PURGE' }));

test('what is no response is answered with 500 and said so', async () => {
  await failsWith500('fetch() {}', /must return a Response/);
  await failsWith500('async fetch() { return "text" }', /must return a Response/);
  await failsWith500('fetch() { return { status: 200 } }', /must return a Response/);
});

test('a response that was used is answered with 500', () => failsWith500(
  'async fetch() { const r = new Response("x"); await r.text(); return r }', /used already/,
));

test('an answer that no frame can carry is answered with 500', async () => {
  await failsWith500('fetch() { return new Response("", { headers: { a: "x".repeat(70_000) } }) }', /65536 bytes/);
  await failsWith500(
    'fetch() { const h = []; for (let i = 0; i < 201; i++) h.push(["x-" + i, "y"]); return new Response("", { headers: h }) }',
    /200 fields/,
  );
  await failsWith500('fetch() { return onehop.sendFile("a", { offset: 5 }) }', /status 200/);
});

test('a stream that fails is broken off with RESET', async () => {
  const bodies = [
    ['pull(c) { if (this.first) c.error(new Error("broken")); this.first = true; c.enqueue(new Uint8Array(3)) }', /broken/],
    ['pull(c) { c.enqueue(7) }', /not a Uint8Array/],
  ];
  for (const [pull, expected] of bodies) {
    await withWorker(`export default { fetch() { return new Response(new ReadableStream({ ${pull} })) } };`, {}, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      const answer = await lane.answer(0);
      assert.equal(answer.status, 200);
      assert.equal(answer.reset, wire.HANDLER_FAILED);
      lane.send(requestFrame(1, 0));
      await lane.answer(1);
      assert.match(peer.stderr, expected);
    });
  }
});

test('a stream that does not keep to its Content-Length is broken off', async () => {
  for (const [length, expected] of [[2, /longer than its Content-Length/], [9, /before its Content-Length/]]) {
    const source = `export default { fetch() {
      let left = 1;
      const body = new ReadableStream({ pull(c) { if (left--) c.enqueue(new Uint8Array(5)); else c.close(); } });
      return new Response(body, { headers: { 'content-length': '${length}' } });
    } };`;
    await withWorker(source, {}, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).reset, wire.HANDLER_FAILED);
      lane.send(requestFrame(1, 0));
      await lane.answer(1);
      assert.match(peer.stderr, expected);
    });
  }
});

test('an error nobody catches ends the worker, as Node does without onehop', () => withWorker(
  'export default { fetch() { setTimeout(() => { throw new Error("nobody") }); return new Promise(() => {}) } };', {},
  async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    assert.notEqual((await peer.exit).code, 0);
    assert.match(peer.stderr, /nobody/);
  },
));
