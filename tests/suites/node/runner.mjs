/**
 * The program that runs a suite, or one file of it: `node runner.mjs PLAN`, alone or as onehop's application. It writes
 * one line for each test to the plan's `results`, and a last one when all are through. It judges nothing.
 *
 * As onehop's application it first listens itself, so that onehop has a worker to talk to, and makes every server of the
 * suite one of onehop's (stand-ins.mjs).
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

/** No file of these suites declares a test so long after its others are through. */
const QUIET_MILLISECONDS = 300;

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
// A worker that ended with its tests is started again by onehop: there is nothing left to do for it.
const finished = existsSync(plan.results) && readFileSync(plan.results, 'utf8').includes('{"begun":true}');

// Not awaited: a worker is ready when its main module is through and a server listens.
run();

async function run() {
  if (plan.onehop) {
    const { install } = await import('./stand-ins.mjs');
    await install(plan.onehop);
  }
  if (finished) return;
  note({ begun: true });
  process.chdir(plan.folder);
  // What a test starts is no test runner.
  delete process.env.NODE_OPTIONS;
  process.argv.splice(1, 2, path.join(plan.folder, plan.files[0]));
  if (plan.runner === 'mocha') await runMocha();
  else await runFile();
}

/** Appended at once: a process that dies still leaves what it had shown. */
function note(line) {
  appendFileSync(plan.results, `${JSON.stringify(line)}\n`);
}

async function runMocha() {
  const require = createRequire(path.join(plan.modules, 'package.json'));
  const Mocha = require('mocha');
  const mocha = new Mocha({ timeout: plan.timeout, reporter: Lines, color: false });
  if (plan.grep) mocha.grep(plan.grep);
  for (const name of plan.require) createRequire(path.join(plan.folder, 'package.json'))(path.join(plan.folder, name));
  for (const file of plan.files) mocha.addFile(path.join(plan.folder, file));
  await mocha.loadFilesAsync();
  leaveOut(mocha.suite);
  mocha.run(() => {
    note({ done: true });
    process.exit(0);
  });
}

/** Tests that would keep others from running. */
function leaveOut(suite) {
  for (const test of suite.tests) if (plan.without.some((title) => test.fullTitle().endsWith(title))) test.pending = true;
  suite.suites.forEach(leaveOut);
}

/** A reporter of mocha: what became of each test. */
function Lines(runner) {
  const say = (state) => (test, error) => note({ file: relative(test.file), title: test.fullTitle(), state, error: message(error) });
  runner.on('pass', say('passed'));
  runner.on('fail', say('failed'));
  runner.on('pending', say('skipped'));
}

function relative(file) {
  return file ? path.relative(plan.folder, file) : '';
}

function message(error) {
  return error === undefined ? undefined : String(error?.stack ?? error).slice(0, 2_000);
}

/**
 * Node's test runner tells node-reporter.mjs, which has been loaded already. All is over when the process ends, or in a
 * worker, which does not end by itself, when no test is open any more and none has come for a while.
 */
async function runFile() {
  if (plan.onehop) boundTests();
  let isOver = false;
  const over = () => {
    if (!isOver) note({ done: true });
    isOver = true;
  };
  process.on('exit', over);
  let quiet;
  globalThis[Symbol.for('onehop.suites')] = {
    note,
    open(count) {
      clearTimeout(quiet);
      if (count === 0 && plan.onehop) quiet = setTimeout(over, QUIET_MILLISECONDS).unref();
    },
  };
  await import(pathToFileURL(path.join(plan.folder, plan.files[0])).href);
}

/** A test that cannot pass is not to keep the rest of its file from running: those at the top get a timeout. */
function boundTests() {
  const { _load: load } = Module;
  let bounded = null;
  Module._load = (name, ...rest) => {
    const loaded = load(name, ...rest);
    if (name !== 'node:test') return loaded;
    bounded ??= Object.assign(bound(loaded), loaded, { test: bound(loaded.test), it: bound(loaded.it) });
    return bounded;
  };
}

function bound(declare) {
  return (...given) => {
    const at = given.findIndex((one) => typeof one === 'object' && one !== null);
    const options = { timeout: plan.timeout, ...(at < 0 ? {} : given[at]) };
    if (at < 0) given.splice(typeof given[0] === 'string' ? 1 : 0, 0, options);
    else given[at] = options;
    return declare(...given);
  };
}
