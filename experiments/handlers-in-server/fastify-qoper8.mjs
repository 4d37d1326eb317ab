// The API on Fastify with QOper8: every answer but the streamed one is made by a worker of the pool.

import { Readable } from "node:stream";
import Fastify from "fastify";
import * as answers from "./answers.mjs";
import { ask } from "./pool.mjs";

const app = Fastify({ bodyLimit: answers.VALUE_BYTES_MAX });
const TEXT = "text/plain; charset=utf-8";

app.removeAllContentTypeParsers();
app.addContentTypeParser("*", { parseAs: "string" }, (request, body, done) => done(null, body));

app.get("/local", () => ask("local"));
app.get("/item/:id", (request) => ask("item", request.params));
app.get("/store/:key", async (request, reply) => {
  const value = await ask("read", request.params);
  if (value === undefined) return reply.code(404).send(answers.MISSING);
  return reply.type(TEXT).send(value);
});
app.put("/store/:key", (request) => ask("write", { key: request.params.key, value: request.body ?? "" }));
app.get("/stream", (request, reply) => reply.type(TEXT).send(Readable.from(answers.pieces(), { objectMode: false })));
app.setNotFoundHandler((request, reply) => reply.code(404).send(answers.MISSING));
app.setErrorHandler((error, request, reply) => {
  if (error.statusCode === 413) return reply.code(413).send(answers.TOO_LONG);
  return reply.send(error);
});

await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
