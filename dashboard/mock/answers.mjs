// The API's answers but for history: status, certificates, events, slow requests, by scenario.

import { APPS, appPoint, EXIT_MINUTES, noise, pointOf, RELEASE_MINUTES, SITES, totalOf } from "./figures.mjs";

const DAY = 86400;
const UPTIME = 3 * DAY + 4_100;

export function status(world) {
  const { scenario, now } = world;
  const isEmpty = scenario === "empty";
  return {
    version: "0.1.0", pid: 4711, uptime_seconds: isEmpty ? 42 : UPTIME, threads: 2,
    listening: ["0.0.0.0:443", "0.0.0.0:80", "[::]:443"], admin: "127.0.0.1:2020", reloads: isEmpty ? 0 : 4,
    open_connections: isEmpty ? 0 : 86, requests: isEmpty ? 0 : 48_212_345,
    sites: SITES.map((site) => {
      const { cold_starts, ...total } = totalOf([site], now - 3600, now, world);
      return { site, ...total, cold_starts, streams: 14, streams_open: site === SITES[1] && !isEmpty ? 2 : 0 };
    }),
    stores: [
      { root: "/srv/docs/dist", files: 204, bytes: 1_258_291, stored_bytes: 1_200_000, compressed_bytes: 402_000, on_disk: 1 },
      { root: "/srv/shop/public", files: 1_871, bytes: 88_258_291, stored_bytes: 61_200_000, compressed_bytes: 9_402_000, on_disk: 12 },
    ],
    apps: Object.keys(APPS).map((app) => appStatus(app, world)),
    proxies: proxies(world),
    limits: limits(world),
    certificates: { total: 3, failing: 0, certificates: [] },
  };
}

export function appStatus(app, { scenario, now, wanted = {}, rolledAt = {} }) {
  const isFailing = scenario === "failing" && app === "api";
  const point = appPoint(app, now, { scenario, now });
  const number = wanted[app] ?? APPS[app].workers;
  const restarts = scenario === "troubled" && app === "api";
  const workers = Array.from({ length: isFailing ? 0 : number }, (_, index) => {
    const isYoung = restarts && index === 2;
    const age = isYoung ? 242 : (app === "shop" && scenario === "troubled" ? RELEASE_MINUTES * 60 : UPTIME - 3);
    return {
      pid: 4730 + 10 * Object.keys(APPS).indexOf(app) + index + (isYoung ? 3100 : 0),
      state: "serving", protocol: "frames",
      in_flight: Math.ceil(point.in_flight / number), concurrency: 256,
      requests: isYoung ? 9_412 : 1_204_011 + 731 * index, age_seconds: rolledAt[app] ? Math.round(now - rolledAt[app]) : age,
      resident_bytes: Math.round(point.resident_bytes / number), lag_ms: Math.round(10 * (point.lag_ms ?? 0)) / 10,
    };
  });
  return {
    app, state: isFailing ? "failing" : "serving",
    reason: isFailing ? "server.mjs:12 ReferenceError: DATABASE_URL is not defined; exit code 1" : null,
    wanted: number, queued: point.queued, failures: isFailing ? 9 : restarts ? 3 : 0, workers,
  };
}

function proxies({ scenario }) {
  const upstream = (address, others = {}) => ({
    upstream: address, state: "up", reason: null, down_seconds: null, addresses: 1, in_flight: scenario === "empty" ? 0 : 2,
    failures: 0, retries: 0, latency_ms: 8.25,
    connections: {
      open: 6, idle: 4, waiting: 0, dials: 19, dial_failures: 0, handshakes: 0, resumptions: 0, reused: 50_120,
      borrowed: 17, waited: 0, closed_idle: 1, retired: 2,
    },
    ...others,
  });
  const isDown = scenario === "troubled";
  const down = {
    state: "down", reason: "it answered 503 instead of 2xx", down_seconds: 1_510, in_flight: 0, failures: 37, retries: 35, latency_ms: 912,
  };
  return [{
    proxy: "10.0.0.1:8080 10.0.0.2:8080 inventory.warehouse-europe-west.internal.example:9443", policy: "least_conn",
    upstreams: [
      upstream("10.0.0.1:8080"),
      upstream("10.0.0.2:8080", isDown ? down : { latency_ms: 9.1 }),
      upstream("inventory.warehouse-europe-west.internal.example:9443", { addresses: 3, latency_ms: 21.4 }),
    ],
  }];
}

function limits({ scenario, now }) {
  const isOver = scenario === "overloaded";
  // It goes on while the page looks.
  const more = isOver ? Math.round(now % 100_000) : 0;
  return [
    {
      limit: "app api", bound: isOver ? 17 : 64, is_adaptive: true, in_flight: isOver ? 17 : 5, queued: isOver ? 48 : 0, let_in: 31_012_011,
      shed: isOver ? { queue_full: 21_104 + 30 * more, wait: 3_310 + more } : {},
    },
    { limit: "app shop", bound: 48, is_adaptive: true, in_flight: scenario === "troubled" ? 31 : 3, queued: 0, let_in: 10_812_004, shed: {} },
    {
      limit: "https://shop.example /checkout", bound: 20, is_adaptive: false, in_flight: 1, queued: 0, let_in: 212_450,
      shed: scenario === "troubled" ? { in_flight: 214, wait: 12 } : {},
    },
    { limit: "server", bound: 4096, is_adaptive: false, in_flight: 12, queued: 0, let_in: 48_212_345, shed: {} },
  ];
}

export function certificates({ scenario, now }) {
  const at = (seconds) => new Date((now + seconds) * 1000).toISOString().replace(/\.\d+Z/, "Z");
  const acme = (names, left) => ({
    names, state: "valid", issuer: "acme-v02.api.letsencrypt.org-directory", file: null, expires_at: at(left), seconds_left: left,
    renews_in_seconds: Math.round(left / 3), reason: null, failed_seconds_ago: null,
  });
  const days = scenario === "troubled" ? 5 : 87;
  const own = {
    names: ["docs.example", "www.docs.example"], state: "valid", issuer: "An Authority 2026", file: "/srv/certs/docs.example.pem",
    expires_at: at(days * DAY + 7_000), seconds_left: days * DAY + 7_000, renews_in_seconds: null, reason: null, failed_seconds_ago: null,
  };
  const all = [acme(["shop.example", "www.shop.example", "checkout.shop.example"], 61 * DAY), acme(["api.example"], 74 * DAY)];
  return { total: 3, failing: 0, certificates: days < 14 ? [own, ...all] : [...all, own] };
}

export function events({ scenario, now, extra = [] }, from, to) {
  const ago = (minutes, event, text, subject = null) => ({ at: Math.floor(now - 60 * minutes), event, text, subject });
  const usual = [
    ago(190, "certificate_renewed", "The certificate of api.example was renewed; it is valid for 90 days", "api.example"),
    ago(375, "start", "onehop 0.1.0 started with 3 sites", null),
    ago(3_900, "reload", "Reloaded in 14 ms: 3 sites", null),
    ago(4_388, "load_ended", "A load test ended: onehop bench", null),
    ago(4_400, "load_began", "A load test began: onehop bench", null),
  ];
  const special = {
    troubled: [
      ...EXIT_MINUTES.map((minutes) => ago(minutes + 0.5, "worker_exited", "Worker of api ended with signal 9 (out of memory?) after 540 s; another one starts", "api")),
      ago(RELEASE_MINUTES + 0.6, "release", "Release 2026-11-25.2 of shop: new processes after a change of dist/server.mjs", "shop"),
      ago(25.2, "upstream_down", "Upstream 10.0.0.2:8080 is down: it answered 503 instead of 2xx", "10.0.0.2:8080"),
    ],
    overloaded: [ago(9, "overload_began", "Overload at limit app api: its queue is full", "api")],
    failing: [
      ago(12, "app_failing", "api fails: server.mjs:12 ReferenceError: DATABASE_URL is not defined", "api"),
      ago(12.3, "reload", "Reloaded in 16 ms: 3 sites", null),
    ],
    cold: [3, 17, 31, 45].map((minutes) => ago(minutes + 0.9, "worker_started", "A worker of api started after 10 idle minutes", "api")),
    empty: [ago(0.7, "start", "onehop 0.1.0 started with 3 sites", null)],
  }[scenario];
  const all = [...extra, ...(special ?? []), ...(scenario === "empty" ? [] : usual)].sort((one, other) => other.at - one.at);
  return { events: all.filter(({ at }) => at >= from && at < to) };
}

export function slow(world) {
  const { scenario, now } = world;
  if (scenario === "cold") return null;
  if (scenario === "empty") return { requests: [] };
  const paths = ["/", "/checkout", "/items/4711", "/search?q=a+rather+long+question+with+many+words&page=3", "/cart"];
  const isTroubled = scenario === "troubled";
  const requests = Array.from({ length: 24 }, (_, index) => {
    const of = (name) => noise(name, index);
    const site = isTroubled ? (index % 6 === 5 ? SITES[1] : SITES[0]) : SITES[index % 2];
    const isDown = isTroubled && index % 8 === 7;
    const first = (isTroubled ? 700 : 60) * (0.6 + of("first"));
    const lag_ms = isTroubled ? first * (0.62 + 0.2 * of("lag")) : Math.min(first, 2 * of("lag"));
    const parts = {
      upload_ms: 0.2 * of("upload"), retry_ms: 0, write_ms: 4 * of("write"),
      queue_ms: scenario === "overloaded" ? 900 * of("queue") : 3 * of("queue"), connect_ms: isDown ? 1000 : 0.4 * of("connect"),
      first_byte_ms: first - lag_ms, body_ms: 14 * of("body"), lag_ms,
    };
    const status = isDown ? 502 : 200;
    const why = isDown ? "10.0.0.2:8080 did not accept the connection" : isTroubled ? "the event loop of shop was blocked" : "slower than 99 % of its site";
    return {
      id: (0x9f2c41d007a1n + BigInt(index)).toString(16), at: Math.floor(now - 40 - 47 * index), site,
      method: index % 4 === 1 ? "POST" : "GET", path: paths[index % paths.length], status, handler: isDown ? "reverse_proxy" : "app",
      total_ms: Object.values(parts).reduce((all, part) => all + part, 0), parts, why,
    };
  });
  return { requests };
}

const AGENTS = [
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
  "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example/)", "curl/8.14.1", "-",
];

export function frequent(site, { scenario }) {
  const requests = scenario === "empty" ? 0 : 48_211;
  const rows = (texts) => (requests > 0 ? texts.map((text, index) => ({ text, requests: Math.round(requests * 0.5 ** (index + 1)), excess: 0 })) : []);
  const paths = ["/", "/cart", "/items/4711", "/assets/app-B3kq9zXw.js", "/checkout", "/search", "/favicon.ico"];
  const addresses = ["203.0.113.7", "2001:db8:85a3:8d3:1319:8a2e:370:7348", "198.51.100.23", "192.0.2.44"];
  return { site, seconds: requests > 0 ? 5_048 : 0, requests, paths: rows(paths), agents: rows(AGENTS), addresses: rows(addresses) };
}

export function handlers(site, world) {
  if (world.scenario === "empty") return { handlers: [] };
  const { p50_ms, p99_ms, requests, errors } = totalOf([site], world.now - 3600, world.now, world);
  const files = { route: "*", handler: "file_server", requests: Math.round(requests * 14), errors: 0, p50_ms: 0.08, p99_ms: 0.9 };
  if (site === SITES[2]) return { handlers: [files, { route: "/old/*", handler: "redir", requests: 812, errors: 0, p50_ms: 0.02, p99_ms: 0.05 }] };
  const app = { route: "/api/*", handler: "app", requests: requests * 60, errors: errors * 9, p50_ms, p99_ms };
  const proxy = { route: "/search*", handler: "reverse_proxy", requests: requests * 4, errors: 31, p50_ms: 8.3, p99_ms: 41 };
  return { handlers: [app, files, ...(site === SITES[0] ? [proxy] : [])] };
}

export function live(world) {
  const at = Math.floor(world.now);
  const sites = SITES.map((site) => {
    const { requests, errors, p50_ms, p99_ms } = pointOf(site, at, world);
    return { site, requests, errors, p50_ms, p99_ms };
  });
  const busy = Object.keys(APPS).reduce((sum, app) => sum + appPoint(app, at, world).cpu_percent, 0);
  return { at, sites, connections: world.scenario === "empty" ? 0 : 80 + (at % 13), cpu_percent: 12 + busy };
}
