// Figures as text. Pure; null and undefined become "–", never "NaN".

const NONE = "–";
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

/** Three significant digits at most, thousands separated. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(size < 1 ? 2 : 3)));
}

/** A count: 987, 12,345, 1.23 M. */
export function count(value) {
  if (isMissing(value)) return NONE;
  if (value >= 1e9) return `${digits(value / 1e9)} G`;
  if (value >= 1e6) return `${digits(value / 1e6)} M`;
  if (value >= 1e5) return `${digits(value / 1e3)} k`;
  return Math.round(value).toLocaleString("en");
}

/** A number per second, without its unit: 0.3, 12.4, 1,240. */
export function rate(value) {
  if (isMissing(value)) return NONE;
  return value >= 1e5 ? count(value) : digits(value);
}

export const perSecond = (value) => (isMissing(value) ? NONE : `${rate(value)}/s`);

/** Bytes in binary units: 0 B, 820 B, 47.8 MiB. */
export function bytes(value) {
  if (isMissing(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)} ${units[unit]}`;
}

export const bytesPerSecond = (value) => (isMissing(value) ? NONE : `${bytes(value)}/s`);

/** Milliseconds: 0.42 ms, 11.5 ms, 1.15 s. */
export function ms(value) {
  if (isMissing(value)) return NONE;
  return value < 1000 ? `${digits(value)} ms` : `${digits(value / 1000)} s`;
}

/** A percentage that is one already: 0 %, 0.03 %, 137 %. */
export function percent(value) {
  if (isMissing(value)) return NONE;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${digits(value)} %`;
}

/** A part of a whole as a percentage; "–" of nothing. */
export const share = (part, whole) => (whole ? percent((100 * (part ?? 0)) / whole) : NONE);

/** A length of time in its two largest units: 45 s, 12 min, 3 h 12 min, 4 d 3 h. */
export function duration(seconds) {
  if (isMissing(seconds)) return NONE;
  const whole = Math.round(Math.abs(seconds));
  const pair = (large, unit, small, rest) => (rest ? `${large} ${unit} ${rest} ${small}` : `${large} ${unit}`);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return pair(Math.floor(whole / 3600), "h", "min", Math.floor((whole % 3600) / 60));
  const days = Math.floor(whole / 86400);
  return days >= 14 ? `${days} d` : pair(days, "d", "h", Math.floor((whole % 86400) / 3600));
}

const two = (value) => String(value).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The time of a UNIX second: 14:02 within half a day, else 3 Mar 14:02; with seconds if asked for. */
export function clock(at, now = Date.now() / 1000, withSeconds = false) {
  if (isMissing(at)) return NONE;
  const date = new Date(at * 1000);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}${withSeconds ? `:${two(date.getSeconds())}` : ""}`;
  return Math.abs(now - at) < 43_200 ? time : `${date.getDate()} ${MONTHS[date.getMonth()]} ${time}`;
}

/** The change from one figure to the next: `{text: "+12 %", change: 0.12}`, or null where there is none to tell. */
export function delta(value, before) {
  if (isMissing(value) || isMissing(before) || before === 0) return null;
  const change = (value - before) / before;
  if (Math.abs(change) < 0.005) return { text: "±0 %", change: 0 };
  const sign = change > 0 ? "+" : "−";
  const text = change >= 9 ? `×${digits(value / before)}` : `${sign}${digits(Math.abs(Math.round(change * 100)))} %`;
  return { text, change };
}

/** "one worker", "3 workers". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A list as a sentence has it: "a", "a and b", "a, b and c". */
export function list(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** A site's label without the scheme that nearly all have. */
export const siteName = (label) => label.replace(/^https?:\/\//, "");
