// The application on Fastify as its documentation shows it: routes with parameters, answers with a
// schema (its faster way to write JSON), no log.

import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { burnt, counted, echo, item, pieces } from "./work.mjs";
import { inEachWorker } from "./workers.mjs";

const { default: Fastify } = createRequire(`${process.env.BENCH_FASTIFY}/`)("fastify");

/** Says to Fastify what an answer looks like. */
const answers = (properties) => ({ schema: { response: { 200: { type: "object", properties } } } });
const ITEM = {
  id: { type: "string" },
  name: { type: "string" },
  price: { type: "integer" },
  tags: { type: "array", items: { type: "string" } },
  available: { type: "boolean" },
};

inEachWorker(() => {
  const app = Fastify({ logger: false, bodyLimit: 1024 ** 3 });
  // A body of bytes is read by the route itself.
  app.addContentTypeParser("application/octet-stream", (request, payload, done) => done(null, payload));
  app.get("/api/items/:id", answers(ITEM), async (request) => item(request.params.id));
  app.post("/api/echo", answers({ token: { type: "string" } }), async (request) => echo(request.body));
  app.get("/api/burn", answers({ burnt: { type: "integer" } }), async () => burnt());
  app.get("/api/stream", (request, reply) => {
    reply.type("application/octet-stream").send(Readable.from(pieces(), { objectMode: false }));
  });
  app.post("/api/upload", answers({ bytes: { type: "integer" } }), async (request) => {
    let bytes = 0;
    for await (const piece of request.body) bytes += piece.length;
    return counted(bytes);
  });
  return app.listen({ port: Number(process.env.BENCH_PORT), host: "127.0.0.1", backlog: 4096 });
});
