// One curve panel: uPlot for the curves, our own legend in text, events and cold starts drawn over it.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { marks, nearestEvent } from "./marks.js";
import { bytes, bytesPerSecond, clock, count, ms } from "./format.js";
import { usePage } from "./view.js";

const NEAR_PX = 7;
const NOTHING = []; // one and the same, or each render would look like new data
const DASHES = { solid: [], dashed: [6, 4], dotted: [2, 3] };
const FONT = "11px Inter, system-ui, sans-serif";

// Round steps of an axis: binary for bytes, whole ones for counts.
const BINARY = [0, 1, 2, 3, 4].flatMap((unit) => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((step) => step * 1024 ** unit));
const WHOLE = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
const STEPS = new Map([[bytes, BINARY], [bytesPerSecond, BINARY], [count, WHOLE]]);
/** The least that an axis shows, so that nothing at all is a line at its foot and no noise. */
const leastOf = (format) => (STEPS.has(format) ? 4 : format === ms ? 0 : 1);

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function seriesOptions({ label, color, line = "solid", isFilled = false, width = 1.5 }) {
  const stroke = css(`--${color}`);
  return { label, stroke, width, dash: DASHES[line], fill: isFilled ? `${stroke}26` : undefined, points: { show: false }, spanGaps: false };
}

function axisOptions(format, wide) {
  const common = { stroke: css("--soft"), font: FONT, ticks: { show: false }, grid: { stroke: css("--grid"), width: 1 } };
  const time = { ...common, size: 26, gap: 6, space: 64, grid: { show: false }, values: timeLabels };
  const figures = { ...common, ...(STEPS.get(format) ? { incrs: STEPS.get(format) } : {}) };
  const values = (_, all) => all.map((value) => (value === 0 ? "0" : format(value)));
  return [time, { ...figures, size: wide ? 70 : 62, gap: 6, space: 28, values }];
}

/** Times in words that people write: 14:05, or the day where the range has several. */
function timeLabels(plot, values) {
  const span = plot.scales.x.max - plot.scales.x.min;
  return values.map((at) => {
    const date = new Date(at * 1000);
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    const text = clock(at, at);
    if (span > 2 * 86400 || isMidnight) return clock(at, at - 10 * 86400).split(" ").slice(0, isMidnight || span > 4 * 86400 ? 2 : 3).join(" ");
    return text;
  });
}

function makePlot(node, { series, format, range, onZoom, onCursor, overlay }) {
  const options = {
    width: node.clientWidth,
    height: node.clientHeight,
    padding: [14, 16, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: "all" }, y: false, points: { size: 6 },
      drag: { x: true, y: false, setScale: false }, focus: { prox: -1 },
    },
    scales: {
      x: { time: true, range: () => [range.from, range.to] },
      y: { range: (_, min, max) => [0, Math.max(1.12 * (max ?? 0), leastOf(format)) || 1] },
    },
    axes: axisOptions(format, node.clientWidth > 500),
    series: [{}, ...series.map(seriesOptions)],
    hooks: {
      draw: [(plot) => marks(plot, overlay(), { css, font: FONT })],
      setCursor: [onCursor],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 6) return;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          onZoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
        },
      ],
    },
  };
  return new uPlot(options, [[], ...series.map(() => [])], node);
}

/** What a screen reader hears in place of the curves. */
function summary(title, series, format) {
  const parts = series.map(({ label, values }) => {
    const known = values.filter((value) => value !== null);
    return known.length ? `${label}: last ${format(known.at(-1))}, highest ${format(Math.max(...known))}` : `${label}: nothing recorded`;
  });
  return `${title}. ${parts.join("; ")}. Arrow keys move the cursor.`;
}

/**
 * `series`: `{label, values, color, line, isFilled}`; `events` and `coldStarts` (`{at, count}`) are drawn over
 * the curves; `range` is the window that the axis shows.
 */
export function Chart({ title, note, times, series, format, range, events = NOTHING, coldStarts = NOTHING, onZoom }) {
  const { isDark } = usePage();
  const node = useRef(null);
  const plot = useRef(null);
  const latest = useRef({});
  const [cursor, setCursor] = useState(null);
  latest.current = { events, coldStarts, onZoom };
  const shape = series.map(({ label, color, line }) => `${label}${color}${line}`).join();

  useEffect(() => {
    const element = node.current;
    const onCursor = (made) => {
      const { idx, left } = made.cursor;
      const isOver = idx !== null && idx !== undefined && left >= 0;
      // The other panels' cursors follow; only the one that is pointed at tells of the event.
      const isPointedAt = made.over.matches(":hover") || element === document.activeElement;
      const event = isPointedAt ? nearestEvent(made, latest.current.events, left, NEAR_PX) : null;
      const next = isOver ? { index: idx, event } : null;
      setCursor((old) => (old?.index === next?.index && old?.event === next?.event ? old : next));
    };
    const window = { from: range.from, to: range.to };
    const made = makePlot(element, {
      series, format, range: window, onCursor, overlay: () => latest.current,
      onZoom: (from, to) => latest.current.onZoom?.(from, to),
    });
    made.window = window;
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: element.clientHeight }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
    };
  }, [shape, isDark]);

  useEffect(() => {
    Object.assign(plot.current.window, { from: range.from, to: range.to });
    plot.current.setData([times, ...series.map(({ values }) => values)]);
  }, [times, series, shape, isDark, range.from, range.to, events, coldStarts]);

  const onKeyDown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || times.length === 0) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(times.length - 1, (cursor?.index ?? times.length) + step));
    plot.current.setCursor({ left: plot.current.valToPos(times[index], "x"), top: 1 });
  };
  const isEmpty = series.every(({ values }) => values.every((value) => value === null));
  const index = cursor?.index;
  const valueAt = (values) => (index === undefined ? (values.findLast((value) => value !== null) ?? null) : (values[index] ?? null));
  return (
    <figure class="card chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="when">{index === undefined ? note : clock(times[index], undefined, range.to - range.from <= 3600)}</span>
        <ul class="legend">
          {series.map((one) => (
            <li key={one.label}>
              <Swatch {...one} />
              {one.label} <b>{format(valueAt(one.values))}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" ref={node} role="img" tabIndex={0} aria-label={summary(title, series, format)} onKeyDown={onKeyDown}>
        {isEmpty && <p class="nothing">Nothing recorded in this range</p>}
      </div>
      {cursor?.event && <p class="event-near">{clock(cursor.event.at)} {cursor.event.text}</p>}
    </figure>
  );
}

/** The curve's line as the legend shows it: its dash tells it apart where its colour does not. */
function Swatch({ color, line = "solid" }) {
  return (
    <svg class={`swatch ink-${color}`} width="18" height="8" aria-hidden="true">
      <line x1="0" x2="18" y1="4" y2="4" stroke-width="2.5" stroke-dasharray={DASHES[line].join(" ")} />
    </svg>
  );
}

/** A small curve without axes. */
export function Sparkline({ values, label }) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0.001);
  const x = (index) => ((100 * index) / Math.max(values.length - 1, 1)).toFixed(1);
  const y = (value) => (22 - (20 * value) / most).toFixed(1);
  const points = values.map((value, index) => (value === null ? null : `${x(index)},${y(value)}`)).filter(Boolean);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && <polygon points={`0,24 ${points.join(" ")} 100,24`} />}
      {points.length > 1 && <polyline points={points.join(" ")} vector-effect="non-scaling-stroke" />}
    </svg>
  );
}
