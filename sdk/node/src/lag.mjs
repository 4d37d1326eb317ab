/**
 * How long the event loop was late. An own timer, because it can stop: perf_hooks' histogram wakes an idle worker
 * all the time, this one runs only while requests come.
 */

/** A stall is seen as up to this much shorter than it was. */
const TICK_MILLISECONDS = 20;
/** Ticks without a request after which the timer stops. */
const IDLE_TICKS_MAX = 5;

export class Lag {
  watching = false;
  #longest = 0;
  #due = 0;
  #seen = 0;
  #idleTicks = 0;
  #timer = null;
  #runtime = null;

  /** Watches until nothing has been begun for a while. @param {{begun: number}} runtime */
  watch(runtime) {
    this.watching = true;
    this.#runtime = runtime;
    this.#idleTicks = 0;
    this.#due = performance.now() + TICK_MILLISECONDS;
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
    if (this.#idleTicks >= IDLE_TICKS_MAX) {
      this.watching = false;
      return;
    }
    this.#due = now + TICK_MILLISECONDS;
    this.#timer.refresh();
  }

  #note(now) {
    this.waited(now - this.#due);
  }
}
