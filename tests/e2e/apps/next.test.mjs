// A production build of Next.js in each way that its documentation runs one: the standalone server, `next start`
// and a custom server. Behind onehop it answers as it does under Node.js alone, and its pages live in a browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { buildNext, forgetNext } from "./build.mjs";
import { SIDES, ask, comparable, start } from "./sides.mjs";
import { OUTPUT } from "../program.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

const WAYS = [
  { name: "standalone server", folder: ".next/standalone", file: "server.js" },
  { name: "next start", folder: ".", file: "node_modules/next/dist/bin/next", args: ["start"] },
  { name: "custom server", folder: ".", file: "server.mjs" },
];

const WEBP = { Accept: "image/avif,image/webp,*/*" };
const RSC = { RSC: "1", Accept: "*/*" };
const JSON_TYPE = { "Content-Type": "application/json" };
const UPLOAD_BYTES = 3_000_000;

const REQUESTS = [
  ["/"],
  ["/", { method: "HEAD" }],
  ["/about"],
  ["/about", { headers: { "Accept-Encoding": "gzip" } }],
  ["/about", { headers: RSC }],
  ["/about/"],
  ["/planets/mars"],
  ["/planets/mars?unit=hours", { headers: { Cookie: "visitor=somebody" } }],
  ["/planets/pluto"],
  ["/nowhere"],
  ["/old"],
  ["/home"],
  ["/closed"],
  ["/stream"],
  ["/contact", { headers: { Cookie: "last=before" } }],
  ["/api/planets"],
  ["/api/planets?least=100"],
  ["/api/planets", { method: "POST", headers: JSON_TYPE, body: '{"name":"venus"}' }],
  ["/api/planets", { method: "POST", headers: JSON_TYPE, body: "nothing" }],
  ["/api/planets", { method: "DELETE" }],
  ["/api/planets", { method: "OPTIONS" }],
  ["/api/events"],
  ["/api/upload", { method: "POST", body: Buffer.alloc(UPLOAD_BYTES, "planet ") }],
  ["/sphere.png"],
  ["/sphere.png", { headers: { Range: "bytes=10-99" } }],
  ["/_next/image?url=%2Fsphere.png&w=256&q=75", { headers: WEBP }],
  ["/_next/image?url=%2Fsphere.png&w=256&q=75", { headers: WEBP }],
  ["/_next/image?url=%2Fsphere.png&w=257&q=75", { headers: WEBP }],
  ["/_next/static/chunks/nothing.js"],
];

let folder;
let browser;

before(async () => {
  folder = buildNext();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
});
after(() => browser?.close());

for (const { name, folder: place, file, args = [] } of WAYS) {
  test(`a production build of Next.js is served as by Node.js alone: ${name}`, async (context) => {
    const seen = [];
    for (const side of SIDES) {
      forgetNext(folder);
      const running = await start(context, side, { file, args, cwd: join(folder, place), env: { NEXT_TELEMETRY_DISABLED: "1" } });
      seen.push(await answers(running));
      await streams(running);
      await inBrowser(running, `next-${name.replaceAll(" ", "-")}-${side}.png`);
      await running.stop();
    }
    for (const others of seen.slice(1)) {
      for (const [index, answer] of others.entries()) assert.deepEqual(answer, seen[0][index], answer.request);
    }
  });
}

async function answers(running) {
  const all = [];
  for (const [path, settings = {}] of REQUESTS) {
    all.push({ request: `${settings.method ?? "GET"} ${path}`, ...comparable(await ask(running, path, settings)) });
  }
  // Everything that the page names.
  const page = all[0].body;
  const parts = [...new Set([...page.matchAll(/(?:src|href)="(\/_next\/static\/[^"]+)"/g)].map(([, part]) => part))];
  assert.ok(parts.length >= 4, page);
  for (const path of parts) all.push({ request: path, ...comparable(await ask(running, path)) });
  const statuses = Object.fromEntries(all.map(({ request, status }) => [request, status]));
  const wanted = {
    "GET /": 200,
    "GET /planets/pluto": 404,
    "GET /nowhere": 404,
    "GET /old": 308,
    "GET /home": 200,
    "GET /closed": 403,
    "DELETE /api/planets": 405,
    "GET /sphere.png": 206,
    "POST /api/upload": 200,
    "GET /_next/image?url=%2Fsphere.png&w=256&q=75": 200,
    "GET /_next/image?url=%2Fsphere.png&w=257&q=75": 400,
  };
  for (const [request, status] of Object.entries(wanted)) assert.equal(statuses[request], status, request);
  return all;
}

/** What waits comes later, and what does not wait comes at once. */
async function streams(running) {
  const response = await fetch(`${running.origin}/stream`);
  const pieces = [];
  for await (const piece of response.body) pieces.push(Buffer.from(piece).toString());
  const early = pieces.findIndex((piece) => piece.includes("data-early"));
  const late = pieces.findIndex((piece) => piece.includes("data-late"));
  assert.ok(early >= 0 && late > early, `early in piece ${early}, late in piece ${late} of ${pieces.length}`);
}

/** As a person has it: the page comes alive, its links need no new page, and its form calls the server's function. */
async function inBrowser(running, picture) {
  const session = await browser.newContext({ viewport: { width: 900, height: 700 } });
  const page = await session.newPage();
  const complaints = [];
  const failed = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("response", (response) => response.status() >= 400 && !response.url().endsWith("/favicon.ico") && failed.push(response.url()));
  await page.goto(`${running.origin}/`, { waitUntil: "networkidle" });
  await page.getByRole("button", { name: "pressed 0 times" }).click();
  await page.getByRole("button", { name: "pressed 1 times" }).waitFor();
  const width = await page.getByRole("img", { name: "A sphere" }).evaluate((image) => image.naturalWidth);
  assert.ok(width > 0, "the image was not shown");
  await page.screenshot({ path: join(OUTPUT, picture) });

  await page.evaluate(() => (globalThis.isSamePage = true));
  await page.getByRole("link", { name: "Earth" }).click();
  await page.getByText("A year has 365 days").waitFor();
  await page.getByRole("link", { name: "Stream" }).click();
  await page.getByText("This came later.").waitFor();
  await page.getByRole("link", { name: "Contact" }).click();
  await page.getByPlaceholder("name").fill("Vera");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Good day, Vera.").waitFor();
  await page.getByText("Last: Vera").waitFor();
  assert.equal(await page.evaluate(() => globalThis.isSamePage), true, "a link loaded a new page");
  assert.deepEqual([complaints.filter((text) => !text.includes("favicon") && !/404/.test(text)), failed], [[], []]);
  await session.close();
}
