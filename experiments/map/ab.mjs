// `ab -n 1000 -c 100` against each way to serve the map, one after the other, with and without a limiter; writes a table in Markdown.
//
//     node experiments/map/ab.mjs [-n 1000] [-c 100] [--max-connections N] [--only NAME,…]
//
// onehop, nginx and MariaDB are found in PATH, Flask in `venv`. Each target gets a database of its own, whose connections are counted.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startDatabase } from "./database.mjs";

const FOLDER = fileURLToPath(new URL(".", import.meta.url)).replace(/\/$/, "");
const PATH = "/raw_data?swLat=49&swLng=11.5&neLat=51&neLng=14.5";
const POINTS = 1_000;
const START_MS = 30_000;
const POLL_MS = 20;
/** Requests before those that count: code is compiled and connections are made by then. */
const WARM_UP = 100;
/** How many of the first and of the last answers are compared. */
const EDGE = 100;
const COUNTS = ["200", "503", "without answer", "MB/s"];
const COLUMNS = ["target", "limiter", "time", ...COUNTS, "fastest", "slowest", `first ${EDGE}`, `last ${EDGE}`, "connections"];

const onehop = (file) => ["onehop", ["run", "--config", `measured/${file}`, "--control", "{work}/control"]];
const nginx = (file) => ["nginx", ["-p", "{work}", "-c", `{work}/${file}`]];
const flask = { MAP_SERVER: "venv/bin/python app.py" };
/** How each is started, what for, and whether it has a limiter. */
const TARGETS = [
  { name: "onehop", start: onehop("Onehopfile"), env: { MAP_APPLICATION: "handler.mjs" }, limiter: "adaptive" },
  { name: "onehop-express", start: onehop("Onehopfile"), env: { MAP_APPLICATION: "express.mjs" }, limiter: "adaptive" },
  { name: "onehop-flask", start: onehop("flask.Onehopfile"), env: flask, limiter: "adaptive" },
  { name: "onehop-flask-pretty", start: onehop("flask.Onehopfile"), env: { ...flask, MAP_JSON: "pretty" }, limiter: "adaptive" },
  { name: "nginx-express", start: nginx("nginx.conf"), file: "nginx.conf", limiter: "toobusy-js" },
  { name: "nginx-plain-express", start: nginx("nginx-plain.conf"), file: "nginx-plain.conf", limiter: "toobusy-js" },
  { name: "flask", start: ["venv/bin/python", ["app.py"]] },
  { name: "flask-pretty", start: ["venv/bin/python", ["app.py"]], env: { MAP_JSON: "pretty" } },
  { name: "gunicorn", start: ["venv/bin/gunicorn", ["app:app"]] },
];

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a program in this folder, and waits until it answers with all points; gives what ends it. */
async function start(name, words, env, address) {
  const child = spawn(name, words, { cwd: FOLDER, env: { ...process.env, ...env }, stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  const begun = Date.now();
  for (;;) {
    const response = await fetch(address).catch(() => undefined);
    const body = await response?.text();
    if (response?.ok) return { body, stop: () => (child.kill("SIGTERM"), ended) };
    if (child.exitCode !== null || !child.pid || Date.now() - begun > START_MS) {
      child.kill("SIGKILL");
      throw new Error(`${name} ${words.join(" ")} did not start`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** One load; what `onehop bench` says of it. */
async function ab(words) {
  const child = spawn("onehop", ["bench", "ab", ...words, "--runs", "1", "--json", "-"], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.on("data", (bytes) => (text += bytes));
  await once(child, "close");
  return JSON.parse(text).loads[0].runs[0];
}

/** The median of the answers in the first slices that have enough of them. */
function median(slices) {
  let [count, sum] = [0, 0];
  for (const { good, p50_us: p50 } of slices.filter((slice) => slice.good)) {
    if (count >= EDGE) break;
    [count, sum] = [count + good, sum + good * p50];
  }
  return count ? sum / count : NaN;
}

const milliseconds = (us) => (Number.isFinite(us) ? `${Math.round(us / 1_000)} ms` : "–");

/** One row: a target with its limiter, or without any. */
async function measure(target, hasLimiter, options, bodies) {
  const work = mkdtempSync(join(tmpdir(), "onehop-map-"));
  const socket = join(work, "sock");
  const [port, cluster] = [await freePort(), await freePort()];
  const names = Object.entries({ work, folder: FOLDER, port, cluster });
  const fill = (text) => names.reduce((filled, [name, value]) => filled.replaceAll(`{${name}}`, value), text);
  const env = { NODE_ENV: "production", MAP_SOCKET: socket, MAP_LIMIT: hasLimiter ? "adaptive" : "off", ...target.env };
  const running = [];
  const database = await startDatabase({ folder: work, socket, maxConnections: options["max-connections"] });
  try {
    if (target.file) {
      writeFileSync(join(work, target.file), fill(readFileSync(join(FOLDER, "measured", target.file), "utf8")));
      running.push(await start(process.execPath, ["cluster.mjs"], { ...env, PORT: cluster }, `http://127.0.0.1:${cluster}${PATH}`));
    }
    const address = `http://127.0.0.1:${port}${PATH}`;
    const [program, words] = target.start;
    running.push(await start(program, words.map(fill), { ...env, PORT: port }, address));
    bodies.set(target.name, running.at(-1).body);
    await ab(["-n", String(WARM_UP), "-c", options.c, address]);
    const { elapsed_s: elapsed, total, slices } = await ab(["-n", options.n, "-c", options.c, address]);
    const faults = Object.values(total.faults).reduce((sum, count) => sum + count, 0);
    const { min_us: fastest, max_us: slowest } = total.latency;
    const counts = [total.statuses[200] ?? 0, total.statuses[503] ?? 0, faults, Math.round(total.bytes_read / elapsed / 1e6)];
    const latencies = [fastest, slowest, median(slices), median(slices.toReversed())].map(milliseconds);
    // The connection that asks is one, too.
    const connections = (await database.connectionsAtMost()) - 1;
    return [target.name, hasLimiter ? target.limiter : "none", `${elapsed.toFixed(1)} s`, ...counts, ...latencies, connections];
  } finally {
    for (const each of running.reverse()) await each.stop();
    await database.signal("SIGKILL");
    rmSync(work, { recursive: true, force: true });
  }
}

const { values: options } = parseArgs({
  options: {
    n: { type: "string", short: "n", default: "1000" },
    c: { type: "string", short: "c", default: "100" },
    "max-connections": { type: "string" },
    only: { type: "string" },
  },
});
const bodies = new Map();
const line = (cells) => console.log(`| ${cells.join(" | ")} |`);
line(COLUMNS);
line(COLUMNS.map(() => "---"));
for (const target of TARGETS.filter(({ name }) => !options.only || options.only.split(",").includes(name))) {
  for (const hasLimiter of target.limiter ? [false, true] : [false]) line(await measure(target, hasLimiter, options, bodies));
}
const [[, first]] = bodies;
for (const [name, body] of bodies) {
  assert.equal(JSON.parse(body).length, POINTS, `${name} has other points`);
  if (name.endsWith("-pretty")) assert.deepEqual(JSON.parse(body), JSON.parse(first), `${name} has other points`);
  else assert.ok(body === first || [...bodies.keys()][0].endsWith("-pretty"), `${name} sends other bytes`);
}
