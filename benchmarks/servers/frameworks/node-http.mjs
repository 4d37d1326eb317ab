// node:http without a framework.

import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { PLACE } from "./place.mjs";
import { JSON_TYPE, echo, item } from "./work.mjs";

const ITEMS = "/api/items/";

createServer(async (request, response) => {
  const { url } = request;
  if (url.startsWith(ITEMS)) return send(response, item(url.slice(ITEMS.length)));
  if (url === "/api/echo") return send(response, echo(await json(request)));
  response.writeHead(404, { "content-type": "text/plain" });
  return response.end("no such thing\n");
}).listen(PLACE);

function send(response, value) {
  const text = JSON.stringify(value);
  response.writeHead(200, { "content-type": JSON_TYPE, "content-length": Buffer.byteLength(text) });
  response.end(text);
}
