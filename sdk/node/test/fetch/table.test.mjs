// The table of expressions, in a process of its own: it installs the fetch objects and lets promises fail on purpose.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const TABLE = fileURLToPath(new URL('table.mjs', import.meta.url));

test('the fetch objects behave as those of the platform in every expression of the table', () => {
  const run = spawnSync(process.execPath, [TABLE], { encoding: 'utf8', timeout: 120_000 });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.match(run.stdout, /^2\d{3} expressions, \d+ known differences, 0 failures$/m);
});
