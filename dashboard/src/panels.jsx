// The curve panels that the overview and a site share, made from `/history` and `/history/apps`.

import { useMemo } from "preact/hooks";
import { Chart } from "./chart.jsx";
import { useHistory, useRange } from "./data.js";
import { bytes, bytesPerSecond, count, ms, percent, perSecond } from "./format.js";
import { windowOf, zoomed } from "./range.js";
import { now } from "./data.js";
import { usePage } from "./view.js";

const COLORS = ["blue", "orange", "green", "purple", "sky", "red"];
const LINES = ["solid", "dashed", "dotted"];
const NOTHING = [];

/** A former range's values on the axis of this one. */
const onto = (values, length) => Array.from({ length }, (_, index) => values[index] ?? null);

/** What a range looks like, from its answer: `{times, series, window, former, coldStarts, step}`. */
export function useCurves(site) {
  const { route } = usePage();
  const isCompared = route.query.compare === "1";
  const answer = useHistory(route.range, { site });
  const former = useHistory(route.range, { site, isPrevious: true, isWanted: isCompared });
  return useMemo(() => {
    const data = answer.data;
    if (!data) return { ...answer, times: NOTHING, series: {}, window: windowOf(route.range, now()), coldStarts: NOTHING };
    const cold = data.series.cold_starts ?? [];
    const coldStarts = data.times.map((at, index) => ({ at, count: cold[index] })).filter(({ count }) => count > 0);
    return {
      ...answer, times: data.times, series: data.series, window: { from: data.from, to: data.to }, step: data.step_seconds,
      coldStarts: route.query.cold === "0" ? NOTHING : coldStarts,
      former: isCompared ? former.data?.series : null,
    };
  }, [answer.data, answer.error, former.data, isCompared, route.query.cold]);
}

function usePanel() {
  const { route, events } = usePage();
  const onZoom = (from, to) => route.set(zoomed(route.query, from, to));
  return { events, onZoom };
}

const curve = (values, label, color, line = "solid", others = {}) => ({ values: values ?? NOTHING, label, color, line, ...others });

/** Appends the former range's curve if it is asked for. */
const withFormer = (series, curves, field) =>
  curves.former?.[field] ? [...series, curve(onto(curves.former[field], curves.times.length), "before", "soft", "dashed")] : series;

export function Requests({ curves }) {
  const panel = usePanel();
  const { requests } = curves.series;
  const series = useMemo(() => withFormer([curve(requests, "requests", "blue", "solid", { isFilled: true })], curves, "requests"), [curves]);
  return <Chart {...panel} title="Requests" note="per second" times={curves.times} range={curves.window} series={series} format={perSecond} />;
}

export function Failures({ curves }) {
  const panel = usePanel();
  const { errors, rejected } = curves.series;
  const series = useMemo(() => [
    curve(errors, "errors", "red", "solid", { isFilled: true }), curve(rejected, "refused", "orange", "dashed", { width: 2 }),
  ], [curves]);
  return <Chart {...panel} title="Not served" times={curves.times} range={curves.window} series={series} format={perSecond} />;
}

export function Latency({ curves }) {
  const panel = usePanel();
  const { p50_ms, p90_ms, p99_ms } = curves.series;
  const series = useMemo(() => withFormer([
    curve(p99_ms, "p99", "blue", "solid", { width: 2 }),
    curve(p90_ms, "p90", "sky", "dashed"),
    curve(p50_ms, "p50", "green", "dotted", { width: 2 }),
  ], curves, "p99_ms"), [curves]);
  const note = curves.coldStarts.length > 0 && <>without cold starts <span class="ink-purple" aria-hidden="true">◆</span></>;
  return (
    <Chart {...panel} title="Latency" note={note} times={curves.times} range={curves.window} series={series} format={ms}
      coldStarts={curves.coldStarts} />
  );
}

/** One field as a small panel. */
export function Field({ curves, field, title, note, format, color = "blue" }) {
  const panel = usePanel();
  const values = curves.series[field];
  const series = useMemo(() => withFormer([curve(values, title.toLowerCase(), color, "solid", { isFilled: true })], curves, field), [curves]);
  return (
    <Chart {...panel} title={title} note={note} times={curves.times} range={curves.window} series={series} format={format} />
  );
}

export const Sent = ({ curves }) => <Field curves={curves} field="bytes" title="Sent" format={bytesPerSecond} color="green" />;

export const useApps = () => useRange("/history/apps", usePage().route.range);

/** The latest known value of a field of one application. */
export const latestOf = (history, app, field) =>
  history?.apps.find((one) => one.app === app)?.series[field]?.findLast((value) => value !== null) ?? null;

const FIELDS = {
  cpu_percent: { title: "CPU of workers", note: "of one core", format: percent },
  resident_bytes: { title: "Memory of workers", format: bytes },
  lag_ms: { title: "Event loop lag", format: ms },
  in_flight: { title: "In flight", format: count },
  queued: { title: "Queued", format: count },
};

/** One field of several applications as a panel; `names` may be null for all. */
export function OfApps({ history, field, names }) {
  const panel = usePanel();
  const { route } = usePage();
  const { title, note, format } = FIELDS[field];
  const series = useMemo(() => {
    const apps = (history?.apps ?? []).filter(({ app }) => !names || names.includes(app));
    return apps.map(({ app, series }, index) =>
      curve(series[field], app, COLORS[index % COLORS.length], LINES[Math.floor(index) % LINES.length]));
  }, [history, field, names?.join()]);
  const window = useMemo(() => windowOf(route.range, now()), [history, route.range.key]);
  return (
    <Chart {...panel} title={title} note={note} times={history?.times ?? NOTHING} range={window} series={series} format={format} />
  );
}
