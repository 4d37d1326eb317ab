// The tables that the overview shows short and a view of their own shows whole.

import { Sparkline } from "./chart.jsx";
import { bytes, bytesPerSecond, clock, count, duration, ms, percent, perSecond, plural, rate, share, siteName } from "./format.js";
import { kindOf, signOf } from "./marks.js";
import { latestOf } from "./panels.jsx";
import { Bar, Delta, Figure, figure, State, Table, text } from "./parts.jsx";
import { expiresSoon, level, shedOf, siteState } from "./state.js";
import { usePage } from "./view.js";

const RANK = { bad: 0, warn: 1, busy: 2, well: 3 };
/** Worst first, else as they came. */
const ranked = (rows, levelOf) => rows.toSorted((one, other) => RANK[levelOf(one)] - RANK[levelOf(other)]);
const minor = { isMinor: true };
const sinceStart = { title: "since the start" };

export function Sites({ history, most }) {
  const { route, live, now } = usePage();
  const seconds = history.to - history.from;
  const link = ({ site }) => <a class="row" href={route.link("sites", site)} title={site}>{siteName(site)}</a>;
  const curve = ({ site, sparkline }) => <Sparkline values={sparkline} label={`Requests of ${siteName(site)} over the range`} />;
  const withDelta = (field, write, isBad) => ({
    cell: ({ total, previous }) => <>{write(total[field])} <Delta value={total[field]} before={previous[field]} isBad={isBad} /></>,
  });
  const columns = [
    text("site", "Site", link, { sort: ({ site }) => siteName(site) }),
    { key: "state", label: "Now", cell: ({ site }) => <State {...siteState(site, now)} /> },
    { key: "curve", label: "Requests", cell: curve },
    figure("live", "now /s", ({ site }) => live.sites[site]?.requests, rate, minor),
    figure("rate", "avg /s", ({ total }) => total.requests, rate, withDelta("requests", (value) => rate(value / seconds))),
    figure("p50", "p50", ({ total }) => total.p50_ms, ms, minor),
    figure("p90", "p90", ({ total }) => total.p90_ms, ms, minor),
    figure("p99", "p99", ({ total }) => total.p99_ms, ms, withDelta("p99_ms", ms, true)),
    figure("errors", "Errors", ({ total }) => total.errors, null, {
      cell: ({ total }) => <Figure value={total.errors}>{share(total.errors, total.requests)}</Figure>,
    }),
    figure("rejected", "Refused", ({ total }) => total.rejected),
    figure("bytes", "Sent", ({ total }) => total.bytes / seconds, bytesPerSecond, minor),
    figure("cold", "Cold starts", ({ total }) => total.cold_starts, null, {
      isMinor: true, title: "not in the percentiles", cell: ({ total }) => <Cold total={total} />,
    }),
  ];
  return <Table label="Sites" columns={columns} rows={history.sites} keyOf={({ site }) => site} most={most} empty="No site is configured." />;
}

const Cold = ({ total: { cold_starts: number, slowest_cold_start_ms: slowest } }) =>
  number > 0 ? <><span class="ink-purple" aria-hidden="true">◆</span> {count(number)}, up to {ms(slowest)}</> : <Figure value={0}>0</Figure>;

const sum = (workers, field) => workers.reduce((all, one) => all + one[field], 0);
const memoryOf = ({ workers }) => sum(workers, "resident_bytes");
const lagOf = ({ workers }) => workers.reduce((most, { lag_ms }) => Math.max(most, lag_ms), 0);

export function Apps({ apps, history, isWhole }) {
  const { route, lately } = usePage();
  const serving = ({ workers }) => workers.filter(({ state }) => state === "serving").length;
  const lastExit = ({ app }) => lately.find(({ event, subject }) => event === "worker_exited" && subject === app);
  const exits = (app) => `${count(app.failures)}${lastExit(app) ? `, last ${clock(lastExit(app).at)}` : ""}`;
  const columns = [
    text("app", "Application", ({ app }) => <a class="row" href={route.link("apps")}>{app}</a>),
    { key: "state", label: "State", cell: (app) => <State level={level.app(app)} text={app.state} /> },
    figure("workers", "Workers", serving, null, { title: "serving, of those wanted", cell: (app) => `${serving(app)} of ${app.wanted}` }),
    figure("memory", "Memory", memoryOf, bytes),
    figure("cpu", "CPU", ({ app }) => latestOf(history, app, "cpu_percent"), (value) => percent(value && Math.round(value)), { title: "of one core" }),
    figure("lag", "Lag", lagOf, ms, { title: "longest delay of an event loop" }),
    isWhole && figure("flight", "In flight", ({ workers }) => sum(workers, "in_flight"), count, minor),
    figure("queued", "Queued", ({ queued }) => queued),
    figure("failures", "Exits", ({ failures }) => failures, null, {
      title: "workers that ended without being told to, since the start", cell: (app) => <Figure value={app.failures}>{exits(app)}</Figure>,
    }),
  ].filter(Boolean);
  const empty = "No application is configured; files and upstreams need none.";
  return <Table label="Applications" columns={columns} rows={ranked(apps, level.app)} keyOf={({ app }) => app} empty={empty} />;
}

export function Upstreams({ proxies, isWhole }) {
  const rows = proxies.flatMap(({ proxy, upstreams }) => upstreams.map((one) => ({ ...one, proxy })));
  const name = ({ upstream, addresses, reason }) => (
    <>
      <span class="name" title={upstream}>{upstream}</span>
      {addresses > 1 && <small>{addresses} addresses</small>}
      {reason && <small>{reason}</small>}
    </>
  );
  const state = (one) => <State level={level.upstream(one)} text={one.down_seconds ? `${one.state} ${duration(one.down_seconds)}` : one.state} />;
  const of = (field) => ({ connections }) => connections[field];
  const columns = [
    text("upstream", "Upstream", name),
    { key: "state", label: "State", cell: state },
    figure("flight", "In flight", ({ in_flight }) => in_flight),
    figure("latency", "Latency", ({ latency_ms }) => latency_ms, ms),
    figure("failures", "Failures", ({ failures }) => failures, count, sinceStart),
  ];
  const whole = [
    figure("retries", "Retries", ({ retries }) => retries, count, sinceStart),
    figure("open", "Open", of("open"), count, { title: "connections" }),
    figure("idle", "Idle", of("idle"), count, { title: "connections" }),
    figure("waiting", "Waiting", of("waiting"), count, { title: "requests that wait for a connection" }),
    figure("dials", "Dials", of("dials"), count, { isMinor: true, title: "connections made since the start" }),
    figure("failed", "Failed", of("dial_failures"), count, { isMinor: true, title: "connections that could not be made" }),
    figure("reused", "Reused", of("reused"), count, { isMinor: true, title: "requests that took an open connection" }),
  ];
  const keyOf = ({ proxy, upstream }) => proxy + upstream;
  return (
    <Table label="Upstreams" columns={isWhole ? [...columns, ...whole] : columns} rows={ranked(rows, level.upstream)} keyOf={keyOf}
      empty="Nothing is proxied." />
  );
}

const CAUSES = {
  in_flight: "none may wait", queue_full: "queue full", wait: "waited too long", queue_age: "queue stood still",
  outranked: "outranked", lag: "event loop lag",
};
const causesOf = (shed) =>
  Object.entries(shed).filter(([, number]) => number > 0).map(([cause, number]) => `${CAUSES[cause] ?? cause} ${count(number)}`).join(", ");

export function Limits({ limits, isWhole }) {
  const rows = limits.toSorted((one, other) => shedOf(other) - shedOf(one));
  const used = ({ in_flight, bound, limit }) => {
    const words = `${count(in_flight)} of ${bound === null ? "any" : count(bound)}`;
    return <>{words} <Bar value={in_flight} bound={bound} label={`${limit}: ${words}`} /></>;
  };
  const name = ({ limit, shed }) => (
    <><span class="name" title={limit}>{limit}</span>{shedOf({ shed }) > 0 && <small>{causesOf(shed)}</small>}</>
  );
  const kind = ({ is_adaptive, bound }) => (bound === null ? "by lag" : is_adaptive ? "adapts" : "fixed");
  const columns = [
    text("limit", "Limit", name),
    figure("used", "In flight", ({ in_flight }) => in_flight, null, { cell: used }),
    isWhole && { key: "kind", label: "Bound", isMinor: true, cell: kind },
    figure("queued", "Queued", ({ queued }) => queued),
    isWhole && figure("in", "Let in", ({ let_in }) => let_in, count, minor),
    figure("shed", "Refused", shedOf, count, sinceStart),
  ].filter(Boolean);
  return <Table label="Limits" columns={columns} rows={rows} keyOf={({ limit }) => limit} empty="No limit is set." />;
}

/** How far the end of a certificate is, and its renewal. */
const expiry = ({ seconds_left: left }) => (left === null ? "–" : left < 0 ? `${duration(left)} ago` : `in ${duration(left)}`);
const renewal = ({ file, renews_in_seconds: left }) => (file ? "by hand" : left === null ? "–" : left <= 0 ? "now" : `in ${duration(left)}`);
const certificateState = (one) => (one.state === "valid" && expiresSoon(one) ? "expires soon" : one.state.replaceAll("_", " "));

export function Certificates({ certificates, isWhole, most }) {
  const names = (all) => (
    <span class="name" title={all.join(", ")}>{all[0]}{all.length > 1 && <small> and {all.length - 1} more</small>}</span>
  );
  const columns = [
    text("names", "Names", (one) => (isWhole ? one.names.join(", ") : names(one.names))),
    { key: "state", label: "State", cell: (one) => <State level={level.certificate(one)} text={certificateState(one)} /> },
    figure("left", "Expires", ({ seconds_left }) => seconds_left, null, { cell: expiry }),
    figure("renews", "Renewal", ({ renews_in_seconds }) => renews_in_seconds, null, { cell: renewal }),
  ];
  const hasReasons = certificates.some(({ reason }) => reason);
  const whole = [
    { key: "at", label: "Expires at", isMinor: true, cell: ({ expires_at }) => expires_at?.replace("T", " ").replace("Z", " UTC") ?? "–" },
    { key: "issuer", label: "Issuer", isMinor: true, cell: ({ issuer, file }) => <>{issuer ?? "–"}{file && <small>{file}</small>}</> },
    hasReasons && text("reason", "Problem", ({ reason }) => reason ?? ""),
  ].filter(Boolean);
  return (
    <Table label="Certificates" columns={isWhole ? [...columns, ...whole] : columns} rows={ranked(certificates, level.certificate)} most={most}
      keyOf={({ names, issuer, file }) => `${names} ${issuer} ${file}`} empty="No certificate: no site speaks HTTPS." />
  );
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

export const liveRate = ({ sites }) => perSecond(Object.values(sites).reduce((all, { requests }) => all + requests, 0));

/** What all workers take. */
export const workersOf = (apps) => ({
  memory: apps.reduce((all, app) => all + memoryOf(app), 0),
  text: plural(apps.reduce((all, { workers }) => all + workers.length, 0), "worker"),
});
