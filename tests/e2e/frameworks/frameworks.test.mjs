// The same requests to the same file, by Node alone and below onehop, there over HTTP/2 too. What differs must stand in
// differences.mjs with its reason; what stands there and was not met fails too.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OUTPUT } from '../program.mjs';
import { CASES } from './cases.mjs';
import { differences, explanations } from './compare.mjs';
import { DIFFERENCES } from './differences.mjs';
import * as http2 from './http2.mjs';
import { combinations, IS_FULL, startAlone, startBelow } from './servers.mjs';
import { Wire } from './wire.mjs';

const explained = explanations(DIFFERENCES);
const only = process.env.ONEHOP_CASES?.split(',');
const cases = CASES.filter(({ name }) => only === undefined || only.includes(name));
const counts = [];
const isAgainstItself = process.env.ONEHOP_FRAMEWORKS_BY === 'node';
/** Cases that are asked at the same time, each on a connection of its own. */
const AT_ONCE = 4;

for (const { app, version } of combinations()) {
  test(`${app} on Node ${version} answers alike`, async (context) => {
    const alone = await startAlone(context, app, version);
    // Node against itself shows what varies by nature.
    const below = await (isAgainstItself ? startAlone : startBelow)(context, app, version);
    const session = isAgainstItself ? undefined : http2.open(context, below.port);
    const faults = [];
    let intended = 0;
    let open = 0;
    let answers = 0;
    const queue = [...cases];
    const compare = (expected, actual, name, over, place) => {
      answers += 1;
      for (const difference of differences(expected, actual)) {
        const entry = explained.find({ app, version, over, name, place, ...difference });
        if (entry?.open) open += 1;
        else if (entry) intended += 1;
        else faults.push(`${name}${place > 0 ? ` (${place})` : ''} over ${over}: ${difference.what}\n    alone  ${show(difference.alone)}\n    below  ${show(difference.below)}`);
      }
    };
    const askAll = async () => {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
        const overHttp2 = session && one.request && http2.ask(session, one.request, one.patience);
        const [expected, actual, multiplexed] = await Promise.all([asked(alone, one), asked(below, one), overHttp2]);
        for (const [place, answer] of expected.entries()) compare(answer, actual[place], one.name, 'HTTP/1.1', place);
        if (multiplexed) compare(http2.inHttp2(expected[0], multiplexed), multiplexed, one.name, 'HTTP/2', 0);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askAll));
    const line = `${app} on Node ${version}: ${answers} answers of ${cases.length} cases, ${intended} intended differences, ${open} to mend, ${faults.length} others`;
    counts.push(line);
    context.diagnostic(line);
    writeFileSync(join(OUTPUT, `frameworks-${app}-${version}.txt`), `${faults.join('\n')}\n${below.said()}\n`);
    assert.equal(faults.length, 0, `${faults.length} differences that are not on the list:\n${faults.slice(0, 20).join('\n')}`);
  });
}

// Where not all were compared, it cannot be known.
if (IS_FULL && process.env.ONEHOP_FRAMEWORKS_BY === undefined && only === undefined) {
  test('every difference on the list exists', () => {
    writeFileSync(join(OUTPUT, 'frameworks.txt'), `${counts.join('\n')}\n`);
    assert.deepEqual(explained.unused(), []);
  });
}

async function asked(server, { ask, patience }) {
  const wire = await Wire.open(server.port);
  wire.patience = patience ?? wire.patience;
  try {
    return await ask(wire);
  } finally {
    wire.destroy();
  }
}

function show(value) {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 400 ? `${text.slice(0, 400)}… (${text.length})` : text;
}
