import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pieces } from '../src/pieces.mjs';

const SEED = 20261128;

/** The same numbers in each run. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test(`pieces leave in their order, however they are cut (seed ${SEED})`, () => {
  const next = random(SEED);
  for (let round = 0; round < 500; round += 1) {
    const pieces = new Pieces();
    const given = [];
    const taken = [];
    for (let step = 0; step < 40; step += 1) {
      if (next(2) === 0) {
        const piece = Uint8Array.from({ length: next(20) }, () => next(256));
        pieces.push(piece);
        given.push(...piece);
      } else {
        const count = next(pieces.bytes + 1);
        const buffer = new Uint8Array(count + 2);
        pieces.moveInto(buffer, 1, count);
        assert.deepEqual([buffer[0], buffer[count + 1]], [0, 0], 'nothing is written beside them');
        taken.push(...buffer.subarray(1, count + 1));
      }
      assert.equal(pieces.bytes, given.length - taken.length);
    }
    assert.deepEqual([...taken, ...pieces.joined()], given);
    pieces.clear();
    assert.deepEqual([pieces.bytes, pieces.joined().length], [0, 0]);
  }
});
