// Takes a response apart into what the worker writes: of our own class, of the platform's, or of a library's that
// behaves like it. Owns what counts as a response and the errors for what does not.

import { answerOfBody, usedError } from './answer-body.mjs';
import { blockOf, refuseControls } from './block.mjs';
import { PlatformHeaders, PlatformResponse } from './platform.mjs';
import { answerOf, isFastResponse } from './response.mjs';

/** Responses of the platform whose body went into an answer: it leaves no trace in them where it is not a stream. */
const answered = new WeakSet();

/**
 * What the worker writes for a response. The response's body is used then.
 * @param {any} response what the handler returned
 * @returns {import('./answer-body.mjs').Answer}
 * @throws {TypeError} where it is no response, or one whose body is gone
 */
export function toAnswer(response) {
  return isFastResponse(response) ? answerOf(response) : answerOfOther(response);
}

/** @param {any} response */
function answerOfOther(response) {
  if (!(response instanceof PlatformResponse) && !isLike(response)) throw new TypeError(noResponse(response));
  if (response.type === 'error' || response.status === 0) {
    throw new TypeError('The handler answered with Response.error(), which is no answer that a client can be given.');
  }
  if (answered.has(response) || response.bodyUsed || response.body?.locked) throw usedError();
  const fields = blockOf(response.headers) ?? blockOf(new PlatformHeaders([...response.headers]));
  refuseControls(/** @type {string} */ (fields));
  const answer = answerOfBody(response, /** @type {string} */ (fields));
  if (isForeign(answer.body)) answer.body = ownStream(answer.body);
  if (answer.body !== null) answered.add(response);
  return answer;
}

/**
 * True for responses of libraries with classes of their own: they have all that is read here.
 * @param {any} value
 */
function isLike(value) {
  return (
    typeof value === 'object' && value !== null &&
    Number.isInteger(value.status) && value.status >= 101 && value.status <= 999 &&
    typeof value.headers?.get === 'function' && typeof value.headers[Symbol.iterator] === 'function' &&
    (value.body === null || value.body instanceof ReadableStream || isForeign(value.body))
  );
}

/**
 * True for streams of libraries with classes of their own.
 * @param {any} body
 */
function isForeign(body) {
  return typeof body?.getReader === 'function' && !(body instanceof ReadableStream);
}

/**
 * A stream of the platform over one that only behaves like it.
 * @param {any} foreign
 */
function ownStream(foreign) {
  const reader = foreign.getReader();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read ahead: who sends the answer asks when it has credit.
    { highWaterMark: 0 },
  );
}

/** @param {any} value */
function noResponse(value) {
  const begin = `The handler must return a Response, or a promise of one, but returned ${describe(value)}.`;
  if (value === undefined) return `${begin} Is a "return" or an "await" missing?`;
  if (typeof value === 'string') return `${begin} Use new Response(text).`;
  if (typeof value?.then === 'function') return `${begin} Is an "await" missing?`;
  if (typeof value === 'object' && value !== null) return `${begin} Use Response.json(value) to answer with JSON.`;
  return begin;
}

/** @param {any} value */
function describe(value) {
  if (value === null || value === undefined) return `${value}`;
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (typeof value.then === 'function') return 'a promise of a promise';
  if (Array.isArray(value)) return 'an array';
  const name = value.constructor?.name;
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `an object of class ${name}` : 'an object';
}
