/**
 * Frames of the WebSocket protocol (RFC 6455) as a server reads and writes them: bytes in, messages out. It knows no
 * tunnel and no event, and holds at most one message up to the given length.
 */

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** Section 7.4.1. */
export const NORMAL = 1000;
export const GOING_AWAY = 1001;
export const PROTOCOL_ERROR = 1002;
export const NO_STATUS = 1005;
export const ABNORMAL = 1006;
export const INVALID_TEXT = 1007;
export const TOO_BIG = 1009;

const CONTINUATION = 0;
/** Section 5.5: bytes of a control frame's payload. */
const CONTROL_BYTES_MAX = 125;
/** Longest head of a frame: two bytes, eight of length, four of mask. */
const HEAD_BYTES_MAX = 14;
/** A message's buffer begins with at least this much and doubles, so that memory follows what really came. */
const MESSAGE_BYTES_MIN = 256;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The client broke the protocol; `code` is what it is told. */
export class WebSocketError extends Error {
  name = 'WebSocketError';

  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * Cuts bytes into messages and hands them to `receiver.message(string | Uint8Array)`, `receiver.ping(bytes)` and
 * `receiver.close(code, reason)`. Throws a WebSocketError where the client breaks the protocol.
 */
export class MessageReader {
  #receiver;
  #payloadBytesMax;
  #head = new Uint8Array(HEAD_BYTES_MAX);
  #headBytes = 0;
  #headNeeded = 2;
  /** What is known of the frame whose payload is being read. */
  #opcode = 0;
  #final = false;
  #left = 0;
  #maskAt = 0;
  #masked = 0;
  /** The message so far; a control frame between its fragments has a buffer of its own. */
  #messageOpcode = 0;
  #message = new Uint8Array(0);
  #messageBytes = 0;
  #control = new Uint8Array(CONTROL_BYTES_MAX);
  #controlBytes = 0;
  #inPayload = false;
  #stopped = false;

  constructor(receiver, payloadBytesMax) {
    this.#receiver = receiver;
    this.#payloadBytesMax = payloadBytesMax;
  }

  /** Nothing more is read, even of the bytes that are being fed. */
  stop() {
    this.#stopped = true;
  }

  /** @param {Uint8Array} bytes */
  feed(bytes) {
    let at = 0;
    while (!this.#stopped) {
      if (!this.#inPayload) {
        at = this.#readHead(bytes, at);
        if (!this.#inPayload) return;
      }
      const count = Math.min(this.#left, bytes.length - at);
      this.#unmask(bytes, at, count);
      at += count;
      this.#left -= count;
      if (this.#left > 0) return;
      this.#inPayload = false;
      this.#headBytes = 0;
      this.#headNeeded = 2;
      if (this.#opcode >= CLOSE) this.#endControl();
      else if (this.#final) this.#endMessage();
      if (at === bytes.length) return;
    }
  }

  #readHead(bytes, from) {
    let at = from;
    while (at < bytes.length) {
      this.#head[this.#headBytes] = bytes[at];
      this.#headBytes += 1;
      at += 1;
      if (this.#headBytes < this.#headNeeded) continue;
      if (this.#headNeeded === 2) {
        this.#checkStart();
        const short = this.#head[1] & 0x7f;
        this.#headNeeded = 6 + (short === 126 ? 2 : 0) + (short === 127 ? 8 : 0);
      } else {
        this.#beginPayload();
        return at;
      }
    }
    return at;
  }

  /** Section 5.2: the first two bytes of a frame. */
  #checkStart() {
    const [first, second] = this.#head;
    this.#opcode = first & 0x0f;
    this.#final = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw new WebSocketError(PROTOCOL_ERROR, 'a reserved bit is set');
    // Section 5.1: a server must close the connection where a client does not mask.
    if ((second & 0x80) === 0) throw new WebSocketError(PROTOCOL_ERROR, 'a frame of the client is not masked');
    switch (this.#opcode) {
      case CONTINUATION:
        if (this.#messageOpcode === 0) throw new WebSocketError(PROTOCOL_ERROR, 'a continuation of no message');
        break;
      case TEXT:
      case BINARY:
        if (this.#messageOpcode !== 0) throw new WebSocketError(PROTOCOL_ERROR, 'a message inside of another');
        this.#messageOpcode = this.#opcode;
        break;
      case CLOSE:
      case PING:
      case PONG:
        // Section 5.5.
        if (!this.#final) throw new WebSocketError(PROTOCOL_ERROR, 'a control frame in fragments');
        if ((second & 0x7f) > CONTROL_BYTES_MAX) throw new WebSocketError(PROTOCOL_ERROR, 'a control frame is too long');
        this.#controlBytes = 0;
        break;
      default:
        throw new WebSocketError(PROTOCOL_ERROR, `the opcode ${this.#opcode} is reserved`);
    }
  }

  #beginPayload() {
    const head = new DataView(this.#head.buffer);
    const short = this.#head[1] & 0x7f;
    this.#left = short;
    if (short === 126) this.#left = head.getUint16(2);
    if (short === 127) this.#left = head.getUint32(2) * 4_294_967_296 + head.getUint32(6);
    if (this.#opcode < CLOSE && this.#messageBytes + this.#left > this.#payloadBytesMax) {
      throw new WebSocketError(TOO_BIG, `a message is longer than ${this.#payloadBytesMax} bytes`);
    }
    this.#maskAt = this.#headNeeded - 4;
    this.#masked = 0;
    this.#inPayload = true;
  }

  #unmask(bytes, from, count) {
    const control = this.#opcode >= CLOSE;
    if (!control) this.#makeRoom(count);
    const into = control ? this.#control : this.#message;
    const base = control ? this.#controlBytes : this.#messageBytes;
    const head = this.#head;
    const maskAt = this.#maskAt;
    let masked = this.#masked;
    for (let index = 0; index < count; index += 1) {
      into[base + index] = bytes[from + index] ^ head[maskAt + masked];
      masked = (masked + 1) & 3;
    }
    this.#masked = masked;
    if (control) this.#controlBytes += count;
    else this.#messageBytes += count;
  }

  #makeRoom(count) {
    const needed = this.#messageBytes + count;
    if (needed <= this.#message.length) return;
    // A message that is here as a whole gets exactly its length: it can be handed on without a copy.
    const whole = this.#final && count === this.#left && this.#messageBytes === 0;
    const room = whole ? needed : Math.max(needed, MESSAGE_BYTES_MIN, this.#message.length * 2);
    const roomier = new Uint8Array(Math.min(room, this.#payloadBytesMax));
    roomier.set(this.#message.subarray(0, this.#messageBytes));
    this.#message = roomier;
  }

  #endMessage() {
    const opcode = this.#messageOpcode;
    const bytes = this.#message.length === this.#messageBytes
      ? this.#message
      : this.#message.slice(0, this.#messageBytes);
    this.#messageOpcode = 0;
    this.#message = new Uint8Array(0);
    this.#messageBytes = 0;
    this.#receiver.message(opcode === TEXT ? decode(bytes) : bytes);
  }

  #endControl() {
    const bytes = this.#control.slice(0, this.#controlBytes);
    if (this.#opcode === PING) this.#receiver.ping(bytes);
    if (this.#opcode !== CLOSE) return;
    if (bytes.length === 0) {
      this.#receiver.close(NO_STATUS, '');
      return;
    }
    if (bytes.length === 1) throw new WebSocketError(PROTOCOL_ERROR, 'a close frame with half a code');
    const code = (bytes[0] << 8) | bytes[1];
    if (!mayBeSent(code)) throw new WebSocketError(PROTOCOL_ERROR, `a close frame with the code ${code}`);
    this.#receiver.close(code, decode(bytes.subarray(2)));
  }
}

/**
 * One frame, as a server writes it: whole and not masked.
 * @param {number} opcode @param {string|Uint8Array} payload
 */
export function encodeFrame(opcode, payload) {
  const text = typeof payload === 'string';
  const bytes = text ? Buffer.byteLength(payload) : payload.length;
  let at = 2;
  if (bytes > 0xffff) at = 10;
  else if (bytes > CONTROL_BYTES_MAX) at = 4;
  const frame = Buffer.allocUnsafe(at + bytes);
  frame[0] = 0x80 | opcode;
  if (at === 2) {
    frame[1] = bytes;
  } else if (at === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(bytes, 2);
  } else {
    frame[1] = 127;
    frame.writeUInt32BE(Math.floor(bytes / 4_294_967_296), 2);
    frame.writeUInt32BE(bytes >>> 0, 6);
  }
  if (text) frame.utf8Write(payload, at, bytes);
  else frame.set(payload, at);
  return frame;
}

/** A close frame; NO_STATUS makes one without a payload. @param {number} code @param {string} reason */
export function encodeClose(code, reason) {
  if (code === NO_STATUS) return encodeFrame(CLOSE, '');
  const text = Buffer.from(reason);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code, 0);
  payload.set(text, 2);
  return encodeFrame(CLOSE, payload);
}

/** Section 7.4: the codes that may stand in a frame. */
function mayBeSent(code) {
  if (code >= 3000) return code <= 4999;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

/** Section 8.1: text that is not UTF-8 fails the connection. */
function decode(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new WebSocketError(INVALID_TEXT, 'text is not UTF-8');
  }
}
