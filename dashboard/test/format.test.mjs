import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../src/format.js";

function check(write, cases) {
  for (const [value, expected] of cases) assert.equal(write(value), expected, `${write.name}(${value})`);
}

test("figures have three digits at most, and their unit", () => {
  check(format.count, [[0, "0"], [987, "987"], [12_345, "12,345"], [295_400, "295 k"], [48_212_345, "48.2 M"], [3e9, "3 G"]]);
  check(format.rate, [[0, "0"], [0.034, "0.034"], [12.44, "12.4"], [1240.4, "1,240"], [250_000, "250 k"]]);
  check(format.bytes, [[0, "0 B"], [820, "820 B"], [1000, "0.98 KiB"], [50_123_456, "47.8 MiB"], [3.5e9, "3.26 GiB"]]);
  check(format.ms, [[0.415, "0.41 ms"], [11.5, "11.5 ms"], [320.4, "320 ms"], [1150, "1.15 s"], [12_000, "12 s"]]);
  check(format.percent, [[0, "0 %"], [0.004, "< 0.01 %"], [4.18, "4.18 %"], [137, "137 %"]]);
});

test("what is not known is a dash, in every unit", () => {
  for (const write of Object.values(format).filter((one) => !["delta", "list", "plural", "siteName"].includes(one.name))) {
    assert.equal(write(null), "–", write.name);
    assert.equal(write(undefined), "–", write.name);
  }
});

test("a share of nothing is a dash", () => {
  assert.equal(format.share(0, 0), "–");
  assert.equal(format.share(3, 200), "1.5 %");
});

test("lengths of time have their two largest units", () => {
  check(format.duration, [[0, "0 s"], [59.6, "1 min"], [725, "12 min"], [3600, "1 h"], [11_520, "3 h 12 min"], [356_400, "4 d 3 h"], [61 * 86400 + 4000, "61 d"]]);
});

test("a time within half a day is without its day, another one with it", () => {
  const noon = new Date(2026, 10, 25, 12, 0, 7).getTime() / 1000;
  assert.equal(format.clock(noon, noon + 60), "12:00");
  assert.equal(format.clock(noon, noon + 60, true), "12:00:07");
  assert.equal(format.clock(noon, noon + 86400), "25 Nov 12:00");
});

test("a change is a percentage, a large one a factor, and none where nothing was before", () => {
  assert.deepEqual(format.delta(112, 100), { text: "+12 %", change: 0.12 });
  assert.equal(format.delta(88, 100).text, "−12 %");
  assert.equal(format.delta(100.2, 100).text, "±0 %");
  assert.equal(format.delta(2340, 100).text, "×23.4");
  for (const [value, before] of [[5, 0], [5, null], [null, 5]]) assert.equal(format.delta(value, before), null);
});

test("lists and numbers of things read as in a sentence", () => {
  assert.equal(format.list(["a"]), "a");
  assert.equal(format.list(["a", "b", "c"]), "a, b and c");
  assert.equal(format.plural(1, "worker"), "1 worker");
  assert.equal(format.siteName("https://a.example"), "a.example");
});
