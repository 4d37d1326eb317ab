/**
 * Requests that the application makes to its own port. Nothing listens there, so that connections from this very
 * process are led through a door of their own. Those of other processes are not.
 */
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { openDoor } from './door.mjs';

const OWN_HOSTS = new Set(['localhost', '127.0.0.1', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', '[::1]', '[::]']);

/** @param {import('./adopt.mjs').Adoption} adoption */
export function leadSelfRequests(adoption) {
  const { connect } = net.Socket.prototype;
  let opened = null;

  net.Socket.prototype.connect = function (...given) {
    const options = Array.isArray(given[0]) ? given[0][0] : net._normalizeArgs(given)[0];
    if (!isOwn(options, adoption)) return connect.apply(this, given);
    const path = doorPath();
    if (path === null) return connect.apply(this, given);
    const called = Array.isArray(given[0]) ? given[0][1] : net._normalizeArgs(given)[1];
    return connect.call(this, net._normalizeArgs([{ ...options, host: undefined, port: undefined, path }, called]));
  };

  function doorPath() {
    if (opened?.server === adoption.server) return opened.path;
    try {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onehop-self-'));
      const socket = path.join(folder, 'http.sock');
      const door = openDoor(adoption.server, socket, adoption.place);
      if (!door.listening) throw new Error('it does not listen');
      door.unref();
      process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
      opened = { server: adoption.server, path: socket };
      return socket;
    } catch (error) {
      process.stderr.write(`onehop: the application's requests to its own port cannot be led to it: ${error.message}\n`);
      return null;
    }
  }
}

function isOwn(options, { server, place }) {
  if (server === null || place.port === null || options.path || Number(options.port) !== place.port) return false;
  if (!server.listening) return false;
  const host = options.host ?? 'localhost';
  return OWN_HOSTS.has(host) || /^127\.\d+\.\d+\.\d+$/.test(host) || host === place.host;
}
