// A synchronous store: a key and a value, read and written in the thread that asks. LMDB, in `$STORE` or in data/ here.
// `STORE_FLUSH=off` leaves it to the kernel when a write reaches the disk.

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { open } from "lmdb";
import { entries } from "./answers.mjs";

const FOLDER = process.env.STORE ?? fileURLToPath(new URL("data", import.meta.url));

/** Opens the store, and fills an empty one: `item-0` and so on. */
export function openStore() {
  mkdirSync(FOLDER, { recursive: true });
  const store = open({ path: FOLDER, encoding: "string", noSync: process.env.STORE_FLUSH === "off" });
  // In one transaction, so that of several processes only the first fills it.
  store.transactionSync(() => {
    if (store.get("item-0") !== undefined) return;
    for (const [name, value] of entries()) store.put(name, value);
  });
  return {
    read: (key) => store.get(key),
    write: (key, value) => store.putSync(key, value),
  };
}
