// The application on node:http alone, without a framework.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { JSON_TYPE, burnt, counted, echo, item, pieces } from "./work.mjs";
import { inEachWorker } from "./workers.mjs";

const ITEMS = "/api/items/";

inEachWorker(() => createServer(answer).listen({ port: Number(process.env.BENCH_PORT), host: "127.0.0.1", backlog: 4096 }));

async function answer(request, response) {
  const { url } = request;
  if (url.startsWith(ITEMS)) return sendJson(response, item(url.slice(ITEMS.length)));
  switch (url) {
    case "/api/echo":
      return sendJson(response, echo(await json(request)));
    case "/api/burn":
      return sendJson(response, burnt());
    case "/api/stream":
      response.writeHead(200, { "content-type": "application/octet-stream" });
      return Readable.from(pieces()).pipe(response);
    case "/api/upload":
      return sendJson(response, counted(await bytesOf(request)));
    default:
      response.writeHead(404, { "content-type": "text/plain" });
      return response.end("no such thing\n");
  }
}

function sendJson(response, value) {
  const text = JSON.stringify(value);
  response.writeHead(200, { "content-type": JSON_TYPE, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

async function bytesOf(body) {
  let bytes = 0;
  for await (const piece of body) bytes += piece.length;
  return bytes;
}
