/**
 * The handle of an adopted server: it looks to Node's own code like one that listens, and holds no socket that
 * anybody could connect to. Everything above it (`listening`, `address`, `close`, 'listening') stays Node's.
 */
import net from 'node:net';

/** Where a server said that it listens. */
export class Place {
  /**
   * @param {string|null} address an IP address, or the path of a Unix socket
   * @param {number|null} port -1 for a Unix socket or a handle
   * @param {number|undefined} fd
   * @param {object|null} handle what the server was given to listen on
   */
  constructor(address, port, fd, handle) {
    this.path = typeof address === 'string' && port === -1 ? address : null;
    this.port = this.path === null && port > 0 ? port : null;
    this.host = this.path === null ? address : null;
    this.reservation = null;
    if (this.path !== null) return;
    const own = handle ?? (typeof fd === 'number' ? openDescriptor(fd) : null);
    this.bound = own === null ? this.#reserve() : nameOf(own);
    this.port = this.bound.port ?? null;
  }

  /** Whether another server means the same door. */
  equals(address, port) {
    if (this.path !== null) return port === -1 && address === this.path;
    return this.port !== null && port === this.port;
  }

  toString() {
    if (this.path !== null) return this.path;
    return this.port === null ? 'a socket of its own' : `port ${this.port}`;
  }

  /** What Node would say that the server is bound to. Port 0 is a port that nobody else gets, bound without listening. */
  #reserve() {
    const [address, family] = this.host ? [this.host, this.host.includes(':') ? 'IPv6' : 'IPv4'] : unspecified();
    if (this.port !== null) return { address, family, port: this.port };
    if (process.versions.bun) return { address, family, port: 0 };
    const handle = net._createServerHandle(address, 0, family === 'IPv6' ? 6 : 4);
    if (typeof handle === 'number') return { address, family, port: 0 };
    this.reservation = handle;
    return nameOf(handle);
  }
}

export class StandIn {
  #referenced = true;
  #open = true;
  #closed;

  /** @param {Place} place @param {() => void} closed the application closes its server */
  constructor(place, closed) {
    this.place = place;
    this.#closed = closed;
    // Node takes the path of a Unix socket from the server where its handle has no such method.
    if (place.path === null) {
      this.getsockname = (out) => {
        Object.assign(out, place.bound);
        return 0;
      };
    }
  }

  listen() {
    return 0;
  }

  close(called) {
    if (this.#open) {
      this.#open = false;
      this.place.reservation?.close();
      this.#closed();
    }
    if (typeof called === 'function') setImmediate(called);
  }

  fchmod() {
    return 0;
  }

  ref() {
    this.#referenced = true;
  }

  unref() {
    this.#referenced = false;
  }

  hasRef() {
    return this.#referenced;
  }
}

let unspecifiedAddress = null;

/** Node listens on IPv6 where there is any. */
function unspecified() {
  if (unspecifiedAddress === null) {
    const probe = process.versions.bun ? -1 : net._createServerHandle('::', 0, 6);
    if (typeof probe === 'number') {
      unspecifiedAddress = ['0.0.0.0', 'IPv4'];
    } else {
      probe.close();
      unspecifiedAddress = ['::', 'IPv6'];
    }
  }
  return unspecifiedAddress;
}

function openDescriptor(fd) {
  const handle = net._createServerHandle(null, -1, -1, fd);
  return typeof handle === 'number' ? null : handle;
}

function nameOf(handle) {
  const name = {};
  handle.getsockname?.(name);
  return name;
}
