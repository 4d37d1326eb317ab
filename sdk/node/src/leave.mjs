/**
 * How a worker goes: signals, DRAIN, RETIRE, an application that closes its server. It never breaks off what is in
 * flight.
 */

/** After a worker has said that it takes no more: how long no request must have come before it leaves. */
const QUIET_MILLISECONDS = 500;
/** How long after DRAIN an application may close its upgraded connections itself; the server waits two seconds. */
const FAREWELL_MILLISECONDS = 1_200;
/** When it is asked to, and how often it is looked whether nothing else is in flight. */
const LOOK_MILLISECONDS = 200;

export class Leaving {
  /** RETIRE has come. */
  retiring = false;
  /** The worker has said that it takes no more requests. */
  draining = false;
  #worker;
  /** The application has been given its signal. */
  #isTold = false;
  #terminate = () => this.#terminated();

  /** @param {import('./start.mjs').Worker} worker */
  constructor(worker) {
    this.#worker = worker;
    // Whoever sends Ctrl-C to a whole process group: it is the server that drains then.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', this.#terminate);
  }

  /**
   * The server sends no more, and RETIRE once all is answered; upgraded connections, which could stay for ever, have to
   * end. An application that listens to the signal of its end can close them in their own way when nothing else is in
   * flight; what is still open then hears that its client has gone.
   */
  drain() {
    const { runtime } = this.#worker;
    if (runtime === null) return;
    if (this.#signal() === null || runtime.tunnels === 0) {
      runtime.windDown();
      return;
    }
    const looking = setInterval(() => {
      if (runtime.inFlight > runtime.tunnels) return;
      clearInterval(looking);
      this.#tell();
    }, LOOK_MILLISECONDS);
    setTimeout(() => {
      clearInterval(looking);
      runtime.windDown();
    }, FAREWELL_MILLISECONDS);
  }

  /** Finish what is in flight and what was handed to `waitUntil`, then leave. */
  retire() {
    this.retiring = true;
    const { runtime } = this.#worker;
    if (runtime === null) process.exit(0);
    // What the server sent before RETIRE may still stand in a data lane: two turns of the loop have read it.
    setImmediate(() => setImmediate(() => runtime.whenIdle(() => this.#leave())));
  }

  /** The application has closed its server: it wants no more requests, and its process ends when nothing else holds it. */
  closed() {
    const { runtime } = this.#worker;
    if (runtime === null) return;
    this.#drain();
    this.#whenQuiet(-1, () => this.#worker.letGo());
  }

  /** SIGTERM comes from who wants this process to end: it hands back what has not begun. */
  #terminated() {
    // An application that listens itself decides itself, and has been told now.
    if (process.listenerCount('SIGTERM') > 1) {
      this.#isTold = true;
      return;
    }
    const { runtime } = this.#worker;
    if (runtime === null) process.exit(143);
    this.#drain();
    if (!this.retiring) this.#whenQuiet(-1, () => this.#leave());
  }

  #drain() {
    if (!this.retiring && !this.draining) this.#worker.control.drain();
    this.draining = true;
    this.#worker.runtime.refuse();
  }

  #whenQuiet(refused, leave) {
    const { runtime } = this.#worker;
    runtime.whenIdle(() => {
      if (runtime.refused === refused || this.retiring) leave();
      else setTimeout(() => this.#whenQuiet(runtime.refused, leave), QUIET_MILLISECONDS);
    });
  }

  /** An application with a server of its own does its last things then, as without onehop. */
  #leave() {
    if (this.#signal() === null) process.exit(0);
    this.#tell();
    // What listens is called from the event loop, which must not be left before.
    setImmediate(() => setImmediate(() => this.#worker.letGo()));
  }

  /** What tells the application that it ends: SIGTERM, or SIGINT where it only listens to that, as pm2 has it. */
  #signal() {
    if (!this.#worker.hasServer) return null;
    const ours = process.listeners('SIGTERM').includes(this.#terminate) ? 1 : 0;
    if (process.listenerCount('SIGTERM') > ours) return 'SIGTERM';
    return process.listenerCount('SIGINT') > 1 ? 'SIGINT' : null;
  }

  #tell() {
    if (this.#isTold) return;
    this.#isTold = true;
    const signal = this.#signal();
    process.removeListener('SIGTERM', this.#terminate);
    process.kill(process.pid, signal);
  }
}
