/**
 * Which of the process's servers is the application's own, and what happens to the others. Node calls `_listen2` for
 * every form of `listen` once names are looked up: there a server gets a stand-in for its handle, or really listens.
 * It never carries a request.
 */
import { http } from './node-modules.mjs';
import net from 'node:net';
import { describePlace } from './describe.mjs';
import { listenForReal } from './listen.mjs';
import { Place, StandIn } from './stand-in.mjs';

/** A server on another port than PORT is taken for the application's when none listens on PORT for so long. */
const OTHER_PORT_MILLISECONDS = 3_000;

export class Adoption {
  /** The application's server. @type {http.Server|null} */
  server = null;
  /** @type {Place|null} */
  place = null;
  /** What else listens: 'http', 'https', 'http2'. @type {{kind: string, where: string}[]} */
  others = [];
  /** Destroys what the adopted server has instead of connections; set where it has. @type {() => void} */
  closeAll = () => {};
  #expected;
  #isNamed;
  #listener;
  #listen2 = net.Server.prototype._listen2;
  /** The first server on a port that was not expected. */
  #second = null;
  #timer = null;
  /** What `_listen2` was called with, for a server that is set free. */
  #given = null;
  /** Servers that were told to listen before the application's own modules ran. */
  #early = new WeakSet();
  #noting = null;
  #decided = false;
  #released = false;
  #isClosed = false;

  /**
   * @param {{port: number|null, portIsNamed: boolean}} settings
   * @param {{adopted(server: http.Server): void, closed(): void}} listener adopted: it says that it listens; closed:
   * the application has closed it after that was decided
   */
  constructor({ port, portIsNamed }, listener) {
    this.#expected = port;
    this.#isNamed = portIsNamed;
    this.#listener = listener;
  }

  install() {
    const adoption = this;
    net.Server.prototype._listen2 = function _listen2(...given) {
      const kind = kindOf(this);
      if (kind === 'http') adoption.#listens(this, given);
      else if (kind === null) adoption.#listen2.apply(this, given);
      else adoption.#other(kind, this, given);
    };
    const { listen } = net.Server.prototype;
    this.#noting = http.Server.prototype.listen = function (...given) {
      if (adoption.#noting !== null) adoption.#early.add(this);
      return Reflect.apply(listen, this, given);
    };
    const { closeAllConnections } = http.Server.prototype;
    http.Server.prototype.closeAllConnections = function () {
      Reflect.apply(closeAllConnections, this, []);
      if (this === adoption.server) adoption.closeAll();
    };
  }

  /** The application's own modules are run from here on. */
  begin() {
    // Unless somebody has wrapped it.
    if (http.Server.prototype.listen === this.#noting) delete http.Server.prototype.listen;
    this.#noting = null;
  }

  /** From now on the adopted server stays what it is. */
  decide() {
    this.#decided = true;
    this.#forget();
  }

  /** The application is called in another way: its servers are servers beside it, and really listen. */
  release() {
    this.decide();
    this.#released = true;
    const { server } = this;
    this.server = null;
    if (server === null || !(server._handle instanceof StandIn)) return;
    const given = this.#given;
    server._handle.place.reservation?.close();
    server._handle = null;
    listenForReal(server, silently(this.#listen2), given);
  }

  /** Adopts a server that the application has made, and that nobody told to listen. @param {http.Server} server */
  take(server) {
    const port = this.#expected ?? 0;
    this.#expected = null;
    server.listen(port);
  }

  #listens(server, given) {
    const [address, port, , , fd] = given;
    if (this.#released) {
      this.#other('http', server, given);
    } else if (this.server !== null) {
      if (this.place.equals(address, port)) this.#alias(server, given);
      else this.#other('http', server, given);
    } else if (port === this.#expected || (this.#expected === null && !this.#early.has(server))) {
      this.#adopt(server, given, new Place(address, port, fd, server._handle ?? null));
    } else {
      this.#other('http', server, given);
      this.#expect(server, given);
    }
  }

  #adopt(server, given, place) {
    this.server = server;
    this.place = place;
    this.#given = given;
    this.#forget();
    this.#standIn(server, place, () => this.#closed(server));
    server.once('listening', () => {
      if (this.server === server) this.#listener.adopted(server);
    });
    this.#listen2.apply(server, given);
  }

  #standIn(server, place, closed) {
    server._handle = new StandIn(place, closed);
  }

  /** Another server for the same door (some frameworks listen on 127.0.0.1 and ::1): requests come to the first. */
  #alias(server, given) {
    const [address, port, , , fd] = given;
    if (this.#isClosed) {
      process.stderr.write(
        'onehop: the application has closed its server and listens again: requests go to other workers now\n',
      );
    }
    this.#standIn(server, new Place(address, port, fd, server._handle ?? null), () => {});
    this.#listen2.apply(server, given);
  }

  #closed(server) {
    if (this.server !== server) return;
    if (this.#decided) {
      this.#isClosed = true;
      this.#listener.closed();
    } else {
      // It only looked whether the port is free, as it seems: the next one may be the application's.
      this.server = null;
      this.place = null;
    }
  }

  #other(kind, server, given) {
    this.others.push({ kind, where: describePlace(given[0], given[1]) });
    listenForReal(server, this.#listen2, given);
  }

  /** `server` listens, and may prove to be the one that is meant. */
  #expect(server, given) {
    if (this.#isNamed || this.#second !== null || this.#early.has(server)) return;
    this.#second = server;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#second !== server || this.server !== null || this.#decided) return;
      this.#second = null;
      if (!server.listening) return;
      this.#adoptLate(server, given);
    }, OTHER_PORT_MILLISECONDS);
  }

  #adoptLate(server, given) {
    const where = describePlace(given[0], given[1]);
    process.stderr.write(
      `onehop: PORT is ${this.#expected}, but the application listens on ${where}: that is its server then. With `
        + '`port` in the Onehopfile it would not have to be waited for\n',
    );
    this.others = this.others.filter((other) => other.where !== where);
    const real = server._handle;
    const place = new Place(given[0], given[1], given[4], real);
    this.server = server;
    this.place = place;
    this.#given = given;
    real.close();
    this.#standIn(server, place, () => this.#closed(server));
    this.#listener.adopted(server);
  }

  #forget() {
    this.#second = null;
    clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Servers of HTTP are told from all others, of which nothing is asked. */
function kindOf(server) {
  if (server instanceof http.Server) return 'http';
  if (/^Http2(Secure)?Server$/.test(server.constructor?.name)) return 'http2';
  // What only servers of HTTP have, on one that is none of node:http.
  return typeof server.headersTimeout === 'number' && typeof server.setTimeout === 'function' ? 'https' : null;
}

/** `listen2` for a server that has already said that it listens. */
function silently(listen2) {
  return function _listen2(...given) {
    const { emit } = this;
    const own = Object.hasOwn(this, 'emit');
    this.emit = function (name, ...rest) {
      if (name !== 'listening') return emit.call(this, name, ...rest);
      if (own) this.emit = emit;
      else delete this.emit;
      return true;
    };
    listen2.apply(this, given);
  };
}
