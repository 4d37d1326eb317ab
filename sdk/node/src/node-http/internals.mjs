/**
 * What Node's http module keeps under symbols of its own and this library needs: found once by the names that they
 * have in Node 20 to 24. A Node that has others is found out here and by the self-test, before any request.
 */
import { http } from './node-modules.mjs';

/** A Node that this library does not know well enough to drive. */
export class UnknownNode extends Error {
  name = 'UnknownNode';
}

/**
 * @typedef {object} Internals
 * @property {symbol} request the server's class of requests
 * @property {symbol} response the server's class of responses
 * @property {symbol} uniqueHeaders fields that are joined, of a server and of a response
 * @property {symbol} outHeaders the fields that a response has been given
 * @property {symbol} needDrain whether a response owes its writer a 'drain'
 * @property {symbol|null} detachSignal ends what `request.signal` listens to; Node 24
 * @property {Function|null} nothing what `_send` is given where nobody wants to be called
 */

/** @type {Internals|null} */
let found = null;

/** @returns {Internals} */
export function internals() {
  found ??= find();
  return found;
}

function find() {
  const server = http.createServer();
  const response = new http.ServerResponse({ method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1, headers: {} });
  return {
    request: symbolOf(server, 'IncomingMessage'),
    response: symbolOf(server, 'ServerResponse'),
    uniqueHeaders: symbolOf(server, 'kUniqueHeaders'),
    outHeaders: symbolOf(response, 'kOutHeaders'),
    needDrain: symbolOf(response, 'kNeedDrain'),
    detachSignal: optional(http.IncomingMessage.prototype, 'kDetachAbortSignal'),
    nothing: nothingOf(response),
  };
}

function nothingOf(response) {
  let nothing = null;
  response._send = (_data, _encoding, callback) => {
    nothing = callback;
    return true;
  };
  response.write('x');
  return nothing;
}

function symbolOf(object, name) {
  const symbol = optional(object, name);
  if (symbol === null) throw new UnknownNode(`http keeps nothing under the name ${name}`);
  return symbol;
}

function optional(object, name) {
  return Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === name) ?? null;
}
