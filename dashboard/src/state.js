// What is wrong now, worst first, and the one sentence that says it. Pure.

import { href } from "./route.js";
import { clock, duration, list, ms, percent, perSecond, plural, share, siteName } from "./format.js";

const ERROR_SHARE_MAX = 0.01; // of the last minutes' requests
const MIN_ERRORS = 3; // one failure is no state
const SLOW_FACTOR = 2; // against what is usual
const SLOW_RISE_MS = 50; // a rise that nobody feels is none
const MIN_REQUESTS = 20; // fewer have no p99
const MIN_EXITS = 3; // of one application within an hour: it restarts again and again
const LAG_MS_MAX = 200; // an event loop blocked for longer delays each request that it has
const FILE_SECONDS_MIN = 14 * 86400; // a certificate from a file is renewed by a person, who needs time

export const RECENT_SECONDS = 300;

/** The level of each thing that has a state: what `State` shows a sign for. */
export const level = {
  app: ({ state }) => ({ serving: "well", starting: "busy", failing: "bad" })[state] ?? "warn",
  worker: ({ state }) => ({ serving: "well", starting: "busy", draining: "busy", stuck: "bad" })[state] ?? "warn",
  upstream: ({ state }) => ({ up: "well", full: "warn", down: "bad", failing: "bad" })[state] ?? "warn",
  certificate: (one) => {
    if (one.state === "expired" || (one.state === "failing" && one.seconds_left === null)) return "bad";
    if (one.reason || expiresSoon(one)) return "warn";
    return one.state === "valid" ? "well" : "busy";
  },
};

/** Whether a certificate ends before somebody, or onehop itself, is to renew it. */
export function expiresSoon({ seconds_left, renews_in_seconds }) {
  if (seconds_left === null) return false;
  return renews_in_seconds === null ? seconds_left < FILE_SECONDS_MIN : seconds_left < renews_in_seconds;
}

/** Requests that a limit did not let in, since the start. */
export const shedOf = ({ shed }) => Object.values(shed).reduce((sum, number) => sum + number, 0);

/**
 * Everything that is wrong: `{level, text, next, href}`, worst first. Each source may be missing yet. `recent` is
 * `/history/sites` of the last minutes, `usual` what `usualOf` reads, `events` are those of the last day.
 */
export function problemsOf({ status, certificates, recent, usual, events, now }) {
  const causes = [
    ...(status?.apps ?? []).flatMap((app) => ofApp(app, events ?? [], now)),
    ...(status?.proxies ?? []).flatMap(ofProxy),
    ...(certificates?.certificates ?? []).flatMap(ofCertificate),
  ];
  const sites = (recent?.sites ?? []).flatMap((site) => ofSite(site, usualOf(usual, site.site), events ?? [], status));
  const isBad = (one) => one.level === "bad";
  // What has failed explains what its sites show; what is merely strained matters less than a slow site.
  return [...[...causes, ...sites].filter(isBad), ...[...sites, ...causes].filter((one) => !isBad(one))];
}

/** A site's usual p99 from short samples of hours ago: the lower quartile, so that half a day of trouble does not count as usual. */
export function usualOf(samples, site) {
  const own = (samples ?? []).flatMap(({ sites }) => sites.filter((one) => one.site === site));
  const totals = own.flatMap(({ total, previous }) => [total, previous]);
  const known = totals.filter((one) => one.p99_ms && one.requests >= MIN_REQUESTS).map(({ p99_ms }) => p99_ms);
  return known.length ? known.sort((one, other) => one - other)[Math.floor(known.length / 4)] : null;
}

function ofApp(app, events, now) {
  const link = href("apps");
  const problem = (severity, text, next) => ({ level: severity, text, next, href: link });
  if (app.state === "failing") {
    const next = "Fix what the reason names. onehop keeps starting it; the log has its output.";
    return [problem("bad", `${app.app} fails: ${app.reason ?? "its workers end"}`, next)];
  }
  const stuck = app.workers.filter(({ state }) => state === "stuck").map(({ pid }) => pid);
  if (stuck.length > 0) {
    const next = "Roll the application; look for a loop without end in its code.";
    return [problem("bad", `${app.app}: worker ${list(stuck)} does not answer`, next)];
  }
  const exits = events.filter(({ event, subject }) => event === "worker_exited" && subject === app.app)
    .filter(({ at }) => at > now - 3600);
  if (exits.length >= MIN_EXITS) {
    const text = `A worker of ${app.app} restarts again and again: ${exits.length} times, last at ${clock(exits[0].at)}`;
    return [problem("warn", text, `Its last words: ${exits[0].text}`)];
  }
  const lag = Math.max(0, ...app.workers.map(({ lag_ms }) => lag_ms));
  if (lag > LAG_MS_MAX) {
    const next = "Look for synchronous work in its code, or give it more workers.";
    return [problem("warn", `The event loop of ${app.app} is blocked for ${ms(lag)}`, next)];
  }
  return [];
}

function ofProxy({ upstreams }) {
  const ill = upstreams.filter((one) => level.upstream(one) !== "well");
  const others = upstreams.length - ill.length;
  const rest = others > 0 ? `${plural(others, "other")} of its proxy take its requests.` : "No other takes its requests.";
  return ill.map((one) => {
    const since = one.down_seconds ? ` for ${duration(one.down_seconds)}` : "";
    const why = one.reason ? `: ${one.reason}` : "";
    const text = `Upstream ${one.upstream} is ${one.state}${since}${why}`;
    const next = `${rest} Check that it runs and can be reached.`;
    return { level: others > 0 ? "warn" : level.upstream(one), text, next, href: href("upstreams") };
  });
}

function ofCertificate(one) {
  const severity = level.certificate(one);
  if (severity !== "bad" && severity !== "warn") return [];
  const name = one.names[0] + (one.names.length > 1 ? ` and ${one.names.length - 1} more` : "");
  const left = one.seconds_left;
  const end = left === null ? "is missing" : left < 0 ? "has expired" : `expires in ${duration(left)}`;
  const next = one.file ? `Renew ${one.file}, then reload.` : "onehop tries again by itself.";
  const text = `The certificate of ${name} ${end}${one.reason ? `: ${one.reason}` : ""}`;
  return [{ level: severity, text, next, href: href("certificates") }];
}

/** Whether a site's p99 is far above what is usual. */
export function isSlow(total, usual) {
  if (!usual || !total.p99_ms || total.requests < MIN_REQUESTS) return false;
  return total.p99_ms > SLOW_FACTOR * usual && total.p99_ms - usual > SLOW_RISE_MS;
}

/** How a site is in a word: from its last minutes, not from the range shown. */
export function siteState(site, { recent, usual }) {
  const total = recent?.sites.find((one) => one.site === site)?.total;
  if (!total) return { level: "busy", text: "no figures" };
  if (hasErrors(total)) return { level: "bad", text: "fails" };
  if (total.rejected > 0) return { level: "warn", text: "refuses" };
  if (isSlow(total, usualOf(usual, site))) return { level: "warn", text: "slow" };
  return total.requests === 0 ? { level: "busy", text: "quiet" } : { level: "well", text: "well" };
}

const hasErrors = ({ errors, requests }) => errors >= MIN_ERRORS && errors > ERROR_SHARE_MAX * requests;

function ofSite({ site, total }, usual, events, status) {
  const found = [];
  const name = siteName(site);
  const problem = (severity, text, next) => found.push({ level: severity, text, next, href: href("sites", site), about: site });
  if (hasErrors(total)) {
    const text = `${name}: ${share(total.errors, total.requests)} of its requests fail`;
    problem("bad", text, `${plural(total.errors, "error")} in 5 minutes. See which handler, and the failed requests.`);
  }
  if (total.rejected > 0) {
    const limits = (status?.limits ?? []).filter((limit) => shedOf(limit) > 0).map(({ limit }) => limit);
    const next = `${limits.length ? `Refused so far by: ${list(limits)}. ` : ""}Add workers, or raise the limit.`;
    const isOver = isOverloaded(events) ? ", overloaded" : "";
    problem("warn", `${name}${isOver}: ${plural(total.rejected, "request")} refused in 5 minutes`, next);
    found.at(-1).href = href("limits");
  }
  if (isSlow(total, usual)) {
    const text = `${name} is slow: p99 ${ms(total.p99_ms)}, usually ${ms(usual)}`;
    problem("warn", text, "See since when, after which event, and where the time goes.");
    found.at(-1).slowSite = site;
  }
  return found;
}

/** Whether the newest word on overload is that it began. */
export function isOverloaded(events) {
  return events.find(({ event }) => event.startsWith("overload_"))?.event === "overload_began";
}

/** The first row of the page: `{level, text, next, href?}`. */
export function sentenceOf({ status, problems, recent, lostAt }) {
  if (lostAt) {
    const next = "The page keeps asking. See whether the process runs; its log says why it ended.";
    return { level: "bad", text: `onehop does not answer since ${clock(lostAt, undefined, true)}`, next };
  }
  if (!status) return { level: "busy", text: "Asking onehop …", next: "" };
  const sites = status.sites.length;
  if (problems.length > 0) return problems[0];
  if (sites === 0) {
    return { level: "busy", text: "No site is configured", next: "Add one to the Onehopfile, then run onehop reload." };
  }
  const all = sites === 1 ? "The site" : `All ${sites} sites`;
  const are = sites === 1 ? "is" : "are";
  if (status.requests === 0) {
    const next = `onehop listens at ${list(status.listening.slice(0, 3))}.`;
    return { level: "well", text: `${all} ${are} ready; no request has come yet`, next };
  }
  return { level: "well", text: `${all} ${are} well`, next: recent ? figures(recent.sites) : "" };
}

function figures(sites) {
  const sum = (field) => sites.reduce((all, { total }) => all + (total[field] ?? 0), 0);
  const requests = sum("requests");
  if (requests === 0) return "No requests in the last 5 minutes.";
  const slowest = sites.reduce((most, one) => ((one.total.p99_ms ?? 0) > (most.total.p99_ms ?? 0) ? one : most));
  const errors = sum("errors") === 0 ? "no errors" : `${percent((100 * sum("errors")) / requests)} errors`;
  const p99 = slowest.total.p99_ms ? `; slowest p99 ${ms(slowest.total.p99_ms)} at ${siteName(slowest.site)}` : "";
  return `Last 5 minutes: ${perSecond(requests / RECENT_SECONDS)}, ${errors}${p99}.`;
}
