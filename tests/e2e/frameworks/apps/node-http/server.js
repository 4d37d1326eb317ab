// The application on node:http alone.

'use strict';

const { createReadStream, statSync } = require('node:fs');
const http = require('node:http');
const { join } = require('node:path');
const formidable = require('formidable');
const { WebSocketServer } = require('ws');
const { BIG, BIG_FIELDS, COOKIES, DATA, digest, EVENTS, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = require('../content.cjs');
const { perform, trace } = require('../script.cjs');

function json(res, value, status = 200) {
  res.writeHead(status, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(value));
}

async function bodyOf(req) {
  const pieces = [];
  for await (const piece of req) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function upload(req, res) {
  const [fields, files] = await formidable.formidable({ multiples: true }).parse(req);
  const list = Object.values(files).flat().map(({ originalFilename, mimetype, size }) => ({ originalFilename, mimetype, size }));
  json(res, { fields, list });
}

async function stream(res, pieces, type) {
  res.writeHead(200, { 'Content-Type': type });
  for (const piece of pieces) {
    res.write(piece);
    await rest();
  }
  res.end();
}

const routes = {
  'GET /': (req, res) => res.end('hello\n'),
  'GET /json': (req, res) => json(res, DATA),
  'POST /json': async (req, res) => json(res, JSON.parse(await bodyOf(req)), 201),
  'POST /form': async (req, res) => json(res, Object.fromEntries(new URLSearchParams(String(await bodyOf(req))))),
  'POST /upload': upload,
  'GET /cookies': (req, res) => res.writeHead(200, { 'Set-Cookie': COOKIES }).end(req.headers.cookie),
  'GET /redirect': (req, res) => res.writeHead(302, { Location: '/json' }).end(),
  'GET /stream': (req, res) => stream(res, PIECES, 'text/plain'),
  'GET /events': (req, res) => stream(res, EVENTS, 'text/event-stream'),
  'GET /empty': (req, res) => res.writeHead(204).end(),
  'GET /unchanged': (req, res) => res.writeHead(304, { ETag: '"x"' }).end(),
  'GET /reset': (req, res) => res.writeHead(205).end(),
  'GET /compressed': (req, res) => res.end(LONG_TEXT),
  'GET /big': (req, res) => res.end(BIG),
  'POST /sum': async (req, res) => {
    const body = await bodyOf(req);
    json(res, { bytes: body.length, digest: digest(body) });
  },
  'GET /fields': (req, res) => res.writeHead(200, { ...BIG_FIELDS, ...MANY_FIELDS }).end('fields'),
  'GET /who': (req, res) => json(res, { ip: req.socket.remoteAddress, version: req.httpVersion, url: req.url, host: req.headers.host }),
  'GET /late-throw': async (req, res) => {
    res.write('begun');
    await rest();
    res.destroy(new Error('thrown after the head'));
  },
  'GET /file': (req, res) => {
    const path = join(FILES, 'numbers.txt');
    res.setHeader('Content-Length', statSync(path).size);
    createReadStream(path).pipe(res);
  },
};

const server = http.createServer((req, res) => {
  const { pathname } = new URL(req.url, 'http://localhost');
  if (pathname.startsWith('/node/')) return perform(req, res);
  const route = routes[`${req.method === 'HEAD' ? 'GET' : req.method} ${pathname}`];
  if (!route) return json(res, { error: 'not found' }, 404);
  return Promise.resolve(route(req, res)).catch((error) => (res.headersSent ? res.destroy() : json(res, { error: error.message }, 500)));
});

if (process.env.CHECK_CONTINUE) {
  server.on('checkContinue', (req, res) => {
    if (req.headers['x-refuse']) return res.writeHead(417, { 'X-Why': 'refused' }).end('refused\n');
    res.writeContinue();
    return server.emit('request', req, res);
  });
  server.on('checkExpectation', (req, res) => res.writeHead(417).end('no such expectation\n'));
}

// As tracing tools do it.
const { emit } = server;
server.emit = function traced(event, ...values) {
  if (event === 'request') return trace(values[0]).run({ id: 'traced' }, () => emit.call(this, event, ...values));
  return emit.call(this, event, ...values);
};

const sockets = new WebSocketServer({ server, path: '/socket' });
sockets.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })));

server.listen(process.env.PORT || 3000);
