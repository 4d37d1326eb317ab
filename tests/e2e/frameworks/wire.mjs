// A client that reads HTTP/1.1 as it stands on the wire: informational answers, every field in its order and case,
// chunks, trailers, and how it ended. It mends nothing and asks for nothing that a case did not write.

import { connect } from 'node:net';

/** How long an answer may take before it counts as none. */
const SILENCE_MS = 5_000;
const LINE_END = '\r\n';

/**
 * The bytes of a request.
 * @param {{ method?: string, target: string, fields?: Array<[string, string]>, body?: string | Buffer, chunks?: Array<string | Buffer>, trailers?: Array<[string, string]> }} request
 * @returns {Buffer}
 */
export function bytesOf({ method = 'GET', target, fields = [], body, chunks, trailers = [] }) {
  const lines = [`${method} ${target} HTTP/1.1`];
  if (!fields.some(([name]) => name.toLowerCase() === 'host')) lines.push('Host: example.test');
  for (const [name, value] of fields) lines.push(`${name}: ${value}`);
  if (body !== undefined && !fields.some(([name]) => name.toLowerCase() === 'content-length')) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  if (chunks) lines.push('Transfer-Encoding: chunked');
  const parts = [Buffer.from(`${lines.join(LINE_END)}${LINE_END}${LINE_END}`, 'latin1')];
  if (body !== undefined) parts.push(Buffer.from(body));
  for (const chunk of chunks ?? []) parts.push(Buffer.from(`${Buffer.byteLength(chunk).toString(16)}${LINE_END}`), Buffer.from(chunk), Buffer.from(LINE_END));
  if (chunks) parts.push(Buffer.from(`0${LINE_END}${trailers.map(([name, value]) => `${name}: ${value}${LINE_END}`).join('')}${LINE_END}`, 'latin1'));
  return Buffer.concat(parts);
}

/** One connection. */
export class Wire {
  #socket;
  #received = Buffer.alloc(0);
  #wake = null;
  #end = null;
  /** Cases that wait for what does not come shorten it. */
  patience = SILENCE_MS;

  /** @param {number} port */
  static async open(port) {
    const wire = new Wire();
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    wire.#socket = socket;
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('data', (bytes) => {
      wire.#received = wire.#received.length > 0 ? Buffer.concat([wire.#received, bytes]) : bytes;
      wire.#wake?.();
    });
    const over = (how) => () => {
      wire.#end ??= how;
      wire.#wake?.();
    };
    socket.on('end', over('closed')).on('error', over('reset')).on('close', over('closed'));
    return wire;
  }

  /** @param {string | Buffer} bytes */
  write(bytes) {
    this.#socket.write(bytes);
  }

  /** Says that nothing follows; what comes back is still read. */
  finish() {
    this.#socket.end();
  }

  /** Ends the connection at once. */
  destroy() {
    this.#socket.destroy();
  }

  /** Ends the connection with a reset. */
  reset() {
    this.#socket.resetAndDestroy();
  }

  /** Takes nothing any more, or takes again. */
  hold(held = true) {
    if (held) this.#socket.pause();
    else this.#socket.resume();
  }

  /** What has arrived and was not read as an answer. */
  get waiting() {
    return this.#received.length;
  }

  /**
   * The next answer; `method` says whether it has a body. It never rejects: `end` says what became of it.
   * @param {string} [method]
   */
  async answer(method = 'GET') {
    const answer = { interim: [], status: 0, reason: '', version: '', fields: [], body: Buffer.alloc(0), trailers: [], framing: 'none', end: 'whole' };
    try {
      Object.assign(answer, await this.#head());
      while (answer.status >= 100 && answer.status < 200 && answer.status !== 101) {
        answer.interim.push({ status: answer.status, reason: answer.reason, fields: answer.fields });
        Object.assign(answer, await this.#head());
      }
      if (answer.status !== 101 && answer.status !== 204 && answer.status !== 304 && method !== 'HEAD') await this.#body(answer);
    } catch (error) {
      if (!(error instanceof Torn)) throw error;
      answer.end = error.message;
    }
    return answer;
  }

  /** The next informational answer alone. */
  async interim() {
    return this.#head();
  }

  /**
   * So many bytes that are no HTTP any more, or all until the end.
   * @param {number} [count]
   */
  async bytes(count = Infinity) {
    try {
      while (this.#received.length < count) await this.#more();
    } catch (error) {
      if (!(error instanceof Torn)) throw error;
    }
    return this.#cut(Math.min(count, this.#received.length));
  }

  /** How the other side ended the connection, as soon as it has. */
  async ended() {
    try {
      for (;;) await this.#more();
    } catch (error) {
      if (!(error instanceof Torn)) throw error;
      return error.message;
    }
  }

  async #head() {
    const text = await this.#until('\r\n\r\n');
    const [first, ...lines] = text.split(LINE_END);
    const parts = /^(HTTP\/\d\.\d) (\d{3}) ?(.*)$/.exec(first);
    if (!parts) throw new Torn(`not a status line: ${first.slice(0, 60)}`);
    return { version: parts[1], status: Number(parts[2]), reason: parts[3], fields: lines.map(fieldOf) };
  }

  async #body(answer) {
    const value = (name) => answer.fields.filter(([field]) => field.toLowerCase() === name).map(([, text]) => text);
    const [length] = value('content-length');
    if (value('transfer-encoding').includes('chunked')) await this.#chunks(answer);
    else if (length !== undefined) await this.#sized(answer, Number(length));
    else await this.#untilEnd(answer);
  }

  async #sized(answer, length) {
    answer.framing = 'length';
    try {
      while (this.#received.length < length) await this.#more();
    } finally {
      answer.body = this.#cut(Math.min(length, this.#received.length));
    }
  }

  async #untilEnd(answer) {
    answer.framing = 'close';
    try {
      for (;;) await this.#more();
    } catch (error) {
      if (error.message !== 'closed') throw error;
    } finally {
      answer.body = this.#cut(this.#received.length);
    }
  }

  async #chunks(answer) {
    answer.framing = 'chunked';
    const parts = [];
    try {
      for (;;) {
        const line = await this.#until(LINE_END);
        const size = Number.parseInt(line, 16);
        if (Number.isNaN(size)) throw new Torn(`not a chunk's size: ${line.slice(0, 40)}`);
        if (size === 0) break;
        while (this.#received.length < size + 2) await this.#more();
        parts.push(this.#cut(size));
        this.#cut(2);
      }
      for (let line = await this.#until(LINE_END); line !== ''; line = await this.#until(LINE_END)) answer.trailers.push(fieldOf(line));
    } finally {
      answer.body = Buffer.concat(parts);
    }
  }

  async #until(mark) {
    let place;
    while ((place = this.#received.indexOf(mark)) < 0) await this.#more();
    const text = this.#cut(place).toString('latin1');
    this.#cut(mark.length);
    return text;
  }

  #cut(count) {
    const bytes = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return bytes;
  }

  async #more() {
    if (this.#end !== null) throw new Torn(this.#end);
    let timer;
    const silent = new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Torn('silent')), this.patience);
    });
    const arrived = new Promise((resolve) => (this.#wake = resolve));
    await Promise.race([arrived, silent]).finally(() => clearTimeout(timer));
    this.#wake = null;
  }
}

/** How an answer ended before it was whole: closed, reset or silent. */
class Torn extends Error {}

function fieldOf(line) {
  const colon = line.indexOf(':');
  return colon < 1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
}
