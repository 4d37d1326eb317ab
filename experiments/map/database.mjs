// A MariaDB of its own with the points in it: on a Unix socket, without a port, with its files in a folder of its own.
//
//     node experiments/map/database.mjs start [--folder FOLDER] [--max-connections N]
//
// starts it at $MAP_SOCKET, fills it, and answers HTTP at 127.0.0.1:$PORT (8089) once all points are there. It ends with
// this process, and what is in it goes with it. The folder `data` keeps filled files, which each start copies.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { constants, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cellOf } from "./grid.mjs";
import { POINTS, points } from "./generate.mjs";
import { SOCKET } from "./socket.mjs";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
/** Filled files, by what they were made of. */
const DATA = join(FOLDER, "data");
const START_MS = 30_000;
const POLL_MS = 20;
/** All points fit into memory, so that no measurement is one of the disk. */
const OPTIONS = ["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-networking"];
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

/** Debian's mariadbd is in /usr/sbin, which is in the PATH of root alone. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

/** Whether MariaDB is installed. */
export function isInstalled() {
  return spawnSync("mariadbd", ["--version"], { env: ENVIRONMENT }).status === 0;
}

/** A database with the points in it, started. */
export async function startDatabase({ folder, socket = SOCKET, maxConnections }) {
  const files = join(folder, "database");
  cpSync(await prepared(), files, { recursive: true, mode: constants.COPYFILE_FICLONE });
  const database = new Database(files, socket, maxConnections ? [`--max-connections=${maxConnections}`] : []);
  await database.start();
  return database;
}

/** One mariadbd on these files; it can be killed and started again. */
class Database {
  #child;

  constructor(files, socket, options) {
    this.files = files;
    this.socket = socket;
    this.options = options;
  }

  /** Until it answers; the points are in its memory then. */
  async start() {
    const files = [`--datadir=${this.files}`, `--socket=${this.socket}`, `--pid-file=${this.files}/pid`, `--user=${userInfo().username}`];
    const words = ["--no-defaults", ...files, ...OPTIONS, ...this.options];
    this.#child = spawn("mariadbd", words, { stdio: ["ignore", "ignore", "pipe"], env: ENVIRONMENT });
    let said = "";
    this.#child.on("error", (error) => (said += error.message));
    this.#child.stderr.on("data", (bytes) => (said = (said + bytes).slice(-5_000)));
    const begun = Date.now();
    for (;;) {
      try {
        const [{ files: found }] = await this.ask("SELECT @@datadir AS files");
        if (join(found, ".") === join(this.files, ".")) return;
        throw new Error(`another MariaDB is at ${this.socket}`);
      } catch (error) {
        if (this.#child.exitCode !== null || !this.#child.pid || Date.now() - begun > START_MS) {
          throw new Error(`MariaDB did not start: ${error.message}\n${said}`);
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  }

  /** What a statement answers, on a connection of its own, as MariaDB's root. */
  async ask(...statement) {
    // A fresh checkout has no packages yet; `prepared` and the socket's name can be had all the same.
    const { createConnection } = createRequire(import.meta.url)("mariadb");
    // Without these checks MariaDB loads an empty table in bulk, and keeps nothing with which to take that back.
    const initSql = "SET unique_checks = 0, foreign_key_checks = 0";
    const connection = await createConnection({ socketPath: this.socket, user: "root", bigIntAsNumber: true, initSql });
    try {
      return await connection.query(...statement);
    } finally {
      await connection.end();
    }
  }

  /** How many connections there were at once, at most; this one counts, too. */
  async connectionsAtMost() {
    const [{ Value: value }] = await this.ask("SHOW GLOBAL STATUS LIKE 'Max_used_connections'");
    return Number(value);
  }

  /** Ends it with a signal: SIGTERM saves everything, SIGKILL is a crash, SIGSTOP lets it hang. */
  async signal(name) {
    if (!this.#child || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(name);
    if (name === "SIGTERM" || name === "SIGKILL") await ended;
  }
}

/** The folder with filled files. They are made once for each version of MariaDB and of this folder's files. */
export async function prepared() {
  const version = spawnSync("mariadbd", ["--version"], { env: ENVIRONMENT });
  if (version.status !== 0) throw new Error("there is no mariadbd: apt-get install mariadb-server");
  const hash = createHash("sha256").update(version.stdout);
  for (const name of ["database.mjs", "generate.mjs", "grid.mjs"]) hash.update(readFileSync(join(FOLDER, name)));
  const folder = join(DATA, hash.digest("hex").slice(0, 16));
  if (existsSync(folder)) return folder;
  mkdirSync(DATA, { recursive: true });
  const making = mkdtempSync(join(DATA, "making-"));
  try {
    await fill(making);
    // Somebody else may have been quicker; theirs is as good.
    if (!existsSync(folder)) renameSync(join(making, "files"), folder);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return folder;
}

/** Makes a database in this folder and fills it. */
async function fill(folder) {
  const files = join(folder, "files");
  const user = ["--auth-root-authentication-method=normal", `--user=${userInfo().username}`];
  const words = ["--no-defaults", `--datadir=${files}`, "--skip-test-db", ...user, "--innodb-log-file-size=16M"];
  const made = spawnSync("mariadb-install-db", words, { env: ENVIRONMENT });
  if (made.status !== 0) throw new Error(`mariadb-install-db failed: ${made.error ?? made.stdout}${made.stderr ?? ""}`);
  const list = join(folder, "points.tsv");
  writePoints(list);
  // A socket's path has 107 bytes at most, and this folder may be deep.
  const place = mkdtempSync(join(tmpdir(), "onehop-map-"));
  const database = new Database(files, join(place, "sock"), []);
  try {
    await database.start();
    for (const statement of ["CREATE DATABASE map", TABLE]) await database.ask(statement);
    await database.ask("LOAD DATA INFILE ? INTO TABLE map.points CHARACTER SET utf8mb4", [list]);
    await database.ask("CREATE USER map@localhost");
    await database.ask("GRANT SELECT ON map.* TO map@localhost");
    await database.ask("ANALYZE TABLE map.points");
    const [{ count }] = await database.ask("SELECT COUNT(*) AS count FROM map.points");
    if (count !== POINTS) throw new Error(`there are ${count} points instead of ${POINTS}`);
    await database.signal("SIGTERM");
  } finally {
    await database.signal("SIGKILL");
    rmSync(place, { recursive: true, force: true });
  }
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
