// Cases about bodies: of requests whose body came whole or in pieces, and of responses of every kind.

const bytes = new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]);
const broken = new Uint8Array([0x61, 0xff, 0xc3, 0x28, 0xe2, 0x82, 0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0x80]);
const boundary = [['Content-Type', 'multipart/form-data; boundary=b']];
const form = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name="f"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\nfile\r\n--b--\r\n';
const urlencoded = [['Content-Type', 'application/x-www-form-urlencoded;charset=UTF-8']];

const ASKED = {
  'no body': { method: 'POST' },
  'an empty GET': {},
  text: { method: 'POST', body: 'hello world', fields: [['Content-Type', 'text/plain;charset=UTF-8']] },
  json: { method: 'PUT', body: '{"a":[1,2,{"b":"\u20ac"}]}', fields: [['content-type', 'application/json']] },
  'broken json': { method: 'POST', body: '{"a":' },
  'a byte order mark': { method: 'POST', body: bytes },
  'broken utf-8': { method: 'POST', body: broken },
  form: { method: 'POST', body: 'a=1&b=2&a=3', fields: urlencoded },
  multipart: { method: 'POST', body: form, fields: boundary },
  'large text': { method: 'POST', body: 'x\u20ac'.repeat(50_000) },
};

const BODIES = {
  null: () => null, undefined: () => undefined, '""': () => '', text: () => 'hello', 'text with a surrogate': () => 'a\ud800b', 'text with a mark': () => '\ufeff{}',
  json: () => '{"a":1}', Uint8Array: () => bytes, Buffer: () => Buffer.from('buffer'), 'a part of an array': () => new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
  Uint16Array: () => new Uint16Array([1, 2]), DataView: () => new DataView(new ArrayBuffer(2)), ArrayBuffer: () => new Uint8Array([1, 2]).buffer, Blob: () => new Blob(['blob'], { type: 'text/x-blob' }),
  'Blob without a type': () => new Blob(['blob']), URLSearchParams: () => new URLSearchParams({ a: 'b c' }), stream: () => streamOf('ab', 'cd'), 'empty stream': () => streamOf(),
  number: () => 5, zero: () => 0, true: () => true, object: () => ({ a: 1 }), array: () => [1, 2], Date: () => new Date(0).toISOString(), 'locked stream': () => { const s = streamOf('a'); s.getReader(); return s; },
  'failing stream': () => new ReadableStream({ pull(c) { c.error(new Error('stream failed')); } }), symbol: () => Symbol('s'),
};

const USES = [
  (o) => o.text(), (o) => o.json(), (o) => o.arrayBuffer(), (o) => o.bytes(), (o) => o.blob(), (o) => o.formData(), (o) => o.bodyUsed, (o) => o.body === null,
  async (o) => { await o.text(); return o.bodyUsed; },
  async (o) => { await o.text(); return o.text(); },
  async (o) => { await o.json().catch(() => {}); return [o.bodyUsed, await o.json()]; },
  async (o) => { await o.text(); return o.clone(); },
  async (o) => { await o.text(); return [o.body === null, o.body?.locked]; },
  async (o) => { const c = o.clone(); return [await o.text(), await c.text()]; },
  async (o) => { const c = o.clone(); return [await c.json(), await o.json()]; },
  async (o) => { const c = o.clone().clone(); return [await c.text(), o.bodyUsed, c.bodyUsed]; },
  (o) => { const c = o.clone(); return [c === o, c.constructor === o.constructor, [...c.headers].length === [...o.headers].length]; },
  (o) => { o.text(); return o.bodyUsed; },
  (o) => { o.text(); return o.json(); },
  (o) => o.text() instanceof Promise,
];

const STREAM_USES = [
  (o, w) => w.read(o.body),
  async (o, w) => { await w.read(o.body); return [o.bodyUsed, await o.text()]; },
  (o) => { o.body?.getReader(); return o.bodyUsed; },
  (o) => { o.body?.getReader(); return o.text(); },
  (o) => { o.body?.getReader(); return o.clone(); },
  (o) => { const r = o.body?.getReader(); r?.releaseLock(); return o.text(); },
  (o) => { const r = o.body?.getReader(); r?.read(); return o.bodyUsed; },
  async (o) => { const r = o.body?.getReader(); await r?.read(); r?.releaseLock(); return o.text(); },
  async (o) => { await o.body?.cancel(); return [o.bodyUsed, await o.text()]; },
  (o) => { o.body; return o.text(); },
  (o) => o.body === o.body,
  (o) => `${o.body}`,
  (o, w) => { const [a, b] = o.body?.tee() ?? []; return a && Promise.all([w.read(a), w.read(b)]); },
  async (o, w) => { const c = o.clone(); return [await w.read(c.body), await w.read(o.body), o.bodyUsed]; },
  (o) => { const before = o.body; o.clone(); return before === o.body; },
  (o) => new Response(o.body).text(),
  (o, w) => w.read(o.body?.pipeThrough(new TransformStream()) ?? null),
  async (o) => { const all = []; for await (const piece of o.body ?? []) all.push(...piece); return all.length; },
  async (o) => { const r = o.body?.getReader({ mode: 'byob' }); const s = await r?.read(new Uint8Array(4)); return s && [s.done, s.value.length]; },
  async (o) => { const r = o.body?.getReader(); while (r && !(await r.read()).done); return [o.body?.locked, o.bodyUsed]; },
];

export const cases = [
  ...Object.entries(ASKED).flatMap(([kind, asked]) =>
    USES.map((use) => [`request with ${kind}: ${text(use)}`, (w) => use(w.request(asked))]),
  ),
  ...['text', 'json', 'multipart', 'large text', 'broken utf-8'].flatMap((kind) =>
    USES.map((use) => [`request with ${kind} in pieces: ${text(use)}`, (w) => use(w.request({ ...ASKED[kind], streaming: true }))]),
  ),
  ...['text', 'no body'].flatMap((kind) =>
    STREAM_USES.map((use) => [`request with ${kind}: ${text(use)}`, (w) => use(w.request(ASKED[kind]), w)]),
  ),
  ...STREAM_USES.map((use) => [`request with text in pieces: ${text(use)}`, (w) => use(w.request({ ...ASKED.text, streaming: true }), w)]),
  ...Object.entries(BODIES).flatMap(([kind, body]) => [
    [`new Response(${kind}).headers`, () => [...new Response(body()).headers]],
    [`new Response(${kind}, { headers }).headers`, () => [...new Response(body(), { headers: { 'Content-Type': 'own/type', a: 'b' } }).headers]],
    ...USES.map((use) => [`new Response(${kind}): ${text(use)}`, () => use(new Response(body()))]),
  ]),
  ...['text', 'Uint8Array', 'stream', 'null'].flatMap((kind) =>
    STREAM_USES.map((use) => [`new Response(${kind}): ${text(use)}`, (w) => use(new Response(BODIES[kind]()), w)]),
  ),
  ['a form as body', async () => [...(await new Response(formOf()).formData())]],
  ['a form as body has a type', () => /^multipart\/form-data; boundary=/.test(new Response(formOf()).headers.get('content-type') ?? '')],
  ['bytes are copied', async () => { const b = new Uint8Array([1, 2]); const r = new Response(b); b[0] = 9; return r.bytes(); }],
  ['blob() has the type of the headers', async () => (await new Response('x', { headers: { 'content-type': 'a/b' } }).blob()).type],
  ['blob() has the type that was set later', async () => { const r = new Response('x'); r.headers.set('content-type', 'c/d'); return (await r.blob()).type; }],
  ['blob() has no type that was deleted', async () => { const r = new Response('x'); r.headers.delete('content-type'); return (await r.blob()).type; }],
  ['formData() after the type was set', async () => { const r = new Response('a=1'); r.headers.set('content-type', 'application/x-www-form-urlencoded'); return [...(await r.formData())]; }],
  ['formData() of a form', async () => [...(await new Response(form, { headers: boundary }).formData())].map(([name, value]) => [name, typeof value])],
  ['blob() of a request', async (w) => (await w.request(ASKED.json).blob()).type],
  ['blob() of a request without a type', async (w) => (await w.request(ASKED['a byte order mark']).blob()).type],
];

/** @param {string[]} pieces */
function streamOf(...pieces) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

function formOf() {
  const data = new FormData();
  data.append('a', '1');
  data.append('b', 'two');
  return data;
}

/** @param {(...given: any[]) => unknown} expression */
function text(expression) {
  return expression.toString().replace(/^(async )?\(o(, w)?\) => /, '');
}
