/**
 * How long the event loop was late. An own timer, because it can stop: perf_hooks' histogram wakes an idle worker
 * all the time, this one runs only while requests come.
 */

/** A stall is seen as up to this much shorter than it was, but for one that a handler makes before its first await. */
const TICK_MILLISECONDS = 5;
/** PONG has by how much a timer of so long was late: limits are made for that. */
const PONG_MILLISECONDS = 20;
/**
 * Ticks without a request after which the timer stops. At ten requests per second, ticking on until the next one took two
 * fifths of the process's CPU time: code that runs rarely is slow. A stall that begins later, while no request is in
 * flight, is not seen.
 */
const IDLE_TICKS_MAX = 1;
/** The same while requests are in flight, which may stall the loop when they continue: 1 s. */
const BUSY_TICKS_MAX = 200;
/** Shorter stalls are not reported one by one. */
const STALL_MILLISECONDS = 5;

export class Lag {
  watching = false;
  /** Is called with each stall: for how many microseconds, until how many ago. @type {null | ((duration: number, endedAgo: number) => void)} */
  onStall = null;
  /** Until when stalls have been reported. */
  #reported = 0;
  #longest = 0;
  #due = 0;
  /** The same of the timer of which PONG tells. */
  #pongDue = 0;
  #seen = 0;
  #idleTicks = 0;
  #timer = null;
  #runtime = null;

  /** Watches until nothing has been begun for a while. @param {{begun: number, inFlight: number}} runtime */
  watch(runtime) {
    this.watching = true;
    this.#runtime = runtime;
    this.#idleTicks = 0;
    const now = performance.now();
    this.#due = now + TICK_MILLISECONDS;
    this.#pongDue = now + PONG_MILLISECONDS;
    if (this.#timer === null) {
      this.#timer = setTimeout(() => this.#tick(), TICK_MILLISECONDS);
      this.#timer.unref();
    } else {
      this.#timer.refresh();
    }
  }

  /** A request waited for so many milliseconds until it began. */
  waited(milliseconds) {
    const late = Math.floor(milliseconds * 1000);
    if (late > this.#longest) this.#longest = late;
  }

  /** The event loop ran one thing only from then until then, in milliseconds of `performance.now()`. */
  stalled(from, until) {
    const start = Math.max(from, this.#reported);
    if (until - start < STALL_MILLISECONDS || this.onStall === null) return;
    this.#reported = until;
    const microseconds = (milliseconds) => Math.min(Math.floor(milliseconds * 1000), 0xffff_ffff);
    this.onStall(microseconds(until - start), microseconds(performance.now() - until));
  }

  /** The longest delay since the last call, in microseconds. */
  take() {
    // A PING that was answered late because the loop stood still: the tick that should have seen it comes later.
    if (this.watching) this.#note(performance.now());
    const longest = Math.min(this.#longest, 0xffff_ffff);
    this.#longest = 0;
    return longest;
  }

  #tick() {
    const now = performance.now();
    this.#note(now);
    if (this.#runtime.begun === this.#seen) {
      this.#idleTicks += 1;
    } else {
      this.#idleTicks = 0;
      this.#seen = this.#runtime.begun;
    }
    if (this.#idleTicks >= (this.#runtime.inFlight > 0 ? BUSY_TICKS_MAX : IDLE_TICKS_MAX)) {
      this.watching = false;
      return;
    }
    this.#due = now + TICK_MILLISECONDS;
    if (now >= this.#pongDue) this.#pongDue = now + PONG_MILLISECONDS;
    this.#timer.refresh();
  }

  #note(now) {
    this.waited(now - Math.max(this.#due, this.#pongDue));
    this.stalled(this.#due, now);
  }
}
