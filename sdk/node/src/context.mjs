/**
 * The third argument of a handler: what is known about the request besides what the client sent, and a way to do
 * something after the answer.
 */
import { clientAddress, requestId, tlsFacts } from './fetch/request.mjs';
import { FACT_ENCRYPTED } from './wire.mjs';

export class Context {
  #exchange;

  constructor(exchange) {
    this.#exchange = exchange;
  }

  /** Keeps the worker alive until `promise` is settled. @param {Promise<unknown>} promise */
  waitUntil(promise) {
    this.#exchange.lane.runtime.waitUntil(promise, this.#exchange);
  }

  /**
   * Who asks: the peer of the connection, never what a field claims. Null where it has no address (a Unix socket).
   * @returns {{address: string, port: number} | null}
   */
  get client() {
    return clientAddress(this.#exchange.head);
  }

  /** 16 hexadecimal digits, the same as in the server's log. @returns {string} */
  get requestId() {
    return requestId(this.#exchange.head);
  }

  /** What is known about the connection's encryption, or null where it has none. @returns {{facts: string}|null} */
  get tls() {
    const { head } = this.#exchange;
    if ((head.charCodeAt(1) & FACT_ENCRYPTED) === 0) return null;
    return { facts: tlsFacts(head) };
  }
}
