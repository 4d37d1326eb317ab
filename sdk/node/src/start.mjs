/**
 * From a process that was started to one that is READY: the control lane, what is in place before the application
 * runs, and the decision how it is called. An application that exports a handler is called with each request; else
 * the first http.Server that listens is driven with Node's own objects. Never both in one worker.
 */
import { getHeapStatistics } from 'node:v8';

import { Control, OVER_HTTP, OVER_LANES, OVER_LANES_TO_SERVER } from './control.mjs';
import { takeSettings } from './environment.mjs';
import { FetchExchange } from './fetch/exchange.mjs';
import { announce, install } from './fetch/install.mjs';
import { caller } from './handler.mjs';
import { keepInterrupts } from './interrupts.mjs';
import { Lane } from './lane.mjs';
import { Leaving } from './leave.mjs';
import { Loaded } from './loaded.mjs';
import { AppError, checkTypeScript, look, noApplication } from './load.mjs';
import { awaitOtherPreloads, mainModule } from './main-module.mjs';
import { Adoption } from './node-http/adopt.mjs';
import { BunAdoption } from './node-http/adopt-bun.mjs';
import { install as installHabits } from './node-http/habits.mjs';
import { leadSelfRequests } from './node-http/self-requests.mjs';
import { placed } from './place.mjs';
import { describe, report } from './report.mjs';
import { Runtime } from './runtime.mjs';
import { VERSION as PROTOCOL } from './wire.mjs';
import { VERSION } from './version.mjs';
import { upgradeWebSocket } from './websocket.mjs';

/** An application that neither exports a handler nor listens after so long is spoken of. */
const PATIENCE_MILLISECONDS = 5_000;
/** How long a server that listens waits for the end of its module, whose exports may say something else. */
const EVALUATION_MILLISECONDS = 500;

/** Under Node, from its preload: the application becomes the main module when this is over. */
export async function startUnderNode() {
  const [, name] = process.argv;
  const worker = await start(name);
  // A server that another preload starts (metrics, as tracing tools do) is not the application's.
  await awaitOtherPreloads();
  worker.begins();
  // Node begins with the main module when the preloads are through; from then on `import` gives that very module.
  if (name !== undefined) setImmediate(() => worker.follow(import(mainModule(name)), false));
}

/**
 * @param {string} file the application's
 * @returns {Promise<Worker>} of which `begins` and `follow` are to be called
 */
export async function start(file) {
  const settings = takeSettings();
  if (settings === null) {
    process.stderr.write('onehop: a worker is started by onehop: ONEHOP_LANES must name its sockets, as in 3-4\n');
    process.exit(2);
  }
  const worker = new Worker(settings, file);
  await worker.open();
  return worker;
}

export class Worker {
  /** @type {Runtime|null} Set when it is decided how the application is called. */
  runtime = null;
  /** Whether the application has a server of its own. */
  hasServer = false;
  #settings;
  #file;
  #hello = deferred();
  #greeting = null;
  #adoption;
  #leaving;
  #evaluation = deferred();
  #isEvaluated = false;
  #isDecided = false;
  #found = null;
  #loaded = new Loaded();
  #uncaught = (error) => this.#isUncaught(error);
  #idle = () => this.#isIdle();

  constructor(settings, file) {
    this.#settings = settings;
    this.#file = file;
    const OwnAdoption = process.versions.bun ? BunAdoption : Adoption;
    this.#adoption = new OwnAdoption(settings, {
      adopted: () => this.#listens(),
      closed: () => this.#leaving.closed(),
    });
    this.control = new Control({
      hello: (greeting) => {
        this.#greeting = greeting;
        this.#hello.resolve();
      },
      ping: () => this.#health(),
      // The server sends no more, and RETIRE once it is answered; what already stands in the lanes is still begun.
      drain: () => this.#leaving.drain(),
      retire: () => this.#leaving.retire(),
      broken(error) {
        report('the server broke the worker protocol', error);
        process.exit(1);
      },
      gone: () => process.exit(0),
    });
  }

  /** All that must be there before the application runs. */
  async open() {
    if (this.#settings.tracesInterrupts) keepInterrupts();
    this.#leaving = new Leaving(this);
    announce();
    Object.assign(globalThis.onehop, { upgradeWebSocket, version: VERSION });
    this.#adoption.install();
    if (!process.versions.bun) leadSelfRequests(this.#adoption);
    this.#loaded.install();
    installHabits((message) => this.#loaded.takes(message));
    await this.control.open(this.#settings.descriptors[0]);
    // An application that has nothing more to do lets its process come to its end, which is then noticed.
    this.control.hold(false);
    process.on('beforeExit', this.#idle);
    process.on('uncaughtExceptionMonitor', this.#uncaught);
    try {
      checkTypeScript(this.#file ?? '');
    } catch (error) {
      this.#fail(error.message);
    }
  }

  /** From here on what listens may be the application's server. */
  begins() {
    this.#adoption.begin();
  }

  /**
   * The application's module is being loaded.
   * @param {Promise<object>} module
   * @param {boolean} isOurs nobody else tells that it failed
   */
  async follow(module, isOurs) {
    let exports;
    try {
      exports = await module;
    } catch (error) {
      // Node tells the error of a main module itself, better than anybody else could, and ends.
      if (isOurs) this.#fail(describe(error));
      return;
    }
    this.#isEvaluated = true;
    this.#found = look(exports, this.#file);
    this.#evaluation.resolve();
    setTimeout(() => this.#stillWaits(), PATIENCE_MILLISECONDS).unref();
    const { handler, isCertain } = this.#found;
    // A function is exported by many a module that listens.
    if (handler !== null && (isCertain || this.#adoption.server === null)) this.#decide(() => this.#serveHandler(handler));
  }

  /** Nothing of this library keeps the process alive any more. */
  letGo() {
    this.control.hold(false);
    for (const lane of this.runtime?.lanes ?? []) lane.hold(false);
  }

  async #listens() {
    const late = setTimeout(this.#evaluation.resolve, EVALUATION_MILLISECONDS);
    await this.#evaluation.promise;
    clearTimeout(late);
    if (this.#found?.handler && this.#found.isCertain) return;
    setImmediate(() => {
      const { server } = this.#adoption;
      if (server !== null) this.#decide(() => this.#serveServer(server));
    });
  }

  /** The only way to READY; taken once. */
  async #decide(serve) {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.control.hold(true);
    process.removeListener('beforeExit', this.#idle);
    try {
      await this.#hello.promise;
      this.#checkGreeting();
      await serve();
    } catch (error) {
      this.#fail(error instanceof AppError ? error.message : describe(error));
    }
  }

  async #serveHandler(handler) {
    this.#adoption.release();
    this.#warnOfServers();
    install({ platformResponse: this.#settings.platformResponse });
    const call = caller(handler, Object.freeze({ ...process.env }));
    await this.#openLanes(new Runtime(FetchExchange, call, this.#greeting.perTurn));
    this.#ready(OVER_LANES);
  }

  async #serveServer(server) {
    this.#adoption.decide();
    this.hasServer = true;
    const reason = await this.#reasonForHttp();
    if (reason === null) {
      const [{ dispatcher }, { NodeExchange }] = await Promise.all([
        import('./node-http/dispatcher.mjs'), import('./node-http/exchange.mjs'),
      ]);
      const { call, closeAll } = dispatcher(server);
      this.#adoption.closeAll = closeAll;
      await this.#leaveFilesToServer();
      await this.#openLanes(new Runtime(NodeExchange, call, this.#greeting.perTurn));
      this.#ready(OVER_LANES_TO_SERVER);
      return;
    }
    const { httpSocket } = this.#settings;
    if (httpSocket === null) throw new AppError(`requests must come as HTTP (${reason}), and there is no socket for it`);
    process.stderr.write(`onehop: requests come to this worker as HTTP on a Unix socket: ${reason}\n`);
    const { serveOverHttp } = await import('./node-http/over-http.mjs');
    this.runtime = new Runtime(null, null, this.#greeting.perTurn);
    this.#reportStalls(this.runtime);
    await serveOverHttp(this.#adoption, this.runtime, httpSocket);
    this.#ready(OVER_HTTP);
  }

  /** Why requests must come as HTTP, or null where they can come in frames. */
  async #reasonForHttp() {
    if (this.#settings.overHttp) return 'the Onehopfile says `protocol http`';
    if (process.versions.bun) return 'Bun\'s http.Server cannot be driven in another way';
    const { selfTest } = await import('./node-http/self-test.mjs');
    return selfTest();
  }

  async #leaveFilesToServer() {
    const { files } = this.#settings;
    if (files === null) return;
    const [{ installFileAnswers }, { EXCHANGE }] = await Promise.all([
      import('./node-http/file-answer.mjs'), import('./node-http/response.mjs'),
    ]);
    installFileAnswers(files, (response) => response[EXCHANGE]);
  }

  async #openLanes(runtime) {
    const [, ...descriptors] = this.#settings.descriptors;
    runtime.lanes = descriptors.map(() => new Lane(runtime, this.#greeting));
    this.runtime = runtime;
    this.#reportStalls(runtime);
    // An application may end its process in the very turn in which it has answered.
    process.on('exit', () => runtime.lanes.forEach((lane) => lane.flush()));
    await Promise.all(runtime.lanes.map((lane, index) => lane.open(descriptors[index])));
  }

  #ready(way) {
    process.removeListener('uncaughtExceptionMonitor', this.#uncaught);
    const { bun, node } = process.versions;
    this.control.loaded(this.#loaded.take());
    this.#loaded.report = () => this.control.loaded(this.#loaded.take());
    this.control.ready(bun ? 'bun' : 'node', bun ?? node, VERSION, way);
  }

  #checkGreeting() {
    const { lowest, highest, lanes } = this.#greeting;
    if (lowest > PROTOCOL || highest < PROTOCOL) {
      throw new AppError(
        `this worker library (${VERSION}) speaks version ${PROTOCOL} of the worker protocol, `
          + `the server speaks ${lowest} to ${highest}`,
      );
    }
    const there = this.#settings.descriptors.length - 1;
    if (lanes !== there) throw new AppError(`the server speaks of ${lanes} data lanes, this worker has ${there}`);
  }

  // An application that does not come to READY.

  /** Its event loop has nothing more to do. */
  #isIdle() {
    if (this.#isDecided) return;
    if (!this.#isEvaluated) {
      this.#fail(`${this.#file} waits at its top level (await) for something that can never happen`);
    } else if (this.#found.framework !== null && this.#adoption.server === null) {
      this.#serveExport();
    } else if (this.#adoption.server === null) {
      this.#fail(noApplication(this.#found.text).message);
    }
  }

  /** The application still does something, and nobody knows for how long. */
  #stillWaits() {
    if (this.#isDecided || this.#adoption.server !== null) return;
    if (this.#found.framework !== null) {
      this.#serveExport();
      return;
    }
    const { port, portIsNamed } = this.#settings;
    const others = this.#adoption.others.map(({ kind, where }) => `${kind} on ${where}`).join(', ');
    const wanted = portIsNamed ? `a server of node:http to listen on port ${port}, as the Onehopfile says` : 'it to listen';
    const secure = this.#adoption.others.some(({ kind }) => kind !== 'http')
      ? '. TLS and HTTP/2 are onehop\'s work: let the application listen with node:http' : '';
    const beside = others && `, there is ${others}`;
    process.stderr.write(`onehop: ${this.#found.text} and runs; waiting for ${wanted}${beside}${secure}\n`);
  }

  /** What an application exports would serve, had it been told to listen. */
  async #serveExport() {
    const { name, open } = this.#found.framework;
    this.control.hold(true);
    try {
      const { default: http } = await import('node:http');
      const server = await open(http);
      if (this.#adoption.server !== null) return;
      process.stderr.write(`onehop: ${this.#file} exports ${name} that does not listen: it is served all the same\n`);
      this.#adoption.take(server);
    } catch (error) {
      this.#fail(describe(error));
    }
  }

  /** An error that ends this process, as Node is about to say on standard error. */
  #isUncaught(error) {
    // The application catches it, and may go on.
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    const text = error instanceof SyntaxError ? placed(error, this.#file) : describe(error);
    if (text !== null) this.control.failed(text, () => {});
  }

  #fail(text) {
    process.stderr.write(`${text}\n`);
    this.control.failed(text, () => process.exit(1));
  }

  #warnOfServers() {
    if (this.#adoption.others.length === 0) return;
    const places = this.#adoption.others.map(({ where }) => where).join(', ');
    process.stderr.write(`onehop: ${this.#file} exports a handler, which is called; it also listens itself on ${places}\n`);
  }

  #reportStalls(runtime) {
    runtime.lag.onStall = (duration, endedAgo) => this.control.blocked(duration, endedAgo);
  }

  #health() {
    this.#loaded.report?.();
    const { heapUsed, rss } = memoryUsage();
    const { runtime } = this;
    return {
      lag: runtime?.takeLag() ?? 0,
      inFlight: runtime?.inFlight ?? 0,
      begun: runtime?.begun ?? 0,
      heap: heapUsed,
      resident: rss,
    };
  }
}

/** What the process takes; of its resident bytes nothing is known where there is no /proc. */
function memoryUsage() {
  try {
    return process.memoryUsage();
  } catch {
    return { heapUsed: getHeapStatistics().used_heap_size, rss: 0 };
  }
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}
