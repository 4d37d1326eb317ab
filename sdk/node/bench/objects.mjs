// What the fetch objects cost, ours against the platform's: nanoseconds for each operation.
// Run with the runtime in question: `node bench/objects.mjs [--json]`. Installs nothing, so both kinds stand side by side.
// An answer counts with its fields written to a buffer, which is when their text is put together.

import { toAnswer } from '../src/fetch/answer.mjs';
import { createRequest } from '../src/fetch/request.mjs';
import { Response as FastResponse } from '../src/fetch/response.mjs';

const PlatformResponse = globalThis.Response;
const ROUNDS = 12;
const WARM_UP_ROUNDS = 4;
const ROUND_MILLISECONDS = 60;

const INTERNED = { accept: 0, acceptEncoding: 1, acceptLanguage: 2, cookie: 23, host: 28, referer: 40, userAgent: 56 };
const fields = [
  [INTERNED.host, 'example.com'],
  [INTERNED.userAgent, 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'],
  [INTERNED.accept, 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'],
  [INTERNED.acceptEncoding, 'gzip, deflate, br, zstd'],
  [INTERNED.acceptLanguage, 'en-GB,en;q=0.9,de;q=0.8'],
  [INTERNED.referer, 'https://example.com/start'],
  [INTERNED.cookie, 'session=0123456789abcdef0123456789abcdef; theme=dark'],
];
const block = fields.map(([number, value]) => `${String.fromCharCode(0x80 | Number(number))}${value}\n`).join('');
const prefix = Buffer.alloc(44);
prefix[0] = 1;
prefix[1] = 1;
const head = `${prefix.toString('latin1')}/api/items/42?page=3&sort=name\nexample.com\nTLSv1.3\n\n${block}x-request-source:bench\n`;
const signal = new AbortController().signal;
const source = { complete: new Uint8Array(0), read: async () => null, cancel() {}, signal: () => signal };

const names = ['Host', 'User-Agent', 'Accept', 'Accept-Encoding', 'Accept-Language', 'Referer', 'Cookie'];
const platformFields = Object.fromEntries(fields.map(([, value], place) => [names[place], value]));
const headers = { 'content-type': 'text/html', 'cache-control': 'no-store' };
const text = '<p>hello</p>';
const data = { id: 42, name: 'item', tags: ['a', 'b'] };
const out = /** @type {any} */ (Buffer.alloc(4096));
let sink = 0;

/** @type {Record<string, [() => void, () => void]>} ours, the platform's */
const cases = {
  'request: create, url, method, one header': [
    () => {
      const request = createRequest(fresh(), source);
      sink += request.url.length + request.method.length + /** @type {string} */ (request.headers.get('accept')).length;
    },
    () => {
      const request = new Request('https://example.com/api/items/42?page=3&sort=name', { headers: platformFields });
      sink += request.url.length + request.method.length + /** @type {string} */ (request.headers.get('accept')).length;
    },
  ],
  'request: create, one header in full': [
    () => void (sink += /** @type {any} */ (createRequest(fresh(), source).headers.get('x-request-source')).length),
    () => void (sink += /** @type {any} */ (new Request('https://example.com/', { headers: platformFields }).headers.get('host')).length),
  ],
  'request: create, all headers': [
    () => void (sink += [...createRequest(fresh(), source).headers].length),
    () => void (sink += [...new Request('https://example.com/', { headers: platformFields }).headers].length),
  ],
  'new Response(text)': pair((Response) => new Response(text)),
  'new Response(text, {headers})': pair((Response) => new Response(text, { headers })),
  'new Response(text, {status, headers})': pair((Response) => new Response(text, { status: 201, headers })),
  'new Response(null, {status})': pair((Response) => new Response(null, { status: 204 })),
  'Response.json(data)': pair((Response) => Response.json(data)),
  'Response.json(data, {status})': pair((Response) => Response.json(data, { status: 201 })),
  'new Response(text, {headers: new Headers})': pair((Response) => new Response(text, { headers: new Headers(headers) })),
};

/** @param {(Response: any) => any} make */
function pair(make) {
  const both = [FastResponse, PlatformResponse].map((Response) => () => {
    const answer = toAnswer(make(Response));
    sink += out.latin1Write(answer.fields, 0) + answer.status;
  });
  return /** @type {[() => void, () => void]} */ (both);
}

/** A head that is a string of its own, as each request brings one. */
function fresh() {
  return bytes.latin1Slice(0, bytes.length);
}
const bytes = /** @type {any} */ (Buffer.from(head, 'latin1'));

const results = [];
for (const [name, [ours, platform]] of Object.entries(cases)) {
  results.push({ name, ours: measure(ours), platform: measure(platform) });
}
const baseline = measure(() => void (sink += fresh().length));
if (process.argv.includes('--json')) console.log(JSON.stringify({ runtime: runtime(), baseline, results }));
else {
  console.log(`${runtime()}; nanoseconds, ours / the platform's; making the head string (${baseline} ns) is in ours`);
  for (const { name, ours, platform } of results) {
    console.log(`${name.padEnd(44)} ${`${ours}`.padStart(7)} / ${`${platform}`.padStart(7)}`);
  }
}

function runtime() {
  return process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`;
}

/**
 * Nanoseconds of processor time of one call, collection of garbage included; the best round, since others work on
 * the machine too.
 * @param {() => void} call
 */
function measure(call) {
  let best = Infinity;
  let calls = 64;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let count = 0; count < calls; count++) call();
    const { user, system } = process.cpuUsage(before);
    const nanoseconds = (user + system) * 1000;
    if (round >= WARM_UP_ROUNDS) best = Math.min(best, nanoseconds / calls);
    calls = Math.max(64, Math.round((calls * ROUND_MILLISECONDS * 1e6) / Math.max(nanoseconds, 1e5)));
  }
  return Math.round(best);
}

process.exitCode = sink > 0 ? 0 : 1;
