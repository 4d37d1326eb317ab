// `onehop try` on what people have: an Express application, a folder built by Vite, a Caddyfile and an nginx.conf
// in front of an application. It works without an option, in under a minute, both sides answer the same, and the
// Onehopfile that it shows is one that onehop accepts.
//
// ONEHOP_TRY_FULL=1 gives each the time that a person would (four minutes altogether).
// Needs: nginx and Caddy.
// Alone: loads that compare two servers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { CADDY, freePort, ONEHOP, ROOT, run, workFolder } from "./program.mjs";

const FULL = process.env.ONEHOP_TRY_FULL === "1";
/** Long enough for every step, too short for figures. */
const SHORT = ["--within", "6s"];
/** What a person is promised. */
const LONGEST_MS = 60_000;
/** The sentences of a trial's caveats. */
const texts = (trial) => trial.caveats.map((caveat) => caveat.text);

const nginx = (await exists("nginx", ["-v"])) || (await exists("/usr/sbin/nginx", ["-v"]));

test("an Express application with a package.json", async (context) => {
  const folder = workFolder(context);
  express(folder);
  const { trial } = await tried(context, folder, [folder]);
  assert.match(trial.description, /Express application \(express \d/);
  assert.match(trial.today[0], /^Node v\d+\.\d+\.\d+ \(server\.js\) alone$/);
  assert.match(trial.onehop[0], /^onehop \d+\.\d+\.\d+ runs Node v\d/);
  assert.match(trial.onehopfile, /app \.\/server\.js/);
  agrees(trial, "onehop");
  assert.deepEqual(trial.measured_paths, ["/"]);
  // Behind nginx too, where it is here and there is time for it.
  if (trial.today.length > 1) assert.match(trial.today[1], /^nginx\/\d.* in front of Node v/);
  else if (nginx) assert.ok(texts(trial).includes("There was no time for the other stack of today."), texts(trial).join("\n"));
});

test("a folder built by Vite", { skip: !nginx && !CADDY && "neither nginx nor Caddy is here" }, async (context) => {
  const folder = workFolder(context);
  const quickstart = join(ROOT, "examples/quickstart");
  for (const part of ["src", "public", "index.html", "vite.config.js", "package.json"]) {
    cpSync(join(quickstart, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(quickstart, "node_modules"), join(folder, "node_modules"));
  const { code, stderr } = await run("npx", ["vite", "build", "--logLevel", "error"], { cwd: folder });
  assert.equal(code, 0, stderr);
  const { trial } = await tried(context, folder, [join(folder, "dist")]);
  assert.match(trial.onehopfile, /spa \.\/dist/);
  assert.match(trial.onehop[0], /serves the files$/);
  agrees(trial, "onehop");
});

test("a configuration of pm2, and the Onehopfile that came of it", async (context) => {
  const folder = workFolder(context);
  express(folder);
  writeFileSync(join(folder, "ecosystem.config.cjs"), 'module.exports = { apps: [{ name: "shop", script: "server.js", instances: 2, env: { MODE: "demo" } }] };\n');
  const { trial } = await tried(context, folder, [join(folder, "ecosystem.config.cjs")]);
  assert.equal(trial.description, "an application of pm2 (shop in ecosystem.config.cjs)");
  assert.match(trial.today[0], /^Node v\d+\.\d+\.\d+ \(server\.js\) alone$/);
  assert.match(trial.onehopfile, /app \.\/server\.js \{\n\t\tenv MODE demo\n\t\tworkers 2\n\t\}/);
  agrees(trial, "onehop");

  const own = workFolder(context);
  express(own);
  writeFileSync(join(own, "Onehopfile"), trial.onehopfile.replace(":8080", "http://shop.example"));
  const again = (await tried(context, own, [join(own, "Onehopfile")])).trial;
  assert.match(again.today[0], /^Node v\d+\.\d+\.\d+ \(server\.js\) alone$/);
  assert.match(again.onehopfile, /^http:\/\/shop\.example \{/m);
  agrees(again, "onehop");
});

test("a Caddyfile with a proxy to an application beside it", { skip: !CADDY && "Caddy is not here" }, async (context) => {
  const folder = workFolder(context);
  const port = await freePort();
  express(folder, port);
  writeFileSync(join(folder, "Caddyfile"), `:${await freePort()} {\n\treverse_proxy localhost:${port}\n}\n`);
  const { trial } = await tried(context, folder, [join(folder, "Caddyfile")]);
  assert.match(trial.today[0], /^Caddy .* in front of Node v/);
});

test("an nginx.conf with a proxy to a server that runs", { skip: !nginx && "nginx is not here" }, async (context) => {
  const folder = workFolder(context);
  const server = createServer((request, response) => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ url: request.url, host: request.headers.host }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  const location = `location /nws/ {\n\t\t\tproxy_pass http://localhost:${server.address().port}/;\n\t\t\tproxy_set_header Host $host;\n\t\t}`;
  writeFileSync(join(folder, "nginx.conf"), `events {}\nhttp {\n\tserver {\n\t\tlisten 8081;\n\t\t${location}\n\t}\n}\n`);
  const { trial } = await tried(context, folder, [join(folder, "nginx.conf"), "--path", "/nws/"]);
  assert.match(trial.today[0], /^nginx\/\d.* in front of the server at .*, which runs already$/);
  assert.ok(trial.compared.some(({ request }) => request.startsWith("GET /nws/")), JSON.stringify(trial.compared));
  agrees(trial, "nginx");
  agrees(trial, "onehop");
  assert.ok(server.listening, "a server that ran before runs afterwards");
});

test("an nginx.conf with files of its own waits for the application behind it and measures that", { skip: !nginx && "nginx is not here" }, async (context) => {
  const folder = workFolder(context);
  const port = await freePort();
  express(folder, port, { startsAfterMs: 1500 });
  mkdirSync(join(folder, "public"));
  writeFileSync(join(folder, "public/index.html"), "<!doctype html><title>A page of the front</title>\n");
  const location = `location /nws/ {\n\t\t\tproxy_pass http://localhost:${port}/;\n\t\t\tproxy_set_header Host $host;\n\t\t}`;
  const server = `server {\n\t\tlisten 8081;\n\t\tcharset utf-8;\n\t\troot ${join(folder, "public")};\n\t\t${location}\n\t}`;
  writeFileSync(join(folder, "nginx.conf"), `events {}\nhttp {\n\tinclude /etc/nginx/mime.types;\n\t${server}\n}\n`);
  // `tried` finds no difference, so no 502 was taken for an answer.
  const { trial, stdout } = await tried(context, folder, [join(folder, "nginx.conf"), "--path", "/", "--probe-routes"]);
  assert.match(trial.today[0], /^nginx\/\d.* in front of Node v/);
  assert.ok(trial.compared.some(({ request }) => request === "GET /"), JSON.stringify(trial.compared));
  assert.deepEqual(trial.measured_paths, ["/nws/"]);
  assert.match(stdout, /What a request costs: GET \/nws\//);
});

test("an application that listens on a port of its own is found there", async (context) => {
  const folder = workFolder(context);
  const port = await freePort();
  express(folder, port, { ignoresPort: true });
  const { trial } = await tried(context, folder, [join(folder, "package.json")]);
  assert.ok(texts(trial).includes(`The application listens on port ${port} whatever PORT says.`), texts(trial).join("\n"));
});

test("an application that does not start is told with its last lines, and nothing is left running", async (context) => {
  const folder = workFolder(context);
  express(folder);
  writeFileSync(join(folder, "server.js"), 'require("express");\nthrow new Error("the database is not there");\n');
  const { code, stderr } = await run(ONEHOP, ["try", folder, ...SHORT]);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /the database is not there/);
});

test("two sides that answer differently are not compared", async (context) => {
  const folder = workFolder(context);
  express(folder);
  // The same at each request, and another one on each side.
  const source = 'const app = require("express")();\napp.get("/", (request, response) => response.send(`process ${process.pid}`));\napp.listen(process.env.PORT);\n';
  writeFileSync(join(folder, "server.js"), source);
  const json = join(folder, "result.json");
  const { stdout } = await run(ONEHOP, ["try", folder, ...SHORT, "--json", json]);
  const trial = trialIn(json);
  assert.equal(trial.comparison, null, stdout.toString());
  assert.match(trial.unmeasured, /^the responses to \/ differ \(body.*; --path names/);
  assert.match(stdout.toString(), /^! Nothing was measured: the responses to \/ differ \(body/m);
});

test("routes of the source code that change something are not asked, nor links to them", async (context) => {
  for (const probes of [[], ["--probe-routes"]]) {
    const folder = workFolder(context);
    express(folder);
    const source = `const { appendFileSync } = require("node:fs");
const app = require("express")();
app.use((request, response, next) => { appendFileSync(${JSON.stringify(join(folder, "asked"))}, request.method + " " + request.url + "\\n"); next(); });
const page = '<a href="/purge">Purge</a> <a href="/unsubscribe/7">Leave</a> <a href="/about">About</a>';
app.get("/", (request, response) => response.send(page));
for (const path of ["/about", "/api/items"]) app.get(path, (request, response) => response.send(path));
app.get("/api/list", (request, response) => response.send("a list"));
app.get("/purge", (request, response) => response.send("purged"));
app.get("/unsubscribe/:id", (request, response) => response.send("gone"));
app.listen(process.env.PORT);
`;
    writeFileSync(join(folder, "server.js"), source);
    const { trial } = await tried(context, folder, [folder, ...probes]);
    const asked = new Set(readFileSync(join(folder, "asked"), "utf8").trim().split("\n"));
    const all = [...asked].join(", ");
    assert.ok(asked.has("GET /") && asked.has("GET /about"), all);
    assert.equal(asked.has("GET /api/list"), probes.length > 0, all);
    assert.deepEqual([...asked].filter((line) => /purge|unsubscribe/.test(line) || !/^(GET|HEAD) /.test(line)), [], all);
    const skipped = trial.not_asked.map(({ path }) => path);
    for (const path of ["/purge", "/unsubscribe/:id", "/unsubscribe/7"]) assert.ok(skipped.includes(path), skipped.join(" "));
  }
});

/** Tries it and checks what holds of every trial. */
async function tried(context, folder, words) {
  const [json, kept] = [join(folder, "result.json"), join(folder, "kept.Onehopfile")];
  const bin = join(folder, "bin");
  mkdirSync(bin);
  if (CADDY) symlinkSync(CADDY, join(bin, "caddy"));
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  const begun = performance.now();
  const { code, stdout, stderr } = await run(ONEHOP, ["try", ...words, "--json", json, "--keep", kept, ...(FULL ? [] : SHORT)], { env, cwd: folder });
  const took = performance.now() - begun;
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  assert.ok(took < LONGEST_MS, `it took ${took} ms`);
  const trial = trialIn(json);
  const differing = trial.compared.filter(({ differences }) => differences.length > 0);
  assert.deepEqual(differing, [], `${trial.same_answers} of ${trial.compared_requests}`);
  assert.ok(trial.compared_requests >= 10, `${trial.compared_requests} requests`);
  assert.match(stdout.toString(), new RegExp(`${trial.same_answers} of ${trial.compared_requests} requests`));
  assert.ok(trial.comparison, texts(trial).join("\n"));
  assert.ok(trial.comparison.rows.some(({ metric }) => /cpu/i.test(metric)), JSON.stringify(trial.comparison.rows));
  assert.deepEqual(trial.own_figures.filter((line) => line.startsWith("CONTRADICTION")), []);
  // It stands in the folder, or where it was asked for; its paths are meant from there.
  const checked = await run(ONEHOP, ["validate", kept], { cwd: folder });
  assert.equal(checked.code, 0, checked.stderr);
  context.diagnostic(`${trial.same_answers} of ${trial.compared_requests} the same, ${(took / 1000).toFixed(1)} s`);
  return { trial, stdout: stdout.toString() };
}

function trialIn(json) {
  return JSON.parse(readFileSync(json, "utf8")).trial;
}

/** That server told of itself, and what it told fits. */
function agrees(trial, server) {
  const fits = /counted \d+ requests, the load \d+ answers.*: they agree$/;
  assert.ok(trial.own_figures.some((line) => line.startsWith(server) && fits.test(line)), trial.own_figures.join("\n"));
}

/** An application of a few routes. */
function express(folder, port, { ignoresPort = false, startsAfterMs = 0 } = {}) {
  symlinkSync(join(ROOT, "tests/e2e/node_modules"), join(folder, "node_modules"));
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "tests/e2e/package.json"), "utf8"));
  const version = { ...dependencies, ...devDependencies }.express;
  const meta = { name: "shop", private: true, scripts: { start: "node server.js" }, dependencies: { express: version } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(meta));
  writeFileSync(
    join(folder, "server.js"),
    `const express = require("express");
const app = express();
app.get("/", (request, response) => response.send("<h1>Good day</h1>"));
app.get("/api/items", (request, response) => response.json({ items: [1, 2, 3] }));
setTimeout(() => app.listen(${ignoresPort ? port : `process.env.PORT || ${port ?? 3000}`}), ${startsAfterMs});
`,
  );
}

async function exists(program, words) {
  try {
    return (await run(program, words)).code === 0;
  } catch {
    return false;
  }
}
