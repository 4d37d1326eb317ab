import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Context } from '../src/context.mjs';
import { Control } from '../src/control.mjs';
import { FetchExchange } from '../src/fetch/exchange.mjs';
import { INTERNED } from '../src/fetch/names.mjs';
import { createRequest } from '../src/fetch/request.mjs';
import { Lane } from '../src/lane.mjs';
import { Pieces } from '../src/pieces.mjs';
import * as wire from '../src/wire.mjs';
import { requestFrame } from './support/peer.mjs';

const FRAMES = readVectors('frames.json');
const BROKEN = readVectors('broken.json');
/** By the number that READY has for them. */
const TRANSPORTS = ['frames', 'http', 'frames for a server'];
const FACTS = { encrypted: 1, expects_continue: 2, upgrade: 4, http_1_0: 8, odd_spelling: 16 };
/** No part of the handler's answers: a Response has no trailers. */
const NEVER_WRITTEN = new Set(['TRAILERS']);
/**
 * The worker reads names and values only where the application asks for them, and leaves to the server, which made
 * them of what it had checked, that they are fields.
 */
const LEFT_TO_THE_SERVER = new Set(['leading_records', 'too_many_fields', 'field_name', 'field_value']);

function readVectors(name) {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8'));
}

function bytesOf(text) {
  return Buffer.concat(text.split(' ').filter(Boolean).map((chunk) => {
    const [digits, times] = chunk.split('*');
    const part = Buffer.from(digits, 'hex');
    return times ? Buffer.alloc(Number(times), part) : part;
  }));
}

/** Fields as a head block, written by the protocol's page. */
function blockOf(fields) {
  return fields.map(([name, value]) => {
    const exact = INTERNED.indexOf(name);
    const lower = INTERNED.findIndex((known) => known.toLowerCase() === name);
    if (exact >= 0) return `${String.fromCharCode(0x80 | exact)}${value}\n`;
    return lower >= 0 ? `${String.fromCharCode(0xc0 | lower)}${value}\n` : `${name}:${value}\n`;
  }).join('');
}

/** A lane without a socket: what arrives, what is broken, and what is written can be seen. */
class Bench {
  arrivals = [];
  broken = null;
  written = [];

  constructor({ streamWindow = 200_000, laneWindow = 200_000 } = {}) {
    const runtime = {
      Exchange: FetchExchange,
      arrived: (exchange) => this.arrivals.push(exchange),
      laneBroken: (error) => { this.broken = error; },
    };
    this.lane = new Lane(runtime, { slots: 65_535, streamWindow, laneWindow });
    this.lane.attach({ write: (buffer, length) => this.written.push(Buffer.from(buffer.subarray(0, length))) > 0 });
  }

  async bytes() {
    await new Promise((resolve) => this.lane.whenWritten(resolve));
    return Buffer.concat(this.written);
  }
}

class ControlBench {
  seen = [];
  written = [];

  constructor() {
    const note = (name) => (value) => { this.seen.push([name, value]); };
    this.pong = { lag: 0, inFlight: 0, begun: 0, heap: 0, resident: 0 };
    this.control = new Control({
      hello: note('HELLO'), drain: note('DRAIN'), retire: note('RETIRE'), broken: note('broken'),
      ping: () => { this.seen.push(['PING']); return this.pong; },
    });
    this.control.attach({ write: (buffer, length) => this.written.push(Buffer.from(buffer.subarray(0, length))) > 0 });
  }

  feed(bytes) {
    this.control.received(bytes, bytes.length);
  }

  async bytes() {
    await new Promise(setImmediate);
    return Buffer.concat(this.written);
  }
}

const HELLO = bytesOf(FRAMES.find(({ name }) => name === 'hello').bytes);

const READ_CONTROL = {
  HELLO(bench, frame) {
    const [, hello] = bench.seen.at(-1);
    assert.deepEqual(hello, {
      lowest: frame.version_min, highest: frame.version_max, lanes: frame.lanes, slots: frame.slots,
      streamWindow: frame.stream_window, laneWindow: frame.lane_window, perTurn: frame.begins_per_turn,
      server: frame.server, app: frame.application,
    });
  },
  async PING(bench, frame) {
    assert.equal((await bench.bytes()).readBigUInt64LE(12).toString(16).padStart(16, '0'), frame.token);
  },
  DRAIN(bench) {
    assert.equal(bench.seen.at(-1)[0], 'DRAIN');
  },
  RETIRE(bench) {
    assert.equal(bench.seen.at(-1)[0], 'RETIRE');
  },
};

function checkRequest(exchange, frame) {
  const { head } = exchange;
  const request = createRequest(head, exchange);
  const context = new Context(exchange);
  const body = bytesOf(frame.body);
  assert.equal(exchange.slot, frame.slot);
  assert.equal(exchange.generation, frame.generation);
  assert.equal(context.requestId, frame.id);
  assert.deepEqual(context.client, frame.client);
  assert.equal(context.tls?.facts ?? '', frame.tls);
  assert.equal(head.charCodeAt(1), frame.facts.reduce((bits, name) => bits | FACTS[name], 0));
  assert.equal(request.method, frame.own_method || wire.METHODS[frame.method]);
  assert.match(exchange.title, new RegExp(`${frame.id} ${request.method} `));
  assert.ok(exchange.title.endsWith(frame.target));
  const headers = new Headers();
  for (const [name, value] of frame.fields) headers.append(name, value);
  // Space around a value is the server's to take off; it passes on what it has.
  const trimmed = [...request.headers].map(([name, value]) => [name, value.trim()]);
  assert.deepEqual(trimmed, [...headers]);
  if (frame.end) assert.deepEqual(Buffer.from(exchange.complete), body);
  else assert.equal(exchange.complete, null);
}

async function readData(vector) {
  const { frame } = vector;
  const bytes = bytesOf(vector.bytes);
  const windows = frame.kind === 'CREDIT' ? { streamWindow: 5, laneWindow: 0 } : {};
  const bench = new Bench(windows);
  if (frame.kind !== 'REQUEST') {
    const slot = frame.slot === wire.LANE_SLOT ? 0 : frame.slot;
    const opening = requestFrame(slot, frame.generation, { method: 'POST', end: false });
    bench.lane.received(opening, opening.length);
  }
  let sent = null;
  if (frame.kind === 'FILE_SENT') bench.arrivals[0].whenFileSent = (count) => { sent = count; };
  // Byte by byte: every shorter beginning asks for more.
  for (const byte of bytes.subarray(0, 200)) bench.lane.received(Buffer.of(byte), 1);
  if (bytes.length > 200) bench.lane.received(bytes.subarray(200), bytes.length - 200);
  assert.equal(bench.broken, null);
  const exchange = bench.arrivals[0];
  switch (frame.kind) {
    case 'REQUEST':
      checkRequest(exchange, frame);
      if (!frame.end && frame.body !== '') assert.deepEqual(Buffer.from(await exchange.read()), bytesOf(frame.body));
      break;
    case 'DATA':
      exchange.begin();
      if (frame.body !== '') assert.deepEqual(Buffer.from(await exchange.read()), bytesOf(frame.body));
      if (frame.end) assert.equal(await exchange.read(), null);
      break;
    case 'TRAILERS':
      assert.equal(await exchange.read(), null);
      break;
    case 'RESET':
      assert.equal(exchange.over, true);
      assert.equal(exchange.signal().reason.name, frame.code === wire.TIMEOUT ? 'TimeoutError' : 'AbortError');
      break;
    case 'FILE_SENT':
      assert.equal(sent, frame.bytes);
      break;
    case 'CREDIT':
      if (frame.slot === wire.LANE_SLOT) {
        exchange.credit = wire.WINDOW_BYTES_MAX;
        assert.equal(bench.lane.sendable(exchange), frame.bytes);
      } else {
        assert.equal(exchange.credit, 5 + frame.bytes);
      }
      break;
    default:
      assert.fail(frame.kind);
  }
}

for (const vector of FRAMES.filter(({ from }) => from === 'server')) {
  test(`reads ${vector.name}`, async () => {
    if (vector.lane === 'data') {
      await readData(vector);
      return;
    }
    const bench = new ControlBench();
    if (vector.frame.kind !== 'HELLO') bench.feed(HELLO);
    for (const byte of bytesOf(vector.bytes)) bench.feed(Buffer.of(byte));
    await READ_CONTROL[vector.frame.kind](bench, vector.frame);
  });
}

async function writeControl(frame) {
  const bench = new ControlBench();
  switch (frame.kind) {
    case 'READY':
      bench.control.ready(frame.runtime, frame.runtime_version, frame.library_version,
        TRANSPORTS.indexOf(frame.transport));
      break;
    case 'FAILED':
      bench.control.failed(frame.text, null);
      break;
    case 'LOADED':
      bench.control.loaded(frame.text.split('\0').slice(0, -1));
      break;
    case 'BLOCKED':
      bench.control.blocked(frame.duration_us, frame.ended_us_ago);
      break;
    case 'DRAIN':
      bench.control.drain();
      break;
    case 'PONG': {
      bench.pong = {
        lag: frame.delay_us, inFlight: frame.in_flight, begun: frame.begun, heap: frame.heap_bytes, resident: frame.resident_bytes,
      };
      const ping = Buffer.from('080000000400000000000000' + '0000000000000000', 'hex');
      ping.writeBigUInt64LE(BigInt(`0x${frame.token}`), 12);
      bench.feed(HELLO);
      bench.feed(ping);
      break;
    }
    default:
      assert.fail(frame.kind);
  }
  return bench.bytes();
}

async function writeData(frame) {
  const bench = new Bench();
  const { lane } = bench;
  const exchange = { slot: frame.slot, generation: frame.generation, credit: 200_000 };
  const block = blockOf(frame.fields ?? []);
  const body = bytesOf(frame.kind === 'CREDIT' ? '' : frame.body ?? '');
  switch (frame.kind) {
    case 'RESPONSE':
      lane.writeHead(exchange, frame.status, block, frame.length ?? -1, body, body.length, frame.end);
      break;
    case 'INFORMATIONAL':
      lane.writeInformational(exchange, frame.status, block);
      break;
    case 'FILE':
      lane.writeFile(exchange, frame.status, block, { path: frame.path, offset: frame.offset, length: frame.length ?? -1 });
      break;
    case 'FILE_PART':
      lane.writeFilePart(exchange, { ...frame, device: BigInt(`0x${frame.device}`), inode: BigInt(`0x${frame.inode}`) });
      break;
    case 'DATA': {
      const pieces = new Pieces();
      pieces.push(body);
      if (body.length === 0 && frame.end) lane.writeEnd(exchange);
      else lane.writeData(exchange, pieces, body.length, frame.end);
      break;
    }
    case 'RESET':
      lane.writeReset(exchange, frame.code);
      break;
    case 'CREDIT':
      lane.writeCredit(frame.slot, frame.generation, frame.bytes);
      break;
    default:
      assert.fail(frame.kind);
  }
  return bench.bytes();
}

for (const vector of FRAMES.filter(({ from, canonical }) => from === 'worker' && canonical !== false)) {
  if (NEVER_WRITTEN.has(vector.frame.kind)) continue;
  test(`writes ${vector.name}`, async () => {
    const written = vector.lane === 'control' ? await writeControl(vector.frame) : await writeData(vector.frame);
    assert.equal(written.toString('hex'), bytesOf(vector.bytes).toString('hex'));
  });
}

test('a whole text is written as any other answer is', async () => {
  for (const { frame, bytes } of FRAMES.filter((v) => v.frame.kind === 'RESPONSE' && v.frame.end && v.frame.body !== '')) {
    const bench = new Bench();
    const exchange = { slot: frame.slot, generation: frame.generation, credit: 200_000 };
    assert.ok(bench.lane.writeWholeText(exchange, frame.status, blockOf(frame.fields), bytesOf(frame.body).toString()));
    assert.equal((await bench.bytes()).toString('hex'), bytesOf(bytes).toString('hex'));
  }
});

for (const { name, lane, bytes, error } of BROKEN.filter(({ from }) => from === 'server')) {
  if (LEFT_TO_THE_SERVER.has(error)) continue;
  test(`refuses ${name}`, () => {
    const whole = bytesOf(bytes);
    const padded = Buffer.concat([whole, Buffer.alloc(Math.max(0, wire.FRAME_HEAD_BYTES - whole.length))]);
    if (lane === 'data') {
      const bench = new Bench();
      if (padded[4] !== wire.REQUEST) {
        const opening = requestFrame(wire.readU16(padded, 6) & 0xff, 0, { method: 'POST', end: false });
        bench.lane.received(opening, opening.length);
      }
      bench.lane.received(padded, padded.length);
      assert.ok(bench.broken instanceof wire.ProtocolError);
    } else {
      const bench = new ControlBench();
      if (padded[4] !== wire.HELLO) bench.feed(HELLO);
      bench.feed(padded);
      assert.equal(bench.seen.at(-1)[0], 'broken');
    }
  });
}
