/**
 * Which server is the application's, under Bun: its http.Server cannot be given a handle, so that `listen` itself
 * waits until it is decided where the server really listens. The same questions as `adopt.mjs`, with what Bun has.
 */
import { http } from './node-modules.mjs';
import { describePlace } from './describe.mjs';
import { Place } from './stand-in.mjs';

/** As in `adopt.mjs`. */
const OTHER_PORT_MILLISECONDS = 3_000;

export class BunAdoption {
  /** @type {http.Server|null} */
  server = null;
  /** @type {Place|null} */
  place = null;
  others = [];
  closeAll = () => {};
  #expected;
  #isNamed;
  #listener;
  #given = null;
  #isReleased = false;
  #isDecided = false;
  /** On another port than PORT: kept back until it is known whether it is the one. */
  #first = null;
  #node = {
    listen: http.Server.prototype.listen,
    close: http.Server.prototype.close,
    address: http.Server.prototype.address,
    listening: Object.getOwnPropertyDescriptor(http.Server.prototype, 'listening')?.get,
  };

  constructor({ port, portIsNamed }, listener) {
    this.#expected = port;
    this.#isNamed = portIsNamed;
    this.#listener = listener;
  }

  install() {
    const adoption = this;
    const { listen, close, address, listening } = this.#node;
    const { prototype } = http.Server;
    prototype.listen = function (...given) {
      return adoption.#listens(this, given) ? this : Reflect.apply(listen, this, given);
    };
    prototype.close = function (...given) {
      if (this === adoption.server) adoption.#closes();
      return Reflect.apply(close, this, given);
    };
    prototype.address = function () {
      if (this !== adoption.server) return Reflect.apply(address, this, []);
      return adoption.place.path ?? adoption.place.bound;
    };
    if (listening === undefined) return;
    Object.defineProperty(prototype, 'listening', {
      configurable: true,
      get() {
        return this === adoption.server || Reflect.apply(listening, this, []);
      },
    });
  }

  begin() {}

  decide() {
    this.#isDecided = true;
  }

  release() {
    this.#isReleased = true;
    const { server } = this;
    this.server = null;
    if (server !== null) Reflect.apply(this.#node.listen, server, this.#given);
  }

  take(server) {
    const port = this.#expected ?? 0;
    this.#expected = null;
    server.listen(port);
  }

  /** The adopted server really listens there. @param {string} path */
  listenOn(path) {
    const { server } = this;
    const called = this.#given.at(-1);
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      if (typeof called === 'function') server.once('listening', called);
      server.once('listening', () => {
        server.removeListener('error', reject);
        resolve();
      });
      Reflect.apply(this.#node.listen, server, [{ path }]);
    });
  }

  /** Whether the server is kept from listening itself. */
  #listens(server, given) {
    const [address, port] = placeOf(given);
    if (this.#isReleased || isSecure(server)) return this.#other(server, address, port);
    if (this.server !== null) {
      if (server === this.server || !this.place.equals(address, port)) return this.#other(server, address, port);
      const called = given.at(-1);
      if (typeof called === 'function') server.once('listening', called);
      process.nextTick(() => server.emit('listening'));
      return true;
    }
    if (this.#expected !== null && port !== this.#expected) {
      if (this.#isNamed) return this.#other(server, address, port);
      this.#expectedIn(OTHER_PORT_MILLISECONDS);
    }
    // Only where PORT names no other is it certain; the first one is kept until then.
    if (this.#expected === null || port === this.#expected) {
      this.#adopt(server, given, new Place(address, port, undefined, null));
      return true;
    }
    this.#first ??= { server, given };
    return this.#first.server === server || this.#other(server, address, port);
  }

  #expectedIn(milliseconds) {
    if (this.#first !== null) return;
    setTimeout(() => {
      const first = this.#first;
      if (first === null || this.server !== null || this.#isReleased) return;
      const [address, port] = placeOf(first.given);
      process.stderr.write(
        `onehop: PORT is ${this.#expected}, but the application listens on ${describePlace(address, port)}: that is its `
          + 'server then. With `port` in the Onehopfile it would not have to be waited for\n',
      );
      this.#first = null;
      this.#adopt(first.server, first.given, new Place(address, port, undefined, null));
    }, milliseconds);
  }

  #adopt(server, given, place) {
    this.server = server;
    this.place = place;
    this.#given = given;
    const first = this.#first;
    this.#first = null;
    // It was kept back in vain.
    if (first !== null) Reflect.apply(this.#node.listen, first.server, first.given);
    setImmediate(() => {
      if (this.server === server) this.#listener.adopted(server);
    });
  }

  #closes() {
    if (this.#isDecided) {
      this.#listener.closed();
      return;
    }
    this.server = null;
    this.place = null;
  }

  #other(server, address, port) {
    this.others.push({ kind: isSecure(server) ? 'https' : 'http', where: describePlace(address, port) });
    return false;
  }
}

function placeOf([first, second]) {
  if (first !== null && typeof first === 'object') {
    if (typeof first.path === 'string') return [first.path, -1];
    return [first.host ?? null, Number(first.port ?? 0)];
  }
  if (typeof first === 'string' && !(Number(first) >= 0)) return [first, -1];
  return [typeof second === 'string' ? second : null, typeof first === 'function' ? 0 : Number(first ?? 0)];
}

function isSecure(server) {
  const symbol = Object.getOwnPropertySymbols(server).find(({ description }) => description === 'tls');
  return symbol !== undefined && Boolean(server[symbol]);
}
