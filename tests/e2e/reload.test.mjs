// Requests over many reloads and one stop. None may fail.
//
// What counts as failed is exact. A server may close a kept connection between two requests, and the
// close may cross a request on its way (RFC 9112 section 9.6): the client then has not a single byte
// of an answer, and sends the request again on a new connection. During reloads not even that may
// happen: nothing is closed by a reload. At the stop it may, but only on connections that were kept:
// - no answer may break off, and no status but 200 may appear,
// - on a new connection that was accepted, every request is answered,
// - an answer that announces `Connection: close` is the last one of its connection, and is whole.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { ONEHOP, run, startOnehop, workFolder } from "./program.mjs";

const REQUESTS = Number(process.env.ONEHOP_RELOAD_REQUESTS ?? 50_000);
const RELOADS = Number(process.env.ONEHOP_RELOADS ?? 20);
const CLIENTS = 16;

for (const threads of [1, 4]) {
  test(`${REQUESTS} requests over ${RELOADS} reloads and one stop, threads ${threads}: none fails`, async (context) => {
    const folder = workFolder(context);
    writeFileSync(join(folder, "page.html"), "<!doctype html><title>x</title>\n".repeat(25));
    const text = (generation) =>
      `{\n\tadmin off\n}\nhttp://localhost:0 {\n\troot * ${folder}\n\theader X-Generation ${generation}\n\tfile_server\n}\n`;
    const server = await startOnehop(context, { folder, text: text(0), threads });

    const state = { answered: 0, crossed: 0, stopping: false, generations: new Set(), faults: [] };
    const clients = Array.from({ length: CLIENTS }, () => client(server.port, state));
    for (let generation = 1; generation <= RELOADS; generation += 1) {
      // Spread over the run: a reload per share of the requests.
      await answered(state, (REQUESTS * generation) / (RELOADS + 1));
      writeFileSync(server.file, text(generation));
      const { code, stderr } = await run(ONEHOP, ["reload", "--control", server.control]);
      assert.equal(code, 0, stderr);
    }
    assert.equal(state.crossed, 0, "a reload closed a connection");
    await answered(state, REQUESTS);
    // The clients go on: the stop meets requests in flight on every connection.
    state.stopping = true;
    server.child.kill("SIGTERM");
    await Promise.all(clients);
    const { code } = await server.exited;
    assert.deepEqual(state.faults.slice(0, 5), []);
    assert.equal(code, 0);
    assert.equal(state.generations.size, RELOADS + 1, "not every generation was seen");
    context.diagnostic(`${state.answered} answered, ${state.crossed} crossed the stop's close`);
  });
}

/** Until so many requests have been answered, or one has failed. */
async function answered(state, count) {
  while (state.answered < count && state.faults.length === 0) await new Promise((resolve) => setImmediate(resolve));
}

async function client(port, state) {
  let connection = null;
  let used = 0;
  while (state.faults.length === 0) {
    if (!connection) {
      try {
        connection = await Connection.open(port);
        used = 0;
      } catch (error) {
        // Nobody listens any more: right after a stop, wrong before.
        if (!state.stopping) state.faults.push(`refused: ${error.message}`);
        return;
      }
    }
    try {
      const answer = await connection.request("/page.html");
      if (answer.status !== 200 || answer.body.length !== 800) state.faults.push(`${answer.status} with ${answer.body.length} bytes`);
      state.generations.add(answer.field("x-generation"));
      state.answered += 1;
      used += 1;
    } catch (error) {
      const mayCross = error.kind === "unsent" || (error.kind === "unanswered" && used > 0);
      if (!state.stopping || !mayCross) state.faults.push(`${error.message} (request ${used + 1} of its connection)`);
      state.crossed += 1;
    }
    if (connection.isOver) {
      connection.close();
      connection = null;
    }
  }
  connection?.close();
}
