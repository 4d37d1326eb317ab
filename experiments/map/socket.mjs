// Where the database and the applications find each other.

import { tmpdir } from "node:os";
import { join } from "node:path";

/** The database's Unix socket. */
export const SOCKET = process.env.MAP_SOCKET ?? join(tmpdir(), "onehop-map.sock");
