// What is drawn over the curves: events as lines with a sign, stretches between two events, cold starts.

const CHANGES = ["release", "reload", "start", "app_rolled"];
const STRETCHES = { overload: "overload", load: "load test" };

/** The sign of an event: it tells kinds apart without colour. */
export function signOf({ event }) {
  if (CHANGES.includes(event)) return "▼";
  if (/exited|fail|down|expired/.test(event)) return "✕";
  if (event.startsWith("overload")) return "▲";
  return "•";
}

const NAMES = {
  release: "Release", reload: "Reload", reload_failed: "Reload failed", start: "Start", stop: "Stop",
  worker_exited: "Worker exited", worker_started: "Worker started", app_failing: "App fails", app_rolled: "Rolled",
  overload_began: "Overload began", overload_ended: "Overload ended", load_began: "Load test began", load_ended: "Load test ended",
  certificate_renewed: "Certificate renewed", certificate_failing: "Certificate fails", upstream_down: "Upstream down", upstream_up: "Upstream up",
};

/** An event's kind in words. */
export function kindOf({ event }) {
  const words = event.replaceAll("_", " ");
  return NAMES[event] ?? words[0].toUpperCase() + words.slice(1);
}

/** Pairs of began and ended, newest first as the events are: `[{from, to, text}]`; one without an end goes on. */
export function stretchesOf(events) {
  const found = [];
  for (const [kind, text] of Object.entries(STRETCHES)) {
    let to = Infinity;
    for (const { event, at } of events) {
      if (event === `${kind}_ended`) to = at;
      if (event === `${kind}_began`) {
        found.push({ from: at, to, text });
        to = Infinity;
      }
    }
  }
  return found;
}

/** The event whose line is nearest to a place, if it is near. */
export function nearestEvent(plot, events, left, nearPx) {
  let nearest = null;
  let least = nearPx;
  for (const event of events) {
    const distance = Math.abs(plot.valToPos(event.at, "x") - left);
    if (distance <= least) [nearest, least] = [event, distance];
  }
  return nearest;
}

/** Draws all of it; a hook of uPlot, so in the canvas's own pixels. */
export function marks(plot, { events, coldStarts }, { css, font }) {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const ratio = devicePixelRatio;
  const { min, max } = plot.scales.x;
  const x = (at) => plot.valToPos(at, "x", true);
  ctx.save();
  ctx.font = font.replace("11px", `${10 * ratio}px`);
  ctx.textAlign = "center";
  for (const { from, to, text } of stretchesOf(events)) {
    if (to < min || from > max) continue;
    const [begin, end] = [Math.max(x(from), left), Math.min(to === Infinity ? left + width : x(to), left + width)];
    ctx.fillStyle = `${css("--warn")}22`;
    ctx.fillRect(begin, top, end - begin, height);
    ctx.fillStyle = css("--soft");
    if (end - begin > 60 * ratio) ctx.fillText(text, (begin + end) / 2, top + 11 * ratio);
  }
  for (const event of events) {
    if (event.at < min || event.at > max) continue;
    const at = Math.round(x(event.at)) + 0.5;
    const isChange = CHANGES.includes(event.event);
    ctx.strokeStyle = ctx.fillStyle = css(isChange ? "--text" : "--soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash(isChange ? [] : [3 * ratio, 3 * ratio]);
    ctx.globalAlpha = isChange ? 0.7 : 0.45;
    ctx.beginPath();
    ctx.moveTo(at, top);
    ctx.lineTo(at, top + height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.fillText(signOf(event), at, top - 3 * ratio);
  }
  ctx.setLineDash([]);
  ctx.fillStyle = css("--purple");
  for (const { at } of coldStarts) diamond(ctx, x(at), top + height - 5 * ratio, 4.5 * ratio);
  ctx.restore();
}

function diamond(ctx, x, y, size) {
  ctx.beginPath();
  ctx.moveTo(x, y - size);
  ctx.lineTo(x + size, y);
  ctx.lineTo(x, y + size);
  ctx.lineTo(x - size, y);
  ctx.fill();
}
