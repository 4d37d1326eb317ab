/** What two runs of a suite have in common, and what became of each test that they have not. It starts nothing. */

/** When a process is lost, so are all tests behind it: so many are named. */
const UNFINISHED_SHOWN = 3;

/**
 * @typedef {{file: string, title: string, state: 'passed'|'failed'|'skipped'|'unfinished', error?: string}} Result
 * @typedef {{suite: string, title: string|RegExp, why: string, isNotRun?: boolean}} Explanation
 */

/**
 * @param {{name: string, version: string}} suite
 * @param {{results: Result[], node: string, seconds: number}} alone
 * @param {{results: Result[], seconds: number}} under
 * @param {Explanation[]} explanations
 */
export function compare(suite, alone, under, explanations) {
  const expected = named(alone.results);
  const found = named(under.results);
  const report = {
    suite: suite.name, version: suite.version, node: alone.node, total: 0, passed: 0, skipped: 0,
    upstream: [], explained: [], unexplained: [], used: new Set(),
  };
  for (const [name, result] of expected) {
    report.total += 1;
    const now = found.get(name) ?? { state: 'unfinished' };
    if (result.state === 'skipped') report.skipped += 1;
    else if (result.state !== 'passed') report.upstream.push({ name, error: result.error });
    else if (now.state === 'passed') report.passed += 1;
    else explain(report, name, now, explanations);
  }
  // A hook that fails, or what only comes up under onehop, is a failure too.
  for (const [name, now] of found) {
    if (!expected.has(name) && now.state === 'failed') explain(report, name, now, explanations);
  }
  report.text = inWords(report, alone.seconds, under.seconds);
  return report;
}

function explain(report, name, now, explanations) {
  const entry = explanations.find(({ suite, title }) => suite === report.suite && fits(title, name));
  const failure = { name, state: now.state, error: now.error };
  if (entry === undefined) {
    report.unexplained.push(failure);
    return;
  }
  report.used.add(entry);
  report.explained.push({ ...failure, why: entry.why });
}

function fits(title, name) {
  return typeof title === 'string' ? name.endsWith(title) : title.test(name);
}

/** Titles are not unique: the second of a name in a file is told apart. @param {Result[]} results */
function named(results) {
  const map = new Map();
  for (const result of results) {
    const name = `${result.file}: ${result.title}`;
    let unique = name;
    for (let count = 2; map.has(unique); count += 1) unique = `${name} (${count})`;
    map.set(unique, result);
  }
  return map;
}

function inWords(report, before, after) {
  const { suite, version, total, passed, skipped, upstream, explained, unexplained } = report;
  const lines = [`${suite} ${version}: ${total} tests, ${passed} pass in both, ${skipped} skipped, ${upstream.length} fail on Node alone too, `
    + `${explained.length} explained, ${unexplained.length} unexplained (${before.toFixed(0)} s, ${after.toFixed(0)} s)`];
  for (const { name, error } of upstream) lines.push(`  upstream on this machine: ${name}${first(error)}`);
  for (const { name, why } of explained) lines.push(`  explained: ${name}\n    ${why}`);
  for (const { name, state, error } of unexplained.filter(({ state }) => state === 'failed')) lines.push(`  UNEXPLAINED, ${state}: ${name}${first(error)}`);
  const unfinished = unexplained.filter(({ state }) => state !== 'failed');
  for (const { name } of unfinished.slice(0, UNFINISHED_SHOWN)) lines.push(`  UNEXPLAINED, unfinished: ${name}`);
  if (unfinished.length > UNFINISHED_SHOWN) lines.push(`  and ${unfinished.length - UNFINISHED_SHOWN} more that did not finish`);
  return lines.join('\n');
}

function first(error) {
  return error ? `\n    ${error.split('\n')[0].slice(0, 200)}` : '';
}
