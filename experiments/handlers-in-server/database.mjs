// A MariaDB of its own with the entries of the store in a table.
//
//     node experiments/handlers-in-server/database.mjs start [--folder FOLDER]
//
// starts it at $DATABASE_SOCKET, and answers HTTP at 127.0.0.1:$PORT (8089) once all entries are there. It ends with this process,
// and what is in it goes with it. The folder `data` keeps filled files, which each start copies.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as mariadb from "../mariadb.mjs";
import { entries } from "./answers.mjs";
import { SOCKET } from "./rows.mjs";

export { isInstalled } from "../mariadb.mjs";

const DATA = fileURLToPath(new URL("data/mariadb", import.meta.url));
const MADE_OF = [import.meta.url, new URL("answers.mjs", import.meta.url).href];
const TABLE = `CREATE TABLE store.entries (
  name VARCHAR(255) PRIMARY KEY,
  value MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`;

/** A database with the entries in it, started. */
export async function startDatabase({ folder, socket }) {
  const from = await mariadb.prepared({ data: DATA, madeOf: MADE_OF, fill });
  return mariadb.startCopy(from, { folder, socket, packages: import.meta.url });
}

async function fill(database) {
  for (const statement of ["CREATE DATABASE store", TABLE]) await database.ask(statement);
  for (const entry of entries()) await database.ask("INSERT INTO store.entries VALUES (?, ?)", entry);
  await database.ask("CREATE USER store@localhost");
  await database.ask("GRANT SELECT, INSERT, UPDATE ON store.* TO store@localhost");
}

/** `start`: until a signal comes. */
async function main() {
  const { values, positionals } = parseArgs({ options: { folder: { type: "string" } }, allowPositionals: true });
  if (positionals.join() !== "start") throw new Error("usage: database.mjs start [--folder FOLDER]");
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), "onehop-store-"));
  const database = await startDatabase({ folder, socket: SOCKET });
  const status = createServer((_, response) => response.end(`${SOCKET}\n`));
  status.listen(Number(process.env.PORT ?? 8089), "127.0.0.1");
  await once(status, "listening");
  console.log(`MariaDB at ${SOCKET}`);
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.once(signal, async () => {
      await database.signal("SIGKILL");
      rmSync(values.folder ? database.files : folder, { recursive: true, force: true });
      rmSync(SOCKET, { force: true });
      process.exit(0);
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
