// The application as a fetch handler: onehop calls it, and Bun.serve (bun.mjs) calls the same one.

import { JSON_TYPE, counted, echo, item, pieces } from "./work.mjs";

const JSON_FIELDS = { headers: { "content-type": JSON_TYPE } };
const BYTES_FIELDS = { headers: { "content-type": "application/octet-stream" } };
const ITEMS = "/api/items/";

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(ITEMS)) return Response.json(item(pathname.slice(ITEMS.length)), JSON_FIELDS);
    switch (pathname) {
      case "/api/echo":
        return Response.json(echo(await request.json()), JSON_FIELDS);
      case "/api/stream":
        return new Response(stream(), BYTES_FIELDS);
      case "/api/upload":
        return Response.json(counted(await bytesOf(request.body)), JSON_FIELDS);
      default:
        return new Response("no such thing\n", { status: 404 });
    }
  },
};

/** A stream that makes its next piece when it is asked for it. */
function stream() {
  const left = pieces();
  return new ReadableStream({
    pull(controller) {
      const { value, done } = left.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

async function bytesOf(body) {
  let bytes = 0;
  for await (const piece of body) bytes += piece.byteLength;
  return bytes;
}
