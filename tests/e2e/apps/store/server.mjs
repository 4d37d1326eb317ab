// Gives every request a store of its own, and looks at many points of its life whether it is still that one:
// "own", "none", or "foreign" when it is another request's.

import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { createGzip } from "node:zlib";

const storage = new AsyncLocalStorage();
/** How often each point had which store, over all requests: points behind an answer are in no answer. */
const totals = {};

const server = createServer((request, response) => {
  if (request.url === "/totals") return response.end(JSON.stringify(totals));
  const store = { id: request.headers["x-id"] };
  const points = {};
  const see = (name) => {
    const found = storage.getStore();
    const verdict = found === store ? "own" : found ? "foreign" : "none";
    points[name] = verdict;
    totals[name] ??= {};
    totals[name][verdict] = (totals[name][verdict] ?? 0) + 1;
  };
  see("before it is set");
  storage.run(store, () => handle(request, response, { store, points, see }).catch((error) => response.destroy(error)));
});

async function handle(request, response, { store, points, see }) {
  for (const event of ["data", "end", "close"]) request.on(event, () => see(`request '${event}'`));
  request.on("end", AsyncResource.bind(() => see("request 'end', bound")));
  for (const event of ["finish", "close"]) {
    response.on(event, () => see(`response '${event}'`));
    response.on(event, AsyncResource.bind(() => see(`response '${event}', bound`)));
  }
  const hash = createHash("sha256");
  if (request.headers["x-read"] === "iterate") {
    for await (const piece of request) hash.update(piece);
  } else {
    request.on("data", (piece) => hash.update(piece));
    await once(request, "end");
  }
  see("after the body");
  await otherThings(see);
  response.setHeader("Content-Type", "text/plain");
  await new Promise((resolve) => response.write(`${store.id}\n`, resolve));
  see("after a write");
  const braces = Readable.from(["{", "}"]);
  const looked = new Transform({ transform: (piece, _, done) => (see("a transform"), done(null, piece)) });
  await pipeline(braces, looked, createGzip(), async (pieces) => {
    for await (const piece of pieces) see(piece.length > 0 ? "a piece" : "an empty piece");
  });
  see("after a pipeline");
  response.end(JSON.stringify({ id: storage.getStore()?.id, sha256: hash.digest("hex"), points }));
  await once(response, "finish");
  see("after 'finish'");
  await pause(1);
  see("after all");
}

/** Everything else that goes on later. */
async function otherThings(see) {
  await Promise.all([
    pause(Math.random() * 20).then(() => see("a timer's promise")),
    new Promise((resolve) => setTimeout(() => (see("a timer"), resolve()), 3)),
    new Promise((resolve) => setImmediate(() => (see("an immediate"), resolve()))),
    new Promise((resolve) => process.nextTick(() => (see("a tick"), resolve()))),
    new Promise((resolve) => queueMicrotask(() => (see("a microtask"), resolve()))),
    readFile(new URL(import.meta.url)).then(() => see("a file")),
  ]);
  const emitter = new EventEmitter();
  emitter.once("done", () => see("an emitter's listener"));
  setTimeout(() => emitter.emit("done"), 2);
  await once(emitter, "done");
  see("after an emitter");
}

server.listen(process.env.PORT || 3000);
