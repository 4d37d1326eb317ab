// More than can be answered, counted to the last request: an application that holds every answer back, a limit of four
// (two in flight, two that wait), and clients that come all at once.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { startOnehop, workFolder } from "./program.mjs";

/** In flight and waiting. */
const ROOM = 4;
const CLIENTS = 40;
const DEADLINE_MS = 20_000;

const HANDLER = `
import { existsSync } from "node:fs";
const held = () => !existsSync(process.env.RELEASE);
export default {
  async fetch(request) {
    // The body is never read before: a refused one never comes here.
    while (held()) await new Promise((resolve) => setTimeout(resolve, 5));
    return Response.json({ path: new URL(request.url).pathname, bytes: (await request.arrayBuffer()).byteLength });
  },
};
`;

test("what is beyond the limit is refused at once, the rest is answered, and files are served meanwhile", async (context) => {
  const server = await start(context);
  const asked = Array.from({ length: CLIENTS }, (_, index) => server.ask(`/normal/${index}`));
  await counted(asked, CLIENTS - ROOM);
  const refused = (await Promise.all(settled(asked))).filter(Boolean);
  for (const { status, headers, took } of refused) {
    assert.equal(status, 503);
    assert.match(headers["retry-after"] ?? "", /^([1-9]|[12]\d|30)$/);
    assert.ok(took < 5_000, `a refusal took ${took} ms`);
  }

  const page = await server.ask("/static/page.txt").answer;
  assert.deepEqual([page.status, page.body], [200, "a page\n"]);

  server.release();
  const answers = await Promise.all(asked.map(({ answer }) => answer));
  assert.equal(answers.filter(({ status }) => status === 200).length, ROOM);
  assert.equal((await server.ask("/normal/after").answer).status, 200, "no refusal remains");
});

test("of a full queue the lowest and newest gives way to what matters more", async (context) => {
  const server = await start(context);
  const normal = Array.from({ length: CLIENTS }, (_, index) => server.ask(`/normal/${index}`));
  await counted(normal, CLIENTS - ROOM);

  const low = server.ask("/low/one");
  assert.equal((await low.answer).status, 503, "less than what waits: refused at once");
  const high = [server.ask("/high/one"), server.ask("/high/two")];
  // Two waited, both have given way.
  await counted(normal, CLIENTS - ROOM + high.length);
  const third = server.ask("/high/three");
  assert.equal((await third.answer).status, 503, "nobody gives way to their like");

  server.release();
  for (const { answer } of high) assert.equal((await answer).status, 200);
  const answers = await Promise.all(normal.map(({ answer }) => answer));
  assert.equal(answers.filter(({ status }) => status === 200).length, ROOM - high.length);
});

test("a refused request's body is not waited for", async (context) => {
  const server = await start(context);
  const asked = Array.from({ length: CLIENTS }, (_, index) => server.ask(`/normal/${index}`));
  await counted(asked, CLIENTS - ROOM);
  // A body that never comes.
  const upload = request(`${server.origin}/upload`, { method: "POST", headers: { "Content-Length": 1_000_000 }, agent: false });
  upload.on("error", () => {});
  upload.flushHeaders();
  const [response] = await once(upload, "response", { signal: AbortSignal.timeout(DEADLINE_MS) });
  assert.equal(response.statusCode, 503);
  upload.destroy();
  server.release();
  await Promise.all(asked.map(({ answer }) => answer));
});

test("those who wait and leave make room for others", async (context) => {
  const server = await start(context);
  const first = Array.from({ length: CLIENTS }, (_, index) => server.ask(`/normal/${index}`));
  await counted(first, CLIENTS - ROOM);
  for (const one of first) one.leave();
  await Promise.allSettled(first.map(({ answer }) => answer));

  await until(async () => (await server.figure("in_flight")) === 0 && (await server.figure("queued")) === 0);
  const second = Array.from({ length: CLIENTS }, (_, index) => server.ask(`/normal/${index}`));
  await counted(second, CLIENTS - ROOM);
  server.release();
  const answers = await Promise.all(second.map(({ answer }) => answer));
  assert.equal(answers.filter(({ status }) => status === 200).length, ROOM);
});

async function start(context) {
  const folder = workFolder(context);
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  mkdirSync(join(folder, "static"));
  writeFileSync(join(folder, "static/page.txt"), "a page\n");
  const release = join(folder, "release");
  const text = `{
	admin 127.0.0.1:0
}
http://localhost:0 {
	handle /static/* {
		root * ${folder}
		file_server
	}
	handle {
		limit /high/* priority high
		limit /low/* priority low
		app ./server.mjs {
			workers 1
			env RELEASE ${release}
			limit in_flight 2 queue 2 wait 60s
		}
	}
}
`;
  const server = await startOnehop(context, { folder, text });
  // Until a worker serves, there is nobody to protect, and an application's own bound counts nobody.
  await server.event(({ event }) => event === "app_ready");
  const agent = new Agent({ keepAlive: false });
  context.after(() => agent.destroy());
  server.ask = (path) => asking(`${server.origin}${path}`, agent);
  const { metrics } = await server.event(({ event }) => event === "admin_listening");
  // What metrics say of the one bound that there is.
  server.figure = async (name) => {
    const said = await (await fetch(metrics)).text();
    return Number(new RegExp(`^onehop_limit_${name}\\{[^}]*\\} (\\d+)$`, "m").exec(said)[1]);
  };
  server.release = () => writeFileSync(release, "");
  return server;
}

/** A request that is on its way, its answer, and whether that is there. */
function asking(url, agent) {
  const begun = Date.now();
  const sent = request(url, { agent });
  let over = false;
  const answer = (async () => {
    const [response] = await once(sent, "response", { signal: AbortSignal.timeout(DEADLINE_MS) });
    const body = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode, headers: response.headers, body, took: Date.now() - begun };
  })();
  const settled = answer.catch(() => {}).finally(() => (over = true));
  sent.on("error", () => {});
  sent.end();
  // Not where node itself is closing, as after an answer: a reset fails during a shutdown, and node then never ends.
  const leave = () => sent.socket.writableEnded || sent.socket.resetAndDestroy();
  return { answer, settled, isOver: () => over, leave };
}

/** Waits until so many of them are over. */
async function counted(asked, count) {
  for (;;) {
    const waiting = asked.filter(({ isOver }) => !isOver());
    if (asked.length - waiting.length >= count) break;
    await Promise.race(waiting.map(({ settled }) => settled));
  }
  const over = asked.filter(({ isOver }) => isOver()).length;
  assert.equal(over, count, "more were refused than had to be");
}

/** Asks again until it is so; the test's own deadline ends what never is. */
async function until(holds) {
  while (!(await holds()));
}

/** The answers of those that are over. */
function settled(asked) {
  return asked.filter(({ isOver }) => isOver()).map(({ answer }) => answer);
}
