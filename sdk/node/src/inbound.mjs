/**
 * The body of one request as it arrives in pieces: what has come and was not read yet, and the credit that the
 * server gets back for what was read. It never holds more than the stream's window.
 */
import { LANE_SLOT, ProtocolError } from './wire.mjs';

export class Inbound {
  #exchange;
  #pieces = [];
  #unread = 0;
  /** Bytes that the server may still send. */
  #allowance;
  /** Bytes that were read and not given back to the stream yet. */
  #owed = 0;
  #ended = false;
  #cancelled = false;
  #failure = null;
  #reader = null;
  /** Takes every piece at once, where the body has become a tunnel. */
  #tunnel = null;

  constructor(exchange, window) {
    this.#exchange = exchange;
    this.#allowance = window;
  }

  get ended() {
    return this.#ended;
  }

  /** A piece has arrived; its bytes belong to this object. */
  push(piece) {
    this.#allowance -= piece.length;
    if (this.#allowance < 0) throw new ProtocolError('the server sent more of a body than it had credit for');
    if (this.#ended) throw new ProtocolError('the server sent more of a body after its end');
    if (piece.length === 0) return;
    if (this.#tunnel !== null) {
      this.#consumed(piece.length);
      this.#tunnel.received(piece);
    } else if (this.#cancelled) {
      this.#exchange.lane.consumed(piece.length);
    } else if (this.#reader !== null) {
      this.#consumed(piece.length);
      this.#settle(piece);
    } else {
      this.#pieces.push(piece);
      this.#unread += piece.length;
    }
  }

  /** The body is complete. */
  end() {
    this.#ended = true;
    if (this.#reader !== null) this.#settle(null);
    this.#tunnel?.receivedEnd();
  }

  /** From now on this direction is a tunnel's; what has come and was not read is its beginning. */
  flowTo(tunnel) {
    this.#tunnel = tunnel;
    while (this.#pieces.length > 0) {
      const piece = this.#pieces.shift();
      this.#unread -= piece.length;
      this.#consumed(piece.length);
      tunnel.received(piece);
    }
    if (this.#ended) tunnel.receivedEnd();
  }

  /** Nothing more will come. What the body lacks is an error for who reads it. */
  stop(failure) {
    if (this.#unread > 0) {
      this.#exchange.lane.consumed(this.#unread);
      this.#unread = 0;
    }
    if (this.#ended || this.#failure !== null) return;
    this.#failure = failure;
    this.#pieces = [];
    const reader = this.#reader;
    this.#reader = null;
    reader?.reject(failure);
  }

  /** The next piece, null at the end. One call at a time. */
  read() {
    if (this.#pieces.length > 0) {
      const piece = this.#pieces.shift();
      if (this.#unread > 0) {
        this.#unread -= piece.length;
        this.#consumed(piece.length);
      }
      return Promise.resolve(piece);
    }
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#ended || this.#cancelled) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Nobody will read the rest: it is dropped, and its stream gets no more credit. */
  cancel() {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#pieces = [];
    if (this.#unread > 0) this.#exchange.lane.consumed(this.#unread);
    this.#unread = 0;
    if (this.#reader !== null) this.#settle(null);
  }

  #settle(piece) {
    const { resolve } = this.#reader;
    this.#reader = null;
    resolve(piece);
  }

  #consumed(bytes) {
    const { lane, slot, generation } = this.#exchange;
    lane.consumed(bytes);
    if (this.#ended) return;
    this.#owed += bytes;
    // Half a window: the server can go on with the other half meanwhile, and frames stay few.
    if (this.#owed * 2 < lane.streamWindow) return;
    lane.writeCredit(slot, generation, this.#owed);
    this.#allowance += this.#owed;
    this.#owed = 0;
  }
}

/** What a lane has received and gives back to the server as a whole. */
export class LaneCredit {
  #lane;
  #allowance;
  #owed = 0;
  #threshold;

  constructor(lane, window) {
    this.#lane = lane;
    this.#allowance = window;
    // A sixteenth may be owed at any time, so that bodies nobody reads can never stop the others of the lane.
    this.#threshold = Math.max(1, window >>> 4);
  }

  received(bytes) {
    this.#allowance -= bytes;
    if (this.#allowance < 0) throw new ProtocolError('the server sent more on a lane than it had credit for');
  }

  consumed(bytes) {
    this.#owed += bytes;
    if (this.#owed < this.#threshold) return;
    this.#lane.writeCredit(LANE_SLOT, 0, this.#owed);
    this.#allowance += this.#owed;
    this.#owed = 0;
  }
}
