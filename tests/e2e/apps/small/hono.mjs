// What create-hono makes for Node.js, with a few routes more.

import { serve } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";

const app = new Hono();

app.get("/", (c) => c.text("Hello Hono!"));
app.post("/echo", async (c) => c.json({ got: await c.req.json() }, 201));
app.get("/events", (c) =>
  streamSSE(c, async (stream) => {
    for (let number = 0; number < 3; number += 1) await stream.writeSSE({ data: String(number) });
  }),
);
app.get("/fails", () => {
  throw new Error("this route always fails");
});
app.get("/static/*", serveStatic({ root: "./small", rewriteRequestPath: (path) => path.replace("/static", "") }));

serve({ fetch: app.fetch, port: Number(process.env.PORT || 3000) }, (info) => {
  console.log(`Server is running on http://localhost:${info.port}`);
});
