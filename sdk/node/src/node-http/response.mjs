/**
 * Leads what Node's ServerResponse would write to a socket to the exchange instead. `writeHead`, `write` and `end`
 * stay Node's own: only the four calls behind them are patched, on the prototype, and do what they did for every
 * response that is not branded. (A subclass would not do: Express puts prototypes of its own onto responses.)
 */
import { http } from './node-modules.mjs';
import { FIELD_COUNT_MAX, HEAD_BLOCK_BYTES_MAX } from '../wire.mjs';
import { internals } from './internals.mjs';
import { parseHead } from './raw-answer.mjs';

/** The brand: a response's exchange stands under it. */
export const EXCHANGE = Symbol('onehop.exchange');

const { ServerResponse, validateHeaderName, validateHeaderValue } = http;
const { outHeaders, uniqueHeaders } = internals();
const { _storeHeader, _send, _writeRaw, _finish } = ServerResponse.prototype;

const CHUNKED = /(?:^|\W)chunked(?:$|\W)/i;
const CLOSE = /(?:^|\W)close(?:$|\W)/i;
const ABOVE_LATIN1 = /[\u0100-\uffff]/g;
/** What no value may hold, and what a character above Latin-1 becomes where its low byte is such. */
const NOT_IN_VALUES = /[\0-\x08\x0a-\x1f\x7f]/g;

/** Patches the prototype, once. */
export function install() {
  if (Object.hasOwn(ServerResponse.prototype, EXCHANGE)) return;
  Object.defineProperty(ServerResponse.prototype, EXCHANGE, { value: undefined, writable: true });
  Object.assign(ServerResponse.prototype, { _storeHeader: storeHeader, _send: send, _writeRaw: writeRaw, _finish: finish });
}

/**
 * What is wrong with an answer's head, or null.
 * @param {number} status @param {string} fields a head block @param {boolean} isUpgrade
 */
export function problemOf(status, fields, isUpgrade) {
  if (!(status >= 200 && status <= 999) && !isUpgrade) return `${status} is no status of an answer`;
  return problemOfFields(fields);
}

/** @param {string} fields a head block */
export function problemOfFields(fields) {
  // The shortest record has two bytes: few are long enough to be counted.
  if (fields.length <= FIELD_COUNT_MAX * 2) return null;
  if (fields.length > HEAD_BLOCK_BYTES_MAX) return `the fields of an answer have more than ${HEAD_BLOCK_BYTES_MAX} bytes`;
  const records = fields.split('\n', FIELD_COUNT_MAX + 2).length - 1;
  return records > FIELD_COUNT_MAX ? `an answer has more than ${FIELD_COUNT_MAX} fields` : null;
}

function send(data, encoding, callback, byteLength) {
  const exchange = this[EXCHANGE];
  if (exchange === undefined) return _send.call(this, data, encoding, callback, byteLength);
  if (exchange.isLost) return false;
  this._headerSent = true;
  return exchange.send(data, encoding, callback);
}

/** Whoever calls this on a branded response writes 1xx: Continue, Processing, Early Hints. */
function writeRaw(data, encoding, callback, size) {
  const exchange = this[EXCHANGE];
  if (exchange === undefined) return _writeRaw.call(this, data, encoding, callback, size);
  if (exchange.isLost) return false;
  const head = parseHead(String(data).trimEnd());
  if (head !== null && head.status < 200 && head.status !== 101) exchange.informational(head.status, head.fields);
  const done = typeof encoding === 'function' ? encoding : callback;
  if (typeof done === 'function') process.nextTick(done);
  return true;
}

function finish() {
  const exchange = this[EXCHANGE];
  _finish.call(this);
  if (exchange === undefined) return;
  exchange.endAnswer(this._trailer === '' || !exchange.hasTrailers ? '' : trailerBlock(this._trailer));
}

/** The text that `addTrailers` has made, as a head block. */
function trailerBlock(text) {
  return parseHead(`HTTP/1.1 200 OK\r\n${text.trimEnd()}`)?.fields ?? '';
}

/**
 * As `_storeHeader` of `_http_outgoing.js`, for a frame: the fields in the application's spelling, without what is
 * the server's to say (Date, Connection, framing), and the same decisions about the body's framing.
 */
function storeHeader(firstLine, headers) {
  const exchange = this[EXCHANGE];
  if (exchange === undefined) {
    _storeHeader.call(this, firstLine, headers);
    return;
  }
  const seen = { length: -1, isChunked: false, hasCoding: false, hasTrailer: false, fields: '' };
  if (headers) addAll(this, seen, headers);
  let isChunked = seen.isChunked && this.statusCode !== 204 && this.statusCode !== 304;
  let { length } = seen;
  if (length < 0 && !seen.hasCoding) {
    if (!this._hasBody) isChunked = false;
    else if (!seen.hasTrailer && !this._removedContLen && typeof this._contentLength === 'number') length = this._contentLength;
    else if (this.useChunkedEncodingByDefault && !this._removedTE) isChunked = true;
  }
  if (!isChunked && seen.hasTrailer) throw trailerError(this);
  // Chunks are made by the server: for Node's `write` and `end` there are none.
  this.chunkedEncoding = false;
  this._header = `${firstLine}\r\n`;
  this._headerSent = false;
  exchange.hasTrailers = isChunked;
  exchange.storeHead(this.statusCode, seen.fields, isChunked ? -1 : length, isChunked || length < 0);
}

/** Node's own error, with its code and text. */
function trailerError(response) {
  response.chunkedEncoding = false;
  try {
    _storeHeader.call(response, '', ['Trailer', 'x', 'Content-Length', '0']);
  } catch (error) {
    return error;
  }
  return new Error('Trailers are invalid with this transfer encoding');
}

function addAll(response, seen, headers) {
  if (headers === response[outHeaders]) {
    for (const key in headers) add(response, seen, headers[key][0], headers[key][1], false);
  } else if (!Array.isArray(headers)) {
    for (const key in headers) if (Object.hasOwn(headers, key)) add(response, seen, key, headers[key], true);
  } else if (headers.length > 0 && Array.isArray(headers[0])) {
    for (const [name, value] of headers) add(response, seen, name, value, true);
  } else {
    if (headers.length % 2 !== 0) _storeHeader.call(response, '', headers);
    for (let at = 0; at < headers.length; at += 2) add(response, seen, headers[at], headers[at + 1], true);
  }
}

function add(response, seen, name, value, validates) {
  if (validates) validateHeaderName(name);
  if (response._contentLength && name.length === 19 && name.toLowerCase() === 'content-disposition') {
    value = Array.isArray(value) ? value.map(asDisposition) : asDisposition(value);
  }
  if (Array.isArray(value)) {
    const isJoined = value.length > 1 && name.length === 6 && name.toLowerCase() === 'cookie';
    if (!isJoined && !response[uniqueHeaders]?.has(name.toLowerCase())) {
      for (const one of value) addOne(response, seen, name, one, validates);
      return;
    }
    value = value.join('; ');
  }
  addOne(response, seen, name, value, validates);
}

/** Node takes the bytes of the value for UTF-8 here (RFC 6266 section 4.3). */
function asDisposition(value) {
  return Buffer.from(value, 'latin1').toString().replace(NOT_IN_VALUES, '?');
}

/**
 * The fields as they are sent: Node writes the head together with a first piece that is a text in UTF-8, and then in
 * that encoding; else in Latin-1, of which a character that is none has its low byte.
 * @param {string} fields @param {boolean} isUtf8
 */
export function encoded(fields, isUtf8) {
  // All of it is ASCII; the quickest way to know.
  if (Buffer.byteLength(fields) === fields.length) return fields;
  if (isUtf8) return Buffer.from(fields).latin1Slice();
  return fields.replace(ABOVE_LATIN1, (character) => {
    const low = String.fromCharCode(character.charCodeAt(0) & 0xff);
    return low.replace(NOT_IN_VALUES, '?');
  });
}

function addOne(response, seen, name, value, validates) {
  if (validates) validateHeaderValue(name, value);
  if (name.length >= 4 && name.length <= 17 && isSpecial(response, seen, name.toLowerCase(), value)) return;
  seen.fields += `${name}:${value}\n`;
}

/** Whether the field is the server's to send. As `matchHeader` of `_http_outgoing.js`. */
function isSpecial(response, seen, name, value) {
  switch (name) {
    case 'connection':
      response._removedConnection = false;
      if (CLOSE.test(value)) response._last = true;
      else response.shouldKeepAlive = true;
      return true;
    case 'transfer-encoding':
      seen.hasCoding = true;
      response._removedTE = false;
      if (CHUNKED.test(value)) seen.isChunked = true;
      return true;
    case 'content-length':
      response._contentLength = +value;
      response._removedContLen = false;
      seen.length = response._contentLength;
      return true;
    case 'keep-alive':
      response._defaultKeepAlive = false;
      return true;
    case 'trailer':
      seen.hasTrailer = true;
      return false;
    default:
      return false;
  }
}
