/**
 * The other way to an application's own server: HTTP/1.1 on a Unix socket that onehop has named, with the
 * runtime's own parser. For runtimes whose server cannot be driven with frames, and where the Onehopfile says so.
 */
import diagnostics from 'node:diagnostics_channel';
import { openDoor } from './door.mjs';

/**
 * @param {import('./adopt.mjs').Adoption} adoption
 * @param {import('../runtime.mjs').Runtime} runtime told what is in flight
 * @param {string} path
 */
export async function serveOverHttp(adoption, runtime, path) {
  const { server, place } = adoption;
  if (process.versions.bun) {
    countByEvents(server, runtime);
    await adoption.listenOn(path);
    return;
  }
  diagnostics.subscribe('http.server.request.start', ({ server: of, response }) => {
    if (of === server) count(runtime, response);
  });
  const door = openDoor(server, path, place);
  runtime.lanes = [new Connections(door)];
  if (door.listening) return;
  await new Promise((resolve, reject) => {
    door.once('listening', resolve);
    door.once('error', reject);
  });
}

/** What a runtime asks of its lanes, for connections of HTTP. */
class Connections {
  #door;
  #open = new Set();

  constructor(door) {
    this.#door = door;
    door.on('connection', (socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** Nobody here could ask the other side of an upgraded connection to end it: the server does. */
  retire() {}

  /** Calls back when no connection speaks another protocol any more; answers were written before they were over. */
  whenWritten(call) {
    // Node takes its parser from a connection that is upgraded.
    const upgraded = [...this.#open].filter((socket) => socket.parser === null && !socket.destroyed);
    let left = upgraded.length;
    if (left === 0) call();
    for (const socket of upgraded) {
      socket.once('close', () => {
        left -= 1;
        if (left === 0) call();
      });
    }
  }

  hold(isHeld) {
    if (isHeld) this.#door.ref();
    else this.#door.unref();
  }
}

function countByEvents(server, runtime) {
  const { emit } = server;
  server.emit = function (name, request, response, ...rest) {
    if (name === 'request') count(runtime, response);
    return Reflect.apply(emit, this, [name, request, response, ...rest]);
  };
}

function count(runtime, response) {
  runtime.inFlight += 1;
  runtime.begun += 1;
  if (!runtime.lag.watching) runtime.lag.watch(runtime);
  response.once('close', () => runtime.ended());
}
