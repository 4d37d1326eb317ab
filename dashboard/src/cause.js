// Since when a site is slow, after which event, and where its time goes. Pure.

const MIN_FACTOR = 2; // below it, ordinary noise of a p99
const MIN_RISE_MS = 20; // a rise that nobody feels is none
const EVENT_SECONDS_BEFORE = 900; // an effect may take a few minutes to show
const CHANGES = ["release", "reload", "start", "app_rolled"];

const median = (values) => quantile(values, 0.5);
function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** When the latest values rose to where they are: `{since, before, now}`, or null where they have not. */
export function onset(times, values) {
  const known = times.map((at, index) => ({ at, value: values[index] })).filter(({ value }) => value !== null);
  if (known.length < 6) return null;
  const now = median(known.slice(-5).map(({ value }) => value));
  const calm = quantile(known.map(({ value }) => value), 0.25);
  if (now < MIN_FACTOR * calm || now - calm < MIN_RISE_MS) return null;
  const threshold = Math.sqrt(now * Math.max(calm, 0.01));
  let since = known.length - 1;
  // One low point between two high ones is a pause of the noise, not of the trouble.
  while (since > 0 && (known[since - 1].value >= threshold || known[since - 2]?.value >= threshold)) since -= 1;
  return since === 0 ? null : { since: known[since].at, before: calm, now };
}

/** The event that may have begun it: the nearest one before, changes of what runs before others. */
export function eventBefore(events, since, stepSeconds) {
  const near = events.filter(({ at }) => at <= since + stepSeconds && at >= since - EVENT_SECONDS_BEFORE);
  const isEffect = ({ event }) => event.startsWith("overload") || event.startsWith("certificate");
  return near.find(({ event }) => CHANGES.includes(event)) ?? near.find((event) => !isEffect(event)) ?? near[0] ?? null;
}

/** What a request's time is made of, in the order in which it passes; `fields` of `parts` in `GET /slow`, which do not overlap. */
export const PARTS = [
  { key: "upload", fields: ["upload_ms"], short: "upload", label: "receiving the request's body" },
  { key: "queue", fields: ["queue_ms"], short: "queue", label: "waiting for a free slot" },
  { key: "password", fields: ["password_ms"], short: "password", label: "checking a password" },
  { key: "connect", fields: ["connect_ms", "retry_ms"], short: "connect", label: "connecting to the upstream, retries" },
  { key: "lag", fields: ["lag_ms"], short: "event loop", label: "blocked event loop" },
  { key: "handler", fields: ["first_byte_ms"], short: "handler", label: "the handler's own work" },
  { key: "body", fields: ["body_ms"], short: "body", label: "the rest of the response's body" },
  { key: "write", fields: ["write_ms"], short: "client", label: "the client takes the response" },
];

/** A request's time by part, in milliseconds. */
export function partsOf({ parts = {} }) {
  const sum = (fields) => fields.reduce((all, field) => all + (parts[field] ?? 0), 0);
  return Object.fromEntries(PARTS.map(({ key, fields }) => [key, sum(fields)]));
}

/** The part with the most time of all these requests: `{part, share}`, or null. */
export function heaviest(requests) {
  const sums = Object.fromEntries(PARTS.map(({ key }) => [key, 0]));
  for (const request of requests) {
    for (const [key, value] of Object.entries(partsOf(request))) sums[key] += value;
  }
  const total = Object.values(sums).reduce((sum, value) => sum + value, 0);
  if (total === 0) return null;
  const part = PARTS.reduce((most, one) => (sums[one.key] > sums[most.key] ? one : most));
  return { part, share: sums[part.key] / total };
}
