// The API on Fastify. Nothing here knows of onehop: `node fastify.mjs` listens, and under onehop the same file opens no port.

import { Readable } from "node:stream";
import websocket from "@fastify/websocket";
import Fastify from "fastify";
import * as answers from "./answers.mjs";
import { openRows } from "./rows.mjs";
import { openStore } from "./store.mjs";

const store = openStore();
const rows = openRows();
const app = Fastify({ bodyLimit: answers.VALUE_BYTES_MAX });
const TEXT = "text/plain; charset=utf-8";

// A schema of the answer is what Fastify's documentation advises: it is serialized without looking at each value.
const string = { type: "string" };
const LOCAL = { schema: { response: { 200: { type: "object", properties: { ok: { type: "boolean" }, hello: string } } } } };
const ITEM = {
  schema: {
    response: { 200: { type: "object", properties: { id: string, name: string, tags: { type: "array", items: string } } } },
  },
};

await app.register(websocket, { options: { maxPayload: answers.VALUE_BYTES_MAX } });
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", { parseAs: "string" }, (request, body, done) => done(null, body));

app.get("/local", LOCAL, (request, reply) => reply.send(answers.local()));
app.get("/item/:id", ITEM, (request, reply) => reply.send(answers.item(request.params.id)));
app.get("/store/:key", (request, reply) => {
  const value = store.read(request.params.key);
  if (value === undefined) return reply.callNotFound();
  return reply.type(TEXT).send(value);
});
app.put("/store/:key", (request, reply) => {
  const { key } = request.params;
  const value = request.body ?? "";
  store.write(key, value);
  return reply.send(answers.written(key, value));
});
app.get("/row/:key", async (request, reply) => {
  const value = await asked(rows.read(request.params.key));
  if (value === undefined) return reply.callNotFound();
  return reply.type(TEXT).send(value);
});
app.put("/row/:key", async (request, reply) => {
  const { key } = request.params;
  const value = request.body ?? "";
  await asked(rows.write(key, value));
  return reply.send(answers.written(key, value));
});
app.get("/stream", (request, reply) => reply.type(TEXT).send(Readable.from(answers.pieces(), { objectMode: false })));
app.get("/live", { websocket: true }, (socket) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
app.setNotFoundHandler((request, reply) => reply.code(404).send(answers.MISSING));
app.setErrorHandler((error, request, reply) => {
  if (error.statusCode === 413) return reply.code(413).send(answers.TOO_LONG);
  if (error.statusCode === 503) return reply.code(503).send(answers.NO_DATABASE);
  return reply.send(error);
});

/** What a query answers; an error of status 503 where the database does not. */
function asked(query) {
  return query.catch((error) => {
    console.error(error.message);
    throw Object.assign(error, { statusCode: 503 });
  });
}

await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
