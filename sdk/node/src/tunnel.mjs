/**
 * An upgraded exchange: bytes of another protocol in both directions, with credits. What is written and has no
 * credit yet is held here; who writes has to look at `waiting`.
 */
import { Pieces } from './pieces.mjs';
import { BODY_BYTES_MAX } from './wire.mjs';

export class Tunnel {
  /**
   * Set by who takes the tunnel: `data(bytes)`, `end()` when the client sends no more, `drained()` when nothing
   * waits any more, `closed()` once, `retire()` when the worker is about to leave.
   */
  listener = null;
  /** Whether the END of this direction is written. */
  hasSentEnd = false;
  #exchange;
  #pieces = new Pieces();
  #receivedEnd = false;
  #ending = false;

  constructor(exchange) {
    this.#exchange = exchange;
  }

  /** Bytes that wait for credit. */
  get waiting() {
    return this.#pieces.bytes;
  }

  /** Sends bytes, which must not change afterwards. */
  write(bytes) {
    if (this.#ending || this.#exchange.over || bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.resume();
  }

  /** Nothing more will be written. */
  end() {
    if (this.#ending) return;
    this.#ending = true;
    this.resume();
  }

  /** Gives the exchange up in both directions. */
  abandon() {
    this.#exchange.abandon();
  }

  // What the exchange calls.

  resume() {
    const { lane } = this.#exchange;
    const waited = this.#pieces.bytes > 0;
    while (this.#pieces.bytes > 0 && !this.#exchange.over) {
      const count = Math.min(this.#pieces.bytes, BODY_BYTES_MAX, lane.sendable(this.#exchange));
      if (count <= 0) return;
      lane.writeData(this.#exchange, this.#pieces, count, false);
    }
    if (this.#exchange.over) return;
    if (this.#ending && !this.hasSentEnd) {
      this.hasSentEnd = true;
      lane.writeEnd(this.#exchange);
      this.#finishIfBothEnded();
    } else if (waited) {
      this.listener?.drained?.();
    }
  }

  received(bytes) {
    this.listener?.data?.(bytes);
  }

  receivedEnd() {
    this.#receivedEnd = true;
    this.listener?.end?.();
    this.#finishIfBothEnded();
  }

  retire() {
    this.listener?.retire?.();
  }

  stop() {
    this.#pieces.clear();
    const { listener } = this;
    this.listener = null;
    listener?.closed?.();
  }

  #finishIfBothEnded() {
    if (this.#receivedEnd && this.hasSentEnd && !this.#exchange.over) this.#exchange.finish();
  }
}
