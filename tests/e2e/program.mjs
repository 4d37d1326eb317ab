// Starts the programs under test and ends them for certain: onehop, and Caddy beside it.
// It waits for states that the programs announce, never for a time.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The checkout's top folder. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The program under test: the release build unless the environment names another. */
export const ONEHOP = process.env.ONEHOP_PROGRAM ?? join(ROOT, "target/release/onehop");
/** Caddy itself, or nothing where it cannot be had. */
export const CADDY = process.env.ONEHOP_CADDY;
/** Where pictures go. */
export const OUTPUT = process.env.ONEHOP_E2E_OUTPUT ?? join(ROOT, "target/e2e");
mkdirSync(OUTPUT, { recursive: true });

const READY_MS = 15_000;

/** A folder that is removed when the test ends. */
export function workFolder(test) {
  const folder = mkdtempSync(join(tmpdir(), "onehop-e2e-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A port that is free now. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/**
 * Starts onehop with a configuration and waits for its `ready` event.
 * `prefix` wraps the command line (strace); `folder` receives the Onehopfile.
 */
export async function startOnehop(test, { text, folder, name = "Onehopfile", threads, prefix = [], env = {}, deadline = READY_MS }) {
  if (!existsSync(ONEHOP)) throw new Error(`${ONEHOP} is not there: cargo build --release -p onehop`);
  const file = join(folder, name);
  writeFileSync(file, text);
  const control = join(folder, "control");
  const line = [...prefix, ONEHOP, "run", "--config", file, "--log", "json", "--control", control];
  if (threads) line.push("--threads", String(threads));
  const child = spawn(line[0], line.slice(1), { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  const events = [];
  const waiting = [];
  const running = {
    child,
    control,
    file,
    events,
    exited: once(child, "exit").then(([code, signal]) => ({ code, signal })),
    /** The first event that fits, past or to come. */
    event(fits, from = 0) {
      const found = events.slice(from).find(fits);
      if (found) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ fits, resolve }));
    },
  };
  // Under a prefix (strace) the child is not onehop: the process that said it was starting is.
  test.after(() => {
    const { pid } = events.find((event) => event.event === "starting") ?? child;
    if (child.exitCode === null && child.signalCode === null) process.kill(pid, "SIGKILL");
  });
  child.stdout.resume();
  createInterface({ input: child.stderr }).on("line", (text) => {
    const event = eventIn(text);
    events.push(event);
    for (let index = waiting.length - 1; index >= 0; index -= 1) {
      if (waiting[index].fits(event)) waiting.splice(index, 1)[0].resolve(event);
    }
  });
  const ready = await Promise.race([
    running.event((event) => event.event === "ready"),
    running.exited,
    new Promise((resolve) => setTimeout(resolve, deadline, undefined).unref()),
  ]);
  if (ready?.event !== "ready") throw new Error(`onehop did not start:\n${events.map((event) => event.text).join("\n")}`);
  const listening = events.find((event) => event.event === "listening");
  running.port = Number(listening.address.split(":").at(-1));
  running.origin = `http://localhost:${running.port}`;
  return running;
}

function eventIn(text) {
  try {
    return { ...JSON.parse(text), text };
  } catch {
    return { event: "other", text };
  }
}

/** What `onehop status` says about the first application. */
export async function appStatus(server) {
  const { code, stdout, stderr } = await run(ONEHOP, ["status", "--json", "--control", server.control]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout).apps[0];
}

/** Starts Caddy with a Caddyfile and waits until it accepts at `port`. */
export async function startCaddy(test, { file, folder, port, env = {} }) {
  const child = spawn(CADDY, ["run", "--adapter", "caddyfile", "--config", file], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, ...env },
  });
  let said = "";
  child.stderr.on("data", (bytes) => (said = (said + bytes).slice(-20_000)));
  test.after(() => child.kill("SIGKILL"));
  const begun = Date.now();
  while (!(await accepts(port))) {
    if (child.exitCode !== null || Date.now() - begun > READY_MS) throw new Error(`Caddy did not start:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { child, port };
}

/** Whether somebody accepts connections there. */
export function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

/** Runs a program to its end. */
export async function run(program, words, options = {}) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const parts = { stdout: [], stderr: [] };
  child.stdout.on("data", (bytes) => parts.stdout.push(bytes));
  child.stderr.on("data", (bytes) => parts.stderr.push(bytes));
  const [code] = await once(child, "close");
  return { code, stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr).toString() };
}

