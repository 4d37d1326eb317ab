// Vite rebuilds the app into the folder that is being served, again and again, under load.
// No client may get an answer that mixes two builds, and no request may fail, not even one for a chunk of a build that was
// replaced while its page was loading.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { ROOT, run, startOnehop, workFolder } from "./program.mjs";

const REBUILDS = Number(process.env.ONEHOP_REBUILDS ?? 8);
const CLIENTS = 4;
const VISIBLE_MS = 20_000;

test(`Vite rebuilds ${REBUILDS} times into the served folder under load`, async (context) => {
  const folder = workFolder(context);
  const app = join(folder, "app");
  mkdirSync(app);
  const quickstart = join(ROOT, "examples/quickstart");
  for (const part of ["src", "public", "index.html", "vite.config.js", "package.json"]) {
    cpSync(join(quickstart, part), join(app, part), { recursive: true });
  }
  symlinkSync(join(quickstart, "node_modules"), join(app, "node_modules"));
  const build = async (number) => {
    stamp(app, number);
    const { code, stderr } = await run("npx", ["vite", "build", "--logLevel", "error"], { cwd: app });
    assert.equal(code, 0, stderr);
  };
  await build(0);
  const server = await startOnehop(context, {
    folder,
    text: `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tspa ${join(app, "dist")}\n}\n`,
  });

  const state = { stop: false, loads: 0, requests: 0, raced: 0, builds: new Set(), faults: [] };
  const clients = Array.from({ length: CLIENTS }, () => visit(server.port, state));
  for (let number = 1; number <= REBUILDS && state.faults.length === 0; number += 1) {
    await build(number);
    await becomesVisible(server.port, number);
  }
  state.stop = true;
  await Promise.all(clients);
  assert.deepEqual(state.faults.slice(0, 5), []);
  assert.ok(state.builds.size > REBUILDS / 2, `clients saw only ${state.builds.size} builds`);
  context.diagnostic(`${state.loads} loads, ${state.requests} requests, ${state.builds.size} builds seen, ${state.raced} loads met a swap`);
});

/** Writes the build's number into a script, a lazy chunk and the style, so that every hash changes. */
function stamp(app, number) {
  const quickstart = join(ROOT, "examples/quickstart/src");
  for (const file of ["main.jsx", "style.css", "fields.js"]) {
    const mark = file.endsWith(".css") ? `\n:root { --build: "build-${number}-end"; }\n` : `\nglobalThis.build = "build-${number}-end";\n`;
    writeFileSync(join(app, "src", file), readFileSync(join(quickstart, file), "utf8") + mark);
  }
}

const buildIn = (text) => /build-(\d+)-end/.exec(text)?.[1];

/** Loads the page like a browser, over and over: the index, then everything that it names. */
async function visit(port, state) {
  let connection = await Connection.open(port);
  try {
    while (!state.stop) {
      const index = await ask(connection, "/", state);
      const paths = [...index.body.toString().matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path);
      if (index.status !== 200 || paths.length < 3) throw new Error(`the index page answered ${index.status} with ${paths.length} assets`);
      const builds = new Set();
      for (const path of paths) {
        const asset = await ask(connection, path, state);
        const isHashed = path.startsWith("/assets/");
        // The build may have been replaced since the index was read: its assets are kept for such pages.
        if (asset.status !== 200) state.faults.push(`${path} answered ${asset.status}`);
        else if (asset.body.length === 0) state.faults.push(`${path} was empty`);
        if (asset.status === 200 && isHashed) builds.add(buildIn(asset.body.toString()));
      }
      builds.delete(undefined);
      if (builds.size > 1) state.faults.push(`one page with the builds ${[...builds].join(" and ")}`);
      const now = await ask(connection, "/", state);
      if (!now.body.equals(index.body)) state.raced += 1;
      for (const build of builds) state.builds.add(build);
      state.loads += 1;
    }
  } catch (error) {
    state.faults.push(String(error));
  } finally {
    connection.close();
  }
}

async function ask(connection, path, state) {
  state.requests += 1;
  return connection.request(path, { fields: { Accept: "*/*" } });
}

/** Waits until the new build is served. */
async function becomesVisible(port, number) {
  const connection = await Connection.open(port);
  const begun = Date.now();
  for (;;) {
    const index = await connection.request("/");
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(index.body.toString())?.[1];
    const body = script ? (await connection.request(script)).body.toString() : "";
    if (buildIn(body) === String(number)) return connection.close();
    assert.ok(Date.now() - begun < VISIBLE_MS, `build ${number} never showed`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
