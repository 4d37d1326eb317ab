/**
 * What the lanes of one worker share: which requests may begin in this turn of the event loop, how many are in
 * flight, and when the worker may leave. It knows no frame.
 */
import { fromRoot } from './isolate.mjs';
import { Lag } from './lag.mjs';
import { report } from './report.mjs';

/** A server that stops closes all lanes at once: how long the control lane's word may come behind a data lane's end. */
const LANE_END_MILLISECONDS = 100;
/**
 * A turn of the event loop in which requests have begun for so long begins no more: answers leave, and timers, sockets and
 * the server's PING have their turn. Handlers that compute would otherwise hold all of it up for a whole read of requests.
 */
const TURN_MILLISECONDS = 10;

export class Runtime {
  /** Exchanges that have begun and are not over. */
  inFlight = 0;
  /** Requests begun since the start. */
  begun = 0;
  /** Requests that were given back to the server unbegun. */
  refused = 0;
  /** Whether this worker is to leave when it has nothing to do: tunnels have been asked to close. */
  leaving = false;
  lag = new Lag();
  lanes = [];
  #call;
  #perTurn;
  #left;
  /** When the first request of this turn began. */
  #turnStarted = 0;
  #queue = [];
  /** Since when each of them waits. */
  #queuedSince = [];
  #turnScheduled = false;
  #waiting = 0;
  #refusing = false;
  #onIdle = null;
  /** Runs at the end of a turn in which a request has begun: the next turn's count begins behind this one's. */
  #endTurn = () => {
    this.#turnScheduled = false;
    this.#left = this.#perTurn;
    // Not now: between two turns the event loop looks for what else there is to do.
    if (this.#queue.length > 0) this.#schedule(this.#queuedTurn);
  };
  #queuedTurn = () => {
    this.#turnScheduled = false;
    this.#left = this.#perTurn;
    this.#turnStarted = performance.now();
    // The context of whoever asked for this turn must not become that of the requests that begin now.
    fromRoot(this.#beginQueued, this);
    this.#schedule(this.#queue.length > 0 ? this.#queuedTurn : this.#endTurn);
  };

  /**
   * @param {typeof import('./exchange.mjs').Exchange} Exchange what a request is to the application
   * @param {(exchange: import('./exchange.mjs').Exchange) => void} call calls the application
   * @param {number} perTurn requests that may begin in one turn of the event loop
   */
  constructor(Exchange, call, perTurn) {
    /** What a lane makes of each REQUEST. */
    this.Exchange = Exchange;
    this.#call = call;
    this.#perTurn = Math.max(1, perTurn);
    this.#left = this.#perTurn;
  }

  /** A request has arrived: begin it, or let it wait for the next turn. */
  arrived(exchange) {
    if (this.#refusing) {
      this.refused += 1;
      exchange.refuse();
      return;
    }
    if (!this.#turnScheduled) {
      this.#turnStarted = performance.now();
      this.#schedule(this.#endTurn);
    }
    if (this.#left > 0 && this.#queue.length === 0) {
      this.#begin(exchange);
    } else {
      this.#queue.push(exchange);
      this.#queuedSince.push(performance.now());
    }
  }

  /** How late requests begin, in microseconds: the longest delay since the last call, of the event loop or of a request. */
  takeLag() {
    if (this.#queuedSince.length > 0) this.lag.waited(performance.now() - this.#queuedSince[0]);
    return this.lag.take();
  }

  /** An exchange that had begun is over. */
  ended() {
    this.inFlight -= 1;
    if (this.#onIdle !== null) this.#leaveIfIdle();
  }

  /** Keeps the worker alive until `promise` is settled. */
  waitUntil(promise, exchange) {
    this.#waiting += 1;
    Promise.resolve(promise).catch((error) => report(`waitUntil of ${exchange.title}`, error)).then(() => {
      this.#waiting -= 1;
      if (this.#onIdle !== null) this.#leaveIfIdle();
    });
  }

  /** From now on no request begins; those that wait for their turn go back to the server. */
  refuse() {
    this.#refusing = true;
    const queue = this.#queue;
    this.#queue = [];
    this.#queuedSince = [];
    for (const exchange of queue) {
      if (exchange.over) continue;
      this.refused += 1;
      exchange.refuse();
    }
  }

  /** Nothing new will come for long: tunnels, which could stay open for ever, are asked to close. */
  windDown() {
    if (this.leaving) return;
    this.leaving = true;
    for (const lane of this.lanes) lane.retire();
  }

  /** Upgraded connections among what is in flight. */
  get tunnels() {
    let count = 0;
    for (const lane of this.lanes) for (const exchange of lane.streams) if (exchange.isTunnel) count += 1;
    return count;
  }

  /** Calls `leave` when nothing is in flight, nothing waits and everything is written. */
  whenIdle(leave) {
    this.#onIdle = leave;
    this.#leaveIfIdle();
  }

  laneBroken(error) {
    report('the server broke the worker protocol', error);
    process.exit(1);
  }

  /** A data lane is at its end: the server has given up this worker, or it stops and says so in a moment. */
  laneEnded(lane, error) {
    if (error) report('a lane to the server failed', error);
    lane.giveUp();
    setTimeout(() => {
      if (!this.leaving) process.exit(1);
    }, LANE_END_MILLISECONDS).unref();
  }

  #begin(exchange) {
    this.#left -= 1;
    this.inFlight += 1;
    this.begun += 1;
    if (!this.lag.watching) this.lag.watch(this);
    exchange.begin();
    this.#call(exchange);
    const now = performance.now();
    if (now - this.#turnStarted < TURN_MILLISECONDS) return;
    this.#left = 0;
    this.lag.stalled(this.#turnStarted, now);
  }

  #beginQueued() {
    const queue = this.#queue;
    // The first one has waited for the longest time.
    this.lag.waited(this.#turnStarted - this.#queuedSince[0]);
    let at = 0;
    while (at < queue.length && this.#left > 0) {
      const exchange = queue[at];
      at += 1;
      if (!exchange.over) this.#begin(exchange);
    }
    queue.splice(0, at);
    this.#queuedSince.splice(0, at);
    // Those that were over already may have been the last.
    if (this.#onIdle !== null) this.#leaveIfIdle();
  }

  #schedule(turn) {
    this.#turnScheduled = true;
    setImmediate(turn);
  }

  #leaveIfIdle() {
    if (this.inFlight > 0 || this.#waiting > 0 || this.#queue.length > 0) return;
    const leave = this.#onIdle;
    this.#onIdle = null;
    let unwritten = this.lanes.length;
    if (unwritten === 0) leave();
    for (const lane of this.lanes) {
      lane.whenWritten(() => {
        unwritten -= 1;
        if (unwritten === 0) leave();
      });
    }
  }
}
