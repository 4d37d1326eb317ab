// Hono on Node's HTTP server by its adapter. (onehop would call the application itself, if it were the
// default export: handler.mjs is one.)

import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { PLACE } from "./place.mjs";
import { JSON_TYPE, echo, item } from "./work.mjs";

// Hono names no charset; here every server sends the same bytes.
const FIELDS = { "content-type": JSON_TYPE };

const app = new Hono();
app.get("/api/items/:id", (context) => context.json(item(context.req.param("id")), 200, FIELDS));
app.post("/api/echo", async (context) => context.json(echo(await context.req.json()), 200, FIELDS));
createAdaptorServer({ fetch: app.fetch }).listen(PLACE);
