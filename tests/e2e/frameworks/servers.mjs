// Starts an application's file twice: by Node alone on a port, and below onehop with the same Node. The file is the
// same, and so are folder and environment.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accepts, freePort, startOnehop, workFolder } from '../program.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const STARTED_MS = 20_000;

/** The applications: their files, and what else they need. */
export const APPS = {
  'node-http': { file: 'apps/node-http/server.js' },
  'node-http-continue': { file: 'apps/node-http/server.js', env: { CHECK_CONTINUE: '1' } },
  'express-4': { file: 'apps/express-4/server.js' },
  'express-5': { file: 'apps/express-5/server.mjs' },
  fastify: { file: 'apps/fastify/server.js' },
  koa: { file: 'apps/koa/server.js' },
  hono: { file: 'apps/hono/server.mjs' },
  nest: { file: 'apps/nest/server.ts', compiled: 'apps/nest/server.js' },
};

/** Whether every application runs on every version; otherwise the newer versions get two of them. */
export const IS_FULL = process.env.ONEHOP_E2E_FULL === '1';
const SOME = ['node-http', 'fastify'];

/** Which application is to be run on which Node: what was asked for, or the usual. */
export function combinations() {
  const asked = process.env.ONEHOP_FRAMEWORKS?.split(',');
  const versions = process.env.ONEHOP_NODES?.split(',') ?? ['20', '22', '24'];
  return versions.flatMap((version) => (asked ?? (IS_FULL || version === '20' ? Object.keys(APPS) : SOME)).map((app) => ({ app, version })));
}

/** @param {string} version */
export function nodeOf(version) {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath;
  const path = join(HERE, `node_modules/node-${version}/bin/node`);
  if (!existsSync(path)) throw new Error(`${path} is not there: npm ci in ${HERE}`);
  return path;
}

/** The file to be run; TypeScript is compiled as its users' build would. */
async function prepared({ file, compiled }) {
  if (compiled === undefined) return join(HERE, file);
  const { default: typescript } = await import('typescript');
  const { ModuleKind, ScriptTarget } = typescript;
  const options = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022, experimentalDecorators: true, emitDecoratorMetadata: true, esModuleInterop: false };
  const source = readFileSync(join(HERE, file), 'utf8');
  const path = join(HERE, compiled);
  writeFileSync(path, typescript.transpileModule(source, { compilerOptions: options }).outputText);
  return path;
}

/**
 * By Node alone.
 * @param {import('node:test').TestContext} test
 * @param {string} app
 * @param {string} version
 */
export async function startAlone(test, app, version) {
  const { env = {} } = APPS[app];
  const file = await prepared(APPS[app]);
  const port = await freePort();
  const child = spawn(nodeOf(version), [file], {
    cwd: dirname(file),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', PORT: String(port), ...env },
  });
  let said = '';
  child.stdout.resume();
  child.stderr.on('data', (bytes) => (said = (said + bytes).slice(-10_000)));
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  test.after(() => child.kill('SIGKILL'));
  const begun = Date.now();
  while (!(await accepts(port))) {
    assert.ok(child.exitCode === null && Date.now() - begun < STARTED_MS, `node ${file} did not listen:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { kind: 'alone', port, child, exited, said: () => said };
}

/**
 * Below onehop.
 * @param {import('node:test').TestContext} test
 * @param {string} app
 * @param {string} version
 */
export async function startBelow(test, app, version) {
  const { env = {} } = APPS[app];
  const file = await prepared(APPS[app]);
  const folder = workFolder(test);
  const node = nodeOf(version);
  const variables = Object.entries({ NODE_ENV: 'production', ...env }).map(([name, value]) => `\t\tenv ${name} ${value}`).join('\n');
  // `command` says what differs by the proxy alone; it helps in finding out where a difference comes from.
  const how = process.env.ONEHOP_FRAMEWORKS_BY === 'command' ? `app {\n\t\tcommand ${node} ${file}` : `app ${file} {\n\t\truntime ${node}`;
  const protocol = process.env.ONEHOP_FRAMEWORKS_BY === 'http' ? '\n\t\tprotocol http' : '';
  // The application sees a body as Node alone shows it, half sent too; a short one is waited for by default.
  const text = `{\n\tadmin off\n}\n:0 {\n\t${how}${protocol}\n\t\trequest_buffers off\n\t\tcwd ${dirname(file)}\n${variables}\n\t}\n}\n`;
  const server = await startOnehop(test, { folder, text, threads: 1 });
  await server.event(({ event }) => event === 'app_ready');
  const said = () => server.events.map((event) => event.text).join('\n').slice(-10_000);
  return { kind: 'below', port: server.port, server, said };
}
