// The application on Express 5, as an ES module with handlers that return promises.

import { createServer } from 'node:http';
import { pipeline } from 'node:stream/promises';
import compression from 'compression';
import cookieParser from 'cookie-parser';
import express, { Router } from 'express';
import multer from 'multer';
import { WebSocketServer } from 'ws';
import content from '../content.cjs';
import script from '../script.cjs';

const { BIG, BIG_FIELDS, COOKIES, DATA, digest, EVENTS, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = content;
const app = express();
const upload = multer({ storage: multer.memoryStorage() });

app.all('/node/*rest', (req, res) => script.perform(req, res));
app.use(compression());
app.use(cookieParser('secret'));
app.use('/files', express.static(FILES, { dotfiles: 'deny' }));
app.use(express.json());
app.use(express.urlencoded());

app.get('/', (req, res) => res.send('hello\n'));
app.route('/json').get((req, res) => res.json(DATA)).post((req, res) => res.status(201).json(req.body));
app.post('/form', (req, res) => res.json(req.body));
app.post('/upload', upload.any(), async (req, res) => {
  res.json({ fields: req.body, files: req.files.map(({ fieldname, originalname, mimetype, size, buffer }) => ({ fieldname, originalname, mimetype, size, digest: digest(buffer) })) });
});

const users = Router({ mergeParams: true });
users.get('/', (req, res) => res.json({ params: req.params, query: req.query }));
users.delete('/', (req, res) => res.json({ params: req.params, body: req.body ?? null }));
app.use('/users/:id', users);

app.get('/cookies', (req, res) => {
  res.cookie('session', 'abc', { httpOnly: true, signed: true }).clearCookie('old').append('Set-Cookie', COOKIES[1]);
  res.json(req.cookies);
});
app.get('/redirect', (req, res) => res.redirect('/json'));
app.get('/moved', (req, res) => res.redirect(301, '/json?moved=yes'));
app.get('/stream', async (req, res) => {
  res.type('text/plain');
  await pipeline(async function* pieces() {
    for (const piece of PIECES) {
      yield piece;
      await rest();
    }
  }, res);
});
app.get('/events', async (req, res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache, no-transform' });
  for (const event of EVENTS) {
    res.write(event);
    await rest();
  }
  res.end();
});
app.get('/empty', (req, res) => res.sendStatus(204));
app.get('/unchanged', (req, res) => res.set('ETag', '"x"').sendStatus(304));
app.get('/reset', (req, res) => res.sendStatus(205));
app.get('/compressed', (req, res) => res.type('text').send(LONG_TEXT));
app.get('/big', (req, res) => res.type('bin').send(BIG));
app.post('/sum', express.raw({ type: () => true, limit: '10mb' }), (req, res) => res.json({ bytes: req.body?.length ?? 0, digest: req.body?.length ? digest(req.body) : null }));
app.get('/fields', (req, res) => res.set({ ...BIG_FIELDS, ...MANY_FIELDS }).send('fields'));
app.get('/who', (req, res) => res.json({ ip: req.ip, ips: req.ips, protocol: req.protocol, secure: req.secure, host: req.host, hostname: req.hostname, subdomains: req.subdomains, url: req.originalUrl, version: req.httpVersion }));
app.get('/file', (req, res) => res.sendFile('numbers.txt', { root: FILES }));
app.get('/download', (req, res) => res.download('hello.txt', 'grüße.txt', { root: FILES }));
app.get('/throw', () => {
  throw new Error('thrown');
});
app.get('/reject', async () => {
  await rest();
  throw Object.assign(new Error('rejected'), { status: 418 });
});
app.get('/late-throw', async (req, res) => {
  res.write('begun');
  await rest();
  throw new Error('thrown after the head');
});
app.get('/broken-stream', async (req, res) => {
  await pipeline(async function* pieces() {
    yield PIECES[0];
    await rest();
    throw new Error('the source failed');
  }, res);
});
app.use((req, res) => res.status(404).json({ missing: req.path }));

const server = createServer(app);
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (req, socket, head) => {
  if (req.url !== '/socket') return socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nX-Refused: yes\r\n\r\n');
  return sockets.handleUpgrade(req, socket, head, (client) => client.on('message', (data, isBinary) => client.send(data, { binary: isBinary })));
});
server.listen({ port: Number(process.env.PORT || 3000), host: '127.0.0.1' });
