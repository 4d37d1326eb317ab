// The dashboard of a running onehop in a browser: every view opens without a complaint, what it counts is what was asked,
// and it replaces workers. What each view shows is tested in dashboard/test, before a server made by hand.
// Needs: Chromium.
// Alone: what the page shows is held against the load.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { appStatus, freePort, ONEHOP, OUTPUT, run, startOnehop, workFolder } from "./program.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
/** Together fewer than a core looks at in a second (VISITS_PER_SECOND), so that what is asked for most is exact. */
const PAGES = 144;
const CALLS = 96;
const HANDLER = "export default { fetch: () => Response.json({ ok: true }) };\n";
/** Three sites, each under a load of its own: requests per second. */
const LOADS = [
  { name: "pages.test", directives: "\troot .\n\tfile_server", rate: 300 },
  { name: "api.test", directives: "\tapp ./handler.mjs {\n\t\tworkers 1\n\t}", rate: 200 },
  { name: "error.test", directives: "\trespond 500", rate: 100 },
];
const LOAD_SECONDS = 25;
/** The column "now /s" of the sites. */
const NOW_COLUMN = 3;
const COLD_MS = 1_200;
const SLOW_AT_FIRST = `
let isFirst = true;
export default {
  async fetch() {
    if (isFirst) await new Promise((resolve) => setTimeout(resolve, ${COLD_MS}));
    isFirst = false;
    return new Response("page");
  },
};
`;
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

  const { page, url, complaints } = await openDashboard(context, server);
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
  const top = (title) => page.getByRole("region", { name: title }).getByRole("row").nth(1).innerText();
  await waitFor(page, "what is asked for most", async () => (await top("Top paths")).replace(/\s+/g, " ").startsWith(`/ ${PAGES} 60`));
  assert.match(await top("Top addresses"), new RegExp(`^(127\\.0\\.0\\.1|::1)\\s+${PAGES + CALLS}\\s+100`));
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

test("bench, status and dashboard show a slow first request apart from the thousand fast ones after it", async (context) => {
  const folder = workFolder(context);
  writeFileSync(join(folder, "handler.mjs"), SLOW_AT_FIRST);
  const text = "{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp ./handler.mjs {\n\t\tworkers 1\n\t}\n}\n";
  const server = await startOnehop(context, { folder, text });
  await server.event(({ event }) => event === "app_ready");

  const bench = await run(ONEHOP, ["bench", server.origin, "-c", "1", "-n", "1001", "--runs", "1", "--verbose"]);
  assert.match(bench.stdout.toString().replace(/\s+/g, " "), /the server gave no answer for 1\.\d+ s/);

  const [site] = (await statusOf(server)).sites;
  assert.deepEqual([site.requests, site.cold_starts], [1_001, 1]);
  assert.ok(site.slowest_cold_start_ms >= COLD_MS && site.p99_ms < COLD_MS / 4, JSON.stringify(site));

  const { page } = await openDashboard(context, server);
  const tiles = () => page.locator("main").innerText();
  await waitFor(page, "the cold start beside the requests", async () => /Cold starts\s+1\s+slowest 1\.\d+ s/i.test(await tiles()));
  await page.screenshot({ path: join(OUTPUT, "dashboard-cold-start.png"), fullPage: true });
});

test("under load on three sites the dashboard shows the rates and counts that bench has", async (context) => {
  const folder = workFolder(context);
  writeFileSync(join(folder, "handler.mjs"), HANDLER);
  writeFileSync(join(folder, "index.html"), "<h1>shop</h1>");
  const sites = LOADS.map(({ name, directives }) => `http://${name} {\n${directives}\n}\n`);
  const server = await startOnehop(context, { folder, text: `{\n\tadmin off\n\thttp_port ${await freePort()}\n}\n${sites.join("")}` });
  await server.event(({ event }) => event === "app_ready");
  const { page, url, complaints } = await openDashboard(context, server);

  const loads = LOADS.map((load) => benchOf(server, load));
  const isOver = Promise.all(loads);
  const shown = LOADS.map(() => []);
  const rowOf = (name) => page.getByRole("region", { name: "Sites" }).getByRole("row").filter({ hasText: name });
  const rates = async (isShown) => {
    while ((await Promise.race([isOver, new Promise((resolve) => setTimeout(resolve, 500))])) === undefined && isShown()) {
      for (const [index, { name }] of LOADS.entries()) {
        shown[index].push(Number((await rowOf(name).getByRole("cell").nth(NOW_COLUMN).innerText()).replace(/[^0-9.]/g, "")));
      }
    }
  };
  await rates(() => shown[0].length < 20);
  for (const view of [...VIEWS, ...LOADS.map(({ name }) => `sites/${encodeURIComponent(`http://${name}`)}`)]) {
    await page.goto(`${url.split("#")[0]}#/${view}`);
    await page.locator("main").waitFor();
    await page.waitForLoadState("load");
  }
  const results = await isOver;
  const { sites: counted } = await statusOf(server);
  for (const [index, { name }] of LOADS.entries()) {
    const median = shown[index].toSorted((one, other) => one - other)[Math.floor(shown[index].length / 2)];
    const { rate, completed } = results[index];
    assert.ok(Math.abs(median / rate - 1) <= 0.02, `${name}: ${median}/s is shown, bench has ${rate}: ${shown[index]}`);
    const { requests } = counted.find(({ site }) => site.includes(name));
    assert.equal(requests, completed, name);
  }
  await page.goto(`${url.split("#")[0]}#/`);
  await page.screenshot({ path: join(OUTPUT, "dashboard-three-sites.png"), fullPage: true });
  assert.deepEqual(complaints, []);
});

/** The load of one site, at a steady rate, and what `onehop bench` says of it. */
async function benchOf(server, { name, rate }) {
  const load = ["-r", String(rate), "--arrivals", "constant", "-n", String(rate * LOAD_SECONDS), "--runs", "1", "--expect", "any"];
  const words = ["bench", server.origin, "-H", `Host: ${name}`, ...load, "--json", "-"];
  const { code, stdout, stderr } = await run(ONEHOP, words);
  assert.equal(code, 0, stderr);
  const [measured] = JSON.parse(stdout).loads[0].runs;
  return { rate: measured.rate_per_second, completed: measured.completed };
}

async function statusOf(server) {
  const { stdout } = await run(ONEHOP, ["status", "--json", "--control", server.control]);
  return JSON.parse(stdout);
}

/** A browser on the dashboard, what it complains of, and the dashboard's address. */
async function openDashboard(context, server) {
  const url = await dashboardOf(context, server);
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("response", (response) => response.status() >= 400 && complaints.push(`${response.status()} ${response.url()}`));
  await page.goto(url);
  return { page, url, complaints };
}

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
