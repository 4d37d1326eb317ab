// What clients do to lanes: many tunnels, bodies that nobody reads, expectations, clients that leave. After each
// of it the same worker answers everybody else.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { appStatus, startOnehop, workFolder } from "./program.mjs";

const HANDLER = `
let aborted = 0;
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/ws") {
      const { socket, response } = onehop.upgradeWebSocket(request);
      socket.onmessage = ({ data }) => socket.send(data);
      return response;
    }
    if (pathname === "/late-ws") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const { socket, response } = onehop.upgradeWebSocket(request);
      socket.onmessage = ({ data }) => socket.send(data);
      return response;
    }
    if (pathname === "/echo") return new Response(request.body);
    if (pathname === "/count") return new Response(String((await request.arrayBuffer()).byteLength));
    if (pathname === "/never") {
      request.signal.addEventListener("abort", () => { aborted += 1; });
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    }
    if (pathname === "/long") return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(65536)); } }));
    return Response.json({ pid: process.pid, aborted });
  },
};
`;

const UPGRADE =
  "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const CLOSE = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);
const HELLO = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]);

test("tunnels, open and closed, take nothing from the bodies of others", async (context) => {
  const server = await start(context);
  const { pid } = await state(server);
  for (let round = 0; round < 6; round += 1) {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => opened(server)));
    await Promise.all(sockets.map((socket) => closed(socket)));
  }
  const idle = await Promise.all(Array.from({ length: 560 }, () => opened(server)));
  const last = idle.at(-1);
  last.write(HELLO);
  assert.equal((await until(last, (bytes) => bytes.length >= 4)).subarray(-2).toString(), "hi");
  assert.equal(await posted(server, 100_000), "100000");
  assert.equal(await posted(server, 5), "5");
  for (const socket of idle) socket.destroy();
  assert.equal((await state(server)).pid, pid, "the worker had to be replaced");
});

test("slow readers of long answers do not stop short ones", async (context) => {
  const server = await start(context);
  const slow = Array.from({ length: 400 }, () => {
    const client = connect(server.port, "127.0.0.1");
    client.pause();
    client.write("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client;
  });
  for (;;) {
    const { workers } = await appStatus(server);
    if (workers[0].requests > slow.length) break;
    await state(server);
  }
  // The slow ones read nothing until the end: what waits for one of them is never answered.
  await state(server);
  assert.equal(await posted(server, 1_000), "1000");
  for (const client of slow) client.destroy();
});

test("a client that waits to be asked for its body is asked, also where the answer begins before", async (context) => {
  const server = await start(context);
  const client = connect(server.port, "127.0.0.1");
  client.write("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
  const text = (await until(client, (bytes) => bytes.includes("0\r\n\r\n"))).toString();
  assert.match(text, /5\r\nhello\r\n0\r\n\r\n$/);
  client.destroy();
});

test("an upgrade whose request has a body is none, and costs nobody the worker", async (context) => {
  const server = await start(context);
  const { pid } = await state(server);
  const client = connect(server.port, "127.0.0.1");
  client.write(`GET /late-ws HTTP/1.1\r\n${UPGRADE}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`);
  client.write(HELLO);
  assert.doesNotMatch((await until(client, (bytes) => bytes.includes("\r\n\r\n"))).toString(), /^HTTP\/1\.1 101/);
  client.destroy();
  assert.equal((await state(server)).pid, pid);
});

test("a client that leaves while its body waits is noticed", async (context) => {
  const server = await start(context);
  const client = connect(server.port, "127.0.0.1");
  client.on("error", () => {});
  // More than the worker's window takes, and less than what then fits into the kernel's buffers: the end of a
  // client whose bytes do not fit anywhere does not arrive.
  client.write("POST /never HTTP/1.1\r\nHost: localhost\r\nContent-Length: 450000\r\n\r\n");
  await new Promise((resolve) => client.write(Buffer.alloc(450_000, 97), resolve));
  for (;;) {
    const { workers } = await appStatus(server);
    if (workers[0].in_flight === 1) break;
  }
  const gone = Date.now();
  client.resetAndDestroy();
  for (;;) {
    if ((await state(server)).aborted === 1) break;
    assert.ok(Date.now() - gone < 5_000, "the signal does not come");
  }
});

async function start(context) {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const text = "{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp ./server.mjs {\n\t\tconcurrency 2000\n\t}\n}\n";
  const server = await startOnehop(context, { folder, text, threads: 1 });
  await state(server);
  return server;
}

async function state(server) {
  const client = connect(server.port, "127.0.0.1");
  client.write("GET /state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const bytes = await until(client, (bytes) => bytes.includes("}"));
  client.destroy();
  return JSON.parse(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4).toString());
}

async function posted(server, length) {
  const client = connect(server.port, "127.0.0.1");
  client.write(`POST /count HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`);
  client.write(Buffer.alloc(length, 98));
  const bytes = await until(client, (bytes) => /\r\n\r\n\d+$/.test(bytes.toString("latin1")));
  client.destroy();
  return bytes.subarray(bytes.indexOf("\r\n\r\n") + 4).toString();
}

async function opened(server) {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`GET /ws HTTP/1.1\r\n${UPGRADE}\r\n`);
  assert.match((await until(socket, (bytes) => bytes.includes("\r\n\r\n"))).toString(), /^HTTP\/1\.1 101 /);
  return socket;
}

async function closed(socket) {
  socket.write(CLOSE);
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
}

/** What has come once it is enough. */
function until(socket, enough) {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const done = (settle, value) => {
      socket.off("data", take).off("close", end);
      socket.pause();
      settle(value);
    };
    const take = (more) => {
      bytes = Buffer.concat([bytes, more]);
      if (enough(bytes)) done(resolve, bytes);
    };
    const end = () => done(reject, new Error(`closed after ${JSON.stringify(bytes.toString("latin1").slice(0, 300))}`));
    socket.on("data", take).on("close", end);
    socket.resume();
  });
}
