/**
 * WebSockets for handlers: `upgradeWebSocket(request)` gives a socket with the events and methods of the platform's
 * WebSocket, and the response that the handler returns for it. Frames are websocket-frames.mjs, bytes and credits
 * the tunnel's.
 */
import { AsyncResource } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { createUpgradeResponse, Response } from './fetch/response.mjs';
import {
  ABNORMAL, BINARY, encodeClose, encodeFrame, GOING_AWAY, MessageReader, NORMAL, NO_STATUS, PONG, TEXT, WebSocketError,
} from './websocket-frames.mjs';

/** Longest message that a client may send, where the application names no other. */
const PAYLOAD_BYTES_DEFAULT = 1_048_576;
/** What may wait for a client that does not read. More fails the socket, as the standard has it for a full buffer. */
const BUFFERED_BYTES_MAX = 16_777_216;
/** How long a client may take to answer a close frame, or to end its side of the connection. */
const CLOSE_MILLISECONDS = 5_000;
/** RFC 6455 section 5.5: what remains of a control frame behind the code. */
const REASON_BYTES_MAX = 123;
/** RFC 6455 section 1.3. */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
const EVENTS = ['open', 'message', 'error', 'close'];

/** Says to the constructor that the caller is this module. */
const INSIDE = Symbol('inside');

/**
 * Answers a request for a WebSocket. Where the request is none, `response` says so (400 or 426) and the socket is
 * closed from the start, so that a handler need not look.
 * @param {Request} request
 * @param {{ protocol?: string | string[], maxPayload?: number }} [options] protocol: what this server speaks; the
 *   first that the client offers is taken, none otherwise. maxPayload: bytes of a message, at most
 * @returns {{ socket: ServerWebSocket, response: globalThis.Response }}
 */
export function upgradeWebSocket(request, { protocol = [], maxPayload = PAYLOAD_BYTES_DEFAULT } = {}) {
  if (!Number.isSafeInteger(maxPayload) || maxPayload < 0) {
    throw new RangeError('upgradeWebSocket: maxPayload must be a whole number of bytes.');
  }
  const refusal = refuse(request);
  if (refusal !== null) {
    const socket = new ServerWebSocket(INSIDE, '', maxPayload);
    queueMicrotask(() => socket[OPENED](null));
    return { socket, response: refusal };
  }
  const chosen = choose(request.headers.get('sec-websocket-protocol'), protocol);
  const socket = new ServerWebSocket(INSIDE, chosen, maxPayload);
  const headers = [
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Accept', accept(request.headers.get('sec-websocket-key'))],
  ];
  if (chosen !== '') headers.push(['Sec-WebSocket-Protocol', chosen]);
  return { socket, response: createUpgradeResponse(headers, (tunnel) => socket[OPENED](tunnel)) };
}

/** The tunnel of a socket is there; null where there will be none. */
const OPENED = Symbol('opened');

/** A server's end of a WebSocket, with the platform's interface. */
export class ServerWebSocket extends EventTarget {
  #scope = new AsyncResource('ONEHOP_WEBSOCKET', { requireManualDestroy: true });
  #protocol;
  #reader;
  #tunnel = null;
  #state = CONNECTING;
  #binaryType = 'blob';
  #handlers = new Map();
  /** What close() was called with before the socket was open. */
  #early = null;
  #sentClose = false;
  #timer = null;
  /** Bytes of blobs that are being read, and bytes that were given to a socket that is closing. */
  #unsent = 0;
  /** The last blob's turn: what is sent behind it waits for it. */
  #blobs = null;
  #pong = null;

  constructor(inside, protocol, maxPayload) {
    if (inside !== INSIDE) throw new TypeError('A socket for a server comes from upgradeWebSocket.');
    super();
    this.#protocol = protocol;
    this.#reader = new MessageReader({
      message: (data) => this.#received(data),
      ping: (bytes) => this.#pinged(bytes),
      close: (code, reason) => this.#closedByClient(code, reason),
    }, maxPayload);
  }

  get url() {
    return '';
  }

  get protocol() {
    return this.#protocol;
  }

  get extensions() {
    return '';
  }

  get readyState() {
    return this.#state;
  }

  /** Bytes that wait for the client, with their frames. */
  get bufferedAmount() {
    return this.#unsent + (this.#tunnel?.waiting ?? 0);
  }

  get binaryType() {
    return this.#binaryType;
  }

  set binaryType(type) {
    if (type === 'blob' || type === 'arraybuffer') this.#binaryType = type;
  }

  /** @param {string | ArrayBuffer | ArrayBufferView | Blob} data */
  send(data) {
    if (arguments.length === 0) throw new TypeError('send needs the data to be sent.');
    if (this.#state === CONNECTING) {
      throw new DOMException('The socket is not open yet: return its response, and wait for "open".', 'InvalidStateError');
    }
    if (data instanceof Blob) {
      this.#sendBlob(data);
    } else if (ArrayBuffer.isView(data)) {
      this.#send(BINARY, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    } else if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) {
      this.#send(BINARY, new Uint8Array(data));
    } else {
      this.#send(TEXT, `${data}`);
    }
  }

  /** @param {number} [code] 1000, or 3000 to 4999 @param {string} [reason] at most 123 bytes */
  close(code = undefined, reason = '') {
    if (code !== undefined && code !== NORMAL && !(code >= 3000 && code <= 4999)) {
      throw new DOMException('The code must be 1000, or from 3000 to 4999.', 'InvalidAccessError');
    }
    if (Buffer.byteLength(`${reason}`) > REASON_BYTES_MAX) {
      throw new DOMException(`The reason must have at most ${REASON_BYTES_MAX} bytes.`, 'SyntaxError');
    }
    this.#close(code ?? NO_STATUS, `${reason}`);
  }

  [OPENED](tunnel) {
    this.#tunnel = tunnel;
    if (tunnel === null) {
      this.#finish(ABNORMAL, '', false);
      return;
    }
    tunnel.listener = {
      data: (bytes) => this.#feed(bytes),
      end: () => this.#ended(),
      drained: () => this.#drained(),
      closed: () => this.#gone(),
      retire: () => this.#close(GOING_AWAY, ''),
    };
    this.#state = OPEN;
    this.#dispatch(new Event('open'));
    if (this.#early !== null) this.#close(this.#early.code, this.#early.reason);
  }

  // What the client sends.

  #feed(bytes) {
    try {
      this.#reader.feed(bytes);
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error;
      this.#fail(error.code, error);
    }
  }

  #received(data) {
    if (this.#state !== OPEN) return;
    let shaped = data;
    if (typeof data !== 'string') shaped = this.#binaryType === 'blob' ? new Blob([data]) : data.buffer;
    this.#dispatch(new MessageEvent('message', { data: shaped }));
  }

  #pinged(bytes) {
    if (this.#sentClose) return;
    // RFC 6455 section 5.5.3: where pings come faster than pongs go, the latest is enough.
    if (this.#tunnel.waiting > 0) this.#pong = bytes;
    else this.#tunnel.write(encodeFrame(PONG, bytes));
  }

  #closedByClient(code, reason) {
    this.#reader.stop();
    if (!this.#sentClose) this.#writeClose(code, '');
    this.#leave();
    this.#finish(code, reason, true);
  }

  /** The client has ended its side without a close frame. */
  #ended() {
    this.#leave();
    this.#finish(ABNORMAL, '', false);
  }

  /** The exchange is over. */
  #gone() {
    clearTimeout(this.#timer);
    this.#finish(ABNORMAL, '', false);
  }

  // What the application does.

  #close(code, reason) {
    if (this.#state === CONNECTING) {
      this.#early ??= { code, reason };
      return;
    }
    if (this.#state !== OPEN) return;
    this.#state = CLOSING;
    const send = () => {
      if (this.#sentClose || this.#state === CLOSED) return;
      this.#writeClose(code, reason);
      this.#giveUpLater();
    };
    if (this.#blobs === null) send();
    else this.#blobs = this.#blobs.then(send);
  }

  #send(opcode, payload) {
    if (this.#state !== OPEN) {
      this.#unsent += typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
      return;
    }
    if (this.#blobs === null) {
      this.#write(encodeFrame(opcode, payload));
    } else {
      // The frame is made now: the application may change its bytes afterwards.
      const frame = encodeFrame(opcode, payload);
      this.#unsent += frame.length;
      this.#inTurn(() => {
        this.#unsent -= frame.length;
        this.#write(frame);
      });
    }
  }

  #sendBlob(blob) {
    this.#unsent += blob.size;
    if (this.#state !== OPEN) return;
    const read = blob.arrayBuffer();
    this.#inTurn(async () => {
      const bytes = new Uint8Array(await read);
      this.#unsent -= blob.size;
      this.#write(encodeFrame(BINARY, bytes));
    });
  }

  #inTurn(send) {
    const turn = (this.#blobs ?? Promise.resolve()).then(send).catch((error) => this.#fail(ABNORMAL, error));
    this.#blobs = turn;
    turn.then(() => {
      if (this.#blobs === turn) this.#blobs = null;
    });
  }

  #write(frame) {
    if (this.#sentClose || this.#state === CLOSED) return;
    if (this.bufferedAmount + frame.length > BUFFERED_BYTES_MAX) {
      this.#fail(ABNORMAL, new Error(`more than ${BUFFERED_BYTES_MAX} bytes wait for the client`));
      return;
    }
    this.#tunnel.write(frame);
  }

  #writeClose(code, reason) {
    this.#sentClose = true;
    this.#tunnel.write(encodeClose(code, reason));
  }

  #drained() {
    if (this.#pong === null) return;
    const pong = this.#pong;
    this.#pong = null;
    if (!this.#sentClose) this.#tunnel.write(encodeFrame(PONG, pong));
  }

  // How it ends.

  /** Nothing more is sent; the client is given some time to end its side. */
  #leave() {
    this.#tunnel.end();
    this.#giveUpLater();
  }

  #giveUpLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tunnel.abandon(), CLOSE_MILLISECONDS);
    this.#timer.unref();
  }

  #fail(code, error) {
    if (this.#state === CLOSED) return;
    this.#reader.stop();
    this.#state = CLOSING;
    const event = new Event('error');
    Object.assign(event, { error, message: error.message });
    this.#dispatch(event);
    if (code === ABNORMAL) {
      this.#tunnel.abandon();
    } else {
      if (!this.#sentClose) this.#writeClose(code, error.message.slice(0, REASON_BYTES_MAX));
      this.#leave();
    }
    this.#finish(ABNORMAL, '', false);
  }

  #finish(code, reason, wasClean) {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    this.#reader.stop();
    this.#dispatch(new Closed('close', { code, reason, wasClean }));
  }

  /** Listeners run in the context of the handler that asked for the socket. */
  #dispatch(event) {
    this.#scope.runInAsyncScope(this.dispatchEvent, this, event);
  }

  /** @param {string} type @returns {Function|null} */
  static handlerOf(socket, type) {
    return socket.#handlers.get(type)?.call ?? null;
  }

  /** An event handler attribute keeps the place among the listeners that it had when it was first set. */
  static setHandler(socket, type, call) {
    const handlers = socket.#handlers;
    const usable = typeof call === 'function' ? call : null;
    const known = handlers.get(type);
    if (known !== undefined) {
      known.call = usable;
      return;
    }
    if (usable === null) return;
    const handler = { call: usable };
    handlers.set(type, handler);
    socket.addEventListener(type, (event) => handler.call?.call(socket, event));
  }
}

const { handlerOf, setHandler } = ServerWebSocket;
Reflect.deleteProperty(ServerWebSocket, 'handlerOf');
Reflect.deleteProperty(ServerWebSocket, 'setHandler');
for (const type of EVENTS) {
  Object.defineProperty(ServerWebSocket.prototype, `on${type}`, {
    get() {
      return handlerOf(this, type);
    },
    set(call) {
      setHandler(this, type, call);
    },
    enumerable: true,
    configurable: true,
  });
}
for (const [name, value] of Object.entries({ CONNECTING, OPEN, CLOSING, CLOSED })) {
  Object.defineProperty(ServerWebSocket, name, { value, enumerable: true });
  Object.defineProperty(ServerWebSocket.prototype, name, { value, enumerable: true });
}

/** Node 20 has no CloseEvent of its own. */
const Closed = globalThis.CloseEvent ?? class CloseEvent extends Event {
  constructor(type, { code, reason, wasClean }) {
    super(type);
    Object.assign(this, { code, reason, wasClean });
  }
};

/** RFC 6455 section 4.2.1. Returns the answer for a request that asks for no WebSocket, else null. */
function refuse(request) {
  const { headers } = request;
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    return new Response('This address speaks WebSocket.\n', { status: 426, headers: { Upgrade: 'websocket' } });
  }
  if (request.method !== 'GET') return new Response('A WebSocket is asked for with GET.\n', { status: 400 });
  if (headers.get('sec-websocket-version') !== '13') {
    return new Response('Only version 13 of the WebSocket protocol is spoken here.\n', {
      status: 426, headers: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
    });
  }
  // 16 bytes in base64.
  if (!/^[A-Za-z0-9+/]{22}==$/.test(headers.get('sec-websocket-key') ?? '')) {
    return new Response('Sec-WebSocket-Key is missing or malformed.\n', { status: 400 });
  }
  return null;
}

function choose(offered, spoken) {
  const names = (offered ?? '').split(',').map((name) => name.trim());
  const known = Array.isArray(spoken) ? spoken : [spoken];
  return names.find((name) => name !== '' && known.includes(name)) ?? '';
}

function accept(key) {
  return createHash('sha1').update(key + ACCEPT_SUFFIX).digest('base64');
}
