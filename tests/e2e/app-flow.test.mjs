// Slow clients, fast handlers, and the other way round: neither side may hold what the other does not take.
// Resident memory of the server and of its worker is read while everything stands still.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { appStatus, startOnehop, workFolder } from "./program.mjs";

const MIB = 1 << 20;
/** Bytes of the long answer and of the long upload. */
const LONG_BYTES = Number(process.env.ONEHOP_FLOW_MIB ?? 1024) * MIB;
/** What either side may hold more than before: windows, socket buffers and garbage that is not collected yet. */
const SERVER_GROWTH_MAX = 8 * MIB;
const WORKER_GROWTH_MAX = 64 * MIB;
/** So long nobody takes anything before memory is read: not a wait for a state, but the state that is looked at. */
const STANDSTILL_MS = 2_000;

const HANDLER = `
const piece = new Uint8Array(64 * 1024).fill(120);
let taken = 0;
let abortedAt = 0;
const gates = [];
export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/api/long") {
      let left = Number(searchParams.get("bytes"));
      return new Response(new ReadableStream({
        pull(controller) {
          if (left <= 0) return controller.close();
          left -= piece.length;
          controller.enqueue(piece);
        },
      }));
    }
    if (pathname === "/api/take") {
      taken = 0;
      const reader = request.body.getReader();
      await new Promise((resolve) => gates.push(resolve));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return Response.json({ taken });
        taken += value.length;
      }
    }
    if (pathname === "/api/open") {
      for (const open of gates.splice(0)) open();
      return new Response("open");
    }
    if (pathname === "/api/hang") {
      request.signal.addEventListener("abort", () => { abortedAt = Date.now(); });
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      return new Response("nobody reads this");
    }
    return Response.json({ taken, abortedAt });
  },
};
`;

async function start(context) {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const text = "{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp /api/* ./server.mjs {\n\t\tworkers 1\n\t\ttimeout 2m\n\t}\n}\n";
  const server = await startOnehop(context, { folder, text, threads: 1 });
  assert.deepEqual(await ask(server, "/api/state"), { taken: 0, abortedAt: 0 });
  const { workers } = await appStatus(server);
  return { server, pids: { server: server.child.pid, worker: workers[0].pid } };
}

test("a client that takes nothing of a long answer makes nobody hold it", async (context) => {
  const { server, pids } = await start(context);
  const before = memory(pids);
  const client = connect(server.port, "127.0.0.1");
  client.pause();
  client.write(`GET /api/long?bytes=${LONG_BYTES} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  await new Promise((resolve) => setTimeout(resolve, STANDSTILL_MS));
  check(before, memory(pids), "standing still", context);
  // Others are answered meanwhile.
  assert.equal((await ask(server, "/api/state")).taken, 0);
  let received = 0;
  let head = "";
  client.on("data", (bytes) => {
    if (received === 0) head = bytes.subarray(0, 400).toString("latin1");
    received += bytes.length;
  });
  client.resume();
  await new Promise((resolve, reject) => client.on("end", resolve).on("error", reject));
  assert.match(head, /^HTTP\/1\.1 200 /);
  assert.ok(received > LONG_BYTES, `${received} of ${LONG_BYTES} bytes came`);
  check(before, memory(pids), "after the whole answer", context);
});

test("a handler that takes nothing of a long upload makes nobody hold it", async (context) => {
  const { server, pids } = await start(context);
  const before = memory(pids);
  const client = connect(server.port, "127.0.0.1");
  client.write(`POST /api/take HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${LONG_BYTES}\r\n\r\n`);
  const piece = Buffer.alloc(64 * 1024, 97);
  let sent = 0;
  const sending = (async () => {
    for (; sent < LONG_BYTES; sent += piece.length) {
      if (!client.write(piece)) await new Promise((resolve) => client.once("drain", resolve));
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, STANDSTILL_MS));
  assert.ok(sent < 16 * MIB, `${sent} bytes were taken of the client although the handler reads none`);
  check(before, memory(pids), "standing still", context);
  await ask(server, "/api/open");
  await sending;
  assert.deepEqual(await answerOf(client), { taken: LONG_BYTES });
  client.destroy();
  check(before, memory(pids), "after the whole upload", context);
});

test("a handler learns within 100 ms that its client has gone", async (context) => {
  const { server } = await start(context);
  for (let round = 0; round < 5; round += 1) {
    const client = connect(server.port, "127.0.0.1");
    client.write("GET /api/hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (;;) {
      const { workers } = await appStatus(server);
      if (workers[0].in_flight === 1) break;
    }
    const gone = Date.now();
    client.resetAndDestroy();
    let abortedAt = 0;
    while (abortedAt < gone) ({ abortedAt } = await ask(server, "/api/state"));
    assert.ok(abortedAt - gone <= 100, `the signal came after ${abortedAt - gone} ms`);
  }
});

function memory({ server, worker }) {
  return { server: resident(server), worker: resident(worker) };
}

function resident(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
}

function check(before, after, when, context) {
  const grown = { server: after.server - before.server, worker: after.worker - before.worker };
  context.diagnostic(`${when}: server ${mib(grown.server)}, worker ${mib(grown.worker)} more than before`);
  assert.ok(grown.server < SERVER_GROWTH_MAX, `${when}: the server holds ${mib(grown.server)} more`);
  assert.ok(grown.worker < WORKER_GROWTH_MAX, `${when}: the worker holds ${mib(grown.worker)} more`);
}

function mib(bytes) {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

async function ask(server, path) {
  const client = connect(server.port, "127.0.0.1");
  client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  const answer = await answerOf(client);
  client.destroy();
  return answer;
}

/** The JSON (or text) of an answer with a Content-Length. */
async function answerOf(client) {
  let text = "";
  for await (const bytes of client) {
    text += bytes.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    const length = /content-length: (\d+)/i.exec(text)?.[1];
    if (end > 0 && length && text.length >= end + 4 + Number(length)) break;
  }
  assert.match(text, /^HTTP\/1\.1 200 /);
  const body = text.slice(text.indexOf("\r\n\r\n") + 4);
  return body.startsWith("{") ? JSON.parse(body) : body;
}
