// The quickstart in a real browser, over the release build.
// Needs: Chromium.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { OUTPUT, ROOT, startOnehop, workFolder } from "./program.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let browser;
let server;
// What lives as long as this file; a hook's own `after` would end it with the hook.
const endings = [];
const suite = { after: (ending) => endings.push(ending) };

before(async () => {
  const folder = workFolder(suite);
  const text = readFileSync(join(ROOT, "examples/quickstart/Onehopfile"), "utf8")
    .replace("localhost:8080", "localhost:0")
    .replaceAll("./dist", join(ROOT, "examples/quickstart/dist"));
  server = await startOnehop(suite, { folder, text: `{\n\tadmin off\n}\n${text}` });
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
});
after(async () => {
  await browser?.close();
  for (const ending of endings) await ending();
});

/** A page that keeps every answer and every complaint of the console. */
async function open(path, context) {
  const page = await (context ?? (await browser.newContext({ viewport: { width: 1100, height: 900 } }))).newPage();
  const answers = [];
  const complaints = [];
  page.on("response", (response) => answers.push(response));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(server.origin + path, { waitUntil: "networkidle" });
  return { page, answers, complaints };
}

/** Compression goes on behind the first answers: waits until it has come to the app's script. */
async function compressed() {
  const page = await (await fetch(`${server.origin}/`)).text();
  const script = /src="(\/assets\/[^"]+)"/.exec(page)[1];
  const begun = Date.now();
  while (Date.now() - begun < 10_000) {
    const answer = await fetch(server.origin + script, { headers: { "accept-encoding": "br" } });
    await answer.arrayBuffer();
    if (answer.headers.get("content-encoding") === "br") return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail("the app's script was never compressed");
}

test("the app loads, and every part of it is there", async () => {
  await compressed();
  const { page, answers, complaints } = await open("/");
  await page.getByRole("heading", { level: 1, name: "Your app, one hop away" }).waitFor();
  await page.getByText("bytes, encoding").waitFor();
  assert.deepEqual(complaints, []);
  assert.ok(answers.length >= 5, `only ${answers.length} answers`);
  for (const answer of answers) assert.equal(answer.status(), 200, answer.url());
  const script = answers.find((answer) => /assets\/index-.*\.js$/.test(answer.url()));
  assert.equal(script.headers()["cache-control"], "public, max-age=31536000, immutable");
  assert.match(script.headers()["content-encoding"] ?? "", /^(br|zstd|gzip)$/);
  await page.screenshot({ path: join(OUTPUT, "start.png"), fullPage: true });
});

test("a deep link works, and so does its reload", async () => {
  const { page, complaints } = await open("/items/42");
  await page.getByRole("heading", { level: 1, name: "Vary" }).waitFor();
  const again = await page.reload({ waitUntil: "networkidle" });
  assert.ok([200, 304].includes(again.status()));
  await page.getByRole("heading", { level: 1, name: "Vary" }).waitFor();
  await page.screenshot({ path: join(OUTPUT, "item.png"), fullPage: true });
  await page.goto(`${server.origin}/about`);
  await page.getByRole("heading", { level: 1, name: "About this example" }).waitFor();
  assert.deepEqual(complaints, []);
});

test("routes inside the app need no answer from the server but their chunk", async () => {
  const { page, answers } = await open("/");
  const loaded = answers.length;
  await page.getByRole("link", { name: "Field guide" }).click();
  await page.getByRole("heading", { level: 1, name: "A field guide to HTTP" }).waitFor();
  const fetched = answers.slice(loaded).map((answer) => new URL(answer.url()).pathname);
  const isPart = (path) => path.startsWith("/assets/") || path === "/favicon.svg";
  assert.ok(fetched.length > 0 && fetched.every(isPart), fetched.join(" "));
  await page.getByRole("searchbox", { name: "Find a field" }).fill("range");
  await page.getByRole("status").getByText(/\d fields/).waitFor();
  await page.screenshot({ path: join(OUTPUT, "items.png") });
});

test("a missing chunk is 404 and is not stored", async () => {
  const { page } = await open("/");
  const answer = await page.evaluate(async () => {
    const response = await fetch("/assets/gone-00000000.js");
    return { status: response.status, caching: response.headers.get("cache-control"), text: await response.text() };
  });
  assert.equal(answer.status, 404);
  assert.equal(answer.caching, "no-store");
  assert.ok(!answer.text.includes('id="app"'), "a missing chunk got the index page");
});

test("the second load is 304 or comes from the cache", async () => {
  const context = await browser.newContext();
  await open("/", context);
  // The protocol's own events: Playwright shows a 304 as the 200 that the cache made of it.
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const seen = new Map();
  await session.send("Network.enable");
  session.on("Network.responseReceived", ({ response, type }) => {
    if (type !== "Fetch") seen.set(new URL(response.url).pathname, { status: response.status, cached: response.fromDiskCache });
  });
  session.on("Network.responseReceivedExtraInfo", ({ statusCode }) => statusCode === 304 && seen.set(`304 ${seen.size}`, { status: 304 }));
  await page.goto(`${server.origin}/`, { waitUntil: "networkidle" });
  const index = seen.get("/");
  const asked = [...seen.values()].filter(({ status }) => status === 304).length;
  assert.ok(index.cached || asked > 0, "the index page was sent whole again");
  for (const [path, { cached }] of seen) if (path.startsWith("/assets/")) assert.ok(cached, `${path} was fetched again`);
});

test("it works on a small dark screen", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  const { page } = await open("/", context);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  await page.screenshot({ path: join(OUTPUT, "small-dark.png"), fullPage: true });
});
