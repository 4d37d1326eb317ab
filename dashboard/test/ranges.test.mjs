import assert from "node:assert/strict";
import { test } from "node:test";
import { before, RANGES, rangeOf, refreshSeconds, unzoomed, windowOf, zoomed } from "../src/range.js";
import { href, parse } from "../src/route.js";

test("a range without a name is the last hour", () => {
  for (const query of [{}, { range: "2h" }, { from: "10" }, { from: "x", to: "y" }]) assert.equal(rangeOf(query).key, "1h");
});

test("a named range ends now, and the one before ends where it begins", () => {
  const window = windowOf(rangeOf({ range: "15m" }), 10_000.7);
  assert.deepEqual(window, { from: 9_100, to: 10_000 });
  assert.deepEqual(before(window), { from: 8_200, to: 9_100 });
});

test("a zoomed range stays where it is and is asked for once", () => {
  const range = rangeOf({ range: "6h", from: "1000", to: "4600" });
  assert.deepEqual(windowOf(range, 99_999), { from: 1000, to: 4600 });
  assert.equal(refreshSeconds(range), null);
});

test("a zoom that is too short or too long for the history is none", () => {
  for (const [from, to] of [[1000, 1030], [2000, 1000], [0.5, 100 * 86400]]) {
    assert.equal(rangeOf({ from: String(from), to: String(to) }).isLive, true, `${from} to ${to}`);
  }
});

test("a drag of a few seconds zooms to a minute around it", () => {
  assert.deepEqual(zoomed({ range: "1h", compare: "1" }, 1000, 1002), { compare: "1", from: "971", to: "1031", range: "1h" });
  assert.deepEqual(unzoomed({ range: "1h", from: "971", to: "1031" }), { range: "1h" });
});

test("each range is asked for again about as often as it gets a point", () => {
  assert.deepEqual(RANGES.map(({ key }) => refreshSeconds(rangeOf({ range: key }))), [10, 10, 60, 60, 300, 300, 300]);
});

test("an address of a view leads back to it", () => {
  for (const [view, name, query] of [["", null, {}], ["slow", null, { range: "7d" }], ["sites", "https://a.example:8443/%x?y", { range: "1h", cold: "0" }]]) {
    assert.deepEqual(parse(href(view, name, query)), { view, name, query });
  }
  assert.equal(href("sites", "https://a.example", { range: "1h", from: undefined }), "#/sites/https%3A%2F%2Fa.example?range=1h");
});

test("a broken address is an unknown name, not an error", () => {
  assert.deepEqual(parse("#/sites/%E0%A4%A"), { view: "sites", name: "%E0%A4%A", query: {} });
  assert.deepEqual(parse(""), { view: "", name: null, query: {} });
});
