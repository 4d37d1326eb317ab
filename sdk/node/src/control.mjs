/**
 * The control lane: handshake, health, drain and retire. Its end is the end of this process.
 */
import { openChannel } from './channel.mjs';
import { Output } from './output.mjs';
import {
  BLOCKED, DRAIN, FAILED, FRAME_HEAD_BYTES, FrameReader, HELLO, LOADED, PAYLOAD_BYTES_MAX, PING, PONG, ProtocolError, READY,
  readU16, readU32, RETIRE, VERSION, writeFrameHead, writeU16, writeU32, writeU64,
} from './wire.mjs';

/**
 * How READY says that requests come: in frames on the data lanes, as HTTP/1.1 to the socket that the server named, or
 * in frames for a server of the application's own.
 */
export const OVER_LANES = 0;
export const OVER_HTTP = 1;
export const OVER_LANES_TO_SERVER = 2;

/** Characters of paths in one frame, but for the last one: less than a payload holds, whatever they are made of. */
const LOADED_CHARACTERS = 32_768;

export class Control {
  #listener;
  #channel = null;
  #output = new Output();
  #reader = new FrameReader(this);
  #greeted = false;

  /**
   * @param {{hello(settings: object): void, ping(): object, drain(): void, retire(): void, broken(error: Error): void,
   * gone(): void}} listener
   */
  constructor(listener) {
    this.#listener = listener;
  }

  async open(descriptor) {
    this.#channel = await openChannel(descriptor, this);
    this.attach(this.#channel);
  }

  /** What is written goes to `channel`. @param {{write(buffer: Uint8Array, length: number): boolean}} channel */
  attach(channel) {
    this.#output.attach(channel);
  }

  /** Whether the lane alone keeps the process alive. @param {boolean} isHeld */
  hold(isHeld) {
    this.#channel?.hold(isHeld);
  }

  /**
   * @param {string} runtime
   * @param {string} version the runtime's
   * @param {string} library this library's version
   * @param {number} way `OVER_LANES`, `OVER_HTTP` or `OVER_LANES_TO_SERVER`
   */
  ready(runtime, version, library, way) {
    const text = `${runtime}\n${version}\n${library}\n`;
    const payload = Buffer.alloc(8 + text.length);
    writeU16(payload, 0, VERSION);
    writeU16(payload, 2, way);
    writeU32(payload, 4, text.length);
    payload.latin1Write(text, 8, text.length);
    this.#write(READY, payload);
  }

  /** @param {string[]} files absolute paths */
  loaded(files) {
    let text = '';
    for (const file of files) {
      text += `${file}\0`;
      if (text.length < LOADED_CHARACTERS) continue;
      this.#write(LOADED, Buffer.from(text));
      text = '';
    }
    if (text !== '') this.#write(LOADED, Buffer.from(text));
  }

  /** The event loop stood still for so many microseconds, until so many ago. */
  blocked(duration, endedAgo) {
    const payload = Buffer.alloc(8);
    writeU32(payload, 0, duration);
    writeU32(payload, 4, endedAgo);
    this.#write(BLOCKED, payload);
    // At once: the time since then counts.
    this.#output.flush();
  }

  /** Says why the application could not be loaded; `written` is called when that is on its way. */
  failed(text, written) {
    this.#write(FAILED, Buffer.from(text).subarray(0, PAYLOAD_BYTES_MAX));
    this.#output.whenEmpty = written;
    this.#output.flush();
  }

  drain() {
    this.#write(DRAIN, Buffer.alloc(0));
    this.#output.flush();
  }

  // What the channel says.

  received(bytes, length) {
    try {
      this.#reader.feed(bytes, length);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#listener.broken(error);
    }
  }

  drained() {
    this.#output.drained();
  }

  ended() {
    this.#listener.gone();
  }

  // Frames that come.

  frame(kind, flags, slot, generation, bytes, start, end) {
    if (flags !== 0) throw new ProtocolError('a frame of the control lane has END');
    if (slot !== 0 || generation !== 0) throw new ProtocolError('a frame of the control lane names a slot');
    if (this.#greeted === (kind === HELLO)) throw new ProtocolError('HELLO is not the first frame, or not the only one');
    const length = end - start;
    switch (kind) {
      case HELLO:
        this.#greeted = true;
        this.#listener.hello(readHello(bytes, start, length));
        break;
      case PING:
        expectLength('PING', length, 8);
        this.#pong(bytes.subarray(start, end));
        break;
      case DRAIN:
        expectLength('DRAIN', length, 0);
        this.#listener.drain();
        break;
      case RETIRE:
        expectLength('RETIRE', length, 0);
        this.#listener.retire();
        break;
      default:
        throw new ProtocolError(`a frame of kind 0x${kind.toString(16)} has no place on the control lane`);
    }
  }

  #pong(token) {
    const { lag, inFlight, begun, heap, resident } = this.#listener.ping();
    const payload = Buffer.alloc(40);
    payload.set(token, 0);
    writeU32(payload, 8, lag);
    writeU32(payload, 12, inFlight);
    writeU64(payload, 16, begun);
    writeU64(payload, 24, heap);
    writeU64(payload, 32, resident);
    this.#write(PONG, payload);
  }

  #write(kind, payload) {
    const output = this.#output;
    const at = output.reserve(FRAME_HEAD_BYTES + payload.length);
    writeFrameHead(output.buffer, at, payload.length, kind, 0, 0, 0);
    output.buffer.set(payload, at + FRAME_HEAD_BYTES);
    output.used = at + FRAME_HEAD_BYTES + payload.length;
  }
}

function readHello(bytes, start, length) {
  if (length < 24 || length !== 24 + readU32(bytes, start + 20)) throw new ProtocolError(`HELLO with ${length} bytes`);
  const [server, app, rest, ...more] = bytes.utf8Slice(start + 24, start + length).split('\n');
  if (rest !== '' || more.length > 0) throw new ProtocolError('HELLO whose text is not two records');
  return {
    lowest: readU16(bytes, start),
    highest: readU16(bytes, start + 2),
    lanes: readU16(bytes, start + 4),
    slots: readU16(bytes, start + 6),
    streamWindow: readU32(bytes, start + 8),
    laneWindow: readU32(bytes, start + 12),
    perTurn: readU32(bytes, start + 16),
    server,
    app,
  };
}

function expectLength(name, length, expected) {
  if (length !== expected) throw new ProtocolError(`${name} with ${length} bytes`);
}
