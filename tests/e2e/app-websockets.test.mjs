// Many WebSockets on two workers at once, with a client that others wrote. Every message comes back to the
// socket that sent it, in order, and every socket is closed as it should be.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import WebSocket from "ws";
import { Connection } from "./connection.mjs";
import { appStatus, startOnehop, workFolder } from "./program.mjs";

const SOCKETS = Number(process.env.ONEHOP_WEBSOCKETS ?? 50);
const MESSAGES = 10;
const WORKERS = 2;
const STATE_DEADLINE_MS = 10_000;
const MESSAGE_DEADLINE_MS = 20_000;

const HANDLER = `
export default {
  fetch(request) {
    if (request.headers.get("upgrade") !== "websocket") return new Response("plain\\n");
    const { socket, response } = globalThis.onehop.upgradeWebSocket(request);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send("worker " + process.pid);
    socket.onmessage = ({ data }) => socket.send(data);
    return response;
  },
};
`;

test(`${SOCKETS} WebSockets on ${WORKERS} workers: each of ${MESSAGES} messages comes back, all close cleanly`, async (context) => {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const server = await startOnehop(context, {
    folder,
    text: `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp /api/* ./server.mjs {\n\t\tworkers ${WORKERS}\n\t}\n}\n`,
  });
  // Whoever is ready first would get them all.
  await until(async () => (await appStatus(server)).workers.filter(({ state }) => state === "serving").length === WORKERS, "no two workers");
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, (_, index) => open(server.port, index)));
  const pids = [...new Set(sockets.map(({ pid }) => pid))];
  const shares = pids.map((pid) => sockets.filter((socket) => socket.pid === pid).length);
  assert.equal(pids.length, WORKERS, "not every worker has sockets");
  assert.ok(Math.min(...shares) >= SOCKETS / WORKERS / 4, `the workers have ${shares.join(" and ")} sockets`);

  // While they are all open, requests are answered beside them.
  const connection = await Connection.open(server.port);
  assert.equal((await connection.request("/api/plain")).body.toString(), "plain\n");
  connection.close();

  await Promise.all(sockets.map(talk));
  const ends = await Promise.all(sockets.map(close));
  assert.deepEqual(ends.filter(({ code }) => code !== 1000), []);

  const isQuiet = async () => (await appStatus(server)).workers.every(({ in_flight: inFlight }) => inFlight === 0);
  await until(isQuiet, "sockets that are closed are still counted");
  assert.equal((await appStatus(server)).failures, 0);
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  context.diagnostic(`the workers had ${shares.join(" and ")} sockets`);
});

async function until(holds, complaint) {
  const begun = Date.now();
  while (!(await holds())) assert.ok(Date.now() - begun < STATE_DEADLINE_MS, complaint);
}

/** A socket that has had the worker's first message. */
async function open(port, index) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/socket`, { headers: { Host: "localhost" }, perMessageDeflate: false });
  const received = [];
  const state = { socket, index, received, wake: null, failure: null };
  socket.on("message", (data, isBinary) => {
    received.push({ data, isBinary });
    state.wake?.();
  });
  socket.on("error", (error) => {
    state.failure = error;
    state.wake?.();
  });
  state.closed = once(socket, "close").then(([code, reason]) => ({ index, code, reason: String(reason) }));
  state.closed.then(() => state.wake?.());
  const { data } = await message(state);
  state.pid = /^worker (\d+)$/.exec(String(data))?.[1];
  assert.ok(state.pid, `the first message was ${data}`);
  return state;
}

/** Text and bytes, with a pause for the answer after every second one. */
async function talk(state) {
  const wanted = [];
  for (let number = 0; number < MESSAGES; number += 1) {
    const token = `${state.index}/${number}/${"x".repeat((number * 97) % 700)}`;
    const isBinary = number % 3 === 0;
    state.socket.send(isBinary ? Buffer.from(token) : token);
    wanted.push({ token, isBinary });
    if (number % 2 === 0) continue;
    while (wanted.length > 0) {
      const { token: expected, isBinary: expectedBinary } = wanted.shift();
      const { data, isBinary: gotBinary } = await message(state);
      assert.equal(String(data), expected, `socket ${state.index}`);
      assert.equal(gotBinary, expectedBinary, `socket ${state.index}`);
    }
  }
}

async function close(state) {
  state.socket.close(1000, "done");
  return state.closed;
}

/** The next message. */
async function message(state) {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    state.wake?.();
  }, MESSAGE_DEADLINE_MS);
  try {
    while (state.received.length === 0) {
      if (state.failure) throw state.failure;
      if (isLate) throw new Error(`socket ${state.index} waited ${MESSAGE_DEADLINE_MS} ms for a message`);
      if (state.socket.readyState === WebSocket.CLOSED) throw new Error(`socket ${state.index} was closed`);
      await new Promise((resolve) => (state.wake = resolve));
    }
    return state.received.shift();
  } finally {
    clearTimeout(timer);
  }
}
