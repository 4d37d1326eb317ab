import assert from "node:assert/strict";
import { test } from "node:test";
import { eventBefore, heaviest, onset } from "../src/cause.js";
import { expiresSoon, level, problemsOf, sentenceOf, siteState, usualOf } from "../src/state.js";

const NOW = 1_800_000_000;
const DAY = 86400;
const total = (others = {}) => ({ requests: 1000, errors: 0, rejected: 0, p50_ms: 2, p99_ms: 40, cold_starts: 0, ...others });
const sites = (...totals) => ({ sites: totals.map((one, index) => ({ site: `https://${"abc"[index]}.example`, total: one, previous: one })) });
const worker = (others = {}) => ({ pid: 4730, state: "serving", lag_ms: 1, ...others });
const app = (others = {}) => ({ app: "api", state: "serving", reason: null, workers: [worker()], ...others });
const status = (others = {}) => ({
  requests: 1000, listening: ["127.0.0.1:8080"], sites: [{}, {}, {}], apps: [app()], proxies: [], limits: [], ...others,
});
const certificate = (others) => ({ names: ["a.example"], state: "valid", file: null, seconds_left: 60 * DAY, renews_in_seconds: 30 * DAY, reason: null, ...others });

/** The first row of a page that knows all this. */
function sentence({ known = status(), recent = sites(total(), total(), total()), ...others } = {}) {
  const problems = problemsOf({ status: known, recent, usual: [recent], events: [], now: NOW, ...others });
  return sentenceOf({ status: known, problems, recent, lostAt: null });
}

test("all is well: the sentence says of how many, and what they do", () => {
  const { level: severity, text, next } = sentence();
  assert.deepEqual([severity, text], ["well", "All 3 sites are well"]);
  assert.equal(next, "Last 5 minutes: 10/s, no errors; slowest p99 40 ms at a.example.");
  assert.equal(sentence({ known: status({ sites: [{}] }) }).text, "The site is well");
});

test("nothing configured, nothing asked yet, and no answer are told apart", () => {
  assert.equal(sentence({ known: status({ sites: [] }) }).text, "No site is configured");
  assert.equal(sentence({ known: status({ requests: 0 }) }).text, "All 3 sites are ready; no request has come yet");
  assert.equal(sentenceOf({ status: null, problems: [], lostAt: null }).text, "Asking onehop …");
  assert.match(sentenceOf({ status: status(), problems: [], lostAt: NOW }).text, /^onehop does not answer since/);
});

test("an application that fails comes before the errors that it causes", () => {
  const known = status({ apps: [app({ state: "failing", reason: "exit code 1", workers: [] })] });
  const found = sentence({ known, recent: sites(total({ errors: 970 }), total(), total()) });
  assert.equal(found.text, "api fails: exit code 1");
  assert.match(found.next, /keeps starting it/);
  assert.equal(found.href, "#/apps");
});

test("a worker that is stuck, one that exits again and again, and a blocked event loop have a sentence each", () => {
  const exits = [60, 600, 1200].map((ago) => ({ at: NOW - ago, event: "worker_exited", subject: "api", text: "signal 9" }));
  const of = (apps, events = []) => sentence({ known: status({ apps }), events }).text;
  assert.equal(of([app({ workers: [worker({ state: "stuck" })] })]), "api: worker 4730 does not answer");
  assert.match(of([app()], exits), /^A worker of api restarts again and again: 3 times, last at/);
  assert.equal(of([app()], exits.map((one) => ({ ...one, at: one.at - 3600 }))), "All 3 sites are well");
  assert.equal(of([app({ workers: [worker({ lag_ms: 320 })] })]), "The event loop of api is blocked for 320 ms");
});

test("an upstream that is down is worse where no other takes its requests", () => {
  const down = { upstream: "10.0.0.2:8080", state: "down", reason: "it answered 503", down_seconds: 95 };
  const of = (...upstreams) => sentence({ known: status({ proxies: [{ upstreams }] }) });
  assert.deepEqual([of(down).level, of(down).text], ["bad", "Upstream 10.0.0.2:8080 is down for 1 min: it answered 503"]);
  const both = of(down, { upstream: "10.0.0.1:8080", state: "up" });
  assert.equal(both.level, "warn");
  assert.match(both.next, /^1 other of its proxy take/);
});

test("refused requests name the limits that refused", () => {
  const known = status({ limits: [{ limit: "app api", shed: { queue_full: 31 } }, { limit: "server", shed: {} }] });
  const found = sentence({ known, recent: sites(total(), total({ rejected: 312 }), total()), events: [{ event: "overload_began", at: NOW - 60 }] });
  assert.equal(found.text, "b.example, overloaded: 312 requests refused in 5 minutes");
  assert.equal(found.next, "Refused so far by: app api. Add workers, or raise the limit.");
});

test("a site is slow against its usual p99, also after half a day of being slow", () => {
  const recent = sites(total({ p99_ms: 700 }));
  const samples = [sites(total({ p99_ms: 690 })), sites(total({ p99_ms: 710 })), sites(total({ p99_ms: 80 }))];
  assert.equal(usualOf(samples, "https://a.example"), 80);
  assert.equal(siteState("https://a.example", { recent, usual: samples }).text, "slow");
  assert.equal(usualOf([sites(total({ requests: 5 }))], "https://a.example"), null, "five requests have no p99");
  assert.equal(siteState("https://a.example", { recent, usual: [] }).text, "well", "nothing is known of what is usual");
});

test("a certificate is told of before it ends, by who renews it", () => {
  assert.equal(expiresSoon(certificate({})), false);
  assert.equal(expiresSoon(certificate({ seconds_left: 43_140, renews_in_seconds: 28_740 })), false, "twelve hours, renewed after eight");
  assert.equal(expiresSoon(certificate({ file: "/c.pem", seconds_left: 5 * DAY, renews_in_seconds: null })), true);
  assert.equal(level.certificate(certificate({ state: "expired", seconds_left: -5 })), "bad");
  assert.equal(level.certificate(certificate({ state: "ordered", seconds_left: null })), "busy");
  const certificates = { certificates: [certificate({ file: "/c.pem", names: ["a", "b"], seconds_left: 5 * DAY, renews_in_seconds: null })] };
  const found = sentence({ certificates });
  assert.deepEqual([found.text, found.next], ["The certificate of a and 1 more expires in 5 d", "Renew /c.pem, then reload."]);
});

const times = Array.from({ length: 60 }, (_, index) => NOW - 600 + 10 * index);
const rise = times.map((_, index) => (index < 40 ? 80 + (index % 5) : 700 + 20 * (index % 3)));

test("the rise of a latency is found where it began, also over gaps and a low point", () => {
  assert.deepEqual(onset(times, rise), { since: times[40], before: 81, now: 720 });
  assert.equal(onset(times, rise.with(50, 90)).since, times[40]);
  assert.equal(onset(times, rise.with(50, null)).since, times[40]);
});

test("noise, a fall, a short peak and a few points are no rise", () => {
  assert.equal(onset(times, times.map((_, index) => 80 + 30 * (index % 2))), null);
  assert.equal(onset(times, rise.toReversed()), null);
  assert.equal(onset(times, times.map((_, index) => (index === 30 ? 900 : 80))), null);
  assert.equal(onset(times.slice(0, 4), rise.slice(38, 42)), null);
});

test("a change of what runs is named before the exits around it", () => {
  const events = [{ at: 990, event: "worker_exited" }, { at: 960, event: "release" }, { at: 940, event: "upstream_down" }];
  assert.equal(eventBefore(events, 985, 10).event, "release");
  assert.equal(eventBefore([events[0], events[2]], 985, 10).event, "worker_exited");
  assert.equal(eventBefore([{ at: 5, event: "reload" }], 985, 10), null, "too long ago");
});

test("the heaviest part counts a blocked event loop apart from the handler's own work", () => {
  const slow = { parts: { queue_ms: 5, connect_ms: 0, first_byte_ms: 200, body_ms: 5, lag_ms: 500 } };
  const { part, share } = heaviest([slow, slow]);
  assert.equal(part.key, "lag");
  assert.equal(Math.round(100 * share), 70);
  assert.equal(heaviest([]), null);
  assert.equal(heaviest([{ parts: {} }]), null);
});
