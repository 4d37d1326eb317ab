// ApacheBench as people run it, `ab -n 1000 -c 100`, against a large JSON answer that an application makes: every request
// is answered, by the application or by a refusal that says when to come again. Debian's apache2-utils has it.
// Needs: ab.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appStatus, run, startOnehop, workFolder } from "./program.mjs";

const AB = "/usr/bin/ab";
const REQUESTS = 1_000;
/** Clients at once: a hundred, or as many as are answered in a second where the machine is slow. */
const AT_ONCE_MAX = 100;
const AT_ONCE_MIN = 10;
/** 591 KiB: the answer with which a known webserver of Node's answered 900 of 1,000 and refused the rest. */
const ANSWER_BYTES = 591 * 1024;
const skip = existsSync(AB) ? false : "ab is not installed (Debian: apache2-utils)";

const HANDLER = `
const row = { id: 0, name: "A thing among others", price: 1999, tags: ["small", "green"], available: true };
const each = JSON.stringify({ ...row, id: 100000 }).length + 1;
const count = Math.floor(${ANSWER_BYTES} / each) - 1;
const rows = Array.from({ length: count }, (_, index) => ({ ...row, id: 100000 + index }));
const missing = ${ANSWER_BYTES} - JSON.stringify({ rows, padding: "" }).length;
const padding = "p".repeat(missing);
export default { fetch: () => Response.json({ rows, padding }) };
`;

test("an app with nothing configured answers ab, and nothing but 200 and 503 is seen", { skip }, async (context) => {
  const { statuses, said, server } = await bench(context, "");
  context.diagnostic(`${statuses.get(200) ?? 0} answered, ${statuses.get(503) ?? 0} refused; ${timing(said)}`);
  // Clients that wait for their answers are no flood: none of them waits for more than about a second.
  assert.ok((statuses.get(200) ?? 0) >= 0.99 * REQUESTS, `too few were answered: ${[...statuses]}`);
  await stillServes(server);
});

test("an app with a limit answers some and refuses the rest at once", { skip }, async (context) => {
  const { statuses, said, server } = await bench(context, "limit in_flight 2 queue 4 wait 250ms");
  const [answered, refused] = [statuses.get(200) ?? 0, statuses.get(503) ?? 0];
  context.diagnostic(`${answered} answered, ${refused} refused; ${timing(said)}`);
  assert.ok(answered > 0 && refused > 0, `a hundred clients, room for six: ${[...statuses]}`);
  const advised = [...said.matchAll(/^retry-after: (\d+)\r?$/gim)];
  assert.equal(advised.length, refused, "every refusal says when to come again");
  for (const [line, seconds] of advised) assert.ok(Number(seconds) >= 1 && Number(seconds) <= 30, line);
  await stillServes(server);
});

test("an app without any limit answers all of it, however long that takes", { skip }, async (context) => {
  const { statuses, said, server } = await bench(context, "limit off");
  context.diagnostic(timing(said));
  assert.deepEqual([...statuses], [[200, REQUESTS]]);
  await stillServes(server);
});

/** As many clients as are answered in a second, one after the other. */
async function clientsOfASecond(address) {
  const begun = performance.now();
  for (let asked = 0; asked < AT_ONCE_MIN; asked += 1) await (await fetch(address)).arrayBuffer();
  const each = (performance.now() - begun) / AT_ONCE_MIN;
  return Math.round(Math.min(AT_ONCE_MAX, Math.max(AT_ONCE_MIN, 1_000 / each)));
}

/** Runs ab and counts its answers by status; whatever is no answer fails the test. */
async function bench(context, limit) {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  const text = `{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tapp ./server.mjs {\n\t\tworkers 1\n\t\t${limit}\n\t}\n}\n`;
  const server = await startOnehop(context, { folder, text });
  server.address = `http://127.0.0.1:${server.port}/`;
  const first = await fetch(server.address);
  assert.equal((await first.arrayBuffer()).byteLength, ANSWER_BYTES);
  const atOnce = await clientsOfASecond(server.address);
  // It serves, so it has a process.
  const [{ pid }] = (await appStatus(server)).workers;

  // -l: a refusal has another length than an answer, which is no failure. -v 3: heads and statuses are printed.
  const words = ["-l", "-v", "3", "-n", String(REQUESTS), "-c", String(atOnce), server.address];
  const { code, stdout, stderr } = await run("timeout", ["120", AB, ...words]);
  const said = stdout.toString("latin1");
  assert.equal(code, 0, `${stderr}\n${said.slice(-2_000)}`);
  assert.equal(figure(said, "Complete requests"), REQUESTS);
  assert.equal(figure(said, "Failed requests"), 0, said.slice(-2_000));
  const statuses = new Map();
  // ab has other words for those that are not 2xx.
  for (const [, status] of said.matchAll(/^(?:LOG: Response code = |WARNING: Response code not 2xx \()(\d+)/gm)) {
    statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1);
  }
  const others = [...statuses].filter(([status]) => status !== 200 && status !== 503);
  assert.deepEqual(others, []);
  assert.equal((statuses.get(200) ?? 0) + (statuses.get(503) ?? 0), REQUESTS);
  assert.equal(figure(said, "Non-2xx responses") ?? 0, statuses.get(503) ?? 0);
  const [{ pid: after }] = (await appStatus(server)).workers;
  assert.equal(after, pid, "the worker had to be replaced");
  return { statuses, said, server };
}

/** What follows finds a server that has nothing left to do. */
async function stillServes(server) {
  const answer = await fetch(server.address, { signal: AbortSignal.timeout(5_000) });
  assert.deepEqual([answer.status, (await answer.arrayBuffer()).byteLength], [200, ANSWER_BYTES]);
  assert.equal((await appStatus(server)).failures, 0);
}

/** ab's own clock, for whoever reads the log. */
function timing(said) {
  return [/^Time taken for tests:.*$/m, /^ +50% .*$/m, /^ +99% .*$/m].map((line) => line.exec(said)?.[0].trim().replace(/ +/g, " ")).join(", ");
}

function figure(said, name) {
  const found = new RegExp(`^${name}: +(\\d+)`, "m").exec(said);
  return found ? Number(found[1]) : undefined;
}
