// A MariaDB of its own with the points in it.
//
//     node experiments/map/database.mjs start [--folder FOLDER] [--max-connections N]
//
// starts it at $MAP_SOCKET, fills it, and answers HTTP at 127.0.0.1:$PORT (8089) once all points are there. It ends with
// this process, and what is in it goes with it. The folder `data` keeps filled files, which each start copies.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as mariadb from "../mariadb.mjs";
import { cellOf } from "./grid.mjs";
import { POINTS, points } from "./generate.mjs";
import { SOCKET } from "./socket.mjs";

export { isInstalled } from "../mariadb.mjs";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
/** What filled files are made of. */
const MADE_OF = [import.meta.url, ...["generate.mjs", "grid.mjs"].map((name) => new URL(name, import.meta.url).href)];
/** What is shown together lies together: the points of a cell of the grid are neighbours in the table. */
const TABLE = `CREATE TABLE map.points (
  cell MEDIUMINT UNSIGNED NOT NULL,
  id INT UNSIGNED NOT NULL,
  lat DOUBLE NOT NULL,
  lng DOUBLE NOT NULL,
  kind VARCHAR(20) NOT NULL,
  name VARCHAR(60) NOT NULL,
  note VARCHAR(600) NOT NULL,
  updated BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (cell, id),
  KEY updated (updated)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`;

/** A database with the points in it, started. */
export async function startDatabase({ folder, socket = SOCKET, maxConnections }) {
  const options = maxConnections ? [`--max-connections=${maxConnections}`] : [];
  return mariadb.startCopy(await prepared(), { folder, socket, packages: import.meta.url, options });
}

/** The folder with filled files. */
export function prepared() {
  return mariadb.prepared({ data: join(FOLDER, "data"), madeOf: MADE_OF, fill });
}

async function fill(database, folder) {
  const list = join(folder, "points.tsv");
  writePoints(list);
  for (const statement of ["CREATE DATABASE map", TABLE]) await database.ask(statement);
  await database.ask("LOAD DATA INFILE ? INTO TABLE map.points CHARACTER SET utf8mb4", [list]);
  await database.ask("CREATE USER map@localhost");
  await database.ask("GRANT SELECT ON map.* TO map@localhost");
  await database.ask("ANALYZE TABLE map.points");
  const [{ count }] = await database.ask("SELECT COUNT(*) AS count FROM map.points");
  if (count !== POINTS) throw new Error(`there are ${count} points instead of ${POINTS}`);
}

/** The points as MariaDB loads them, a line each, in the order in which they lie in the table. */
function writePoints(file) {
  const rows = Array.from(points(), (point) => [cellOf(point), ...Object.values(point)]);
  rows.sort(([cell, id], [otherCell, otherId]) => cell - otherCell || id - otherId);
  writeFileSync(file, rows.map((row) => `${row.join("\t")}\n`).join(""));
}

/** `start`: until a signal comes. */
async function main() {
  const options = { folder: { type: "string" }, "max-connections": { type: "string" } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  if (positionals.join() !== "start") throw new Error("usage: database.mjs start [--folder FOLDER] [--max-connections N]");
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), "onehop-map-"));
  const database = await startDatabase({ folder, maxConnections: values["max-connections"] });
  // Reading the whole table and the whole index brings both into memory.
  await database.ask("SELECT SUM(LENGTH(note)) FROM map.points");
  await database.ask("SELECT SUM(id) FROM map.points FORCE INDEX (updated)");
  const status = createServer((_, response) => response.end(`${JSON.stringify({ socket: SOCKET, points: POINTS })}\n`));
  status.listen(Number(process.env.PORT ?? 8089), "127.0.0.1");
  await once(status, "listening");
  console.log(`${POINTS} points at ${SOCKET}`);
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.once(signal, async () => {
      // Its files are a copy, which nobody needs again.
      await database.signal("SIGKILL");
      rmSync(values.folder ? database.files : folder, { recursive: true, force: true });
      rmSync(SOCKET, { force: true });
      process.exit(0);
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
