// The handlers in the web server of experiments/ as a user has them: the same bodies from every variant, WebSockets, and a load
// during which onehop is asked, reloaded, given other workers and stopped. `npm ci` in the experiment's folder comes first.
// Needs: nginx, mariadb-server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket } from "ws";
import { isInstalled, startDatabase } from "../../experiments/handlers-in-server/database.mjs";
import { ONEHOP, ROOT, accepts, appStatus, freePort, run, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "experiments/handlers-in-server");
const BUN = join(EXAMPLE, "node_modules/@oven/bun-linux-x64/bin/bun");
const NGINX = existsSync("/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx";
const READY_MS = 15_000;
const VALUE = "a value, and café";

const ANSWERS = [
  { path: "/local", status: 200, type: "application/json", body: '{"ok":true,"hello":"world"}' },
  { path: "/item/42", status: 200, type: "application/json", body: '{"id":"42","name":"Item 42","tags":["small","blue"]}' },
  { path: "/item/caf%C3%A9", status: 200, type: "application/json", body: '{"id":"café","name":"Item café","tags":["small","blue"]}' },
  { path: "/store/item-7", status: 200, type: "text/plain", body: '{"id":"7","name":"Item 7","tags":["small","blue"]}' },
  { path: "/store/missing", status: 404, type: "application/json", body: '{"error":"not found"}' },
  { path: "/missing", status: 404, type: "application/json", body: '{"error":"not found"}' },
  { path: "/store/new", put: VALUE, status: 200, type: "application/json", body: '{"key":"new","bytes":18}' },
  { path: "/store/new", status: 200, type: "text/plain", body: VALUE },
  { path: "/store/long", put: "x".repeat(65_537), status: 413, type: "application/json", body: '{"error":"value too long"}' },
  { path: "/store/long", status: 404, type: "application/json", body: '{"error":"not found"}' },
];

/** A folder with the example, its packages, and room for stores. */
function copyExample(context) {
  const folder = workFolder(context);
  for (const part of readdirSync(EXAMPLE)) {
    if (part !== "node_modules" && part !== "data") cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(EXAMPLE, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** The environment of a server with a store of its own. */
function withStore(folder, more = {}) {
  return { ...process.env, NODE_ENV: "production", STORE: mkdtempSync(join(folder, "store-")), STORE_FLUSH: "off", ...more };
}

async function waitFor(what, fits) {
  const begun = Date.now();
  for (;;) {
    const found = await fits();
    if (found) return found;
    assert.ok(Date.now() - begun < READY_MS, `${what}: not within ${READY_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A server without onehop; its origin. */
async function startAlone(context, folder, words, more) {
  const port = await freePort();
  const env = withStore(folder, { ...more, PORT: String(port) });
  // A group of its own: QOper8's processes are in it, too.
  const child = spawn(words[0], words.slice(1), { cwd: folder, env, stdio: ["ignore", "ignore", "inherit"], detached: true });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  context.after(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
    await exited;
  });
  await waitFor(words.join(" "), () => {
    assert.equal(child.exitCode, null, `${words.join(" ")} ended`);
    return accepts(port);
  });
  return `http://127.0.0.1:${port}`;
}

/** nginx with one of the measured configurations. */
async function startNginx(context, folder, name, application = "") {
  const work = mkdtempSync(join(folder, "nginx-"));
  const port = await freePort();
  const filled = readFileSync(join(folder, "measured", name), "utf8")
    .replaceAll("{work}", work)
    .replaceAll("{port}", String(port))
    .replaceAll("{application}", application);
  writeFileSync(join(work, name), filled);
  const child = spawn(NGINX, ["-p", work, "-c", join(work, name)], { stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  context.after(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  await waitFor(name, () => accepts(port));
  return `http://127.0.0.1:${port}`;
}

/** onehop with a measured configuration, in a folder of its own beside the application. */
async function startMeasured(context, folder, env) {
  const own = mkdtempSync(join(folder, "onehop-"));
  const text = readFileSync(join(folder, "measured/Onehopfile"), "utf8");
  const all = withStore(folder, { ...env, PORT: String(await freePort()) });
  await startOnehop(context, { folder: own, text: `{\n\tadmin off\n}\n${text}`, env: all });
  // The site's name is the address: another one would be a host that is not served.
  return `http://127.0.0.1:${all.PORT}`;
}

async function check(name, origin, answers = ANSWERS) {
  for (const { path, put, status, type, body } of answers) {
    const init = put === undefined ? {} : { method: "PUT", body: put, headers: { "Content-Type": "text/plain" } };
    const response = await fetch(origin + path, init);
    const place = `${name} ${init.method ?? "GET"} ${path}`;
    assert.deepEqual([response.status, await response.text()], [status, body], place);
    assert.ok(response.headers.get("content-type").startsWith(type), `${place}: ${response.headers.get("content-type")}`);
  }
}

const ROWS = ANSWERS.filter(({ path }) => path.startsWith("/store/")).map((answer) => ({ ...answer, path: answer.path.replace("/store/", "/row/") }));

/** The streamed body, whose bytes all variants share. */
async function streamed(origin) {
  return Buffer.from(await (await fetch(`${origin}/stream`)).arrayBuffer());
}

async function sameFromAll(origins) {
  const first = await streamed(origins[0][1]);
  assert.equal(first.length, 65_536);
  for (const [name, origin] of origins) {
    await check(name, origin);
    assert.ok(first.equals(await streamed(origin)), `${name} /stream`);
  }
}

test("under onehop the fetch handler and Fastify send the same bodies, on Node.js and on Bun", async (context) => {
  const folder = copyExample(context);
  const origins = [];
  for (const APPLICATION of ["handler.mjs", "fastify.mjs"]) {
    for (const RUNTIME of ["node", BUN]) {
      origins.push([`${APPLICATION} on ${RUNTIME}`, await startMeasured(context, folder, { APPLICATION, RUNTIME })]);
    }
  }
  await sameFromAll(origins);
  for (const [name, origin] of origins) await echoes(name, origin);
});

test("Fastify and Bun.serve, alone and with QOper8, send the same bodies", async (context) => {
  const folder = copyExample(context);
  const fastify = await startAlone(context, folder, [process.execPath, "fastify.mjs"]);
  const bun = await startAlone(context, folder, [BUN, "bun-serve.mjs"]);
  const origins = [["fastify", fastify], ["bun", bun]];
  for (const [name, words] of [["fastify", [process.execPath, "fastify-qoper8.mjs"]], ["bun", [BUN, "bun-qoper8.mjs"]]]) {
    for (const QOPER8 of ["cp", "wt"]) {
      origins.push([`${name} with qoper8-${QOPER8}`, await startAlone(context, folder, words, { QOPER8, POOL: "2" })]);
    }
  }
  await sameFromAll(origins);
  await echoes("fastify", fastify);
  await echoes("bun", bun);
});

test("rows of MariaDB are read and written alike, and are a 503 once the database is gone", { skip: !isInstalled() }, async (context) => {
  const folder = copyExample(context);
  const DATABASE_SOCKET = join(folder, "sock");
  const database = await startDatabase({ folder, socket: DATABASE_SOCKET });
  context.after(() => database.signal("SIGKILL"));
  const origins = [
    ["onehop", await startMeasured(context, folder, { APPLICATION: "handler.mjs", RUNTIME: "node", DATABASE_SOCKET })],
    ["fastify", await startAlone(context, folder, [process.execPath, "fastify.mjs"], { DATABASE_SOCKET })],
    ["bun", await startAlone(context, folder, [BUN, "bun-serve.mjs"], { DATABASE_SOCKET })],
  ];
  for (const [name, origin] of origins) {
    await check(name, origin, ROWS);
    await database.ask("DELETE FROM store.entries WHERE name = 'new'");
  }
  await database.signal("SIGKILL");
  const gone = { path: "/row/item-7", status: 503, type: "application/json", body: '{"error":"the database does not answer"}' };
  await Promise.all(origins.map(([name, origin]) => check(name, origin, [gone])));
});

test("nginx sends the same bodies: before Fastify, as its author had it, and alone", async (context) => {
  const folder = copyExample(context);
  for (const name of ["nginx-proxy.conf", "nginx-author.conf"]) {
    const application = new URL(await startAlone(context, folder, [process.execPath, "fastify.mjs"])).port;
    const origin = await startNginx(context, folder, name, application);
    // Fastify refuses a long body before all of it has come, and nginx then may answer 502.
    await check(name, origin, ANSWERS.filter(({ path }) => path !== "/store/long"));
    assert.equal((await streamed(origin)).length, 65_536, name);
    if (name === "nginx-proxy.conf") await echoes(name, origin);
  }
  await check("nginx.conf", await startNginx(context, folder, "nginx.conf"), ANSWERS.slice(0, 1));
});

/** Texts and bytes come back over one WebSocket, in order and as what they were. */
async function echoes(name, origin) {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/live`, { handshakeTimeout: READY_MS });
  const sent = ["first", "café", Buffer.from([0, 1, 254, 255]), "x".repeat(10_000)];
  const came = await new Promise((resolve, reject) => {
    const messages = [];
    socket.on("open", () => sent.forEach((message) => socket.send(message)));
    socket.on("message", (data, isBinary) => {
      messages.push(isBinary ? data : data.toString());
      if (messages.length === sent.length) resolve(messages);
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`${name}: closed after ${messages.length} messages`)));
  });
  assert.deepEqual(came, sent, name);
  socket.terminate();
}

test("the Onehopfile of the example starts all three, on one store", async (context) => {
  const folder = copyExample(context);
  const ports = { 8080: await freePort(), 8081: await freePort(), 8082: await freePort() };
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8").replaceAll(/localhost:(808\d)/g, (_, port) => `localhost:${ports[port]}`);
  await startOnehop(context, { folder, text: `{\n\tadmin off\n}\n${text}`, env: withStore(folder) });
  for (const port of Object.values(ports)) await check(String(port), `http://localhost:${port}`, ANSWERS.slice(0, 4));
  await fetch(`http://localhost:${ports[8080]}/store/shared`, { method: "PUT", body: "by the first" });
  for (const port of Object.values(ports)) {
    assert.equal(await (await fetch(`http://localhost:${port}/store/shared`)).text(), "by the first");
  }
});

/** A load that runs until it is ended, and then says what it got. */
function startLoad(context, url) {
  const words = ["bench", url, "-c", "8", "-d", "60s", "--runs", "1", "--warm-up", "0s", "--quiet", "--json", "-"];
  const child = spawn(ONEHOP, words, { stdio: ["ignore", "pipe", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  const parts = [];
  child.stdout.on("data", (bytes) => parts.push(bytes));
  const closed = new Promise((resolve) => child.once("close", resolve));
  return {
    async end() {
      child.kill("SIGINT");
      await closed;
      return totals(JSON.parse(Buffer.concat(parts).toString()));
    },
  };
}

/** The totals of the only run in a report. */
function totals(report) {
  const found = [];
  const look = (value) => {
    if (value === null || typeof value !== "object") return;
    if (value.total?.faults) found.push(value.total);
    else Object.values(value).forEach(look);
  };
  look(report);
  assert.equal(found.length, 1, "one run in the report");
  return found[0];
}

async function startLoaded(context) {
  const folder = copyExample(context);
  mkdirSync(join(folder, "server"));
  const port = await freePort();
  const text = (workers) => `{
\tadmin off
}
http://localhost:${port} {
\tapp ../handler.mjs {
\t\tworkers ${workers}
\t\tenv_pass STORE STORE_FLUSH
\t}
}
`;
  const server = await startOnehop(context, { folder: join(folder, "server"), text: text(1), env: withStore(folder) });
  return { server, text, load: startLoad(context, `http://localhost:${port}/local`) };
}

/** Waits until so many workers serve, none of them with a process id in `old`; their process ids. */
async function waitForWorkers(server, count, old = []) {
  return waitFor(`${count} workers`, async () => {
    const { workers } = await appStatus(server);
    const pids = workers.map(({ pid }) => pid);
    const serving = workers.length === count && workers.every(({ state }) => state === "serving");
    return serving && !pids.some((pid) => old.includes(pid)) && pids;
  });
}

test("status, a reload and another number of workers fail no request of a load", async (context) => {
  const { server, text, load } = await startLoaded(context);
  const control = ["--control", server.control];
  const succeeds = async (...words) => {
    const { code, stderr } = await run(ONEHOP, [...words, ...control]);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
  };
  await waitForWorkers(server, 1);
  writeFileSync(server.file, text(2));
  await succeeds("reload");
  const old = await waitForWorkers(server, 2);
  await succeeds("reload", "--restart");
  await waitForWorkers(server, 2, old);
  await succeeds("workers", "3");
  await waitForWorkers(server, 3);
  await succeeds("workers", "1");
  await waitForWorkers(server, 1);
  await succeeds("status");
  const total = await load.end();
  assert.ok(total.good > 100, `${total.good} good answers`);
  assert.equal(total.unexpected, 0);
  assert.deepEqual(Object.entries(total.faults).filter(([, count]) => count > 0), []);
});

test("a stop under load finishes what has begun: no answer is cut off or an error", async (context) => {
  const { server, load } = await startLoaded(context);
  await waitForWorkers(server, 1);
  await waitFor("answers", async () => (await fetch(`${server.origin}/local`)).ok);
  const { code, stderr } = await run(ONEHOP, ["stop", "--control", server.control]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  const total = await load.end();
  assert.ok(total.good > 0);
  assert.equal(total.unexpected, 0, JSON.stringify(total.statuses));
  assert.deepEqual([total.faults.truncated, total.faults.malformed, total.faults.timed_out], [0, 0, 0]);
});
