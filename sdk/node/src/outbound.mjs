/**
 * The rest of an answer's body that could not be sent with its head: bytes that wait for credit, or a stream that
 * is pulled only while there is credit. At most one piece of the application is held at a time.
 */
import { BODY_BYTES_MAX } from './wire.mjs';
import { isolated } from './isolate.mjs';

export class Outbound {
  #exchange;
  /** The piece being sent and how far; null where none is. */
  #piece = null;
  #sent = 0;
  #reader = null;
  #reading = false;
  /** Whether the piece at hand is the last one. */
  #last;
  /** Bytes of the declared length that are still to come, or -1. */
  #remaining;

  /** @param {Uint8Array|ReadableStream} body @param {number} sent bytes that went with the head */
  constructor(exchange, body, sent, length) {
    this.#exchange = exchange;
    this.#remaining = length < 0 ? -1 : length - sent;
    if (body instanceof Uint8Array) {
      this.#piece = body;
      this.#sent = sent;
      this.#last = true;
    } else {
      this.#last = false;
      this.#reader = body.getReader();
    }
  }

  /** Sends what credit allows. Called at the start and whenever there is credit again. */
  resume() {
    const { lane } = this.#exchange;
    while (!this.#exchange.over && !this.#reading) {
      if (this.#piece === null) {
        // A stream is not even asked while nothing could be sent.
        if (!lane.maySend(this.#exchange)) return;
        this.#pull();
        return;
      }
      const left = this.#piece.length - this.#sent;
      const count = Math.min(left, BODY_BYTES_MAX, lane.sendable(this.#exchange));
      if (count <= 0 && left > 0) return;
      const final = this.#last && count === left;
      lane.writeData(this.#exchange, this.#piece, this.#sent, this.#sent + count, final);
      this.#sent += count;
      if (this.#sent < this.#piece.length) continue;
      this.#piece = null;
      if (final) this.#exchange.finish();
    }
  }

  /** The exchange is over before the body is. */
  stop(reason) {
    this.#piece = null;
    const reader = this.#reader;
    this.#reader = null;
    if (reader !== null) isolated(cancelQuietly, null, reader, reason);
  }

  #pull() {
    this.#reading = true;
    isolated(this.#reader.read, this.#reader).then(
      ({ done, value }) => this.#pulled(done, value),
      (error) => this.#broken(error),
    );
  }

  #pulled(done, value) {
    this.#reading = false;
    if (this.#exchange.over) return;
    if (done) {
      if (this.#remaining > 0) {
        this.#broken(new Error(`the body ended ${this.#remaining} bytes before its Content-Length`));
        return;
      }
      this.#reader = null;
      this.#exchange.lane.writeData(this.#exchange, EMPTY, 0, 0, true);
      this.#exchange.finish();
      return;
    }
    const piece = bytesOf(value);
    if (piece === null) {
      this.#broken(new TypeError('the body\'s stream gave a piece that is not a Uint8Array'));
      return;
    }
    if (this.#remaining >= 0) {
      this.#remaining -= piece.length;
      if (this.#remaining < 0) {
        this.#broken(new Error(`the body is ${-this.#remaining} bytes longer than its Content-Length`));
        return;
      }
    }
    if (piece.length > 0) {
      this.#piece = piece;
      this.#sent = 0;
    }
    this.resume();
  }

  #broken(error) {
    this.#reading = false;
    if (!this.#exchange.over) this.#exchange.fail(error);
  }
}

const EMPTY = new Uint8Array(0);

function cancelQuietly(reader, reason) {
  // What a stream does at its cancellation is the application's affair; there is nobody left to tell.
  reader.cancel(reason).catch(() => {});
}

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value === 'string') return Buffer.from(value);
  return null;
}
