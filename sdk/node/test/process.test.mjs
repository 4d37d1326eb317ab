import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { freePort, ON_BUN, written } from './support/apps.mjs';
import { dataFrame, frame, isNoTiming, requestFrame, wire, withWorker } from './support/peer.mjs';

const UNDER_NODE = { skip: ON_BUN && 'Bun\'s servers are reached over HTTP' };
const RETIRE = frame(wire.RETIRE, 0, 0, 0);

async function answer(lane, target = '/') {
  lane.send(requestFrame(0, lane.next ?? 0, { target }));
  lane.next = (lane.next ?? 0) + 1;
  return (await lane.answer(0)).body.toString();
}

// cluster and process.send

test('an application that forks itself with cluster finds itself in a worker', UNDER_NODE, async () => {
  const sources = [
    ['app.cjs', `const cluster = require('cluster'); const http = require('http');
      if (cluster.isPrimary || cluster.isMaster) { cluster.fork(); throw new Error('forked'); }
      http.createServer((q, s) => s.end([cluster.isWorker, cluster.worker.id, cluster.worker.process === process,
        cluster.worker.isConnected(), cluster.worker.isDead()].join())).listen(3000);`],
    ['app.mjs', `import cluster, { isPrimary, isWorker } from 'node:cluster'; import http from 'node:http';
      if (isPrimary) { cluster.fork(); throw new Error('forked'); }
      http.createServer((q, s) => s.end([isWorker, cluster.worker.id, cluster.worker.process === process,
        cluster.worker.isConnected(), cluster.worker.isDead()].join())).listen(3000);`],
  ];
  for (const [name, source] of sources) {
    await withWorker(source, { name }, async (peer, lane) => assert.equal(await answer(lane), 'true,1,true,true,false'));
  }
});

test('cluster.fork says what to do instead', UNDER_NODE, () => withWorker(
  `import cluster from 'node:cluster'; import http from 'node:http';
   http.createServer((q, s) => { try { cluster.fork() } catch (error) { s.end(error.message) } }).listen(3000);`, {},
  async (peer, lane) => assert.match(await answer(lane), /`workers auto`/),
));

test('other servers and datagram sockets bind in what passes for a cluster\'s worker', UNDER_NODE, async () => {
  const port = await freePort();
  await withWorker(
    `import http from 'node:http'; import net from 'node:net'; import dgram from 'node:dgram';
     http.createServer((q, s) => s.end()).listen(3000);
     net.createServer().listen(${port}, '127.0.0.1', () => console.log('net'));
     const bound = (name) => function () { console.log(name, typeof this.address().port) };
     dgram.createSocket('udp4').bind(bound('a'));
     dgram.createSocket('udp4').bind(0, bound('b'));
     dgram.createSocket('udp4').bind(0, '127.0.0.1', bound('c'));
     dgram.createSocket('udp4').bind({ port: 0 }, bound('d'));
     const last = dgram.createSocket('udp4'); last.on('listening', bound('e')); last.bind();`, {},
    async (peer) => {
      for (const line of ['net', 'a number', 'b number', 'c number', 'd number', 'e number']) {
        await written(peer, 'stdout', new RegExp(`^${line}$`, 'm'));
      }
    },
  );
});

test('process.send takes any message, and says once that nobody gets it', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const results = [process.send('ready'), process.send({ topic: 'log' }, () => { results.push('called'); }), process.send({})];
   http.createServer((q, s) => s.end(results.join())).listen(3000);`, {}, async (peer, lane) => {
    assert.equal(await answer(lane), 'true,true,true,called');
    assert.equal(peer.stderr.match(/process\.send reaches nobody/g).length, 1);
    assert.match(peer.stderr, /dropped: \{ topic: 'log' \}/);
  },
));

// Requests to itself

test('an application can call itself on its own port', UNDER_NODE, async () => {
  const source = `import http from 'node:http'; import net from 'node:net';
    const get = (options) => new Promise((resolve, reject) => http.get(options, (response) => {
      let text = ''; response.on('data', (piece) => { text += piece }).on('end', () => resolve(text));
    }).on('error', reject));
    const ways = {
      request: () => get({ port: 4321, path: '/inner' }),
      agent: () => get({ host: '127.0.0.1', port: 4321, path: '/inner', agent: new http.Agent({ keepAlive: true }) }),
      text: () => get('http://localhost:4321/inner'),
      v6: () => get('http://[::1]:4321/inner'),
      any: () => get('http://0.0.0.0:4321/inner'),
      fetch: async () => (await fetch('http://127.0.0.1:4321/inner')).text(),
      post: async () => (await fetch('http://localhost:4321/inner', { method: 'POST', body: 'x'.repeat(100000) })).text(),
      raw: () => new Promise((resolve) => { let text = '';
        const socket = net.connect(4321, 'localhost', () => socket.write('GET /inner HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n'));
        socket.on('data', (piece) => { text += piece }).on('end', () => resolve(text.split('\\r\\n\\r\\n')[1])); }),
    };
    const server = http.createServer(async (request, response) => {
      if (request.url === '/inner') {
        let bytes = 0; for await (const piece of request) bytes += piece.length;
        response.setHeader('content-length', 1 + String(bytes).length + 1 + request.socket.remoteAddress.length);
        return response.end('i' + bytes + ' ' + request.socket.remoteAddress);
      }
      response.end(await ways[request.url.slice(1)]());
    });
    server.listen(4321);`;
  await withWorker(source, {}, async (peer, lane) => {
    for (const way of ['request', 'agent', 'text', 'v6', 'any', 'fetch', 'raw']) {
      assert.equal(await answer(lane, `/${way}`), 'i0 127.0.0.1', way);
    }
    assert.equal(await answer(lane, '/post'), 'i100000 127.0.0.1');
  });
});

test('what an application needs to call itself is gone with its process', UNDER_NODE, () => withWorker(
  `import http from 'node:http'; import fs from 'node:fs'; import os from 'node:os';
   const folders = () => fs.readdirSync(os.tmpdir()).filter((name) => name.startsWith('onehop-self-'));
   const before = new Set(folders());
   http.createServer(async (request, response) => {
     if (request.url === '/inner') return response.end('inner');
     await (await fetch('http://localhost:4321/inner')).text();
     response.end(os.tmpdir() + '/' + folders().find((name) => !before.has(name)));
   }).listen(4321);`, {}, async (peer, lane) => {
    const folder = await answer(lane);
    assert.ok(fs.existsSync(folder), folder);
    peer.control.send(RETIRE);
    assert.deepEqual(await peer.exit, { code: 0, signal: null });
    assert.ok(!fs.existsSync(folder));
  },
));

test('nothing is led to a server that does not listen, and nothing that is another\'s', UNDER_NODE, async () => {
  const port = await freePort();
  await withWorker(
    `import http from 'node:http';
     const server = http.createServer(async (request, response) => {
       const code = (url) => fetch(url).then(() => 'answered', (error) => error.cause.code);
       const other = await code('http://localhost:${port}/');
       server.close();
       response.end(other + ' ' + await code('http://127.0.0.1:4321/'));
     });
     server.listen(4321);`, {}, async (peer, lane) => {
      assert.equal(await answer(lane), 'ECONNREFUSED ECONNREFUSED');
    },
  );
});

// Children and threads

test('child processes inherit neither the preload nor onehop\'s variables nor its sockets', UNDER_NODE, () => withWorker(
  `const http = require('http'); const { fork, spawn } = require('child_process'); const fs = require('fs');
   if (process.argv[2] === 'child') {
     const sockets = fs.readdirSync('/proc/self/fd').filter((fd) => {
       try { return fs.readlinkSync('/proc/self/fd/' + fd).startsWith('socket:') && Number(fd) < 10 } catch { return false }
     });
     const seen = { argv: process.execArgv, env: Object.keys(process.env).filter((name) => name.startsWith('ONEHOP_')),
       hooked: String(http.Server.prototype.closeAllConnections).includes('adoption'),
       cluster: require('cluster').isPrimary, port: process.env.PORT };
     if (process.send) process.send(seen, () => process.exit()); else console.log(JSON.stringify(seen));
   } else {
     http.createServer((request, response) => {
       if (request.url === '/fork') fork(__filename, ['child']).on('message', (seen) => response.end(JSON.stringify(seen)));
       else spawn(process.execPath, [__filename, 'child'], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout.pipe(response);
     }).listen(process.env.PORT);
   }`, { name: 'app.cjs', env: { PORT: '4321', ONEHOP_OTHER: '1' } }, async (peer, lane) => {
    for (const way of ['/fork', '/spawn']) {
      assert.deepEqual(JSON.parse(await answer(lane, way)), { argv: [], env: [], hooked: false, cluster: true, port: '4321' }, way);
    }
  },
));

test('an application that runs itself again as a child can be asked over IPC', UNDER_NODE, () => withWorker(
  `const http = require('http'); const { fork } = require('child_process');
   if (process.argv[2] === 'child') {
     const server = http.createServer((request, response) => response.end('child'));
     server.listen(0, '127.0.0.1', () => process.send(server.address().port));
   } else {
     const child = fork(__filename, ['child']);
     child.on('message', (port) => http.createServer(async (request, response) => {
       response.end(await (await fetch('http://127.0.0.1:' + port)).text());
     }).listen(3000));
     process.on('exit', () => child.kill());
   }`, { name: 'app.cjs' }, async (peer, lane) => assert.equal(await answer(lane), 'child'),
));

test('worker threads run untouched', UNDER_NODE, () => withWorker(
  `import http from 'node:http'; import { isMainThread, parentPort, Worker } from 'node:worker_threads'; import cluster from 'node:cluster';
   import { fileURLToPath } from 'node:url';
   if (isMainThread) {
     http.createServer((request, response) => {
       new Worker(fileURLToPath(import.meta.url)).once('message', (seen) => response.end(seen));
     }).listen(3000);
   } else {
     const server = http.createServer();
     server.listen(0, '127.0.0.1', () => {
       const real = server._handle.constructor.name;
       server.close();
       parentPort.postMessage([typeof onehop, cluster.isPrimary, real].join());
     });
   }`, {}, async (peer, lane) => assert.equal(await answer(lane), 'undefined,true,TCP'),
));

// Leaving

const GATED = `import http from 'node:http';
  let open; const gate = new Promise((resolve) => { open = resolve; });
  const server = http.createServer(async (request, response) => {
    if (request.url === '/open') open();
    if (request.url === '/wait') await gate;
    if (request.url === '/close') server.close(() => console.log('closed'));
    response.end(request.url);
  });
  server.listen(3000);`;

test('a worker that retires finishes what is in flight and leaves', UNDER_NODE, () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/wait' }));
  peer.control.send(RETIRE);
  lane.send(requestFrame(1, 0, { target: '/open' }));
  assert.equal((await lane.answer(0)).body.toString(), '/wait');
  assert.deepEqual(await peer.exit, { code: 0, signal: null });
}));

test('an application that listens to SIGTERM gets it when its worker retires and is idle', UNDER_NODE, () => withWorker(
  `${GATED} process.on('SIGTERM', () => server.close(() => { console.log('last words'); process.exitCode = 3; }));`, {},
  async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/wait' }));
    peer.control.send(RETIRE);
    peer.control.send(frame(wire.PING, 0, 0, 0, Buffer.alloc(8)));
    await peer.control.takeKind(wire.PONG);
    assert.equal(peer.stdout, '');
    lane.send(requestFrame(1, 0, { target: '/open' }));
    await lane.answer(0);
    assert.deepEqual(await peer.exit, { code: 3, signal: null });
    assert.equal(peer.stdout, 'last words\n');
    assert.deepEqual(peer.control.frames.filter(isNoTiming), []);
  },
));

test('an application that listens to SIGTERM and does nothing leaves all the same', UNDER_NODE, () => withWorker(
  `${GATED} process.on('SIGTERM', () => console.log('heard'));`, {}, async (peer) => {
    peer.control.send(RETIRE);
    assert.deepEqual(await peer.exit, { code: 0, signal: null });
    assert.equal(peer.stdout, 'heard\n');
  },
));

test('an application that closes its server gets no more requests, and "close" when the last is over', UNDER_NODE, () => withWorker(
  GATED, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/wait' }), requestFrame(1, 0, { target: '/close' }));
    await lane.answer(1);
    await peer.control.takeKind(wire.DRAIN);
    lane.send(requestFrame(1, 1, { target: '/late' }));
    assert.equal((await lane.takeKind(wire.RESET, 1)).payload.readUInt32LE(0), wire.REFUSED);
    assert.equal(peer.stdout, '');
  },
));

test('an application that has closed its server comes to its end by itself', UNDER_NODE, () => withWorker(
  `${GATED} process.on('exit', () => console.log('exit'));`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/close' }));
    await lane.answer(0);
    assert.deepEqual(await peer.exit, { code: 0, signal: null });
    assert.equal(peer.stdout, 'closed\nexit\n');
  },
));

test('an application that listens again after it has closed gets nothing, and does not fail', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const server = http.createServer((request, response) => {
     server.close(() => { server.listen(3000, () => console.log('again', server.listening)); });
     response.end('closing');
   });
   server.listen(3000);`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    await lane.answer(0);
    await peer.control.takeKind(wire.DRAIN);
    await written(peer, 'stdout', /again true/);
    await written(peer, 'stderr', /has closed its server and listens again/);
    lane.send(requestFrame(0, 1));
    assert.equal((await lane.takeKind(wire.RESET, 0)).payload.readUInt32LE(0), wire.REFUSED);
    assert.deepEqual(await peer.exit, { code: 0, signal: null });
  },
));

test('SIGTERM from outside drains an application that does not listen to it', UNDER_NODE, () => withWorker(GATED, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/wait' }));
  lane.send(requestFrame(1, 0, { target: '/' }));
  await lane.answer(1);
  peer.child.kill('SIGTERM');
  await peer.control.takeKind(wire.DRAIN);
  lane.send(requestFrame(1, 1));
  assert.equal((await lane.takeKind(wire.RESET, 1)).payload.readUInt32LE(0), wire.REFUSED);
}));

test('closeAllConnections breaks off what is in flight', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const server = http.createServer((request, response) => { if (request.url === '/end') { server.closeAllConnections(); } });
   server.listen(3000);`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/wait' }), requestFrame(1, 0, { target: '/end', end: false }), dataFrame(1, 0, 'x'));
    await lane.takeKind(wire.RESET, 0);
    await lane.takeKind(wire.RESET, 1);
  },
));
