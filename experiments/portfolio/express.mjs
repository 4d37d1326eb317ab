/** The site as an Express application. Nothing here is for onehop: `PORT=8081 node express.mjs` runs it too. */
import express from 'express';
import { blog, blogs, home, missing, version } from './site.mjs';

const app = express();

app.get('/', (request, response) => {
  response.send(home());
});

app.get('/blogs', (request, response) => {
  response.send(blogs());
});

app.get('/blogs/:id', (request, response, next) => {
  const page = blog(request.params.id);
  if (page === undefined) return next();
  response.send(page);
});

app.get('/version', (request, response) => {
  response.json({ version });
});

app.use((request, response) => {
  response.status(404).send(missing());
});

app.listen(process.env.PORT);
