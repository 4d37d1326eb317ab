/**
 * The example's API: a Hono application, exported as it is. Nothing of it belongs to onehop but websocket.mjs and what
 * `c.executionCtx` says about the client.
 */
import { Hono } from 'hono';
import { basicAuth } from 'hono/basic-auth';
import { getCookie, setCookie } from 'hono/cookie';
import { etag } from 'hono/etag';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import { streamSSE } from 'hono/streaming';
import { validator } from 'hono/validator';
import { upgradeWebSocket } from './websocket.mjs';

/** How often the event stream ticks. */
const TICK_MILLISECONDS = 1000;
/** Longest message of the chat, in bytes. */
const CHAT_BYTES_MAX = 4096;
/** How long a browser is remembered. */
const VISITS_SECONDS = 30 * 24 * 60 * 60;
const ABSOLUTE_ZERO_CELSIUS = -273.15;

/** What this process has open. Each worker counts its own. */
const open = { streams: 0, sockets: 0 };

const app = new Hono().basePath('/api');
app.use(secureHeaders());

// An answer that is the same each time costs the client nothing the second time. The middleware reads the whole
// answer for its hash, so it stands at the routes that end, and never before a stream.
app.get('/planets/:name', etag(), (c) => {
  const name = c.req.param('name');
  const days = { mercury: 88, venus: 225, earth: 365, mars: 687 }[name];
  if (days === undefined) throw new HTTPException(404, { message: `no planet is called ${name}` });
  return c.json({ name, days });
});

const readCelsius = validator('json', (value) => {
  const celsius = value?.celsius;
  if (typeof celsius !== 'number' || celsius < ABSOLUTE_ZERO_CELSIUS) {
    throw new HTTPException(422, { message: `celsius must be a number from ${ABSOLUTE_ZERO_CELSIUS}` });
  }
  return { celsius };
});

app.post('/fahrenheit', readCelsius, (c) => {
  const { celsius } = c.req.valid('json');
  return c.json({ celsius, fahrenheit: celsius * 1.8 + 32 });
});

// What is kept between requests is kept by the browser: the next one may go to the other worker.
app.get('/visits', (c) => {
  const visits = (Number.parseInt(getCookie(c, 'visits'), 10) || 0) + 1;
  setCookie(c, 'visits', String(visits), { path: '/api', httpOnly: true, sameSite: 'Lax', maxAge: VISITS_SECONDS });
  return c.json({ visits });
});

// The Onehopfile says what the environment holds.
app.get('/worker', basicAuth({ username: 'admin', password: process.env.ADMIN_PASSWORD }), (c) => {
  const { client, requestId } = c.executionCtx;
  return c.json({ worker: process.pid, open, client, requestId });
});

// Server-sent events. The browser reconnects by itself, says which event it had last, and the numbers go on from there.
app.get('/ticks', (c) =>
  streamSSE(c, async (stream) => {
    let id = Number.parseInt(c.req.header('Last-Event-ID'), 10) || 0;
    open.streams += 1;
    while (!stream.aborted) {
      id += 1;
      const data = JSON.stringify({ time: new Date().toISOString(), worker: process.pid });
      await stream.writeSSE({ id: String(id), event: 'tick', data });
      await stream.sleep(TICK_MILLISECONDS);
    }
    open.streams -= 1;
    console.log(`a listener left after tick ${id}`);
  }));

// What is said comes back: text as text, bytes as bytes.
app.get('/chat', upgradeWebSocket(() => ({
  onOpen(event, socket) {
    open.sockets += 1;
    socket.send(`You speak to process ${process.pid}.`);
  },
  onMessage({ data }, socket) {
    socket.send(data);
  },
  onClose({ code }) {
    open.sockets -= 1;
    console.log(`a chat was closed with ${code}`);
  },
}), { maxPayload: CHAT_BYTES_MAX }));

app.get('/failure', () => {
  throw new Error('this route always fails');
});

app.notFound((c) => c.json({ error: `there is nothing at ${c.req.path}` }, 404));

// What a client may know is in an HTTPException; everything else is told to the log alone.
app.onError((error, c) => {
  if (error instanceof HTTPException) {
    // Middleware such as basicAuth brings an answer of its own.
    return error.res ? error.getResponse() : c.json({ error: error.message }, error.status);
  }
  console.error(error);
  return c.json({ error: 'something failed here', requestId: c.executionCtx.requestId }, 500);
});

export default app;
