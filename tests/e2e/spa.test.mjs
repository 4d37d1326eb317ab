// The single-page app of experiments/ as a user has it: in a browser, at two names with metrics of their own, as one
// executable and in a container. `SPA_RIVALS` names a folder with caddy, spa-axum, spa-axum-embed and static-web-server;
// then their bodies are compared, too, and those of nginx.
// Needs: Chromium; for the container podman, runc, nft, python3, root and the static onehop.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { skip as noStatic, STATIC } from "./empty-root.mjs";
import { ONEHOP, OUTPUT, ROOT, freePort, run, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "experiments/spa");
const MODULES = join(EXAMPLE, "node_modules");
const RIVALS = process.env.SPA_RIVALS;
const START_MS = 30_000;
/** An image is made first, with Node.js in it. */
const IMAGE_MS = 180_000;

const FILES = ["index.html", ...readdirSync(join(EXAMPLE, "dist/assets")).map((name) => `assets/${name}`)];
const CODE = { code: 404, name: "Not Found", text: "There is nothing at this address.", source: "RFC 9110, section 15.5.5" };

const noContainers = (() => {
  if (noStatic) return noStatic;
  const missing = ["podman", "runc", "nft", "python3"].find((program) => spawnSync(program, ["--version"]).status !== 0);
  return missing ? `${missing} is not there` : false;
})();

/** One response of 127.0.0.1, whatever name is asked. */
function ask(port, path, headers = {}) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, agent: false, headers: { host: `localhost:${port}`, ...headers } });
    asked.on("error", reject);
    asked.on("response", async (response) => {
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(await response.toArray()) });
    });
    asked.end();
  });
}

/** Asks until the answer is a good one. */
async function untilGood(port, path, within, hasEnded = () => false) {
  const begun = performance.now();
  for (;;) {
    const answer = await ask(port, path).catch(() => undefined);
    if (answer?.status === 200) return answer;
    assert.ok(!hasEnded() && performance.now() - begun < within, `${path}: no good answer, the last was ${answer?.status}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts a program that listens at `port`; it is ended with the test. */
async function start(context, words, { port, path = "/", within = START_MS, env = {} }) {
  const environment = { ...process.env, PORT: String(port), ...env };
  const child = spawn(words[0], words.slice(1), { cwd: EXAMPLE, env: environment, stdio: "ignore" });
  const exited = once(child, "exit");
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  context.after(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  await once(child, "spawn");
  await untilGood(port, path, within, hasEnded);
  return { child, exited };
}

/** The example as it is, on free ports. */
async function startExample(context) {
  const folder = workFolder(context);
  for (const part of ["api", "dist"]) cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
  const [port, admin] = [await freePort(), await freePort()];
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8").replaceAll("localhost:8080", `localhost:${port}`);
  await startOnehop(context, { folder, text: `{\n\tadmin 127.0.0.1:${admin}\n}\n${text}` });
  return { folder, port, admin };
}

/** Every file as it is in dist/, and one code. */
async function compareWithFiles(port, name, { hasApi = true, host = "localhost" } = {}) {
  const headers = { host: `${host}:${port}` };
  for (const file of FILES) {
    const { status, body } = await ask(port, file === "index.html" ? "/" : `/${file}`, headers);
    assert.equal(status, 200, `${name} ${file}`);
    assert.ok(body.equals(readFileSync(join(EXAMPLE, "dist", file))), `${name} ${file}`);
  }
  if (!hasApi) return;
  await untilGood(port, "/api/codes/404", START_MS);
  const { body } = await ask(port, "/api/codes/404", headers);
  assert.equal(body.toString(), JSON.stringify(CODE), name);
  const missing = await ask(port, "/api/codes/999", headers);
  assert.deepEqual([missing.status, JSON.parse(missing.body)], [404, { error: "there is no such code" }], name);
}

test("files have their bytes, routes of the client the index page, and missing assets are missing", async (context) => {
  const { port } = await startExample(context);
  await compareWithFiles(port, "example");
  const page = await ask(port, "/codes/404", { accept: "text/html" });
  assert.ok(page.body.equals(readFileSync(join(EXAMPLE, "dist/index.html"))));
  assert.equal((await ask(port, "/assets/gone-00000000.js")).status, 404);
  const asset = await ask(port, `/${FILES.find((file) => file.endsWith(".js"))}`);
  assert.match(asset.headers["cache-control"], /immutable/);
});

test("two names on one instance are counted apart, and share the API's process", async (context) => {
  const { port, admin } = await startExample(context);
  const counts = async () => {
    const text = (await ask(admin, "/metrics")).body.toString();
    const sum = (site) => {
      const counts = text.split("\n").filter((line) => line.startsWith("onehop_requests_total{"));
      const lines = counts.filter((line) => line.includes(`site="${site}"`));
      return lines.reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
    };
    return [sum(`http://localhost:${port}`), sum(`http://status.localhost:${port}`)];
  };
  for (const [host, times] of [["localhost", 3], ["status.localhost", 5]]) {
    for (let time = 0; time < times; time += 1) assert.equal((await ask(port, "/", { host: `${host}:${port}` })).status, 200);
  }
  const begun = performance.now();
  let found = await counts();
  while (found.join() !== "3,5" && performance.now() - begun < START_MS) found = await counts();
  assert.deepEqual(found, [3, 5]);
  await untilGood(port, "/api/codes", START_MS);
  const status = JSON.parse((await ask(admin, "/status")).body);
  assert.equal(status.apps.length, 1, "identical settings are one application");
});

test("a browser finds a code, reads it, and comes back to its address", async (context) => {
  const { port } = await startExample(context);
  await untilGood(port, "/api/codes", START_MS);
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));

  await page.goto(`http://status.localhost:${port}/`);
  await page.getByRole("searchbox", { name: "Find a code" }).fill("not found");
  await page.getByText("1 code", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Not Found" }).click();
  await page.getByRole("heading", { level: 1, name: "404 Not Found" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/codes/404");
  await page.reload();
  await page.getByText(CODE.text).waitFor();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  await page.screenshot({ path: join(OUTPUT, "spa-code.png"), fullPage: true });
  assert.deepEqual(complaints, []);
});

test("the packed app answers as the folder does", async (context) => {
  const folder = workFolder(context);
  const packed = join(folder, "spa");
  const { code, stderr } = await run(ONEHOP, ["pack", join(EXAMPLE, "pack.Onehopfile"), "-o", packed]);
  assert.equal(code, 0, stderr);
  const port = await freePort();
  const words = [packed, "--listen", `127.0.0.1:${port}`, "--control", join(folder, "control")];
  await start(context, words, { port, env: { ONEHOP_CACHE: folder, PORT: "" } });
  await compareWithFiles(port, "pack");
});

test("the container answers on both networks and leaves nothing", { skip: noContainers }, async (context) => {
  const tables = () => spawnSync("nft", ["list", "tables"]).stdout.toString();
  const before = tables();
  for (const network of ["host", "published"]) {
    const port = await freePort();
    const words = ["python3", join(EXAMPLE, "container.py"), network];
    const { child, exited } = await start(context, words, { port, within: IMAGE_MS, env: { ONEHOP_STATIC: STATIC } });
    await compareWithFiles(port, network);
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
    const left = spawnSync("podman", ["ps", "--all", "--quiet", "--filter", `name=onehop-spa-${port}`]).stdout.toString();
    assert.equal(left, "", "the container is gone");
    assert.equal(tables(), before, "the packet filter is as it was");
  }
});

const notInstalled = !existsSync(MODULES) && "npm ci --prefix experiments/spa comes first";

test("the committed app is what its sources build", { skip: notInstalled }, async (context) => {
  const folder = workFolder(context);
  for (const part of ["index.html", "src", "vite.config.js", "package.json"]) {
    cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
  }
  symlinkSync(MODULES, join(folder, "node_modules"));
  const { code, stderr } = await run("npm", ["run", "build"], { cwd: folder });
  assert.equal(code, 0, stderr);
  const built = ["index.html", ...readdirSync(join(folder, "dist/assets")).map((name) => `assets/${name}`)];
  assert.deepEqual(built.sort(), [...FILES].sort());
  for (const file of FILES) {
    assert.ok(readFileSync(join(folder, "dist", file)).equals(readFileSync(join(EXAMPLE, "dist", file))), file);
  }
});

test("the scenarios ask for files that are there, and know their lengths", () => {
  for (const name of ["scenario.toml", "tls/scenario.toml"]) {
    const text = readFileSync(join(EXAMPLE, name), "utf8");
    const assets = [...text.matchAll(/path = "\/(assets\/[^"]+)"/g)].map(([, file]) => file);
    assert.ok(assets.length > 0 && assets.every((file) => FILES.includes(file)), `${name}: ${assets}`);
    const page = readFileSync(join(EXAMPLE, "dist/index.html")).length;
    for (const entry of text.split("[[case]]").slice(1)) {
      const bytes = /^body_bytes = (\d+)/m.exec(entry)?.[1];
      const expected = entry.includes('"/api/codes/404"') ? JSON.stringify(CODE).length : page;
      if (bytes) assert.equal(Number(bytes), expected, entry);
    }
  }
});

const withRivals = RIVALS ? test : () => {};

withRivals("every rival sends the same bytes", async (context) => {
  const api = await freePort();
  await start(context, ["node", "api/server.mjs"], { port: api, path: "/api/codes" });
  const program = (name) => join(RIVALS, name);
  const caddy = (file) => [program("caddy"), "run", "--adapter", "caddyfile", "--config", join(EXAMPLE, "measured", file)];
  const page = join(EXAMPLE, "dist/index.html");
  const rivals = [
    ["caddy", () => caddy("Caddyfile"), true],
    ["caddy-plain", () => caddy("plain.Caddyfile"), false],
    ["axum", () => [program("spa-axum"), EXAMPLE], true],
    ["axum-embed", () => [program("spa-axum-embed")], true],
    ["nginx", (port) => nginx(context, port, api), true],
    ["static-web-server", (port) => sws(program("static-web-server"), port, page), false],
  ];
  for (const [name, words, hasApi] of rivals) {
    const port = await freePort();
    await start(context, words(port), { port, env: { FOLDER: EXAMPLE, API: String(api) } });
    await compareWithFiles(port, name, { hasApi, host: "127.0.0.1" });
    if (name === "caddy-plain") continue;
    const route = await ask(port, "/codes/404", { accept: "text/html", host: `127.0.0.1:${port}` });
    // static-web-server leaves out the white space at the end of its fallback page.
    assert.equal(route.body.toString().trimEnd(), readFileSync(page, "utf8").trimEnd(), `${name} /codes/404`);
  }
});

function sws(program, port, page) {
  const root = join(EXAMPLE, "dist");
  return [program, "--host", "127.0.0.1", "--port", String(port), "--root", root, "--page-fallback", page, "--log-level", "error"];
}

/** nginx with the scenario's configuration, filled in. */
function nginx(context, port, api) {
  const work = workFolder(context);
  const file = join(work, "nginx.conf");
  const values = { port, api, work, folder: EXAMPLE };
  const text = readFileSync(join(EXAMPLE, "measured/nginx.conf"), "utf8");
  writeFileSync(file, text.replaceAll(/\{(port|api|work|folder)\}/g, (_, name) => values[name]));
  return ["/usr/sbin/nginx", "-p", work, "-c", file];
}
