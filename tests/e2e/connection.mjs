// A client that keeps its connection and reads answers strictly: what it cannot explain, it refuses.
// It tells apart how a connection ends, because that is what tests of reloads and stops ask.

import { connect } from "node:net";

/** How a request can fail, in the words of `Failure.kind`. */
export class Failure extends Error {
  /**
   * `unsent`: the connection was over before a byte of the request left.
   * `unanswered`: the request left, and the connection ended without a byte of an answer.
   * `torn`: an answer began and did not end, or is no answer.
   */
  constructor(kind, message) {
    super(`${kind}: ${message}`);
    this.kind = kind;
  }
}

const ANSWER_MS = 20_000;

export class Connection {
  #socket;
  #received = Buffer.alloc(0);
  #wake = null;
  #end = null;

  /** Opens a connection; rejects when nobody accepts. */
  static async open(port, host = "127.0.0.1") {
    const connection = new Connection();
    const socket = connect({ port, host, noDelay: true });
    connection.#socket = socket;
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    socket.on("data", (bytes) => {
      connection.#received = connection.#received.length ? Buffer.concat([connection.#received, bytes]) : bytes;
      connection.#wake?.();
    });
    const over = (reason) => () => {
      connection.#end ??= reason;
      connection.#wake?.();
    };
    socket.on("end", over("closed"));
    socket.on("error", over("reset"));
    socket.on("close", over("closed"));
    return connection;
  }

  /** Whether the peer has closed, or said that it will. */
  get isOver() {
    return this.#end !== null;
  }

  close() {
    this.#end ??= "closed by us";
    this.#socket.destroy();
  }

  /** Sends one request, with a body where there is one, and reads its answer. */
  async request(target, { method = "GET", fields = {}, host = "localhost", body } = {}) {
    if (this.isOver) throw new Failure("unsent", `${method} ${target}: the connection was ${this.#end}`);
    let head = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n`;
    for (const [name, value] of Object.entries(fields)) head += `${name}: ${value}\r\n`;
    if (body !== undefined) head += `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    this.#socket.write(`${head}\r\n${body ?? ""}`);
    const timer = setTimeout(() => {
      this.#end ??= `silent for ${ANSWER_MS} ms`;
      this.#wake?.();
    }, ANSWER_MS);
    try {
      return await this.#answer(method, target);
    } finally {
      clearTimeout(timer);
    }
  }

  async #answer(method, target) {
    let bounds;
    while ((bounds = this.#received.indexOf("\r\n\r\n")) < 0) await this.#more(`${method} ${target}`);
    const head = this.#received.subarray(0, bounds).toString("latin1");
    this.#received = this.#received.subarray(bounds + 4);
    const [statusLine, ...lines] = head.split("\r\n");
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(`${statusLine} `)?.[1];
    if (!status) throw new Failure("torn", `${target}: not a status line: ${statusLine}`);
    const fields = new Map();
    for (const line of lines) {
      const colon = line.indexOf(":");
      if (colon < 1) throw new Failure("torn", `${target}: not a field: ${line}`);
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      fields.set(name, fields.has(name) ? `${fields.get(name)}, ${value}` : value);
    }
    const answer = { status: Number(status), fields, field: (name) => fields.get(name), body: Buffer.alloc(0) };
    const hasBody = method !== "HEAD" && answer.status !== 304 && answer.status !== 204 && answer.status >= 200;
    if (hasBody) answer.body = await this.#body(fields, target);
    if (fields.get("connection")?.toLowerCase().includes("close")) this.#end ??= "said to close";
    return answer;
  }

  async #body(fields, target) {
    if (fields.get("transfer-encoding") === "chunked") return this.#chunks(target);
    const length = fields.get("content-length");
    if (!/^\d+$/.test(length ?? "")) throw new Failure("torn", `${target}: no length`);
    return this.#take(Number(length), target);
  }

  async #chunks(target) {
    const parts = [];
    for (;;) {
      let end;
      while ((end = this.#received.indexOf("\r\n")) < 0) await this.#more(target, true);
      const size = Number.parseInt(this.#received.subarray(0, end).toString("latin1"), 16);
      if (Number.isNaN(size)) throw new Failure("torn", `${target}: no chunk size`);
      this.#received = this.#received.subarray(end + 2);
      const chunk = await this.#take(size + 2, target);
      if (size === 0) return Buffer.concat(parts);
      parts.push(chunk.subarray(0, size));
    }
  }

  async #take(count, target) {
    while (this.#received.length < count) await this.#more(target, true);
    const bytes = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return bytes;
  }

  /** Waits for more bytes; fails when none can come. */
  async #more(target, begun = this.#received.length > 0) {
    if (this.#end && this.#end !== "said to close") {
      throw new Failure(begun ? "torn" : "unanswered", `${target}: the connection was ${this.#end}`);
    }
    await new Promise((resolve) => (this.#wake = resolve));
    this.#wake = null;
  }
}
