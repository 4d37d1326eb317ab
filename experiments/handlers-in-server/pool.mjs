// QOper8's queue before a pool of workers, each of which has one message at a time. `QOPER8=cp` (child processes) or `wt`
// (worker threads); `POOL` is how many.

import { fileURLToPath } from "node:url";

const kind = process.env.QOPER8 ?? "cp";
if (kind !== "cp" && kind !== "wt") throw new Error(`QOPER8 is cp or wt, not ${kind}`);
const { QOper8 } = await import(`qoper8-${kind}`);

const MESSAGES = ["local", "item", "read", "write"];

const pool = new QOper8({
  poolSize: Number(process.env.POOL ?? 2),
  handlersByMessageType: new Map(
    MESSAGES.map((type) => [type, { module: fileURLToPath(new URL(`messages/${type}.mjs`, import.meta.url)) }]),
  ),
  exitOnStop: true,
});

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => pool.stop());

/** What the worker that takes the message answers. */
export async function ask(type, data = {}) {
  const { error, answer } = await pool.send({ type, data });
  if (error) throw new Error(error);
  return answer;
}
