/**
 * An upgraded exchange: bytes of another protocol in both directions, with credits. What is written and has no
 * credit yet is held here; who writes has to look at `waiting`.
 */
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
  #pieces = [];
  #sent = 0;
  #waiting = 0;
  #receivedEnd = false;
  #ending = false;

  constructor(exchange) {
    this.#exchange = exchange;
  }

  /** Bytes that wait for credit. */
  get waiting() {
    return this.#waiting;
  }

  /** Sends bytes, which must not change afterwards. */
  write(bytes) {
    if (this.#ending || this.#exchange.over || bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#waiting += bytes.length;
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
    const waited = this.#waiting > 0;
    while (this.#pieces.length > 0 && !this.#exchange.over) {
      const piece = this.#pieces[0];
      const count = Math.min(piece.length - this.#sent, BODY_BYTES_MAX, lane.sendable(this.#exchange));
      if (count <= 0) return;
      lane.writeData(this.#exchange, piece, this.#sent, this.#sent + count, false);
      this.#sent += count;
      this.#waiting -= count;
      if (this.#sent < piece.length) continue;
      this.#pieces.shift();
      this.#sent = 0;
    }
    if (this.#exchange.over) return;
    if (this.#ending && !this.hasSentEnd) {
      this.hasSentEnd = true;
      lane.writeData(this.#exchange, EMPTY, 0, 0, true);
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
    this.#pieces = [];
    this.#waiting = 0;
    const { listener } = this;
    this.listener = null;
    listener?.closed?.();
  }

  #finishIfBothEnded() {
    if (this.#receivedEnd && this.hasSentEnd && !this.#exchange.over) this.#exchange.finish();
  }
}

const EMPTY = new Uint8Array(0);
