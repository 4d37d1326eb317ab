// One store for each worker of the pool, opened with the first message.

import { openStore } from "../store.mjs";

export const store = openStore();
