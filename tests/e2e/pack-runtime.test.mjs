// Packs with Node.js in them, in a root directory that holds nothing but the pack: no /dev, no /proc, no libraries,
// no temporary folder. What they answer is compared with what onehop answers from the folder that was packed.
// Needs: Bun.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PLACE, STATIC, ask, filesIn, packIntoRoot, skip, startInRoot, stopInRoot, until } from "./empty-root.mjs";
import { ROOT, freePort, run, startOnehop, workFolder } from "./program.mjs";

/** Bun, where it is to be tested as well. */
const BUN = process.env.ONEHOP_BUN;
/** A first page takes a few milliseconds; a debug build on a machine that does other things may need more. */
const FIRST_PAGE_MS = 1_000;
const NODE = ["--runtime", "node"];

/** A folder with these files, whose site listens on a port that is free. */
async function project(context, fill) {
  const folder = join(workFolder(context), "shop");
  mkdirSync(folder);
  fill(folder);
  const port = await freePort();
  const file = join(folder, "Onehopfile");
  writeFileSync(file, readFileSync(file, "utf8").replace("localhost:8080", `localhost:${port}`));
  return { folder, file, port };
}

function example(name, parts) {
  return (folder) => {
    for (const part of ["Onehopfile", ...parts]) {
      cpSync(join(ROOT, "examples", name, part), join(folder, part), { recursive: true, preserveTimestamps: true });
    }
  };
}

/** The same answers from the folder, in every encoding. */
async function compareWithFolder(context, { folder }, port, paths) {
  const text = readFileSync(join(folder, "Onehopfile"), "utf8").replace(`localhost:${port}`, "localhost:0");
  const server = await startOnehop(context, { folder, name: "Onehopfile.folder", text: `{\n\tadmin off\n}\n${text}` });
  for (const path of paths) {
    for (const encoding of ["identity", "gzip", "br", "zstd"]) {
      for (const range of [undefined, "bytes=3-11"]) {
        const headers = { "accept-encoding": encoding, ...(range && { range }) };
        const packed = await ask(port, path, { headers: { ...headers } });
        // A folder's forms are made while it is served.
        const same = (answer) => answer.headers["content-encoding"] === packed.headers["content-encoding"];
        const fromFolder = () => ask(server.port, path, { headers: { ...headers, host: `localhost:${server.port}` } });
        const expected = await until(fromFolder, same);
        assert.deepEqual(packed.fields, expected.fields, `${path} ${encoding} ${range}`);
        assert.equal(packed.status, expected.status);
        assert.ok(packed.body.equals(expected.body), `${path} ${encoding} ${range}`);
      }
    }
  }
}

test("a page is there at once in an empty root, and as from its folder", { skip }, async (context) => {
  const made = await project(context, example("quickstart", ["dist"]));
  const root = await packIntoRoot(context, made.file);
  const running = await startInRoot(context, root, made.port);
  assert.ok(running.firstPage < FIRST_PAGE_MS, `${running.firstPage} ms`);
  const assets = readdirSync(join(made.folder, "dist/assets")).map((name) => `/assets/${name}`);
  await compareWithFolder(context, made, made.port, ["/", "/items/42", "/favicon.svg", "/nothing.js", ...assets]);
  await stopInRoot(running, root);
  assert.deepEqual(filesIn(root), ["/shop"], "nothing had to be unpacked");
});

test("a handler answers in an empty root with the Node.js of its pack", { skip }, async (context) => {
  const made = await project(context, example("api", ["dist", "api"]));
  const root = await packIntoRoot(context, made.file, NODE);
  for (const time of ["first", "second"]) {
    const running = await startInRoot(context, root, made.port);
    assert.ok(running.firstPage < FIRST_PAGE_MS, `${time}: ${running.firstPage} ms`);
    const begun = performance.now();
    const notes = await until(() => running.ask("/api/notes"), ({ status }) => status === 200);
    context.diagnostic(`the application's first answer at the ${time} start after ${Math.round(performance.now() - begun)} ms more`);
    assert.equal(JSON.parse(notes.body).length, 1);
    const posted = { method: "POST", headers: { "content-type": "application/json" }, body: '{"text":"milk"}' };
    assert.equal((await running.ask("/api/notes", posted)).status, 201);
    await stopInRoot(running, root);
  }
});

test("an Express API, its dependencies and a page built by Vite need nothing of the machine", { skip }, async (context) => {
  const built = join(ROOT, "examples/quickstart/dist");
  const made = await project(context, (folder) => {
    example("express", ["server.js", "files", "package.json", "package-lock.json"])(folder);
    cpSync(built, join(folder, "dist"), { recursive: true });
    cpSync(join(ROOT, "tests/e2e/node_modules"), join(folder, "node_modules"), { recursive: true });
  });
  const root = await packIntoRoot(context, made.file, NODE);
  const running = await startInRoot(context, root, made.port);
  assert.ok(running.firstPage < FIRST_PAGE_MS, `${running.firstPage} ms`);
  const notes = await until(() => running.ask("/api/notes"), ({ status }) => status === 200);
  assert.equal(notes.headers["x-powered-by"], "Express");
  assert.deepEqual(JSON.parse((await running.ask("/api/nothing")).body), { error: "there is nothing at /api/nothing" });
  const assets = readdirSync(join(built, "assets")).map((name) => `/assets/${name}`);
  await compareWithFolder(context, made, made.port, ["/", "/items/42", ...assets]);
  await stopInRoot(running, root);
});

/** What applications start, and where they find themselves. */
const FAMILY = `
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { Worker } from "node:worker_threads";

const answers = {
  async fork() {
    const child = fork(new URL("./child.cjs", import.meta.url));
    const [message] = await once(child, "message");
    return message;
  },
  async bare() {
    const child = spawn(process.execPath, ["-p", "40 + 2"], { env: {}, stdio: ["pipe", "pipe", "pipe"] });
    return String(await child.stdout.toArray()).trim();
  },
  async thread() {
    const worker = new Worker(new URL("./thread.mjs", import.meta.url), { workerData: 21 });
    const [message] = await once(worker, "message");
    return message;
  },
  child: () => spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: ["pipe", "pipe", "pipe"] }).pid,
  self: () => ({ path: process.execPath, version: process.versions.bun ?? process.version, folder: process.cwd() }),
};
export default {
  async fetch(request) {
    return Response.json(await answers[new URL(request.url).pathname.slice("/api/".length)]());
  },
};
`;

function family(runtime = "") {
  return (folder) => {
    mkdirSync(join(folder, "dist"));
    writeFileSync(join(folder, "dist/index.html"), "<!doctype html><title>family</title>");
    writeFileSync(join(folder, "package.json"), '{"name":"family","type":"module"}');
    writeFileSync(join(folder, "server.mjs"), FAMILY);
    writeFileSync(join(folder, "child.cjs"), "process.send({ path: process.execPath }); process.disconnect();");
    writeFileSync(join(folder, "thread.mjs"), 'import { parentPort, workerData } from "node:worker_threads"; parentPort.postMessage(workerData * 2);');
    const app = `app /api/* ./server.mjs${runtime && ` {\n\t\truntime ${runtime}\n\t}`}`;
    writeFileSync(join(folder, "Onehopfile"), `http://localhost:8080 {\n\t${app}\n\tspa ./dist\n}\n`);
  };
}

test("processes and threads that an application starts run with the same Node.js", { skip }, async (context) => {
  const made = await project(context, family());
  const root = await packIntoRoot(context, made.file, NODE);
  const running = await startInRoot(context, root, made.port);
  const told = async (name) => {
    const answer = await until(() => running.ask(`/api/${name}`), ({ status }) => status !== 503);
    assert.equal(answer.status, 200, `${name}: ${answer.body}\n${running.lines.join("\n")}`);
    return JSON.parse(answer.body);
  };
  const self = await told("self");
  assert.ok(self.path.startsWith(`${PLACE}/onehop-pack-`) && self.path.endsWith("/runtime/bin/node"), self.path);
  assert.ok(self.folder.startsWith(`${PLACE}/onehop-pack-`), self.folder);
  const installed = spawnSync("node", ["--version"], { encoding: "utf8" });
  assert.equal(self.version, installed.stdout.trim());
  assert.deepEqual(await told("fork"), { path: self.path });
  assert.equal(await told("bare"), "42");
  assert.equal(await told("thread"), 42);
  await stopInRoot(running, root);
});

test("a server that is killed in an empty root leaves no process behind", { skip }, async (context) => {
  const made = await project(context, family());
  const root = await packIntoRoot(context, made.file, NODE);
  const running = await startInRoot(context, root, made.port);
  const answer = await until(() => running.ask("/api/child"), ({ status }) => status === 200);
  const child = Number(answer.body);
  process.kill(child, 0);
  running.child.kill("SIGKILL");
  await running.exited;
  const isGone = () => {
    try {
      process.kill(child, 0);
      return false;
    } catch {
      return true;
    }
  };
  await until(async () => ({ status: 0, body: `process ${child} is still there` }), isGone);
});

test("without a runtime in it and on the machine, the reason says what to do", { skip }, async (context) => {
  const made = await project(context, family());
  const root = await packIntoRoot(context, made.file);
  const running = await startInRoot(context, root, made.port);
  const fits = (line) => line.includes("--runtime node") && line.includes("install Node.js");
  await until(async () => ({ status: 0, body: running.lines.join("\n") }), ({ body }) => fits(body));
  running.child.kill("SIGTERM");
  await running.exited;
});

// JavaScriptCore reads where its stack is from /proc, which every container has.
const skipBun = skip || (BUN ? false : "name a Bun with ONEHOP_BUN");
test("a handler answers with the Bun of its pack, where there is /proc", { skip: skipBun }, async (context) => {
  const made = await project(context, family("bun"));
  const root = await packIntoRoot(context, made.file, ["--runtime", `bun=${BUN}`]);
  mkdirSync(join(root, "proc"));
  const mounted = ["unshare", "--mount", "sh", "-c", `mount -t proc proc "$2/proc" && exec "$@"`, "sh"];
  const running = await startInRoot(context, root, made.port, { prefix: mounted });
  const self = await until(() => running.ask("/api/self"), ({ status }) => status === 200);
  assert.match(JSON.parse(self.body).path, /\/runtime\/bin\/bun$/);
  assert.equal((await running.ask("/api/thread")).body.toString(), "42");
  await stopInRoot(running, root);
});

test("a runtime that is none is refused before anything is written", { skip: existsSync(STATIC) ? false : "no onehop" }, async (context) => {
  const made = await project(context, family());
  const out = join(made.folder, "../out");
  copyFileSync("/bin/true", join(made.folder, "../true"));
  for (const [option, expected] of [
    ["deno", "write node, bun"],
    ["node=/nothing/node", "/nothing/node: No such file"],
    [`node=${join(made.folder, "../true")}`, "does not answer as Node.js"],
  ]) {
    const done = await run(STATIC, ["pack", made.file, "-o", out, "--runtime", option]);
    assert.notEqual(done.code, 0);
    assert.ok(done.stderr.includes(expected), done.stderr);
    assert.equal(existsSync(out), false);
  }
});
