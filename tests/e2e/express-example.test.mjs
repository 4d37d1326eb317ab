// The Express example as a user has it: an application that knows nothing of onehop, its page, and its downloads
// compared with what `node server.js` alone sends.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { ROOT, appStatus, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "examples/express");
const REPORT = readFileSync(join(EXAMPLE, "files/report.txt"));
const LARGE_BYTES = 64 * 1024 * 1024;
const DEADLINE_MS = 15_000;

/** The example's files with the tests' own copy of Express. */
function copyExample(context) {
  const folder = workFolder(context);
  for (const part of ["server.js", "dist", "files", "package.json"]) {
    cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true, preserveTimestamps: true });
  }
  symlinkSync(join(ROOT, "tests/e2e/node_modules"), join(folder, "node_modules"));
  return folder;
}

async function startExample(context) {
  const folder = copyExample(context);
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8").replace("localhost:8080", "localhost:0");
  const server = await startOnehop(context, { folder, text: `{\n\tadmin off\n}\n${text}` });
  server.ask = (path, init) => fetch(new URL(path, server.origin), { signal: AbortSignal.timeout(DEADLINE_MS), ...init });
  server.post = (path, body) =>
    server.ask(path, { method: "POST", body, headers: { "Content-Type": "application/json" } });
  return server;
}

/** A file that no socket holds. */
function writeLarge(server) {
  writeFileSync(join(server.file, "../files/large.bin"), Buffer.alloc(LARGE_BYTES, "o"));
}

/** The same application without onehop. */
async function startAlone(context) {
  const child = spawn(process.execPath, ["server.js"], {
    cwd: copyExample(context),
    env: { ...process.env, PORT: "0", NODE_ENV: "production" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  context.after(() => child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return `http://localhost:${/port (\d+)$/.exec(line)[1]}`;
}

/** What a client gets, but for what is each server's own. */
async function answer(origin, path, headers) {
  const request = get(`${origin}${path}`, { headers, agent: false });
  const [response] = await once(request, "response");
  const body = Buffer.concat(await response.toArray());
  const own = new Set(["date", "connection", "keep-alive", "transfer-encoding"]);
  const fields = Object.entries(response.headers).filter(([name]) => !own.has(name)).sort();
  return { status: response.statusCode, fields, body };
}

test("routes of the example: JSON, a body, and every kind of failure", async (context) => {
  const server = await startExample(context);
  const notes = await server.ask("/api/notes");
  assert.equal(notes.headers.get("x-powered-by"), "Express");
  assert.equal((await notes.json()).length, 1);
  await server.event(({ event, line }) => event === "app_output" && /^(::ffff:)?[\d.:]+ asks for notes$/.test(line));

  const made = await server.post("/api/notes", '{"text":"milk"}');
  assert.deepEqual([made.status, made.headers.get("location"), await made.json()], [201, "/api/notes/2", { id: 2, text: "milk" }]);
  assert.equal((await server.post("/api/notes", "{}")).status, 422);
  assert.equal((await server.post("/api/notes", '{"text"')).status, 400);
  assert.deepEqual(await (await server.ask("/api/nothing")).json(), { error: "there is nothing at /api/nothing" });

  assert.equal((await server.ask("/api/failure")).status, 500);
  await server.event(({ event, line }) => event === "app_output" && line.includes("this route always fails"));
  assert.equal((await appStatus(server)).failures, 0, "what the application answers for is no failure of a worker");
});

test("the example's page is served beside it", async (context) => {
  const server = await startExample(context);
  const page = await server.ask("/anywhere", { headers: { Accept: "text/html" } });
  assert.match(await page.text(), /<title>Express on onehop<\/title>/);
  assert.equal(await (await server.ask("/page.js")).text(), readFileSync(join(EXAMPLE, "dist/page.js"), "utf8"));
});

test("ticks come one by one, and end with their listener", async (context) => {
  const server = await startExample(context);
  const request = get(`${server.origin}/api/ticks`);
  const [response] = await once(request, "response");
  assert.equal(response.headers["content-type"], "text/event-stream");
  const [first] = await once(response, "data");
  assert.equal(String(first), "data: 1\n\n");
  request.destroy();
  await server.event(({ event, line }) => event === "app_output" && line.startsWith("a listener left"));
});

test("a download is what it is without onehop: whole, in part, not modified, out of range", async (context) => {
  const [server, alone] = [await startExample(context), await startAlone(context)];
  const path = "/api/reports/report.txt";
  const etag = (await fetch(`${alone}${path}`, { method: "HEAD" })).headers.get("etag");
  const cases = [
    [path, {}],
    [path, { Range: "bytes=100-99999" }],
    [path, { Range: "bytes=-70000" }],
    [path, { Range: "bytes=7-9" }],
    [path, { Range: "bytes=0-70000,80000-90000" }],
    [path, { Range: "bytes=999999-" }],
    [path, { "If-None-Match": "*" }],
    [path, { "If-None-Match": etag }],
    [path, { "If-Match": etag }],
    [path, { Range: "bytes=0-79999", "If-Range": etag }],
    [path, { "If-Match": '"another"' }],
    [path, { Range: "bytes=0-79999", "If-Range": '"another"' }],
    ["/api/reports/missing.txt", {}],
  ];
  // Two readings: onehop refuses the path before the application can take it for one below its folder.
  assert.equal((await answer(server.origin, "/api/reports/..%2fserver.js", {})).status, 400);
  for (const [asked, headers] of cases) {
    const [one, other] = [await answer(server.origin, asked, headers), await answer(alone, asked, headers)];
    const name = `${asked} ${JSON.stringify(headers)}`;
    assert.equal(one.status, other.status, name);
    assert.deepEqual(one.fields, other.fields, name);
    assert.ok(one.body.equals(other.body), `${name}: ${one.body.length} bytes instead of ${other.body.length}`);
  }
  assert.ok((await answer(server.origin, path, {})).body.equals(REPORT));
  await server.event(({ event, line }) => event === "app_output" && line === "report.txt was downloaded");
});

test("the bytes of a download do not pass through the application's process", async (context) => {
  const server = await startExample(context);
  writeLarge(server);
  const [{ pid }] = (await appStatus(server)).workers;
  const readBytes = () => Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))[1]);
  const before = readBytes();
  const whole = await answer(server.origin, "/api/reports/large.bin", {});
  assert.deepEqual([whole.status, whole.body.length], [200, LARGE_BYTES]);
  const read = readBytes() - before;
  assert.ok(read < LARGE_BYTES / 16, `it has read ${read} bytes`);
});

test("a client that leaves a download is what the application hears of", async (context) => {
  const server = await startExample(context);
  writeLarge(server);
  const request = get(`${server.origin}/api/reports/large.bin`, { agent: false });
  const [response] = await once(request, "response");
  await once(response, "readable");
  request.destroy();
  await server.event(({ event, line }) => event === "app_output" && line.includes("Request aborted"));
  const after = await answer(server.origin, "/api/reports/large.bin", { Range: "bytes=0-99" });
  assert.deepEqual([after.status, after.body.length], [206, 100]);
});
