// Node's own way to more than one process: its cluster. With one worker there is no cluster.

import cluster from "node:cluster";

const WORKERS = Number(process.env.BENCH_WORKERS ?? 1);

/** Calls `serve` in every process that is to serve. */
export function inEachWorker(serve) {
  if (WORKERS === 1 || !cluster.isPrimary) return serve();
  for (let index = 0; index < WORKERS; index += 1) cluster.fork();
}
