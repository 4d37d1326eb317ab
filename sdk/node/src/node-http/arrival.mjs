/**
 * What the client sends in pieces: the body of a request, or one direction of an upgraded connection. Holds what
 * comes before the application is called, pushes the rest into Node's stream, and gives the server credit back for
 * what was taken from there. It never holds more than the stream's window.
 */
import { ProtocolError } from '../wire.mjs';

export class Arrival {
  /** The last piece has come. */
  isWhole = false;
  /** Bytes that have come. */
  received = 0;
  #exchange;
  /** What comes before there is a stream to push into. */
  #early = [];
  #stream = null;
  /** Bytes that the server may still send. */
  #allowance;
  /** Bytes that stand in the stream's buffer. */
  #untaken = 0;
  /** Bytes that were taken from there and not given back to the server yet. */
  #owed = 0;

  /** @param {import('./exchange.mjs').NodeExchange} exchange */
  constructor(exchange) {
    this.#exchange = exchange;
    this.#allowance = exchange.lane.streamWindow;
  }

  /** @param {Uint8Array} bytes its own memory @param {boolean} ended */
  piece(bytes, ended) {
    if (this.isWhole) throw new ProtocolError('the server sent more of a body after its end');
    this.#allowance -= bytes.length;
    if (this.#allowance < 0) throw new ProtocolError('the server sent more of a body than it had credit for');
    this.isWhole = ended;
    this.received += bytes.length;
    if (bytes.length === 0) return;
    if (this.#stream === null) this.#early.push(bytes);
    else this.#push(bytes);
  }

  /** @param {{push(bytes: Uint8Array): boolean}} stream takes what has come and what will come */
  flowInto(stream) {
    this.#stream = stream;
    const early = this.#early;
    this.#early = [];
    for (const bytes of early) this.#push(bytes);
  }

  /** Somebody has read from the stream's buffer. */
  taken() {
    const bytes = this.#untaken;
    if (bytes === 0) return;
    this.#untaken = 0;
    const { lane, slot, generation, over } = this.#exchange;
    lane.consumed(bytes);
    if (this.isWhole || over) return;
    this.#owed += bytes;
    // Half a window: the server can go on with the other half meanwhile, and frames stay few.
    if (this.#owed * 2 < lane.streamWindow) return;
    lane.writeCredit(slot, generation, this.#owed);
    this.#allowance += this.#owed;
    this.#owed = 0;
  }

  /** The exchange is over: what nobody took counts for the lane all the same. */
  stop() {
    let bytes = this.#untaken;
    for (const piece of this.#early) bytes += piece.length;
    this.#untaken = 0;
    this.#early = [];
    if (bytes > 0) this.#exchange.lane.consumed(bytes);
  }

  #push(bytes) {
    this.#untaken += bytes.length;
    const isWanted = this.#stream.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    // Else whoever reads says so, through `resume` of the socket.
    if (isWanted) this.taken();
  }
}
