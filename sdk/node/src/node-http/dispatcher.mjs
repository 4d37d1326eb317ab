/**
 * Gives each request to the application's http.Server as Node itself would: `parserOnIncoming` of `_http_server.js`
 * is what this follows, step by step. The server's own classes of requests and responses are used, and its events.
 */
import { channel } from 'node:diagnostics_channel';
import { http } from './node-modules.mjs';
import { FACT } from '../fetch/head.mjs';
import { isolatedWith } from '../isolate.mjs';
import { ClientSocket } from './client-socket.mjs';
import { guarded } from './exchange.mjs';
import { internals } from './internals.mjs';
import { fill } from './request.mjs';
import { EXCHANGE, install } from './response.mjs';
import { UpgradeSocket } from './upgrade-socket.mjs';

const begun = channel('http.server.request.start');
const answered = channel('http.server.response.finish');
const EMPTY = Buffer.alloc(0);
/** What Node's parser takes; all else it refuses with 400. Methods are case-sensitive (RFC 9110 section 9.1). */
const METHODS = new Set(http.METHODS);

/**
 * @param {http.Server} server the application's
 * @returns {{call(exchange: import('./exchange.mjs').NodeExchange): void, closeAll(): void}}
 */
export function dispatcher(server) {
  install();
  let lanes = [];
  return {
    call(exchange) {
      lanes = exchange.lane.runtime.lanes;
      isolatedWith(exchange, guarded, null, dispatch, server, exchange);
    },
    closeAll() {
      for (const lane of lanes) for (const exchange of lane.live()) exchange.socket?.destroy();
    },
  };
}

function dispatch(server, exchange) {
  const { request: Request, response: Response, uniqueHeaders } = internals();
  const asksForUpgrade = (exchange.head.charCodeAt(1) & FACT.upgrade) !== 0;
  let socket = new ClientSocket(exchange, server);
  const request = new server[Request](socket);
  exchange.server = server;
  exchange.request = request;
  server._connections += 1;
  request.joinDuplicateHeaders = server.joinDuplicateHeaders ?? false;
  fill(request, exchange.head, server.maxHeadersCount);
  const isKnown = METHODS.has(request.method);
  request.upgrade = asksForUpgrade && isKnown && wantsUpgrade(server, request);
  if (request.upgrade) {
    socket = new UpgradeSocket(exchange, server);
    request.socket = socket;
    request.client = socket;
  }
  exchange.socket = socket;
  tellOfConnection(server, socket);
  if (request.upgrade) {
    server.emit('upgrade', request, socket, EMPTY);
    exchange.deliver();
    return;
  }
  if (server.timeout) socket.setTimeout(server.timeout);
  const response = new server[Response](request, {
    highWaterMark: socket.writableHighWaterMark,
    rejectNonStandardBodyWrites: server.rejectNonStandardBodyWrites,
  });
  response[EXCHANGE] = exchange;
  exchange.response = response;
  response._keepAliveTimeout = server.keepAliveTimeout;
  response[uniqueHeaders] = server[uniqueHeaders];
  socket._httpMessage = response;
  response.socket = socket;
  if (!isKnown) {
    response.writeHead(400).end();
    exchange.deliver();
    return;
  }
  // As with Node's own, this listener to 'finish' is the first.
  if (answered.hasSubscribers && exchange.isPublished) {
    response.on('finish', () => answered.publish({ request, response, socket, server }));
  }
  if (begun.hasSubscribers && exchange.isPublished) begun.publish({ request, response, socket, server });
  try {
    if (asksForContinue(exchange)) emitExpecting(server, request, response);
    else server.emit('request', request, response);
  } finally {
    exchange.deliver();
  }
}

/** Node 24 asks the server; before, whoever listens gets it. */
function wantsUpgrade(server, request) {
  if (typeof server.shouldUpgradeCallback === 'function') return Boolean(server.shouldUpgradeCallback(request));
  return server.listenerCount('upgrade') > 0;
}

/** Each request has a socket of its own: those who count connections count these. */
function tellOfConnection(server, socket) {
  if (server.listenerCount('connection') < 2) return;
  for (const listener of server.rawListeners('connection')) {
    if (listener !== http._connectionListener) Reflect.apply(listener, server, [socket]);
  }
}

/** The server takes no other expectation, and refuses a request of HTTP/1.1 without a Host before it comes here. */
function asksForContinue(exchange) {
  return (exchange.head.charCodeAt(1) & FACT.expects) !== 0;
}

function emitExpecting(server, request, response) {
  response._expect_continue = true;
  if (server.listenerCount('checkContinue') > 0) {
    server.emit('checkContinue', request, response);
    return;
  }
  response.writeContinue();
  server.emit('request', request, response);
}
