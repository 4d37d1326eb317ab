// Two small suites of other people, on-finished's and compression's, with their servers under onehop. All of them are
// run by `cargo xtask suites --only node`.
// Needs: sources from Debian's archive.

import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { ONEHOP, ROOT, run } from "./program.mjs";

test("what other people's tests expect of Node's servers holds under onehop, or is explained", async (context) => {
  const words = [join(ROOT, "tests/suites/node/run.mjs"), "--short"];
  const { code, stdout, stderr } = await run(process.execPath, words, { env: { ...process.env, ONEHOP_PROGRAM: ONEHOP } });
  for (const line of stdout.toString().split("\n")) if (/^\S.*tests,/.test(line)) context.diagnostic(line);
  assert.equal(code, 0, `${stdout}${stderr}`);
});
