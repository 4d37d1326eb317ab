// 300 clients that send their bodies at 300 bytes a second, or read their answers slowly, beside one that does neither:
// a place at an application, behind a limit or at an upstream is for work, not for waiting on a client.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { ONEHOP, run, startOnehop, workFolder } from "./program.mjs";

const SLOW = 300;
const SLOW_BYTES_PER_SECOND = 300;
const QUICK = 801;
/** In which a client beside the slow ones has all of its answers. Alone it takes less than a second. */
const DEADLINE_MS = 45_000;
const LARGE_BYTES = 4 << 20;
const LONG_BODY_BYTES = 90_000;

const HANDLER = `
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/large")) {
      let left = ${LARGE_BYTES};
      return new Response(new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(65536).fill(120));
          if ((left -= 65536) <= 0) controller.close();
        },
      }));
    }
    return new Response("read " + (await request.arrayBuffer()).byteLength);
  },
};
`;

const KINDS = {
  "an application": "app ./server.mjs {\n\t\tworkers 1\n\t}",
  "an application without a limit": "app ./server.mjs {\n\t\tworkers 1\n\t\tlimit off\n\t}",
  "a limit in front of an application": "limit in_flight 20 queue 400 wait 30s\n\tapp ./server.mjs {\n\t\tworkers 1\n\t}",
  "an upstream with max": "reverse_proxy 127.0.0.1:UPSTREAM {\n\t\ttransport http {\n\t\t\tmax_conns_per_host 32\n\t\t}\n\t}",
};

/** What slow clients do, and from where. */
const WAYS = {
  "slow senders": { begin: sendSlowly("Content-Length: 20000") },
  "slow senders of chunks": { begin: sendSlowly("Transfer-Encoding: chunked") },
  "slow senders of long bodies": { begin: sendSlowly(`Content-Length: ${LONG_BODY_BYTES}`) },
  "slow readers": { begin: (socket) => (socket.pause(), socket.write("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")) },
};

for (const [kind, directive] of Object.entries(KINDS)) {
  for (const [way, { begin }] of Object.entries(WAYS)) {
    for (const isOne of [true, false]) {
      // From many addresses readers of what fits nowhere may have all connections to an upstream.
      if (!isOne && way === "slow readers" && kind === "an upstream with max") continue;
      test(`${kind} answers beside ${way} from ${isOne ? "one address" : "many addresses"}`, async (context) => {
        const server = await start(context, directive);
        const sockets = Array.from({ length: SLOW }, (_, number) => {
          const localAddress = isOne ? "127.0.0.9" : `127.0.${1 + (number >> 7)}.${1 + (number & 127)}`;
          const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
          socket.on("error", () => {});
          begin(socket);
          return socket;
        });
        context.after(() => sockets.forEach((socket) => socket.destroy()));
        await Promise.all(sockets.map((socket) => socket.readyState === "open" || once(socket, "connect")));
        // All of them are known to the server, and those that are handed on have been: 300 requests at once are a burst,
        // whose last ones may be rejected, and so may others that come then.
        await until(async () => {
          const { open_connections: open, apps, limits } = await server.status();
          return open >= SLOW && [...apps, ...limits].every(({ queued }) => queued === 0);
        });
        const answered = await quickClient(server);
        assert.equal(answered, QUICK, `${answered} of ${QUICK} were answered`);
      });
    }
  }
}

function sendSlowly(framing) {
  return (socket) => {
    socket.write(`POST /upload HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n`);
    const piece = "x".repeat(SLOW_BYTES_PER_SECOND / 2);
    const bytes = framing.endsWith("chunked") ? `${piece.length.toString(16)}\r\n${piece}\r\n` : piece;
    const timer = setInterval(() => socket.writable && socket.write(bytes), 500);
    socket.on("close", () => clearInterval(timer));
    socket.write(bytes);
    socket.resume();
  };
}

/** How many of the requests of a client that is not slow are answered in time. */
async function quickClient(server) {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const signal = AbortSignal.timeout(DEADLINE_MS);
  let left = QUICK;
  let answered = 0;
  const work = async () => {
    while (left > 0 && !signal.aborted) {
      left -= 1;
      try {
        const asked = request({ port: server.port, host: "127.0.0.1", path: "/page", method: "POST", headers: { Host: "localhost", "Content-Length": 2 }, agent, signal });
        asked.end("ab");
        const [response] = await once(asked, "response", { signal });
        const body = Buffer.concat(await response.toArray()).toString();
        if (response.statusCode === 200 && body === "read 2") answered += 1;
      } catch {
        // Counted by what is missing.
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  agent.destroy();
  return answered;
}

async function start(context, directive) {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const upstream = await httpServer(context);
  const text = `{\n\tadmin off\n}\nhttp://localhost:0 {\n\t${directive.replace("UPSTREAM", upstream)}\n}\n`;
  const server = await startOnehop(context, { folder, text });
  server.status = async () => JSON.parse((await run(ONEHOP, ["status", "--json", "--control", server.control])).stdout);
  await until(async () => (await (await fetch(`${server.origin}/page`)).text()) === "read 0");
  return server;
}

async function httpServer(context) {
  const large = Buffer.alloc(LARGE_BYTES, "x");
  const server = createServer(async (request, response) => {
    if (request.url === "/large") return response.end(large);
    let bytes = 0;
    try {
      for await (const piece of request) bytes += piece.length;
    } catch {
      return;
    }
    response.end(`read ${bytes}`);
  });
  context.after(() => (server.close(), server.closeAllConnections()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

/** Asks again until it is so; the test's own deadline ends what never is. */
async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
