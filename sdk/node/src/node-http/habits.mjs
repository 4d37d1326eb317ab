/**
 * What applications do because they are used to a process manager: fork themselves with `cluster`, tell a parent
 * process that they are ready. The server has already started as many workers as the settings say.
 */
import cluster from 'node:cluster';
import dgram from 'node:dgram';
import { syncBuiltinESMExports } from 'node:module';
import { inspect } from 'node:util';

/** Characters of a message that goes nowhere in the one line that says so. */
const SHOWN_CHARACTERS = 200;

/**
 * Must run before the application is loaded.
 * @param {(message: unknown) => boolean} takes whether a message is Node's own, and not the application's
 */
export function install(takes) {
  isTaken = takes;
  process.send = send;
  presentAsClusterWorker();
  syncBuiltinESMExports();
}

let told = false;
let isTaken = () => false;

/** There is no parent that listens: whatever is sent counts as delivered. */
function send(message, ...rest) {
  if (isTaken(message)) return true;
  if (!told && typeof message === 'object' && message !== null) {
    told = true;
    const shown = inspect(message, { depth: 1, breakLength: Infinity }).slice(0, SHOWN_CHARACTERS);
    process.stderr.write(`onehop: process.send reaches nobody; this message and all that follow are dropped: ${shown}\n`);
  }
  const called = rest.at(-1);
  if (typeof called === 'function') process.nextTick(called, null);
  return true;
}

/** An application that forks itself in its primary and listens in its workers finds itself in a worker. */
function presentAsClusterWorker() {
  const worker = new cluster.Worker({ id: 1, process, state: 'online' });
  const leave = () => process.kill(process.pid, 'SIGTERM');
  Object.assign(worker, {
    send,
    isConnected: () => true,
    isDead: () => false,
    kill: leave,
    destroy: leave,
    disconnect() {
      worker.exitedAfterDisconnect = true;
      leave();
      return worker;
    },
  });
  Object.assign(cluster, {
    isPrimary: false,
    isMaster: false,
    isWorker: true,
    worker,
    fork() {
      throw new Error(
        'cluster.fork: onehop starts the workers; say how many with `workers auto` or `workers N` in the Onehopfile',
      );
    },
    // Servers that really listen ask here for the primary's handle: there is none, they make their own.
    _getServer: (server, query, done) => done(null, undefined),
  });
  bindAlone();
}

/** A datagram socket takes no answer without a handle: it is never to ask for one. */
function bindAlone() {
  const { bind } = dgram.Socket.prototype;
  dgram.Socket.prototype.bind = function (...given) {
    const [first, second] = given;
    if (first !== null && typeof first === 'object') {
      if (typeof first.recvStart === 'function') return bind.apply(this, given);
      return bind.call(this, { ...first, exclusive: true }, ...given.slice(1));
    }
    const options = { exclusive: true };
    if (typeof first !== 'function' && first !== undefined && first !== null) options.port = first;
    if (typeof second !== 'function' && second) options.address = second;
    const called = given.at(-1);
    return typeof called === 'function' ? bind.call(this, options, called) : bind.call(this, options);
  };
}
