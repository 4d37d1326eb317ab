// Many clients of socket.io in one process, driven over the channel to the test: each message names a step and
// is answered once all clients have done it. What a client does not get in time fails the step.

import { Agent } from "node:http";
import { io } from "socket.io-client";

const STEP_MS = 60_000;
const MESSAGES = 4;
/** Addresses of loopback that clients of `addresses` come from. */
const ADDRESSES = 40;

let clients = [];
let said = [];

const STEPS = {
  /** Connects them all at once; they begin by polling, and go over to a WebSocket unless told otherwise. */
  async connect({ port, count, transports, cookies, addresses, query }) {
    const agents = addresses ? Array.from({ length: ADDRESSES }, (_, index) => agent(`127.0.${1 + (index % 4)}.${1 + index}`)) : [];
    clients = Array.from({ length: count }, (_, index) => {
      const socket = io(`http://localhost:${port}`, {
        forceNew: true,
        transports,
        withCredentials: cookies,
        query: query ? { client: `client-${index}` } : {},
        agent: agents[index % ADDRESSES],
        reconnectionDelay: 50,
        reconnectionDelayMax: 500,
      });
      return client(socket, index);
    });
    await Promise.all(clients.map(({ greeted }) => greeted));
    await Promise.all(clients.map(({ upgraded }) => (transports ? null : upgraded)));
    return clients.map(({ pid, began, socket }) => ({ pid, began, now: socket.io.engine.transport.name }));
  },

  /** Text, an object and bytes go to the worker and come back, each to whoever sent it. */
  async talk() {
    await Promise.all(clients.map(talk));
    return clients.length * MESSAGES;
  },

  /** One client of each worker says something: all clients of that worker hear it, and nobody else. */
  async broadcast() {
    said = [];
    const pids = [...new Set(clients.map(({ pid }) => pid))];
    for (const pid of pids) clients.find((one) => one.pid === pid).socket.emit("say", `from ${pid}`);
    await until(() => said.length >= clients.length);
    return said.filter(({ index, text }) => text !== `from ${clients[index].pid}`).length + said.length - clients.length;
  },

  /** Until every client has come back, to a process that it did not know. */
  async again() {
    await until(() => clients.every(({ pids, socket }) => pids.size > 1 && socket.connected));
    return clients.map(({ pid, ends }) => ({ pid, ends }));
  },

  async close() {
    const ends = clients.map(({ socket }) => new Promise((resolve) => socket.once("disconnect", resolve)));
    for (const { socket } of clients) socket.disconnect();
    return tally(await Promise.all(ends));
  },
};

process.on("message", async ({ step, ...settings }) => {
  const timer = setTimeout(() => process.send({ error: `${step} took over ${STEP_MS} ms: ${complaint()}` }), STEP_MS);
  try {
    process.send({ result: await STEPS[step](settings) });
  } catch (error) {
    process.send({ error: error.stack });
  } finally {
    clearTimeout(timer);
  }
});

/** A client with what it has seen. */
function client(socket, index) {
  const one = { socket, index, pid: null, pids: new Set(), began: null, ends: [], faults: [] };
  one.greeted = new Promise((resolve) => {
    socket.on("worker", (pid) => {
      one.pid = pid;
      one.pids.add(pid);
      resolve();
    });
  });
  // A client that connects again has another engine.
  one.upgraded = new Promise((resolve) => {
    socket.io.on("open", () => {
      const { engine } = socket.io;
      one.began = engine.transport.name;
      engine.once("upgrade", resolve);
    });
  });
  socket.on("disconnect", (reason) => one.ends.push(reason));
  socket.on("said", (text) => said.push({ index, text }));
  socket.on("connect_error", (error) => one.faults.push(String(error.description ?? error)));
  return one;
}

async function talk({ socket, index }) {
  for (let number = 0; number < MESSAGES; number += 1) {
    const token = `${index}/${number}/${"x".repeat((index * 31 + number * 97) % 900)}`;
    const value = [token, { token }, Buffer.from(token)][number % 3];
    const back = await socket.timeout(STEP_MS).emitWithAck("echo", value);
    const got = Buffer.isBuffer(back) ? back.toString() : (back.token ?? back);
    if (got !== token || Buffer.isBuffer(back) !== Buffer.isBuffer(value)) throw new Error(`client ${index}: ${token} came back as ${got}`);
  }
}

function agent(localAddress) {
  return new Agent({ keepAlive: true, localAddress });
}

async function until(holds) {
  const begun = Date.now();
  while (!holds() && Date.now() - begun < STEP_MS) await new Promise((resolve) => setTimeout(resolve, 5));
}

function complaint() {
  const open = clients.filter(({ pid }) => pid === null).length;
  return `${open} of ${clients.length} were never greeted; ${JSON.stringify(tally(clients.flatMap(({ faults, ends }) => [...faults, ...ends])))}`;
}

/** How often each word stands in a list. */
function tally(words) {
  const counts = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
