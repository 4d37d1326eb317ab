/**
 * How a request is taken leave of: after its answer (`resOnFinish` of Node's `_http_server.js`), or when its
 * connection is gone (`socketOnClose`). Everything here happens in a tick of its own, in the async context of
 * whoever caused it.
 */
import { isolated } from '../isolate.mjs';
import { internals } from './internals.mjs';

const { needDrain, detachSignal } = internals();

/** What was written is sent: says so to who wants to know. */
export function tellSoon(exchange) {
  if (exchange.isToldSoon) return;
  exchange.isToldSoon = true;
  process.nextTick(tell, exchange);
}

/** The answer is sent as a whole. */
export function leaveSoon(exchange) {
  process.nextTick(leave, exchange);
}

/**
 * The connection is gone, or the application has closed it: nothing more will be sent or come.
 * Node's socket closes in a later turn of the loop, too.
 * @param {Error|null} error the application's
 */
export function connectionLost(exchange, error) {
  const { socket } = exchange;
  if (exchange.isLost || socket === null) return;
  exchange.isLost = true;
  if (exchange.response === null) {
    socket.destroy(error ?? undefined);
    isolated(release, null, exchange);
    return;
  }
  markDestroyed(socket);
  isolated(setImmediate, null, closeConnection, exchange, error);
}

function tell(exchange) {
  exchange.isToldSoon = false;
  const { response, socket } = exchange;
  callBack(exchange);
  if (exchange.waiting > 0) return;
  const { owesDrain } = exchange;
  exchange.owesDrain = false;
  // Of upgraded sockets their stream says it.
  if (response === null) return;
  if (owesDrain) socket.emit('drain');
  if (response.finished || !response[needDrain]) return;
  response[needDrain] = false;
  response.emit('drain');
}

function callBack(exchange) {
  const { callbacks } = exchange;
  if (callbacks === null) return;
  exchange.callbacks = null;
  for (const callback of callbacks) callback();
}

function leave(exchange) {
  if (exchange.hasLeft) return;
  exchange.hasLeft = true;
  const { request, response, socket, endCallback } = exchange;
  exchange.endCallback = null;
  try {
    callBack(exchange);
    // Where the answer was written by hand there is no response that finishes.
    if (response === null || !response.finished) return;
    // What Node's own listener to 'finish' does, which is the first one.
    if (detachSignal !== null) request[detachSignal]();
    if (exchange.over && !request.complete) dropRest(request);
    if (!request._consuming && !request._readableState.resumeScheduled && !request.destroyed) dump(request);
    detach(response, socket);
    if (socket.timeout) socket.setTimeout(0);
    endCallback?.();
  } finally {
    if (response === null) {
      socket.destroy();
      release(exchange);
    } else {
      process.nextTick(close, exchange);
    }
  }
}

/**
 * What is missing of the body is not wanted any more: who only listens hears its end. Who would read it hears that it
 * is not whole (Node lets such a reader wait for ever).
 */
export function dropRest(request) {
  if (isBeingRead(request)) {
    request.destroy(connectionReset());
    return;
  }
  request.complete = true;
  if (!request.destroyed) request.push(null);
}

/** Whether somebody has begun to read the body, by whatever means a stream has. */
export function isBeingRead(request) {
  const { readableListening, resumeScheduled } = request._readableState;
  return request._consuming || request.readableFlowing !== null || readableListening || resumeScheduled;
}

/**
 * Nobody has read the body, and what is left of it is thrown away. Where nobody listens either, the stream is only
 * marked as what it would be afterwards (Node's own `_dumpAndCloseReadable`): its events cost more than the rest.
 */
function dump(request) {
  const state = request._readableState;
  if (request._eventsCount > 0 || state.length > 0) {
    request._dump();
    return;
  }
  request._dumped = true;
  state.ended = true;
  state.endEmitted = true;
  state.destroyed = true;
  state.closed = true;
  state.closeEmitted = true;
}

function detach(response, socket) {
  socket._httpMessage = null;
  response.socket = null;
}

function close(exchange) {
  try {
    closeResponse(exchange.response);
  } finally {
    // Its request may still be read.
    if (exchange.over) conclude(exchange);
  }
}

/**
 * Nothing of it is left. The connection itself may go on with another request, which is no business of this one's
 * socket.
 */
export function conclude(exchange) {
  const { socket } = exchange;
  try {
    if (socket._eventsCount === 0 || exchange.isLost) return;
    exchange.isLost = true;
    markDestroyed(socket);
    socket._closed = true;
    socket.emit('close', false);
  } finally {
    release(exchange);
  }
}

/** Whoever has gone is waited for by no timer. */
function markDestroyed(socket) {
  if (socket.timeout) socket.setTimeout(0);
  socket.destroyed = true;
}

function closeResponse(response) {
  if (response._closed) return;
  response.destroyed = true;
  response._closed = true;
  response.emit('close');
}

function closeConnection(exchange, error) {
  const { request, response, socket } = exchange;
  socket._closed = true;
  socket._hadError = error !== null;
  socket.errored = error;
  try {
    // After its answer a request may still have been read: Node would leave its reader waiting.
    if (!exchange.hasLeft || !request.complete) request.destroy(connectionReset());
    refuseCallbacks(exchange);
    closeResponse(response);
    if (error !== null && socket.listenerCount('error') > 0) socket.emit('error', error);
    socket.emit('close', error !== null);
  } finally {
    exchange.hasLeft = true;
    release(exchange);
  }
}

function refuseCallbacks(exchange) {
  const { callbacks, endCallback } = exchange;
  exchange.callbacks = null;
  exchange.endCallback = null;
  for (const callback of callbacks ?? []) process.nextTick(callback, streamDestroyed());
  // Node 24's takes an error. Older ones' would say that the answer is finished.
  if (endCallback !== null && endCallback.length > 0) process.nextTick(endCallback, streamDestroyed());
}

/** The server may be waiting for this one to be able to close. */
function release(exchange) {
  const { server } = exchange;
  if (server === null) return;
  exchange.server = null;
  server._connections -= 1;
  if (!server._handle) server._emitCloseIfDrained();
}

function connectionReset() {
  return Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
}

function streamDestroyed() {
  return Object.assign(new Error('Cannot call write after a stream was destroyed'), { code: 'ERR_STREAM_DESTROYED' });
}
