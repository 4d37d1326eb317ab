// An access log through its rotation under load: every request has its line once, and the log takes no more of the disk
// than its options say. With ONEHOP_LOG_MIB=10240 it is the long acceptance of 10 GiB.

import assert from "node:assert/strict";
import { once } from "node:events";
import { closeSync, linkSync, mkdirSync, openSync, readdirSync, readSync, statSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { run, startOnehop, workFolder, ONEHOP } from "./program.mjs";

const LOG_BYTES = Number(process.env.ONEHOP_LOG_MIB ?? 64) * 1024 * 1024;
const ROLL_MIB = LOG_BYTES > 1024 * 1024 * 1024 ? 64 : 4;
const ROLL_KEEP = 4;
/** A line of the log is somewhat longer than its target. */
const TARGET_BYTES = 1_000;
const CONNECTIONS = 4;
/** Requests that a connection has sent and that are not answered. */
const WAITING_MAX = 32;
/** Rotated files that wait to be read; then the load waits. */
const UNREAD_MAX = 8;
const NUMBER_DIGITS = 9;
const PIECE_BYTES = 1024 * 1024;

test(`${LOG_BYTES / 1024 / 1024} MiB of an access log pass through rotation without a lost or doubled line`, async (context) => {
  const folder = workFolder(context);
  const [logs, kept] = [join(folder, "logs"), join(folder, "kept")];
  mkdirSync(kept);
  const output = `output file ${join(logs, "access.log")} {\n\t\t\troll_size ${ROLL_MIB}MiB\n\t\t\troll_keep ${ROLL_KEEP}\n\t\t\troll_uncompressed\n\t\t}`;
  const text = `{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tlog {\n\t\t${output}\n\t}\n\trespond ok\n}\n`;
  const server = await startOnehop(context, { folder, text });

  const lines = new Lines();
  const reader = new Reader(logs, kept, lines);
  const load = new Load(Math.ceil(LOG_BYTES / TARGET_BYTES), reader);
  let isOver = false;
  const reading = reader.follow(() => isOver);
  await Promise.all(Array.from({ length: CONNECTIONS }, () => load.connection(server.port)));
  isOver = true;
  // What the server holds in memory is written when it stops.
  assert.equal((await run(ONEHOP, ["stop", "--control", server.control])).code, 0);
  await reading;
  reader.finish();

  const losses = server.events.map((event) => event.text).filter((text) => text.includes("lines"));
  assert.equal(lines.count, load.asked, `lines in ${reader.files} files; ${lines.doubled} come twice; ${losses.join("; ")}`);
  assert.equal(lines.doubled, 0);
  const bound = (ROLL_KEEP + 1) * ROLL_MIB * 1024 * 1024;
  assert.ok(reader.mostBytes <= bound, `${reader.mostBytes} bytes on disk, ${bound} are allowed`);
  context.diagnostic(`${load.asked} lines in ${reader.files} files, at most ${reader.mostBytes} bytes on disk`);
});

/** Which numbers have come, a bit for each. */
class Lines {
  count = 0;
  doubled = 0;
  #seen = new Uint8Array(64);

  add(number) {
    const [at, bit] = [number >> 3, 1 << (number & 7)];
    while (at >= this.#seen.length) {
      const larger = new Uint8Array(this.#seen.length * 2);
      larger.set(this.#seen);
      this.#seen = larger;
    }
    if (this.#seen[at] & bit) this.doubled += 1;
    this.#seen[at] |= bit;
    this.count += 1;
  }
}

/** Keeps each rotated file by a link of its own, reads it and lets it go. */
class Reader {
  files = 0;
  mostBytes = 0;
  #known = new Set();
  #unread = [];

  constructor(logs, kept, lines) {
    Object.assign(this, { logs, kept, lines });
  }

  get isBehind() {
    return this.#unread.length > UNREAD_MAX;
  }

  async follow(isOver) {
    do {
      this.#look();
      const next = this.#unread.shift();
      if (next) this.#read(next);
      // The load runs in this process too.
      await new Promise((resolve) => setTimeout(resolve, next ? 0 : 20));
    } while (!isOver() || this.#unread.length > 0);
  }

  /** After the server's end: what has not been rotated, and what came last. */
  finish() {
    this.#look();
    this.#unread.push(join(this.logs, "access.log"));
    for (const path of this.#unread) this.#read(path);
  }

  #look() {
    let bytes = 0;
    for (const name of readdirSync(this.logs)) {
      const path = join(this.logs, name);
      try {
        bytes += statSync(path).size;
        if (!name.startsWith("access-2") || this.#known.has(name)) continue;
        linkSync(path, join(this.kept, name));
      } catch (error) {
        // It was removed, or renamed, since the folder was read.
        if (error.code === "ENOENT") continue;
        throw error;
      }
      this.#known.add(name);
      this.#unread.push(join(this.kept, name));
    }
    this.mostBytes = Math.max(this.mostBytes, bytes);
  }

  #read(path) {
    this.files += 1;
    const [file, piece] = [openSync(path, "r"), Buffer.alloc(PIECE_BYTES)];
    let rest = Buffer.alloc(0);
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) {
      const bytes = Buffer.concat([rest, piece.subarray(0, read)]);
      let from = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
        this.#line(bytes.subarray(from, end));
        from = end + 1;
      }
      rest = bytes.subarray(from);
    }
    closeSync(file);
    assert.equal(rest.length, 0, `${path} ends within a line`);
    unlinkSync(path);
  }

  #line(bytes) {
    const at = bytes.indexOf('"uri":"/');
    const isWhole = at > 0 && bytes[0] === 0x7b && bytes.at(-1) === 0x7d;
    assert.ok(isWhole, bytes.subarray(0, 200).toString());
    this.lines.add(Number(bytes.latin1Slice(at + 8, at + 8 + NUMBER_DIGITS)));
  }
}

/** Connections that ask one number after the other, together `total` of them. */
class Load {
  asked = 0;
  #padding = "x".repeat(TARGET_BYTES - NUMBER_DIGITS - 1);

  constructor(total, reader) {
    Object.assign(this, { total, reader });
  }

  async connection(port) {
    const socket = connect({ port, host: "127.0.0.1" });
    await once(socket, "connect");
    let [sent, answered] = [0, 0];
    let rest = "";
    for (;;) {
      const requests = [];
      while (sent - answered < WAITING_MAX && this.asked < this.total && !this.reader.isBehind) {
        requests.push(`GET /${String(this.asked).padStart(NUMBER_DIGITS, "0")}${this.#padding} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
        this.asked += 1;
        sent += 1;
      }
      if (requests.length > 0) socket.write(requests.join(""));
      if (sent === answered) {
        if (this.asked === this.total) break;
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      const [bytes] = await once(socket, "data");
      const heads = (rest + bytes.latin1Slice()).split("HTTP/1.1 200 OK\r\n");
      answered += heads.length - 1;
      rest = heads.at(-1).slice(-20);
    }
    socket.destroy();
  }
}
