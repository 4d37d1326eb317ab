// What React Router, SvelteKit and Nitro build for Node.js, run as their documentation says: the same answers behind
// onehop as under Node.js alone, and pages that live in a browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { buildOthers } from "./build.mjs";
import { SIDES, ask, comparable, start } from "./sides.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const json = (value) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
const form = (headers = {}) => ({ method: "POST", headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers }, body: "name=Vera" });

const APPLICATIONS = [
  {
    name: "react-router-serve",
    folder: "react-router",
    file: "../node_modules/@react-router/serve/bin.js",
    args: ["./build/server/index.js"],
    hasPage: true,
    requests: [["/", 200], ["/planets/mars", 200], ["/planets/pluto", 404], ["/nothing", 404], ["/api/planets", 200], ["/api/planets", 201, json({ name: "venus" })], ["/?index", 200, form()], ["/plain.txt", 200], ["/plain.txt", 206, { headers: { Range: "bytes=0-6" } }], ["/", 200, { method: "HEAD" }]],
  },
  {
    name: "SvelteKit's adapter for Node.js",
    folder: "svelte",
    file: "build/index.js",
    hasPage: true,
    requests: [["/", 200], ["/planets/mars", 200], ["/planets/pluto", 404], ["/nothing", 404], ["/api/planets", 200], ["/api/planets", 201, json({ name: "venus" })], ["/", 200, form({ Origin: "https://localhost" })], ["/", 403, form({ Origin: "http://else.where" })], ["/stream", 200], ["/plain.txt", 200], ["/", 200, { method: "HEAD" }]],
  },
  {
    name: "Nitro's server for Node.js",
    folder: "nitro",
    file: ".output/server/index.mjs",
    hasPage: false,
    requests: [["/", 200], ["/planets/earth", 200], ["/planets/pluto", 404], ["/nothing", 404], ["/api/planets", 201, json({ name: "venus" })], ["/stream", 200], ["/plain.txt", 200], ["/plain.txt", 304, { headers: { "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT" } }]],
  },
];

let built;
let browser;

before(async () => {
  built = buildOthers();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
});
after(() => browser?.close());

for (const { name, folder, file, args = [], hasPage, requests } of APPLICATIONS) {
  test(`${name} answers as under Node.js alone`, async (context) => {
    const seen = [];
    for (const side of SIDES) {
      const running = await start(context, side, { file, args, cwd: join(built, folder) });
      const all = [];
      for (const [path, status, settings] of requests) {
        const answer = comparable(await ask(running, path, settings));
        assert.equal(answer.status, status, `${side}: ${path}: ${answer.body}`);
        all.push({ path, ...answer });
      }
      seen.push(all);
      if (hasPage) await inBrowser(running);
      const { code } = await running.stop();
      if (side === "onehop") assert.equal(code, 0);
    }
    for (const others of seen.slice(1)) {
      for (const [index, answer] of others.entries()) assert.deepEqual(answer, seen[0][index]);
    }
  });
}

/** The page comes alive, and its link needs no new page. */
async function inBrowser(running) {
  const session = await browser.newContext();
  const page = await session.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${running.origin}/`, { waitUntil: "networkidle" });
  await page.getByRole("button", { name: "pressed 0 times" }).click();
  await page.getByRole("button", { name: "pressed 1 times" }).waitFor();
  await page.evaluate(() => (globalThis.isSamePage = true));
  await page.getByRole("link", { name: "Earth" }).click();
  await page.getByText("A year has 365 days").waitFor();
  assert.equal(await page.evaluate(() => globalThis.isSamePage), true, "a link loaded a new page");
  assert.deepEqual(complaints, []);
  await session.close();
}
