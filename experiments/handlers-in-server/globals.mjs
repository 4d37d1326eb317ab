// Sets and gets 100,000 globals with mg-dbx-napi where it can open a database, and the same keys in LMDB where it cannot.
// `node globals.mjs [COUNT]`, or in a worker: `onehop app globals.mjs`, then `curl localhost:8080/`.
// `GLOBALS_PATH` is the folder of the database's library, for example that of fis-gtm (gtm.md).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "lmdb";
import { mglobal, server } from "mg-dbx-napi";

const COUNT = 100_000;
const VALUE = "hello world";

/** Its own `error_message` holds bytes of the request; what the library answered is the text. */
class Server extends server {
  get_result(buffer, answer, request) {
    super.get_result(buffer, answer, request);
    this.reason = request.error_message === "" ? "" : String(answer).replace(/\0+$/, "");
  }
}

/** The database behind mg-dbx-napi, or why there is none. */
function globals() {
  const path = process.env.GLOBALS_PATH;
  if (!path) return { reason: "GLOBALS_PATH names no folder" };
  const database = new Server();
  const names = ["gtmgbldir", "gtmroutines", "ydb_gbldir", "ydb_routines", "ydb_ci"].filter((name) => process.env[name]);
  const env_vars = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  database.open({ type: "YottaDB", path, env_vars });
  if (database.error_message !== "") return { reason: database.reason };
  const global = new mglobal(database, "onehop");
  return {
    name: database.version(),
    set: (key, value) => global.set(key, value),
    get: (key) => global.get(key),
    close() {
      global.delete();
      database.close();
    },
  };
}

/** The same calls on LMDB: each set is a transaction of its own, and the kernel decides when it reaches the disk. */
function lmdb() {
  const folder = mkdtempSync(join(tmpdir(), "globals-"));
  const store = open({ path: folder, encoding: "string", noSync: true });
  return {
    name: "LMDB",
    set: (key, value) => store.putSync(key, value),
    get: (key) => store.get(key),
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function perSecond(count, call) {
  const begun = performance.now();
  for (let key = 1; key <= count; key += 1) call(key);
  return Math.round((count * 1000) / (performance.now() - begun));
}

/** How many sets and gets a second one database does, and which it is. */
export async function measure(count = COUNT) {
  const found = globals();
  const database = found.set ? found : lmdb();
  const sets = perSecond(count, (key) => database.set(key, VALUE));
  const gets = perSecond(count, (key) => {
    if (database.get(key) !== VALUE) throw new Error(`${database.name} lost the key ${key}`);
  });
  await database.close();
  return { database: database.name, reason: found.reason, count, sets_per_second: sets, gets_per_second: gets };
}

export default {
  async fetch() {
    return Response.json(await measure());
  },
};

// A worker of onehop measures when it is asked.
const alone = typeof onehop === "undefined" && process.argv[1] === fileURLToPath(import.meta.url);
if (alone) console.log(await measure(Number(process.argv[2] ?? COUNT)));
