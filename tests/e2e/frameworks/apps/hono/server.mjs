// The application on Hono with its server for Node.

import { serve, upgradeWebSocket } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import { serveStatic } from '@hono/node-server/serve-static';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { getCookie, setCookie } from 'hono/cookie';
import { etag } from 'hono/etag';
import { HTTPException } from 'hono/http-exception';
import { stream, streamSSE } from 'hono/streaming';
import { relative } from 'node:path';
import { WebSocketServer } from 'ws';
import content from '../content.cjs';
import script from '../script.cjs';

const { BIG, BIG_FIELDS, COOKIES, DATA, digest, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = content;
const app = new Hono();

app.all('/node/*', async (c) => {
  await script.perform(c.env.incoming, c.env.outgoing);
  return RESPONSE_ALREADY_SENT;
});
app.use('/compressed', compress());
app.use('/json', etag());
app.use('/files/*', serveStatic({ root: relative(process.cwd(), FILES), rewriteRequestPath: (path) => path.replace('/files', '') }));

app.get('/', (c) => c.text('hello\n'));
app.get('/json', (c) => c.json(DATA));
app.post('/json', async (c) => c.json(await c.req.json(), 201));
app.post('/form', async (c) => c.json(await c.req.parseBody()));
app.post('/upload', async (c) => {
  const form = await c.req.formData();
  const parts = [];
  for (const [field, value] of form) {
    parts.push(typeof value === 'string' ? { field, value } : { field, name: value.name, type: value.type, digest: digest(Buffer.from(await value.arrayBuffer())) });
  }
  return c.json(parts);
});
app.get('/users/:id', (c) => c.json({ params: c.req.param(), query: c.req.queries() }));
app.delete('/users/:id', async (c) => c.json({ params: c.req.param(), body: await c.req.text() }));
app.get('/cookies', (c) => {
  setCookie(c, 'session', 'abc', { httpOnly: true });
  c.header('Set-Cookie', COOKIES[1], { append: true });
  return c.json(getCookie(c));
});
app.get('/redirect', (c) => c.redirect('/json'));
app.get('/moved', (c) => c.redirect('/json?moved=yes', 301));
app.get('/stream', (c) => stream(c, async (out) => {
  for (const piece of PIECES) {
    await out.write(piece);
    await rest();
  }
}));
app.get('/events', (c) => streamSSE(c, async (out) => {
  for (let id = 0; id < 3; id += 1) {
    await out.writeSSE({ id: String(id), event: 'tick', data: 'one\ntwo' });
    await rest();
  }
}));
app.get('/empty', (c) => c.body(null, 204));
app.get('/unchanged', (c) => c.body(null, 304, { ETag: '"x"' }));
app.get('/reset', (c) => c.body(null, 205));
app.get('/compressed', (c) => c.text(LONG_TEXT));
app.get('/big', (c) => c.body(BIG));
app.post('/sum', async (c) => {
  const bytes = Buffer.from(await c.req.arrayBuffer());
  return c.json({ bytes: bytes.length, digest: digest(bytes) });
});
app.get('/fields', (c) => c.text('fields', 200, { ...BIG_FIELDS, ...MANY_FIELDS }));
app.get('/who', (c) => {
  const { remote } = getConnInfo(c);
  return c.json({ address: remote.address, family: remote.addressType, port: typeof remote.port, url: c.req.url, path: c.req.path });
});
app.get('/throw', () => {
  throw new Error('thrown');
});
app.get('/reject', async () => {
  await rest();
  throw new HTTPException(418, { message: 'rejected' });
});
app.get('/broken-stream', () => {
  let count = 0;
  return new Response(new ReadableStream({
    async pull(controller) {
      await rest();
      count += 1;
      if (count > 2) controller.error(new Error('the source failed'));
      else controller.enqueue(new TextEncoder().encode(PIECES[count]));
    },
  }));
});
app.get('/socket', upgradeWebSocket(() => ({
  onMessage(event, socket) {
    socket.send(event.data);
  },
})));

serve({ fetch: app.fetch, port: Number(process.env.PORT || 3000), websocket: { server: new WebSocketServer({ noServer: true }) } });
