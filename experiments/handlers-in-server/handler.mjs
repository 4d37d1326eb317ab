// The API as a fetch handler, which onehop calls directly: on Node.js or on Bun, without a listener.

import * as answers from "./answers.mjs";
import { openRows } from "./rows.mjs";
import { openStore } from "./store.mjs";

const store = openStore();
const rows = openRows();
const TEXT = { "Content-Type": "text/plain; charset=utf-8" };

const ROUTES = [
  ["GET", /^\/local$/, () => Response.json(answers.local())],
  ["GET", /^\/item\/([^/]+)$/, (_, id) => Response.json(answers.item(id))],
  ["GET", /^\/store\/([^/]+)$/, (_, key) => read(store.read(key))],
  ["PUT", /^\/store\/([^/]+)$/, (request, key) => write(request, key, store)],
  ["GET", /^\/row\/([^/]+)$/, (_, key) => asked(async () => read(await rows.read(key)))],
  ["PUT", /^\/row\/([^/]+)$/, (request, key) => asked(() => write(request, key, rows))],
  ["GET", /^\/stream$/, () => new Response(answers.streamed(), { headers: TEXT })],
  ["GET", /^\/live$/, live],
];

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    for (const [method, path, answer] of ROUTES) {
      if (request.method !== method) continue;
      const found = path.exec(pathname);
      if (found) return answer(request, found[1] && decoded(found[1]));
    }
    return Response.json(answers.MISSING, { status: 404 });
  },
};

function read(value) {
  if (value === undefined) return Response.json(answers.MISSING, { status: 404 });
  return new Response(value, { headers: TEXT });
}

async function write(request, key, to) {
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

/** Sends each message back. */
function live(request) {
  const { socket, response } = onehop.upgradeWebSocket(request, { maxPayload: answers.VALUE_BYTES_MAX });
  socket.addEventListener("message", ({ data }) => socket.send(data));
  return response;
}

/** The parameter as it was before it was percent-encoded; as it came where it is not UTF-8. */
function decoded(text) {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
