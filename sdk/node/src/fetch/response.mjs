// The response that a handler makes: a look-alike of the platform's Response with the platform's prototype behind
// its own. It keeps a text or bytes as they are and its fields as a head block; the platform's costly stream is
// made only for who asks for it. Whatever is wrong or unusual is given to a Response of the platform, whose errors
// are then ours. Read next: answer.mjs, which takes it apart.

import { readStream } from './body.mjs';
import { answerOfBody, declaredLength, seek, usedError } from './answer-body.mjs';
import { blockOf, refuseControls } from './block.mjs';
import { headersOver, toBlock } from './headers.mjs';
import { recordOf } from './names.mjs';
import {
  PlatformHeaders,
  PlatformResponse,
  borrowMembers,
  likePlatform,
  usedResponse,
} from './platform.mjs';

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Says to the constructor that the caller is this module. */
const INSIDE = Symbol('inside');

const CONTENT_TYPE = recordOf('content-type');

/**
 * The types of bodies that say none themselves, in the platform's spelling; but a text always has its type, which
 * Bun adds only when its own server answers.
 */
const TEXT = `${CONTENT_TYPE}text/plain;charset=UTF-8\n`;
const FORM = typeRecord(new PlatformResponse(new URLSearchParams()));
const JSON_TYPE = typeRecord(PlatformResponse.json(null));

/** Fetch standard, "reason-phrase": what a status text may not hold. */
const BAD_STATUS_TEXT = /[^\t\x20-\x7e\x80-\xff]/;

class Response {
  /** A body that was kept aside. @type {string | Uint8Array | null} */
  #body = null;
  #status = 200;
  #statusText = '';
  /** The fields, as long as nobody has asked for #headers. */
  #block = '';
  /** @type {Headers | null} */
  #headers = null;
  /** A response of the platform that has the body now. @type {globalThis.Response | null} */
  #real = null;
  /** True once the body went into an answer. */
  #taken = false;
  /** What is rare. @type {Extras} */
  #extras = NOTHING;

  /**
   * @param {any} [body]
   * @param {any} [init]
   */
  constructor(body = null, init = undefined) {
    if (body === INSIDE) return;
    let type = '';
    if (typeof body === 'string') {
      this.#body = body;
      type = TEXT;
    } else if (body !== null) {
      const kept = keep(body);
      if (kept === undefined) return this.#adopt(new PlatformResponse(body, init), body);
      this.#body = kept.body;
      type = kept.type;
    }
    if (init === undefined) this.#block = type;
    else if (!this.#open(init, type)) this.#adopt(new PlatformResponse(body, init), body);
  }

  static error() {
    const response = new Response(INSIDE);
    response.#adopt(PlatformResponse.error(), null);
    response.#extras = { ...NOTHING, type: 'error', immutable: true };
    return response;
  }

  /**
   * @param {any} data
   * @param {any} [init]
   */
  static json(data, init = undefined) {
    const text = arguments.length > 0 ? JSON.stringify(data) : undefined;
    const response = new Response(INSIDE);
    if (text === undefined || (init !== undefined && !response.#open(init, JSON_TYPE, true))) {
      response.#adopt(PlatformResponse.json(...arguments), null);
      return response;
    }
    if (init === undefined) response.#block = JSON_TYPE;
    response.#body = text;
    return response;
  }

  /**
   * @param {string | URL} url
   * @param {number} [status]
   */
  static redirect(url, status = 302) {
    const response = new Response(INSIDE);
    response.#adopt(PlatformResponse.redirect(...arguments), null);
    response.#extras = { ...NOTHING, immutable: true };
    return response;
  }

  /** Responses of the platform are responses too, whoever made them. @param {any} value */
  static [Symbol.hasInstance](value) {
    if (this !== Response) return Function.prototype[Symbol.hasInstance].call(this, value);
    return value instanceof PlatformResponse;
  }

  get type() {
    return #body in this ? this.#extras.type : theirs(this, 'type');
  }

  get url() {
    return #body in this ? '' : theirs(this, 'url');
  }

  get redirected() {
    return #body in this ? false : theirs(this, 'redirected');
  }

  get status() {
    return #body in this ? this.#status : theirs(this, 'status');
  }

  get ok() {
    if (!(#body in this)) return theirs(this, 'ok');
    return this.#status >= 200 && this.#status <= 299;
  }

  get statusText() {
    return #body in this ? this.#statusText : theirs(this, 'statusText');
  }

  get headers() {
    if (!(#body in this)) return theirs(this, 'headers');
    return (this.#headers ??= headersOver(this.#block, 0, this.#extras));
  }

  get body() {
    if (!(#body in this)) return theirs(this, 'body');
    if (this.#taken && this.#body !== null) return readStream();
    return this.#body === null && this.#real === null ? null : this.#opened().body;
  }

  get bodyUsed() {
    if (!(#body in this)) return theirs(this, 'bodyUsed');
    return this.#taken || (this.#real !== null && this.#real.bodyUsed);
  }

  clone() {
    if (!(#body in this)) return PlatformResponse.prototype.clone.call(this);
    if (this.#taken) return usedResponse.clone();
    const copy = new Response(INSIDE);
    copy.#real = this.#real?.clone() ?? null;
    copy.#body = this.#body;
    copy.#status = this.#status;
    copy.#statusText = this.#statusText;
    copy.#block = this.#fields();
    copy.#extras = this.#extras;
    return copy;
  }

  text() {
    return #body in this ? this.#opened().text() : PlatformResponse.prototype.text.call(this);
  }

  json() {
    return #body in this ? this.#opened().json() : PlatformResponse.prototype.json.call(this);
  }

  arrayBuffer() {
    return #body in this ? this.#opened().arrayBuffer() : PlatformResponse.prototype.arrayBuffer.call(this);
  }

  /** By way of arrayBuffer, since the first versions of Node 20 have no method of this name. */
  async bytes() {
    return new Uint8Array(await this.arrayBuffer());
  }

  blob() {
    return #body in this ? this.#typed().blob() : PlatformResponse.prototype.blob.call(this);
  }

  formData() {
    return #body in this ? this.#typed().formData() : PlatformResponse.prototype.formData.call(this);
  }

  /**
   * @param {number} depth
   * @param {any} options
   * @param {(value: unknown, options: any) => string} inspect
   */
  [INSPECT](depth, options, inspect) {
    if (!(#body in this)) return this;
    /** @type {Record<string, unknown>} */
    const shown = {};
    for (const key of SHOWN) shown[key] = /** @type {any} */ (this)[key];
    return `Response ${inspect(shown, options)}`;
  }

  /**
   * Reads the usual settings; false where the platform has to decide.
   * @param {any} init
   * @param {string} type the record of the content type that the body has by itself, or ''
   * @param {boolean} [hasBody]
   */
  #open(init, type, hasBody = this.#body !== null) {
    if (init === null || typeof init !== 'object') return false;
    const { status, statusText, headers } = init;
    if (status !== undefined) {
      if (typeof status !== 'number' || !(status >= 200 && status <= 599) || status !== (status | 0)) return false;
      if (hasBody && (status === 204 || status === 205 || status === 304)) return false;
      this.#status = status;
    }
    if (statusText !== undefined) {
      if (typeof statusText !== 'string' || BAD_STATUS_TEXT.test(statusText)) return false;
      this.#statusText = statusText;
    }
    const block = blockOf(headers);
    if (block === undefined) return false;
    this.#block = type === '' || seek(block, CONTENT_TYPE) >= 0 ? block : block + type;
    return true;
  }

  /**
   * Lets a response of the platform have the body, and takes over what it says.
   * @param {globalThis.Response} real
   * @param {any} body what it was made of
   */
  #adopt(real, body) {
    this.#real = real;
    this.#body = null;
    this.#status = real.status;
    this.#statusText = real.statusText;
    this.#block = /** @type {string} */ (blockOf(real.headers));
    const length = body instanceof Blob ? body.size : -1;
    if (length >= 0 || real.type !== 'default') this.#extras = { ...NOTHING, length, type: real.type };
  }

  /** The response of the platform that has the body; made now, where there is none. */
  #opened() {
    if (this.#taken) return usedResponse;
    this.#real ??= new PlatformResponse(/** @type {any} */ (this.#body));
    return this.#real;
  }

  /** The same for those who ask for the type too. */
  #typed() {
    const real = this.#opened();
    if (real === usedResponse) return real;
    const type = this.headers.get('content-type');
    if (real.type === 'default' && type !== real.headers.get('content-type')) {
      if (type === null) real.headers.delete('content-type');
      else real.headers.set('content-type', type);
    }
    return real;
  }

  #fields() {
    return this.#headers === null ? this.#block : toBlock(/** @type {any} */ (this.#headers));
  }

  /** @param {any} value */
  static isOne(value) {
    return typeof value === 'object' && value !== null && #body in value;
  }

  /**
   * @param {Response} response
   * @returns {import('./answer-body.mjs').Answer}
   */
  static answer(response) {
    const fields = response.#fields();
    refuseControls(fields);
    if (response.#real !== null || response.#taken) return response.#answerOfReal(fields);
    const { file, upgrade } = response.#extras;
    const body = response.#body;
    let length = -1;
    if (body === null) length = Math.max(declaredLength(fields), 0);
    else {
      response.#taken = true;
      if (typeof body !== 'string') length = body.byteLength;
    }
    return { status: response.#status, fields, length, body, file, upgrade };
  }

  /**
   * @param {string} fields
   * @returns {import('./answer-body.mjs').Answer}
   */
  #answerOfReal(fields) {
    const real = this.#real;
    if (real === null || this.#taken || real.bodyUsed || real.body?.locked) throw usedError();
    if (this.#extras.type === 'error') throw new TypeError(ERROR_RESPONSE);
    if (real.body !== null) this.#taken = true;
    return { ...answerOfBody(real, fields, this.#extras.length), status: this.#status };
  }

  /** @param {Response} response */
  static real(response) {
    return response.#typed();
  }

  /**
   * @param {number} status
   * @param {any} headers
   * @param {Partial<Extras>} extras
   */
  static special(status, headers, extras) {
    const response = new Response(INSIDE);
    response.#status = status;
    response.#block = /** @type {string} */ (blockOf(headers) ?? blockOf(new PlatformHeaders(headers)));
    response.#extras = { ...NOTHING, ...extras };
    return response;
  }
}

/**
 * What few responses have.
 * @typedef {object} Extras
 * @property {string} type
 * @property {boolean} immutable nobody may change the fields
 * @property {number} length bytes of a body that the platform has, -1 if unknown
 * @property {import('./answer-body.mjs').Answer['file']} file
 * @property {Function | null} upgrade
 */

/** @type {Extras} */
const NOTHING = { type: 'default', immutable: false, length: -1, file: null, upgrade: null };

/** What the platform shows of a response, in its order. */
const SHOWN = ['status', 'statusText', 'headers', 'body', 'bodyUsed', 'ok', 'redirected', 'type', 'url'];

const ERROR_RESPONSE = 'The handler answered with Response.error(), which is no answer that a client can be given.';

const { special } = Response;
export const {
  /** True for responses of this module. @type {(value: any) => boolean} */
  isOne: isFastResponse,
  /** Takes one of them apart; its body is used then. @type {(response: any) => import('./answer-body.mjs').Answer} */
  answer: answerOf,
  /** The response of the platform that has the body of one of them, and its type. @type {(response: any) => any} */
  real: realResponse,
} = Response;
for (const key of ['special', 'isOne', 'answer', 'real']) Reflect.deleteProperty(Response, key);

Object.setPrototypeOf(Response.prototype, PlatformResponse.prototype);
borrowMembers(Response.prototype, PlatformResponse.prototype, (self) => {
  return isFastResponse(self) ? realResponse(self) : self;
});
likePlatform(Response.prototype, PlatformResponse.prototype);
likePlatform(Response, PlatformResponse);

export { Response };

/**
 * An answer that gives the connection to another protocol (status 101).
 * @param {HeadersInit} headers with `Upgrade`, which names the protocol
 * @param {Function} onTunnel called with the tunnel once the server has answered
 * @returns {globalThis.Response}
 */
export function createUpgradeResponse(headers, onTunnel) {
  if (typeof onTunnel !== 'function') throw new TypeError('createUpgradeResponse needs a function for the tunnel.');
  return /** @type {any} */ (special(101, headers, { upgrade: onTunnel }));
}

/** A segment of a path that leads upwards. */
const LEAVES = /(^|\/)\.\.(\/|$)/;

/**
 * An answer whose body is a file that the server opens itself, below the folder that its configuration names.
 * @param {string} path relative to that folder
 * @param {{ status?: number, headers?: HeadersInit, offset?: number, length?: number }} [options]
 * @returns {globalThis.Response}
 */
export function sendFile(path, { status = 200, headers, offset = 0, length = -1 } = {}) {
  if (typeof path !== 'string') {
    throw new TypeError('sendFile needs a path relative to the folder that the configuration names.');
  }
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError('sendFile: the status must be a whole number from 200 to 599.');
  }
  if (!Number.isSafeInteger(offset) || offset < 0 || !Number.isSafeInteger(length) || length < -1) {
    throw new RangeError('sendFile: offset and length must be whole numbers of bytes; length -1 means the rest.');
  }
  // Paths come from clients: what can be no file below the folder is not found, and no fault of the handler.
  if (path === '' || path.startsWith('/') || path.endsWith('/') || path.includes('\0') || LEAVES.test(path)) {
    return /** @type {any} */ (special(404, undefined, {}));
  }
  return /** @type {any} */ (special(status, headers, { file: { path, offset, length } }));
}

/**
 * A body that needs no help of the platform, with its type; undefined for all others.
 * @param {any} body
 * @returns {{ body: string | Uint8Array | null, type: string } | undefined}
 */
function keep(body) {
  if (body === undefined) return { body: null, type: '' };
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer) {
    // Copied as the platform does: what the application writes into it afterwards is not sent.
    return { body: new Uint8Array(body), type: '' };
  }
  if (body instanceof ArrayBuffer) return { body: new Uint8Array(body.slice(0)), type: '' };
  if (body instanceof URLSearchParams) return { body: body.toString(), type: FORM };
  return undefined;
}

/** @param {globalThis.Response} response */
function typeRecord(response) {
  const type = response.headers.get('content-type');
  return type === null ? '' : `${CONTENT_TYPE}${type}\n`;
}

/**
 * What a member of the platform's prototype says of an object that is not ours.
 * @param {any} response
 * @param {string} key
 */
function theirs(response, key) {
  return Reflect.get(PlatformResponse.prototype, key, response);
}
