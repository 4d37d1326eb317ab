/**
 * Loads an application and finds its handler.
 */
import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';

/** How long Node may take to look at one file. */
const CHECK_MILLISECONDS = 5_000;

/** What is wrong with an application, said so that its author can mend it. */
export class AppError extends Error {
  name = 'AppError';
}

const SHAPES = `An application is a module with one of these as its default export:

  export default { fetch(request, env, ctx) { return new Response('hello') } }
  export default function (request, env, ctx) { return new Response('hello') }
  module.exports = { fetch(request, env, ctx) { … } }   or   module.exports = function (request, env, ctx) { … }`;

/**
 * @param {string} file absolute path
 * @returns {Promise<{self: object|undefined, handle: Function}>}
 */
export async function loadApp(file) {
  if (/\.[mc]?tsx?$/.test(file)) checkTypeScript(file);
  let module;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    throw error instanceof SyntaxError ? placed(error, file) : error;
  }
  return findHandler(module, file);
}

/** Node tells the place of a syntax error only where nobody catches it; its own check tells it too. */
function placed(error, file) {
  if (process.versions.bun || error.stack.includes(file)) return error;
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MILLISECONDS });
  // In a file that it imports: worker.mjs lets nobody catch it.
  return stderr ? new AppError(stderr.trim()) : error;
}

function checkTypeScript(file) {
  if (process.versions.bun || (process.features.typescript && !file.endsWith('x'))) return;
  throw new AppError(
    `${file} is TypeScript, and Node ${process.versions.node} does not run it. Node strips types from .ts and .mts `
      + 'files from 22.18 and 23.6 on, and Bun from the start; with an older Node, name a compiled .mjs file instead.',
  );
}

function findHandler(module, file) {
  let app = module.default;
  // CommonJS that was compiled from ES modules has its default export one level deeper.
  if (app?.__esModule === true && app.default !== undefined) app = app.default;
  if (isNodeServer(app)) {
    throw new AppError(
      `${file} exports what looks like a ${isNodeServer(app)}. Applications for Node's own HTTP server run unchanged `
        + 'in a later version of onehop; today, let it listen and name its command line with `command` in the '
        + `Onehopfile.\n\n${SHAPES}`,
    );
  }
  if (typeof app?.fetch === 'function') return { self: app, handle: app.fetch };
  if (typeof app === 'function') return { self: undefined, handle: app };
  const found = app === undefined ? 'has no default export' : `has a default export without fetch (${kind(app)})`;
  throw new AppError(`${file} ${found}.\n\n${SHAPES}`);
}

function isNodeServer(app) {
  if (app === null || (typeof app !== 'object' && typeof app !== 'function')) return null;
  if (typeof app.fetch === 'function') return null;
  if (typeof app.handle === 'function' && typeof app.use === 'function') return 'Express application';
  if (typeof app.inject === 'function' && typeof app.register === 'function') return 'Fastify application';
  if (typeof app.callback === 'function' && typeof app.use === 'function') return 'Koa application';
  if (typeof app.listen === 'function' && typeof app.on === 'function') return 'http.Server';
  return null;
}

function kind(value) {
  if (value === null) return 'null';
  return typeof value === 'object' ? `an object with ${Object.keys(value).join(', ') || 'nothing in it'}` : `a ${typeof value}`;
}
