// A NestJS application as `nest build` leaves it: controllers, validation, a filter, an interceptor, event streams, a
// WebSocket gateway, a page, and hooks that run when it is stopped.
// Needs: Chromium.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import WebSocket from "ws";
import { APPS, SIDES, ask, comparable, start } from "./apps/sides.mjs";
import { OUTPUT } from "./program.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const JSON_TYPE = { "Content-Type": "application/json" };

const REQUESTS = [
  ["/", 200],
  ["/page.js", 200],
  ["/", 200, { method: "HEAD" }],
  ["/planets", 200],
  ["/planets/earth", 200],
  ["/planets/nowhere", 404],
  ["/planets/longer?than=400", 200],
  ["/planets/longer?than=much", 400],
  ["/planets/ticks", 200],
  ["/planets/list.csv", 200],
  ["/planets/fails", 500],
  ["/planets/old", 301],
  ["/nothing", 404],
  ["/planets", 201, { method: "POST", headers: JSON_TYPE, body: '{"name":"venus","days":225,"unknown":1}' }],
  ["/planets", 409, { method: "POST", headers: JSON_TYPE, body: '{"name":"venus","days":225}' }],
  ["/planets", 400, { method: "POST", headers: JSON_TYPE, body: '{"name":"","days":"many"}' }],
  ["/planets", 400, { method: "POST", headers: JSON_TYPE, body: "{nothing" }],
  ["/planets", 404, { method: "DELETE" }],
];

let browser;

before(async () => {
  execFileSync(process.execPath, [join(APPS, "node_modules/typescript/bin/tsc"), "-p", join(APPS, "nest")], { stdio: "inherit" });
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
});
after(() => browser?.close());

test("a NestJS application answers as under Node.js alone, and its hooks run when it is stopped", async (context) => {
  const seen = {};
  for (const side of SIDES) {
    const running = await start(context, side, { file: "nest/dist/main.js" });
    seen[side] = [];
    for (const [path, status, settings] of REQUESTS) {
      const answer = comparable(await ask(running, path, settings));
      assert.equal(answer.status, status, `${side}: ${path}: ${answer.body}`);
      seen[side].push({ path, ...answer });
    }
    seen[side].push(await shout(running));
    await page(running, side);
    const { code, signal } = await running.stop();
    const hooks = running.said.filter((line) => line.startsWith("hook: "));
    assert.deepEqual(hooks, ["hook: module destroyed", "hook: before shutdown by SIGTERM", "hook: shut down by SIGTERM"], side);
    if (side === "onehop") assert.deepEqual({ code, signal }, { code: 0, signal: null });
  }
  for (const [index, answer] of (seen.onehop ?? []).entries()) assert.deepEqual(answer, seen.alone?.[index] ?? answer);
});

/** What the gateway says to a client that others wrote. */
async function shout(running) {
  const socket = new WebSocket(`${running.origin.replace("http", "ws")}/chat`);
  const received = [];
  socket.on("message", (data) => received.push(JSON.parse(data)));
  await once(socket, "open");
  socket.send(JSON.stringify({ event: "shout", data: "good evening" }));
  while (received.length < 2) await once(socket, "message");
  socket.close(1000);
  const [code] = await once(socket, "close");
  return { received, code };
}

async function page(running, side) {
  const session = await browser.newContext({ viewport: { width: 700, height: 500 } });
  const open = await session.newPage();
  const complaints = [];
  open.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  open.on("pageerror", (error) => complaints.push(String(error)));
  await open.goto(`${running.origin}/`);
  await open.getByText("mars: 687").waitFor();
  await open.getByText("good day HELLO!").waitFor();
  await open.screenshot({ path: join(OUTPUT, `nest-${side}.png`) });
  assert.deepEqual(complaints, []);
  await session.close();
}
