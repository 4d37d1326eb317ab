// The API on Bun.serve, with its own routes: `bun bun-serve.mjs`.

import * as answers from "./answers.mjs";
import { openRows } from "./rows.mjs";
import { openStore } from "./store.mjs";

const store = openStore();
const rows = openRows();
const TEXT = { "Content-Type": "text/plain; charset=utf-8" };
const missing = () => Response.json(answers.MISSING, { status: 404 });

Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  hostname: "127.0.0.1",
  routes: {
    "/local": { GET: () => Response.json(answers.local()) },
    "/item/:id": { GET: (request) => Response.json(answers.item(request.params.id)) },
    "/store/:key": { GET: ({ params }) => read(store.read(params.key)), PUT: (request) => write(request, store) },
    "/row/:key": {
      GET: ({ params }) => asked(async () => read(await rows.read(params.key))),
      PUT: (request) => asked(() => write(request, rows)),
    },
    "/stream": { GET: () => new Response(answers.streamed(), { headers: TEXT }) },
    "/live": { GET: (request, server) => (server.upgrade(request) ? undefined : new Response(null, { status: 426 })) },
  },
  fetch: missing,
  websocket: {
    maxPayloadLength: answers.VALUE_BYTES_MAX,
    message: (socket, data) => void socket.send(data),
  },
});

function read(value) {
  return value === undefined ? missing() : new Response(value, { headers: TEXT });
}

async function write(request, to) {
  const { key } = request.params;
  const value = await request.text();
  if (Buffer.byteLength(value) > answers.VALUE_BYTES_MAX) return Response.json(answers.TOO_LONG, { status: 413 });
  await to.write(key, value);
  return Response.json(answers.written(key, value));
}

/** What a query answers; 503 where the database does not. */
async function asked(query) {
  try {
    return await query();
  } catch (error) {
    console.error(error.message);
    return Response.json(answers.NO_DATABASE, { status: 503 });
  }
}
