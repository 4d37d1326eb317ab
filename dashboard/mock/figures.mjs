// Figures that look alive, the same for the same second: what the mock server answers with.

export const SITES = ["https://shop.example", "https://api.example", "https://docs.example"];
const BASE = {
  "https://shop.example": { rate: 42, p50: 6.2, p99: 78, size: 18_000, phase: 0 },
  "https://api.example": { rate: 118, p50: 1.9, p99: 31, size: 2_400, phase: 2 },
  "https://docs.example": { rate: 17, p50: 0.09, p99: 1.4, size: 61_000, phase: 4 },
};
export const APPS = {
  shop: { cpu: 34, memory: 182e6, lag: 4, workers: 2 },
  api: { cpu: 51, memory: 96e6, lag: 2, workers: 3 },
};
export const EXIT_MINUTES = [4, 13, 22]; // ago, where a worker exits again and again
export const RELEASE_MINUTES = 23; // ago

/** Between 0 and 1, from a name and a number. */
export function noise(name, number) {
  let hash = 2166136261;
  for (const letter of `${name}${number}`) hash = Math.imul(hash ^ letter.charCodeAt(0), 16777619);
  hash = Math.imul(hash ^ (hash >>> 15), 2246822507);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}

function load(site, at) {
  const { phase } = BASE[site];
  const day = 1 + 0.55 * Math.sin((2 * Math.PI * (at % 86400)) / 86400 - 1.6 + phase / 8);
  const slow = 1 + 0.12 * Math.sin(at / 340 + phase) + 0.06 * Math.sin(at / 71);
  return day * slow * (0.9 + 0.2 * noise(site, Math.floor(at / 10)));
}

/** What one site does at a second: rates per second, percentiles. */
export function pointOf(site, at, { scenario, now }) {
  const base = BASE[site];
  const ago = (now - at) / 60;
  let rate = base.rate * load(site, at);
  let rough = 0.85 + 0.3 * noise(`${site} p99`, Math.floor(at / 10));
  let errors = noise(`${site} errors`, Math.floor(at / 10)) > 0.985 ? 0.2 : 0;
  let rejected = 0;
  let p50 = base.p50 * (0.93 + 0.14 * noise(`${site} p50`, Math.floor(at / 10)));
  let coldStarts = 0;
  if (scenario === "troubled" && site === SITES[0] && ago < RELEASE_MINUTES) {
    rough *= 9;
    p50 *= 2.1;
  }
  if (scenario === "troubled" && site === SITES[1]) {
    const minute = Math.floor(ago);
    if (EXIT_MINUTES.includes(minute)) errors = 1.6;
    if (EXIT_MINUTES.includes(minute + 1) && at % 60 < 10) coldStarts = 0.1;
  }
  if (scenario === "overloaded" && site === SITES[1] && ago < 9) {
    rate *= 2.4;
    rejected = rate * 0.31;
    rough *= 2.6;
  }
  if (scenario === "failing" && site === SITES[1] && ago < 12) errors = rate * 0.97;
  if (scenario === "cold" && site === SITES[1] && Math.floor(ago) % 14 === 3 && at % 60 < 20) coldStarts = 0.15;
  if (scenario === "empty") rate = p50 = rough = errors = 0;
  return {
    requests: rate, errors, rejected, bytes: rate * base.size,
    p50_ms: rate ? p50 : null, p90_ms: rate ? p50 + (base.p99 * rough - p50) * 0.3 : null,
    p99_ms: rate ? base.p99 * rough : null,
    streams: site === SITES[1] ? 0.2 : 0, cold_starts: coldStarts,
  };
}

/** A window's step and times, as the contract has them: at most 500 points. */
export function axis(from, to, most = 500) {
  const unit = to - from > 86400 ? 300 : 10;
  const step = Math.max(unit, Math.ceil((to - from) / most / unit) * unit);
  const times = [];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) times.push(at);
  return { step, times };
}

const FIELDS = ["requests", "errors", "rejected", "bytes", "streams", "cold_starts"];

/** The series of some sites added up; percentiles of the slowest, which is close enough to look right. */
export function seriesOf(sites, times, world) {
  const rows = times.map((at) => {
    // A pause of the server six hours ago shows how gaps look.
    if (Math.abs(world.now - 6.4 * 3600 - at) < 900) return null;
    const points = sites.map((site) => pointOf(site, at, world));
    const sum = Object.fromEntries(FIELDS.map((name) => [name, points.reduce((all, one) => all + one[name], 0)]));
    const most = (name) => points.reduce((all, one) => Math.max(all ?? 0, one[name] ?? 0), null) || null;
    return { ...sum, p50_ms: points[0].p50_ms, p90_ms: most("p90_ms"), p99_ms: most("p99_ms") };
  });
  const names = [...FIELDS, "p50_ms", "p90_ms", "p99_ms"];
  return Object.fromEntries(names.map((name) => [name, rows.map((row) => (row ? round(row[name]) : null))]));
}

const round = (value) => (value === null ? null : Math.round(value * 1000) / 1000);

/** The sums of a window. */
export function totalOf(sites, from, to, world) {
  const { step, times } = axis(from, to, 120);
  const series = seriesOf(sites, times, world);
  const sum = (values) => Math.round(values.reduce((all, value) => all + (value ?? 0), 0) * step);
  const quantile = (values, part) => {
    const known = values.filter((value) => value !== null).sort((one, other) => one - other);
    return known.length ? known[Math.floor(known.length * part)] : null;
  };
  // As the contract has it: rejected requests are of this many, and errors are no rejections.
  const cold = sum(series.cold_starts);
  return {
    requests: sum(series.requests), errors: sum(series.errors), rejected: sum(series.rejected), bytes: sum(series.bytes),
    p50_ms: quantile(series.p50_ms, 0.5), p90_ms: quantile(series.p90_ms, 0.6), p99_ms: quantile(series.p99_ms, 0.8),
    cold_starts: cold, slowest_cold_start_ms: cold ? 1150 + 400 * noise("cold", cold) : null,
  };
}

/** What one application's workers use at a second. */
export function appPoint(app, at, { scenario, now }) {
  const base = APPS[app];
  const ago = (now - at) / 60;
  const site = app === "shop" ? SITES[0] : SITES[1];
  const busy = scenario === "empty" ? 0.02 : load(site, at) * (scenario === "overloaded" && app === "api" && ago < 9 ? 1.8 : 1);
  const isSlow = scenario === "troubled" && app === "shop" && ago < RELEASE_MINUTES;
  const isOff = scenario === "failing" && app === "api" && ago < 12;
  const grown = isSlow ? 1 + (RELEASE_MINUTES - ago) / 60 : 1;
  return {
    cpu_percent: isOff ? 0 : base.cpu * busy * (isSlow ? 1.7 : 1),
    resident_bytes: isOff ? 0 : Math.round(base.memory * base.workers * grown * (0.97 + 0.04 * noise(app, Math.floor(at / 300)))),
    lag_ms: isOff ? null : base.lag * (0.6 + noise(`${app} lag`, Math.floor(at / 10))) + (isSlow ? 310 * noise("lag", Math.floor(at / 10)) : 0),
    in_flight: Math.round(busy * 3 * (isSlow ? 4 : 1)),
    queued: scenario === "overloaded" && app === "api" && ago < 9 ? Math.round(40 + 20 * noise("queued", Math.floor(at / 10))) : 0,
  };
}
