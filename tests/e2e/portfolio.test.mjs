// The portfolio site of experiments/ as a user has it: its five routes, the same bytes from every variant, its pages in a
// browser. `PORTFOLIO_RIVALS` names a folder with portfolio-axum and portfolio-actix; then they are compared, too.
// Needs: Chromium.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { ONEHOP, OUTPUT, ROOT, accepts, freePort, run, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "experiments/portfolio");
const RIVALS = process.env.PORTFOLIO_RIVALS;
const START_MS = 15_000;
const ITERATIONS = 3;

const HTML = "text/html; charset=utf-8";
const ROUTES = [
  { path: "/", status: 200, type: HTML, expected: "home.html" },
  { path: "/blogs", status: 200, type: HTML, expected: "blogs.html" },
  { path: "/blogs/conditional-requests", status: 200, type: HTML, expected: "blog.html" },
  { path: "/version", status: 200, type: "application/json", expected: "version.json" },
  { path: "/missing", status: 404, type: HTML, expected: "missing.html" },
  { path: "/blogs/missing", status: 404, type: HTML, expected: "missing.html" },
];

/** The example on free ports, with the tests' own packages. */
async function startExample(context) {
  const folder = workFolder(context);
  for (const part of ["site.mjs", "handler.mjs", "express.mjs", "home.md", "style.css", "content", "package.json"]) {
    cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "tests/e2e/node_modules"), join(folder, "node_modules"));
  const [handler, express] = [await freePort(), await freePort()];
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8")
    .replace("localhost:8080", `localhost:${handler}`)
    .replace("localhost:8081", `localhost:${express}`);
  await startOnehop(context, { folder, text: `{\n\tadmin off\n}\n${text}` });
  return { folder, handler: `http://localhost:${handler}`, express: `http://localhost:${express}` };
}

/** A variant without onehop. */
async function startAlone(context, program, words, folder) {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), NODE_ENV: "production" };
  const child = spawn(program, words, { cwd: folder, env, stdio: ["ignore", "ignore", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  const begun = Date.now();
  while (!(await accepts(port))) {
    assert.ok(child.exitCode === null && Date.now() - begun < START_MS, `${program} did not start`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return `http://127.0.0.1:${port}`;
}

/** Every variant's name and origin. */
async function startAll(context) {
  const { folder, handler, express } = await startExample(context);
  const origins = { handler, express, node: await startAlone(context, process.execPath, ["express.mjs"], folder) };
  for (const name of RIVALS ? ["axum", "actix"] : []) {
    origins[name] = await startAlone(context, join(RIVALS, `portfolio-${name}`), [folder], folder);
  }
  return Object.entries(origins);
}

test("every variant answers each route with its status, its type and the same bytes", async (context) => {
  for (const [name, origin] of await startAll(context)) {
    for (const { path, status, type, expected } of ROUTES) {
      const response = await fetch(origin + path);
      const place = `${name} ${path}`;
      assert.equal(response.status, status, place);
      assert.ok(response.headers.get("content-type").toLowerCase().startsWith(type), place);
      assert.equal(await response.text(), readFileSync(join(EXAMPLE, "expected", expected), "utf8"), place);
    }
  }
});

test("HEAD is answered as GET is, without the body", async (context) => {
  for (const [name, origin] of await startAll(context)) {
    for (const { path, status, expected } of ROUTES) {
      const response = await fetch(origin + path, { method: "HEAD" });
      const bytes = readFileSync(join(EXAMPLE, "expected", expected)).length;
      const found = [response.status, response.headers.get("content-length"), await response.text()];
      assert.deepEqual(found, [status, String(bytes), ""], `${name} ${path}`);
    }
  }
});

test("a title with markup in it is text, in the list and on its own page", async (context) => {
  const { handler } = await startExample(context);
  for (const path of ["/", "/blogs", "/blogs/conditional-requests"]) {
    const page = await (await fetch(handler + path)).text();
    assert.ok(page.includes("Validators &amp; the &quot;not modified&quot; answer &lt;304&gt;"), path);
    assert.ok(!page.includes("<304>"), path);
  }
});

test("the Postman collection holds, iteration after iteration", async (context) => {
  const { handler, express } = await startExample(context);
  const file = join(EXAMPLE, "portfolio.postman_collection.json");
  for (const origin of [handler, express]) {
    const words = ["bench", "collection", file, "-n", String(ITERATIONS), "--var", `URL=${origin}`, "--quiet"];
    const { code, stdout, stderr } = await run(ONEHOP, words);
    assert.equal(code, 0, `${stdout}${stderr}`);
  }
});

test("a browser reads the site: from the first page to a post, and to what is not there", async (context) => {
  const { handler } = await startExample(context);
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));

  await page.goto(`${handler}/`);
  await page.getByRole("heading", { level: 1, name: "Notes on HTTP" }).waitFor();
  await page.getByRole("link", { name: 'the "not modified" answer <304>' }).click();
  await page.getByRole("heading", { level: 1, name: 'Validators & the "not modified" answer <304>' }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/blogs/conditional-requests");
  assert.equal(await page.locator("article pre code").count(), 1);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  await page.screenshot({ path: join(OUTPUT, "portfolio-post.png"), fullPage: true });
  assert.deepEqual(complaints, []);

  const missing = await page.goto(`${handler}/missing`);
  assert.equal(missing.status(), 404);
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  await page.getByRole("main").getByRole("link", { name: "All notes" }).click();
  await page.getByRole("heading", { level: 1, name: "All notes" }).waitFor();
  assert.equal(await page.getByRole("heading", { level: 3 }).count(), 4);
});
