/**
 * The rest of an answer's body that could not be sent with its head: bytes that wait for credit, or a stream that
 * is pulled only while there is credit. What a stream gives in one turn of the event loop goes out in as few frames
 * as hold it: many make pieces of a line each.
 */
import { BODY_BYTES_MAX } from './wire.mjs';
import { isolatedWith } from './isolate.mjs';
import { Pieces } from './pieces.mjs';

export class Outbound {
  /** What the stream's own code put into an AsyncLocalStorage, for `isolatedWith`. */
  asyncResource = null;
  #exchange;
  #pieces = new Pieces();
  #reader = null;
  #reading = false;
  /** Whether no piece follows those at hand. */
  #last;
  /** Bytes of the declared length that are still to come, or -1. */
  #remaining;
  #whenPulled = ({ done, value }) => this.#pulled(done, value);
  #whenBroken = (error) => this.#broken(error);

  /** @param {Uint8Array|ReadableStream} body @param {number} sent bytes that went with the head */
  constructor(exchange, body, sent, length) {
    this.#exchange = exchange;
    this.#remaining = length < 0 ? -1 : length - sent;
    if (body instanceof Uint8Array) {
      this.#pieces.push(body.subarray(sent));
      this.#last = true;
    } else {
      this.#last = false;
      this.#reader = body.getReader();
    }
  }

  /** Sends what credit allows, and asks for more. Called at the start and whenever there is credit again. */
  resume() {
    this.write();
    this.#pull();
  }

  /** The exchange is over before the body is. */
  stop(reason) {
    this.#pieces.clear();
    const reader = this.#reader;
    this.#reader = null;
    if (reader !== null) isolatedWith(this, cancelQuietly, null, reader, reason);
  }

  /** Sends what credit allows of what is at hand. */
  write() {
    const { lane } = this.#exchange;
    while (!this.#exchange.over && (this.#pieces.bytes > 0 || this.#last)) {
      const left = this.#pieces.bytes;
      const count = Math.min(left, BODY_BYTES_MAX, lane.sendable(this.#exchange));
      if (count <= 0 && left > 0) return;
      const isFinal = this.#last && count === left;
      lane.writeData(this.#exchange, this.#pieces, count, isFinal);
      if (isFinal) this.#exchange.finish();
    }
  }

  /** A stream is not even asked while nothing could be sent. */
  #pull() {
    if (this.#reader === null || this.#reading || this.#exchange.over) return;
    if (this.#exchange.lane.sendable(this.#exchange) <= this.#pieces.bytes) return;
    this.#reading = true;
    isolatedWith(this, this.#reader.read, this.#reader).then(this.#whenPulled, this.#whenBroken);
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
      this.#last = true;
      this.write();
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
    this.#pieces.push(piece);
    // A full frame need not wait for the turn's end.
    if (this.#pieces.bytes >= BODY_BYTES_MAX) this.write();
    else this.#exchange.lane.gather(this, piece.length);
    this.#pull();
  }

  #broken(error) {
    this.#reading = false;
    if (this.#exchange.over) return;
    this.write();
    this.#exchange.fail(error);
  }
}

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
