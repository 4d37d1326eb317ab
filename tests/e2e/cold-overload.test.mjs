// A flood from the first moment on: a handler that computes for 20 ms, a server that has just been started with nothing
// configured, and 4 and 10 times as many requests as can be answered. What the worker does must be for clients that wait.
//
// With ONEHOP_COLD_RUNS=10 it is the long acceptance instead: 2, 4 and 10 times, each so often, against what Node alone
// answers in the same run; ONEHOP_COLD_LOADS=4,10 picks loads, ONEHOP_COLD_CORES=0 pins server and worker to a core (run
// the test itself under `taskset -c 1` then).
// Alone: the goodput of a server that has all cores.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { cpus } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { appStatus, startOnehop, workFolder } from "./program.mjs";

const RUNS = Number(process.env.ONEHOP_COLD_RUNS ?? 0);
const LOADS = (process.env.ONEHOP_COLD_LOADS ?? (RUNS > 0 ? "2,4,10" : "4,10")).split(",").map(Number);
const PIN = process.env.ONEHOP_COLD_CORES ? ["taskset", "-c", process.env.ONEHOP_COLD_CORES] : [];
const SECONDS = RUNS > 0 ? 8 : 6;
/** A goodput counts from here on. */
const FROM_SECOND = 2;
/** Of what can be answered. */
const GOODPUT_MIN = 0.9;
const COST_MS = 20;
/** The default queue's `wait`, and what an answer may take behind it. */
const P99_MAX_MS = 3_000 + 1_000;
/** The unit of /proc/stat (USER_HZ). */
const TICK_MS = 10;

const SPIN = `
// 20 ms of the processor's time, however busy the machine is.
export function spin() {
  const start = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(start);
    if (user + system >= ${COST_MS * 1_000}) return;
  }
}
`;
const HANDLER = `
import { spin } from "./spin.mjs";
let begun = 0;
export default {
  fetch() {
    begun += 1;
    spin();
    // How long it has stood idle until now, in milliseconds.
    return Response.json({ begun, idle: performance.eventLoopUtilization().idle });
  },
};
`;
const NODE_ALONE = `
import { createServer } from "node:http";
import { spin } from "./spin.mjs";
const server = createServer((_, response) => { spin(); response.end("done"); });
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

for (const load of LOADS) {
  for (let run = 1; run <= Math.max(1, RUNS); run += 1) {
    test(`from a cold start ${load} times of what can be answered leave the goodput whole, run ${run}`, async (context) => {
      const folder = workFolder(context);
      writeFileSync(join(folder, "spin.mjs"), SPIN);
      const capacity = RUNS > 0 ? await nodeAlone(context, folder) : 1_000 / COST_MS;
      writeFileSync(join(folder, "server.mjs"), HANDLER);
      const text = "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tapp ./server.mjs {\n\t\tworkers 1\n\t}\n}\n";
      const server = await startOnehop(context, { folder, text, prefix: PIN });
      const flood = new Flood(server.port, load * capacity);
      const ready = server.event(({ event }) => event === "app_ready");
      await flood.until(FROM_SECOND * 1_000);
      await ready;
      const [{ pid }] = (await appStatus(server)).workers;
      const before = waits(server.child.pid);
      await flood.until(SECONDS * 1_000);
      flood.end();
      const after = waits(server.child.pid);
      const period = (SECONDS - FROM_SECOND) * 1_000;
      const delayed = (after.ready - before.ready) / period;
      const stolen = (after.stolen - before.stolen) / period;
      const { goodput, p99, statuses, idle, useful } = flood.seen();
      const share = goodput / capacity;
      const status = await appStatus(server);
      context.diagnostic(
        `capacity ${capacity.toFixed(1)}/s, goodput ${goodput.toFixed(1)}/s (${share.toFixed(2)}), p99 ${p99.toFixed(0)} ms, `
        + `idle ${idle.toFixed(2)}, delayed ${delayed.toFixed(2)}, stolen ${stolen.toFixed(2)}, useful ${useful.toFixed(2)}, ${JSON.stringify(Object.fromEntries(statuses))}`,
      );
      assert.deepEqual(status.workers.map((worker) => worker.pid), [pid], "the worker was replaced");
      assert.equal(status.failures, 0, server.events.map((event) => event.text).join("\n"));
      assert.deepEqual([...statuses.keys()].filter((one) => one !== 200 && one !== 503), []);
      // A machine that its host stops for half of the time is given twice the time.
      const p99Max = P99_MAX_MS / (1 - Math.min(stolen, 0.9));
      assert.ok(p99 <= p99Max, `99 % of the good answers took up to ${p99} ms; ${stolen} of the time was stolen`);
      // However much of a processor the worker got, from the system and from the machine's host: it never stood idle while
      // the server could run, and worked for clients that were answered.
      assert.ok(
        idle <= 1 - GOODPUT_MIN + delayed + stolen,
        `the worker stood idle for ${idle} of the time; the server waited to run for ${delayed}, ${stolen} was stolen`,
      );
      assert.ok(useful >= GOODPUT_MIN, `${useful} of what it did was for good answers`);
      if (RUNS > 0) assert.ok(share >= GOODPUT_MIN, `goodput ${goodput}/s where Node alone answers ${capacity}/s`);
    });
  }
}

/**
 * Milliseconds until now for which this process was ready to run and did not (proc(5), schedstat), and, as a mean over the
 * processors, for which the machine's host had given them to others (`steal` in /proc/stat).
 */
function waits(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const waited = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[1]));
  const steal = Number(readFileSync("/proc/stat", "utf8").split(/\s+/, 9)[8]);
  return { ready: waited.reduce((sum, one) => sum + one, 0) / 1e6, stolen: (steal * TICK_MS) / cpus().length };
}

/** Requests at even distances, whether or not earlier ones are answered; a connection is used again. */
class Flood {
  #port;
  #rate;
  #begun = performance.now();
  #sent = 0;
  #idle = [];
  #all = new Set();
  #answers = [];
  #over = false;

  constructor(port, rate) {
    this.#port = port;
    this.#rate = rate;
  }

  /** Goes on until so long after its begin. */
  async until(milliseconds) {
    for (;;) {
      const now = performance.now() - this.#begun;
      if (now >= milliseconds) return;
      for (const due = (now * this.#rate) / 1_000; this.#sent < due; this.#sent += 1) {
        this.#ask(this.#begun + (this.#sent * 1_000) / this.#rate);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  end() {
    this.#over = true;
    for (const socket of this.#all) socket.destroy();
  }

  seen() {
    const statuses = new Map();
    for (const { status } of this.#answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const good = this.#answers.filter(({ status }) => status === 200);
    const took = good.map(({ at, due }) => at - due).sort((a, b) => a - b);
    const counted = good.filter(({ at }) => at - this.#begun >= FROM_SECOND * 1_000);
    const [first, last] = [counted.at(0), counted.at(-1)];
    return {
      goodput: counted.length / (SECONDS - FROM_SECOND),
      /** Of the time between the first and the last of these answers, and of the requests that were begun there. */
      idle: counted.length > 1 ? (last.idle - first.idle) / (last.at - first.at) : 1,
      useful: counted.length > 1 ? (counted.length - 1) / (last.begun - first.begun) : 0,
      p99: took[Math.floor(took.length * 0.99)] ?? Infinity,
      statuses,
    };
  }

  #ask(due) {
    const socket = this.#idle.pop() ?? this.#connect();
    socket.due = due;
    socket.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }

  #connect() {
    const socket = connect(this.#port, "127.0.0.1");
    this.#all.add(socket);
    socket.setNoDelay(true);
    let said = "";
    socket.on("data", (bytes) => {
      said += bytes.toString("latin1");
      const end = said.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(said)?.[1] ?? 0);
      if (said.length < end + 4 + length) return;
      const status = Number(said.slice(9, 12));
      const told = status === 200 ? JSON.parse(said.slice(end + 4, end + 4 + length)) : {};
      this.#answers.push({ status, at: performance.now(), due: socket.due, ...told });
      said = "";
      socket.due = null;
      this.#idle.push(socket);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#all.delete(socket);
      this.#idle = this.#idle.filter((one) => one !== socket);
      if (!this.#over && socket.due !== null) this.#answers.push({ status: 0, at: performance.now(), due: socket.due });
    });
    return socket;
  }
}

/** Answers a second of Node's own server with the same handler, four clients at a time. */
async function nodeAlone(context, folder) {
  writeFileSync(join(folder, "alone.mjs"), NODE_ALONE);
  const line = [...PIN, process.execPath, join(folder, "alone.mjs")];
  const child = spawn(line[0], line.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  const [port] = await once(createInterface({ input: child.stdout }), "line");
  const begun = performance.now();
  let answered = 0;
  const client = async () => {
    while (performance.now() - begun < 2_000) {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      await response.text();
      answered += 1;
    }
  };
  await Promise.all([client(), client(), client(), client()]);
  const rate = (answered * 1_000) / (performance.now() - begun);
  child.kill("SIGKILL");
  return rate;
}
