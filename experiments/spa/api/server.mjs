// The API on Node's own server, for web servers that run no applications. PORT says where it listens.
import { createServer } from 'node:http';
import { answer } from './codes.mjs';

createServer((request, response) => {
  const [status, value] = answer(request.method, request.url.split('?', 1)[0]);
  const text = JSON.stringify(value);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}).listen(Number(process.env.PORT), '127.0.0.1');
