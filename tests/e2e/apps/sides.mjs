// Starts an application of this folder by Node.js alone, or unchanged behind onehop, and asks both alike.
// It knows nothing of what an application answers; it never changes a file of one.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ONEHOP, accepts, appStatus, freePort, run, startOnehop, workFolder } from "../program.mjs";

/** The folder of the applications and of their packages. */
export const APPS = fileURLToPath(new URL(".", import.meta.url));
/** Who serves: the environment may ask for one of them alone. */
export const SIDES = (process.env.ONEHOP_SIDES ?? "alone,onehop").split(",");

const START_MS = 60_000;
const ANSWER_MS = 30_000;
const STATE_MS = 15_000;
/** What of the test's environment an application has, as onehop passes it on. */
const PASSED_ON = ["PATH", "HOME", "LANG", "TMPDIR"];

/** The program of a version of Node.js: 20, 22 or 24; without one, that which runs the tests. */
export function node(version) {
  if (version === undefined) return process.execPath;
  const path = join(APPS, "node_modules", `node-${version}`, "bin/node");
  if (!existsSync(path)) throw new Error(`${path} is not there: npm ci in tests/e2e/apps`);
  return path;
}

/**
 * Starts `file` with `args` on a side. `program` is the line that runs it (Node.js and its options), `env` its
 * variables, `workers` and `options` what the Onehopfile says besides.
 */
export async function start(test, side, settings) {
  const whole = { program: [node()], args: [], env: {}, cwd: APPS, workers: 1, options: [], ...settings };
  return side === "alone" ? startAlone(test, whole) : startServed(test, whole);
}

async function startAlone(test, { program, file, args, env, cwd }) {
  const port = await freePort();
  const passed = Object.fromEntries(PASSED_ON.map((name) => [name, process.env[name]]));
  const [first, ...words] = [...program, file, ...args];
  const child = spawn(first, words, {
    cwd,
    env: { ...passed, NODE_ENV: "production", PORT: String(port), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  test.after(() => child.kill("SIGKILL"));
  const said = lines(child);
  const exited = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${file} ended at once:\n${said.past.join("\n")}`);
    return accepts(port);
  }, () => `${file} never listened:\n${said.past.join("\n")}`);
  return {
    side: "alone",
    port,
    origin: `http://localhost:${port}`,
    said: said.past,
    line: said.line,
    exited,
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

async function startServed(test, { program, file, args, env, cwd, workers, options }) {
  const folder = workFolder(test);
  const variables = Object.entries(env).map(([name, value]) => `env ${name} ${quoted(value)}`);
  const inner = [`runtime ${program.map(quoted).join(" ")}`, `cwd ${quoted(cwd)}`, `workers ${workers}`, ...variables, ...options];
  const line = ["app", "*", join(cwd, file), ...args].map(quoted).join(" ").replace('"*"', "*");
  const text = (more) =>
    `{\n\tadmin off\n}\nhttp://localhost:0 {\n\t${line} {\n${[...inner, ...more].map((option) => `\t\t${option}\n`).join("")}\t}\n}\n`;
  const server = await startOnehop(test, { folder, text: text([]), deadline: START_MS });
  const output = ({ event, line: words }) => event === "app_output" && words;
  return {
    side: "onehop",
    server,
    port: server.port,
    origin: server.origin,
    exited: server.exited,
    get said() {
      return server.events.map(output).filter(Boolean);
    },
    line: (fits) => server.event((event) => output(event) && fits(event.line)).then(({ line: words }) => words),
    /** Until every worker answers. */
    whole: () =>
      until(async () => {
        const { workers: all } = await appStatus(server);
        return all.filter(({ state }) => state === "serving").length === workers;
      }, "not every worker came to serve"),
    status: () => appStatus(server),
    /** Replaces all workers, by a change of their environment. */
    async roll(word) {
      writeFileSync(server.file, text([`env ROLLED ${word}`]));
      return run(ONEHOP, ["reload", "--control", server.control]);
    },
    async stop() {
      server.child.kill("SIGTERM");
      return server.exited;
    },
  };
}

/** A word of an Onehopfile. */
function quoted(word) {
  return `"${String(word).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Lines of both outputs, past and to come. */
function lines(child) {
  const past = [];
  const waiting = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (text) => {
      past.push(text);
      for (let index = waiting.length - 1; index >= 0; index -= 1) {
        if (waiting[index].fits(text)) waiting.splice(index, 1)[0].resolve(text);
      }
    });
  }
  const line = (fits) => {
    const found = past.find(fits);
    return found === undefined ? new Promise((resolve) => waiting.push({ fits, resolve })) : Promise.resolve(found);
  };
  return { past, line };
}

/** Until a state is there; the complaint may be a function. */
export async function until(holds, complaint) {
  const begun = Date.now();
  while (!(await holds())) {
    if (Date.now() - begun > STATE_MS) throw new Error(typeof complaint === "function" ? complaint() : complaint);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Fields about the connection and the moment; the rest must be the same on both sides. */
const OF_THE_CONNECTION = new Set(["date", "connection", "keep-alive", "transfer-encoding"]);

/** One request on a connection of its own, with the same `Host` on every side. */
export async function ask(running, path, { method = "GET", headers = {}, body } = {}) {
  const request = httpRequest({
    port: running.port,
    host: "127.0.0.1",
    path,
    method,
    agent: false,
    headers: { Host: "localhost", ...headers },
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  request.end(body);
  const [answer] = await once(request, "response");
  const pieces = [];
  for await (const piece of answer) pieces.push(piece);
  const fields = [];
  for (let index = 0; index < answer.rawHeaders.length; index += 2) {
    const name = answer.rawHeaders[index];
    if (!OF_THE_CONNECTION.has(name.toLowerCase())) fields.push(`${name}: ${answer.rawHeaders[index + 1]}`);
  }
  return {
    status: answer.statusCode,
    headers: answer.headers,
    fields: fields.sort(),
    trailers: answer.rawTrailers,
    body: Buffer.concat(pieces),
    pieces: pieces.length,
  };
}

/** What of an answer is compared: all but the moment. */
export function comparable({ status, fields, trailers, body }) {
  // The length's field is the server's own: its name is written as usual, and it is not sent where RFC 9110, 8.6
  // forbids it, with 204.
  const length = /^content-length:/i;
  const kept = fields.filter((field) => status !== 204 || !length.test(field));
  return { status, fields: kept.map((field) => field.replace(length, "Content-Length:")).sort(), trailers, body: body.toString("latin1") };
}
