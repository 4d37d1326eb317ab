/**
 * What `request.socket` and `response.socket` are: the client's connection as far as an application may know it.
 * It passes for a net.Socket, runs none of its constructor, and is one request's alone: what an application hangs on
 * it can never be seen by another client. Bytes go through the exchange; there are none to be read here.
 */
import { EventEmitter } from 'node:events';
import net from 'node:net';
import { getDefaultHighWaterMark } from 'node:stream';
import { clientAddress, FACT, tlsFacts } from '../fetch/head.mjs';
import { RawAnswer } from './raw-answer.mjs';

/** Bytes that may wait for the client before `write` says that it is enough; as Node's sockets have it. */
export const HIGH_WATER_BYTES = getDefaultHighWaterMark(false);

/**
 * What code looks at that takes a socket for a stream. Node's `end` sets `corked`; nothing else can be put here, since
 * all sockets have the same one.
 */
const WRITABLE_STATE = Object.freeze({
  get corked() {
    return 0;
  },
  set corked(_) {},
  needDrain: false,
  length: 0,
  objectMode: false,
  ended: false,
  finished: false,
  ending: false,
  destroyed: false,
  errored: null,
  closed: false,
  writable: true,
});

/** @param {import('./exchange.mjs').NodeExchange} exchange @param {import('node:http').Server} server */
export function ClientSocket(exchange, server) {
  this._exchange = exchange;
  this.server = server;
  /** The response that is being written. */
  this._httpMessage = null;
  this.destroyed = false;
  this._paused = false;
}

ClientSocket.prototype = Object.create(net.Socket.prototype, Object.getOwnPropertyDescriptors({
  constructor: net.Socket,
  // Accessors of streams, which would swallow what is set here.
  destroyed: false,
  server: null,
  _exchange: null,
  _httpMessage: null,
  _paused: false,
  connecting: false,
  timeout: undefined,
  parser: null,
  allowHalfOpen: true,
  errored: null,
  _hadError: false,
  _parent: null,
  _handle: null,
  _host: null,
  _closed: false,
  _server: null,
  _rawAnswer: null,
  on: EventEmitter.prototype.on,
  addListener: EventEmitter.prototype.addListener,
  once: EventEmitter.prototype.once,
  off: EventEmitter.prototype.off,
  removeListener: EventEmitter.prototype.removeListener,
  removeAllListeners: EventEmitter.prototype.removeAllListeners,

  get readable() {
    return !this.destroyed;
  },
  get writable() {
    return !this.destroyed;
  },
  get readableHighWaterMark() {
    return HIGH_WATER_BYTES;
  },
  get writableHighWaterMark() {
    return HIGH_WATER_BYTES;
  },
  get writableLength() {
    return this._exchange.waiting;
  },
  get bufferSize() {
    return this._exchange.waiting;
  },
  get writableCorked() {
    // Never 0 while a response is written: Node then leaves it to us when bytes go out.
    return 1;
  },
  get writableEnded() {
    return this.destroyed;
  },
  get writableFinished() {
    return this.destroyed;
  },
  get writableNeedDrain() {
    return this._exchange.waiting >= HIGH_WATER_BYTES;
  },
  get writableObjectMode() {
    return false;
  },
  get readableObjectMode() {
    return false;
  },
  get readableLength() {
    return 0;
  },
  get readableEnded() {
    return false;
  },
  get readableFlowing() {
    return null;
  },
  get closed() {
    return this._closed;
  },
  get readyState() {
    return this.destroyed ? 'closed' : 'open';
  },
  get pending() {
    return false;
  },
  get _connecting() {
    return false;
  },
  get bytesRead() {
    return 0;
  },
  get bytesWritten() {
    return this._exchange.written;
  },
  get _writableState() {
    return WRITABLE_STATE;
  },
  get _readableState() {
    return undefined;
  },

  cork() {},
  uncork() {},
  pause() {
    return this;
  },
  resume() {
    this._exchange.readOn();
    return this;
  },
  isPaused() {
    return false;
  },
  read() {
    return null;
  },
  setEncoding() {
    return this;
  },
  pipe(destination) {
    return destination;
  },
  unpipe() {
    return this;
  },

  /** An application that writes HTTP by hand: its answer is read as a client would read it. */
  write(bytes, encoding, callback) {
    this._rawAnswer ??= new RawAnswer(this._exchange);
    const done = typeof encoding === 'function' ? encoding : callback;
    const isTaken = this._rawAnswer.write(typeof bytes === 'string' ? Buffer.from(bytes, asEncoding(encoding)) : bytes);
    if (done) {
      if (isTaken) process.nextTick(done);
      else this._exchange.whenSent(done);
    }
    return isTaken;
  },
  end(bytes, encoding, callback) {
    if (bytes && typeof bytes !== 'function') this.write(bytes, encoding);
    const done = [bytes, encoding, callback].find((one) => typeof one === 'function');
    if (done) process.nextTick(done);
    if (this._rawAnswer === null) {
      this.destroySoon();
    } else {
      this._rawAnswer.end();
      process.nextTick(() => this.emit('finish'));
    }
    return this;
  },
  /** As `socketOnTimeout` of `_http_server.js`. */
  _onTimeout() {
    const { request, response } = this._exchange;
    const isHeard = [
      request !== null && !request.complete && request.emit('timeout', this),
      this._httpMessage !== null && response.emit('timeout', this),
      this.server.emit('timeout', this),
    ].includes(true);
    if (!isHeard) this.destroy();
    this.emit('timeout');
  },

  /** Closes the connection once what was written is gone. */
  destroySoon() {
    this._exchange.destroyWhenSent();
  },
  destroy(error) {
    if (!this.destroyed) this._exchange.destroyed(error ?? null);
    return this;
  },
  _destroy(error, callback) {
    callback?.(error);
  },
  resetAndDestroy() {
    return this.destroy();
  },

  setNoDelay() {
    return this;
  },
  setKeepAlive() {
    return this;
  },
  ref() {
    return this;
  },
  unref() {
    return this;
  },
  connect() {
    return this;
  },
}));

function asEncoding(encoding) {
  return typeof encoding === 'string' ? encoding : 'utf8';
}

/** Who asks, and by what: the same for every kind of socket here, which has `_exchange` and `server`. */
export const ADDRESSES = Object.getOwnPropertyDescriptors({
  get remoteAddress() {
    return this.destroyed ? undefined : clientAddress(this._exchange.head)?.address;
  },
  get remotePort() {
    return this.destroyed ? undefined : clientAddress(this._exchange.head)?.port;
  },
  get remoteFamily() {
    return this.destroyed ? undefined : familyOf(clientAddress(this._exchange.head)?.address);
  },
  get localAddress() {
    return this.address().address;
  },
  get localPort() {
    return this.address().port;
  },
  get localFamily() {
    return this.address().family;
  },
  get encrypted() {
    return isEncrypted(this) || undefined;
  },
  get authorized() {
    return isEncrypted(this) ? false : undefined;
  },
  get alpnProtocol() {
    return isEncrypted(this) ? false : undefined;
  },
  /** Where the application believes to listen. */
  address() {
    const address = this.server.address();
    return address !== null && typeof address === 'object' ? address : {};
  },
  getPeerCertificate() {
    return isEncrypted(this) ? {} : undefined;
  },
  getProtocol() {
    return isEncrypted(this) ? tlsFacts(this._exchange.head) || null : null;
  },
});
for (const [name, descriptor] of Object.entries(ADDRESSES)) {
  // Who sets one of these on a net.Socket, as shims for encryption do, finds there what was set.
  if (descriptor.get) descriptor.set = setOwn(name);
}
Object.defineProperties(ClientSocket.prototype, ADDRESSES);

function setOwn(name) {
  return function set(value) {
    Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
  };
}

function isEncrypted(socket) {
  return (socket._exchange.head.charCodeAt(1) & FACT.tls) !== 0;
}

function familyOf(address) {
  if (address === undefined) return undefined;
  return address.includes(':') ? 'IPv6' : 'IPv4';
}
