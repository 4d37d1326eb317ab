/**
 * One data lane: its slots, its credits, the frames that come and the frames that go. What arrives in one read is
 * dispatched in a row; what becomes ready in one turn of the event loop goes out in one write.
 */
import { openChannel } from './channel.mjs';
import { LaneCredit } from './inbound.mjs';
import { Output } from './output.mjs';
import {
  BODY_BYTES_MAX, CLIENT_GONE, CREDIT, DATA, END, FILE, FILE_PART, FILE_SENT, FRAME_HEAD_BYTES, FREE_BODY_BYTES, FrameReader,
  HEAD_BLOCK_BYTES_MAX, INFORMATIONAL, LANE_SLOT, METHOD_NUMBER_MAX, ProtocolError, REQUEST, REQUEST_FIXED_BYTES,
  RESET, RESPONSE, RESPONSE_FIXED_BYTES, TRAILERS, WINDOW_BYTES_MAX, readU32, readU64, writeFrameHead, writeU16, writeU32,
  writeU64,
} from './wire.mjs';

/** Characters of a body that is written without being measured first: at most three times as many bytes. */
const SHORT_TEXT = 16_384;
/**
 * Bytes of pieces that streams gave in one turn and that are written before it is over: sixteen full frames. While
 * many streams are made at once, each has some pieces in one frame then, and what waits stays small.
 */
const GATHERED_BYTES_MAX = 1_048_576;
const EMPTY = new Uint8Array(0);
const LINE_FEED = 10;
/** Target, authority, TLS facts and method: in front of the fields, each at least a line feed. */
const LEADING_RECORDS = 4;
const NEVER = 0;
const GIVEN = 1;

export class Lane {
  /** Exchanges whose answer is a stream or a tunnel; they are told when the lane has credit again. */
  streams = new Set();
  bodyBytesWithHead = BODY_BYTES_MAX;
  #slots;
  #generations;
  #given;
  #credit;
  #received;
  #channel = null;
  /** Bodies with pieces that go out at the end of this turn, and the bytes of those pieces. */
  #gathering = new Set();
  #gathered = 0;
  #output = new Output(() => this.#release());
  #reader = new FrameReader(this);

  /**
   * @param {import('./runtime.mjs').Runtime} runtime
   * @param {{slots: number, streamWindow: number, laneWindow: number}} settings from HELLO
   */
  constructor(runtime, settings) {
    this.runtime = runtime;
    this.streamWindow = settings.streamWindow;
    this.#credit = settings.laneWindow;
    this.#received = new LaneCredit(this, settings.laneWindow);
    this.#slots = new Array(settings.slots).fill(null);
    this.#generations = new Uint32Array(settings.slots);
    this.#given = new Uint8Array(settings.slots);
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

  // What the channel says.

  received(bytes, length) {
    try {
      this.#reader.feed(bytes, length);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.runtime.laneBroken(error);
    }
  }

  drained() {
    this.#output.drained();
    if (!this.#output.blocked) this.#resumeStreams();
  }

  ended(error) {
    this.#output.close();
    this.runtime.laneEnded(this, error);
  }

  // What an exchange asks for.

  /** Bytes of the exchange's body that credit allows now; zero while the socket takes nothing. */
  sendable(exchange) {
    return this.#output.blocked ? 0 : this.granted(exchange);
  }

  /** Bytes of it that credit allows at all: while the socket takes nothing they wait in memory. */
  granted(exchange) {
    return Math.min(exchange.credit, this.#credit);
  }

  /** `body.write()` is called at the end of this turn: it holds `bytes` more. @param {import('./outbound.mjs').Outbound} body */
  gather(body, bytes) {
    this.#gathering.add(body);
    this.#gathered += bytes;
    if (this.#gathered >= GATHERED_BYTES_MAX) this.#release();
    else this.#output.schedule();
  }

  consumed(bytes) {
    this.#received.consumed(bytes);
  }

  over(exchange, begun) {
    this.#slots[exchange.slot] = null;
    this.streams.delete(exchange);
    if (begun) this.runtime.ended();
  }

  /** A whole answer with a short text, where credit allows it. The hot path: one reservation, two writes. */
  writeWholeText(exchange, status, fields, text) {
    if (text.length > SHORT_TEXT || fields.length > HEAD_BLOCK_BYTES_MAX) return false;
    const bytesMax = text.length * 3;
    const isFree = bytesMax <= FREE_BODY_BYTES;
    if (!isFree && (bytesMax > exchange.credit || bytesMax > this.#credit)) return false;
    const output = this.#output;
    const at = output.reserve(FRAME_HEAD_BYTES + RESPONSE_FIXED_BYTES + fields.length + bytesMax);
    const { buffer } = output;
    const fieldsAt = at + FRAME_HEAD_BYTES + RESPONSE_FIXED_BYTES;
    buffer.latin1Write(fields, fieldsAt, fields.length);
    const bodyAt = fieldsAt + fields.length;
    const bodyBytes = text.length === 0 ? 0 : buffer.utf8Write(text, bodyAt, bytesMax);
    const end = bodyAt + bodyBytes;
    writeFrameHead(
      buffer, at, end - at - FRAME_HEAD_BYTES, RESPONSE, END, exchange.slot, exchange.generation,
    );
    writeU32(buffer, at + FRAME_HEAD_BYTES, status);
    writeU32(buffer, at + FRAME_HEAD_BYTES + 4, fields.length);
    writeU32(buffer, at + FRAME_HEAD_BYTES + 8, bodyBytes);
    writeU32(buffer, at + FRAME_HEAD_BYTES + 12, 0);
    if (bodyBytes > FREE_BODY_BYTES) this.#credit -= bodyBytes;
    output.used = end;
    return true;
  }

  /** The head of an answer with the first `count` bytes of its body. A length of -1 is not known. */
  writeHead(exchange, status, fields, length, bytes, count, whole) {
    const payload = RESPONSE_FIXED_BYTES + fields.length + count;
    const at = this.#frame(exchange, RESPONSE, whole ? END : 0, payload);
    const { buffer } = this.#output;
    this.#writeFixed(at, status, fields, length);
    if (count > 0) {
      buffer.set(count === bytes.length ? bytes : bytes.subarray(0, count), at + RESPONSE_FIXED_BYTES + fields.length);
      if (!whole || count > FREE_BODY_BYTES) this.#spend(exchange, count);
    }
    this.#output.flushEarly();
  }

  writeFile(exchange, status, fields, { path, offset = 0, length = -1 }) {
    const name = Buffer.from(path);
    const at = this.#frame(exchange, FILE, END, RESPONSE_FIXED_BYTES + fields.length + 20 + name.length);
    const { buffer } = this.#output;
    this.#writeFixed(at, status, fields, -1);
    const fileAt = at + RESPONSE_FIXED_BYTES + fields.length;
    writeU64(buffer, fileAt, offset);
    writeU64(buffer, fileAt + 8, length);
    writeU32(buffer, fileAt + 16, name.length);
    buffer.set(name, fileAt + 20);
  }

  /**
   * Bytes of a file are the next bytes of a body; FILE_SENT says how many of them were passed on.
   * @param {{offset: number, length: number, device: bigint, inode: bigint, path: string}} part
   */
  writeFilePart(exchange, { offset, length, device, inode, path }) {
    const name = Buffer.from(path);
    const at = this.#frame(exchange, FILE_PART, 0, 32 + name.length);
    const { buffer } = this.#output;
    writeU64(buffer, at, offset);
    writeU64(buffer, at + 8, length);
    buffer.writeBigUInt64LE(device, at + 16);
    buffer.writeBigUInt64LE(inode, at + 24);
    buffer.set(name, at + 32);
  }

  writeInformational(exchange, status, fields) {
    const at = this.#frame(exchange, INFORMATIONAL, 0, 8 + fields.length);
    const { buffer } = this.#output;
    writeU16(buffer, at, status);
    writeU16(buffer, at + 2, 0);
    writeU32(buffer, at + 4, fields.length);
    buffer.latin1Write(fields, at + 8, fields.length);
  }

  /** The next `count` bytes of a body, in one frame. @param {import('./pieces.mjs').Pieces} pieces */
  writeData(exchange, pieces, count, ended) {
    const at = this.#frame(exchange, DATA, ended ? END : 0, count);
    pieces.moveInto(this.#output.buffer, at, count);
    this.#spend(exchange, count);
    this.#output.flushEarly();
  }

  /** The end of a body whose bytes are all written. */
  writeEnd(exchange) {
    this.#frame(exchange, DATA, END, 0);
  }

  /** The end of an answer that has fields behind its body. */
  writeTrailers(exchange, fields) {
    const at = this.#frame(exchange, TRAILERS, END, fields.length);
    this.#output.buffer.latin1Write(fields, at, fields.length);
  }

  writeReset(exchange, code) {
    const at = this.#frame(exchange, RESET, 0, 4);
    writeU32(this.#output.buffer, at, code);
  }

  writeCredit(slot, generation, bytes) {
    const output = this.#output;
    const at = output.reserve(FRAME_HEAD_BYTES + 4);
    writeFrameHead(output.buffer, at, 4, CREDIT, 0, slot, generation);
    writeU32(output.buffer, at + FRAME_HEAD_BYTES, bytes);
    output.used += FRAME_HEAD_BYTES + 4;
  }

  // What the runtime asks for.

  /** Asks every tunnel to close in its protocol's own way. */
  retire() {
    for (const exchange of this.streams) exchange.retire();
  }

  /** Requests that are not over. */
  live() {
    return this.#slots.filter((exchange) => exchange !== null);
  }

  /** Nobody waits for answers any more. */
  giveUp() {
    for (const exchange of this.#slots) exchange?.reset(CLIENT_GONE);
  }

  /** Calls back when everything is written. */
  whenWritten(call) {
    this.#release();
    this.#output.whenEmpty = call;
    this.#output.flush();
  }

  /** Writes now what would be written at the end of this turn. */
  flush() {
    this.#release();
    this.#output.flush();
  }

  // Frames that come.

  frame(kind, flags, slot, generation, bytes, start, end, kept) {
    switch (kind) {
      case REQUEST:
        this.#request(flags, slot, generation, bytes, start, end);
        break;
      case DATA:
        this.#data(this.#find(slot, generation), flags, bytes, start, end, kept);
        break;
      case CREDIT:
        if (flags !== 0) throw new ProtocolError('CREDIT with END');
        this.#credited(slot, generation, bytes, start, end);
        break;
      case TRAILERS:
        if (flags !== END) throw new ProtocolError('TRAILERS without END');
        if (end > start && bytes[end - 1] !== LINE_FEED) throw new ProtocolError('TRAILERS whose last record is not ended');
        this.#find(slot, generation)?.bodyTrailers(bytes.latin1Slice(start, end));
        break;
      case FILE_SENT:
        if (end - start !== 8 || flags !== 0) throw new ProtocolError(`FILE_SENT with ${end - start} bytes, flags ${flags}`);
        this.#find(slot, generation)?.fileSent(readU64(bytes, start));
        break;
      case RESET:
        if (end - start !== 4 || flags !== 0) throw new ProtocolError(`RESET with ${end - start} bytes, flags ${flags}`);
        this.#find(slot, generation)?.reset(readU32(bytes, start));
        break;
      default:
        throw new ProtocolError(`a frame of kind 0x${kind.toString(16)} has no place on a data lane`);
    }
  }

  #request(flags, slot, generation, bytes, start, end) {
    if (slot >= this.#slots.length) throw new ProtocolError(`slot ${slot} is not below ${this.#slots.length}`);
    if (this.#slots[slot] !== null) this.#endPrevious(slot);
    if (this.#given[slot] !== NEVER && generation !== (this.#generations[slot] + 1) >>> 0) {
      throw new ProtocolError(`slot ${slot} skips from generation ${this.#generations[slot]} to ${generation}`);
    }
    const blockAt = start + REQUEST_FIXED_BYTES;
    if (blockAt > end) throw new ProtocolError(`REQUEST with ${end - start} bytes`);
    checkFixedPart(bytes, start);
    const blockBytes = readU32(bytes, blockAt - 4);
    const bodyAt = blockAt + blockBytes;
    if (blockBytes > HEAD_BLOCK_BYTES_MAX || bodyAt > end || end - bodyAt > BODY_BYTES_MAX) {
      throw new ProtocolError(`REQUEST with a head block of ${blockBytes} bytes in ${end - start}`);
    }
    if (blockBytes < LEADING_RECORDS || bytes[bodyAt - 1] !== LINE_FEED) {
      throw new ProtocolError('REQUEST whose head block lacks records');
    }
    this.#given[slot] = GIVEN;
    this.#generations[slot] = generation;
    const head = bytes.latin1Slice(start, bodyAt);
    let body = EMPTY;
    if (end > bodyAt) {
      body = new Uint8Array(bytes.subarray(bodyAt, end));
      if (flags !== END || body.length > FREE_BODY_BYTES) this.#received.received(body.length);
    }
    const { Exchange } = this.runtime;
    let exchange;
    if (flags === END) {
      exchange = new Exchange(this, slot, generation, head, body);
      if (body.length > FREE_BODY_BYTES) this.#received.consumed(body.length);
    } else {
      exchange = new Exchange(this, slot, generation, head, null);
      exchange.expectBody(body);
    }
    this.#slots[slot] = exchange;
    this.runtime.arrived(exchange);
  }

  /** A tunnel whose worker has ended it may be over for a server that does not end its own direction. */
  #endPrevious(slot) {
    const previous = this.#slots[slot];
    if (!previous.hasSentEnd) throw new ProtocolError(`slot ${slot} is given out twice`);
    previous.finish();
  }

  #data(exchange, flags, bytes, start, end, kept) {
    const length = end - start;
    if (length > BODY_BYTES_MAX || (length === 0 && flags !== END)) throw new ProtocolError(`DATA with ${length} bytes`);
    this.#received.received(length);
    if (exchange === null) {
      this.#received.consumed(length);
      return;
    }
    exchange.bodyPiece(kept ? bytes : new Uint8Array(bytes.subarray(start, end)), flags === END);
  }

  #credited(slot, generation, bytes, start, end) {
    if (end - start !== 4) throw new ProtocolError(`CREDIT with ${end - start} bytes`);
    const count = readU32(bytes, start);
    if (slot !== LANE_SLOT) {
      this.#find(slot, generation)?.credited(count);
      return;
    }
    if (generation !== 0) throw new ProtocolError(`CREDIT for the lane with generation ${generation}`);
    this.#credit += count;
    if (this.#credit > WINDOW_BYTES_MAX) throw new ProtocolError('the server raised the window of a lane above its bound');
    this.#resumeStreams();
  }

  /** The exchange that a frame belongs to, or null where it is late. */
  #find(slot, generation) {
    if (slot >= this.#slots.length) throw new ProtocolError(`slot ${slot} is not below ${this.#slots.length}`);
    const last = this.#generations[slot];
    if (this.#given[slot] === NEVER || (generation !== last && (last - generation) >>> 0 > 0x7fff_ffff)) {
      throw new ProtocolError(`generation ${generation} of slot ${slot} was never given out`);
    }
    return generation === last ? this.#slots[slot] : null;
  }

  // Frames that go.

  /** Writes a frame's head and returns where its payload begins; the payload must be written before anything else. */
  #frame(exchange, kind, flags, payload) {
    const output = this.#output;
    const at = output.reserve(FRAME_HEAD_BYTES + payload);
    writeFrameHead(output.buffer, at, payload, kind, flags, exchange.slot, exchange.generation);
    output.used = at + FRAME_HEAD_BYTES + payload;
    return at + FRAME_HEAD_BYTES;
  }

  #writeFixed(at, status, fields, length) {
    const { buffer } = this.#output;
    writeU16(buffer, at, status);
    writeU16(buffer, at + 2, 0);
    writeU32(buffer, at + 4, fields.length);
    writeU64(buffer, at + 8, length);
    buffer.latin1Write(fields, at + RESPONSE_FIXED_BYTES, fields.length);
  }

  #spend(exchange, bytes) {
    exchange.credit -= bytes;
    this.#credit -= bytes;
  }

  /** What streams gave becomes frames. */
  #release() {
    if (this.#gathered === 0) return;
    const bodies = [...this.#gathering];
    this.#gathering.clear();
    this.#gathered = 0;
    for (const body of bodies) body.write();
  }

  /** Streams take turns: who was served goes behind the others. */
  #resumeStreams() {
    for (const exchange of [...this.streams]) {
      if (this.#credit <= 0 || this.#output.blocked) return;
      this.streams.delete(exchange);
      this.streams.add(exchange);
      exchange.resume();
    }
  }
}

/** What must be 0 is 0, and what is counted is in its range. */
function checkFixedPart(bytes, at) {
  const family = bytes[at + 2];
  if (bytes[at] > METHOD_NUMBER_MAX) throw new ProtocolError(`REQUEST with the method ${bytes[at]}`);
  if (family !== 4 && family !== 6 && family !== 0) throw new ProtocolError(`REQUEST with an address of kind ${family}`);
  let rest = bytes[at + 3] | bytes[at + 6] | bytes[at + 7];
  if (family === 0) rest |= bytes[at + 4] | bytes[at + 5] | bytes[at + 8] | bytes[at + 9] | bytes[at + 10] | bytes[at + 11];
  if (family !== 6) for (let index = at + 12; index < at + 24; index += 1) rest |= bytes[index];
  if (rest !== 0) throw new ProtocolError('REQUEST with bytes that must be 0 and are not');
}
