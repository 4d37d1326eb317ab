// The tables that the overview shows short and a view of their own shows whole.

import { Sparkline } from "./chart.jsx";
import { bytes, bytesPerSecond, clock, count, duration, ms, perSecond, plural, rate, share, siteName } from "./format.js";
import { kindOf, signOf } from "./marks.js";
import { latestOf } from "./panels.jsx";
import { Bar, Delta, State, Table } from "./parts.jsx";
import { isSlow, level, shedOf } from "./state.js";
import { usePage } from "./view.js";

const RANK = { bad: 0, warn: 1, busy: 2, well: 3 };
/** Worst first, else as they came. */
const ranked = (rows, levelOf) => rows.toSorted((one, other) => RANK[levelOf(one)] - RANK[levelOf(other)]);
const known = (value) => value ?? -1;

/** How a site is: from its last minutes, not from the range shown. */
export function siteState(site, { recent, earlier }) {
  const total = recent?.sites.find((one) => one.site === site)?.total;
  const baseline = earlier?.sites.find((one) => one.site === site)?.total;
  if (!total) return { level: "busy", text: "no figures" };
  if (total.errors >= 3 && total.errors > 0.01 * total.requests) return { level: "bad", text: "fails" };
  if (total.rejected > 0) return { level: "warn", text: "refuses" };
  if (isSlow(total, baseline)) return { level: "warn", text: "slow" };
  return total.requests === 0 ? { level: "busy", text: "quiet" } : { level: "well", text: "well" };
}

export function Sites({ history, most }) {
  const { route, live, now } = usePage();
  const seconds = history.to - history.from;
  const columns = [
    { key: "site", label: "Site", isText: true, sort: ({ site }) => siteName(site), cell: ({ site }) => <a class="row" href={route.link("sites", site)} title={site}>{siteName(site)}</a> },
    { key: "state", label: "Now", cell: ({ site }) => <State {...siteState(site, now)} /> },
    { key: "curve", label: "Requests", cell: ({ site, sparkline }) => <Sparkline values={sparkline} label={`Requests of ${siteName(site)} over the range`} /> },
    { key: "live", label: "now /s", isNumber: true, isMinor: true, cell: ({ site }) => rate(live.sites[site]?.requests) },
    { key: "rate", label: "avg /s", isNumber: true, sort: ({ total }) => total.requests, cell: ({ total, previous }) => <>{rate(total.requests / seconds)} <Delta value={total.requests} before={previous.requests} /></> },
    { key: "p50", label: "p50", isNumber: true, isMinor: true, sort: ({ total }) => known(total.p50_ms), cell: ({ total }) => ms(total.p50_ms) },
    { key: "p90", label: "p90", isNumber: true, isMinor: true, sort: ({ total }) => known(total.p90_ms), cell: ({ total }) => ms(total.p90_ms) },
    { key: "p99", label: "p99", isNumber: true, sort: ({ total }) => known(total.p99_ms), cell: ({ total, previous }) => <>{ms(total.p99_ms)} <Delta value={total.p99_ms} before={previous.p99_ms} isBad /></> },
    { key: "errors", label: "Errors", isNumber: true, sort: ({ total }) => total.errors, cell: ({ total }) => <Loud value={total.errors}>{share(total.errors, total.requests)}</Loud> },
    { key: "rejected", label: "Refused", isNumber: true, sort: ({ total }) => total.rejected, cell: ({ total }) => <Loud value={total.rejected}>{count(total.rejected)}</Loud> },
    { key: "bytes", label: "Sent", isNumber: true, isMinor: true, sort: ({ total }) => total.bytes, cell: ({ total }) => bytesPerSecond(total.bytes / seconds) },
    { key: "cold", label: "Cold starts", isNumber: true, isMinor: true, sort: ({ total }) => total.cold_starts, title: "not in the percentiles", cell: ({ total }) => <Cold total={total} /> },
  ];
  return <Table label="Sites" columns={columns} rows={history.sites} keyOf={({ site }) => site} most={most} empty="No site is configured." />;
}

/** A figure that is faint at zero, so that the others are seen. */
const Loud = ({ value, children }) => <span class={value ? undefined : "faint"}>{children}</span>;

export const Cold = ({ total }) => (
  <Loud value={total.cold_starts}>
    {total.cold_starts > 0 ? <><span class="ink-purple" aria-hidden="true">◆</span> {count(total.cold_starts)}, up to {ms(total.slowest_cold_start_ms)}</> : "0"}
  </Loud>
);

const memoryOf = ({ workers }) => workers.reduce((sum, { resident_bytes }) => sum + resident_bytes, 0);
const lagOf = ({ workers }) => workers.reduce((most, { lag_ms }) => Math.max(most, lag_ms), 0);

export function Apps({ apps, history, exits }) {
  const { route } = usePage();
  const columns = [
    { key: "app", label: "Application", isText: true, cell: ({ app }) => <a class="row" href={route.link("apps")}>{app}</a> },
    { key: "state", label: "State", cell: (app) => <State level={level.app(app)} text={app.state} /> },
    { key: "workers", label: "Workers", isNumber: true, title: "serving, of those wanted", cell: ({ workers, wanted }) => `${workers.filter(({ state }) => state === "serving").length} of ${wanted}` },
    { key: "memory", label: "Memory", isNumber: true, cell: (app) => bytes(memoryOf(app)) },
    { key: "cpu", label: "CPU", isNumber: true, cell: ({ app }) => percentOf(latestOf(history, app, "cpu_percent")) },
    { key: "lag", label: "Lag", isNumber: true, title: "longest delay of an event loop", cell: (app) => ms(lagOf(app)) },
    { key: "flight", label: "In flight", isNumber: true, isMinor: true, cell: ({ workers }) => workers.reduce((sum, { in_flight }) => sum + in_flight, 0) },
    { key: "queued", label: "Queued", isNumber: true, cell: ({ queued }) => <Loud value={queued}>{queued}</Loud> },
    { key: "failures", label: "Exits", isNumber: true, title: "workers that ended by themselves, since the start", cell: ({ app, failures }) => <Exits number={failures} last={exits.find(({ subject }) => subject === app)} /> },
  ];
  return <Table label="Applications" columns={columns} rows={ranked(apps, level.app)} keyOf={({ app }) => app} empty="No application is configured; files and upstreams need none." />;
}

const percentOf = (value) => (value === null ? "–" : `${Math.round(value)} %`);
const Exits = ({ number, last }) => (number === 0 ? <span class="faint">0</span> : <>{number}{last && `, last ${clock(last.at)}`}</>);

export function Upstreams({ proxies, isWhole }) {
  const rows = proxies.flatMap(({ proxy, policy, upstreams }) => upstreams.map((one) => ({ ...one, proxy, policy })));
  const columns = [
    { key: "upstream", label: "Upstream", isText: true, cell: ({ upstream, addresses }) => <><span class="name" title={upstream}>{upstream}</span>{addresses > 1 && <small> {addresses} addresses</small>}</> },
    { key: "state", label: "State", cell: (one) => <State level={level.upstream(one)} text={one.down_seconds ? `${one.state} ${duration(one.down_seconds)}` : one.state} /> },
    { key: "flight", label: "In flight", isNumber: true, cell: ({ in_flight }) => in_flight },
    { key: "latency", label: "Latency", isNumber: true, cell: ({ latency_ms }) => ms(latency_ms) },
    { key: "failures", label: "Failures", isNumber: true, title: "since the start", cell: ({ failures }) => <Loud value={failures}>{count(failures)}</Loud> },
    { key: "retries", label: "Retries", isNumber: true, isMinor: true, cell: ({ retries }) => <Loud value={retries}>{count(retries)}</Loud> },
  ];
  const whole = [
    { key: "open", label: "Open", isNumber: true, cell: ({ connections }) => connections.open },
    { key: "idle", label: "Idle", isNumber: true, cell: ({ connections }) => connections.idle },
    { key: "waiting", label: "Waiting", isNumber: true, cell: ({ connections }) => connections.waiting },
    { key: "dials", label: "Dials", isNumber: true, isMinor: true, title: "connections made, and those that failed", cell: ({ connections }) => `${count(connections.dials)}, ${count(connections.dial_failures)} failed` },
    { key: "reused", label: "Reused", isNumber: true, isMinor: true, cell: ({ connections }) => count(connections.reused) },
    { key: "reason", label: "Reason", isText: true, cell: ({ reason }) => reason ?? "" },
  ];
  return <Table label="Upstreams" columns={isWhole ? [...columns, ...whole] : columns} rows={ranked(rows, level.upstream)} keyOf={({ proxy, upstream }) => proxy + upstream} empty="Nothing is proxied." />;
}

const CAUSES = {
  in_flight: "none may wait", queue_full: "queue full", wait: "waited too long", queue_age: "queue stood still",
  outranked: "outranked", lag: "event loop lag",
};

export function Limits({ limits }) {
  const rows = limits.toSorted((one, other) => shedOf(other) - shedOf(one));
  const columns = [
    { key: "limit", label: "Limit", isText: true, cell: ({ limit }) => <span class="name" title={limit}>{limit}</span> },
    { key: "used", label: "In flight", isNumber: true, cell: ({ in_flight, bound, limit }) => <><Bar value={in_flight} bound={bound} label={`${limit}: ${in_flight} of ${bound ?? "any number"}`} /> {in_flight} of {bound ?? "any"}</> },
    { key: "kind", label: "Bound", isMinor: true, cell: ({ is_adaptive, bound }) => (bound === null ? "by lag" : is_adaptive ? "adapts" : "fixed") },
    { key: "queued", label: "Queued", isNumber: true, cell: ({ queued }) => <Loud value={queued}>{count(queued)}</Loud> },
    { key: "in", label: "Let in", isNumber: true, isMinor: true, cell: ({ let_in }) => count(let_in) },
    { key: "shed", label: "Refused", isNumber: true, title: "since the start", cell: (one) => <Loud value={shedOf(one)}>{count(shedOf(one))}</Loud> },
    { key: "why", label: "By cause", isText: true, cell: ({ shed }) => Object.entries(shed).filter(([, number]) => number > 0).map(([cause, number]) => `${CAUSES[cause] ?? cause} ${count(number)}`).join(", ") },
  ];
  return <Table label="Limits" columns={columns} rows={rows} keyOf={({ limit }) => limit} empty="No limit is set." />;
}

export function Certificates({ certificates, isWhole, most }) {
  const columns = [
    { key: "names", label: "Names", isText: true, cell: ({ names }) => <span class="name" title={names.join(", ")}>{names[0]}{names.length > 1 && <small> and {names.length - 1} more</small>}</span> },
    { key: "state", label: "State", cell: (one) => <State level={level.certificate(one)} text={one.state.replaceAll("_", " ")} /> },
    { key: "left", label: "Expires", isNumber: true, cell: ({ seconds_left: left }) => (left === null ? "–" : left < 0 ? `${duration(left)} ago` : `in ${duration(left)}`) },
    { key: "renews", label: "Renewal", isNumber: true, cell: ({ file, renews_in_seconds: left }) => (file ? "by hand" : left === null ? "–" : left <= 0 ? "now" : `in ${duration(left)}`) },
  ];
  const whole = [
    { key: "at", label: "Expires at", isMinor: true, cell: ({ expires_at }) => expires_at?.replace("T", " ").replace("Z", " UTC") ?? "–" },
    { key: "issuer", label: "Issuer", isMinor: true, cell: ({ issuer, file }) => <><span>{issuer ?? "–"}</span>{file && <small>{file}</small>}</> },
    { key: "reason", label: "Problem", isText: true, cell: ({ reason }) => reason ?? "" },
  ];
  return <Table label="Certificates" columns={isWhole ? [...columns, ...whole] : columns} rows={ranked(certificates, level.certificate)} keyOf={({ names, issuer, file }) => `${names} ${issuer} ${file}`} most={most} empty="No certificate: no site speaks HTTPS." />;
}

export function Events({ events, most, empty }) {
  if (events.length === 0) return <p class="empty">{empty}</p>;
  return (
    <ol class="events">
      {events.slice(0, most).map((event) => (
        <li key={`${event.at}${event.event}${event.text}`}>
          <time dateTime={new Date(event.at * 1000).toISOString()}>{clock(event.at)}</time>
          <span class="kind"><i aria-hidden="true">{signOf(event)}</i> {kindOf(event)}</span>
          <span>{event.text}</span>
        </li>
      ))}
    </ol>
  );
}

export const liveRate = ({ sites }) => perSecond(Object.values(sites).reduce((sum, { requests }) => sum + requests, 0));
export const workersOf = (apps) => ({ memory: apps.reduce((sum, app) => sum + memoryOf(app), 0), text: plural(apps.reduce((sum, { workers }) => sum + workers.length, 0), "worker") });
