// The application on Express 4.

'use strict';

const { Readable } = require('node:stream');
const compression = require('compression');
const cookieParser = require('cookie-parser');
const express = require('express-4');
const multer = require('multer');
const { WebSocketServer } = require('ws');
const { BIG, BIG_FIELDS, COOKIES, DATA, digest, EVENTS, FILES, LONG_TEXT, MANY_FIELDS, PIECES, rest } = require('../content.cjs');
const { perform } = require('../script.cjs');

const app = express();
const upload = multer({ storage: multer.memoryStorage() });
app.set('trust proxy', false);
app.use('/node', (req, res, next) => {
  req.url = req.originalUrl;
  perform(req, res)?.catch(next);
});
app.use(compression());
app.use(cookieParser());
app.use('/files', express.static(FILES, { etag: true, maxAge: '1h' }));

app.get('/', (req, res) => res.send('hello\n'));
app.get('/json', (req, res) => res.json(DATA));
app.post('/json', express.json(), (req, res) => res.status(201).json(req.body));
app.post('/form', express.urlencoded({ extended: true }), (req, res) => res.json(req.body));
app.post('/upload', upload.any(), (req, res) => {
  res.json({ fields: req.body, files: req.files.map(({ fieldname, originalname, mimetype, size, buffer }) => ({ fieldname, originalname, mimetype, size, digest: digest(buffer) })) });
});
app.get('/users/:id', (req, res) => res.json({ params: req.params, query: req.query }));
app.delete('/users/:id', express.json({ strict: false }), (req, res) => res.json({ params: req.params, body: req.body }));
app.get('/cookies', (req, res) => {
  res.cookie('session', 'abc', { httpOnly: true }).cookie('theme', 'dark', { expires: new Date(0) }).append('Set-Cookie', COOKIES[2]);
  res.json(req.cookies);
});
app.get('/redirect', (req, res) => res.redirect('/json'));
app.get('/moved', (req, res) => res.redirect(301, '/json?moved=yes'));
app.get('/stream', async (req, res) => {
  res.type('text');
  for (const piece of PIECES) {
    res.write(piece);
    await rest();
  }
  res.end();
});
app.get('/events', async (req, res) => {
  res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  res.flushHeaders();
  for (const event of EVENTS) {
    res.write(event);
    res.flush();
    await rest();
  }
  res.end();
});
app.get('/empty', (req, res) => res.status(204).send());
app.get('/unchanged', (req, res) => res.set('ETag', '"x"').status(304).end());
app.get('/reset', (req, res) => res.status(205).send('not sent'));
app.get('/compressed', (req, res) => res.type('text').send(LONG_TEXT));
app.get('/big', (req, res) => res.type('bin').send(BIG));
app.post('/sum', express.raw({ type: () => true, limit: '10mb' }), (req, res) => res.json({ bytes: req.body.length ?? 0, digest: req.body.length ? digest(req.body) : null }));
app.get('/fields', (req, res) => res.set({ ...BIG_FIELDS, ...MANY_FIELDS }).send('fields'));
app.get('/who', (req, res) => res.json({ ip: req.ip, ips: req.ips, protocol: req.protocol, secure: req.secure, hostname: req.hostname, url: req.originalUrl, xhr: req.xhr, version: req.httpVersion, fresh: req.fresh }));
app.get('/file', (req, res) => res.sendFile('numbers.txt', { root: FILES }));
app.get('/download', (req, res) => res.download(`${FILES}/hello.txt`, 'grüße.txt'));
app.get('/throw', () => {
  throw new Error('thrown');
});
app.get('/reject', (req, res, next) => void Promise.reject(Object.assign(new Error('rejected'), { status: 418 })).catch(next));
app.get('/late-throw', async (req, res, next) => {
  res.write('begun');
  await rest();
  next(new Error('thrown after the head'));
});
app.get('/broken-stream', (req, res) => {
  const source = Readable.from(PIECES);
  source.on('data', () => source.destroy(new Error('the source failed'))).on('error', () => res.destroy());
  source.pipe(res);
});

const server = app.listen(process.env.PORT || 3000);
const sockets = new WebSocketServer({ server, path: '/socket' });
sockets.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })));
