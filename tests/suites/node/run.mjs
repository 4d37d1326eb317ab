/**
 * Runs other people's suites on Node alone and with their servers under onehop, and compares them test by test.
 *
 *     node run.mjs [--only NAME,NAME] [--short] [--alone] [--node PROGRAM] [--record FILE] [--file TEXT,TEXT] [--grep TEXT]
 *
 * A test that fails under onehop and passes on Node alone must stand in explained.mjs, and whatever stands there must
 * still be needed. `--alone` runs the first half only.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { compare } from './compare.mjs';
import { EXPLAINED } from './explained.mjs';
import { runSuite } from './drive.mjs';
import { RUNS, prepare } from './sources.mjs';
import { SUITES } from './suites.mjs';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    alone: { type: 'boolean', default: false },
    node: { type: 'string', default: process.execPath },
    record: { type: 'string' },
    file: { type: 'string' },
    grep: { type: 'string' },
  },
});
const said = [`date: ${new Date().toISOString().slice(0, 10)}`];
const names = options.only?.split(',');
const chosen = SUITES.filter(({ name, short }) => (names ? names.includes(name) : !options.short || short));
if (chosen.length === 0) throw new Error(`no suite of that name; there are ${SUITES.map(({ name }) => name).join(', ')}`);

const absent = prepare(options.only ? SUITES : chosen);
mkdirSync(RUNS, { recursive: true });
const asked = { node: options.node, only: options.file, grep: options.grep };
const reports = [];
for (const suite of chosen) {
  if (absent.has(suite.name)) {
    say(`${suite.name} ${suite.version}: not run, ${absent.get(suite.name)}`);
    continue;
  }
  const alone = await runSuite(suite, asked);
  const under = options.alone ? alone : await runSuite(suite, { ...asked, onehop: true, without: notRun(suite) });
  const report = compare(suite, alone, under, EXPLAINED);
  writeFileSync(path.join(RUNS, `${suite.name.replace('/', '-')}.json`), JSON.stringify(report, null, 2));
  reports.push(report);
  say(report.text);
}
const partial = options.file !== undefined || options.grep !== undefined || options.alone;
const unused = partial ? [] : EXPLAINED.filter((entry) => reports.some(({ suite }) => suite === entry.suite) && !reports.some(({ used }) => used.has(entry)));
for (const { suite, title } of unused) say(`not needed any more: ${suite}: ${title}`);
const sum = (count) => reports.reduce((total, report) => total + count(report), 0);
const unexplained = sum(({ unexplained }) => unexplained.length);
say(`${reports.length} suites on Node.js ${reports[0]?.node ?? '?'}: ${sum(({ total }) => total)} tests, ${sum(({ passed }) => passed)} pass in both, `
  + `${sum(({ upstream }) => upstream.length)} fail on Node alone too, ${sum(({ explained }) => explained.length)} explained, ${unexplained} unexplained`);
if (unexplained > 0 || unused.length > 0) process.exitCode = 1;
if (options.record) {
  mkdirSync(path.dirname(options.record), { recursive: true });
  writeFileSync(options.record, said.join('\n') + '\n');
}

/** What would take other tests with it when it fails. */
function notRun({ name }) {
  return EXPLAINED.filter(({ suite, isNotRun }) => suite === name && isNotRun).map(({ title }) => title);
}

function say(text) {
  said.push(text);
  console.log(text);
}
