// What `install` changes, and what it leaves alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announce, install } from '../../src/fetch/install.mjs';
import { createRequest } from '../../src/fetch/request.mjs';
import { Response as FastResponse } from '../../src/fetch/response.mjs';
import { headOf, sourceOf } from './frames.mjs';

const names = ['Request', 'Response', 'fetch'];
const before = Object.fromEntries(names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
const Platform = { Request: globalThis.Request, Response: globalThis.Response, Headers: globalThis.Headers };

test('the platform\'s Response stays the global one where that is asked for', () => {
  announce();
  install({ platformResponse: true });
  assert.equal(globalThis.Response, Platform.Response);
  assert.equal(new Response().constructor, Response);
  assert.equal(/** @type {any} */ (globalThis).onehop.Response, FastResponse);
  assert.ok(createRequest(headOf(), sourceOf()) instanceof Request);
});

test('a second install changes the Response and wraps nothing twice', () => {
  install();
  const { Request: once, fetch: fetchOnce } = globalThis;
  const { compileStreaming } = /** @type {any} */ (WebAssembly);
  install();
  assert.equal(globalThis.Request, once);
  assert.equal(globalThis.fetch, fetchOnce);
  assert.equal(/** @type {any} */ (WebAssembly).compileStreaming, compileStreaming);
  assert.equal(globalThis.Response, FastResponse);
});

test('the globals are described as before', () => {
  for (const name of names) {
    const { value, ...flags } = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(globalThis, name));
    const { writable = true, configurable, enumerable } = /** @type {PropertyDescriptor} */ (before[name]);
    assert.deepEqual(flags, { writable, configurable, enumerable }, name);
    assert.equal(typeof value, 'function');
  }
  assert.equal(Object.keys(globalThis).includes('onehop'), false);
});

test('instanceof holds both ways, before and after the classes were replaced', async () => {
  const ours = createRequest(headOf(), sourceOf());
  for (const request of [ours, new Request('http://a.example/'), new Platform.Request('http://a.example/')]) {
    assert.ok(request instanceof Request);
    assert.ok(request instanceof Platform.Request);
    assert.equal(request.constructor, Request);
  }
  for (const response of [new Response(), new Platform.Response(), await fetch('data:,x'), Response.json(1), FastResponse.error()]) {
    assert.ok(response instanceof Response);
    assert.ok(response instanceof Platform.Response);
    assert.equal(response.constructor, Response);
  }
  for (const headers of [ours.headers, new Response().headers, new Headers()]) {
    assert.ok(headers instanceof Headers);
    assert.equal(headers.constructor, Headers);
  }
  assert.equal(globalThis.Headers, Platform.Headers);
});

test('methods of the global Response work on responses of fetch', async () => {
  const response = await fetch('data:text/plain,hello');
  assert.equal(await Response.prototype.text.call(response.clone()), 'hello');
  assert.equal(Reflect.get(Response.prototype, 'status', response), 200);
  assert.equal(await new Response(response.body, response).text(), 'hello');
});

test('what a platform class of later versions has more works through one of its objects', async () => {
  Object.defineProperty(Platform.Response.prototype, 'invented', { value() { return this.text(); }, enumerable: true, configurable: true });
  try {
    const { borrowMembers } = await import('../../src/fetch/platform.mjs');
    const own = Object.create(Platform.Response.prototype);
    borrowMembers(own, Platform.Response.prototype, () => new Platform.Response('stands for it'));
    assert.equal(await own.invented(), 'stands for it');
    assert.equal(own.status, 200);
  } finally {
    Reflect.deleteProperty(Platform.Response.prototype, 'invented');
  }
});
