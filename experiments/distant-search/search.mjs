// A search service: `GET /indexes/books/search?q=WORDS&limit=N&offset=N` answers as JSON, in the manner of Meilisearch.
//
//     node search.mjs                                               listens on $PORT
//     node search.mjs '/indexes/books/search?q=whale&limit=2'       prints this answer's body
//
// With SEARCH_CERTIFICATE and SEARCH_KEY (files) it speaks TLS, with SEARCH_HTTP2=1 also HTTP/2 there.
// SEARCH_IDLE_SECONDS is how long it keeps idle connections. Without it, it closes them as Node.js does by default: five
// seconds after a response.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import { HITS_MAX, openBooks } from "./books.mjs";

const PATH = "/indexes/books/search";
const LIMIT = 20;
/** Node.js's default for HTTP/1.1; for HTTP/2 it has none. */
const KEEP_ALIVE_MS = 5_000;
const { SEARCH_CERTIFICATE, SEARCH_KEY, SEARCH_HTTP2, SEARCH_IDLE_SECONDS } = process.env;
const { HOST = "127.0.0.1", PORT = "7700" } = process.env;

const search = openBooks();

/** A whole number from 0 to HITS_MAX, or the other one where the parameter is missing. */
function number(parameters, name, otherwise) {
  const text = parameters.get(name) ?? String(otherwise);
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= HITS_MAX) return value;
  throw new RangeError(`${name} is a number from 0 to ${HITS_MAX}`);
}

/** The answer to a method and a target: a status and what its JSON holds. */
function answer(method, target) {
  const url = new URL(target, "http://search");
  if (url.pathname === "/health") return [200, { status: "available" }];
  if (url.pathname !== PATH) return [404, { message: `there is no ${url.pathname}`, code: "not_found" }];
  if (method !== "GET" && method !== "HEAD") return [405, { message: "only GET searches", code: "method_not_allowed" }];
  try {
    const query = url.searchParams.get("q") ?? "";
    const limit = number(url.searchParams, "limit", LIMIT);
    const offset = number(url.searchParams, "offset", 0);
    const { hits, estimatedTotalHits } = search(query, limit, offset);
    return [200, { hits, query, limit, offset, estimatedTotalHits }];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [400, { message: error.message, code: "bad_request" }];
  }
}

function respond(request, response) {
  const begun = performance.now();
  const [status, value] = answer(request.method, request.url);
  const body = Buffer.from(JSON.stringify(value));
  const connection = request.stream?.session?.socket ?? request.socket;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": body.length,
    "server-timing": `search;dur=${(performance.now() - begun).toFixed(2)}`,
    // From which port it was asked: measurements find the packets of a request by it.
    "x-asked-from": connection.remotePort,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** The server that the environment asks for. */
function serverOf() {
  if (!SEARCH_CERTIFICATE) return createServer(respond);
  const identity = { cert: readFileSync(SEARCH_CERTIFICATE), key: readFileSync(SEARCH_KEY) };
  if (SEARCH_HTTP2 === "1") return createSecureServer({ ...identity, allowHTTP1: true }, respond);
  return createTlsServer(identity, respond);
}

/** Closes connections after so many seconds without a request; without a number, as Node.js does by default. */
function boundIdle(server, seconds) {
  const idle = seconds === undefined ? KEEP_ALIVE_MS : seconds * 1000;
  server.keepAliveTimeout = idle;
  server.on("session", (session) => session.setTimeout(idle, () => session.close()));
  if (seconds === undefined) return;
  // Node.js would close a connection without a first request after a minute.
  server.headersTimeout = 0;
  server.requestTimeout = 0;
}

if (process.argv.length > 2) {
  process.stdout.write(JSON.stringify(answer("GET", process.argv[2])[1]));
} else {
  const server = serverOf();
  boundIdle(server, SEARCH_IDLE_SECONDS === undefined ? undefined : Number(SEARCH_IDLE_SECONDS));
  server.listen(Number(PORT), HOST);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit());
}
