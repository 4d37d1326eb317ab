/**
 * One request and its answer, as a lane and the runtime see it: its slot, its credit, how far it is. What it is to
 * the application is a subclass's: a fetch handler's call (`fetch/`), or Node's own objects (`node-http/`).
 * It never touches a slot that it has given back: once over, it only settles what the application still holds.
 */
import { method, requestId, target } from './fetch/head.mjs';
import { HANDLER_FAILED, ProtocolError, REFUSED, WINDOW_BYTES_MAX } from './wire.mjs';

/** Waits for its turn; nothing of the application has run. */
export const QUEUED = 0;
/** The application has been called. */
export const BEGUN = 1;
/** The answer's head is sent, its body is not complete. */
export const ANSWERING = 2;
export const OVER = 3;

const EMPTY = new Uint8Array(0);

export class Exchange {
  state = QUEUED;
  /** Waits for what the server says of the part of a file that it was asked to send. @type {((bytes: number) => void)|null} */
  whenFileSent = null;

  /**
   * @param {import('./lane.mjs').Lane} lane
   * @param {string} head the REQUEST's fixed part and its head block, as Latin-1
   * @param {Uint8Array|null} complete the whole body, or null where more is to come
   */
  constructor(lane, slot, generation, head, complete) {
    this.lane = lane;
    this.slot = slot;
    this.generation = generation;
    this.head = head;
    this.complete = complete;
    /** Bytes of this exchange's body that may be sent. */
    this.credit = lane.streamWindow;
  }

  get over() {
    return this.state === OVER;
  }

  /** For people: the request as one would speak of it. */
  get title() {
    const { head } = this;
    return `${requestId(head)} ${method(head)} ${target(head)}`;
  }

  // What the server sends, besides `expectBody(piece)`, `bodyPiece(piece, ended)` and `reset(code)`.

  credited(bytes) {
    this.credit += bytes;
    if (this.credit > WINDOW_BYTES_MAX) throw new ProtocolError('the server raised a window above its bound');
    this.resume();
  }

  /** The body ends with these fields. A fetch Request has no place for them. */
  bodyTrailers(_block) {
    this.bodyPiece(EMPTY, true);
  }

  /** So many bytes of the file's part have been passed on. */
  fileSent(bytes) {
    const call = this.whenFileSent;
    if (call === null) throw new ProtocolError('the server speaks of a file that it was not asked for');
    this.whenFileSent = null;
    call(bytes);
  }

  // What the runtime and the application lead to.

  begin() {
    this.state = BEGUN;
  }

  /** It has not begun and goes back to the server. */
  refuse() {
    this.lane.writeReset(this, REFUSED);
    this.end(null);
  }

  /** The answer is complete: the worker's END is written. */
  finish() {
    this.end(null);
  }

  /** RESET from this side, for what cannot go on. */
  abandon(code = HANDLER_FAILED) {
    if (this.state === OVER) return;
    this.lane.writeReset(this, code);
    this.end(null);
  }

  /** The slot is free from here on. */
  end(failure) {
    if (this.state === OVER) return;
    const counted = this.state !== QUEUED;
    this.state = OVER;
    this.lane.over(this, counted);
    this.settle(failure);
  }
}
