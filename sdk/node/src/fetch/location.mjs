// Builds the absolute URL of a request from scheme, authority and target, as `new URL(..).href` would write it.
// The usual ones are joined; whatever is not plainly in its final form goes through URL.

import { ownText } from './head.mjs';

/** Targets that URL leaves as they are, but for dot segments, which are looked for apart. */
const PLAIN_TARGET = /^\/[\w\-.~!$&()*+,;=:@%/|[\]]*(?:\?[\w\-.~!$&()*+,;=:@%/|[\]?]*)?$/;

/** A dot that is percent-encoded: URL takes it for one where it makes a dot segment. */
const ENCODED_DOT = /%2e/i;

/** Bytes that are no ASCII; they are percent-encoded one by one, since the head is Latin-1 for bytes. */
const NOT_ASCII = /[\x80-\xff]/g;

/** Authorities whose origin is remembered; a server has few, clients may make up many. */
const ORIGINS_MAX = 64;

/** Characters of the longest authority that is remembered: a host of 253 (RFC 1035) and a port. */
const AUTHORITY_CHARACTERS_MAX = 259;

/** @type {Map<string, string>} */
const secure = new Map();
/** @type {Map<string, string>} */
const plain = new Map();

/**
 * The URL of a request.
 * @param {boolean} tls
 * @param {string} authority
 * @param {string} target
 * @returns {string}
 */
export function locate(tls, authority, target) {
  const origins = tls ? secure : plain;
  const origin = origins.get(authority) ?? learn(origins, tls ? 'https://' : 'http://', authority);
  if (PLAIN_TARGET.test(target) && !hasDots(target)) return ownText(origin + target);
  return normalised(origin, target);
}

/** True where there may be a dot segment. @param {string} target */
function hasDots(target) {
  return target.indexOf('/.') >= 0 || (target.indexOf('%2') >= 0 && ENCODED_DOT.test(target));
}

/**
 * @param {string} origin
 * @param {string} target
 */
function normalised(origin, target) {
  const ascii = target.replace(NOT_ASCII, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
  if (ascii.startsWith('/')) return hrefOf(origin + ascii) ?? `${origin}/`;
  // RFC 9112 section 3.2: absolute-form, and '*' of OPTIONS, for which a URL has no form of its own.
  if (/^https?:\/\//i.test(ascii)) return hrefOf(ascii) ?? `${origin}/`;
  return hrefOf(`${origin}/${ascii}`) ?? `${origin}/`;
}

/**
 * @param {Map<string, string>} origins
 * @param {string} scheme
 * @param {string} authority
 */
function learn(origins, scheme, authority) {
  const origin = originOf(scheme, authority);
  if (authority.length > AUTHORITY_CHARACTERS_MAX) return origin;
  if (origins.size >= ORIGINS_MAX) origins.clear();
  origins.set(ownText(authority), ownText(origin));
  return origin;
}

/**
 * @param {string} scheme
 * @param {string} authority
 */
function originOf(scheme, authority) {
  // HTTP/1.0 needs no Host; a URL needs one.
  if (authority === '') return `${scheme}localhost`;
  // User information and the like never pass the server; the name is one that nobody can own (RFC 6761).
  if (/[@/?#\\]/.test(authority)) return `${scheme}unknown.invalid`;
  try {
    const url = new URL(`${scheme}${authority}/`);
    return `${url.protocol}//${url.host}`;
  } catch {
    return `${scheme}unknown.invalid`;
  }
}

/** @param {string} text */
function hrefOf(text) {
  try {
    return new URL(text).href;
  } catch {
    return undefined;
  }
}
