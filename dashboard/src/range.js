// Ranges of time: the seven with a name, and one that was zoomed into. Pure.

export const RANGES = [
  { key: "15m", label: "15 min", seconds: 900 },
  { key: "1h", label: "1 h", seconds: 3600 },
  { key: "6h", label: "6 h", seconds: 6 * 3600 },
  { key: "24h", label: "24 h", seconds: 86400 },
  { key: "7d", label: "7 d", seconds: 7 * 86400 },
  { key: "30d", label: "30 d", seconds: 30 * 86400 },
  { key: "90d", label: "90 d", seconds: 90 * 86400 },
];
const USUAL = RANGES[1];
const SHORTEST_SECONDS = 60; // six points of the finest step
const LONGEST_SECONDS = RANGES.at(-1).seconds;

/** The range that a view's query asks for. `key` differs exactly where the range does. */
export function rangeOf(query) {
  const from = Number(query.from);
  const to = Number(query.to);
  if (query.from && query.to && to - from >= SHORTEST_SECONDS && to - from <= LONGEST_SECONDS) {
    return { key: `${from}-${to}`, from, to, seconds: to - from, isLive: false };
  }
  const named = RANGES.find((range) => range.key === query.range) ?? USUAL;
  return { ...named, isLive: true };
}

/** Its seconds as of now. */
export function windowOf(range, now) {
  if (!range.isLive) return { from: range.from, to: range.to };
  const to = Math.floor(now);
  return { from: to - range.seconds, to };
}

/** The window of the same length just before. */
export const before = ({ from, to }) => ({ from: from - (to - from), to: from });

/** How often its figures are asked for again, in seconds: about its step; null where it never changes. */
export function refreshSeconds(range) {
  if (!range.isLive) return null;
  if (range.seconds <= 3600) return 10;
  return range.seconds <= 86400 ? 60 : 300;
}

/** The query for a stretch dragged in a chart: widened to what can be shown, whole seconds. */
export function zoomed(query, from, to) {
  const middle = (from + to) / 2;
  const half = Math.max(to - from, SHORTEST_SECONDS) / 2;
  const { range, ...others } = query;
  const zoom = { from: String(Math.floor(middle - half)), to: String(Math.ceil(middle + half)) };
  return { ...others, ...zoom, ...(range ? { range } : {}) };
}

/** The query without its zoom. */
export function unzoomed({ from: _from, to: _to, ...others }) {
  return others;
}
