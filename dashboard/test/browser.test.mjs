// Every view in a real browser against the mock server: light, dark and on a phone.
// Needs: Chromium. Screenshots are written to test/output.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { SITES } from "../mock/figures.mjs";
import { start, TOKEN } from "../mock/server.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const skip = existsSync(CHROMIUM) ? false : `no ${CHROMIUM}`;
const OUTPUT = fileURLToPath(new URL("output/", import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WINDOWS = {
  light: { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};
const shop = encodeURIComponent(SITES[0]);
const VIEWS = {
  overview: "", site: `sites/${shop}`, apps: "apps", upstreams: "upstreams", limits: "limits", slow: "slow", events: "events",
  certificates: "certificates", server: "server",
};

let browser;
let mock;
before(async () => {
  if (skip) return;
  mkdirSync(OUTPUT, { recursive: true });
  mock = await start();
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--no-first-run"] });
});
after(async () => {
  await browser?.close();
  await mock?.stop();
});

/** Opens a view and waits until its figures are there; `complaints` are what the console had to say. */
async function open(t, hash, window = WINDOWS.light, { scenario = "troubled", token = "" } = {}) {
  mock.world.scenario = scenario;
  const context = await browser.newContext(window);
  context.setDefaultTimeout(20_000);
  t.after(() => context.close());
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  if (token) await page.goto(`${mock.origin}/dashboard/#token=${token}`);
  await page.goto(`${mock.origin}/dashboard/#/${hash}`);
  await settled(page);
  return { page, complaints };
}

/** All that was asked for is there: nothing says that it is waiting. */
async function settled(page) {
  await page.locator(".live", { hasText: "/s" }).waitFor();
  await page.waitForFunction(() => !/Asking …/.test(document.body.innerText));
}

/** Findings of axe that keep somebody from reading the page. */
async function seriousFindings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ""}`).join(" | ")}`);
}

for (const [name, window] of Object.entries(WINDOWS)) {
  test(`every view opens without a complaint, accessibly: ${name}`, { skip }, async (t) => {
    const findings = [];
    for (const [view, hash] of Object.entries(VIEWS)) {
      const { page, complaints } = await open(t, hash, window, { token: TOKEN });
      const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      const wrong = [...complaints, ...(await seriousFindings(page)), ...(isTooWide ? ["it scrolls sideways"] : [])];
      findings.push(...wrong.map((text) => `${view}: ${text}`));
      await page.screenshot({ path: join(OUTPUT, `${view}-${name}.png`), fullPage: true });
      await page.close();
    }
    assert.deepEqual(findings, []);
  });
}

for (const scenario of ["well", "overloaded", "failing", "cold", "empty"]) {
  test(`the overview tells the state in its first row: ${scenario}`, { skip }, async (t) => {
    const { page, complaints } = await open(t, "", WINDOWS.light, { scenario });
    const expected = {
      well: /^\s*All 3 sites are well$/, overloaded: /api\.example, overloaded: [\d,. kM]+ requests refused in 5 minutes/,
      failing: /^\s*api fails: .*DATABASE_URL is not defined/, cold: /^\s*All 3 sites are well$/, empty: /^\s*All 3 sites are ready; no request has come yet$/,
    }[scenario];
    await page.locator(".sentence h1", { hasText: expected }).waitFor();
    await page.screenshot({ path: join(OUTPUT, `overview-${scenario}.png`), fullPage: true });
    // A browser logs each 404; GET /slow is allowed to be one.
    assert.deepEqual(complaints.filter((text) => !text.includes("404")), []);
    assert.equal(await page.getByRole("link", { name: "Slow requests" }).count(), scenario === "cold" ? 0 : 1);
  });
}

test("the overview answers what a reader asks first", { skip }, async (t) => {
  const { page } = await open(t, "");
  const text = (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");
  const answers = {
    "which site is slow": /shop\.example is slow: p99/,
    "why": /\d+ % of its slow requests’ time is blocked event loop/,
    "since when": /Since \d\d:\d\d, 2\d min ago/,
    "after which event": /After Release at \d\d:\d\d: Release 2026-11-25\.2 of shop/,
    "which worker restarts": /A worker of api restarts again and again: 3 times/,
    "what was refused, by which limit": /shop\.example \/checkout none may wait 214, waited too long 12 1 of 20 0 226/,
    "which upstream is down": /Upstream 10\.0\.0\.2:8080 is down for 25 min: it answered 503/,
    "which certificate expires": /The certificate of docs\.example and 1 more expires in 5 d/,
    "whether there were cold starts": /Cold starts \d+ slowest 1\.\d+ s/,
    "how much memory the workers take": /Worker memory [\d.]+ MiB 5 workers/,
  };
  for (const [question, answer] of Object.entries(answers)) assert.match(text, answer, question);
});

test("a drag zooms, the address has it, and Escape leaves it", { skip }, async (t) => {
  const { page } = await open(t, "?range=6h");
  const box = await page.locator(".plot").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/from=\d+&to=\d+/);
  const { from, to } = Object.fromEntries(new URLSearchParams(page.url().split("?")[1]));
  assert.ok(to - from > 3000 && to - from < 6000, `${to - from} s of 6 h`);
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => !url.hash.includes("from="));
  assert.match(page.url(), /range=6h/);
});

test("a cursor over a curve tells the values there, and the page goes on", { skip }, async (t) => {
  const { page } = await open(t, "");
  const box = await page.locator(".plot").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
  await page.locator(".chart .when", { hasText: /^\d\d:\d\d:\d\d$/ }).first().waitFor();
  // Rendering that feeds itself would keep the page from ever being idle.
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
});

test("the keyboard searches, walks through the rows, and opens one", { skip }, async (t) => {
  const { page } = await open(t, "?range=24h");
  await page.locator("a.row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`sites/${encodeURIComponent(SITES[1])}\\?range=24h`));
  await page.keyboard.press("/");
  await page.keyboard.type("docs");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(encodeURIComponent(SITES[2])));
});

test("without a token nothing can be changed; with it workers can be replaced", { skip }, async (t) => {
  const { page: reader } = await open(t, "apps");
  assert.equal(await reader.getByRole("button", { name: /workers? of/ }).count(), 0);
  const { page } = await open(t, "apps", WINDOWS.light, { token: TOKEN });
  assert.ok(!page.url().includes(TOKEN));
  await page.getByRole("button", { name: "Restart workers of shop" }).click();
  await page.getByRole("status").getByText("Done: Restart workers of shop").waitFor();
  await page.getByRole("button", { name: "+ one worker of api" }).click();
  await page.getByText("4 of 4").waitFor();
});

test("a wrong token is told of in the server's words", { skip }, async (t) => {
  const { page } = await open(t, "server", WINDOWS.light, { token: "guess" });
  await page.getByRole("button", { name: /Reload/ }).click();
  await page.getByRole("status").getByText("Not done: This needs the token").waitFor();
});

test("text of the server is never markup", { skip }, async (t) => {
  const { page, complaints } = await open(t, "events");
  mock.world.extra.push({ at: Math.floor(mock.world.now), event: "start", text: "<img src=x onerror=alert(1)>", subject: null });
  t.after(() => mock.world.extra.pop());
  await page.reload();
  await page.getByText("<img src=x onerror=alert(1)>").waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  assert.deepEqual(complaints, []);
});
