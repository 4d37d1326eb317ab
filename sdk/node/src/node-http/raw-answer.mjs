/**
 * An answer that an application writes as HTTP/1 by hand onto a socket: an upgrade's 101, a refusal of one, or a
 * plain answer. Its head is read here and becomes a frame; what follows is the body, or the other protocol.
 */
import { HEAD_BLOCK_BYTES_MAX } from '../wire.mjs';

const HEAD_END = Buffer.from('\r\n\r\n');
/** RFC 9112 section 4, as applications write it. */
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: [^\r\n]*)?$/;
/** RFC 9112 section 5: name, colon, value. */
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/;
/** Fields that are about this connection (RFC 9110 section 7.6.1), which is the server's. */
const CONNECTION_FIELDS = /^(?:connection|keep-alive|transfer-encoding|content-length)$/i;

export class RawAnswer {
  #exchange;
  #begun = null;
  #hasHead = false;
  #chunks = null;
  /** Bytes that the body lacks, where its head says how many there are. */
  #missing = Infinity;

  constructor(exchange) {
    this.#exchange = exchange;
  }

  /** @param {Uint8Array} bytes @returns {boolean} whether more should be written now */
  write(bytes) {
    if (this.#hasHead) return this.#body(bytes);
    const all = this.#begun === null ? Buffer.from(bytes) : Buffer.concat([this.#begun, bytes]);
    const end = all.indexOf(HEAD_END);
    if (end < 0) {
      this.#begun = all;
      if (all.length > HEAD_BLOCK_BYTES_MAX) this.#exchange.destroyed(new Error('an answer without the end of its head'));
      return true;
    }
    this.#begun = null;
    const head = parseHead(all.latin1Slice(0, end));
    if (head === null) {
      this.#exchange.destroyed(new Error('what was written to the socket is no HTTP answer'));
      return false;
    }
    const rest = all.subarray(end + HEAD_END.length);
    if (head.status < 200 && head.status !== 101) {
      this.#exchange.informational(head.status, head.fields);
      return rest.length === 0 || this.write(rest);
    }
    this.#hasHead = true;
    if (head.status !== 101) {
      if (head.isChunked) this.#chunks = new Unchunked();
      else if (head.status === 204 || head.status === 304) this.#missing = 0;
      else if (head.length >= 0) this.#missing = head.length;
    }
    this.#exchange.beginRaw(head);
    return this.#body(rest);
  }

  /** Nothing more will be written. */
  end() {
    if (this.#hasHead) this.#exchange.endAnswer('');
    else this.#exchange.destroyed(null);
  }

  #body(bytes) {
    const content = this.#chunks === null ? bytes : this.#chunks.content(bytes);
    if (content === null) {
      this.#exchange.destroyed(new Error('what was written to the socket as chunks are none'));
      return false;
    }
    this.#missing -= content.length;
    const isReady = this.#exchange.sendRaw(content);
    // Its own framing says that it is over, as a client would see it.
    if (this.#missing <= 0 || this.#chunks?.isOver) this.#exchange.endAnswer('');
    return isReady;
  }
}

/**
 * @param {string} text without the empty line
 * @returns {{status: number, fields: string, length: number, isChunked: boolean} | null}
 */
export function parseHead(text) {
  const [first, ...lines] = text.split('\r\n');
  const match = STATUS_LINE.exec(first);
  if (match === null) return null;
  const head = { status: Number(match[1]), fields: '', length: -1, isChunked: false };
  if (head.status < 100) return null;
  const isUpgrade = head.status === 101;
  for (const line of lines) {
    const field = FIELD.exec(line);
    if (field === null || line.includes('\n')) return null;
    const [, name, value] = field;
    if (!CONNECTION_FIELDS.test(name)) {
      if (isUpgrade || name.toLowerCase() !== 'upgrade') head.fields += `${name}:${value}\n`;
    } else if (/^content-length$/i.test(name) && /^\d+$/.test(value)) {
      head.length = Number(value);
    } else if (/^transfer-encoding$/i.test(name)) {
      head.isChunked = /(?:^|\W)chunked(?:$|\W)/i.test(value);
    }
  }
  return head;
}

/** Takes the framing of chunks away (RFC 9112 section 7.1); extensions and trailers are dropped. */
class Unchunked {
  /** The last chunk and what follows it have come. */
  isOver = false;
  #line = '';
  #left = 0;
  #state = 'size';

  /** @param {Uint8Array} bytes @returns {Buffer|null} null where they are no chunks */
  content(bytes) {
    const parts = [];
    for (let at = 0; at < bytes.length;) {
      if (this.#state === 'data') {
        const count = Math.min(this.#left, bytes.length - at);
        parts.push(bytes.subarray(at, at + count));
        at += count;
        this.#left -= count;
        if (this.#left === 0) this.#state = 'after';
        continue;
      }
      const character = String.fromCharCode(bytes[at]);
      at += 1;
      if (character !== '\n') {
        this.#line += character;
        if (this.#line.length > CHUNK_LINE_CHARACTERS_MAX) return null;
      } else if (!this.#endOfLine()) {
        return null;
      }
    }
    return Buffer.concat(parts);
  }

  #endOfLine() {
    const line = this.#line;
    this.#line = '';
    if (this.#state === 'after') {
      this.#state = 'size';
      return line === '\r';
    }
    if (this.#state === 'trailers') {
      this.isOver ||= line === '\r';
      return true;
    }
    const size = /^([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?\r$/.exec(line);
    if (size === null) return false;
    this.#left = Number.parseInt(size[1], 16);
    this.#state = this.#left === 0 ? 'trailers' : 'data';
    return true;
  }
}

/** Characters of a line that gives a chunk's size, or of a trailer. */
const CHUNK_LINE_CHARACTERS_MAX = 16_384;

