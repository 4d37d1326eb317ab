// The API on Bun.serve with QOper8: every answer but the streamed one is made by a worker of the pool.

import * as answers from "./answers.mjs";
import { ask } from "./pool.mjs";

const TEXT = { "Content-Type": "text/plain; charset=utf-8" };
const missing = () => Response.json(answers.MISSING, { status: 404 });

Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  hostname: "127.0.0.1",
  routes: {
    "/local": { GET: async () => Response.json(await ask("local")) },
    "/item/:id": { GET: async ({ params }) => Response.json(await ask("item", { id: params.id })) },
    "/store/:key": { GET: read, PUT: write },
    "/stream": { GET: () => new Response(answers.streamed(), { headers: TEXT }) },
  },
  fetch: missing,
});

async function read({ params }) {
  const value = await ask("read", { key: params.key });
  return value === undefined ? missing() : new Response(value, { headers: TEXT });
}

async function write(request) {
  const value = await request.text();
  if (Buffer.byteLength(value) > answers.VALUE_BYTES_MAX) return Response.json(answers.TOO_LONG, { status: 413 });
  return Response.json(await ask("write", { key: request.params.key, value }));
}
