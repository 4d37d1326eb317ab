/**
 * One request to an application that has an http.Server of its own, and its answer: what Node's request and response
 * objects say to each other becomes frames, and what frames say becomes what Node's own server (`_http_server.js`)
 * would do. `dispatcher.mjs` makes those objects, `ending.mjs` takes leave of them.
 */
import { ANSWERING, BEGUN, Exchange, QUEUED } from '../exchange.mjs';
import { here, isolatedWith } from '../isolate.mjs';
import { Pieces } from '../pieces.mjs';
import { BODY_BYTES_MAX, FREE_BODY_BYTES, HANDLER_FAILED, HANG_UP, INFORMATIONAL_MAX, METHOD_HEAD, ProtocolError } from '../wire.mjs';
import { Arrival } from './arrival.mjs';
import { conclude, connectionLost, dropRest, isBeingRead, leaveSoon, tellSoon } from './ending.mjs';
import { internals } from './internals.mjs';
import { fieldList } from './request.mjs';
import { encoded, problemOf, problemOfFields } from './response.mjs';

/**
 * How long an answer's end waits for a request that is still read while nothing of it moves: where the reader has
 * paused, where it has not, and how often that is looked at.
 */
const HELD_END_PAUSED_MILLISECONDS = 250;
const HELD_END_MILLISECONDS = 5_000;
const HELD_END_LOOK_MILLISECONDS = 125;

const EMPTY = new Uint8Array(0);
/** Takes what nobody wants any more. */
const NOBODY = { push: () => true };

const { needDrain: NEED_DRAIN, nothing: NOTHING } = internals();

/** No head yet; it is known and waits for the first bytes or this turn's end; it is written. */
const HEADLESS = 0;
const STORED = 1;
const WRITTEN = 2;

export class NodeExchange extends Exchange {
  /** @type {import('node:http').IncomingMessage|null} */
  request = null;
  /** Null where the client asks for an upgrade and the application listens to that. */
  response = null;
  /** Of both. @type {import('node:net').Socket|null} */
  socket = null;
  /** @type {import('node:http').Server|null} */
  server = null;
  /** Bytes of the answer that wait for credit. */
  waiting = 0;
  /** Bytes of the answer's body that were sent. */
  written = 0;
  /** What was given to `write` to be called, and what Node's `end` wants to be called. */
  callbacks = null;
  endCallback = null;
  /** Somebody was told to wait for 'drain'. */
  owesDrain = false;
  /** Whether `ending.mjs` has something to do for it already. */
  isToldSoon = false;
  hasLeft = false;
  isLost = false;
  /** Whether diagnostics channels hear of it. */
  isPublished = true;
  /** The context in which the application runs for it. */
  asyncResource = null;
  /** A body that does not come as a whole, or an upgraded connection. @type {Arrival|null} */
  #arrival = null;
  #head = HEADLESS;
  #status = 0;
  #fields = '';
  #length = -1;
  #isChunked = false;
  /** The answer's whole body where it is one text that nobody had to convert. */
  #text = null;
  #pieces = new Pieces();
  #isEnding = false;
  #isTunnel = false;
  /** What is written onto the socket leaves even where it is destroyed in the same turn. */
  #isRaw = false;
  /** Its end is the connection's. */
  #endsWithConnection = false;
  #informationals = 0;
  /** Nobody reads the request's body any more. */
  #isBodyUnwanted = false;
  #holding = null;
  #trailers = '';
  #earlyTrailers = '';
  #closesWhenSent = false;
  #hasSentEnd = false;
  #isFlushedSoon = false;
  #isEncoded = false;
  /** Calls within the async context of whoever said `end`, where the end comes later. */
  #context = null;

  /** Whether a tunnel has sent its END, and is only waiting for the client's. */
  get hasSentEnd() {
    return this.#isTunnel && this.#hasSentEnd;
  }

  /** Whether it is another protocol's now. */
  get isTunnel() {
    return this.#isTunnel;
  }

  /** Nothing of the answer has left, and nothing was given up. */
  get isUnanswered() {
    return this.state === BEGUN && this.#head === HEADLESS;
  }

  // What the server sends.

  expectBody(piece) {
    this.#arrival = new Arrival(this);
    this.#arrival.piece(piece, false);
  }

  bodyPiece(piece, ended) {
    if (this.#arrival === null) throw new ProtocolError('the server sent more of a body that was complete');
    this.#take(piece, ended, '');
  }

  bodyTrailers(block) {
    if (this.#arrival === null) throw new ProtocolError('the server sent the end of a body that was complete');
    if (this.socket === null) this.#earlyTrailers = block;
    this.#take(EMPTY, true, block);
  }

  /** The client is gone, or the answer takes too long. */
  reset() {
    const hasBegun = this.state !== QUEUED;
    this.end(null);
    if (hasBegun) connectionLost(this, null);
  }

  // The request, for the application.

  /** The application has been called: the body is its, what has come and what will come. */
  deliver() {
    const arrival = this.#arrival;
    if (arrival === null) {
      this.#deliverWhole();
      return;
    }
    // Of an upgrade, what comes is the other protocol's, once there is one.
    if (this.response !== null) arrival.flowInto(this.#body());
    if (arrival.isWhole && !this.over) this.#arrived(this.#earlyTrailers);
  }

  #deliverWhole() {
    const { complete, request } = this;
    if (complete.length > 0) {
      request.push(Buffer.from(complete.buffer, complete.byteOffset, complete.length));
    } else if (request._eventsCount === 0 && this.response !== null) {
      // `push(null)` would tell this to listeners, and there are none.
      request.complete = true;
      request._readableState.ended = true;
      return;
    }
    this.#arrived('');
  }

  /** Somebody reads on. */
  readOn() {
    this.#arrival?.taken();
  }

  /** More of the request's body is to come. */
  get #isArriving() {
    return this.#arrival !== null && !this.#arrival.isWhole && this.response !== null;
  }

  /** What is not read of the body is not wanted: Node's `_dump`. */
  get #isStillRead() {
    const { request } = this;
    if (!this.#isArriving || this.#isBodyUnwanted) return false;
    return isBeingRead(request) && !request._dumped && !request.destroyed;
  }

  /** Listeners to what comes are the application's: they run in a context of their own, and may throw. */
  #take(piece, ended, trailers) {
    if (this.socket === null) {
      this.#arrival.piece(piece, ended);
      return;
    }
    this.socket._unrefTimer();
    isolatedWith(this, guarded, null, () => {
      try {
        this.#arrival.piece(piece, ended);
      } finally {
        if (ended && !this.over) this.#arrived(trailers);
      }
    });
  }

  #body() {
    const { request } = this;
    return { push: (bytes) => request._dumped || request.destroyed || request.push(bytes) };
  }

  #arrived(trailers) {
    const { request } = this;
    if (this.response === null) {
      if (!this.#isTunnel) return;
      endReading(this.socket);
      this.#endTunnel();
      return;
    }
    request.complete = true;
    if (trailers !== '') {
      const list = fieldList(trailers, 0);
      request._addHeaderLines(list, list.length);
    }
    request.push(null);
    // An answer may have waited for a body that was still read.
    if (this.#isEnding) this.resume();
  }

  // The answer.

  /** 1xx before the answer. */
  informational(status, fields) {
    // More than the protocol allows, in number or in size, are hints that nobody misses.
    if (!this.isUnanswered || this.#informationals === INFORMATIONAL_MAX || problemOfFields(fields) !== null) return;
    this.#informationals += 1;
    this.lane.writeInformational(this, status, fields);
  }

  /** The answer's head; it leaves with the first bytes. @param {number} length -1 where it is not known */
  storeHead(status, fields, length, isChunked) {
    // A second answer: with Node alone its head would be bytes of the first one.
    if (this.#head === WRITTEN || (this.#isRaw && this.#head !== HEADLESS)) return;
    this.#head = STORED;
    this.#status = status;
    this.#fields = fields;
    this.#length = length;
    this.#isChunked = isChunked;
  }

  /** @returns {boolean} whether more should be written now */
  send(data, encoding, callback) {
    if (this.#head === STORED && !this.#isEncoded) {
      this.#isEncoded = true;
      // Before chunks, Node writes it together with the first one's size, which is Latin-1.
      const isBeforeChunk = this.hasTrailers && data.length > 0;
      this.#fields = encoded(this.#fields, typeof data === 'string' && isUtf8(encoding) && !isBeforeChunk);
    }
    if (typeof callback === 'function' && callback !== NOTHING) {
      // What Node's `end` wants to be called makes 'finish'.
      if (callback.name === 'bound onFinish') this.endCallback = callback;
      else this.whenSent(callback);
    }
    if (data.length > 0) {
      if (typeof data !== 'string') this.#add(data);
      else if (this.#head === STORED && this.#text === null && this.waiting === 0 && isUtf8(encoding)) this.#setText(data);
      else this.#add(Buffer.from(data, encoding ?? 'utf8'));
    }
    this.#flushSoon();
    if (this.waiting < this.socket.writableHighWaterMark) return true;
    this.owesDrain = true;
    // 'drain' comes in the context of who waits for it.
    this.#context ??= here();
    return false;
  }

  /** Bytes behind a head that was written by hand. */
  sendRaw(bytes) {
    if (bytes.length > 0) this.#add(bytes);
    this.#flushSoon();
    this.owesDrain ||= this.waiting >= this.socket.writableHighWaterMark;
    return !this.owesDrain;
  }

  /** Calls back once nothing waits, in the context of now. */
  whenSent(callback) {
    const inContext = here();
    this.callbacks ??= [];
    this.callbacks.push((error) => inContext(callback, error));
  }

  /** Everything of the answer is here. @param {string} trailers a block of fields */
  endAnswer(trailers) {
    this.#isEnding = true;
    this.#trailers = trailers;
    if (this.over) {
      leaveSoon(this);
      return;
    }
    if (this.#head === STORED && this.#sendsWhole()) return;
    this.#context = here();
    // Whoever goes on to read a body that is still on its way begins within this turn.
    if (this.#isArriving) this.#flushSoon();
    else this.flush();
  }

  /** The answer's head was written by hand; with 101 what follows is another protocol. */
  beginRaw({ status, fields, length, isChunked }) {
    if (this.#head === WRITTEN) {
      // An answer that has begun cannot become another one: the client sees it broken off.
      this.destroyed(null);
      return;
    }
    this.storeHead(status, fields, length, length < 0);
    this.#isRaw = true;
    this.#endsWithConnection = length < 0 && !isChunked && status !== 101;
    if (status === 101) {
      this.#isTunnel = true;
      this.#arrival ??= new Arrival(this);
      this.#arrival.flowInto(this.socket);
    }
    this.#flushSoon();
  }

  /** This turn's end, or the answer's. */
  flush() {
    this.#isFlushedSoon = false;
    if (this.over) return;
    if (this.#head === STORED) this.#writeHead();
    this.resume();
    if (this.#closesWhenSent && this.#head === HEADLESS) this.destroyed(null);
  }

  /** There is credit, or there is more to send. */
  resume() {
    if (this.#head !== WRITTEN || this.over) return;
    this.#writePieces();
    if (this.waiting > 0) return;
    if (this.#isEnding) this.#writeEnd();
    else if (this.callbacks !== null || this.owesDrain || this.response?.[NEED_DRAIN]) this.#inContext(tellSoon);
    if (this.#closesWhenSent && !this.over) this.destroyed(null);
  }

  /** Closes the client's connection when everything written is sent. */
  destroyWhenSent() {
    this.#closesWhenSent = true;
    if (this.over) connectionLost(this, null);
    else this.#flushSoon();
  }

  /** The application breaks the connection off. */
  destroyed(error, code = HANG_UP) {
    this.#closesWhenSent = false;
    if (!this.#isBodyUnwanted) {
      this.#isBodyUnwanted = true;
      // What Node would have given to the connection already leaves before its end.
      this.#isEnding ||= this.#endsWithConnection && error === null;
      if (code === HANG_UP) {
        if (this.#isRaw || this.#isEnding) this.flush();
        // What was written in earlier turns has not waited for other answers there.
        else if (this.#head === WRITTEN && !this.#isFlushedSoon) this.#writePieces(true);
      }
    }
    this.abandon(code);
    connectionLost(this, error);
  }

  /** The worker is about to retire: an upgraded connection, which could stay for ever, hears that its client ends. */
  retire() {
    if (!this.#isTunnel || this.#arrival.isWhole) return;
    this.#arrival.flowInto(NOBODY);
    endReading(this.socket);
  }

  settle() {
    this.#pieces.clear();
    this.#text = null;
    this.waiting = 0;
    if (this.#holding !== null) clearInterval(this.#holding);
    this.#arrival?.stop();
  }

  #setText(text) {
    this.#text = text;
    this.waiting = text.length;
  }

  #add(bytes) {
    if (this.#text !== null) this.#convertText();
    const kept = this.#withinLength(bytes);
    if (kept.length === 0) return;
    this.#pieces.push(kept);
    this.waiting += kept.length;
  }

  #convertText() {
    const bytes = Buffer.from(this.#text);
    this.#text = null;
    this.waiting = 0;
    this.#add(bytes);
  }

  /** A client takes no more than Content-Length says, of an answer that has more. */
  #withinLength(bytes) {
    if (this.#length < 0 || this.#isTunnel) return bytes;
    const room = this.#length - this.written - this.waiting;
    return bytes.length <= room ? bytes : bytes.subarray(0, Math.max(0, room));
  }

  /** The usual answer: a head and a body that are there as a whole go out in one frame. */
  #sendsWhole() {
    const { lane, response } = this;
    if (this.#isChunked || this.#isArriving || this.#closesWhenSent || !this.#checkHead()) return false;
    const text = this.#text;
    if (response !== null && !response._hasBody) {
      const length = this.head.charCodeAt(0) === METHOD_HEAD || this.#status === 304 ? this.#length : 0;
      lane.writeHead(this, this.#status, this.#fields, length, EMPTY, 0, true);
    } else if (this.#length >= 0 && this.#length !== this.waiting && text === null) {
      return false;
    } else if (text !== null && lane.writeWholeText(this, this.#status, this.#fields, text)) {
      this.written = text.length;
    } else if (this.waiting <= FREE_BODY_BYTES && text === null) {
      const bytes = this.#pieces.joined();
      lane.writeHead(this, this.#status, this.#fields, bytes.length, bytes, bytes.length, true);
      this.written = bytes.length;
    } else {
      return false;
    }
    this.#done();
    return true;
  }

  #writeHead() {
    if (!this.#checkHead()) return;
    if (this.#text !== null) this.#convertText();
    this.#head = WRITTEN;
    this.state = ANSWERING;
    this.lane.writeHead(this, this.#status, this.#fields, this.#length, EMPTY, 0, false);
    this.lane.streams.add(this);
  }

  /** What no frame can carry is the application's error, not the lane's. */
  #checkHead() {
    const problem = problemOf(this.#status, this.#fields, this.#isTunnel);
    if (problem === null) return true;
    this.destroyed(new Error(problem), HANDLER_FAILED);
    return false;
  }

  /** What credit allows, and as many small pieces in one frame as it holds: rows of a table come one by one. */
  #writePieces(isBreakingOff = false) {
    const { lane } = this;
    while (this.#pieces.bytes > 0) {
      const credit = isBreakingOff ? lane.granted(this) : lane.sendable(this);
      const count = Math.min(this.#pieces.bytes, BODY_BYTES_MAX, credit);
      if (count <= 0) return;
      lane.writeData(this, this.#pieces, count, false);
      this.socket._unrefTimer();
      this.written += count;
      this.waiting -= count;
    }
  }

  #writeEnd() {
    if (this.#hasSentEnd) return;
    // Who still reads the request's body while the answer is over goes on reading, as with Node alone.
    if (this.#isStillRead) {
      this.#inContext(leaveSoon);
      this.#holdEnd();
      return;
    }
    this.#hasSentEnd = true;
    if (this.#trailers !== '' && problemOfFields(this.#trailers) !== null) {
      this.destroyed(new Error('the trailers of an answer are more than can be sent'), HANDLER_FAILED);
      return;
    }
    if (this.#trailers !== '' && !this.#isTunnel) this.lane.writeTrailers(this, this.#trailers);
    else this.lane.writeEnd(this);
    if (this.#isTunnel) {
      if (this.callbacks !== null) tellSoon(this);
      this.#endTunnel();
    } else {
      this.#done();
    }
  }

  #endTunnel() {
    if (this.#isTunnel && this.#hasSentEnd && this.#arrival.isWhole && !this.over) this.#done();
  }

  #done() {
    this.finish();
    if (this.hasLeft) conclude(this);
    else this.#inContext(leaveSoon);
  }

  /**
   * The answer's end, which is the exchange's, waits for who still reads the request. Not for ever: a reader that has
   * stopped gives no credit, and a client may wait for the end before it sends on.
   */
  #holdEnd() {
    let [seen, still] = [this.#arrival.received, 0];
    this.#holding ??= setInterval(() => {
      const isMoving = this.#arrival.received !== seen;
      seen = this.#arrival.received;
      still = isMoving ? 0 : still + HELD_END_LOOK_MILLISECONDS;
      const bound = this.request.readableFlowing === false ? HELD_END_PAUSED_MILLISECONDS : HELD_END_MILLISECONDS;
      if (still < bound) return;
      this.#isBodyUnwanted = true;
      this.resume();
      dropRest(this.request);
    }, HELD_END_LOOK_MILLISECONDS);
  }

  #inContext(call) {
    if (this.#context === null) call(this);
    else this.#context(call, this);
  }

  #flushSoon() {
    if (this.#isFlushedSoon) return;
    this.#isFlushedSoon = true;
    if (flushing.length === 0) process.nextTick(flushAll);
    flushing.push(this);
  }
}

/** As net.Socket does, so that a stream that nobody reads ends too. */
function endReading(socket) {
  socket.push(null);
  socket.read(0);
}

/** What was written by the end of this turn's code leaves then, all at once: `end` has usually come before. */
let flushing = [];

function flushAll() {
  const all = flushing;
  flushing = [];
  // Whatever goes wrong with one must not keep the others waiting.
  for (const exchange of all) guarded(flush, exchange);
}

function flush(exchange) {
  exchange.flush();
}

/** An error of the application must not stop the lane: it is thrown where nobody catches it, as Node would. */
export function guarded(call, first, second) {
  try {
    call(first, second);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    process.nextTick(rethrow, error);
  }
}

function rethrow(error) {
  throw error; // The application's own: its stack, below, says where.
}

function isUtf8(encoding) {
  return !encoding || encoding === 'utf8' || encoding === 'utf-8';
}
