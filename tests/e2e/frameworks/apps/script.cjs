// Requests below /node/ bring what is to be done with Node's own `req` and `res`: a list of calls in `X-Script`.
// So one route serves every case about Node's objects, in whichever framework it is mounted. What happens on the
// request, the response and the socket is written down under the name in `X-Log`, to be asked for at /node/log.

'use strict';

const { createHash } = require('node:crypto');
const diagnostics = require('node:diagnostics_channel');
const http = require('node:http');
const net = require('node:net');
const { AsyncLocalStorage } = require('node:async_hooks');
const { Readable } = require('node:stream');

const PIECE = Buffer.alloc(16 * 1024, 'onehop ');
/** The log is answered when nothing was added for so long, and in any case after the other. */
const QUIET_MS = 40;
const LOG_MS_MAX = 1_200;

/** What became of each request, by its name. */
const logs = new Map();
const storage = new AsyncLocalStorage();
const traced = new Map();

for (const name of ['http.server.request.start', 'http.server.response.created', 'http.server.response.finish']) {
  diagnostics.subscribe(name, ({ request, response, socket, server }) => {
    const id = request.headers['x-log'];
    if (id === undefined) return;
    const right = response.req === request && (socket === undefined || socket === request.socket) && (server === undefined || server instanceof http.Server);
    logOf(id).push(`channel ${name}${right ? '' : ' with other objects'}`);
  });
}

/** Performs a request's script. What the script throws is thrown here, at once or in the promise. */
exports.perform = function perform(req, res) {
  const { pathname, searchParams } = new URL(req.url, 'http://localhost');
  if (pathname === '/node/log') return answerLog(searchParams.get('name'), searchParams.get('until'), res);
  if (pathname === '/node/store') return answerStore(searchParams.get('id'), res);
  const id = req.headers['x-log'];
  const log = id === undefined ? [] : logOf(id);
  if (id !== undefined) watch(req, res, log, (req.headers['x-watch'] ?? 'req,res').split(','));
  const steps = JSON.parse(req.headers['x-script'] ?? '[["facts"]]');
  return next({ req, res, log }, steps, 0);
};

/** A list of those requests that a tracing tool saw, as it would note them. */
exports.trace = function trace(req) {
  const id = req.headers['x-log'];
  if (id !== undefined) traced.set(id, (traced.get(id) ?? 0) + 1);
  return storage;
};

/** Synchronous as far as the steps are: only so is an error of theirs thrown at the framework. */
function next(context, steps, place) {
  for (; place < steps.length; place += 1) {
    const pending = step(context, steps[place]);
    if (typeof pending?.then === 'function') return pending.then(() => next(context, steps, place + 1));
  }
  return undefined;
}

function logOf(id) {
  if (!logs.has(id)) logs.set(id, []);
  return logs.get(id);
}

function watch(req, res, log, what) {
  const listen = (name, emitter, events) => {
    if (!what.includes(name)) return;
    for (const event of events) emitter.on(event, (value) => log.push(`${name} ${event}${event === 'error' ? ` ${told(value)}` : ''}`));
  };
  const errors = what.includes('silent') ? [] : ['error'];
  listen('req', req, ['aborted', 'end', 'close', ...errors]);
  listen('res', res, ['prefinish', 'finish', 'close', 'pipe', 'unpipe', ...errors]);
  listen('socket', req.socket, ['end', 'close', 'error', 'timeout']);
}

const told = (error) => error?.code ?? error?.message ?? String(error);

/** One step of a script; the whole vocabulary of the cases. */
function step(context, [name, ...words]) {
  const { req, res, log } = context;
  const values = words.map(meant);
  const target = { req, res, socket: req.socket, server: req.socket?.server }[words[0]];
  switch (name) {
    case 'set': res[values[0]] = values[1]; return undefined;
    case 'pause': return new Promise((resolve) => setTimeout(resolve, values[0]));
    case 'immediate': return new Promise((resolve) => setImmediate(resolve));
    case 'promise': return Promise.resolve();
    case 'try': return attempt(context, words);
    case 'state': log.push(state(context), `socket is ${req.socket?.destroyed ? 'destroyed' : 'open'}`); return undefined;
    case 'note': log.push(values[0]); return undefined;
    case 'facts': return read(req).then((body) => answerFacts(req, res, body));
    case 'read': return read(req).then(({ bytes, sha256 }) => log.push(`read ${bytes} ${sha256}`));
    case 'readSlowly': return readSlowly(req, log);
    case 'take': return take(req, values[0]).then((bytes) => log.push(`took ${bytes >= values[0] ? 'enough' : bytes}`));
    case 'wait': return new Promise((resolve) => target.once(words[1], resolve));
    case 'on': target.on(words[1], () => log.push(`${words[0]} ${words[1]}`)); return undefined;
    case 'call': log.push(`${words[0]}.${words[1]}: ${typeof target[words[1]](...values.slice(2))}`); return undefined;
    case 'destroy': target.destroy(words[1] === undefined ? undefined : new Error(words[1])); return undefined;
    case 'throw': throw new Error(words[0] ?? 'thrown by the script');
    case 'throwLater': setImmediate(() => { throw new Error('thrown later'); }); return undefined;
    case 'rejectLater': void Promise.reject(new Error('rejected, and nobody handles it')); return undefined;
    case 'exit': return process.exit(values[0]);
    case 'timeout': setTimeoutOn(target, words[0], values[1], words[2], log); return undefined;
    case 'fill': return fill(res, values[0], log);
    case 'pour': res.resumeAt = 0; pour(values[0], words[1]).on('error', (error) => log.push(`source error ${told(error)}`)).pipe(res); return undefined;
    case 'echo': req.pipe(res); return undefined;
    case 'callbacks': res.write(values[0], () => log.push('written')); res.end(values[1], () => log.push('ended')); return undefined;
    default: res[name](...values); return undefined;
  }
}

/** `{"repeat":["x",3]}` is "xxx", `{"bytes":"…"}` what base64 says; all else is itself. */
function meant(value) {
  if (Array.isArray(value?.repeat)) return value.repeat[0].repeat(value.repeat[1]);
  if (typeof value?.bytes === 'string') return Buffer.from(value.bytes, 'base64');
  return value;
}

function attempt(context, words) {
  try {
    return step(context, words)?.catch?.((error) => context.log.push(`${words[0]} rejected ${told(error)}`));
  } catch (error) {
    context.log.push(`${words[0]} threw ${told(error)}`);
    return undefined;
  }
}

function state({ req, res }) {
  const { headersSent, writableEnded, writableFinished, destroyed, closed, finished, statusCode, writable } = res;
  return JSON.stringify({ headersSent, writableEnded, writableFinished, destroyed, closed, finished, statusCode, writable,
    request: { complete: req.complete, aborted: req.aborted, destroyed: req.destroyed, readableEnded: req.readableEnded } });
}

async function read(req) {
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const piece of req) {
    bytes += piece.length;
    digest.update(piece);
  }
  return { bytes, sha256: digest.digest('hex').slice(0, 16) };
}

/** Takes the body in paused mode with a rest after each piece, so that the sender has to wait. */
async function readSlowly(req, log) {
  let bytes = 0;
  for await (const piece of req) {
    bytes += piece.length;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  log.push(`read ${bytes} slowly`);
}

function take(req, count) {
  let bytes = 0;
  return new Promise((resolve) => {
    const over = () => {
      req.off('data', taken).off('end', over).off('close', over);
      req.pause();
      resolve(bytes);
    };
    const taken = (piece) => {
      bytes += piece.length;
      if (bytes >= count) over();
    };
    req.on('data', taken).on('end', over).on('close', over);
  });
}

function setTimeoutOn(target, name, milliseconds, how, log) {
  if (how === 'plain') target.setTimeout(milliseconds);
  else target.setTimeout(milliseconds, () => log.push(`${name} timed out`));
}

/** Writes so much as the response takes, piece by piece, waiting for 'drain' whenever it says so. */
async function fill(res, bytes, log) {
  let drains = 0;
  let most = 0;
  for (let left = bytes; left > 0 && !res.destroyed; left -= PIECE.length) {
    const isRoom = res.write(PIECE.subarray(0, Math.min(left, PIECE.length)));
    most = Math.max(most, res.writableLength);
    if (isRoom) continue;
    drains += 1;
    const isOver = await new Promise((resolve) => {
      res.once('drain', () => resolve(false)).once('close', () => resolve(true));
    });
    if (isOver) break;
  }
  log.push(`drained ${drains > 0 ? 'sometimes' : 'never'}, held ${most < 1 << 20 ? 'little' : most}, ${res.destroyed ? 'cut off' : 'whole'}`);
}

/** A stream of so many bytes; it may fail half way. */
function pour(bytes, how) {
  let left = bytes;
  return new Readable({
    read() {
      if (how === 'fails' && left <= bytes / 2) return this.destroy(new Error('the source failed'));
      if (left <= 0) return this.push(null);
      const piece = PIECE.subarray(0, Math.min(left, PIECE.length));
      left -= piece.length;
      return this.push(piece);
    },
  });
}

function answerFacts(req, res, body) {
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor, headers, headersDistinct, rawHeaders, trailers, rawTrailers, trailersDistinct, complete } = req;
  const { remoteAddress, remoteFamily, remotePort, localAddress, localPort, encrypted, readable, writable, destroyed, timeout } = req.socket;
  const kinds = {
    request: req instanceof http.IncomingMessage, response: res instanceof http.ServerResponse, socket: req.socket instanceof net.Socket,
    server: req.socket.server instanceof http.Server, same: req.socket === res.socket && res.req === req && req.connection === req.socket, connection: res.connection === res.socket,
    functions: ['ref', 'unref', 'setKeepAlive', 'setNoDelay', 'setTimeout', 'address', 'cork', 'uncork', 'end', 'destroy', 'pause', 'resume'].filter((name) => typeof req.socket[name] === 'function'),
  };
  const text = JSON.stringify({
    method, url, httpVersion, httpVersionMajor, httpVersionMinor, headers, headersDistinct, rawHeaders, trailers, rawTrailers, trailersDistinct, complete, body, kinds,
    socket: { remoteAddress, remoteFamily, remotePort: typeof remotePort, localAddress, localPort: typeof localPort, encrypted, readable, writable, destroyed, timeout },
    response: { shouldKeepAlive: res.shouldKeepAlive, useChunkedEncodingByDefault: res.useChunkedEncodingByDefault, sendDate: res.sendDate, strictContentLength: res.strictContentLength },
  });
  // Without a length: what is in the text differs, and that is said by itself.
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.write(text);
  res.end();
}

/** The log of an earlier request, as soon as it is complete: `until` is in it and nothing follows any more. */
async function answerLog(name, until, res) {
  const log = logOf(name);
  const begun = Date.now();
  let length = -1;
  while (until && Date.now() - begun < LOG_MS_MAX && !(log.includes(until) && log.length === length)) {
    length = log.length;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify({ log, traced: traced.get(name), pid: process.pid }));
}

/** Whether a request sees what an earlier one on the same connection stored. */
async function answerStore(id, res) {
  const before = storage.getStore()?.id ?? null;
  const seen = await storage.run({ id }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return storage.getStore().id;
  });
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.on('finish', () => storage.enterWith({ id: `${id} finished` }));
  res.end(JSON.stringify({ before, seen, after: storage.getStore()?.id ?? null }));
}
