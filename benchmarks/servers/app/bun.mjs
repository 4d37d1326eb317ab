// The handler in Bun's own server.

import handler from "./handler.mjs";

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.BENCH_PORT),
  maxRequestBodySize: 1024 ** 3,
  idleTimeout: 255,
  fetch: handler.fetch,
});
