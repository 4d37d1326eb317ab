// The application on Koa 3.

'use strict';

const { createReadStream } = require('node:fs');
const { join } = require('node:path');
const { PassThrough, Readable } = require('node:stream');
const { Router } = require('@koa/router');
const Koa = require('koa');
const { koaBody } = require('koa-body');
const compress = require('koa-compress');
const send = require('koa-send');
const { WebSocketServer } = require('ws');
const { BIG, BIG_FIELDS, COOKIES, DATA, digest, EVENTS, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = require('../content.cjs');
const { perform } = require('../script.cjs');

const app = new Koa();
const router = new Router();
const body = koaBody({ multipart: true, parsedMethods: ['POST', 'PUT', 'PATCH', 'DELETE'] });
app.silent = true;

async function* paused(pieces, fails) {
  for (const piece of pieces) {
    yield piece;
    await rest();
    if (fails) throw new Error('the source failed');
  }
}

router.get('/', (ctx) => (ctx.body = 'hello\n'));
router.get('/json', (ctx) => (ctx.body = DATA));
router.post('/json', body, (ctx) => {
  ctx.status = 201;
  ctx.body = ctx.request.body;
});
router.post('/form', body, (ctx) => (ctx.body = ctx.request.body));
router.post('/upload', body, (ctx) => {
  const files = Object.values(ctx.request.files ?? {}).flat().map(({ originalFilename, mimetype, size }) => ({ originalFilename, mimetype, size }));
  ctx.body = { fields: ctx.request.body, files };
});
router.get('/users/:id', (ctx) => (ctx.body = { params: ctx.params, query: ctx.query }));
router.delete('/users/:id', body, (ctx) => (ctx.body = { params: ctx.params, body: ctx.request.body ?? null }));
router.get('/cookies', (ctx) => {
  ctx.cookies.set('session', 'abc');
  ctx.append('Set-Cookie', COOKIES.slice(1));
  ctx.body = { session: ctx.cookies.get('session'), theme: ctx.cookies.get('theme') };
});
router.get('/redirect', (ctx) => ctx.redirect('/json'));
router.get('/moved', (ctx) => {
  ctx.status = 301;
  ctx.redirect('/json?moved=yes');
});
router.get('/stream', (ctx) => {
  ctx.type = 'text';
  ctx.body = Readable.from(paused(PIECES));
});
router.get('/events', (ctx) => {
  ctx.type = 'text/event-stream';
  ctx.body = Readable.from(paused(EVENTS)).pipe(new PassThrough());
});
router.get('/empty', (ctx) => (ctx.body = null));
router.get('/unchanged', (ctx) => {
  ctx.set('ETag', '"x"');
  ctx.status = 304;
});
router.get('/reset', (ctx) => (ctx.status = 205));
router.get('/compressed', (ctx) => (ctx.body = LONG_TEXT));
router.get('/big', (ctx) => (ctx.body = BIG));
router.post('/sum', async (ctx) => {
  const pieces = [];
  for await (const piece of ctx.req) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  ctx.body = { bytes: bytes.length, digest: digest(bytes) };
});
router.get('/fields', (ctx) => {
  ctx.set({ ...BIG_FIELDS, ...MANY_FIELDS });
  ctx.body = 'fields';
});
router.get('/who', (ctx) => (ctx.body = { ip: ctx.ip, ips: ctx.ips, protocol: ctx.protocol, secure: ctx.secure, host: ctx.host, hostname: ctx.hostname, href: ctx.href, origin: ctx.origin, fresh: ctx.fresh, idempotent: ctx.idempotent }));
router.get('/file', (ctx) => {
  ctx.type = 'text';
  ctx.body = createReadStream(join(FILES, 'numbers.txt'));
});
router.get('/files/{*path}', (ctx) => send(ctx, ctx.path.slice('/files'.length), { root: FILES, maxage: 1000 }));
router.get('/throw', () => {
  throw new Error('thrown');
});
router.get('/reject', async (ctx) => {
  await rest();
  ctx.throw(418, 'rejected');
});
router.get('/late-throw', async (ctx) => {
  ctx.res.write('begun');
  await rest();
  throw new Error('thrown after the head');
});
router.get('/broken-stream', (ctx) => {
  ctx.type = 'text';
  ctx.body = Readable.from(paused(PIECES, true));
});

app.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/node/')) return next();
  ctx.respond = false;
  return perform(ctx.req, ctx.res);
});
app.use(compress({ threshold: 2048, br: false }));
app.use(async (ctx, next) => {
  await next();
  ctx.set('X-Response', 'made by Koa');
});
app.use(router.routes());
app.use(router.allowedMethods());

const server = app.listen(process.env.PORT || 3000);
const sockets = new WebSocketServer({ server, path: '/socket' });
sockets.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })));
