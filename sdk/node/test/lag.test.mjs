/** How long the event loop stands still, as the server hears of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Lag } from '../src/lag.mjs';

const block = (milliseconds) => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

function watched() {
  const lag = new Lag();
  const seen = [];
  lag.onStall = (duration, endedAgo) => seen.push({ duration, endedAgo });
  lag.watch({ begun: 0, inFlight: 0 });
  return { lag, seen };
}

test('a stall is reported once, to within a tick, as soon as it is over', async () => {
  const { lag, seen } = watched();
  block(60);
  // Timers that are due run in their order.
  while (seen.length === 0) await new Promise((resolve) => { setTimeout(resolve, 1); });
  assert.ok(seen[0].duration >= 50_000, `${seen[0].duration}`);
  assert.ok(seen[0].endedAgo < seen[0].duration);
  assert.ok(lag.take() >= 35_000);
});

test('what a handler computes before its first await is reported in full, and no second time', async () => {
  const { lag, seen } = watched();
  const from = performance.now();
  block(60);
  lag.stalled(from, performance.now());
  assert.equal(seen.length, 1);
  assert.ok(seen[0].duration >= 59_000, `${seen[0].duration}`);
  await new Promise((resolve) => { setTimeout(resolve, 1); });
  const sum = seen.reduce((total, { duration }) => total + duration, 0);
  assert.ok(sum <= (performance.now() - from) * 1000, 'no moment counts twice');
});

test('after the last request the timer stops at its second tick', async () => {
  const lag = new Lag();
  let reads = 0;
  const runtime = {
    inFlight: 0,
    get begun() {
      // Two reads in the first tick, which finds a new request, and one in the second.
      reads += 1;
      return 1;
    },
  };
  lag.watch(runtime);
  while (lag.watching) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(reads, 3);
});

test('a short delay is none', () => {
  const { lag, seen } = watched();
  lag.stalled(performance.now() - 4, performance.now());
  assert.deepEqual(seen, []);
});
