// What is read from a head beyond what a request of the platform has, and that odd heads do no harm.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress, createRequest, method, requestId, target, tlsFacts } from '../../src/fetch/request.mjs';
import { headOf, sourceOf } from './frames.mjs';

test('the request id is sixteen hexadecimal digits, highest first', () => {
  assert.equal(requestId(headOf({})), '0123456789abcdef');
});

test('an IPv4 client has an address and a port', () => {
  assert.deepEqual(clientAddress(headOf({})), { address: '192.0.2.7', port: 54321 });
});

test('IPv6 addresses are written as RFC 5952 says', () => {
  const cases = [
    ['20010db8000000000000000000000001', '2001:db8::1'],
    ['00000000000000000000000000000000', '::'],
    ['00000000000000000000000000000001', '::1'],
    ['20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1'],
    ['20010000000000010000000000000001', '2001:0:0:1::1'],
    ['fe800000000000000000000000000000', 'fe80::'],
    ['00010002000300040005000600070008', '1:2:3:4:5:6:7:8'],
  ];
  for (const [bytes, written] of cases) {
    const head = Buffer.from(headOf({}), 'latin1');
    head[2] = 6;
    Buffer.from(bytes, 'hex').copy(head, 8);
    assert.deepEqual(clientAddress(head.toString('latin1')), { address: written, port: 54321 });
  }
});

test('a client behind a Unix socket has no address', () => {
  const head = Buffer.from(headOf({}), 'latin1');
  head[2] = 0;
  assert.equal(clientAddress(head.toString('latin1')), null);
});

test('target, method and TLS facts are as they came', () => {
  const head = headOf({ target: '/a//b/../c?d', method: 'PURGE', tls: 'TLSv1.3 TLS_AES_128_GCM_SHA256' });
  assert.equal(target(head), '/a//b/../c?d');
  assert.equal(method(head), 'PURGE');
  assert.equal(tlsFacts(head), 'TLSv1.3 TLS_AES_128_GCM_SHA256');
  assert.equal(tlsFacts(headOf({})), '');
});

test('addresses that no URL can have never throw', () => {
  const url = (asked) => createRequest(headOf(asked), sourceOf(asked)).url;
  assert.equal(url({ authority: '' }), 'http://localhost/');
  assert.equal(url({ authority: 'a b' }), 'http://unknown.invalid/');
  assert.equal(url({ authority: 'user@host' }), 'http://unknown.invalid/');
  assert.equal(url({ authority: 'example.com:99999' }), 'http://unknown.invalid/');
  assert.equal(url({ target: '*', method: 'OPTIONS' }), 'http://example.com/*');
  assert.equal(url({ target: 'http://other.example/x', authority: 'other.example' }), 'http://other.example/x');
  assert.equal(url({ target: 'example.com:443', method: 'CONNECT' }), 'http://example.com/example.com:443');
  assert.equal(url({ target: '/caf\xc3\xa9?\xe9' }), 'http://example.com/caf%C3%A9?%E9');
});

test('a field is told apart from a value that holds the byte of its name', () => {
  const fields = [['X-Odd', 'a\x80\xc0b'], ['X-Also', '\x80'], ['Accept', 'text/html']];
  const { headers } = createRequest(headOf({ fields, target: '/\x80' }), sourceOf());
  assert.equal(headers.get('accept'), 'text/html');
  assert.equal(headers.get('cookie'), null);
  assert.equal(headers.get('x-odd'), 'a\x80\xc0b');
});

test('names that clients make up do not fill the memory of spellings', () => {
  for (let number = 0; number < 5000; number++) {
    const { headers } = createRequest(headOf({ fields: [[`X-Own-${number}`, `${number}`]] }), sourceOf());
    assert.equal(headers.get(`x-own-${number}`), `${number}`);
  }
  assert.equal(createRequest(headOf({ fields: [['Accept', '*/*']] }), sourceOf()).headers.get('ACCEPT'), '*/*');
});

test('cutting a head anywhere never throws', () => {
  const head = headOf({ target: '/a?b', fields: [['Accept', '*/*'], ['X-One', '1'], ['Cookie', 'a=b']] });
  for (let end = 0; end <= head.length; end++) {
    const request = createRequest(head.slice(0, end), sourceOf());
    void [request.url, request.method, request.headers.get('accept'), request.headers.get('x-one'), [...request.headers]];
    void [requestId(head.slice(0, end)), clientAddress(head.slice(0, end)), tlsFacts(head.slice(0, end))];
  }
});

test('the body of a GET is not given out', async () => {
  const asked = { method: 'GET', body: 'hidden' };
  const request = createRequest(headOf(asked), sourceOf(asked));
  assert.equal(request.body, null);
  assert.equal(await request.text(), '');
});

test('the signal is the one of the source, and cancelling a body that comes in pieces tells the source', async () => {
  const asked = { method: 'POST', body: 'abcdef', streaming: true };
  const source = sourceOf(asked);
  const request = createRequest(headOf(asked), source);
  source.controller.abort();
  assert.equal(request.signal.aborted, true);
  await /** @type {any} */ (request.body).cancel();
  assert.equal(source.cancelled, 1);
});

test('nothing of a body is read before somebody reads it', async () => {
  let reads = 0;
  const source = { ...sourceOf(), complete: null, read: async () => (reads++ === 0 ? new Uint8Array([65]) : null) };
  const request = createRequest(headOf({ method: 'POST' }), source);
  const { body } = request;
  await new Promise(setImmediate);
  assert.equal(reads, 0);
  assert.equal(await new Response(body).text(), 'A');
});

test('a body whose client is gone fails with the error of the source', async () => {
  const gone = new DOMException('The client is gone.', 'AbortError');
  const source = { ...sourceOf(), complete: null, read: () => Promise.reject(gone) };
  const make = () => createRequest(headOf({ method: 'POST' }), source);
  await assert.rejects(make().text(), gone);
  await assert.rejects(make().json(), gone);
  await assert.rejects(new Response(make().body).text(), gone);
});

test('bytes that others share are never detached by a stream', async () => {
  const pool = new Uint8Array([1, 2, 3, 4]);
  const whole = createRequest(headOf({ method: 'POST' }), { ...sourceOf(), complete: pool });
  for await (const _ of /** @type {any} */ (whole.clone().body));
  assert.deepEqual(new Uint8Array(await whole.arrayBuffer()), new Uint8Array([1, 2, 3, 4]));
  const pieces = [pool.subarray(0, 2), pool.subarray(2), null];
  const source = { ...sourceOf(), complete: null, read: async () => /** @type {any} */ (pieces.shift()) };
  for await (const _ of /** @type {any} */ (createRequest(headOf({ method: 'POST' }), source).body));
  assert.equal(pool.length, 4);
});
