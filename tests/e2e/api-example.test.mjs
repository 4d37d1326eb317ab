// The example of a page with its API in a real browser: requests, a stream of events, and a new worker under it.
// Needs: Chromium.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { OUTPUT, ROOT, appStatus, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "examples/api");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

test("the page shows what the API says, and goes on when its worker is replaced", async (t) => {
  const folder = workFolder(t);
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8")
    .replace("localhost:8080", "localhost:0")
    .replace("./dist", join(EXAMPLE, "dist"))
    .replace("./api/server.mjs", join(EXAMPLE, "api/server.mjs"));
  const server = await startOnehop(t, { folder, text: `{\n\tadmin off\n}\n${text}` });
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));

  // The page never becomes idle: its clock is a request that does not end.
  await page.goto(server.origin, { waitUntil: "load" });
  await page.getByText("Written on the server, read by the page.").waitFor();
  await page.getByPlaceholder("A note").fill("from a browser");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("listitem").filter({ hasText: "from a browser" }).waitFor();
  const [{ pid }] = (await appStatus(server)).workers;
  // The name localhost may mean either address.
  const me = await page.locator("#me").textContent();
  assert.match(me, new RegExp(`^You are (::1|127\\.0\\.0\\.1), answered by process ${pid}\\.$`));
  const time = () => page.locator("#clock").textContent();
  await page.waitForFunction((before) => document.getElementById("clock").textContent !== before, await time());
  await page.screenshot({ path: join(OUTPUT, "api-example.png") });

  process.kill(pid, "SIGKILL");
  await server.event((event) => event.event === "worker_ended");
  // The browser asks for the clock anew, three seconds after it has lost it.
  await page.waitForFunction((before) => document.getElementById("clock").textContent !== before, await time());
  const [successor] = (await appStatus(server)).workers;
  assert.notEqual(successor.pid, pid);
  assert.deepEqual(complaints, []);
});
