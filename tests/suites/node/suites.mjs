/**
 * Which suites of other people are run, where they come from and what they need. Sources are fetched when they are
 * run, never kept here. Whatever an npm package lists as its dependencies is taken too; `needs` is what its tests ask
 * for in addition. package-lock.json fixes the exact versions of all of them, with the registry's hashes.
 */

/** Upstream's source as Debian carries it, tests included: npm's tarballs of these packages hold none. */
const debian = (name, version, sha256) => ({
  package: `node-${name}`,
  version,
  file: `node-${name}_${version.replace(/-[^-]*$/, '')}.orig.tar.gz`,
  sha256,
});

/** `.listen(` or a tool that listens: files that start no server show nothing about this one. */
const STARTS_A_SERVER = /listen|createServer|supertest/;

/**
 * @typedef {object} Suite
 * @property {string} name
 * @property {string} version upstream's
 * @property {ReturnType<typeof debian>} [debian] where its source is, if it is not npm's tarball of that name
 * @property {'mocha'|'node'} runner mocha has all files in one process, `node --test` one process for each file
 * @property {RegExp} files which files below its folder are tests
 * @property {RegExp} [without] and which of these are not
 * @property {RegExp} [containing] only files with such a text
 * @property {string[]} [require] modules that mocha loads first
 * @property {Record<string, string>} [needs]
 * @property {number} [timeout] milliseconds for one test, where those that cannot pass under onehop would take long
 * @property {boolean} [short] also runs in every build
 */

/** @type {Suite[]} */
export const SUITES = [
  {
    name: 'on-finished',
    version: '2.4.1',
    debian: debian('on-finished', '2.4.1+~1.1.1-1', '97b408dca4e74d2cb283480bf2232c4d194a029d6c22e6d8529beefdd38bf736'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    timeout: 600,
    short: true,
  },
  {
    name: 'compression',
    version: '1.7.4',
    debian: debian('compression', '1.7.4-3', '59d7726e78bac33fe17418cb6606cc14272f7d2acc6db8a2c48086eaf743d4c2'),
    runner: 'mocha',
    files: /^test\/compression\.js$/,
    needs: { after: '0.8.2', supertest: '6.3.4' },
    short: true,
  },
  {
    name: 'body-parser',
    version: '1.20.1',
    debian: debian('body-parser', '1.20.1+~1.19.2-1', '6d4f50e93ba724a97e75be77fc4aaea72fb43a74fbad57aa12f5cf1256c333df'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    require: ['test/support/env.js'],
    needs: { methods: '1.1.2', 'safe-buffer': '5.2.1', supertest: '6.3.4' },
  },
  {
    name: 'express',
    version: '4.18.2',
    debian: debian('express', '4.18.2+~4.17.14-1', 'a9ace1a92a2b0a7e3fcd7a7612553d6208a464561c15ad38f349fc3ab0d7cda0'),
    runner: 'mocha',
    files: /^test\/(acceptance\/)?[^/]*\.js$/,
    require: ['test/support/env.js'],
    needs: {
      after: '0.8.2', 'cookie-parser': '1.4.6', 'cookie-session': '2.0.0', ejs: '3.1.8', 'express-session': '1.17.2',
      hbs: '4.2.0', marked: '0.7.0', 'method-override': '3.0.0', morgan: '1.10.0', multiparty: '4.2.3',
      'pbkdf2-password': '1.2.1', supertest: '6.3.4', vhost: '3.0.2',
    },
  },
  {
    name: 'connect',
    version: '3.7.0',
    debian: debian('connect', '3.7.0+~3.4.35-1', '5cba1b899d8d95fc82e45d7c7abee013a38f560edbb8729b0861148a77bfedfa'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    require: ['test/support/env.js'],
    needs: { supertest: '6.3.4' },
  },
  {
    name: 'finalhandler',
    version: '1.2.0',
    debian: debian('finalhandler', '1.2.0+~1.1.1-2', '142a29d570b71631466923b5f41be241e25537fb71381119be0965e2dea28493'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    needs: { 'readable-stream': '2.3.6', 'safe-buffer': '5.2.1', supertest: '6.3.4' },
  },
  {
    name: 'morgan',
    version: '1.10.0',
    debian: debian('morgan', '1.10.0+~1.9.3-1', 'dab351df72d769ae4148e80133e1f0333f6d2cb9e123ee90cfc1452239811b4e'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    needs: { split: '1.0.1', supertest: '6.3.4' },
  },
  {
    name: 'multiparty',
    version: '4.2.3',
    debian: debian('multiparty', '4.2.3-2', '09bc86e5eb7fc38330ba1141268bec3747a8454f589ae63e081726ec3e35fc19'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    needs: { mkdirp: '0.5.5', pend: '1.2.0', 'require-all': '3.0.0', rimraf: '2.6.3', superagent: '3.8.3' },
  },
  {
    name: 'http-proxy',
    version: '1.18.1',
    debian: debian('http-proxy', '1.18.1-8', 'f3dee1952eca92393f35cb7f1e69e4850a672e4e453a70a8a29e46585ba32522'),
    runner: 'mocha',
    files: /^test\/lib-[^/]*-test\.js$/,
    needs: {
      async: '3.2.6', 'concat-stream': '2.0.0', 'expect.js': '0.3.1', semver: '5.7.2', 'socket.io': '2.5.1',
      'socket.io-client': '2.5.0', sse: '0.0.8', ws: '3.3.3',
    },
  },
  {
    name: 'ws',
    version: '8.18.1',
    debian: debian('ws', '8.18.1+~cs14.18.2-2', 'f80308e18245a666ebfe76c8ce6180485ea608f182af2dfb2c08773b591c7bcb'),
    runner: 'mocha',
    files: /^test\/[^/]*\.test\.js$/,
    containing: STARTS_A_SERVER,
  },
  {
    name: 'vary',
    version: '1.1.2',
    debian: debian('vary', '1.1.2+~1.1.0-1', '0487d45a6a185e7b83dc67d95f0261b2f0e85012c7cd9c8e682efd25af375dd2'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    needs: { supertest: '6.3.4' },
  },
  {
    name: 'raw-body',
    version: '2.5.1',
    debian: debian('raw-body', '2.5.1-1', '057251a3ef6d3c3b06fbd857a8bb23208d21a3e5682b72caec3b9507dd23eec0'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    needs: { bluebird: '3.7.2', 'readable-stream': '2.3.7', 'safe-buffer': '5.2.1' },
  },
  {
    name: 'cors',
    version: '2.8.5',
    debian: debian('cors', '2.8.5-1', '2441620f3df7de56ec66d38268037095c0661f598d8f9c1e2febc733a6d7940a'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    require: ['test/support/env.js'],
    needs: { after: '0.8.2', express: '4.18.2', supertest: '6.3.4' },
  },
  {
    name: 'cookie-parser',
    version: '1.4.6',
    debian: debian('cookie-parser', '1.4.6+~1.4.3-1', 'c3e7fb6997b274cf502c7525302e2ec9354bfde3ca450f6a2b3476286f7b35a9'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    needs: { supertest: '6.3.4' },
  },
  {
    name: 'errorhandler',
    version: '1.5.1',
    debian: debian('errorhandler', '1.5.1-3', '68afd702d4077649223675db4055313e1590201b934d9f1da4f7e8f67ebad4d0'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    needs: { after: '0.8.2', supertest: '6.3.4' },
  },
  {
    name: 'response-time',
    version: '2.3.2',
    debian: debian('response-time', '2.3.2+~2.3.5-1', '99c558fc30167b141fa552b7cf0da3513a284e550019d6053768d983ad6eff89'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    needs: { after: '0.8.2', supertest: '6.3.4' },
  },
  {
    name: 'serve-favicon',
    version: '2.5.0',
    debian: debian('serve-favicon', '2.5.0+~2.5.3-2', 'a046b8a7c49150549b6204a0714adbe971ce8e387e8bccbfd466fc2745bb1466'),
    runner: 'mocha',
    files: /^test\/test\.js$/,
    needs: { supertest: '6.3.4', 'temp-path': '1.0.0' },
  },
  {
    name: 'node-fetch',
    version: '3.1.1',
    debian: debian('fetch', '3.3.0+~cs11.4.11-2', 'a45abbc84a84cb7ed2fd814ab6d4c1eea6f5109dbf4de9a7ba9da416687dcc7a'),
    runner: 'mocha',
    files: /^test\/[^/]*\.js$/,
    needs: {
      'abort-controller': '3.0.0', 'abortcontroller-polyfill': '1.7.5', busboy: '1.6.0', chai: '4.3.10',
      'chai-as-promised': '7.1.1', 'chai-iterator': '3.0.2', 'chai-string': '1.5.0', 'form-data': '4.0.0',
      'formdata-node': '4.4.1', 'p-timeout': '5.1.0', 'stream-consumers': '1.0.2',
    },
  },
  {
    name: 'fastify',
    version: '5.12.8',
    runner: 'node',
    files: /^test\/.*\.test\.m?js$/,
    without: /^test\/(bundler|types)\//,
    containing: STARTS_A_SERVER,
    needs: {
      ajv: '^8.12.0', 'ajv-errors': '^3.0.0', 'ajv-formats': '^3.0.1', 'ajv-i18n': '^4.2.0', 'ajv-merge-patch': '^5.0.1',
      autocannon: '^8.0.0', 'fast-json-body': '^1.1.0', 'fastify-plugin': '^6.0.0', 'fluent-json-schema': '^6.0.0',
      h2url: '^0.2.0', 'http-errors': '^2.0.0', joi: '^18.0.1', JSONStream: '^1.3.5', 'node-forge': '^1.3.1',
      proxyquire: '^2.1.3', split2: '^4.2.0', typebox: '^1.0.81', undici: '^7.11.0', vary: '^1.1.2', yup: '^1.4.0',
    },
  },
  ...[
    { name: 'compress', version: '9.2.0', needs: { 'adm-zip': '^0.6.0', fastify: '5.12.8', jsonstream: '^1.0.3', typescript: '~6.0.2' } },
    { name: 'static', version: '10.1.11', needs: { '@fastify/compress': '9.2.0', 'concat-stream': '^2.0.0', fastify: '5.12.8', pino: '^10.0.0', proxyquire: '^2.1.3' } },
    { name: 'send', version: '4.2.1', needs: { after: '0.8.2', supertest: '7.0.0' } },
    {
      name: 'multipart',
      version: '10.1.9',
      needs: {
        '@fastify/swagger': '^9.0.0', '@fastify/swagger-ui': '^6.0.0', ajv: '^8.17.1', climem: '^2.0.0', 'concat-stream': '^2.0.0',
        fastify: '5.12.8', 'form-data': '^4.0.0', h2url: '^0.2.0', 'noop-stream': '^0.1.0', pump: '^3.0.0', 'readable-stream': '^4.5.2',
      },
    },
    { name: 'websocket', version: '11.3.6', needs: { fastify: '5.12.8', split2: '^4.2.0' } },
    {
      name: 'reply-from',
      version: '12.6.5',
      needs: {
        '@fastify/formbody': '^9.0.0', '@fastify/multipart': '^10.0.0', '@sinonjs/fake-timers': '^15.0.0', fastify: '5.12.8',
        'form-data': '^4.0.0', h2url: '^0.2.0', nock: '^14.0.0', proxy: '^4.0.0', proxyquire: '^2.1.3', split2: '^4.2.0',
      },
    },
    {
      name: 'http-proxy',
      version: '11.6.3',
      files: /^test\/[^/]*\.js$/,
      needs: {
        '@fastify/websocket': '^11.2.0', express: '^5.1.0', 'express-http-proxy': '^2.1.2', fastify: '5.12.8', 'http-errors': '^2.0.0',
        'http-proxy': '^1.18.1', pino: '^10.1.0', 'pino-test': '^2.0.0', 'socket.io': '^4.8.1', 'socket.io-client': '^4.8.1',
        'why-is-node-running': '^3.2.2',
      },
    },
    {
      name: 'express',
      version: '4.0.7',
      needs: {
        '@fastify/formbody': '^8.0.0', 'body-parser': '^1.20.2', cors: '^2.8.5', fastify: '5.12.8', helmet: '^8.0.0',
        passport: '^0.7.0', 'passport-http-bearer': '^1.0.1', 'serve-static': '^2.2.0',
      },
    },
    { name: 'middie', version: '9.3.6', needs: { cors: '^2.8.5', fastify: '5.12.8', helmet: '^8.0.0', 'serve-static': '^2.2.0' } },
    { name: 'cookie', version: '11.1.5', needs: { fastify: '5.12.8', sinon: '^22.0.0' } },
  ].map((one) => ({ runner: 'node', files: /^test\/[^/]*\.test\.js$/, ...one, name: `@fastify/${one.name}` })),
  {
    name: 'light-my-request',
    version: '6.8.1',
    runner: 'node',
    files: /^test\/[^/]*\.test\.js$/,
    needs: {
      '@fastify/ajv-compiler': '^4.0.5', 'end-of-stream': '^1.4.5', express: '^5.2.1', 'form-auto-content': '^3.2.1',
      'form-data': '^4.0.5', 'formdata-node': '^6.0.3', multer: '^2.0.2', undici: '^7.18.2',
    },
  },
  {
    name: 'st',
    version: '4.0.13',
    runner: 'node',
    files: /^test\/[^/]*-test\.js$/,
  },
  {
    name: 'pino-http',
    version: '11.0.0',
    runner: 'node',
    files: /^test\/test\.js$/,
    needs: { '@matteo.collina/tspl': '^0.2.0', autocannon: '^8.0.0', 'http-ndjson': '^3.1.0', 'pino-pretty': '^13.0.0', split2: '^4.0.0' },
  },
];

/** Needed by the runner itself. */
export const TOOLS = { mocha: '10.8.2' };
