// What is asked of the database, without a server: the points in a part of the map, as values for JSON.

import { createPool } from "mariadb";
import { bands } from "./grid.mjs";
import { SOCKET } from "./socket.mjs";

/** How many points an answer has at most. */
const POINTS_MAX = 1_000;
/** Until then there is an answer, of the database or of ours in its place. Half of it may pass until there is a connection. */
const DEADLINE_MS = Number(process.env.MAP_DEADLINE_MS ?? 10_000);
const RETRY_AFTER_S = 1;

const pool = createPool({
  socketPath: SOCKET,
  user: "map",
  database: "map",
  minimumIdle: 1,
  connectionLimit: 5,
  acquireTimeout: DEADLINE_MS / 2,
  socketTimeout: DEADLINE_MS / 2,
  bigIntAsNumber: true,
});

/** The points of a view that changed since then, the nearest to its centre first. */
function nearestFirst({ swLat, swLng, neLat, neLng, since, most }) {
  const rows = bands({ swLat, swLng, neLat, neLng });
  const [lat, lng] = [(swLat + neLat) / 2, (swLng + neLng) / 2];
  const sql = `SELECT id, lat, lng, kind, name, note, updated FROM points
WHERE (${rows.map(() => "cell BETWEEN ? AND ?").join(" OR ") || "FALSE"})
AND lat BETWEEN ? AND ? AND lng BETWEEN ? AND ? AND updated > ?
ORDER BY POW(lat - ?, 2) + POW((lng - ?) * COS(RADIANS(?)), 2), id LIMIT ?`;
  return pool.query(sql, [...rows.flat(), swLat, neLat, swLng, neLng, since, lat, lng, lat, most]);
}

/** The status and the value that answer a query, of which `get` gives the parameters. */
export async function answer(get) {
  const [swLat, swLng, neLat, neLng] = ["swLat", "swLng", "neLat", "neLng"].map((name) => number(get(name)));
  const [since, limit] = [number(get("since"), 0), number(get("limit"), POINTS_MAX)];
  if (![swLat, swLng, neLat, neLng, since, limit].every(Number.isFinite) || limit < 1) {
    return { status: 400, value: { error: "swLat, swLng, neLat and neLng are numbers, and so are since and limit" }, headers: {} };
  }
  const most = Math.min(Math.floor(limit), POINTS_MAX);
  try {
    return { status: 200, value: await nearestFirst({ swLat, swLng, neLat, neLng, since, most }), headers: {} };
  } catch (error) {
    console.error(error.message);
    return { status: 503, value: { error: "the database does not answer" }, headers: { "Retry-After": String(RETRY_AFTER_S) } };
  }
}

/** A parameter as a number; one that is missing or empty is `missing`. */
function number(text, missing = NaN) {
  return text ? Number(text) : missing;
}
