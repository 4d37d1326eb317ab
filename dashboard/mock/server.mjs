// A stand-in for onehop's side of the dashboard: `node mock/server.mjs [SCENARIO] [PORT]`.
// It serves the built page under /dashboard/ with the policy that the server sends, and figures by scenario:
// well, troubled, overloaded, failing, cold, empty.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as answers from "./answers.mjs";
import { APPS, appPoint, axis, seriesOf, SITES, totalOf } from "./figures.mjs";

const DIST = fileURLToPath(new URL("../dist/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
export const TOKEN = "mock-token";

function history(query, world) {
  const from = Number(query.get("from"));
  const to = Number(query.get("to"));
  const site = query.get("site");
  const sites = site ? [site] : SITES;
  const { step, times } = axis(from, to);
  const series = seriesOf(sites, times, world);
  if (!site) {
    const points = times.map((at) => Object.keys(APPS).map((app) => appPoint(app, at, world)));
    const sum = (field) => points.map((apps, index) => (series.requests[index] === null ? null : apps.reduce((all, one) => all + one[field], 0)));
    Object.assign(series, {
      cpu_percent: sum("cpu_percent").map((value) => value && value + 9), resident_bytes: sum("resident_bytes"),
      connections: series.requests.map((value) => value && Math.round(value * 0.5)),
    });
  }
  const total = totalOf(sites, from, to, world);
  return { from, to, step_seconds: step, times, series, total, previous: totalOf(sites, from - (to - from), from, world) };
}

function historyOfSites(query, world) {
  const from = Number(query.get("from"));
  const to = Number(query.get("to"));
  const sites = SITES.map((site) => ({
    site, total: totalOf([site], from, to, world), previous: totalOf([site], from - (to - from), from, world),
    sparkline: seriesOf([site], axis(from, to, 60).times, world).requests,
  }));
  return { from, to, sites };
}

function historyOfApps(query, world) {
  const { step, times } = axis(Number(query.get("from")), Number(query.get("to")), 200);
  const apps = Object.keys(APPS).map((app) => {
    const points = times.map((at) => appPoint(app, at, world));
    return { app, series: Object.fromEntries(Object.keys(points[0] ?? {}).map((name) => [name, points.map((point) => point[name])])) };
  });
  return { times, step_seconds: step, apps };
}

function read(path, query, world) {
  const span = [Number(query.get("from")), Number(query.get("to"))];
  switch (path) {
    case "/status": return answers.status(world);
    case "/certificates": return answers.certificates(world);
    case "/history": return history(query, world);
    case "/history/sites": return historyOfSites(query, world);
    case "/history/apps": return historyOfApps(query, world);
    case "/history/handlers": return answers.handlers(query.get("site"), world);
    case "/events": return answers.events(world, ...span);
    case "/slow": return answers.slow(world);
    case "/frequent": return answers.frequent(query.get("site"), world);
    default: return null;
  }
}

function change(request, path, world) {
  if (request.headers["onehop-token"] !== TOKEN) return [403, { error: "This needs the token that `onehop dashboard` prints." }];
  const [, action, app, number] = path.split("/");
  if (action === "reload") return [200, { sites: 3, took_ms: 14 }];
  if (!(app in APPS)) return [422, { error: `There is no application ${app}.` }];
  if (action === "restart") {
    world.rolledAt[app] = world.now;
    world.extra.push({ at: Math.floor(world.now), event: "app_rolled", text: `${app} was rolled: new processes`, subject: app });
  }
  if (action === "workers") world.wanted[app] = Number(number);
  return [200, answers.appStatus(app, world)];
}

async function page(path, response) {
  const name = path.slice("/dashboard/".length) || "index.html";
  const body = await readFile(join(DIST, name)).catch(() => null);
  response.writeHead(body ? 200 : 404, {
    "content-type": TYPES[extname(name)] ?? "text/plain", "content-security-policy": "default-src 'self'", "cache-control": "no-store",
  });
  response.end(body ?? "not found");
}

/** Starts it: `{origin, world, stop}`. `world.scenario` may be changed while it runs; `world.now` can be fixed. */
export async function start({ scenario = "troubled", port = 0, now = null } = {}) {
  const world = { scenario, wanted: {}, rolledAt: {}, extra: [], get now() { return now ?? Date.now() / 1000; } };
  const streams = new Set();
  const tell = (response) => response.write(`data: ${JSON.stringify(answers.live(world))}\n\n`);
  const timer = setInterval(() => streams.forEach(tell), 2000);
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    if (pathname === "/" || pathname === "/dashboard") return response.writeHead(302, { location: "/dashboard/" }).end();
    if (pathname.startsWith("/dashboard/")) return page(pathname, response);
    if (pathname === "/live") {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      streams.add(response);
      response.on("close", () => streams.delete(response));
      return tell(response);
    }
    const answer = request.method === "POST" ? change(request, pathname, world) : [200, read(pathname, searchParams, world)];
    const [code, body] = answer[1] === null ? [404, { error: "There is no such thing here." }] : answer;
    response.writeHead(code, { "content-type": "application/json", "cache-control": "no-store" });
    return response.end(JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const stop = () => {
    clearInterval(timer);
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, world, stop };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { origin } = await start({ scenario: process.argv[2], port: Number(process.argv[3] ?? 5199) });
  console.log(`${origin}/dashboard/#token=${TOKEN}`);
}
