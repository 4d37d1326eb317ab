/**
 * Servers beside the application's own (metrics, another protocol) really listen. Their port may still be held by the
 * worker that this one replaces, or by a sibling: where the kernel can share it, it does, else the server waits.
 * It knows nothing of the server that is adopted.
 */
import net from 'node:net';
import { getSystemErrorName } from 'node:util';
import { describePlace } from './describe.mjs';

/** How often a server that waits for its port asks for it. */
const RETRY_MILLISECONDS = 250;
/** libuv's flag for SO_REUSEPORT. */
const REUSE_PORT = 2;

/**
 * @param {net.Server} server
 * @param {Function} listen2 Node's own `_listen2`
 * @param {any[]} given what it was called with: address, port, family, backlog, descriptor, flags
 */
export function listenForReal(server, listen2, given) {
  const [address, port, family, backlog, fd, flags] = given;
  // A handle or a descriptor is bound already.
  if (server._handle || typeof fd === 'number') {
    listen2.apply(server, given);
    return;
  }
  const id = server._listeningId;
  let told = false;
  attempt();

  function attempt() {
    // Closed, or told to listen elsewhere, while it waited.
    if (server._listeningId !== id || server._handle) return;
    const handle = bind(address, port, family, backlog, flags);
    if (handle === 'EADDRINUSE') {
      if (!told) tell();
      told = true;
      setTimeout(attempt, RETRY_MILLISECONDS);
      return;
    }
    // Any other error is found, and told, once more by Node's own code.
    if (typeof handle !== 'string') server._handle = handle;
    listen2.apply(server, given);
  }

  function tell() {
    process.stderr.write(
      `onehop: ${describePlace(address, port)} is taken, probably by the worker that this one replaces or by one beside `
        + 'it; the server that wants it waits\n',
    );
  }
}

/** A handle that listens, or the name of an error. */
function bind(address, port, family, backlog, flags) {
  let handle = null;
  if (!address) handle = create('::', port, 6, flags);
  if (handle === null || typeof handle === 'number') {
    handle = create(address || '0.0.0.0', port, address ? family : 4, flags);
  }
  if (typeof handle === 'number') return getSystemErrorName(handle);
  const error = handle.listen(backlog || 511);
  if (error === 0) return handle;
  handle.close();
  return getSystemErrorName(error);
}

function create(address, port, family, flags) {
  const shared = port > 0 && sharesPorts ? flags | REUSE_PORT : flags;
  return net._createServerHandle(address, port, family, undefined, shared);
}

const sharesPorts = (() => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
})();
