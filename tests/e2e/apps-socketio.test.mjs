// socket.io on several workers with many clients at once: they begin by polling, go over to WebSockets, and each
// finds its worker again by a cookie, by what its queries say or by its address.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { APPS, SIDES, start, until } from "./apps/sides.mjs";

const CLIENTS = Number(process.env.ONEHOP_SOCKETIO_CLIENTS ?? 1_000);
/** For each of the ways that differ in little. */
const FEWER_CLIENTS = Math.ceil(CLIENTS / 5);
const POLLING_CLIENTS = Math.ceil(CLIENTS / 5);
const ROLLED_CLIENTS = Math.ceil(CLIENTS / 20);
const WORKERS = 2;
/**
 * Many polls that wait for each other meet the bound of an application, and a session whose poll is refused has to
 * begin anew: on a slow machine within the three seconds that a request waits by default (docs/limits.md).
 */
const CROWD_LIMIT = "limit adaptive wait 30s";

/** How clients are kept at their worker, and what they do for it. */
const WAYS = [
  { sticky: "cookie", count: CLIENTS, clients: { cookies: true } },
  { sticky: "query sid", count: CLIENTS, clients: {} },
  { sticky: "query client", count: FEWER_CLIENTS, clients: { query: true } },
  { sticky: "ip", count: FEWER_CLIENTS, clients: { addresses: true } },
];

for (const side of SIDES) {
  // Alone there is one process, and nothing to find again.
  for (const { sticky, count, clients } of side === "alone" ? WAYS.slice(0, 1) : WAYS) {
    test(`${count} clients of socket.io poll, upgrade, talk and leave: ${side === "alone" ? "Node.js alone" : `sticky ${sticky}`}`, async (context) => {
      const { running, crowd } = await begin(context, side, sticky);
      const begun = Date.now();
      const all = await crowd("connect", { ...clients, count });
      assert.deepEqual(all.filter(({ began, now }) => began !== "polling" || now !== "websocket").slice(0, 3), []);
      const shares = sharesOf(all, side);
      await crowd("talk");
      assert.equal(await crowd("broadcast"), 0, "a broadcast missed a client of its worker, or reached one of another");
      assert.deepEqual(await crowd("close"), { "io client disconnect": count });
      await leaves(running, shares, "client namespace disconnect");
      context.diagnostic(`${shares.join(" and ")} clients, ${Date.now() - begun} ms`);
    });
  }

  test(`${POLLING_CLIENTS} clients that only poll: ${side}`, async (context) => {
    const { running, crowd } = await begin(context, side, "cookie");
    const all = await crowd("connect", { cookies: true, count: POLLING_CLIENTS, transports: ["polling"] });
    assert.deepEqual(all.filter(({ now }) => now !== "polling").slice(0, 3), []);
    const shares = sharesOf(all, side);
    await crowd("talk");
    assert.equal(await crowd("broadcast"), 0);
    assert.deepEqual(await crowd("close"), { "io client disconnect": POLLING_CLIENTS });
    await leaves(running, shares, "client namespace disconnect");
  });
}

if (SIDES.includes("onehop")) {
  test(`${ROLLED_CLIENTS} clients that only poll come back after a rolling restart`, async (context) => {
    const { running, crowd } = await begin(context, "onehop", "cookie");
    const before = await crowd("connect", { cookies: true, count: ROLLED_CLIENTS, transports: ["polling"] });
    const { code, stderr } = await running.roll("once");
    assert.equal(code, 0, stderr);
    const after = await crowd("again");
    const old = new Set(before.map(({ pid }) => pid));
    assert.deepEqual(after.filter(({ pid }) => old.has(pid)).slice(0, 3), []);
    sharesOf(after, "onehop");
    await crowd("talk");
    assert.equal(await crowd("broadcast"), 0);
    assert.deepEqual(await crowd("close"), { "io client disconnect": ROLLED_CLIENTS });
    assert.equal((await running.status()).failures, 0);
  });
}

/** The server on a side, and a process of clients that takes one step at a time. */
async function begin(context, side, sticky) {
  const running = await start(context, side, {
    file: "socket-io/server.mjs",
    workers: WORKERS,
    // A poll that waits is what a worker has to finish; it would wait for its client's ping.
    options: [`sticky ${sticky}`, "stop_timeout 2s", CROWD_LIMIT],
  });
  await running.whole?.();
  const child = fork(join(APPS, "socket-io/clients.mjs"), { stdio: "inherit" });
  context.after(() => child.kill("SIGKILL"));
  const crowd = async (step, settings = {}) => {
    child.send({ step, port: running.port, ...settings });
    const [{ result, error }] = await once(child, "message");
    assert.equal(error, undefined);
    return result;
  };
  return { running, crowd };
}

/** How many clients each process has; behind onehop every worker has its part. */
function sharesOf(all, side) {
  const pids = [...new Set(all.map(({ pid }) => pid))];
  const shares = pids.map((pid) => all.filter((one) => one.pid === pid).length);
  assert.equal(shares.length, side === "alone" ? 1 : WORKERS, `the workers have ${shares} clients`);
  if (side !== "alone") assert.ok(Math.min(...shares) >= all.length / WORKERS / 5, `the workers have ${shares} clients`);
  return shares;
}

/** Until every worker has seen all of its clients leave, for that reason. */
async function leaves(running, shares, reason) {
  const said = () => running.said.filter((line) => line.startsWith("left ")).map((line) => JSON.parse(line.slice(5)));
  const isThere = (share) => said().some((left) => left[reason] === share && Object.keys(left).length === 1);
  await until(() => shares.every(isThere), () => `of ${shares} clients there left ${JSON.stringify(said())}`);
}
