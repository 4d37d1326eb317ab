// The dashboard of a running onehop in a browser: every view opens without a complaint, what it counts is what was asked,
// and it replaces workers. What each view shows is tested in dashboard/test, before a server made by hand.
// Needs: Chromium.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { appStatus, ONEHOP, OUTPUT, startOnehop, workFolder } from "./program.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const PAGES = 300;
const CALLS = 200;
const HANDLER = "export default { fetch: () => Response.json({ ok: true }) };\n";
const VIEWS = ["", "apps", "upstreams", "limits", "slow", "events", "certificates", "server"];

test("the dashboard counts what was asked, opens every view and replaces workers", async (context) => {
  const folder = workFolder(context);
  writeFileSync(join(folder, "handler.mjs"), HANDLER);
  writeFileSync(join(folder, "index.html"), "<h1>shop</h1>");
  const text = `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp /api/* ./handler.mjs {\n\t\tworkers 1\n\t}\n\troot .\n\tfile_server\n}\n`;
  const server = await startOnehop(context, { folder, text });
  await server.event(({ event }) => event === "app_ready");
  for (let number = 0; number < PAGES; number += 1) assert.equal((await fetch(server.origin)).status, 200);
  for (let number = 0; number < CALLS; number += 1) assert.equal((await fetch(`${server.origin}/api/`)).status, 200);

  const url = await dashboardOf(context, server);
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("response", (response) => response.status() >= 400 && complaints.push(`${response.status()} ${response.url()}`));
  await page.goto(url);
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.ok(!page.url().includes("token"), "the token is out of the address");
  await waitFor(page, `${PAGES + CALLS} requests in the tile`, async () => (await page.locator("main").innerText()).includes(String(PAGES + CALLS)));
  await page.screenshot({ path: join(OUTPUT, "dashboard-overview.png"), fullPage: true });
  for (const view of VIEWS) {
    await page.goto(`${url.split("#")[0]}#/${view}`);
    await page.locator("main").waitFor();
    await page.waitForLoadState("load");
    await page.screenshot({ path: join(OUTPUT, `dashboard-${view || "again"}.png`), fullPage: true });
  }
  const site = (await (await fetch(`${new URL(url).origin}/status`)).json()).sites[0].site;
  await page.goto(`${url.split("#")[0]}#/sites/${encodeURIComponent(site)}`);
  await waitFor(page, "the handlers of the site", async () => /file_server/.test(await page.locator("main").innerText()));
  await page.screenshot({ path: join(OUTPUT, "dashboard-site.png"), fullPage: true });

  const [before] = (await appStatus(server)).workers;
  await page.getByRole("button", { name: /restart workers/i }).first().click();
  await waitFor(page, "another worker", async () => {
    const { workers } = await appStatus(server);
    return workers.length === 1 && workers[0].pid !== before.pid && workers[0].state === "serving";
  });
  assert.deepEqual(complaints, []);
});

test("a page of another origin and a name that leads here get nothing", async (context) => {
  const folder = workFolder(context);
  const server = await startOnehop(context, { folder, text: "{\n\tadmin off\n}\nhttp://localhost:0 {\n\trespond ok\n}\n" });
  const { origin, hash } = new URL(await dashboardOf(context, server));
  const token = hash.replace("#token=", "");
  const asked = (path, fields, method = "POST") => fetch(origin + path, { method, headers: fields }).then(({ status }) => status);
  assert.equal(await asked("/reload", { "Onehop-Token": token, Origin: "https://attacker.example" }), 403);
  assert.equal(await asked("/reload", { Origin: origin }), 403);
  assert.equal(await asked("/reload", { "Onehop-Token": token, Origin: origin }), 200);
  assert.equal(await asked("/stop", { "Onehop-Token": token, Origin: origin }), 404);
  assert.equal(await asked("/token", {}, "GET"), 404);
});

/** Starts `onehop dashboard` and gives the address that it prints. */
async function dashboardOf(context, server) {
  const child = spawn(ONEHOP, ["dashboard", "--no-open", "--control", server.control], { stdio: ["ignore", "pipe", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  assert.match(line, /^http:\/\/127\.0\.0\.1:\d+\/dashboard\/#token=/);
  return line;
}

/** Until the check holds; the page is shown where it never does. */
async function waitFor(page, what, check) {
  const begun = Date.now();
  while (!(await check())) {
    if (Date.now() - begun > 60_000) assert.fail(`waited in vain for ${what}:\n${await page.locator("body").innerText()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
