// Requests to an application whose workers are replaced again and again by reloads. None may fail: the new
// worker is ready before the old one is told to go, and what the old one has begun it finishes.

import assert from "node:assert/strict";
import { on } from "node:events";
import { existsSync, readFileSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { ONEHOP, appStatus, run, startOnehop, workFolder } from "./program.mjs";

const REQUESTS = Number(process.env.ONEHOP_ROLLING_REQUESTS ?? 5_000);
const RELOADS = Number(process.env.ONEHOP_ROLLING_RELOADS ?? 8);
const CLIENTS = 16;
const WORKERS = 2;
const ROLL_DEADLINE_MS = 20_000;
// As by default, but for the wait: a machine that stands still for three seconds would have requests refused, and whether
// a restart costs any is the question here.
const LIMIT = "limit adaptive queue 4096 wait 30s";

const HANDLER = `
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const text = request.method === "POST" ? await request.text() : "";
    // Some answers are still on their way when the worker is told to go.
    if (pathname === "/api/slow") await new Promise((resolve) => setTimeout(resolve, 20));
    return Response.json({ generation: process.env.GENERATION, pid: process.pid, bytes: text.length });
  },
};
`;

for (const threads of [1, 2]) {
  test(`${REQUESTS} requests to an application over ${RELOADS} rolling restarts, threads ${threads}: none fails`, async (context) => {
    const folder = workFolder(context);
    writeFileSync(join(folder, "server.mjs"), HANDLER);
    const text = (generation) =>
      `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp /api/* ./server.mjs {\n\t\tworkers ${WORKERS}\n\t\t${LIMIT}\n\t\tenv GENERATION ${generation}\n\t}\n}\n`;
    const server = await startOnehop(context, { folder, text: text(0), threads });

    const state = { asked: 0, answered: 0, isOver: false, generations: new Set(), pids: new Set(), faults: [] };
    const clients = Array.from({ length: CLIENTS }, () => client(server.port, state));
    for (let generation = 1; generation <= RELOADS; generation += 1) {
      await answered(state, (REQUESTS * generation) / (RELOADS + 1));
      writeFileSync(server.file, text(generation));
      const { code, stderr } = await run(ONEHOP, ["reload", "--control", server.control]);
      assert.equal(code, 0, stderr);
      await seen(state, generation);
    }
    await answered(state, REQUESTS);
    state.isOver = true;
    await Promise.all(clients);
    assert.deepEqual(state.faults.slice(0, 5), []);
    assert.equal(state.generations.size, RELOADS + 1, `generations seen: ${[...state.generations]}`);
    const { workers, failures } = await appStatus(server);
    assert.equal(failures, 0, "a worker failed");
    assert.equal(workers.filter(({ state }) => state === "serving").length, WORKERS);
    server.child.kill("SIGTERM");
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    context.diagnostic(`${state.answered} answered by ${state.pids.size} workers of ${state.generations.size} generations`);
  });
}

test("a worker that still starts when the server stops finishes what it is at", async (context) => {
  const folder = workFolder(context);
  const migrated = join(folder, "migrated");
  writeFileSync(join(folder, "server.mjs"), `
    import { appendFileSync } from "node:fs";
    appendFileSync(${JSON.stringify(migrated)}, "begun");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    appendFileSync(${JSON.stringify(migrated)}, " and finished");
    export default { fetch: () => new Response("hello") };
  `);
  const text = "{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp ./server.mjs {\n\t\tworkers 1\n\t}\n}\n";
  const server = await startOnehop(context, { folder, text });
  for await (const _ of changes(folder)) if (existsSync(migrated)) break;
  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.equal(readFileSync(migrated, "utf8"), "begun and finished");
  assert.ok(!server.events.some(({ event }) => event === "app_ready"), "it was ready before the server was stopped");
});

/** Now, and whenever something changes in a folder. */
async function* changes(folder) {
  const watcher = watch(folder);
  const seen = on(watcher, "change");
  try {
    yield;
    for await (const _ of seen) yield;
  } finally {
    watcher.close();
  }
}

/** Until so many requests have been answered, or one has failed. */
async function answered(state, count) {
  while (state.answered < count && state.faults.length === 0) await new Promise((resolve) => setImmediate(resolve));
}

/** Until a worker of this generation has answered. */
async function seen(state, generation) {
  const begun = Date.now();
  while (!state.generations.has(String(generation)) && state.faults.length === 0) {
    if (Date.now() - begun > ROLL_DEADLINE_MS) state.faults.push(`generation ${generation} never answered`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Asks on one connection that is kept: a reload closes none. */
async function client(port, state) {
  try {
    const connection = await Connection.open(port);
    while (!state.isOver && state.faults.length === 0) {
      const turn = (state.asked += 1);
      const body = turn % 4 === 0 ? "b".repeat(turn % 3_000) : undefined;
      const target = turn % 16 === 0 ? "/api/slow" : "/api/fast";
      const at = performance.now();
      const answer = await connection.request(target, { method: body === undefined ? "GET" : "POST", body });
      if (answer.status !== 200) throw new Error(`${target} was answered ${answer.status} ${answer.body} after ${performance.now() - at} ms`);
      const { generation, pid, bytes } = JSON.parse(answer.body);
      if (bytes !== (body?.length ?? 0)) throw new Error(`of ${body?.length} bytes ${bytes} arrived`);
      state.generations.add(generation);
      state.pids.add(pid);
      state.answered += 1;
    }
    connection.close();
  } catch (error) {
    state.faults.push(String(error));
  }
}
