// The application on Fastify 5.

'use strict';

const { createReadStream } = require('node:fs');
const { join } = require('node:path');
const { Readable } = require('node:stream');
const { BIG, BIG_FIELDS, COOKIES, DATA, digest, EVENTS, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = require('../content.cjs');
const { perform } = require('../script.cjs');

const app = require('fastify')({ bodyLimit: 10 << 20 });

app.register(require('@fastify/compress'), { global: false });
app.register(require('@fastify/cookie'));
app.register(require('@fastify/formbody'));
app.register(require('@fastify/multipart'));
app.register(require('@fastify/static'), { root: FILES, prefix: '/files/' });
app.register(require('@fastify/websocket'));
app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (request, body, done) => done(null, body));
app.addHook('onSend', async (request, reply) => void reply.header('X-Hook', 'sent'));

app.get('/', async () => 'hello\n');
app.get('/json', { schema: { response: { 200: { type: 'object', properties: { text: { type: 'string' }, list: { type: 'array' }, nested: {} } } } } }, async () => DATA);
app.post('/json', async (request, reply) => reply.code(201).send(request.body));
app.post('/form', async (request) => request.body);
app.post('/upload', async (request) => {
  const parts = [];
  for await (const part of request.parts()) {
    if (part.type === 'file') {
      const bytes = await part.toBuffer();
      parts.push({ field: part.fieldname, name: part.filename, type: part.mimetype, size: bytes.length, digest: digest(bytes) });
    } else {
      parts.push({ field: part.fieldname, value: part.value });
    }
  }
  return parts;
});
app.get('/users/:id', async (request) => ({ params: request.params, query: request.query }));
app.delete('/users/:id', async (request) => ({ params: request.params, body: request.body ?? null }));
app.get('/cookies', async (request, reply) => {
  reply.setCookie('session', 'abc', { httpOnly: true, path: '/' }).clearCookie('old').header('Set-Cookie', COOKIES[1]);
  return request.cookies;
});
app.get('/redirect', async (request, reply) => reply.redirect('/json'));
app.get('/moved', async (request, reply) => reply.redirect('/json?moved=yes', 301));
app.get('/stream', async (request, reply) => {
  async function* pieces() {
    for (const piece of PIECES) {
      yield piece;
      await rest();
    }
  }
  return reply.type('text/plain').send(Readable.from(pieces()));
});
app.get('/events', async (request, reply) => {
  reply.hijack();
  reply.raw.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const event of EVENTS) {
    reply.raw.write(event);
    await rest();
  }
  reply.raw.end();
});
app.get('/empty', async (request, reply) => reply.code(204).send());
app.get('/unchanged', async (request, reply) => reply.code(304).header('ETag', '"x"').send());
app.get('/reset', async (request, reply) => reply.code(205).send());
app.get('/compressed', async (request, reply) => reply.type('text/plain').compress(LONG_TEXT));
app.get('/big', async (request, reply) => reply.type('application/octet-stream').send(BIG));
app.post('/sum', async (request) => ({ bytes: request.body?.length ?? 0, digest: request.body ? digest(request.body) : null }));
app.get('/fields', async (request, reply) => reply.headers({ ...BIG_FIELDS, ...MANY_FIELDS }).send('fields'));
app.get('/who', async (request) => ({ ip: request.ip, ips: request.ips, protocol: request.protocol, host: request.host, hostname: request.hostname, port: request.port, url: request.originalUrl, version: request.raw.httpVersion }));
app.get('/file', async (request, reply) => reply.type('text/plain').send(createReadStream(join(FILES, 'numbers.txt'))));
app.get('/download', async (request, reply) => reply.download('hello.txt', 'greeting.txt'));
app.get('/throw', () => {
  throw new Error('thrown');
});
app.get('/reject', async () => {
  await rest();
  throw Object.assign(new Error('rejected'), { statusCode: 418 });
});
app.get('/late-throw', async (request, reply) => {
  reply.raw.write('begun');
  await rest();
  throw new Error('thrown after the head');
});
app.get('/broken-stream', async (request, reply) => {
  async function* pieces() {
    yield PIECES[0];
    await rest();
    throw new Error('the source failed');
  }
  return reply.type('text/plain').send(Readable.from(pieces()));
});
app.get('/trailers', async (request, reply) => {
  reply.trailer('X-Digest', async () => 'computed');
  return 'with trailers';
});

app.register(async (scope) => {
  scope.get('/socket', { websocket: true }, (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })));
});
app.register(async (scope) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (request, payload, done) => done(null));
  scope.all('/node/*', (request, reply) => {
    reply.hijack();
    return perform(request.raw, reply.raw);
  });
});

app.listen({ port: Number(process.env.PORT || 3000) }).catch((error) => {
  console.error(error);
  process.exit(1);
});
