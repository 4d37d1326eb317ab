// What is committed in dist is what the source builds, and stays small.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const GZIP_BYTES_MAX = 80 * 1024; // what the page may add to the program, and to a slow line

const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

test("dist is what the source builds", async (t) => {
  const outDir = mkdtempSync(join(tmpdir(), "dashboard-"));
  t.after(() => rmSync(outDir, { recursive: true }));
  await build({ root: ROOT, logLevel: "error", build: { outDir, emptyOutDir: true } });
  const dist = join(ROOT, "dist");
  assert.deepEqual(filesOf(dist), filesOf(outDir), "run `npm run build`");
  for (const name of filesOf(outDir)) {
    assert.ok(readFileSync(join(dist, name)).equals(readFileSync(join(outDir, name))), `${name} differs: run \`npm run build\``);
  }
});

test("the page is small, and asks no other origin", () => {
  const texts = filesOf(join(ROOT, "dist")).map((name) => [name, readFileSync(join(ROOT, "dist", name), "utf8")]);
  const size = texts.reduce((sum, [, text]) => sum + gzipSync(text, { level: 9 }).length, 0);
  assert.ok(size < GZIP_BYTES_MAX, `${size} bytes`);
  for (const [name, text] of texts) {
    const addresses = (text.match(/https?:\/\/[\w.-]+/g) ?? []).filter((address) => address !== "http://www.w3.org");
    assert.deepEqual(addresses, [], name);
  }
});

test("the source has no markup from text, and its files are short", () => {
  const names = filesOf(join(ROOT, "src"));
  const lines = (name) => readFileSync(join(ROOT, "src", name), "utf8").split("\n").length;
  for (const name of names) {
    assert.ok(!/innerHTML|insertAdjacentHTML|document\.write/.test(readFileSync(join(ROOT, "src", name), "utf8")), name);
    assert.ok(lines(name) <= 300, `${name} has ${lines(name)} lines`);
  }
});
