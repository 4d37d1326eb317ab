/**
 * Runs one suite: starts the runner as often as it takes, on Node alone or as an application of onehop, and gathers what
 * it wrote. Every process that it starts has ended when it returns.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { RUNS, sourceOf } from './sources.mjs';

const ONEHOP = process.env.ONEHOP_PROGRAM ?? fileURLToPath(new URL('../../../target/release/onehop', import.meta.url));
const RUNNER = fileURLToPath(new URL('runner.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('node-reporter.mjs', import.meta.url));
/** How long a whole suite of mocha may take, and one file of Node's runner. */
const SUITE_MILLISECONDS = 300_000;
const FILE_MILLISECONDS = 60_000;
/** One test of mocha; upstream's own bound is 2 s, on machines that do nothing else. */
const TEST_MILLISECONDS = 5_000;
/** onehop's own words when it gives up the worker that the tests run in: what is not through never will be. */
const WORKER_LOST = /it broke the worker protocol|gave its lanes up/;

/** Processes that must not outlive this one. @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/**
 * @param {import('./suites.mjs').Suite} suite
 * @param {{node: string, onehop?: boolean, only?: string, grep?: string, without?: string[]} without: titles of tests that are not run} options
 */
export async function runSuite(suite, { node, onehop = false, only = '', grep, without = [] }) {
  const begun = performance.now();
  const files = filesOf(suite).filter((file) => only.split(',').some((part) => file.includes(part)));
  const batches = suite.runner === 'mocha' ? [files] : files.map((file) => [file]);
  const results = [];
  for (const batch of batches) {
    const plan = {
      runner: suite.runner, folder: sourceOf(suite), modules: path.dirname(RUNS), files: batch,
      require: suite.require ?? [], timeout: suite.timeout ?? TEST_MILLISECONDS, grep, without,
    };
    const lines = await runBatch(plan, { node, onehop });
    for (const line of lines) if (line.title !== undefined) results.push({ file: batch[0], ...line });
    if (!lines.some(({ done }) => done)) results.push({ file: batch[0], title: '(did not come to its end)', state: 'failed', error: lines.said });
  }
  return { results, node: await versionOf(node), seconds: (performance.now() - begun) / 1_000 };
}

function filesOf({ files, without, containing, ...suite }) {
  const folder = sourceOf(suite);
  const all = readdirSync(folder, { recursive: true }).map(String).sort();
  return all.filter((file) => files.test(file) && !without?.test(file)
    && (containing === undefined || containing.test(readFileSync(path.join(folder, file), 'utf8'))));
}

async function runBatch(plan, { node, onehop }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'onehop-suite-'));
  plan.results = path.join(folder, 'results.jsonl');
  writeFileSync(plan.results, '');
  const flags = plan.runner === 'node' ? [`--test-reporter=${REPORTER}`, `--test-reporter-destination=${folder}/reported.txt`] : [];
  const milliseconds = plan.runner === 'mocha' ? SUITE_MILLISECONDS : FILE_MILLISECONDS;
  try {
    const child = onehop ? await startOnehop(plan, folder, [node, ...flags]) : startAlone(plan, folder, [node, ...flags]);
    running.add(child);
    let said = '';
    const broken = new Promise((resolve) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (bytes) => {
          said = (said + bytes).slice(-4_000);
          if (WORKER_LOST.test(said)) resolve();
        });
      }
    });
    await ended(child, plan, milliseconds, broken);
    const lines = linesOf(plan.results);
    if (process.env.ONEHOP_SUITES_SHOW) console.log(said);
    return Object.assign(lines, { said });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function startAlone(plan, folder, [node, ...flags]) {
  writeFileSync(`${folder}/plan.json`, JSON.stringify(plan));
  return spawn(node, [...flags, RUNNER, `${folder}/plan.json`], { cwd: plan.folder, stdio: ['ignore', 'pipe', 'pipe'], env: environment() });
}

/**
 * The runner knows where onehop listens before onehop does: its own servers stand behind that port. Bodies are streamed from
 * their beginning: clients of these tests write them once their request has been seen, and leave other requests open, which
 * together hold what one address may stream by default (docs/limits.md).
 */
async function startOnehop(plan, folder, runtime) {
  const port = await freePort();
  writeFileSync(`${folder}/plan.json`, JSON.stringify({ ...plan, onehop: { port } }));
  writeFileSync(`${folder}/Onehopfile`, `{
\tadmin off
}
http://:${port} {
\tapp * "${RUNNER}" "${folder}/plan.json" {
\t\truntime ${runtime.map((word) => `"${word}"`).join(' ')}
\t\tcwd "${plan.folder}"
\t\tenv NODE_ENV ""
\t\tconcurrency 4096
\t\ttimeout 10m
\t\trequest_buffers off
\t\tstuck_after 5m
\t}
}
`);
  const words = ['run', '--config', `${folder}/Onehopfile`, '--control', `${folder}/control`];
  return spawn(ONEHOP, words, { cwd: plan.folder, stdio: ['ignore', 'pipe', 'pipe'], env: environment() });
}

function environment() {
  return { ...process.env, FORCE_COLOR: '0', NODE_ENV: '', NO_DEPRECATION: '*' };
}

/** Waits for the runner's last line, then ends the process: onehop would start the next worker. */
async function ended(child, plan, milliseconds, broken) {
  const over = once(child, 'close');
  const through = new Promise((resolve) => {
    const watcher = watch(plan.results, () => {
      if (!readFileSync(plan.results, 'utf8').includes('{"done":true}')) return;
      watcher.close();
      resolve();
    });
    over.then(() => watcher.close());
  });
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)));
  await Promise.race([over, through, late, broken]);
  clearTimeout(timer);
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  await over;
  running.delete(child);
}

function linesOf(file) {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8').split('\n').filter((line) => line.startsWith('{')).map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return {};
    }
  });
}

async function versionOf(node) {
  const child = spawn(node, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (bytes) => (text += bytes));
  await once(child, 'close');
  return text.trim().slice(1);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
