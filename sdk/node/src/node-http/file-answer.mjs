/**
 * Files that an application pipes into its answer (`res.sendFile`, express.static, `createReadStream(…).pipe(res)`)
 * without their bytes passing through this process: the server, which may open them too, sends them from its own
 * hand. Only where nobody could see a difference: everything that the application can observe is Node's own stream
 * and Node's own pipe; what is taken over is the reading of the bytes alone. Whatever the server does not send
 * (the file is another one there, it became shorter) is read here as ever.
 */
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import { http } from './node-modules.mjs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { here } from '../isolate.mjs';
import { PATH_BYTES_MAX } from '../wire.mjs';

/** Smaller files cost less when they go with the head of the answer. */
export const FILE_BYTES_MIN = 65_536;
/** What the server is asked to send at a time: between two parts the application may stop or slow its stream. */
export const PART_BYTES = 1_048_576;

/** Methods of streams that see or make bytes, and those of responses: all must be Node's. */
const STREAM_METHODS = ['push', 'read', 'unshift', 'pause', 'resume', 'unpipe'];
const RESPONSE_METHODS = ['write', 'end', '_send', '_writeRaw', 'flushHeaders'];

/**
 * Takes over files below a folder from now on.
 * @param {string} folder as the server knows it
 * @param {(response: object) => import('../exchange.mjs').Exchange|undefined} exchangeOf
 */
export function installFileAnswers(folder, exchangeOf) {
  const roots = rootsOf(folder);
  const { prototype } = fs.ReadStream;
  const inherited = Object.getPrototypeOf(prototype);
  Object.defineProperty(prototype, 'pipe', {
    configurable: true,
    enumerable: false,
    writable: true,
    value: function pipe(destination, options) {
      const exchange = destination instanceof http.ServerResponse ? exchangeOf(destination) : undefined;
      if (exchange && !Object.hasOwn(this, '_read')) offer(this, destination, exchange, roots);
      return inherited.pipe.call(this, destination, options);
    },
  });
}

/** Where the folder is, under the name that it was given and under its real one, which Node gives to modules. */
function rootsOf(folder) {
  const given = path.resolve(folder);
  try {
    const real = fs.realpathSync(given);
    return real === given ? [given] : [given, real];
  } catch {
    return [given];
  }
}

/** When the stream first wants bytes, its file is open and all who listen have had the time to say so. */
function offer(stream, response, exchange, roots) {
  Object.defineProperty(stream, '_read', {
    configurable: true,
    enumerable: false,
    writable: true,
    value: function read(size) {
      delete stream._read;
      const part = exchange.over ? null : partOf(stream, response, exchange, roots);
      if (part === null) stream._read(size);
      else new FileAnswer(stream, response, exchange, part, size).begin();
    },
  });
}

class FileAnswer {
  #stream;
  #response;
  #exchange;
  #part;
  #size;
  #left;

  constructor(stream, response, exchange, part, size) {
    this.#stream = stream;
    this.#response = response;
    this.#exchange = exchange;
    this.#part = part;
    this.#size = size;
    this.#left = part.length;
  }

  begin() {
    this.#response.flushHeaders();
    this.#exchange.flush();
    if (!this.#exchange.over) this.#sendPart();
  }

  #sendPart() {
    const length = Math.min(this.#left, PART_BYTES);
    // Who listens to the stream is called in the context of whoever opened it, as after a read.
    const inContext = here();
    this.#exchange.whenFileSent = (bytes) => inContext(() => this.#sent(bytes, bytes === length));
    this.#exchange.lane.writeFilePart(this.#exchange, { ...this.#part, length });
  }

  #sent(bytes, isWhole) {
    const stream = this.#stream;
    this.#part.offset += bytes;
    this.#left -= bytes;
    stream.bytesRead += bytes;
    this.#exchange.written += bytes;
    this.#exchange.socket?._unrefTimer?.();
    if (stream.destroyed) return;
    if (isWhole && this.#left > 0 && isPipedAlone(stream, this.#response)) {
      this.#sendPart();
      return;
    }
    // Node finds its end, or what is left, from here.
    stream.pos = this.#part.offset;
    stream._read(this.#size);
  }
}

/** What the server may be asked for, or null where the bytes have to go the long way. */
function partOf(stream, response, exchange, roots) {
  if (!isUntouched(stream) || !isPipedAlone(stream, response) || !isPlain(response, exchange)) return null;
  const below = relativeTo(roots, path.resolve(stream.path));
  if (below === null || Buffer.byteLength(below) > PATH_BYTES_MAX) return null;
  const facts = statOf(stream.fd);
  if (facts === null || !facts.isFile()) return null;
  const offset = stream.start ?? 0;
  const length = Math.min(stream.end, Number(facts.size) - 1) - offset + 1;
  if (length < FILE_BYTES_MIN || length !== declaredLength(response)) return null;
  return { offset, length, device: BigInt.asUintN(64, facts.dev), inode: BigInt.asUintN(64, facts.ino), path: below };
}

/** Nothing was read, nothing is changed, and the file is one of the file system. */
function isUntouched(stream) {
  const state = stream._readableState;
  const fsKey = Object.getOwnPropertySymbols(stream).find((symbol) => symbol.description === 'kFs');
  return fsKey !== undefined && stream[fsKey] === fs
    && typeof stream.fd === 'number' && typeof stream.path === 'string' && stream.flags === 'r'
    && stream.bytesRead === 0 && state.length === 0
    && !state.decoder && !state.encoding && !state.objectMode
    && stream._read === fs.ReadStream.prototype._read
    && stream.emit === EventEmitter.prototype.emit
    && STREAM_METHODS.every((name) => stream[name] === Readable.prototype[name]);
}

/** The answer is all that the stream flows into, and nobody else sees its bytes. */
function isPipedAlone(stream, response) {
  const { pipes } = stream._readableState;
  return pipes.length === 1 && pipes[0] === response && stream.readableFlowing === true
    && stream.listenerCount('data') === 1 && stream.listenerCount('readable') === 0;
}

/** The answer will be what its head says, byte for byte, and none of it has left. */
function isPlain(response, exchange) {
  return !response.destroyed && !response.writableEnded && response._hasBody && !response._headerSent
    && exchange.waiting === 0 && exchange.written === 0 && exchange.whenFileSent === null
    && !response.strictContentLength && !response.hasHeader('transfer-encoding') && !response.hasHeader('trailer')
    && RESPONSE_METHODS.every((name) => response[name] === http.ServerResponse.prototype[name]);
}

/** What the head promises; not a number where it promises nothing. */
function declaredLength(response) {
  const value = response.getHeader('content-length') ?? response._contentLength;
  return typeof value === 'number' || /^\d{1,15}$/.test(value) ? Number(value) : NaN;
}

function relativeTo(roots, file) {
  const root = roots.find((one) => file.startsWith(one.endsWith(path.sep) ? one : one + path.sep));
  return root === undefined ? null : path.relative(root, file);
}

function statOf(descriptor) {
  try {
    return fs.fstatSync(descriptor, { bigint: true });
  } catch {
    return null;
  }
}
