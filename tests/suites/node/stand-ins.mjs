/**
 * Test support: makes every http.Server of a suite one that onehop serves, where the product serves one for each worker.
 * The runner's own server is the one that the library adopts; each of the suite's gets a handle that listens nowhere and
 * a dispatcher of the library's own. Connections of this process to such a server are led to onehop's address, from
 * where the requests come as frames. Nothing of the library is changed but where a request goes when it arrives.
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';

/** For how many connections it is remembered which server they meant. */
const CONNECTIONS_MAX = 20_000;
const LOCAL_HOST = /^(localhost|127\.\d+\.\d+\.\d+|::1|::|0\.0\.0\.0|::ffff:127\.0\.0\.1|\[::1?\])$/;

/** Servers of the suite that listen, by port or path. @type {Map<number|string, http.Server>} */
const open = new Map();
/** What a connection meant, by the client's port. @type {Map<number, {server: http.Server, place: number|string}>} */
const meant = new Map();
/** The library's queue and dispatcher of each server. @type {WeakMap<http.Server, {arrived(exchange: any): void}>} */
const queues = new WeakMap();

/** @param {{port: number}} onehop where it listens */
export async function install({ port }) {
  const library = libraryUrl();
  const part = (name) => import(new URL(name, library).href);
  const anchor = http.createServer((_request, response) => response.writeHead(421).end('no server of the suite is meant'));
  await new Promise((resolve) => anchor.listen(0, resolve));
  await answered(port);
  const [{ Runtime }, { dispatcher }, { NodeExchange }, { Place, StandIn }] = await Promise.all([
    part('runtime.mjs'), part('node-http/dispatcher.mjs'), part('node-http/exchange.mjs'), part('node-http/stand-in.mjs'),
  ]);
  leadRequests(Runtime, (server) => new Runtime(NodeExchange, dispatcher(server).call, 64));
  standIn(Place, StandIn);
  leadConnections(port);
}

/** The preload that this process was started with. */
function libraryUrl() {
  const words = readFileSync('/proc/self/cmdline', 'utf8').split('\0');
  const preload = words.find((word) => /\/(preload|worker)\.mjs$/.test(word));
  if (preload === undefined) throw new Error(`not a worker: ${words.join(' ')}`);
  return preload.startsWith('file:') ? preload : new URL(preload, 'file:///').href;
}

/** Waits until onehop has this worker's READY: then the library's lanes are there. */
async function answered(port) {
  for (;;) {
    const status = await new Promise((resolve) => {
      const request = http.get({ port, host: '127.0.0.1', agent: false }, (response) => resolve(response.resume().statusCode));
      request.on('error', () => resolve(0));
    });
    if (status === 421) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Requests that meant a server of the suite do not go to the adopted one. */
function leadRequests(Runtime, queueOf) {
  const { arrived } = Runtime.prototype;
  Runtime.prototype.arrived = function (exchange) {
    const server = this === exchange.lane.runtime ? serverOf(exchange) : null;
    if (server === null) {
      arrived.call(this, exchange);
      return;
    }
    // The lane tells its own runtime when an exchange is over.
    this.inFlight += 1;
    this.begun += 1;
    if (!queues.has(server)) queues.set(server, queueOf(server));
    const queue = queues.get(server);
    arrived.call(queue, exchange);
  };
}

function serverOf({ head }) {
  const port = head.charCodeAt(4) | head.charCodeAt(5) << 8;
  const known = meant.get(port);
  // Clients keep connections for the next server with the same port too, since onehop does not close them.
  if (known) return known.server.listening ? known.server : open.get(known.place) ?? known.server;
  const host = /\n(?:Host:|\x98|\xd8)[^\n]*:(\d+)\n/i.exec(head);
  return open.get(Number(host?.[1])) ?? [...open.values()].at(-1) ?? null;
}

function standIn(Place, StandIn) {
  const { _listen2: listen } = net.Server.prototype;
  net.Server.prototype._listen2 = function _listen2(...given) {
    if (this instanceof http.Server) this._handle = handleFor(this, given);
    else if (given[1] > 0) open.delete(given[1]);
    listen.apply(this, given);
  };

  function handleFor(server, [address, port, , , fd]) {
    if (isTaken(address, port)) return refusing(os.constants.errno.EADDRINUSE);
    const place = new Place(address, port, fd, server._handle ?? null);
    const key = place.path ?? place.port;
    open.set(key, server);
    return new StandIn(place, () => {
      if (open.get(key) === server) open.delete(key);
    });
  }
}

/** By another server of the suite, or by whoever really listens there. */
function isTaken(address, port) {
  if (port === 0 || port === null) return false;
  if (open.has(port === -1 ? address : port)) return true;
  const handle = net._createServerHandle(address || '::', port, port === -1 ? -1 : address && !address.includes(':') ? 4 : 6);
  if (typeof handle === 'number') return true;
  const taken = handle.listen(1) !== 0;
  handle.close();
  return taken;
}

function refusing(errno) {
  return { listen: () => -errno, close: (called) => called?.(), ref() {}, unref() {}, getsockname: () => 0 };
}

function leadConnections(port) {
  const { connect } = net.Socket.prototype;
  net.Socket.prototype.connect = function (...given) {
    const normalized = Array.isArray(given[0]) ? given[0] : net._normalizeArgs(given);
    const [options, called] = normalized;
    const server = serverAt(options);
    if (server === undefined) return connect.apply(this, given);
    const place = options.path ?? Number(options.port);
    const target = options.path ? { ...options, path: undefined, host: '127.0.0.1', port } : { ...options, port };
    // In front of all others: whatever they write comes behind.
    this.prependOnceListener('connect', () => remember(this.localPort, { server, place }));
    return connect.call(this, net._normalizeArgs([target, called ?? undefined]));
  };
}

function serverAt({ port, path, host = 'localhost' }) {
  if (path) return open.get(path);
  return LOCAL_HOST.test(host) ? open.get(Number(port)) : undefined;
}

function remember(localPort, what) {
  meant.delete(localPort);
  meant.set(localPort, what);
  if (meant.size > CONNECTIONS_MAX) meant.delete(meant.keys().next().value);
}
