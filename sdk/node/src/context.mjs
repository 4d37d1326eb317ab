/**
 * The third argument of a handler: what is known about the request besides what the client sent, and a way to do
 * something after the answer.
 */
import { FACT_ENCRYPTED, REQUEST_FIXED_BYTES } from './wire.mjs';

export class Context {
  #exchange;

  constructor(exchange) {
    this.#exchange = exchange;
  }

  /** Keeps the worker alive until `promise` is settled. @param {Promise<unknown>} promise */
  waitUntil(promise) {
    this.#exchange.lane.runtime.waitUntil(promise, this.#exchange);
  }

  /** Who asks: the peer of the connection, never what a field claims. @returns {{address: string, port: number}} */
  get client() {
    const { head } = this.#exchange;
    return { address: clientAddress(head), port: head.charCodeAt(4) | (head.charCodeAt(5) << 8) };
  }

  /** 16 hexadecimal digits, the same as in the server's log. @returns {string} */
  get requestId() {
    return this.#exchange.requestId;
  }

  /** What is known about the connection's encryption, or null where it has none. @returns {{facts: string}|null} */
  get tls() {
    const { head } = this.#exchange;
    if ((head.charCodeAt(1) & FACT_ENCRYPTED) === 0) return null;
    return { facts: head.slice(REQUEST_FIXED_BYTES).split('\n', 3)[2] };
  }
}

function clientAddress(head) {
  const family = head.charCodeAt(2);
  if (family === 4) {
    return `${head.charCodeAt(8)}.${head.charCodeAt(9)}.${head.charCodeAt(10)}.${head.charCodeAt(11)}`;
  }
  if (family !== 6) return '';
  const groups = [];
  for (let at = 8; at < 24; at += 2) groups.push((head.charCodeAt(at) << 8) | head.charCodeAt(at + 1));
  return shortIpv6(groups);
}

/** RFC 5952: the first longest run of two or more zero groups becomes `::`; mapped IPv4 keeps its dots. */
function shortIpv6(groups) {
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${groups[6] >> 8}.${groups[6] & 255}.${groups[7] >> 8}.${groups[7] & 255}`;
  }
  let best = 0;
  let bestAt = -1;
  for (let at = 0, run = 0; at < 8; at += 1) {
    run = groups[at] === 0 ? run + 1 : 0;
    if (run > best && run > 1) {
      best = run;
      bestAt = at - run + 1;
    }
  }
  const text = (part) => part.map((group) => group.toString(16)).join(':');
  if (bestAt < 0) return text(groups);
  return `${text(groups.slice(0, bestAt))}::${text(groups.slice(bestAt + best))}`;
}
