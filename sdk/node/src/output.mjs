/**
 * What waits to be written to one channel. Everything that becomes ready in one turn of the event loop lies in one
 * buffer and goes out in one write. It must never write into a buffer that the channel still keeps.
 */

/** Bytes of a buffer at rest: more than one turn's small answers. */
const REST_BYTES = 65_536;
/** At this many bytes a turn's output is written before the turn is over, so that bodies do not pile up. */
const EARLY_BYTES = 65_536;

export class Output {
  /** The buffer to be written into; only valid until the next `reserve`. */
  buffer = Buffer.allocUnsafeSlow(REST_BYTES);
  /** Bytes of it that are used. Who reserves adds to it what was really written. */
  used = 0;
  /** Whether the other side takes no more at the moment. */
  blocked = false;
  /** Called once when everything is written; for a process that is about to exit. */
  whenEmpty = null;
  #channel = null;
  #scheduled = false;
  #turn;

  /** @param {() => void} [beforeTurnEnds] writes what is to go out with the turn */
  constructor(beforeTurnEnds = () => {}) {
    this.#turn = () => {
      beforeTurnEnds();
      this.#scheduled = false;
      this.flush();
    };
  }

  /** Until there is a channel, output is only kept. */
  attach(channel) {
    this.#channel = channel;
    if (this.used > 0) this.schedule();
  }

  /** Makes room for `bytes` behind what is used and returns where it begins. */
  reserve(bytes) {
    if (this.used + bytes > this.buffer.length) this.#grow(bytes);
    this.schedule();
    return this.used;
  }

  /** Writes now what would be written at the turn's end, where there is much of it. */
  flushEarly() {
    if (this.used >= EARLY_BYTES) this.flush();
  }

  flush() {
    if (this.blocked || this.#channel === null) return;
    if (this.used > 0) {
      const { buffer, used } = this;
      this.used = 0;
      if (!this.#channel.write(buffer, used)) {
        this.blocked = true;
        this.buffer = Buffer.allocUnsafeSlow(REST_BYTES);
        return;
      }
      if (buffer.length > EARLY_BYTES * 2) this.buffer = Buffer.allocUnsafeSlow(REST_BYTES);
    }
    this.#empty();
  }

  /** The channel has written what it had kept. */
  drained() {
    this.blocked = false;
    this.flush();
  }

  /** Nobody takes anything any more: what is written is gone. */
  close() {
    this.#channel = { write: () => true };
    this.drained();
  }

  #empty() {
    const { whenEmpty } = this;
    this.whenEmpty = null;
    whenEmpty?.();
  }

  /** Writes at the end of this turn. */
  schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#turn);
  }

  #grow(bytes) {
    if (this.used >= REST_BYTES) this.flush();
    const needed = this.used + bytes;
    if (needed <= this.buffer.length) return;
    const roomier = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.buffer.length * 2, needed + EARLY_BYTES)));
    roomier.set(this.buffer.subarray(0, this.used));
    this.buffer = roomier;
  }
}
