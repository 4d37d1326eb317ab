// The map: asks for the points of what is seen, nearest to the centre first, and draws them. Each pan is a measure of its own
// (performance.getEntriesByName("pan")): from the end of the movement until the points of the new view are drawn.

const PIXELS_PER_DEGREE = 400;
const POINTS_MAX = 1_000;
const POLL_MS = 10_000;
const RETRY_MS = 1_000;
const KEY_PIXELS = 240;
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const COLOURS = { bench: "#7a5230", bridge: "#4b5b6b", fountain: "#1f78c8", library: "#8a3fa0", spring: "#1a9a8a", tower: "#b5362c" };

const canvas = document.querySelector("canvas");
const status = document.querySelector("output");
const centre = { lat: 50, lng: 13 };
let points = new Map();
let latest = 0;
/** Ends what is asked for now; undefined while nothing is. */
let asking;

/** Half of what is seen, in degrees. */
const half = () => ({ lat: canvas.clientHeight / 2 / PIXELS_PER_DEGREE, lng: canvas.clientWidth / 2 / PIXELS_PER_DEGREE });

function draw() {
  const scale = devicePixelRatio;
  [canvas.width, canvas.height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  for (const { lat, lng, kind } of points.values()) {
    context.fillStyle = COLOURS[kind] ?? "#3f6f3a";
    context.beginPath();
    const x = canvas.clientWidth / 2 + (lng - centre.lng) * PIXELS_PER_DEGREE;
    context.arc(x, canvas.clientHeight / 2 - (lat - centre.lat) * PIXELS_PER_DEGREE, 4, 0, 2 * Math.PI);
    context.fill();
  }
}

function move(x, y) {
  centre.lng -= x / PIXELS_PER_DEGREE;
  centre.lat += y / PIXELS_PER_DEGREE;
  draw();
}

/**
 * Asks for what is seen; with `since`, for what changed there after that. A later question aborts the one before. A measured
 * one counts from `begun`, also where it is tried again.
 */
async function ask({ since = 0, measured = false, begun = performance.now() } = {}) {
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const { signal } = mine;
  const { lat, lng } = half();
  const view = { swLat: centre.lat - lat, swLng: centre.lng - lng, neLat: centre.lat + lat, neLng: centre.lng + lng };
  const query = new URLSearchParams({ ...view, limit: POINTS_MAX, since });
  try {
    const response = await fetch(`raw_data?${query}`, { signal });
    if (!response.ok) throw new Error(`the server said ${response.status}`);
    const list = await response.json();
    if (signal.aborted) return;
    if (!since) points = new Map();
    for (const point of list) points.set(point.id, point);
    latest = Math.max(latest, ...list.map((point) => point.updated));
    draw();
    const nearest = points.values().next().value;
    status.textContent = nearest ? `${points.size} points, the nearest: ${nearest.name}` : "Nothing here";
    if (measured) performance.measure("pan", { start: begun });
  } catch (error) {
    if (signal.aborted) return;
    status.textContent = `Trying again: ${error.message}`;
    setTimeout(() => !signal.aborted && ask({ since, measured, begun }), RETRY_MS);
    return;
  }
  asking = undefined;
}

let from;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  from = { x: event.clientX, y: event.clientY };
});
canvas.addEventListener("pointermove", (event) => {
  if (!from) return;
  move(event.clientX - from.x, event.clientY - from.y);
  from = { x: event.clientX, y: event.clientY };
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, () => {
    if (from) ask({ measured: true });
    from = undefined;
  });
}
canvas.addEventListener("keydown", ({ key }) => {
  if (!ARROWS[key]) return;
  const [x, y] = ARROWS[key];
  move(x * KEY_PIXELS, y * KEY_PIXELS);
  ask({ measured: true });
});
addEventListener("resize", () => ask());
// What was asked for last may still be on its way; then nothing new is asked: the points of a new view would be lost.
setInterval(() => asking || ask({ since: latest }), POLL_MS);
ask();
