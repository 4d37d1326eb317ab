// Made-up heads against the platform: the same addresses and the same fields. The seed is fixed, so that a failure
// comes again; ONEHOP_SEED sets another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INTERNED } from '../../src/fetch/names.mjs';
import { createRequest } from '../../src/fetch/request.mjs';
import { headOf, sourceOf } from './frames.mjs';

const ADDRESSES = 20_000;
const BLOCKS = 3_000;
const seed = Number(process.env.ONEHOP_SEED ?? 20_260_101);

const PIECES = [
  '/', '/', '/', '.', '..', '%2e', '%2E', '%2f', '%', '%4', 'a', 'Z', '0', '-', '_', '~', '!', '$', '&', "'", '(', ')', '*', '+', ',', ';', '=', ':', '@',
  '?', '#', '[', ']', '{', '}', '|', '\\', '^', '`', '"', '<', '>', ' ', '\t', '\x7f', 'caf',
];

test(`made-up targets have the address that URL gives them (seed ${seed})`, () => {
  const next = generator(seed);
  for (let round = 0; round < ADDRESSES; round++) {
    let target = '/';
    for (let length = next(9); length > 0; length--) target += PIECES[next(PIECES.length)];
    const tls = next(2) === 0 ? '' : 'TLSv1.3';
    const expected = new URL(`${tls === '' ? 'http' : 'https'}://example.com${target}`).href;
    assert.equal(createRequest(headOf({ target, tls }), sourceOf()).url, expected, JSON.stringify(target));
  }
});

test(`made-up fields are those of the platform (seed ${seed})`, () => {
  const next = generator(seed);
  for (let round = 0; round < BLOCKS; round++) {
    const fields = Array.from({ length: next(12) }, () => /** @type {[string, string]} */ ([nameFrom(next), valueFrom(next)]));
    const ours = createRequest(headOf({ fields }), sourceOf()).headers;
    const platform = new Headers(fields);
    const asked = [...fields.map(([name]) => name), nameFrom(next), nameFrom(next)];
    for (const name of asked) {
      assert.equal(ours.get(name), platform.get(name), name);
      assert.equal(ours.has(name), platform.has(name), name);
    }
    for (let change = next(3); change > 0; change--) {
      const [name, value] = [nameFrom(next), valueFrom(next)];
      const how = /** @type {'set' | 'append' | 'delete'} */ (['set', 'append', 'delete'][next(3)]);
      ours[how](name, value);
      platform[how](name, value);
      assert.equal(ours.get(name), platform.get(name), `${how} ${name}`);
    }
    assert.deepEqual([...ours].sort(), [...platform].sort());
    assert.deepEqual([...new Headers(ours)].sort(), [...new Headers([...platform])].sort());
  }
});

/** @param {(below: number) => number} next */
function nameFrom(next) {
  const name = next(3) === 0 ? `X-${'abc'.charAt(next(3))}` : INTERNED[next(INTERNED.length) % (next(2) === 0 ? 8 : 64)];
  return [name, name, name.toLowerCase(), name.toUpperCase()][next(4)];
}

/** @param {(below: number) => number} next */
function valueFrom(next) {
  let value = '';
  for (let length = next(6); length > 0; length--) value += 'ab:, \x80\xc0\xd6\xff;='.charAt(next(12));
  return value.trim();
}

/** Numbers that look random and are the same each time (mulberry32). @param {number} state */
function generator(state) {
  return (/** @type {number} */ below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
