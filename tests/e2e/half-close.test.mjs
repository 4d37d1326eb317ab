// A client that closes its sending side after its request still reads its answer: from an application, a program in
// HTTP and an upstream. Where too many wait, such clients are the first to be refused; a reset means that nobody reads.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { ONEHOP, run, startOnehop, workFolder } from "./program.mjs";

const KINDS = ["app", "program", "proxy"];

/** Says what it was asked, `/…/late` once a file is there, and what it has seen. */
const HANDLER = `
import { existsSync } from "node:fs";
let aborted = 0;
let whole = 0;
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/state")) return Response.json({ aborted, whole });
    request.signal.addEventListener("abort", () => { aborted += 1; });
    if (pathname.endsWith("/events")) {
      const body = new ReadableStream({ start(controller) { controller.enqueue(new TextEncoder().encode("data: 1\\n\\n")); } });
      return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
    }
    const body = await request.text();
    whole += 1;
    while (pathname.includes("/late") && !existsSync(process.env.RELEASE)) await new Promise((resolve) => setTimeout(resolve, 5));
    return new Response(pathname + " " + body);
  },
};
`;

for (const kind of KINDS) {
  test(`a client that half-closes after its request gets its answer: ${kind}`, async (context) => {
    const server = await start(context);
    for (const [request, body] of [
      [`GET /${kind}/a HTTP/1.1\r\nHost: localhost\r\n\r\n`, ""],
      [`POST /${kind}/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello`, "hello"],
      [`POST /${kind}/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n`, "hello!"],
    ]) {
      const client = open(context, server.port);
      client.socket.end(request);
      const text = await client.closed;
      assert.match(text, /^HTTP\/1\.1 200 /, request);
      assert.ok(text.includes(`/${kind}/a ${body}`), text);
    }
  });

  test(`a client that half-closes while it waits gets its answer when it is made: ${kind}`, async (context) => {
    const server = await start(context);
    const client = open(context, server.port);
    client.socket.write(`POST /${kind}/late HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello`);
    await until(async () => (await server.wholes(kind)) === 1);
    client.socket.end();
    // One more request sees what the first one's end has done.
    await server.ask(`/${kind}/a`);
    server.release();
    assert.match(await client.closed, /^HTTP\/1\.1 200 [^]*\/late hello/);
    assert.equal((await server.seen(kind)).aborted, 0);
  });

  test(`a client that half-closes in the middle of a body has sent no request: ${kind}`, async (context) => {
    const server = await start(context);
    for (const part of ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]) {
      const client = open(context, server.port);
      client.socket.end(`POST /${kind}/a HTTP/1.1\r\nHost: localhost\r\n${part}`);
      assert.doesNotMatch(await client.closed, /^HTTP\/1\.1 2/);
    }
    assert.equal(await server.wholes(kind), 0);
  });
}

test("a handler whose client resets the connection learns it within 100 ms, half-closed or not", async (context) => {
  const server = await start(context);
  for (const [round, isHalfClosed] of [false, true].entries()) {
    const client = open(context, server.port);
    client.socket.write("GET /app/late HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (isHalfClosed) client.socket.end();
    await until(async () => (await server.wholes("app")) === round + 1);
    client.socket.resetAndDestroy();
    const gone = Date.now();
    await until(async () => (await server.seen("app")).aborted === round + 1);
    assert.ok(Date.now() - gone <= 150, `the signal came after ${Date.now() - gone} ms`);
  }
});

test("an event stream whose client closes its side is over", async (context) => {
  const server = await start(context);
  const client = open(context, server.port);
  client.socket.write("GET /app/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until(() => client.text().includes("data: 1"));
  client.socket.end();
  await until(async () => (await server.seen("app")).aborted === 1);
});

for (const [name, options] of [
  ["a limit", "limit in_flight 1 queue 2 wait 60s"],
  ["the application's own queue", "limit off\n\t\t\tconcurrency 1\n\t\t\tqueue 2"],
]) {
  test(`where too many wait, a client that has half-closed makes room: ${name}`, async (context) => {
    const server = await start(context, options);
    const late = (number) => {
      const client = open(context, server.port);
      client.socket.write(`GET /app/late/${number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      return client;
    };
    const first = late(1);
    await until(async () => (await server.inFlight()) === 1);
    const waiting = [late(2), late(3)];
    await until(async () => (await server.queued()) === 2);
    const half = waiting[1];
    half.socket.end();
    // A request that comes before its end was seen is the one that is refused.
    let last;
    do last = late(4);
    while ((await Promise.race([half.closed, last.closed.then(() => "last")])) === "last");
    assert.match(await half.closed, /^HTTP\/1\.1 503 /);
    server.release();
    for (const [client, number] of [[first, 1], [waiting[0], 2], [last, 4]]) {
      assert.match(await client.closed, new RegExp(`^HTTP/1\\.1 200 [^]*/late/${number} $`));
    }
  });
}

async function start(context, options = "") {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const release = join(folder, "release");
  const beside = await httpServer(context, release);
  const text = `{
	admin off
}
http://localhost:0 {
	handle /program/* {
		app {
			supervise off 127.0.0.1:${beside.port}
		}
	}
	handle /proxy/* {
		reverse_proxy 127.0.0.1:${beside.port}
	}
	handle {
		app ./server.mjs {
			workers 1
			env RELEASE ${release}
			${options}
		}
	}
}
`;
  const server = await startOnehop(context, { folder, text, threads: 1 });
  server.ask = async (path) => (await fetch(`${server.origin}${path}`)).text();
  server.release = () => writeFileSync(release, "");
  // The application is asked here, the other two share a process with this test.
  server.seen = async (kind) => (kind === "app" ? JSON.parse(await server.ask("/app/state")) : beside.seen);
  const status = async () => JSON.parse((await run(ONEHOP, ["status", "--json", "--control", server.control])).stdout);
  server.inFlight = async () => (await status()).apps.flatMap(({ workers }) => workers).reduce((sum, worker) => sum + worker.in_flight, 0);
  server.queued = async () => {
    const { apps, limits } = await status();
    return [...apps, ...limits].reduce((sum, { queued }) => sum + queued, 0);
  };
  for (const kind of KINDS) await until(async () => (await server.ask(`/${kind}/a`)) === `/${kind}/a `);
  const before = { app: await server.seen("app"), program: { ...beside.seen }, proxy: { ...beside.seen } };
  server.wholes = async (kind) => (await server.seen(kind)).whole - before[kind].whole;
  return server;
}

/** The same as the handler, with node:http. */
async function httpServer(context, release) {
  const seen = { aborted: 0, whole: 0 };
  const server = createServer(async (request, response) => {
    response.on("close", () => (seen.aborted += response.writableFinished ? 0 : 1));
    const pieces = [];
    try {
      for await (const piece of request) pieces.push(piece);
    } catch {
      return;
    }
    seen.whole += 1;
    while (request.url.includes("/late") && !existsSync(release)) await new Promise((resolve) => setTimeout(resolve, 5));
    response.end(`${request.url} ${Buffer.concat(pieces)}`);
  });
  context.after(() => (server.close(), server.closeAllConnections()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: server.address().port, seen };
}

/** A connection, what came on it, and all of that once it is over. */
function open(context, port) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  context.after(() => socket.destroy());
  let text = "";
  socket.on("data", (bytes) => (text += bytes));
  const closed = new Promise((resolve) => {
    socket.on("error", () => resolve(text));
    socket.on("end", () => resolve(text));
    socket.on("close", () => resolve(text));
  });
  return { socket, closed, text: () => text };
}

/** Asks again until it is so; the test's own deadline ends what never is. */
async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
