/**
 * The worker's entry: `node worker.mjs APP_FILE [ARGS…]`, started by onehop with connected sockets among its
 * descriptors. It loads the application, shakes hands, and then only wires the parts to each other.
 */
import path from 'node:path';
import { Control } from './control.mjs';
import { FetchExchange } from './fetch/exchange.mjs';
import { install } from './fetch/install.mjs';
import { caller } from './handler.mjs';
import { Lane } from './lane.mjs';
import { AppError, loadApp } from './load.mjs';
import { describe, report } from './report.mjs';
import { Runtime } from './runtime.mjs';
import { VERSION as PROTOCOL } from './wire.mjs';
import { VERSION } from './version.mjs';
import { upgradeWebSocket } from './websocket.mjs';

/** After SIGTERM without RETIRE: how long no request must have come before the worker leaves. */
const QUIET_MILLISECONDS = 500;

const descriptors = takeDescriptors();
const platformResponse = process.env.ONEHOP_PLATFORM_RESPONSE === '1';
for (const name of Object.keys(process.env)) {
  if (name.startsWith('ONEHOP_')) delete process.env[name];
}
const file = takeAppFile();

let runtime = null;
let retiring = false;
let settings = null;
const greeted = deferred();

const control = new Control({
  hello(hello) {
    settings = hello;
    greeted.resolve();
  },
  ping() {
    const { heapUsed, rss } = process.memoryUsage();
    return {
      lag: runtime?.lag.take() ?? 0,
      inFlight: runtime?.inFlight ?? 0,
      begun: runtime?.begun ?? 0,
      heap: heapUsed,
      resident: rss,
    };
  },
  // The server sends no more, and RETIRE once it is answered; what already stands in the lanes is still begun.
  drain() {
    runtime?.windDown();
  },
  retire,
  broken(error) {
    report('the server broke the worker protocol', error);
    process.exit(1);
  },
  gone() {
    process.exit(0);
  },
});

installSignals();
install({ platformResponse });
Object.assign(globalThis.onehop, { upgradeWebSocket, version: VERSION });
await control.open(descriptors[0]);
try {
  // The application loads while HELLO is on its way; both are needed to be ready.
  const [app] = await Promise.all([loadApp(file), greeted.promise.then(checkVersion)]);
  await start(app);
} catch (error) {
  giveUp(error);
}

async function start(app) {
  runtime = new Runtime(FetchExchange, caller(app, Object.freeze({ ...process.env })), settings.perTurn);
  runtime.lanes = descriptors.slice(1).map(() => new Lane(runtime, settings));
  await Promise.all(runtime.lanes.map((lane, index) => lane.open(descriptors[index + 1])));
  const { bun, node } = process.versions;
  control.ready(bun ? 'bun' : 'node', bun ?? node, VERSION);
}

function checkVersion() {
  const { lowest, highest, lanes } = settings;
  if (lowest > PROTOCOL || highest < PROTOCOL) {
    throw new AppError(
      `this worker library (${VERSION}) speaks version ${PROTOCOL} of the worker protocol, `
        + `the server speaks ${lowest} to ${highest}`,
    );
  }
  if (lanes !== descriptors.length - 1) {
    throw new AppError(`the server speaks of ${lanes} data lanes, this worker has ${descriptors.length - 1}`);
  }
}

function giveUp(error) {
  // Where a syntax error stands is known to Node alone, which writes it for what nobody has caught.
  if (error instanceof SyntaxError && !process.versions.bun) {
    setImmediate(() => {
      throw error;
    });
    return;
  }
  const text = error instanceof AppError ? error.message : describe(error);
  process.stderr.write(`${text}\n`);
  control.failed(text, () => process.exit(1));
}

/** Finish what is in flight and what was handed to `waitUntil`, then leave. */
function retire() {
  retiring = true;
  if (runtime === null) process.exit(0);
  // What the server sent before RETIRE may still stand in a data lane: two turns of the loop have read it.
  setImmediate(() => setImmediate(() => runtime.whenIdle(() => process.exit(0))));
}

/**
 * A terminal's Ctrl-C goes to the whole process group, and it is the server that drains then. SIGTERM comes from who
 * wants this process to end: it hands back what has not begun.
 */
function installSignals() {
  process.on('SIGINT', () => {});
  process.on('SIGTERM', onTerminate);
}

function onTerminate() {
  // An application that listens itself decides itself.
  if (process.listenerCount('SIGTERM') > 1) return;
  if (runtime === null) process.exit(143);
  control.drain();
  runtime.refuse();
  if (!retiring) leaveWhenQuiet(-1);
}

function leaveWhenQuiet(refused) {
  runtime.whenIdle(() => {
    if (runtime.refused === refused) process.exit(0);
    setTimeout(leaveWhenQuiet, QUIET_MILLISECONDS, runtime.refused);
  });
}

function takeDescriptors() {
  const match = /^(\d+)-(\d+)$/.exec(process.env.ONEHOP_LANES ?? '');
  if (match === null || Number(match[2]) <= Number(match[1])) {
    process.stderr.write('worker.mjs is started by onehop: ONEHOP_LANES must name its sockets, as in 3-4\n');
    process.exit(2);
  }
  const [first, last] = [Number(match[1]), Number(match[2])];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** What the application sees of the command line is what it would see without onehop. */
function takeAppFile() {
  const name = process.argv[2];
  if (name === undefined) {
    process.stderr.write('worker.mjs APP_FILE [ARGS…]: which application?\n');
    process.exit(2);
  }
  const absolute = path.resolve(name);
  process.argv.splice(1, 2, absolute);
  return absolute;
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}
