// Koa with its usual router and body parser.

import Router from "@koa/router";
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { PLACE } from "./place.mjs";
import { echo, item } from "./work.mjs";

const router = new Router();
router.get("/api/items/:id", (context) => {
  context.body = item(context.params.id);
});
router.post("/api/echo", (context) => {
  context.body = echo(context.request.body);
});

const app = new Koa();
app.use(bodyParser());
app.use(router.routes());
app.listen(PLACE);
