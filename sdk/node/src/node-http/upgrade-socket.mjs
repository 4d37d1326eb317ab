/**
 * The socket of an 'upgrade' event: a stream of the client's bytes both ways. The application writes the head of its
 * answer onto it as HTTP, which `raw-answer.mjs` reads; what follows a 101 goes to the client as it is.
 */
import net from 'node:net';
import { Duplex } from 'node:stream';
import { ADDRESSES } from './client-socket.mjs';
import { RawAnswer } from './raw-answer.mjs';

export class UpgradeSocket extends Duplex {
  _exchange;
  server;
  _httpMessage = null;
  timeout = undefined;
  #answer;

  /** @param {import('./exchange.mjs').NodeExchange} exchange @param {import('node:http').Server} server */
  constructor(exchange, server) {
    super({ allowHalfOpen: true });
    this._exchange = exchange;
    this.server = server;
    this.#answer = new RawAnswer(exchange);
  }

  get bytesRead() {
    return 0;
  }

  get bytesWritten() {
    return this._exchange.written;
  }

  get pending() {
    return false;
  }

  get readyState() {
    return this.destroyed ? 'closed' : 'open';
  }

  get bufferSize() {
    return this.writableLength;
  }

  _read() {
    this._exchange.readOn();
  }

  _write(bytes, _encoding, callback) {
    if (this.#answer.write(bytes)) callback();
    else this._exchange.whenSent(callback);
  }

  _final(callback) {
    this.#answer.end();
    // 'finish' means that everything has left: who hears it may destroy.
    if (this._exchange.waiting > 0) this._exchange.whenSent(callback);
    else callback();
  }

  _destroy(error, callback) {
    this._exchange.destroyed(error);
    callback(error);
  }

  resetAndDestroy() {
    return this.destroy();
  }

  setNoDelay() {
    return this;
  }

  setKeepAlive() {
    return this;
  }

  ref() {
    return this;
  }

  unref() {
    return this;
  }
}

// A net.Socket to those who look, with its timeouts; constructed as a Duplex alone.
Object.setPrototypeOf(UpgradeSocket.prototype, net.Socket.prototype);
Object.defineProperties(UpgradeSocket.prototype, {
  ...ADDRESSES,
  connecting: { value: false, writable: true },
  parser: { value: null, writable: true },
  _parent: { value: null, writable: true },
  _handle: { value: null, writable: true },
  // net.Socket's would write several pieces to a handle.
  _writev: { value: null, writable: true },
  _hadError: { value: false, writable: true },
});
