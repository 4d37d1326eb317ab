/**
 * The worker protocol's frames: their numbers, their bounds, and a reader that cuts a byte stream into them.
 * It knows no socket and no exchange; docs/worker-protocol.md is what it has to agree with.
 */

/** The one version of the protocol that this library speaks. */
export const VERSION = 1;

/** Bytes in front of every payload. */
export const FRAME_HEAD_BYTES = 12;
/** Longest payload that either side may send. */
export const PAYLOAD_BYTES_MAX = 135_168;
/** Most bytes of a body in one frame. */
export const BODY_BYTES_MAX = 65_536;
/** A body of at most so many bytes that comes whole with its head is not counted against credit. */
export const FREE_BODY_BYTES = 16_384;
/** Longest head block. */
export const HEAD_BLOCK_BYTES_MAX = 65_536;
/** Informational answers to one request. */
export const INFORMATIONAL_MAX = 16;
/** Fields of a head block. */
export const FIELD_COUNT_MAX = 200;
/** Bytes of the path in a FILE or FILE_PART frame: with the longest head block the frame still keeps to its bound. */
export const PATH_BYTES_MAX = 2048;
/** Bytes of a REQUEST's payload in front of its head block. */
export const REQUEST_FIXED_BYTES = 44;
/** Bytes of a RESPONSE's payload in front of its head block. */
export const RESPONSE_FIXED_BYTES = 16;
/** The slot that means the lane itself in a CREDIT frame. */
export const LANE_SLOT = 0xffff;
/** No window may be raised above what four bytes can say. */
export const WINDOW_BYTES_MAX = 0xffff_ffff;

/** A frame that was cut into two reads is put together in this much, where that is enough. */
const SCRATCH_BYTES = 4096;

/** The only flag: this frame is its direction's last. */
export const END = 1;

export const HELLO = 0x01;
export const READY = 0x02;
export const FAILED = 0x03;
export const PING = 0x04;
export const PONG = 0x05;
export const DRAIN = 0x06;
export const RETIRE = 0x07;
export const LOADED = 0x08;
export const BLOCKED = 0x09;
export const REQUEST = 0x10;
export const RESPONSE = 0x11;
export const INFORMATIONAL = 0x12;
export const FILE = 0x13;
export const DATA = 0x14;
export const TRAILERS = 0x15;
export const RESET = 0x16;
export const CREDIT = 0x17;
export const FILE_PART = 0x18;
export const FILE_SENT = 0x19;

/** Codes of RESET. */
export const CLIENT_GONE = 1;
export const TIMEOUT = 2;
export const HANDLER_FAILED = 3;
export const REFUSED = 4;
export const NOT_NEEDED = 5;
export const BROKEN = 6;
export const HANG_UP = 7;

/** Facts of a REQUEST. */
export const FACT_ENCRYPTED = 1;
export const FACT_WAITS_FOR_CONTINUE = 2;
export const FACT_UPGRADE = 4;

/** Methods by their number in a REQUEST; 0 is any other, named in the head block. */
export const METHODS = Object.freeze([
  '', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'CONNECT', 'TRACE',
]);
export const METHOD_HEAD = 2;
export const METHOD_NUMBER_MAX = METHODS.length - 1;

/** The other side broke the protocol: its lane is given up. */
export class ProtocolError extends Error {
  name = 'ProtocolError';
}

/** @param {Uint8Array} bytes @param {number} at */
export function readU16(bytes, at) {
  return bytes[at] | (bytes[at + 1] << 8);
}

/** @param {Uint8Array} bytes @param {number} at */
export function readU32(bytes, at) {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/** @param {Uint8Array} bytes @param {number} at @param {number} value */
export function writeU16(bytes, at, value) {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
}

/** @param {Uint8Array} bytes @param {number} at @param {number} value */
export function writeU32(bytes, at, value) {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

/**
 * A safe integer as 64 bits; anything negative as all ones, the protocol's "not known".
 * @param {Uint8Array} bytes @param {number} at @param {number} value
 */
export function writeU64(bytes, at, value) {
  if (value < 0) {
    bytes.fill(0xff, at, at + 8);
    return;
  }
  writeU32(bytes, at, value >>> 0);
  writeU32(bytes, at + 4, Math.floor(value / 4_294_967_296));
}

/** @param {Uint8Array} bytes @param {number} at */
export function readU64(bytes, at) {
  return readU32(bytes, at) + readU32(bytes, at + 4) * 4_294_967_296;
}

/** @param {Uint8Array} bytes @param {number} at */
export function writeFrameHead(bytes, at, payload, kind, flags, slot, generation) {
  writeU32(bytes, at, payload);
  bytes[at + 4] = kind;
  bytes[at + 5] = flags;
  writeU16(bytes, at + 6, slot);
  writeU32(bytes, at + 8, generation);
}

/**
 * Cuts what arrives into frames and hands each to `sink.frame(kind, flags, slot, generation, bytes, start, end,
 * kept)`. `bytes` is only lent for the call, unless `kept` says that they are the payload's alone.
 */
export class FrameReader {
  #sink;
  /** The head of a frame that has not arrived as a whole. */
  #head = Buffer.alloc(FRAME_HEAD_BYTES);
  #headBytes = 0;
  /** Its payload: memory of its own for the bytes of a body, which go on to the handler, else `#scratch`. */
  #payload = null;
  #payloadBytes = 0;
  #whole = 0;
  #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

  constructor(sink) {
    this.#sink = sink;
  }

  /** @param {Uint8Array} bytes only lent @param {number} length bytes that count */
  feed(bytes, length) {
    let at = this.#headBytes === 0 ? 0 : this.#fill(bytes, 0, length);
    while (length - at >= FRAME_HEAD_BYTES) {
      const start = at + FRAME_HEAD_BYTES;
      const end = start + payloadBytes(bytes, at);
      if (end > length) break;
      this.#dispatch(bytes, at, bytes, start, end, false);
      at = end;
    }
    if (at < length) this.#fill(bytes, at, length);
  }

  /** Adds to the frame that is held in part, and hands it on when it is whole. Returns where the next begins. */
  #fill(bytes, from, length) {
    let at = from;
    while (this.#headBytes < FRAME_HEAD_BYTES) {
      if (at === length) return at;
      this.#head[this.#headBytes] = bytes[at];
      this.#headBytes += 1;
      at += 1;
    }
    if (this.#payload === null) this.#makeRoom();
    const count = Math.min(this.#whole - this.#payloadBytes, length - at);
    this.#payload.set(bytes.subarray(at, at + count), this.#payloadBytes);
    this.#payloadBytes += count;
    at += count;
    if (this.#payloadBytes === this.#whole) this.#release();
    return at;
  }

  #makeRoom() {
    this.#whole = payloadBytes(this.#head, 0);
    if (this.#head[4] === DATA) {
      this.#payload = new Uint8Array(this.#whole);
      return;
    }
    if (this.#whole > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(this.#whole);
    this.#payload = this.#scratch;
  }

  #release() {
    const payload = this.#payload;
    this.#payload = null;
    this.#payloadBytes = 0;
    this.#headBytes = 0;
    this.#dispatch(this.#head, 0, payload, 0, this.#whole, payload !== this.#scratch);
    if (this.#scratch.length > SCRATCH_BYTES) this.#scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  }

  #dispatch(head, at, bytes, start, end, kept) {
    const flags = head[at + 5];
    if (flags > END) throw new ProtocolError(`a frame has the unknown flags ${flags}`);
    this.#sink.frame(head[at + 4], flags, readU16(head, at + 6), readU32(head, at + 8), bytes, start, end, kept);
  }
}

function payloadBytes(bytes, at) {
  const size = readU32(bytes, at);
  if (size > PAYLOAD_BYTES_MAX) {
    throw new ProtocolError(`a frame of ${size} bytes is longer than ${PAYLOAD_BYTES_MAX}`);
  }
  return size;
}
