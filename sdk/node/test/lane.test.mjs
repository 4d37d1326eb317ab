import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dataFrame, frame, requestFrame, resetFrame, wire, withWorker } from './support/peer.mjs';

const ECHO = `export default {
  async fetch(request) {
    return new Response(request.method + ' ' + new URL(request.url).pathname + ' ' + await request.text());
  },
};`;

test('a GET is answered in one frame', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/hello' }));
  const answer = await lane.answer(0);
  assert.equal(answer.status, 200);
  assert.equal(answer.body.toString(), 'GET /hello ');
  assert.equal(answer.length, 11);
}));

test('a POST is answered whose body came with its head, or behind it', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 7, { method: 'POST', body: 'grüße' }));
  assert.equal((await lane.answer(0)).body.toString(), 'POST / grüße');
  lane.send(requestFrame(0, 8, { method: 'POST', body: 'one ', end: false }), dataFrame(0, 8, 'two'), dataFrame(0, 8, '', true));
  assert.equal((await lane.answer(0)).body.toString(), 'POST / one two');
}));

test('a body that ends with trailers is complete', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(
    requestFrame(0, 0, { method: 'POST', body: 'text', end: false }),
    frame(wire.TRAILERS, wire.END, 0, 0, Buffer.from('X-Sum:1\n')),
  );
  assert.equal((await lane.answer(0)).body.toString(), 'POST / text');
}));

test('frames that arrive byte by byte are put together', () => withWorker(ECHO, {}, async (peer, lane) => {
  const bytes = Buffer.concat([
    requestFrame(0, 0, { method: 'POST', body: 'a', end: false }), dataFrame(0, 0, 'b'), dataFrame(0, 0, 'c', true),
  ]);
  for (const byte of bytes) {
    lane.send(Buffer.of(byte));
    await new Promise(setImmediate);
  }
  assert.equal((await lane.answer(0)).body.toString(), 'POST / abc');
}));

test('frames of the greatest length are taken whole, however they are cut', () => withWorker(
  'export default { async fetch(request) { return new Response(String((await request.arrayBuffer()).byteLength)) } }', {},
  async (peer, lane) => {
    const target = `/${'x'.repeat(60_000)}`;
    lane.send(requestFrame(0, 0, { method: 'POST', target, body: 'y'.repeat(65_536) }), requestFrame(1, 0, { method: 'POST', body: 'z' }));
    assert.equal((await lane.answer(0)).body.toString(), '65536');
    assert.equal((await lane.answer(1)).body.toString(), '1');
  },
));

test('answers of one turn leave in one write and keep their slots', () => withWorker(ECHO, {}, async (peer, lane) => {
  let reads = 0;
  lane.socket.on('data', () => { reads += 1; });
  lane.send(...Array.from({ length: 40 }, (_, slot) => requestFrame(slot, 0, { target: `/${slot}` })));
  for (let slot = 0; slot < 40; slot += 1) {
    assert.equal((await lane.answer(slot)).body.toString(), `GET /${slot} `);
  }
  assert.ok(reads <= 2, `${reads} reads`);
}));

test('between handlers that compute answers leave, and PONG tells how long others wait', () => withWorker(
  'export default { fetch() { const end = Date.now() + 40; while (Date.now() < end); return new Response(""); } };', {},
  async (peer, lane) => {
    const count = 20;
    lane.send(...Array.from({ length: count }, (_, slot) => requestFrame(slot, 0)));
    await lane.answer(0);
    // The next one waits since the first one was done, and the second one took its time since then.
    await lane.answer(1);
    peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
    const { payload } = await peer.control.takeKind(wire.PONG);
    assert.ok(payload.readBigUInt64LE(16) < count, `${payload.readBigUInt64LE(16)} had begun`);
    assert.ok(payload.readUInt32LE(8) >= 40_000, `the next one has waited for ${payload.readUInt32LE(8)} us`);
    for (let slot = 2; slot < count; slot += 1) await lane.answer(slot);
  },
));

test('several lanes are served by one worker', () => withWorker(ECHO, { lanes: 3 }, async (peer) => {
  for (const [index, lane] of peer.lanes.entries()) lane.send(requestFrame(5, 9, { target: `/lane-${index}` }));
  for (const [index, lane] of peer.lanes.entries()) {
    assert.equal((await lane.answer(5)).body.toString(), `GET /lane-${index} `);
  }
}));

test('HEAD, 204 and 304 have no body, and say what is known of its length', () => withWorker(
  `export default { fetch(request) {
    switch (new URL(request.url).pathname) {
      case '/text': return new Response('hello');
      case '/none': return new Response(null);
      case '/stream': return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(9)); } }));
      case '/204': return new Response(null, { status: 204 });
      default: return new Response(null, { status: 304, headers: { ETag: '"x"' } });
    }
  } }`, {}, async (peer, lane) => {
    const cases = [
      ['HEAD', '/text', 200, 5], ['HEAD', '/none', 200, -1], ['HEAD', '/stream', 200, -1],
      ['GET', '/204', 204, 0], ['GET', '/304', 304, -1], ['GET', '/none', 200, 0],
    ];
    for (const [generation, [method, target, status, length]] of cases.entries()) {
      lane.send(requestFrame(0, generation, { method, target }));
      const answer = await lane.answer(0);
      assert.deepEqual(
        { status: answer.status, length: answer.length, body: answer.body.length, ended: answer.ended },
        { status, length, body: 0, ended: true }, `${method} ${target}`,
      );
    }
  },
));

test('the context tells the client, the request id and the encryption', () => withWorker(
  `export default { fetch(request, env, ctx) {
    return Response.json({ client: ctx.client, id: ctx.requestId, tls: ctx.tls, frozen: Object.isFrozen(env) });
  } }`, {}, async (peer, lane) => {
    const ipv6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7];
    const cases = [
      [{ id: 0x0123_4567_89ab_cdefn }, { client: { address: '127.0.0.1', port: 40_000 }, id: '0123456789abcdef', tls: null }],
      [{ address: ipv6, port: 65_535, id: 1n }, { client: { address: '2001:db8::1', port: 65_535 }, id: '0000000000000001', tls: null }],
      [{ address: mapped, port: 1 }, { client: { address: '::ffff:192.0.2.7', port: 1 }, id: '0000000000000001', tls: null }],
      [{ address: [], port: 0 }, { client: null, id: '0000000000000001', tls: null }],
      [{ facts: 1, tls: 'TLSv1.3' }, { client: { address: '127.0.0.1', port: 40_000 }, id: '0000000000000001', tls: { facts: 'TLSv1.3' } }],
    ];
    for (const [generation, [request, expected]] of cases.entries()) {
      lane.send(requestFrame(0, generation, request));
      assert.deepEqual(JSON.parse((await lane.answer(0)).body), { ...expected, frozen: true });
    }
  },
));

test('a file is answered by its path', () => withWorker(
  `export default { fetch(request) {
    return request.url.endsWith('/part')
      ? onehop.sendFile('a/b.bin', { status: 206, offset: 7, length: 9 }) : onehop.sendFile('grüße.txt', { headers: { 'X-A': '1' } });
  } }`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const whole = await lane.takeKind(wire.FILE, 0);
    const block = whole.payload.readUInt32LE(4);
    assert.equal(whole.flags, wire.END);
    assert.equal(whole.payload.toString('latin1', 16, 16 + block).toLowerCase(), 'x-a:1\n');
    assert.equal(whole.payload.readBigUInt64LE(16 + block), 0n);
    assert.equal(whole.payload.readBigUInt64LE(24 + block), 0xffff_ffff_ffff_ffffn);
    assert.equal(whole.payload.readUInt32LE(32 + block), 11);
    assert.equal(whole.payload.toString('utf8', 36 + block), 'grüße.txt');
    lane.send(requestFrame(0, 1, { target: '/part' }));
    const part = await lane.takeKind(wire.FILE, 0);
    assert.equal(part.payload.readUInt16LE(0), 206);
    assert.equal(part.payload.readBigUInt64LE(16), 7n);
    assert.equal(part.payload.readBigUInt64LE(24), 9n);
  },
));

test('a reset aborts the signal within 100 ms, and nothing is answered', () => withWorker(
  `export default { async fetch(request) {
    if (request.url.endsWith('/seen')) return new Response(String(globalThis.seen));
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    globalThis.seen = Date.now() + ' ' + request.signal.reason.name;
    return new Response('too late');
  } }`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0), requestFrame(1, 0));
    lane.send(requestFrame(2, 0, { target: '/seen' }));
    assert.equal((await lane.answer(2)).body.toString(), 'undefined');
    const sent = Date.now();
    lane.send(resetFrame(0, 0, wire.CLIENT_GONE));
    lane.send(requestFrame(2, 1, { target: '/seen' }));
    // The handler's continuation runs in microtasks behind the abort, before the next request's.
    let seen = (await lane.answer(2)).body.toString();
    for (let generation = 2; seen === 'undefined'; generation += 1) {
      lane.send(requestFrame(2, generation, { target: '/seen' }));
      seen = (await lane.answer(2)).body.toString();
    }
    const [at, name] = seen.split(' ');
    assert.ok(Number(at) - sent < 100, `${at - sent} ms`);
    assert.equal(name, 'AbortError');
    lane.send(resetFrame(1, 0, wire.TIMEOUT), requestFrame(3, 0, { target: '/seen' }));
    await lane.answer(3);
    assert.deepEqual(lane.frames.filter((f) => f.slot < 2), []);
    lane.send(requestFrame(0, 1, { target: '/seen' }));
    assert.match((await lane.answer(0)).body.toString(), /TimeoutError/);
  },
));

test('the signal of a request that was answered never aborts', () => withWorker(
  `const signals = [];
  export default { fetch(request) {
    signals.push(request.signal);
    return Response.json(signals.map((signal) => signal.aborted));
  } }`, {}, async (peer, lane) => {
    for (let generation = 0; generation < 3; generation += 1) {
      lane.send(requestFrame(0, generation));
      const answer = await lane.answer(0);
      // A reset that comes late counts for nothing.
      lane.send(resetFrame(0, generation, wire.NOT_NEEDED));
      assert.deepEqual(JSON.parse(answer.body), new Array(generation + 1).fill(false));
    }
  },
));

test('late frames count for nothing, and frames of the future end the worker', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 4), dataFrame(0, 3, 'late'), requestFrame(1, 0));
  await lane.answer(0);
  lane.send(dataFrame(0, 4, 'late'), resetFrame(0, 4, wire.CLIENT_GONE), requestFrame(0, 5, { target: '/next' }));
  assert.equal((await lane.answer(0)).body.toString(), 'GET /next ');
  lane.send(resetFrame(0, 6, wire.CLIENT_GONE));
  assert.equal((await peer.exit).code, 1);
  assert.match(peer.stderr, /generation 6 of slot 0 was never given out/);
}));

test('generations wrap', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0xffff_ffff));
  await lane.answer(0);
  lane.send(requestFrame(0, 0, { target: '/wrapped' }), resetFrame(0, 0xffff_ffff, wire.CLIENT_GONE));
  assert.equal((await lane.answer(0)).body.toString(), 'GET /wrapped ');
}));

test('a slot that is given out twice, or skips a generation, ends the worker', async () => {
  await withWorker('export default () => new Promise(() => {})', {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0), requestFrame(0, 1));
    assert.equal((await peer.exit).code, 1);
    assert.match(peer.stderr, /given out twice/);
  });
  await withWorker(ECHO, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    await lane.answer(0);
    lane.send(requestFrame(0, 2));
    assert.equal((await peer.exit).code, 1);
  });
});

test('a handler that answers after its slot was given to another does not answer for it', () => withWorker(
  `const waiting = [];
  export default { async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/wait') await new Promise((resolve) => waiting.push(resolve));
    if (pathname === '/go') waiting.splice(0).forEach((resolve) => resolve());
    if (pathname === '/slow') await new Promise((resolve) => setTimeout(resolve, 30));
    return new Response(pathname);
  } }`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/wait' }), resetFrame(0, 0, wire.CLIENT_GONE));
    lane.send(requestFrame(0, 1, { target: '/slow' }), requestFrame(1, 0, { target: '/go' }));
    assert.equal((await lane.answer(1)).body.toString(), '/go');
    assert.equal((await lane.answer(0)).body.toString(), '/slow');
  },
));

test('AsyncLocalStorage of one request is never seen by another of the same read', () => withWorker(
  `import { AsyncLocalStorage } from 'node:async_hooks';
  const store = new AsyncLocalStorage();
  export default { async fetch(request) {
    const before = store.getStore();
    const name = new URL(request.url).pathname;
    store.enterWith(name);
    if (name.endsWith('7')) return new Response(String(before) + ' ' + store.getStore());
    await null;
    const after = store.getStore();
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Response(String(before) + ' ' + after + ' ' + store.getStore());
  } }`, { hello: { perTurn: 3 } }, async (peer, lane) => {
    for (let generation = 0; generation < 3; generation += 1) {
      lane.send(...Array.from({ length: 20 }, (_, slot) => requestFrame(slot, generation, { target: `/${generation}-${slot}` })));
      for (let slot = 0; slot < 20; slot += 1) {
        const name = `/${generation}-${slot}`;
        const expected = name.endsWith('7') ? `undefined ${name}` : `undefined ${name} ${name}`;
        assert.equal((await lane.answer(slot)).body.toString(), expected);
      }
    }
  },
));

test('what a stream, a signal or a later turn enters is not seen by other requests', () => withWorker(
  `import { AsyncLocalStorage } from 'node:async_hooks';
  const store = new AsyncLocalStorage();
  export default { fetch(request) {
    const before = String(store.getStore());
    const { pathname } = new URL(request.url);
    if (pathname === '/stream') {
      let left = 5;
      return new Response(new ReadableStream({ pull(c) {
        store.enterWith('stream');
        if (left-- > 0) c.enqueue(new Uint8Array(600)); else c.close();
      } }));
    }
    if (pathname === '/signal') {
      request.signal.addEventListener('abort', () => store.enterWith('signal'));
      return new Promise(() => {});
    }
    return new Response(before);
  } }`, { hello: { streamWindow: 1000 } }, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/stream' }), requestFrame(1, 0, { target: '/signal' }));
    assert.equal((await lane.answer(0)).body.length, 3000);
    lane.send(resetFrame(1, 0, wire.CLIENT_GONE), requestFrame(2, 0));
    assert.equal((await lane.answer(2)).body.toString(), 'undefined');
    lane.send(requestFrame(0, 1));
    assert.equal((await lane.answer(0)).body.toString(), 'undefined');
  },
));

test('a turn begins as many requests as HELLO says, and other frames do not wait for the rest', () => withWorker(
  `let turn = 0; let inTurn = 0; const counts = [];
  export default { fetch(request) {
    if (request.url.endsWith('/counts')) return Response.json(counts);
    if (inTurn === 0) setImmediate(() => { counts.push(inTurn); inTurn = 0; });
    inTurn += 1;
    return new Response('');
  } }`, { hello: { perTurn: 4 } }, async (peer, lane) => {
    const frames = Array.from({ length: 18 }, (_, slot) => requestFrame(slot, 0));
    // The last one has not begun when its reset is read.
    lane.send(...frames, requestFrame(18, 0), resetFrame(18, 0, wire.CLIENT_GONE));
    for (let slot = 0; slot < 18; slot += 1) await lane.answer(slot);
    lane.send(requestFrame(20, 0, { target: '/counts' }));
    const counts = JSON.parse((await lane.answer(20)).body);
    assert.ok(Math.max(...counts) <= 4, `${counts}`);
    assert.equal(counts.reduce((sum, count) => sum + count), 18);
    assert.deepEqual(lane.frames.filter((f) => f.slot === 18), []);
  },
));
