// A MariaDB of its own for an experiment: on a Unix socket, without a port, with its files in a folder of its own.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { constants, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

const START_MS = 30_000;
const POLL_MS = 20;
/** All data fit into memory, and a write does not wait for the disk: no measurement is one of the disk. */
const OPTIONS = ["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0", "--skip-networking"];

/** Debian's mariadbd is in /usr/sbin, which is in the PATH of root alone. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

/** Whether MariaDB is installed. */
export function isInstalled() {
  return spawnSync("mariadbd", ["--version"], { env: ENVIRONMENT }).status === 0;
}

/** One mariadbd on these files; it can be killed and started again. `packages` is a module of the folder with its client. */
export class Database {
  #child;
  #packages;

  constructor({ files, socket, packages, options = [] }) {
    this.files = files;
    this.socket = socket;
    this.options = options;
    this.#packages = packages;
  }

  /** Until it answers; the points are in its memory then. */
  async start() {
    const files = [`--datadir=${this.files}`, `--socket=${this.socket}`, `--pid-file=${this.files}/pid`, `--user=${userInfo().username}`];
    const words = ["--no-defaults", ...files, ...OPTIONS, ...this.options];
    this.#child = spawn("mariadbd", words, { stdio: ["ignore", "ignore", "pipe"], env: ENVIRONMENT });
    let said = "";
    this.#child.on("error", (error) => (said += error.message));
    this.#child.stderr.on("data", (bytes) => (said = (said + bytes).slice(-5_000)));
    const started = Date.now();
    for (;;) {
      try {
        const [{ files: found }] = await this.ask("SELECT @@datadir AS files");
        if (join(found, ".") === join(this.files, ".")) return;
        throw new Error(`another MariaDB is at ${this.socket}`);
      } catch (error) {
        if (this.#child.exitCode !== null || !this.#child.pid || Date.now() - started > START_MS) {
          throw new Error(`MariaDB did not start: ${error.message}\n${said}`);
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  }

  /** What a statement answers, on a connection of its own, as MariaDB's root. */
  async ask(...statement) {
    // A fresh checkout has no packages yet; `prepared` and the socket's name can be had all the same.
    const { createConnection } = createRequire(this.#packages)("mariadb");
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

/**
 * The folder with filled files, in the folder `data`. `fill` fills a new database, once for each version of MariaDB and of the
 * modules that it is `madeOf`, the first of which has MariaDB's client among its packages.
 */
export async function prepared({ data, madeOf, fill }) {
  const version = spawnSync("mariadbd", ["--version"], { env: ENVIRONMENT });
  if (version.status !== 0) throw new Error("there is no mariadbd: apt-get install mariadb-server");
  const hash = createHash("sha256").update(version.stdout);
  for (const module of [import.meta.url, ...madeOf]) hash.update(readFileSync(new URL(module)));
  const folder = join(data, hash.digest("hex").slice(0, 16));
  if (existsSync(folder)) return folder;
  mkdirSync(data, { recursive: true });
  const making = mkdtempSync(join(data, "making-"));
  try {
    await filled(making, madeOf[0], fill);
    // Another process may have been quicker; its files are as good.
    if (!existsSync(folder)) renameSync(join(making, "files"), folder);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return folder;
}

/** A database with a copy of these files, started. */
export async function startCopy(from, { folder, ...settings }) {
  const files = join(folder, "database");
  cpSync(from, files, { recursive: true, mode: constants.COPYFILE_FICLONE });
  const database = new Database({ files, ...settings });
  await database.start();
  return database;
}

/** Makes a database in this folder and fills it. */
async function filled(folder, packages, fill) {
  const files = join(folder, "files");
  const user = ["--auth-root-authentication-method=normal", `--user=${userInfo().username}`];
  const words = ["--no-defaults", `--datadir=${files}`, "--skip-test-db", ...user, "--innodb-log-file-size=16M"];
  const made = spawnSync("mariadb-install-db", words, { env: ENVIRONMENT });
  if (made.status !== 0) throw new Error(`mariadb-install-db failed: ${made.error ?? made.stdout}${made.stderr ?? ""}`);
  // A socket's path has 107 bytes at most, and this folder may be deep.
  const place = mkdtempSync(join(tmpdir(), "onehop-mariadb-"));
  const database = new Database({ files, socket: join(place, "sock"), packages });
  try {
    await database.start();
    await fill(database, folder);
    await database.signal("SIGTERM");
  } finally {
    await database.signal("SIGKILL");
    rmSync(place, { recursive: true, force: true });
  }
}
