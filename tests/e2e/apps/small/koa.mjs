// Koa as its guide begins, with a router, a body that streams and an error.

import { createReadStream } from "node:fs";
import Router from "@koa/router";
import Koa from "koa";

const app = new Koa();
const router = new Router();

app.use(async (context, next) => {
  await next();
  context.set("X-Status", String(context.status));
});
router.get("/", (context) => (context.body = "Hello World"));
router.get("/file", (context) => {
  context.type = "text/javascript";
  context.body = createReadStream(new URL(import.meta.url));
});
router.get("/refused", (context) => context.throw(403, "not you"));
router.get("/json/:name", (context) => {
  context.cookies.set("seen", context.params.name);
  context.body = { name: context.params.name, ip: context.ip.replace("::ffff:", "") };
});
app.use(router.routes()).use(router.allowedMethods());
app.on("error", () => {});

app.listen(process.env.PORT || 3000);
