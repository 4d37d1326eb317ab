// WebSockets: each of many clients sends a message and waits until it comes back. Writes a table in Markdown.
//
//     taskset -c 1 node experiments/handlers-in-server/live.mjs [--connections 64] [--seconds 2] [--rounds 12]
//
// onehop is found in PATH. Each server is started anew in each round, in random order, on core 0. Figures are medians of the rounds;
// CPU time is that of all processes of a server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";

const FOLDER = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
const BUN = join(FOLDER, "node_modules/@oven/bun-linux-x64/bin/bun");
const MESSAGE = "x".repeat(100);
const WARM_UP_MS = 2_000;
const START_MS = 30_000;
const POLL_MS = 20;

const onehop = (runtime) => ["onehop", ["run", "--config", "measured/Onehopfile", "--control", "{work}/control"], { APPLICATION: "handler.mjs", RUNTIME: runtime }];
const SERVERS = {
  onehop: onehop("node"),
  "onehop-bun": onehop(BUN),
  fastify: [process.execPath, ["fastify.mjs"]],
  bun: [BUN, ["bun-serve.mjs"]],
};

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a server on core 0, and waits until it answers. */
async function start([program, words, more], work) {
  const port = await freePort();
  const env = { ...process.env, NODE_ENV: "production", STORE: join(work, "store"), STORE_FLUSH: "off", PORT: String(port), ...more };
  const filled = words.map((word) => word.replaceAll("{work}", work));
  const child = spawn("taskset", ["-c", "0", program, ...filled], { cwd: FOLDER, env, stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  const started = Date.now();
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/local`).catch(() => undefined);
    if (response?.ok) return { port, pid: child.pid, stop: () => (child.kill("SIGTERM"), ended) };
    if (child.exitCode !== null || Date.now() - started > START_MS) throw new Error(`${program} ${filled.join(" ")} did not start`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The processes below this one, and it. */
function family(pid) {
  const parents = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      return [[Number(name), Number(readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1).split(" ")[1])]];
    } catch {
      return [];
    }
  });
  const all = [pid];
  for (const member of all) all.push(...parents.filter(([, parent]) => parent === member).map(([child]) => child));
  return all;
}

/** Microseconds of CPU time that they have had. */
function cpu(pids) {
  const tasks = pids.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}/schedstat`));
  return tasks.reduce((sum, file) => sum + Number(readFileSync(file, "utf8").split(" ")[0]) / 1_000, 0);
}

/** Clients that send the next message when the one before has come back. `latencies` are microseconds, once it is set. */
async function connect(port, connections) {
  const load = { latencies: undefined };
  const sockets = Array.from({ length: connections }, () => new WebSocket(`ws://127.0.0.1:${port}/live`, { perMessageDeflate: false }));
  await Promise.all(sockets.map((socket) => once(socket, "open")));
  for (const socket of sockets) {
    let sent;
    const send = () => {
      sent = performance.now();
      socket.send(MESSAGE);
    };
    socket.on("message", (data) => {
      if (data.length !== MESSAGE.length) throw new Error("another message came back");
      load.latencies?.push((performance.now() - sent) * 1_000);
      send();
    });
    send();
  }
  load.end = () => sockets.forEach((socket) => socket.terminate());
  return load;
}

async function measure(server, { connections, seconds }) {
  const work = mkdtempSync(join(tmpdir(), "onehop-live-"));
  const running = await start(server, work);
  try {
    const load = await connect(running.port, Number(connections));
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    const pids = family(running.pid);
    const [before, begun] = [cpu(pids), performance.now()];
    load.latencies = [];
    await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1_000));
    const { latencies } = load;
    const [used, took] = [cpu(pids) - before, performance.now() - begun];
    load.end();
    latencies.sort((one, other) => one - other);
    const at = (share) => latencies[Math.floor(latencies.length * share)];
    return { rate: (latencies.length / took) * 1_000, cpu: used / latencies.length, p50: at(0.5), p99: at(0.99) };
  } finally {
    await running.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}

const { values: options } = parseArgs({
  options: {
    connections: { type: "string", default: "64" },
    seconds: { type: "string", default: "2" },
    rounds: { type: "string", default: "12" },
  },
});
const found = Object.fromEntries(Object.keys(SERVERS).map((name) => [name, []]));
for (let round = 0; round < Number(options.rounds); round += 1) {
  const order = Object.keys(SERVERS).map((name) => [Math.random(), name]).sort();
  for (const [, name] of order) found[name].push(await measure(SERVERS[name], options));
}
console.log("| server | messages per second | CPU per message | onehop's share of it | p50 | p99 |\n| --- | --- | --- | --- | --- | --- |");
for (const [name, rounds] of Object.entries(found)) {
  const of = (figure) => median(rounds.map((round) => round[figure]));
  const shares = rounds.map((round, number) => found.onehop[number].cpu / round.cpu).sort((one, other) => one - other);
  const share = `${median(shares).toFixed(2)} (${shares[0].toFixed(2)} to ${shares.at(-1).toFixed(2)})`;
  console.log(`| ${name} | ${Math.round(of("rate"))} | ${of("cpu").toFixed(1)} us | ${share} | ${Math.round(of("p50"))} us | ${Math.round(of("p99"))} us |`);
}
