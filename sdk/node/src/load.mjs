/**
 * What an application is, by what its main module exports. It runs nothing of it.
 */
import path from 'node:path';

/** What is wrong with an application, said so that its author can mend it. */
export class AppError extends Error {
  name = 'AppError';
}

const SHAPES = `An application either listens with a server of node:http (as Express, Fastify, Koa and others do), or is a
module with one of these as its default export:

  export default { fetch(request, env, ctx) { return new Response('hello') } }
  export default function (request, env, ctx) { return new Response('hello') }
  module.exports = { fetch(request, env, ctx) { … } }   or   module.exports = function (request, env, ctx) { … }`;

/**
 * @typedef {object} Found
 * @property {{self: object|undefined, handle: Function}|null} handler what is called for each request
 * @property {boolean} isCertain whether nothing else can be meant by the export
 * @property {{name: string, open(http: typeof import('node:http')): Promise<import('node:http').Server>}|null} framework
 * an application of a framework; `open` gives the server that it would listen with
 * @property {string} text what was found, for people
 */

/** @param {Record<string, any>} module @param {string} file @returns {Found} */
export function look(module, file) {
  let app = module.default;
  // CommonJS that was compiled from ES modules has its default export one level deeper.
  if (app?.__esModule === true && app.default !== undefined) app = app.default;
  const nothing = { handler: null, isCertain: false, framework: null, text: '' };
  if (typeof app?.fetch === 'function') return { ...nothing, handler: { self: app, handle: app.fetch }, isCertain: true };
  const framework = frameworkOf(app);
  if (framework !== null) return { ...nothing, framework, text: `${file} exports ${framework.name}` };
  if (typeof app === 'function' && !/^class\b/.test(Function.prototype.toString.call(app))) {
    return { ...nothing, handler: { self: undefined, handle: app } };
  }
  const text = isEmpty(app) ? `${file} has no default export` : `${file} has a default export without fetch (${kind(app)})`;
  return { ...nothing, text };
}

/** @param {string} text what was found */
export function noApplication(text) {
  return new AppError(`${text}, and it does not listen.\n\n${SHAPES}`);
}

/** @param {string} file */
export function checkTypeScript(file) {
  if (!/\.[mc]?tsx?$/.test(file)) return;
  if (process.versions.bun || (process.features.typescript && !file.endsWith('x'))) return;
  // Something else on the command line may translate it: a loader, a preload.
  if (process.execArgv.length > 0 && process.execArgv.some((argument) => !argument.startsWith('--inspect'))) return;
  throw new AppError(
    `${path.resolve(file)} is TypeScript, and Node ${process.versions.node} does not run it. Node strips types from .ts and `
      + '.mts files from 22.18 and 23.6 on, and Bun from the start; with an older Node, name a compiled .mjs file instead.',
  );
}

/** Frameworks are known by their methods: several copies of one may be installed. */
function frameworkOf(app) {
  if (app === null || (typeof app !== 'object' && typeof app !== 'function')) return null;
  const has = (...names) => names.every((name) => typeof app[name] === 'function');
  if (has('inject', 'register', 'ready')) {
    return { name: 'a Fastify application', open: async () => (await app.ready(), app.server) };
  }
  if (has('getHttpServer', 'init')) {
    return { name: 'a Nest application', open: async () => (await app.init(), app.getHttpServer()) };
  }
  if (has('callback', 'use', 'listen')) {
    return { name: 'a Koa application', open: async (http) => http.createServer(app.callback()) };
  }
  if (typeof app === 'function' && has('handle', 'use')) {
    return { name: 'an Express application', open: async (http) => http.createServer(app) };
  }
  if (has('listen', 'close', 'address', 'on')) return { name: 'a server', open: async () => app };
  return null;
}

function isEmpty(app) {
  return app === undefined || (typeof app === 'object' && app !== null && Object.keys(app).length === 0);
}

function kind(value) {
  if (value === null) return 'null';
  return typeof value === 'object' ? `an object with ${Object.keys(value).join(', ')}` : `a ${typeof value}`;
}
