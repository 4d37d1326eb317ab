/**
 * The server's side of the worker protocol, for tests: starts the real worker and speaks frames with it by hand.
 * It checks nothing and hides nothing, so that a test can also break the protocol.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { INTERNED, LOWER } from '../../src/fetch/names.mjs';
import * as wire from '../../src/wire.mjs';

export { wire };

const LAUNCHER = fileURLToPath(new URL('./launch.py', import.meta.url));
/** As the server starts it: a preload under Node, the main module under Bun. */
const PRELOAD = new URL('../../src/preload.mjs', import.meta.url).href;
const WORKER = fileURLToPath(new URL('../../src/worker.mjs', import.meta.url));
/** A test that waits longer for a frame has failed. */
const PATIENCE_MILLISECONDS = 60_000;

const METHOD_NUMBERS = new Map(wire.METHODS.map((name, number) => [name, number]));

/** One lane as the server sees it. */
export class PeerLane {
  frames = [];
  closed = false;
  #waiters = [];

  constructor(socket) {
    this.socket = socket;
    const reader = new wire.FrameReader(this);
    socket.on('data', (bytes) => reader.feed(bytes, bytes.length));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#wake();
    });
  }

  frame(kind, flags, slot, generation, bytes, start, end) {
    this.frames.push({ kind, flags, slot, generation, payload: Buffer.from(bytes.subarray(start, end)) });
    this.#wake();
  }

  send(...frames) {
    this.socket.write(Buffer.concat(frames));
  }

  /** Takes the first frame that `matches` out of what has come, waiting for it. */
  async take(matches, what = 'a frame') {
    const deadline = Date.now() + PATIENCE_MILLISECONDS;
    for (;;) {
      const at = this.frames.findIndex(matches);
      if (at >= 0) return this.frames.splice(at, 1)[0];
      if (this.closed) throw new Error(`the worker closed the lane; waited for ${what}`);
      await this.#changed(deadline, what);
    }
  }

  takeKind(kind, slot) {
    return this.take((frame) => frame.kind === kind && (slot === undefined || frame.slot === slot), `kind ${kind}`);
  }

  async takeEnd() {
    const deadline = Date.now() + PATIENCE_MILLISECONDS;
    while (!this.closed) await this.#changed(deadline, 'the end of the lane');
  }

  /** The whole answer of a slot, put together, giving credit for it as it comes. */
  async answer(slot, { credit = true } = {}) {
    const head = readResponse(await this.take((f) => f.slot === slot && f.kind === wire.RESPONSE, `answer of ${slot}`));
    const pieces = [head.body];
    if (credit && head.body.length > 0) this.credit(slot, head.generation, head.body.length);
    for (let ended = head.ended; !ended;) {
      const next = await this.take(
        (f) => f.slot === slot && (f.kind === wire.DATA || f.kind === wire.RESET), `the body of ${slot}`,
      );
      if (next.kind === wire.RESET) return { ...head, body: Buffer.concat(pieces), reset: next.payload.readUInt32LE(0) };
      pieces.push(next.payload);
      if (credit && next.payload.length > 0) this.credit(slot, next.generation, next.payload.length);
      ended = next.flags === wire.END;
    }
    return { ...head, body: Buffer.concat(pieces) };
  }

  credit(slot, generation, bytes) {
    this.send(creditFrame(slot, generation, bytes), creditFrame(wire.LANE_SLOT, 0, bytes));
  }

  #changed(deadline, what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const seen = this.frames.map((f) => `${f.kind.toString(16)}:${f.slot}`).join(' ');
        reject(new Error(`waited in vain for ${what}; there are: ${seen}`));
      }, deadline - Date.now());
      this.#waiters.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #wake() {
    for (const waiter of this.#waiters.splice(0)) waiter();
  }
}

/** A worker process with its lanes. */
export class Peer {
  stderr = '';
  stdout = '';

  constructor(child, lanes, folder) {
    this.child = child;
    [this.control, ...this.lanes] = lanes;
    [this.lane] = this.lanes;
    this.folder = folder;
    child.stderr.on('data', (bytes) => { this.stderr += bytes; });
    child.stdout.on('data', (bytes) => { this.stdout += bytes; });
    this.exit = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  }

  hello(settings = {}) {
    this.control.send(helloFrame({ lanes: this.lanes.length, ...settings }));
  }

  /** Says HELLO and waits for READY. */
  async greet(settings) {
    this.hello(settings);
    return this.control.takeKind(wire.READY);
  }

  async stop() {
    for (const lane of [this.control, ...this.lanes]) lane.socket.destroy();
    const { exit } = this;
    const killer = setTimeout(() => this.child.kill('SIGKILL'), 2000);
    await exit;
    clearTimeout(killer);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/**
 * Starts a worker for an application whose source is given.
 * @param {string} source
 */
export async function startWorker(source, options = {}) {
  const { name = 'app.mjs', file = name, lanes = 1, env = {}, args = [], nodeArgs = [] } = options;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'onehop-worker-'));
  await writeFile(path.join(folder, name), source);
  const address = path.join(folder, 'lanes');
  const sockets = [];
  const server = net.createServer((socket) => sockets.push(new PeerLane(socket)));
  server.listen(address);
  await once(server, 'listening');
  const runtime = process.env.ONEHOP_TEST_RUNTIME ?? process.execPath;
  const child = spawn(
    'python3', [LAUNCHER, address, String(lanes + 1), runtime, ...entry(runtime, nodeArgs), file, ...args],
    { cwd: folder, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  while (sockets.length <= lanes) await once(server, 'connection');
  server.close();
  return new Peer(child, sockets, folder);
}

function entry(runtime, nodeArgs) {
  if (path.basename(runtime).startsWith('bun')) return [...nodeArgs, WORKER];
  return ['--import', PRELOAD, ...nodeArgs];
}

/** Starts a worker, shakes hands, runs `body`, and ends the worker whatever happens. */
export async function withWorker(source, options, body) {
  const peer = await startWorker(source, options);
  try {
    await peer.greet(options.hello);
    await body(peer, peer.lane);
  } catch (error) {
    error.message += `\n--- the worker's stderr:\n${peer.stderr}`;
    throw error;
  } finally {
    await peer.stop();
  }
}

// Frames, made by hand.

export function frame(kind, flags, slot, generation, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(wire.FRAME_HEAD_BYTES);
  wire.writeFrameHead(head, 0, payload.length, kind, flags, slot, generation);
  return Buffer.concat([head, payload]);
}

/** False for what a worker says of its own accord where its machine is busy: how long it loaded, that its event loop was late. */
export function isNoTiming({ kind }) {
  return kind !== wire.LOADED && kind !== wire.BLOCKED;
}

export function helloFrame(settings) {
  const {
    lowest = 1, highest = 1, lanes = 1, slots = 64, streamWindow = 65_536, laneWindow = 1_048_576, perTurn = 64,
    text = 'onehop/test\napp\n',
  } = settings;
  const payload = Buffer.alloc(24 + text.length);
  payload.writeUInt16LE(lowest, 0);
  payload.writeUInt16LE(highest, 2);
  payload.writeUInt16LE(lanes, 4);
  payload.writeUInt16LE(slots, 6);
  payload.writeUInt32LE(streamWindow, 8);
  payload.writeUInt32LE(laneWindow, 12);
  payload.writeUInt32LE(perTurn, 16);
  payload.writeUInt32LE(text.length, 20);
  payload.write(text, 24, 'latin1');
  return frame(wire.HELLO, 0, 0, 0, payload);
}

export function requestFrame(slot, generation, request = {}) {
  const {
    method = 'GET', target = '/', authority = 'example.com', tls = '', fields = [], body = '', end = true, facts = 0,
    address = [127, 0, 0, 1], port = 40_000, id = 1n, length = end ? Buffer.byteLength(body) : -1,
  } = request;
  const number = METHOD_NUMBERS.get(method) ?? 0;
  const records = [target, authority, tls, number === 0 ? method : '', ...fields.map(fieldRecord)];
  const block = Buffer.from(`${records.join('\n')}\n`, 'latin1');
  const fixed = Buffer.alloc(wire.REQUEST_FIXED_BYTES);
  fixed[0] = number;
  fixed[1] = facts;
  fixed[2] = address.length === 16 ? 6 : address.length;
  fixed.writeUInt16LE(port, 4);
  fixed.set(address, 8);
  fixed.writeBigUInt64LE(id, 24);
  wire.writeU64(fixed, 32, length);
  fixed.writeUInt32LE(block.length, 40);
  return frame(wire.REQUEST, end ? wire.END : 0, slot, generation, Buffer.concat([fixed, block, Buffer.from(body)]));
}

/** A field as the server writes it: interned where the name has that very spelling, or its lower case. */
function fieldRecord([name, value]) {
  const exact = INTERNED.indexOf(name);
  if (exact >= 0) return `${String.fromCharCode(0x80 | exact)}${value}`;
  const lower = LOWER.indexOf(name);
  return lower >= 0 ? `${String.fromCharCode(0xc0 | lower)}${value}` : `${name}:${value}`;
}

export function dataFrame(slot, generation, bytes, end = false) {
  return frame(wire.DATA, end ? wire.END : 0, slot, generation, Buffer.from(bytes));
}

export function resetFrame(slot, generation, code) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(code);
  return frame(wire.RESET, 0, slot, generation, payload);
}

export function creditFrame(slot, generation, bytes) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(bytes);
  return frame(wire.CREDIT, 0, slot, generation, payload);
}

export function readResponse({ flags, slot, generation, payload }) {
  const blockBytes = payload.readUInt32LE(4);
  const length = payload.readBigUInt64LE(8);
  return {
    slot,
    generation,
    ended: flags === wire.END,
    status: payload.readUInt16LE(0),
    length: length === 0xffff_ffff_ffff_ffffn ? -1 : Number(length),
    fields: payload.toString('latin1', 16, 16 + blockBytes),
    body: payload.subarray(16 + blockBytes),
  };
}
