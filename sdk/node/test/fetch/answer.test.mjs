// What the worker writes for responses of every kind, and the errors for what is none.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toAnswer } from '../../src/fetch/answer.mjs';
import { INTERNED } from '../../src/fetch/names.mjs';
import { Response as FastResponse, createUpgradeResponse, sendFile } from '../../src/fetch/response.mjs';

const PlatformResponse = globalThis.Response;
const kinds = [['ours', FastResponse], ['the platform\'s', PlatformResponse]];

/** The fields of an answer as names and values. @param {string} block */
function fieldsOf(block) {
  return block.split('\n').slice(0, -1).map((record) => {
    const first = record.charCodeAt(0);
    if (first >= 0xc0) return [INTERNED[first & 0x3f].toLowerCase(), record.slice(1)];
    assert.ok(first < 0x80, 'names are sent in lower case');
    return [record.slice(0, record.indexOf(':')), record.slice(record.indexOf(':') + 1)];
  });
}

/** @param {any} body */
async function bytesOf(body) {
  return body === null ? null : new Uint8Array(await new PlatformResponse(body).arrayBuffer());
}

const BODIES = [
  ['null', () => null, 0, null, null],
  ['a text', () => 'h\u00e9', 3, [0x68, 0xc3, 0xa9], 'text/plain;charset=UTF-8'],
  ['an empty text', () => '', 0, [], 'text/plain;charset=UTF-8'],
  ['half a surrogate', () => '\ud800', 3, [0xef, 0xbf, 0xbd], 'text/plain;charset=UTF-8'],
  ['bytes', () => new Uint8Array([1, 2, 3]).subarray(1), 2, [2, 3], null],
  ['a buffer', () => Buffer.from('ab'), 2, [97, 98], null],
  ['an ArrayBuffer', () => new Uint8Array([9]).buffer, 1, [9], null],
  ['a DataView', () => new DataView(new Uint8Array([9, 8]).buffer, 1), 1, [8], null],
  ['form values', () => new URLSearchParams({ a: 'b' }), 3, [97, 61, 98], 'application/x-www-form-urlencoded;charset=UTF-8'],
];

for (const [kind, Response] of kinds) {
  test(`a body of each kind becomes an answer, from a response of ${kind}`, async () => {
    for (const [name, body, length, bytes, type] of BODIES) {
      const answer = toAnswer(new Response(body()));
      assert.equal(answer.status, 200, name);
      if (process.versions.bun === undefined || Response === FastResponse) {
        const given = fieldsOf(answer.fields).find(([field]) => field === 'content-type')?.[1] ?? null;
        assert.equal(given?.toLowerCase(), type?.toLowerCase(), name);
      }
      const counted = answer.body === null || answer.body instanceof Uint8Array;
      assert.equal(answer.length, counted ? length : -1, name);
      const sent = await bytesOf(answer.body);
      assert.deepEqual(sent === null ? null : [...sent], bytes, name);
      assert.equal(answer.file, null);
      assert.equal(answer.upgrade, null);
    }
  });

  test(`fields keep their values, and each Set-Cookie its own record, from a response of ${kind}`, () => {
    const headers = [['Set-Cookie', 'a=1'], ['X-Own', 'Caf\xe9'], ['Set-Cookie', 'b=2'], ['Vary', 'Accept'], ['vary', 'Origin']];
    const fields = fieldsOf(toAnswer(new Response(null, { status: 404, headers })).fields);
    assert.deepEqual(fields.filter(([name]) => name === 'set-cookie'), [['set-cookie', 'a=1'], ['set-cookie', 'b=2']]);
    assert.equal(fields.filter(([name]) => name === 'vary').map(([, value]) => value).join(', '), 'Accept, Origin');
    assert.deepEqual(fields.find(([name]) => name === 'x-own'), ['x-own', 'Caf\xe9']);
  });

  test(`fields that were changed later are what is sent, from a response of ${kind}`, () => {
    const response = new Response('x', { headers: { a: '1', b: '2' } });
    response.headers.set('A', '3');
    response.headers.delete('b');
    response.headers.append('set-cookie', 'c');
    const fields = fieldsOf(toAnswer(response).fields).filter(([name]) => name !== 'content-type');
    assert.deepEqual(fields, [['a', '3'], ['set-cookie', 'c']]);
  });

  test(`a response of ${kind} whose body is gone is an error that says so`, async () => {
    const used = new Response('x');
    await used.text();
    const locked = new Response('x');
    locked.body?.getReader();
    const twice = new Response('x');
    toAnswer(twice);
    for (const response of [used, locked, twice]) assert.throws(() => toAnswer(response), /used already/);
  });

  test(`a response of ${kind} without a body may be the answer again and again`, () => {
    const response = new Response(null, { status: 304 });
    toAnswer(response);
    assert.equal(toAnswer(response).status, 304);
  });

  test(`a stream is passed on with the length that Content-Length says, from a response of ${kind}`, () => {
    const stream = () => new ReadableStream({ start: (controller) => controller.close() });
    assert.equal(toAnswer(new Response(stream())).length, -1);
    const answer = toAnswer(new Response(stream(), { headers: { 'content-length': '42' } }));
    assert.equal(answer.length, 42);
    assert.ok(answer.body instanceof ReadableStream);
    assert.equal(toAnswer(new Response(stream(), { headers: { 'content-length': '4, 2' } })).length, -1);
  });

  test(`the length of what HEAD does not send is Content-Length, from a response of ${kind}`, () => {
    const answer = toAnswer(new Response(null, { headers: { 'Content-Length': '1000' } }));
    assert.equal(answer.body, null);
    assert.equal(answer.length, 1000);
  });

  test(`a clone that is read leaves the answer whole, from a response of ${kind}`, async () => {
    const response = new Response('text');
    assert.equal(await response.clone().text(), 'text');
    assert.equal(new TextDecoder().decode(/** @type {any} */ (await bytesOf(toAnswer(response).body))), 'text');
  });

  test(`the body of a response of ${kind} can be the body of another`, async () => {
    const inner = new Response('inner', { headers: { a: 'b' } });
    const answer = toAnswer(new FastResponse(inner.body, inner));
    assert.equal(new TextDecoder().decode(/** @type {any} */ (await bytesOf(answer.body))), 'inner');
    assert.ok(fieldsOf(answer.fields).some(([name]) => name === 'a'));
  });

  test(`a value that the worker protocol does not carry is refused, from a response of ${kind}`, () => {
    const later = new Response('x');
    later.headers.set('x-own', 'a\x7f');
    const all = [later, new Response('x', { headers: { 'x-own': 'a\x01b' } }), new Response('x', { headers: [['x-own', '\x1f.']] })];
    if (process.versions.bun === undefined) all.push(new Response('x', { headers: new Headers({ 'x-own': 'a\x0bb' }) }));
    for (const response of all) assert.throws(() => toAnswer(response), /x-own has a control character/);
    assert.equal(toAnswer(new Response('x', { headers: { 'x-own': 'a\tb\xff' } })).status, 200);
  });

  test(`an error response of ${kind} is no answer`, () => {
    assert.throws(() => toAnswer(Response.error()), /Response\.error\(\)/);
  });
}

test('a body that somebody has begun to look at goes through its stream', async () => {
  const response = new FastResponse('text');
  void response.body;
  const answer = toAnswer(response);
  assert.equal(new TextDecoder().decode(/** @type {any} */ (await bytesOf(answer.body))), 'text');
});

test('a response that was sent counts as used', async () => {
  const response = new FastResponse('x');
  toAnswer(response);
  assert.equal(response.bodyUsed, true);
  await assert.rejects(response.text(), TypeError);
  assert.throws(() => response.clone(), TypeError);
});

test('a Blob has a length and a type', () => {
  const answer = toAnswer(new FastResponse(new Blob(['blob'], { type: 'text/x-blob' })));
  assert.equal(answer.length, 4);
  assert.match(fieldsOf(answer.fields)[0].join(': '), /^content-type: text\/x-blob/);
});

test('redirects and json are answers', () => {
  const redirect = toAnswer(FastResponse.redirect('http://a.example/x', 308));
  assert.deepEqual([redirect.status, fieldsOf(redirect.fields)], [308, [['location', 'http://a.example/x']]]);
  const json = toAnswer(FastResponse.json({ a: 1 }));
  assert.deepEqual([json.status, json.body, json.length], [200, '{"a":1}', -1]);
});

test('what is no response is refused with advice', () => {
  const cases = [
    [undefined, /return/], [null, /null/], ['text', /new Response\(text\)/], [{ a: 1 }, /Response\.json/], [5, /a number/],
    [[1], /an array/], [Promise.resolve(), /await/], [() => {}, /a function/], [new Map(), /class Map/], [Symbol('s'), /a symbol/],
    [{ status: 200 }, /an object/], [new PlatformResponse('x').body, /ReadableStream/],
  ];
  for (const [value, text] of cases) assert.throws(() => toAnswer(value), { name: 'TypeError', message: text });
});

test('the response of a library with a class of its own is an answer', () => {
  const headers = new Headers({ a: 'b' });
  const answer = toAnswer({ status: 201, headers, body: null, bodyUsed: false, type: 'default' });
  assert.deepEqual([answer.status, answer.fields, answer.body], [201, 'a:b\n', null]);
});

test('a stream of a library with a class of its own is passed on, read as it is asked for, and cancelled', async () => {
  let reads = 0;
  let reason;
  const foreign = {
    getReader: () => ({
      read: async () => (reads++ < 2 ? { done: false, value: new Uint8Array([64 + reads]) } : { done: true }),
      cancel: async (given) => { reason = given; },
    }),
  };
  const make = () => toAnswer({ status: 200, headers: new Headers({ 'content-length': '2' }), body: foreign, bodyUsed: false });
  const answer = make();
  assert.equal(answer.length, 2);
  await new Promise(setImmediate);
  assert.equal(reads, 0);
  assert.equal(await new PlatformResponse(/** @type {any} */ (answer.body)).text(), 'AB');
  await /** @type {ReadableStream} */ (make().body).cancel('gone');
  assert.equal(reason, 'gone');
});

test('an upgrade answers with 101 and keeps its function', () => {
  const onTunnel = () => {};
  const response = createUpgradeResponse({ Upgrade: 'websocket', 'Sec-WebSocket-Accept': 'x' }, onTunnel);
  assert.ok(response instanceof FastResponse);
  assert.equal(response.status, 101);
  const answer = toAnswer(response);
  assert.equal(answer.upgrade, onTunnel);
  assert.deepEqual(fieldsOf(answer.fields), [['upgrade', 'websocket'], ['sec-websocket-accept', 'x']]);
  assert.throws(() => createUpgradeResponse({}, /** @type {any} */ (undefined)), TypeError);
  assert.throws(() => createUpgradeResponse({ 'a b': 'c' }, onTunnel), TypeError);
});

test('a file answers with its path and range', () => {
  const answer = toAnswer(sendFile('a/b.txt', { headers: { etag: '"x"' }, offset: 5, length: 10, status: 206 }));
  assert.deepEqual(answer.file, { path: 'a/b.txt', offset: 5, length: 10 });
  assert.deepEqual([answer.status, answer.body, fieldsOf(answer.fields)], [206, null, [['etag', '"x"']]]);
  assert.deepEqual(toAnswer(sendFile('x')).file, { path: 'x', offset: 0, length: -1 });
  for (const path of ['', '/etc/passwd', 'a\0b', 'a/', '..', '../a', 'a/../../b']) {
    const { status, file } = toAnswer(sendFile(path));
    assert.deepEqual({ status, file }, { status: 404, file: null }, path);
  }
  assert.throws(() => sendFile(/** @type {any} */ (5)), TypeError);
  for (const options of [{ offset: -1 }, { length: 1.5 }, { status: 99 }]) assert.throws(() => sendFile('x', options), RangeError);
});

test('a subclass of the fast Response is an answer', () => {
  class Page extends FastResponse {
    constructor(text) {
      super(`<p>${text}</p>`, { headers: { 'content-type': 'text/html' } });
    }
  }
  assert.equal(toAnswer(new Page('x')).body, '<p>x</p>');
});
