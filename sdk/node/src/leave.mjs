/**
 * How a worker goes: signals, DRAIN, RETIRE, an application that closes its server. It never breaks off what is in
 * flight.
 */

/** After a worker has said that it takes no more: how long no request must have come before it leaves. */
const QUIET_MILLISECONDS = 500;

export class Leaving {
  /** RETIRE has come. */
  retiring = false;
  /** The worker has said that it takes no more requests. */
  draining = false;
  #worker;
  #terminate = () => this.#terminated();

  /** @param {import('./start.mjs').Worker} worker */
  constructor(worker) {
    this.#worker = worker;
    // A terminal's Ctrl-C goes to the whole process group, and it is the server that drains then.
    process.on('SIGINT', () => {});
    process.on('SIGTERM', this.#terminate);
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
    // An application that listens itself decides itself.
    if (process.listenerCount('SIGTERM') > 1) return;
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

  /** An application with a server of its own that listens to SIGTERM does its last things then, as without onehop. */
  #leave() {
    process.removeListener('SIGTERM', this.#terminate);
    if (!this.#worker.hasServer || process.listenerCount('SIGTERM') === 0) process.exit(0);
    process.kill(process.pid, 'SIGTERM');
    // What listens is called from the event loop, which must not be left before.
    setImmediate(() => setImmediate(() => this.#worker.letGo()));
  }
}
