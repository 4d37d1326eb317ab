/**
 * What a request costs a worker: a scripted server in this process keeps 1, 8 and 64 requests in flight on one lane and
 * prints the worker's CPU time for each (all its threads), and the wall time.
 *
 *   node bench/lane.mjs [--seconds 2] [--runtime node] [--handler sync|async|json|post|headers] [--profile FOLDER]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { creditFrame, dataFrame, requestFrame, startWorker, wire } from '../test/support/peer.mjs';

const HANDLERS = {
  sync: 'export default { fetch() { return new onehop.Response("hello, world") } }',
  async: 'export default { async fetch() { return new onehop.Response("hello, world") } }',
  json: 'export default { fetch() { return onehop.Response.json({ hello: "world" }) } }',
  url: 'export default { fetch(request) { return new onehop.Response(new URL(request.url).pathname) } }',
  headers: 'export default { fetch(r) { return new onehop.Response(r.headers.get("user-agent"), { headers: { "content-type": "text/plain" } }) } }',
  post: 'export default { async fetch(request) { return new onehop.Response(await request.text()) } }',
  als: `import { AsyncLocalStorage } from 'node:async_hooks'; const als = new AsyncLocalStorage();
    export default { fetch() { return als.run(1, async () => new onehop.Response("hello, world")) } }`,
};
const FIELDS = [
  ['Host', 'example.com'], ['User-Agent', 'wrk/4.2.0'], ['Accept', '*/*'], ['Accept-Encoding', 'gzip, deflate, br'],
];
const WARM_MILLISECONDS = 700;
const PIECE_BYTES = 65_536;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    runtime: { type: 'string' },
    handler: { type: 'string', default: 'sync' },
    profile: { type: 'string' },
    bodies: { type: 'boolean', default: false },
    inflight: { type: 'string', default: '1,8,64' },
  },
});
if (values.runtime) process.env.ONEHOP_TEST_RUNTIME = values.runtime;

async function measure(inFlight) {
  const peer = await startWorker(HANDLERS[values.handler], { nodeArgs: profiling() });
  await peer.greet({ laneWindow: 1_000_000 });
  const load = new Load(peer.lane.socket, inFlight, values.handler === 'post');
  load.start();
  await pause(WARM_MILLISECONDS);
  const before = { answers: load.answers, cpu: cpuMicroseconds(peer.child.pid), at: performance.now() };
  await pause(Number(values.seconds) * 1000);
  const answers = load.answers - before.answers;
  const cpu = (cpuMicroseconds(peer.child.pid) - before.cpu) / answers;
  const wall = ((performance.now() - before.at) * 1000) / answers;
  console.log(
    `${values.handler.padEnd(8)} ${String(inFlight).padStart(3)} in flight: ${cpu.toFixed(2)} us of the worker's CPU, `
      + `${wall.toFixed(2)} us wall per request (${answers} answers)`,
  );
  load.stop();
  await retire(peer);
}

/** Keeps slots busy: as many new requests as answers came, in one write. */
class Load {
  answers = 0;
  #socket;
  #frames = [];
  #rest = Buffer.alloc(0);
  #stopped = false;

  constructor(socket, inFlight, post) {
    this.#socket = socket;
    for (let slot = 0; slot < inFlight; slot += 1) {
      this.#frames.push(requestFrame(slot, 0, {
        target: '/api/hello?name=world', fields: FIELDS, ...(post ? { method: 'POST', body: '{"hello":"world"}' } : {}),
      }));
    }
    socket.removeAllListeners('data');
    socket.on('data', (bytes) => this.#read(bytes));
  }

  start() {
    this.#socket.write(Buffer.concat(this.#frames));
  }

  stop() {
    this.#stopped = true;
  }

  #read(bytes) {
    const input = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    const next = [];
    let at = 0;
    while (input.length - at >= wire.FRAME_HEAD_BYTES) {
      const end = at + wire.FRAME_HEAD_BYTES + wire.readU32(input, at);
      if (end > input.length) break;
      if (input[at + 4] === wire.RESPONSE) next.push(this.#following(input, at));
      at = end;
    }
    this.#rest = Buffer.from(input.subarray(at));
    if (next.length > 0) next.push(creditFrame(wire.LANE_SLOT, 0, next.length * 64));
    if (next.length > 0 && !this.#stopped) this.#socket.write(Buffer.concat(next));
  }

  #following(input, at) {
    if (wire.readU16(input, at + wire.FRAME_HEAD_BYTES) !== 200) throw new Error('not answered with 200');
    this.answers += 1;
    const frame = this.#frames[wire.readU16(input, at + 6)];
    wire.writeU32(frame, 8, wire.readU32(frame, 8) + 1);
    return frame;
  }
}

/** Large bodies, both ways: MiB per second and CPU for each MiB. */
async function measureBodies() {
  const source = `
    const piece = new Uint8Array(${PIECE_BYTES});
    export default { async fetch(request) {
      if (request.method === 'POST') {
        let bytes = 0;
        for await (const part of request.body) bytes += part.length;
        return new onehop.Response(String(bytes));
      }
      let left = 2048;
      return new onehop.Response(new ReadableStream({ pull(c) { c.enqueue(piece); if (--left === 0) c.close(); } }));
    } };`;
  const peer = await startWorker(source, { nodeArgs: profiling() });
  await peer.greet({ streamWindow: 262_144, laneWindow: 4_194_304 });
  const mebibytes = 128;
  await timed(peer, 'answer', mebibytes, async () => {
    peer.lane.send(requestFrame(0, 0));
    await peer.lane.answer(0);
  });
  await timed(peer, 'upload', mebibytes, () => upload(peer.lane, mebibytes));
  await retire(peer);
}

/** The worker's own end writes its profile. */
async function retire(peer) {
  peer.control.send(Buffer.from([0, 0, 0, 0, wire.RETIRE, 0, 0, 0, 0, 0, 0, 0]));
  await pause(300);
  await peer.stop();
}

async function timed(peer, name, mebibytes, run) {
  const cpu = cpuMicroseconds(peer.child.pid);
  const at = performance.now();
  await run();
  const seconds = (performance.now() - at) / 1000;
  console.log(
    `${name}: ${(mebibytes / seconds).toFixed(0)} MiB/s, `
      + `${((cpuMicroseconds(peer.child.pid) - cpu) / mebibytes).toFixed(0)} us of the worker's CPU per MiB`,
  );
}

async function upload(lane, mebibytes) {
  const piece = Buffer.alloc(PIECE_BYTES);
  lane.send(requestFrame(0, 1, { method: 'POST', end: false }));
  let credit = 262_144;
  for (let left = mebibytes * 16; left > 0; left -= 1) {
    while (credit < PIECE_BYTES) credit += (await lane.takeKind(wire.CREDIT, 0)).payload.readUInt32LE(0);
    lane.send(dataFrame(0, 1, piece, left === 1));
    credit -= PIECE_BYTES;
    lane.frames = lane.frames.filter((frame) => frame.slot !== wire.LANE_SLOT);
  }
  const answer = await lane.answer(0);
  if (answer.body.toString() !== String(mebibytes * 1_048_576)) throw new Error(`got ${answer.body}`);
}

function profiling() {
  return values.profile ? ['--cpu-prof', `--cpu-prof-dir=${values.profile}`] : [];
}

function cpuMicroseconds(pid) {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  }
  return nanoseconds / 1000;
}

function pause(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

if (values.bodies) {
  await measureBodies();
} else {
  for (const inFlight of values.inflight.split(',')) await measure(Number(inFlight));
}
