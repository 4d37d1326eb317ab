// The request that a handler gets: a look-alike of the platform's Request over a REQUEST head, with the platform's
// prototype behind its own. Everything is decoded when it is asked for, and must never throw for what a client sent.
// Read next: head.mjs for the bytes, headers.mjs for the fields, install.mjs for what platform functions see.

import { bodyStream, decode, gather, gatherStream, isUnusable, readStream } from './body.mjs';
import { FACT, authority, facts, fieldsAt, method, target } from './head.mjs';
import { headersOver, toBlock } from './headers.mjs';
import { locate } from './location.mjs';
import { PlatformRequest, PlatformResponse, likePlatform, usedRequest } from './platform.mjs';

export { clientAddress, method, requestId, target, tlsFacts } from './head.mjs';

/**
 * Where the body of a request comes from.
 * @typedef {object} Source
 * @property {Uint8Array | null} complete the whole body where it came with the head (empty: there is none)
 * @property {() => Promise<Uint8Array | null>} read the next piece, null at the end; a piece that is a whole
 *   ArrayBuffer is given away and may be detached, others are copied where that would happen
 * @property {() => void} cancel nobody wants the rest
 * @property {() => AbortSignal} signal aborted when the client is gone
 */

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Says to the constructor that the caller is this module. */
const INSIDE = Symbol('inside');

const NO_BYTES = new Uint8Array(0);

class LazyRequest {
  /** @type {string} */
  #head;
  /** @type {Source} */
  #source;
  /** @type {string | null} */
  #url = null;
  /** @type {Headers | null} */
  #headers = null;
  /** The stream that `body` gave out. @type {ReadableStream | null} */
  #body = null;
  /** True once a body method or another request has taken the body. */
  #used = false;

  /**
   * @param {symbol} inside
   * @param {string} head
   * @param {Source} source
   */
  constructor(inside, head, source) {
    if (inside !== INSIDE) throw new TypeError('Illegal constructor');
    this.#head = head;
    this.#source = source;
  }

  get method() {
    return method(this.#head);
  }

  get url() {
    return this.#url ?? this.#locate();
  }

  get headers() {
    return this.#headers ?? this.#openHeaders();
  }

  get signal() {
    return this.#source.signal();
  }

  get body() {
    if (this.#body === null && this.#hasBody()) {
      this.#body = this.#used ? readStream() : bodyStream(this.#source);
    }
    return this.#body;
  }

  get bodyUsed() {
    return this.#used || (this.#body !== null && isUnusable(this.#body));
  }

  async text() {
    const bytes = this.#take();
    return bytes === null ? usedRequest.text() : decode(bytes instanceof Uint8Array ? bytes : await bytes);
  }

  async json() {
    const bytes = this.#take();
    if (bytes === null) return usedRequest.json();
    return JSON.parse(decode(bytes instanceof Uint8Array ? bytes : await bytes));
  }

  async arrayBuffer() {
    const bytes = this.#take();
    return bytes === null ? usedRequest.arrayBuffer() : new Uint8Array(await bytes).buffer;
  }

  async bytes() {
    const bytes = this.#take();
    return bytes === null ? /** @type {any} */ (usedRequest).bytes() : new Uint8Array(await bytes);
  }

  async blob() {
    const bytes = this.#take();
    return bytes === null ? usedRequest.blob() : this.#typed(await bytes).blob();
  }

  async formData() {
    const bytes = this.#take();
    return bytes === null ? usedRequest.formData() : this.#typed(await bytes).formData();
  }

  clone() {
    if (this.bodyUsed || this.#body?.locked) return usedRequest.clone();
    const copy = new LazyRequest(INSIDE, this.#head, this.#source);
    if (this.#headers !== null) copy.#headers = headersOver(toBlock(this.#headers), 0);
    if (this.#body !== null || (this.#hasBody() && this.#source.complete === null)) {
      [this.#body, copy.#body] = /** @type {ReadableStream} */ (this.body).tee();
    }
    return copy;
  }

  get destination() {
    return '';
  }

  get referrer() {
    return 'about:client';
  }

  get referrerPolicy() {
    return '';
  }

  get mode() {
    return 'cors';
  }

  get credentials() {
    return 'same-origin';
  }

  get cache() {
    return 'default';
  }

  get redirect() {
    return 'follow';
  }

  get integrity() {
    return '';
  }

  get keepalive() {
    return false;
  }

  get isReloadNavigation() {
    return false;
  }

  get isHistoryNavigation() {
    return false;
  }

  get duplex() {
    return 'half';
  }

  /**
   * @param {number} _depth
   * @param {any} options
   * @param {(value: unknown, options: any) => string} inspect
   */
  [INSPECT](_depth, options, inspect) {
    if (!(#head in this)) return this;
    /** @type {Record<string, unknown>} */
    const shown = {};
    for (const key of SHOWN) shown[key] = /** @type {any} */ (this)[key];
    return `Request ${inspect(shown, options)}`;
  }

  #locate() {
    const head = this.#head;
    return (this.#url = locate((facts(head) & FACT.tls) !== 0, authority(head), target(head)));
  }

  #openHeaders() {
    const head = this.#head;
    return (this.#headers = headersOver(head, fieldsAt(head), (facts(head) & FACT.ownSpelling) !== 0));
  }

  /** The standard allows a body to all methods but these, and platform code refuses what breaks this. */
  #hasBody() {
    const code = this.#head.charCodeAt(0);
    return this.#source.complete?.length !== 0 && code !== CODE.GET && code !== CODE.HEAD;
  }

  /**
   * Takes the body away: all bytes, a promise of them, or null where they are taken already.
   * @returns {Uint8Array | Promise<Uint8Array> | null}
   */
  #take() {
    if (this.#used) return null;
    if (this.#body !== null) return isUnusable(this.#body) ? null : gatherStream(this.#body);
    if (!this.#hasBody()) return NO_BYTES;
    this.#used = true;
    return this.#source.complete ?? gather(this.#source);
  }

  /** A response of the platform that has this body and its type. @param {Uint8Array} bytes */
  #typed(bytes) {
    const type = this.headers.get('content-type');
    return new PlatformResponse(bytes, type === null ? {} : { headers: { 'content-type': type } });
  }

  /** @param {any} value */
  static isOne(value) {
    return typeof value === 'object' && value !== null && #head in value;
  }

  /**
   * @param {LazyRequest} request
   * @param {boolean} withBody
   */
  static toPlatform(request, withBody) {
    /** @type {any} */
    const init = { method: request.method, headers: request.headers, signal: request.signal };
    if (withBody && request.#hasBody()) {
      if (request.#used || (request.#body !== null && isUnusable(request.#body))) return usedRequest;
      init.body = (request.#body === null && request.#source.complete) || request.body;
      init.duplex = 'half';
      request.#used = true;
    }
    return new PlatformRequest(request.url, init);
  }
}

/** The payload's numbers of the methods that have no body. */
const CODE = { GET: 1, HEAD: 2 };

/** What the platform shows of a request, in its order. */
const SHOWN = [
  'method', 'url', 'headers', 'destination', 'referrer', 'referrerPolicy', 'mode', 'credentials', 'cache', 'redirect',
  'integrity', 'keepalive', 'isReloadNavigation', 'isHistoryNavigation', 'signal',
];

export const {
  /** True for requests of this module. @type {(value: any) => boolean} */
  isOne: isLazyRequest,
  /**
   * A request of the platform that says the same. With the body, that one is taken from the first as if the
   * platform had made a request of a request.
   * @type {(request: any, withBody: boolean) => Request}
   */
  toPlatform,
} = LazyRequest;
Reflect.deleteProperty(LazyRequest, 'isOne');
Reflect.deleteProperty(LazyRequest, 'toPlatform');

Object.setPrototypeOf(LazyRequest.prototype, PlatformRequest.prototype);
Reflect.deleteProperty(LazyRequest.prototype, 'constructor');
likePlatform(LazyRequest.prototype, PlatformRequest.prototype);

/**
 * The request of a REQUEST payload.
 * @param {string} head the payload's first 44 bytes and its head block, as Latin-1
 * @param {Source} source
 * @returns {Request}
 */
export function createRequest(head, source) {
  return /** @type {any} */ (new LazyRequest(INSIDE, head, source));
}
