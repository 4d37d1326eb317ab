// An Express application that knows nothing of onehop: `node server.js` runs it too.

const path = require('node:path');
const express = require('express');

const REPORTS = path.join(__dirname, 'files');
const TICK_MILLISECONDS = 1000;

const app = express();
app.use(express.json());

const notes = [{ id: 1, text: 'Nobody rewrites an app to change its server.' }];

app.get('/api/notes', (request, response) => {
  console.log('%s asks for notes', request.ip);
  response.json(notes);
});

app.post('/api/notes', (request, response) => {
  const { text } = request.body ?? {};
  if (typeof text !== 'string' || text === '') {
    response.status(422).json({ error: 'text must say something' });
    return;
  }
  const note = { id: notes.length + 1, text };
  notes.push(note);
  response.status(201).location(`/api/notes/${note.id}`).json(note);
});

app.get('/api/notes/:id', (request, response, next) => {
  const note = notes.find(({ id }) => id === Number(request.params.id));
  if (note === undefined) next();
  else response.json(note);
});

// With `files` in the Onehopfile it is the server that sends the bytes.
app.get('/api/reports/:name', (request, response, next) => {
  response.download(request.params.name, { root: REPORTS }, (error) => {
    if (error) next(error);
    else console.log('%s was downloaded', request.params.name);
  });
});

app.get('/api/ticks', (request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  let tick = 0;
  const timer = setInterval(() => response.write(`data: ${(tick += 1)}\n\n`), TICK_MILLISECONDS);
  response.on('close', () => {
    clearInterval(timer);
    console.log('a listener left after %d ticks', tick);
  });
});

app.get('/api/failure', async () => {
  throw new Error('this route always fails');
});

app.use((request, response) => {
  response.status(404).json({ error: `there is nothing at ${request.path}` });
});

const server = app.listen(process.env.PORT ?? 3000, () => console.log('listens on port %d', server.address().port));
