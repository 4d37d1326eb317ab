// The same entries in a table of MariaDB, on a pool of connections: read and written while others go on.

import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPool } from "mariadb";

/** The database's Unix socket. */
export const SOCKET = process.env.DATABASE_SOCKET ?? join(tmpdir(), "onehop-store.sock");
const CONNECTIONS_MAX = 5;
const DEADLINE_MS = 5_000;

/** Opens the pool. Its first connection is made at the first query. */
export function openRows() {
  const pool = createPool({
    socketPath: SOCKET,
    user: "store",
    database: "store",
    minimumIdle: 0,
    connectionLimit: CONNECTIONS_MAX,
    acquireTimeout: DEADLINE_MS,
    socketTimeout: DEADLINE_MS,
  });
  return {
    /** The value of a key; `undefined` where there is none. */
    async read(key) {
      const [row] = await pool.execute("SELECT value FROM entries WHERE name = ?", [key]);
      return row?.value;
    },
    async write(key, value) {
      await pool.execute("INSERT INTO entries VALUES (?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value)", [key, value]);
    },
  };
}
