// The request that a handler gets: a look-alike of the platform's Request over a REQUEST head, with the platform's
// prototype behind its own. Everything is decoded when it is asked for, and must never throw for what a client sent.
// Read next: head.mjs for the bytes, headers.mjs for the fields, install.mjs for what platform functions see.

import { isDisturbed } from 'node:stream';
import { bodyStream, decode, gather, gatherStream, isUnusable, readStream } from './body.mjs';
import { FACT, authority, facts, fieldsAt, method, target } from './head.mjs';
import { headersOver, toBlock } from './headers.mjs';
import { locate } from './location.mjs';
import { PlatformRequest, PlatformResponse, borrowMembers, likePlatform, usedRequest } from './platform.mjs';

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
    return this.#used || (this.#body !== null && isDisturbed(/** @type {any} */ (this.#body)));
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
    if (this.#isUnusable()) return usedRequest.clone();
    const copy = new LazyRequest(INSIDE, this.#head, this.#source);
    if (this.#headers !== null) copy.#headers = headersOver(toBlock(this.#headers), 0);
    if (this.#body !== null || (this.#hasBody() && this.#source.complete === null)) {
      [this.#body, copy.#body] = /** @type {ReadableStream} */ (this.body).tee();
    }
    return copy;
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
    for (const key of SHOWN) if (key in this) shown[key] = /** @type {any} */ (this)[key];
    return `Request ${inspect(shown, options)}`;
  }

  #locate() {
    const head = this.#head;
    return (this.#url = locate((facts(head) & FACT.tls) !== 0, authority(head), target(head)));
  }

  #openHeaders() {
    const head = this.#head;
    const how = (facts(head) & FACT.ownSpelling) === 0 ? undefined : UNSURE;
    return (this.#headers = headersOver(head, fieldsAt(head), how));
  }

  /** The standard allows a body to all methods but these, and platform code refuses what breaks this. */
  #hasBody() {
    const code = this.#head.charCodeAt(0);
    return this.#source.complete?.length !== 0 && code !== CODE.GET && code !== CODE.HEAD;
  }

  #isUnusable() {
    return this.#used || (this.#body !== null && isUnusable(this.#body));
  }

  /**
   * Takes the body away: all bytes, a promise of them, or null where they are taken already.
   * @returns {Uint8Array | Promise<Uint8Array> | null}
   */
  #take() {
    if (this.#isUnusable()) return null;
    if (this.#body !== null) return gatherStream(this.#body);
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
      if (request.#isUnusable()) return failLikeUsed();
      init.body = (request.#body === null && request.#source.complete) || request.body;
      init.duplex = 'half';
      request.#used = true;
    }
    return new PlatformRequest(request.url, init);
  }
}

const UNSURE = { unsure: true };

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

/** A request as it is when only its address is given: what a client never says is in ours as in this one. */
const usual = new PlatformRequest('http://usual.invalid/');
for (const key of Object.keys(PlatformRequest.prototype)) {
  const value = Reflect.get(usual, key);
  if (Object.hasOwn(LazyRequest.prototype, key) || !['string', 'boolean'].includes(typeof value)) continue;
  const constant = { get [key]() { return isLazyRequest(this) ? value : Reflect.get(PlatformRequest.prototype, key, this); } };
  const { get } = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(constant, key));
  Object.defineProperty(LazyRequest.prototype, key, { get, enumerable: true, configurable: true });
}

Object.setPrototypeOf(LazyRequest.prototype, PlatformRequest.prototype);
Reflect.deleteProperty(LazyRequest.prototype, 'constructor');
borrowMembers(LazyRequest.prototype, PlatformRequest.prototype, toPlatform);
likePlatform(LazyRequest.prototype, PlatformRequest.prototype);

/** Throws what the platform throws for a request that is made of one whose body is gone. @returns {never} */
function failLikeUsed() {
  new PlatformRequest(usedRequest);
  throw new TypeError('Cannot construct a Request with a Request object that has already been used.');
}

/**
 * The request of a REQUEST payload.
 * @param {string} head the payload's first 44 bytes and its head block, as Latin-1
 * @param {Source} source
 * @returns {Request}
 */
export function createRequest(head, source) {
  return /** @type {any} */ (new LazyRequest(INSIDE, head, source));
}
