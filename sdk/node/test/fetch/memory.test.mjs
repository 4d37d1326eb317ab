// What an application keeps of a request must not keep the request's whole head.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRequest } from '../../src/fetch/request.mjs';
import { headOf, sourceOf } from './frames.mjs';

const KEPT = 2000;
const HEAD_BYTES = 16_384;

/** Bytes of the heap for each of KEPT values. @param {(request: Request, number: number) => unknown} take */
function bytesKept(take) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const kept = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let number = 0; number < KEPT; number++) {
    const fields = [['X-Long', 'x'.repeat(HEAD_BYTES)], ['User-Agent', `somebody's client, number ${number}`], ['X-Session', `session ${number} of many`]];
    // A head is one flat string of its own, as it is when it has just been decoded.
    const head = Buffer.from(headOf({ target: `/somewhere/in/the/application?n=${number}`, fields }), 'latin1').toString('latin1');
    kept.push(take(createRequest(head, sourceOf()), number));
  }
  collect();
  const after = process.memoryUsage().heapUsed;
  assert.equal(kept.length, KEPT);
  return (after - before) / KEPT;
}

const takes = {
  'an interned field': (request) => request.headers.get('user-agent'),
  'a field in full': (request) => request.headers.get('x-session'),
  'the address': (request) => request.url,
  'fields after all were read': (request) => {
    void [...request.headers];
    return request.headers.get('x-session');
  },
};

for (const [what, take] of Object.entries(takes)) {
  test(`keeping ${what} of a request does not keep its head`, { skip: process.versions.bun && 'the collector of V8' }, () => {
    const bytes = bytesKept(take);
    assert.ok(bytes < HEAD_BYTES / 10, `${Math.round(bytes)} bytes for each`);
  });
}

test('names of fields that are remembered do not keep their heads', { skip: process.versions.bun && 'the collector of V8' }, () => {
  const bytes = bytesKept((_, number) => {
    const fields = [['X-Long', 'x'.repeat(HEAD_BYTES)], [`X-Made-Up-By-A-Client-${number}`, '1']];
    const head = Buffer.from(headOf({ fields, authority: `host-${number}.example` }), 'latin1').toString('latin1');
    const request = createRequest(head, sourceOf());
    void request.url;
    return request.headers.get('missing');
  });
  assert.ok(bytes < HEAD_BYTES / 10, `${Math.round(bytes)} bytes for each`);
});
