/**
 * A Unix socket whose connections an http.Server serves as if it had accepted them itself, with Node's own parser.
 * The server keeps the handle that it has, and what it says about where it listens.
 */
import net from 'node:net';

/** Whom a connection of this machine comes from, for applications that ask. */
const PEER = { address: '127.0.0.1', family: 'IPv4', port: 1 };

/**
 * @param {import('node:http').Server} server
 * @param {string} path
 * @param {import('./stand-in.mjs').Place|null} place where the server says that it listens
 * @returns {net.Server}
 */
export function openDoor(server, path, place) {
  const door = net.createServer({ allowHalfOpen: true }, (socket) => {
    // Node's Socket gives these where its handle knows no address.
    socket._peername = { ...PEER };
    socket._sockname = { address: '127.0.0.1', family: 'IPv4', port: place?.port ?? 0 };
    hand(door, server, socket);
  });
  door.listen(path);
  return door;
}

/** The connection counts as one of the server's: it tells when the last one has ended. */
function hand(door, server, socket) {
  door._connections -= 1;
  server._connections += 1;
  socket.server = server;
  socket._server = server;
  server.emit('connection', socket);
}
