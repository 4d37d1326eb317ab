// Runs packs in a root directory that holds nothing else: no /dev, no /proc, no libraries, no temporary folder.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import { ONEHOP, run, workFolder } from "./program.mjs";

/** An onehop that needs no libraries: in an empty root there are none. */
export const STATIC = process.env.ONEHOP_STATIC ?? ONEHOP;
/** Where a pack unpacks in an empty root. */
export const PLACE = "/var/cache/onehop";
/** How long is waited for anything. */
const DEADLINE_MS = 60_000;

/** Why there can be no such test here, or false. */
export const skip = (() => {
  if (process.getuid() !== 0) return "only root may change the root directory";
  if (!existsSync(STATIC)) return `${STATIC} is not there`;
  // The kind of a segment that names a loader (PT_INTERP) is 3.
  const bytes = readFileSync(STATIC);
  const at = Number(bytes.readBigUInt64LE(32));
  const kinds = Array.from({ length: bytes.readUInt16LE(56) }, (_, number) => bytes.readUInt32LE(at + number * 56));
  return kinds.includes(3) ? `${STATIC} is not static: name one that is with ONEHOP_STATIC` : false;
})();

/** Packs a configuration as /shop of a root directory of its own. */
export async function packIntoRoot(context, file, options = []) {
  const root = join(workFolder(context), "root");
  mkdirSync(root);
  const packed = join(root, "shop");
  const begun = performance.now();
  const done = await run(STATIC, ["pack", file, "-o", packed, ...options]);
  assert.equal(done.code, 0, done.stderr);
  context.diagnostic(`packed in ${Math.round(performance.now() - begun)} ms: ${statSync(packed).size} bytes`);
  assert.deepEqual(readdirSync(root), ["shop"]);
  return root;
}

/**
 * Starts /shop of this root and returns with its first page. `prefix` wraps the command line (unshare); `words` follow
 * the program's name. `host` is who is asked for.
 */
export async function startInRoot(context, root, port, options = {}) {
  const { path = "/", prefix = [], program = "/shop", words = [], env = {}, host = `localhost:${port}` } = options;
  const line = [...prefix, "chroot", root, program, "--log", "json", ...words];
  const begun = performance.now();
  const child = spawn(line[0], line.slice(1), {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH, ...env },
  });
  context.after(() => child.exitCode ?? child.kill("SIGKILL"));
  const lines = [];
  createInterface({ input: child.stderr }).on("line", (line) => lines.push(line));
  const running = {
    child,
    lines,
    /** How long it took until a client had its first page. */
    firstPage: 0,
    exited: once(child, "exit").then(([code, signal]) => ({ code, signal })),
    ask: (path, init) => ask(port, path, init),
  };
  for (;;) {
    const first = await ask(port, path, { headers: { host } }).catch(() => null);
    if (first?.status === 200) break;
    assert.equal(child.exitCode, null, lines.join("\n"));
    assert.ok(performance.now() - begun < DEADLINE_MS, `no page:\n${lines.join("\n")}`);
    await setImmediate();
  }
  running.firstPage = performance.now() - begun;
  context.diagnostic(`first answer of ${path} after ${running.firstPage.toFixed(1)} ms`);
  return running;
}

/** One request on a connection of its own. */
export function ask(port, path, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, method, agent: false, headers: { host: `localhost:${port}`, ...headers } });
    asked.on("error", reject);
    asked.on("response", async (response) => {
      const body = Buffer.concat(await response.toArray());
      const own = new Set(["date", "last-modified"]);
      const fields = Object.entries(response.headers).filter(([name]) => !own.has(name)).sort();
      resolve({ status: response.statusCode, fields, headers: response.headers, body });
    });
    asked.end(body);
  });
}

/** Asks until the answer is as expected: an application starts while pages are served. */
export async function until(what, fits) {
  const begun = performance.now();
  for (;;) {
    const answer = await what();
    if (fits(answer)) return answer;
    assert.ok(performance.now() - begun < DEADLINE_MS, `${answer.status} ${answer.body}`);
    await setImmediate();
  }
}

/** Stops it, and looks at what it has made: everything that it needed was in it. */
export async function stopInRoot(running, root) {
  running.child.kill("SIGTERM");
  assert.deepEqual(await running.exited, { code: 0, signal: null }, running.lines.join("\n"));
  const foreign = filesIn(root).filter((path) => path !== "/shop" && !path.startsWith(`${PLACE}/onehop-`));
  assert.deepEqual(foreign, []);
}

/** Everything in this root but folders. */
export function filesIn(root) {
  const all = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return all.map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}
