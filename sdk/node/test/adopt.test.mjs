import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { failure, freePort, get, ON_BUN, written } from './support/apps.mjs';
import { isNoTiming, requestFrame, startWorker, wire, withWorker } from './support/peer.mjs';

const UNDER_NODE = { skip: ON_BUN && 'Bun\'s servers are reached over HTTP' };
const ANSWER = '(request, response) => response.end(`${request.method} ${request.url}`)';

async function answers(source, options, expected) {
  await withWorker(source, options, async (peer, lane) => {
    lane.send(requestFrame(0, 0, { target: '/x' }));
    assert.equal((await lane.answer(0)).body.toString(), expected, source);
  });
}

async function withStarting(source, options, body) {
  const peer = await startWorker(source, options);
  try {
    await body(peer);
  } catch (error) {
    error.message += `\n--- the worker's stderr:\n${peer.stderr}`;
    throw error;
  } finally {
    await peer.stop();
  }
}

test('an application that listens is called, and is its process\'s main module', UNDER_NODE, async () => {
  await answers(
    `const http = require('node:http');
     http.createServer((request, response) => response.end(String(require.main === module))).listen(3000);`,
    { name: 'app.cjs' }, 'true',
  );
  await answers(
    `import http from 'node:http';
     http.createServer((request, response) => response.end(String(import.meta.main ?? true))).listen(3000);`,
    { name: 'app.mjs' }, 'true',
  );
});

test('every form of listen is adopted, and address() says what Node would say', UNDER_NODE, async () => {
  const cases = [
    ['server.listen(3000)', { address: '::', family: 'IPv6', port: 3000 }],
    ['server.listen("3000", "127.0.0.1")', { address: '127.0.0.1', family: 'IPv4', port: 3000 }],
    ['server.listen({ port: 3000, host: "::1" })', { address: '::1', family: 'IPv6', port: 3000 }],
    ['server.listen(3000, "localhost", 100, () => {})', { address: '127.0.0.1', family: 'IPv4', port: 3000 }],
    ['server.listen("/tmp/onehop-never-there.sock")', '/tmp/onehop-never-there.sock'],
    ['server.listen({ path: "/tmp/onehop-never-there.sock", readableAll: true })', '/tmp/onehop-never-there.sock'],
  ];
  for (const [call, expected] of cases) {
    await withWorker(
      `import http from 'node:http';
       const server = http.createServer((request, response) => response.end(JSON.stringify([server.listening, server.address()])));
       ${call};`, {}, async (peer, lane) => {
        lane.send(requestFrame(0, 0));
        const [listening, address] = JSON.parse((await lane.answer(0)).body);
        assert.equal(listening, true);
        if (address.address === '::1') address.address = expected.address;
        if (address.family === 'IPv6') address.family = expected.family;
        assert.deepEqual(address, expected, call);
      },
    );
  }
});

test('port 0 is a port that the application gets told, and nobody can connect to', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const server = http.createServer((request, response) => response.end(String(server.address().port)));
   server.listen(0);`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    const port = Number((await lane.answer(0)).body);
    assert.ok(port > 0);
    await assert.rejects(get({ port }), { code: 'ECONNREFUSED' });
  },
));

test('listening is said as Node says it: at once by the server, to its listeners in a moment', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const seen = [];
   const server = http.createServer((request, response) => response.end(JSON.stringify(seen)));
   server.on('listening', () => seen.push('event'));
   seen.push(server.listening, server.address());
   server.listen(3000, () => seen.push('callback'));
   seen.push(server.listening, server.address().port);`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    assert.deepEqual(JSON.parse((await lane.answer(0)).body), [false, null, true, 3000, 'event', 'callback']);
  },
));

test('the server on PORT is the application\'s, whatever listened before it', UNDER_NODE, async () => {
  const metrics = await freePort();
  for (const name of ['PORT', 'ONEHOP_PORT']) {
    await withWorker(
      `import http from 'node:http';
       http.createServer((request, response) => response.end('metrics')).listen(${metrics}, '127.0.0.1');
       setTimeout(() => http.createServer((request, response) => response.end('app')).listen(4321), 100);`,
      { env: { PORT: '', [name]: '4321' } }, async (peer, lane) => {
        lane.send(requestFrame(0, 0));
        assert.equal((await lane.answer(0)).body.toString(), 'app');
        assert.equal((await get({ port: metrics })).body, 'metrics');
      },
    );
  }
});

test('where no server listens on PORT, the first one is taken after a while and no longer really listens', UNDER_NODE, async () => {
  const port = await freePort();
  await withWorker(
    `import http from 'node:http';
     const server = http.createServer((request, response) => response.end(JSON.stringify(server.address())));
     server.listen(${port}, '127.0.0.1', () => console.log('once'));`,
    { env: { PORT: '4321' } }, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      const answer = await lane.answer(0);
      assert.deepEqual(JSON.parse(answer.body), { address: '127.0.0.1', family: 'IPv4', port });
      assert.equal(peer.stdout, 'once\n');
      assert.match(peer.stderr, new RegExp(`PORT is 4321, but the application listens on port ${port}`));
      await assert.rejects(get({ port }), { code: 'ECONNREFUSED' });
    },
  );
});

test('a second server on the same port is attached to nothing, and may close alone', UNDER_NODE, () => withWorker(
  `import http from 'node:http';
   const main = http.createServer((request, response) => response.end('main'));
   const other = http.createServer((request, response) => response.end('other'));
   main.listen({ port: 3000, host: '127.0.0.1' }, () => other.listen({ port: 3000, host: '::1' }, () => {
     other.close(() => console.log('closed', main.listening));
   }));`, {}, async (peer, lane) => {
    await written(peer, 'stdout', /closed true/);
    lane.send(requestFrame(0, 0));
    assert.equal((await lane.answer(0)).body.toString(), 'main');
    assert.deepEqual(peer.control.frames.filter(isNoTiming), []);
  },
));

test('a second server on another port really listens, and waits where its port is taken', UNDER_NODE, async () => {
  const port = await freePort();
  const holder = http.createServer((request, response) => response.end('holder'));
  await new Promise((resolve) => { holder.listen(port, '127.0.0.1', resolve); });
  await withWorker(
    `import http from 'node:http';
     http.createServer(${ANSWER}).listen(3000);
     http.createServer((request, response) => response.end('second')).listen(${port}, '127.0.0.1', () => console.log('listens'));`,
    {}, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), 'GET /');
      await written(peer, 'stderr', new RegExp(`port ${port} is taken`));
      assert.equal((await get({ port })).body, 'holder');
      holder.close();
      await written(peer, 'stdout', /listens/);
      assert.equal((await get({ port })).body, 'second');
      assert.equal(peer.stderr.match(/is taken/g).length, 1);
    },
  );
});

test('a server that waits for its port can be closed', UNDER_NODE, async () => {
  const holder = http.createServer();
  await new Promise((resolve) => { holder.listen(0, '127.0.0.1', resolve); });
  const { port } = holder.address();
  await withWorker(
    `import http from 'node:http';
     http.createServer(${ANSWER}).listen(3000);
     const second = http.createServer();
     second.listen(${port}, '127.0.0.1');
     second.close((error) => console.log('closed', error.code, second.listening));`,
    {}, async (peer) => written(peer, 'stdout', /closed ERR_SERVER_NOT_RUNNING false/),
  );
  holder.close();
});

test('servers of https and http2 and those of net are not adopted', UNDER_NODE, async () => {
  const [net, http2, https] = [await freePort(), await freePort(), await freePort()];
  await withWorker(
    `import http from 'node:http'; import http2 from 'node:http2'; import https from 'node:https'; import net from 'node:net';
     const where = {};
     net.createServer().listen(${net}, '127.0.0.1');
     http2.createServer().listen(${http2}, '127.0.0.1');
     https.createServer().listen(${https}, '127.0.0.1');
     http.createServer(${ANSWER}).listen(3000);`, {}, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), 'GET /');
      for (const port of [net, http2, https]) {
        await assert.rejects(get({ port, timeout: 300 }), (error) => error.code !== 'ECONNREFUSED');
      }
    },
  );
});

test('an application that listens with TLS only is told so', UNDER_NODE, () => withStarting(
  'import https from "node:https"; https.createServer().listen(0);', {}, async (peer) => {
    peer.hello();
    await written(peer, 'stderr', /https on port 0\. TLS and HTTP\/2 are onehop's work: let the application listen with node:http/);
  },
));

test('an application that is still busy is waited for, and the log says so', UNDER_NODE, () => withStarting(
  `import http from 'node:http';
   setTimeout(() => http.createServer(${ANSWER}).listen(3000), 5500);`, {}, async (peer) => {
    peer.hello();
    await written(peer, 'stderr', /has no default export and runs; waiting for it to listen/);
    await peer.control.takeKind(wire.READY);
  },
));

test('an application that neither exports a handler nor listens fails when it has nothing more to do', UNDER_NODE, async () => {
  const cases = [
    ['setTimeout(() => console.log("done"), 50)', /app\.mjs has no default export, and it does not listen\.[\s\S]*listens with a server of node:http/],
    ['export default { name: "x" }', /without fetch \(an object with name\)/],
    ['await new Promise(() => {})', /waits at its top level \(await\) for something that can never happen/],
  ];
  for (const [source, expected] of cases) {
    await withStarting(source, {}, async (peer) => assert.match(await failure(peer), expected));
  }
});

test('an exported application of a framework that does not listen is served all the same', UNDER_NODE, async () => {
  const cases = {
    'an Express application': `const app = (request, response) => response.end('express'); app.handle = app; app.use = () => {}; app.listen = () => {};
      export default app;`,
    'a Koa application': `export default { use() {}, listen() {}, callback: () => (request, response) => response.end('koa') };`,
    'a Fastify application': `import http from 'node:http';
      const server = http.createServer((request, response) => response.end('fastify ' + ready)); let ready = false;
      export default { server, inject() {}, register() {}, listen() {}, async ready() { ready = true; } };`,
    'a Nest application': `import http from 'node:http';
      const server = http.createServer((request, response) => response.end('nest ' + ready)); let ready = false;
      export default { getHttpServer: () => server, use() {}, listen() {}, async init() { ready = true; } };`,
    'a server': `import http from 'node:http'; export default http.createServer((request, response) => response.end('server'));`,
  };
  const expected = ['express', 'koa', 'fastify true', 'nest true', 'server'];
  for (const [index, [name, source]] of Object.entries(cases).entries()) {
    await withWorker(source, { env: { PORT: '4321' } }, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), expected[index]);
      assert.match(peer.stderr, new RegExp(`exports ${name} that does not listen`));
    });
  }
});

test('an exported fetch is called, and a server that listens beside it really listens', UNDER_NODE, async () => {
  const port = await freePort();
  await withWorker(
    `import http from 'node:http';
     const server = http.createServer((request, response) => response.end('server'));
     server.listen(${port}, '127.0.0.1', () => console.log('once', server.address().port));
     export default { fetch: () => new Response('handler') };`, {}, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), 'handler');
      assert.equal((await get({ port })).body, 'server');
      assert.equal(peer.stdout, `once ${port}\n`);
    },
  );
});

test('a module that listens and exports a function is no handler', UNDER_NODE, () => answers(
  `const http = require('http');
   module.exports = function main() { http.createServer(${ANSWER}).listen(3000); };
   if (require.main === module) module.exports();`, { name: 'app.cjs' }, 'GET /x',
));

test('a server that was closed again before all was ready is forgotten', UNDER_NODE, () => answers(
  `import http from 'node:http';
   const probe = http.createServer();
   probe.listen(3000, () => probe.close(() => http.createServer(${ANSWER}).listen(3000)));`, {}, 'GET /x',
));

test('an application\'s own globals are the platform\'s', UNDER_NODE, () => answers(
  `import http from 'node:http';
   http.createServer((request, response) => {
     response.end(String([Response, Request, fetch].every((value) => !/onehop/.test(value.toString())) && new Response().constructor === Response));
   }).listen(3000);`, {}, 'true',
));

test('an error that nobody catches while starting is told with its stack', UNDER_NODE, async () => {
  await withStarting('setTimeout(() => { throw new Error("no database") }, 20)', {}, async (peer) => {
    assert.match(await failure(peer), /no database[\s\S]*app\.mjs/);
  });
  await withStarting(
    `import http from 'node:http'; process.on('uncaughtException', (error) => console.log('caught', error.message));
     setTimeout(() => { throw new Error("no database") }, 20);
     setTimeout(() => http.createServer(${ANSWER}).listen(3000), 100);`, {}, async (peer) => {
      peer.hello();
      assert.equal((await peer.control.take(isNoTiming)).kind, wire.READY);
      assert.equal(peer.stdout, 'caught no database\n');
    },
  );
});

test('a server of another preload is not the application\'s, and preloads see what the application sees', UNDER_NODE, async () => {
  const port = await freePort();
  const preload = `data:text/javascript,${encodeURIComponent(
    `import http from 'node:http'; await new Promise((resolve) => setTimeout(resolve, 30));
     http.createServer((q, s) => s.end('metrics')).listen(${port}, '127.0.0.1');
     globalThis.seen = Object.keys(process.env).filter((name) => name.startsWith('ONEHOP_')).length;`)}`;
  await withWorker(
    `import http from 'node:http';
     setTimeout(() => http.createServer((q, s) => s.end('app ' + globalThis.seen + process.execArgv.length)).listen(3000), 50);`,
    { nodeArgs: ['--import', preload] }, async (peer, lane) => {
      lane.send(requestFrame(0, 0));
      assert.equal((await lane.answer(0)).body.toString(), 'app 02');
      assert.equal((await get({ port })).body, 'metrics');
    },
  );
});
