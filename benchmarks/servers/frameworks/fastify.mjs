// Fastify 5 as its documentation shows it: routes with parameters, answers with a schema (its faster way to
// write JSON), no log.

import Fastify from "fastify";
import { PLACE } from "./place.mjs";
import { echo, item } from "./work.mjs";

/** Says to Fastify what an answer looks like. */
const answers = (properties) => ({ schema: { response: { 200: { type: "object", properties } } } });
const ITEM = {
  id: { type: "string" },
  name: { type: "string" },
  price: { type: "integer" },
  tags: { type: "array", items: { type: "string" } },
  available: { type: "boolean" },
};

const app = Fastify({ logger: false });
app.get("/api/items/:id", answers(ITEM), async (request) => item(request.params.id));
app.post("/api/echo", answers({ token: { type: "string" } }), async (request) => echo(request.body));
await app.listen(PLACE);
