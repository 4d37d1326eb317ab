// Finds how many steps of `burnt` take 100 us on this machine, and prints them with their answer.

import { burnt } from "./work.mjs";

const WANTED_MS = 0.1;
const PROBE_ROUNDS = 100_000;
const PROBES = 200;

const once = () => {
  const begun = performance.now();
  burnt(PROBE_ROUNDS);
  return performance.now() - begun;
};
// The fastest of many: whatever else ran on the core only makes it slower.
const fastest = Math.min(...Array.from({ length: PROBES }, once));
const rounds = Math.round((PROBE_ROUNDS * WANTED_MS) / fastest);
console.log(JSON.stringify({ rounds, ...burnt(rounds) }));
