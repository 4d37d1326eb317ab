// The body of an answer: what is known of it without reading it.

import { recordOf } from './names.mjs';
import { sourceOf } from './platform.mjs';

const CONTENT_LENGTH = recordOf('content-length');

/** Digits that a number keeps exactly. */
const LENGTH_TEXT = /^\d{1,15}$/;

/**
 * What the worker writes for a response.
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} fields a head block
 * @property {number} length bytes of the body; -1 if unknown, and for a string, which has its length only once it is
 *   encoded. With `body` null: what Content-Length says, which counts for HEAD and 304 alone, else 0
 * @property {string | Uint8Array | ReadableStream | null} body a string is sent as UTF-8
 * @property {{ path: string, offset: number, length: number } | null} file length -1: the rest
 * @property {Function | null} upgrade
 */

/**
 * The part of an answer that comes from a response of the platform.
 * @param {globalThis.Response} real
 * @param {string} fields
 * @param {number} length bytes of its body where they are known, else -1
 * @returns {Answer}
 */
export function answerOfBody(real, fields, length = -1) {
  const body = sourceOf?.(real) ?? real.body;
  const answer = { status: real.status, fields, length, body, file: null, upgrade: null };
  if (typeof body === 'string') answer.length = -1;
  else if (body instanceof Uint8Array) answer.length = body.byteLength;
  else if (body === null) answer.length = Math.max(declaredLength(fields), 0);
  else if (length < 0) answer.length = declaredLength(fields);
  return answer;
}

/** The error for a response whose body is gone. */
export function usedError() {
  return new TypeError(
    'The handler answered with a Response whose body was used already. ' +
      'Make a new Response for each request, or answer with response.clone().',
  );
}

/**
 * What Content-Length says, -1 where it says nothing that counts.
 * @param {string} fields
 */
export function declaredLength(fields) {
  const at = seek(fields, CONTENT_LENGTH);
  if (at < 0) return -1;
  const text = fields.slice(at + 1, fields.indexOf('\n', at));
  return LENGTH_TEXT.test(text) ? Number(text) : -1;
}

/**
 * Where the record of an interned name begins, -1 where there is none.
 * @param {string} block
 * @param {string} record
 */
export function seek(block, record) {
  let at = block.indexOf(record);
  while (at > 0 && block.charCodeAt(at - 1) !== 10) at = block.indexOf(record, at + 1);
  return at;
}
