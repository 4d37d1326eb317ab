/**
 * One request to a fetch handler, and its answer. It is also the `source` of the fetch objects' Request: the body,
 * and the signal.
 */
import { ANSWERING, BEGUN, Exchange, OVER } from '../exchange.mjs';
import { Inbound } from '../inbound.mjs';
import { isolated } from '../isolate.mjs';
import { Outbound } from '../outbound.mjs';
import { report } from '../report.mjs';
import { Tunnel } from '../tunnel.mjs';
import {
  FREE_BODY_BYTES,
  FACT_UPGRADE, FACT_WAITS_FOR_CONTINUE, FIELD_COUNT_MAX, HANDLER_FAILED, HEAD_BLOCK_BYTES_MAX, METHOD_HEAD,
  PATH_BYTES_MAX, ProtocolError, TIMEOUT,
} from '../wire.mjs';
import { toAnswer } from './answer.mjs';

const EMPTY = new Uint8Array(0);
const FAILURE_TEXT = 'Internal Server Error';
/** Content-Type (0x80 | 22) as a head block. */
const FAILURE_FIELDS = '\x96text/plain;charset=UTF-8\n';

export class FetchExchange extends Exchange {
  #inbound = null;
  #controller = null;
  #reason = null;
  #continued = false;
  /** The rest of the answer's body, or the tunnel. */
  #outbound = null;

  /** Whether a tunnel has sent its END, and is only waiting for the client's. */
  get hasSentEnd() {
    return this.#outbound instanceof Tunnel && this.#outbound.hasSentEnd;
  }

  // What the server sends.

  /** The first piece of a body that is not complete. */
  expectBody(piece) {
    this.#inbound = new Inbound(this, this.lane.streamWindow);
    this.#inbound.push(piece);
  }

  bodyPiece(piece, ended) {
    if (this.#inbound === null) throw new ProtocolError('the server sent more of a body that was complete');
    this.#inbound.push(piece);
    if (ended && !this.over) this.#inbound.end();
  }

  /** The lane has credit again. */
  resume() {
    this.#outbound?.resume();
  }

  /** The server has given the exchange up. */
  reset(code) {
    const message = code === TIMEOUT ? 'the answer took too long' : 'the client is gone';
    this.#reason = new DOMException(message, code === TIMEOUT ? 'TimeoutError' : 'AbortError');
    this.end(this.#reason);
    if (this.#controller !== null) isolated(this.#controller.abort, this.#controller, this.#reason);
  }

  // What the fetch objects ask for.

  read() {
    this.askForBody();
    if (this.#inbound !== null) return this.#inbound.read();
    const piece = this.complete;
    this.complete = EMPTY;
    return Promise.resolve(piece.length > 0 ? piece : null);
  }

  cancel() {
    this.#inbound?.cancel();
  }

  signal() {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** A client that waits for 100 sends its body once somebody wants to read it. */
  askForBody() {
    if (this.#continued || (this.head.charCodeAt(1) & FACT_WAITS_FOR_CONTINUE) === 0) return;
    this.#continued = true;
    if (this.state === BEGUN && this.complete === null) this.lane.writeInformational(this, 100, '');
  }

  // What the handler's call leads to.

  answer(response) {
    if (this.state !== BEGUN) {
      discard(response);
      return;
    }
    let answer;
    try {
      answer = toAnswer(response);
    } catch (error) {
      this.fail(error);
      return;
    }
    const { status, fields, body } = answer;
    const problem = impossible(answer);
    if (problem !== null) {
      discardBody(body);
      this.fail(new TypeError(problem));
      return;
    }
    if (typeof body === 'string' && this.head.charCodeAt(0) !== METHOD_HEAD && status !== 204 && status !== 304) {
      if (this.lane.writeWholeText(this, status, fields, body)) {
        this.finish();
        return;
      }
    }
    this.#answerInParts(answer);
  }

  /** The handler failed: an answer that has not begun becomes a 500, one that has is broken off. */
  fail(error) {
    if (this.state === OVER) {
      if (error !== this.#reason && error?.name !== 'AbortError') report(`after ${this.title} was over`, error);
      return;
    }
    report(this.title, error);
    if (this.state === BEGUN) {
      this.state = ANSWERING;
      if (this.head.charCodeAt(0) === METHOD_HEAD) {
        this.lane.writeHead(this, 500, FAILURE_FIELDS, FAILURE_TEXT.length, EMPTY, 0, true);
      } else if (!this.lane.writeWholeText(this, 500, FAILURE_FIELDS, FAILURE_TEXT)) {
        this.lane.writeHead(this, 500, FAILURE_FIELDS, 0, EMPTY, 0, true);
      }
    } else {
      this.lane.writeReset(this, HANDLER_FAILED);
    }
    this.end(error);
  }

  /** Asks a tunnel to close in its protocol's own way, because this worker is about to retire. */
  retire() {
    if (this.#outbound instanceof Tunnel) this.#outbound.retire();
  }

  #answerInParts({ status, fields, length, body, file, upgrade }) {
    const { lane } = this;
    this.state = ANSWERING;
    if (upgrade) {
      this.#upgrade(status, fields, upgrade);
      return;
    }
    if (file) {
      discardBody(body);
      lane.writeFile(this, status, fields, file);
      this.finish();
      return;
    }
    const bodyless = this.head.charCodeAt(0) === METHOD_HEAD || status === 304;
    if (bodyless || status === 204 || body === null) {
      lane.writeHead(this, status, fields, bodylessLength(status, bodyless, length, body), EMPTY, 0, true);
      discardBody(body);
      this.finish();
      return;
    }
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    if (bytes instanceof Uint8Array) {
      const isFree = bytes.length <= FREE_BODY_BYTES;
      const count = isFree ? bytes.length : Math.min(bytes.length, lane.bodyBytesWithHead, Math.max(0, lane.sendable(this)));
      const whole = count === bytes.length;
      lane.writeHead(this, status, fields, bytes.length, bytes, count, whole);
      if (whole) {
        this.finish();
        return;
      }
      this.#outbound = new Outbound(this, bytes, count, bytes.length);
    } else {
      lane.writeHead(this, status, fields, length, EMPTY, 0, false);
      try {
        this.#outbound = new Outbound(this, bytes, 0, length);
      } catch (error) {
        this.fail(error);
        return;
      }
    }
    lane.streams.add(this);
    this.#outbound.resume();
  }

  #upgrade(status, fields, upgrade) {
    if ((this.head.charCodeAt(1) & FACT_UPGRADE) === 0) {
      this.state = BEGUN;
      upgrade(null);
      this.fail(new TypeError('the client did not ask for an upgrade'));
      return;
    }
    this.lane.writeHead(this, status, fields, -1, EMPTY, 0, false);
    this.lane.streams.add(this);
    const tunnel = new Tunnel(this);
    this.#outbound = tunnel;
    // A request for an upgrade may have come with END: its direction is open again for the new protocol.
    if (this.complete !== null) this.#inbound = new Inbound(this, this.lane.streamWindow);
    try {
      upgrade(tunnel);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#inbound.flowTo(tunnel);
    if (this.lane.runtime.leaving) this.retire();
  }

  settle(failure) {
    this.#inbound?.stop(failure ?? new Error('the exchange is over'));
    const outbound = this.#outbound;
    this.#outbound = null;
    outbound?.stop(failure);
  }
}

/** What would break the protocol is the handler's error, not the lane's. */
function impossible({ status, fields, file, upgrade }) {
  if (status < 200 && !upgrade) return `${status} is no status of an answer`;
  // The shortest record has two bytes: few answers are long enough to be counted.
  if (fields.length > FIELD_COUNT_MAX * 2) {
    if (fields.length > HEAD_BLOCK_BYTES_MAX) return `the fields have more than ${HEAD_BLOCK_BYTES_MAX} bytes`;
    if (fields.split('\n', FIELD_COUNT_MAX + 2).length > FIELD_COUNT_MAX + 1) {
      return `there are more than ${FIELD_COUNT_MAX} fields`;
    }
  }
  if (!file) return null;
  if (Buffer.byteLength(file.path) > PATH_BYTES_MAX) return `a path has at most ${PATH_BYTES_MAX} bytes`;
  if (status === 200 && (file.offset !== 0 || file.length !== -1)) {
    return 'with status 200 the server answers ranges itself: leave out offset and length, or use another status';
  }
  return null;
}

function bodylessLength(status, bodyless, length, body) {
  if (!bodyless) return 0;
  if (length > 0) return length;
  // An empty answer to HEAD is what most frameworks make of GET's: its length is not known then.
  if (typeof body === 'string') return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.length : -1;
}

/** Nobody will get this answer; what stands behind its body must still hear of it. */
function discard(response) {
  let answer;
  try {
    answer = toAnswer(response);
  } catch {
    return;
  }
  discardBody(answer.body);
  answer.upgrade?.(null);
}

function discardBody(body) {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) return;
  body.cancel().catch(() => {});
}
