import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { failure, get, ON_BUN, written } from './support/apps.mjs';
import { frame, startWorker, wire } from './support/peer.mjs';

const RETIRE = frame(wire.RETIRE, 0, 0, 0);
const folder = mkdtempSync(path.join(os.tmpdir(), 'onehop-over-http-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

/** A worker that is told to take HTTP, and its READY. */
async function withHttp(source, options, body) {
  count += 1;
  const socketPath = path.join(folder, `${count}.sock`);
  const peer = await startWorker(source, {
    ...options, env: { ONEHOP_PROTOCOL: 'http', ONEHOP_HTTP_SOCKET: socketPath, ...options.env },
  });
  try {
    await body(peer, socketPath, await peer.greet());
  } catch (error) {
    error.message += `\n--- the worker's stderr:\n${peer.stderr}`;
    throw error;
  } finally {
    await peer.stop();
  }
}

const GATED = `const http = require('http');
  let open; const gate = new Promise((resolve) => { open = resolve; });
  const server = http.createServer(async (request, response) => {
    if (request.url === '/open') open();
    if (request.url === '/wait') { response.write('['); await gate; }
    response.end(JSON.stringify(server.address()));
  });
  server.on('upgrade', (request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n'); socket.pipe(socket);
  });
  server.listen(3000, '127.0.0.1', () => console.log('listening', server.listening));`;

test('READY says that requests come as HTTP to the socket, which the application does not notice', () => withHttp(
  GATED, { name: 'app.cjs' }, async (peer, socketPath, ready) => {
    assert.equal(ready.payload.readUInt16LE(2), 1);
    const { status, body } = await get({ socketPath });
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), { address: '127.0.0.1', family: 'IPv4', port: 3000 });
    await written(peer, 'stdout', /listening true/);
    assert.match(peer.stderr, /requests come to this worker as HTTP on a Unix socket/);
  },
));

test('over lanes READY says 2: they lead to a server of the application', { skip: ON_BUN && 'Bun\'s servers are reached over HTTP' }, () => withHttp(
  GATED, { name: 'app.cjs', env: { ONEHOP_PROTOCOL: '' } }, async (peer, socketPath, ready) => {
    assert.equal(ready.payload.readUInt16LE(2), 2);
    await assert.rejects(get({ socketPath }), { code: 'ENOENT' });
  },
));

test('an exported handler is called over lanes whatever the protocol', () => withHttp(
  'export default { fetch: () => new Response("x") }', {}, async (peer, socketPath, ready) => {
    assert.equal(ready.payload.readUInt16LE(2), 0);
  },
));

test('a worker over HTTP counts, ignores the end of its data lanes, and finishes what is in flight', () => withHttp(
  GATED, { name: 'app.cjs' }, async (peer, socketPath) => {
    for (const lane of peer.lanes) lane.socket.destroy();
    await get({ socketPath });
    const waiting = get({ socketPath, path: '/wait' });
    const ping = async () => {
      peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
      const { payload } = await peer.control.takeKind(wire.PONG);
      return { inFlight: payload.readUInt32LE(12), begun: Number(payload.readBigUInt64LE(16)) };
    };
    let health = await ping();
    while (health.begun < 2) health = await ping();
    assert.deepEqual(health, { inFlight: 1, begun: 2 });
    peer.control.send(RETIRE);
    await ping();
    await get({ socketPath, path: '/open' });
    assert.match((await waiting).body, /^\[/);
    assert.deepEqual(await peer.exit, { code: 0, signal: null });
  },
));

test('a worker over HTTP that retires waits for upgraded connections, which the server ends', {
  skip: ON_BUN && 'Bun does not say which connections are upgraded',
}, () => withHttp(GATED, { name: 'app.cjs' }, async (peer, socketPath) => {
  const socket = await new Promise((resolve, reject) => {
    const request = http.get({ socketPath, headers: { Connection: 'Upgrade', Upgrade: 'echo' } });
    request.on('upgrade', (_, upgraded) => resolve(upgraded));
    request.on('error', reject);
  });
  peer.control.send(RETIRE);
  peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
  await peer.control.takeKind(wire.PONG);
  socket.write('still there');
  const [text] = await new Promise((resolve) => { socket.once('data', (...given) => resolve(given)); });
  assert.equal(text.toString(), 'still there');
  socket.destroy();
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
}));

test('a worker that must take HTTP and has no socket for it fails and says so', async () => {
  const peer = await startWorker(GATED, { name: 'app.cjs', env: { ONEHOP_PROTOCOL: 'http' } });
  assert.match(await failure(peer), /requests must come as HTTP .* no socket for it/);
  await peer.stop();
});
