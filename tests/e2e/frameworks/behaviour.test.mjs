// How requests end otherwise than well: what the application sees of it, in which order, and whether it lives on, by
// Node alone and below onehop. What differs must stand in behaviour-differences.mjs.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OUTPUT } from '../program.mjs';
import { BEHAVIOURS, DEATHS } from './behaviours.mjs';
import { DIFFERENCES } from './behaviour-differences.mjs';
import { scripted } from './cases.mjs';
import { compareValues, explanations } from './compare.mjs';
import { IS_FULL, startAlone, startBelow } from './servers.mjs';
import { bytesOf, Wire } from './wire.mjs';

const versions = process.env.ONEHOP_NODES?.split(',') ?? ['20', '22', '24'];
const apps = process.env.ONEHOP_FRAMEWORKS?.split(',') ?? (IS_FULL ? ['node-http', 'express-5', 'fastify', 'koa'] : ['node-http']);
const only = process.env.ONEHOP_CASES?.split(',');
const asked = (name) => only === undefined || only.includes(name);
const explained = explanations(DIFFERENCES);
const counts = [];
const isAgainstItself = process.env.ONEHOP_FRAMEWORKS_BY === 'node';
/** Deaths on the newer versions are asked in the long run alone: each needs two servers of its own. */
const deadly = IS_FULL ? versions : versions.slice(0, 1);

for (const version of versions) {
  for (const app of apps) {
    test(`${app} on Node ${version} sees the same`, async (context) => {
      const alone = new Client(await startAlone(context, app, version));
      const below = new Client(await (isAgainstItself ? startAlone : startBelow)(context, app, version));
      const report = new Report(app, version);
      for (const [name, act] of Object.entries(BEHAVIOURS).filter(([name]) => asked(name))) {
        const [expected, actual] = await Promise.all([act(alone), act(below)]);
        report.compare(name, expected, actual);
      }
      report.finish(context, 'behaviour');
    });
  }
}

for (const version of deadly) {
  for (const app of apps) {
    test(`${app} on Node ${version} dies of the same`, async (context) => {
      const report = new Report(app, version);
      for (const [name, steps] of Object.entries(DEATHS).filter(([name]) => asked(name))) {
        const alone = await startAlone(context, app, version);
        const below = await (isAgainstItself ? startAlone : startBelow)(context, app, version);
        report.compare(name, ...(await Promise.all([fate(alone, steps), fate(below, steps)])));
        for (const server of [alone, below]) (server.child ?? server.server.child).kill('SIGKILL');
      }
      report.finish(context, 'death');
    });
  }
}

// Where not all were compared, it cannot be known.
if (IS_FULL && !isAgainstItself && only === undefined) {
  test('every difference on the list exists', () => {
    writeFileSync(join(OUTPUT, 'behaviours.txt'), `${counts.join('\n')}\n`);
    assert.deepEqual(explained.unused(), []);
  });
}

/** What a case may do with a server. */
class Client {
  #pid;
  constructor(server) {
    this.port = server.port;
  }
  open() {
    return Wire.open(this.port);
  }
  /** What the application wrote down about a request. */
  async log(id, until) {
    const { log, traced, pid } = await logOf(this.port, id, until);
    if (pid > 0) this.#pid = pid;
    // The order among them is the request's and the response's; the socket is the connection's, or the request's own.
    return { log: log.filter((line) => !line.startsWith('socket')), socket: log.filter((line) => line.startsWith('socket')), traced };
  }
  /** Bytes that the application's process has in memory. */
  async memory() {
    this.#pid ??= (await logOf(this.port, '', '')).pid;
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#pid}/status`, 'utf8'))[1]) * 1024;
  }
}

async function logOf(port, id, until) {
  const wire = await Wire.open(port);
  wire.write(bytesOf({ target: `/node/log?name=${encodeURIComponent(id)}&until=${encodeURIComponent(until)}` }));
  const answer = await wire.answer();
  wire.destroy();
  return answer.status === 200 ? JSON.parse(answer.body) : { log: [`no log: ${answer.status} ${answer.end}`], pid: 0 };
}

/** What the client gets of a deadly script, and whether the same process answers afterwards. */
async function fate(server, steps) {
  const { pid } = await logOf(server.port, '', '');
  const wire = await Wire.open(server.port);
  wire.patience = NEVER_MS;
  wire.write(bytesOf(scripted(steps, { fields: [['X-Log', 'deadly'], ['X-Watch', 'silent']] })));
  const { status, end, body } = await wire.answer();
  wire.destroy();
  const next = await settled(server, pid);
  return { status, end, body: body.toString('latin1'), lives: next === pid };
}

/** The process that answers once it is decided: none by Node alone, another one below onehop, or the same. */
async function settled(server, pid) {
  const begun = Date.now();
  for (;;) {
    const isThere = isRunning(pid);
    if (!isThere && server.kind === 'alone') return 0;
    if (!isThere) return (await logOf(server.port, '', '')).pid;
    if (Date.now() - begun > ALIVE_MS) return (await logOf(server.port, '', '')).pid;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Who has not died so long after the answer will not. */
const ALIVE_MS = 250;
/** Answers that do not come are not waited for long. */
const NEVER_MS = 700;

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Collects what differs. */
class Report {
  #faults = [];
  #counts = { cases: 0, intended: 0, open: 0 };
  constructor(app, version) {
    Object.assign(this, { app, version });
  }
  compare(name, expected, actual) {
    this.#counts.cases += 1;
    compareValues('seen', expected, actual, (what, alone, below) => {
      if (JSON.stringify(alone) === JSON.stringify(below)) return;
      const entry = explained.find({ app: this.app, version: this.version, name, what, alone, below });
      if (entry?.open) this.#counts.open += 1;
      else if (entry) this.#counts.intended += 1;
      else this.#faults.push(`${name}: ${what}\n    alone  ${JSON.stringify(alone)}\n    below  ${JSON.stringify(below)}`);
    });
  }
  finish(context, kind) {
    const { cases, intended, open } = this.#counts;
    const line = `${kind} of ${this.app} on Node ${this.version}: ${cases} cases, ${intended} intended differences, ${open} to mend, ${this.#faults.length} others`;
    counts.push(line);
    context.diagnostic(line);
    writeFileSync(join(OUTPUT, `frameworks-${kind}-${this.app}-${this.version}.txt`), `${this.#faults.join('\n')}\n`);
    assert.equal(this.#faults.length, 0, `${this.#faults.length} differences that are not on the list:\n${this.#faults.slice(0, 20).join('\n')}`);
  }
}
