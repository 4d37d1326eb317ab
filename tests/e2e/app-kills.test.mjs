// Workers that kill themselves in the middle of a request, with a hundred requests behind it.
//
// What a worker was handed counts as begun and is answered 502, because the handler may have acted on it.
// What still waited in the server's queue belongs to no worker: it is handed to the next one, once.
// Every handler says as its first statement, with a write that is done when it returns, that it runs.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { appStatus, startOnehop, workFolder } from "./program.mjs";

const RUNS = Number(process.env.ONEHOP_KILL_RUNS ?? 25);
const QUEUED = 100;
/** Bound of the median, and in long runs, which nothing disturbs, of each. */
const RESTART_MS_MAX = 500;
/** Bound of each: a pause that is longer than the first means that a restart was held back. */
const SLOWEST_RESTART_MS = Number(process.env.ONEHOP_SLOWEST_RESTART_MS ?? 5_000);
const QUEUE_FULL_DEADLINE_MS = 15_000;

const HANDLER = `
import { appendFileSync, existsSync } from "node:fs";
const { BEGUN, KILLED, GATE } = process.env;
const opened = async () => {
  while (!existsSync(GATE)) await new Promise((resolve) => setTimeout(resolve, 2));
};
const never = new Promise(() => {});
export default {
  async fetch(request, env, ctx) {
    appendFileSync(BEGUN, new URL(request.url).searchParams.get("token") + " " + ctx.requestId + "\\n");
    const { searchParams } = new URL(request.url);
    if (searchParams.has("held")) await (searchParams.has("kill") ? opened() : never);
    if (searchParams.has("kill")) {
      appendFileSync(KILLED, String(process.hrtime.bigint()));
      process.kill(process.pid, "SIGKILL");
    }
    return new Response(process.pid + " " + searchParams.get("token"));
  },
};
`;

/** What differs between runs: bound of a worker, and whether the queue is full before the kill. */
const KINDS = [
  { bound: 1, isHeld: true },
  { bound: 4, isHeld: true },
  { bound: 1, isHeld: false },
  { bound: 4, isHeld: false },
];

test(`${RUNS} workers kill themselves with ${QUEUED} requests waiting: none runs twice, none that waited is lost`, async (context) => {
  const restarts = [];
  for (let number = 0; number < RUNS; number += 1) {
    const kind = KINDS[number % KINDS.length];
    const name = `run ${number}: at most ${kind.bound} at a time, ${kind.isHeld ? "the queue full before" : "all at once"}`;
    await context.test(name, async (inner) => restarts.push(await oneKill(inner, kind, 1 + (number % 2))));
  }
  restarts.sort((one, other) => one - other);
  const at = (share) => Math.round(restarts[Math.floor((restarts.length - 1) * share)] ?? Number.NaN);
  context.diagnostic(`from a kill to the next worker's first answer: median ${at(0.5)} ms, longest ${at(1)} ms`);
  assert.ok(at(0.5) < RESTART_MS_MAX, `the median took ${at(0.5)} ms`);
});

/** A server of its own for each kill: a second one soon after the first would be waited out. */
async function oneKill(test, { bound, isHeld }, threads) {
  const folder = workFolder(test);
  const [begun, killed, gate] = ["begun", "killed", "gate"].map((name) => join(folder, name));
  writeFileSync(begun, "");
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const server = await startOnehop(test, {
    folder,
    threads,
    text: `{
	admin off
}
http://localhost:0 {
	app /api/* ./server.mjs {
		workers 1
		${bound === 1 ? "one_at_a_time" : `concurrency ${bound}`}
		queue ${2 * QUEUED} 30s
		env BEGUN ${begun}
		env KILLED ${killed}
		env GATE ${gate}
	}
}
`,
  });
  const outcomes = [];
  const send = (token, query) => outcomes.push(ask(server.port, token, query));

  if (isHeld) {
    send("killer", "&held&kill");
    for (let index = 1; index < bound; index += 1) send(`held-${index}`, "&held");
    await until(server, () => lines(begun).length === bound, "the worker did not get what it may have");
    for (let index = 0; index < QUEUED; index += 1) send(`waiting-${index}`, "");
    await until(server, async () => (await appStatus(server)).queued === QUEUED, "the queue did not fill");
    writeFileSync(gate, "");
  } else {
    for (let index = 0; index < QUEUED; index += 1) {
      send(`before-or-after-${index}`, "");
      if (index === QUEUED / 2) send("killer", "&kill");
    }
  }
  const answers = await Promise.all(outcomes);
  // The worker that killed itself may have answered all others before.
  answers.push(await ask(server.port, "after", ""));

  const ran = lines(begun).map((line) => line.split(" "));
  for (const column of [0, 1]) {
    const seen = ran.map((words) => words[column]);
    assert.equal(new Set(seen).size, seen.length, `something ran twice: ${repeated(seen)}`);
  }
  const tokens = new Set(ran.map(([token]) => token));
  const lost = answers.filter(({ status }) => status !== 200);
  for (const { token, status, body } of lost) assert.equal(status, 502, `${token} was answered ${status} ${body}`);
  assert.ok(lost.some(({ token }) => token === "killer"), "the killer was answered");
  if (isHeld) assert.equal(lost.length, bound, `lost: ${lost.map(({ token }) => token)}`);
  assert.ok(lost.length <= bound, `${lost.length} were lost, and a worker has at most ${bound}: ${lost.map(({ token }) => token)}`);
  for (const { token, body } of answers.filter(({ status }) => status === 200)) {
    assert.ok(tokens.has(token), `${token} was answered and never ran`);
    assert.ok(body.endsWith(` ${token}`), `${token} got the answer ${body}`);
  }

  const killedAt = BigInt(readFileSync(killed, "utf8"));
  const pidOfKilled = await firstPid(server);
  const next = answers.filter(({ status, body, at }) => status === 200 && at > killedAt && !body.startsWith(`${pidOfKilled} `));
  assert.ok(next.length > 0, "no other worker answered");
  const restartMs = Math.min(...next.map(({ at }) => Number(at - killedAt) / 1e6));
  assert.ok(restartMs < SLOWEST_RESTART_MS, `the next answer took ${restartMs.toFixed(0)} ms`);

  server.child.kill("SIGTERM");
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  return restartMs;
}

/** One request on a connection of its own, and when its answer was there. */
async function ask(port, token, query) {
  const connection = await Connection.open(port);
  try {
    const { status, body } = await connection.request(`/api/x?token=${token}${query}`);
    return { token, status, body: body.toString(), at: process.hrtime.bigint() };
  } finally {
    connection.close();
  }
}

/** The worker that died, as the log names it. */
async function firstPid(server) {
  const { pid } = await server.event((event) => event.event === "worker_ended");
  return pid;
}

async function until(server, holds, complaint) {
  const begun = Date.now();
  while (!(await holds())) {
    assert.ok(Date.now() - begun < QUEUE_FULL_DEADLINE_MS, `${complaint}\n${server.events.map((event) => event.text).join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const lines = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean);
const repeated = (values) => values.filter((value, index) => values.indexOf(value) !== index);
