// Express 5 in front of work that takes its time: CPU, or a query to a database that answers five at once. Either way about
// 250 requests a second are all that one process can answer.

import express from "express";
import { PLACE } from "./place.mjs";
import { Pool } from "./pool.mjs";

const CPU_US = 4_000;

/** So much of the CPU's time, however busy the machine is. */
function compute() {
  const begin = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(begin);
    if (user + system >= CPU_US) return;
  }
}

const app = express();
const pool = new Pool();
app.get("/cpu", (request, response) => {
  compute();
  response.json({ rows: 1 });
});
app.get("/pool", async (request, response) => {
  response.json(await pool.query());
});
app.listen(PLACE.port, PLACE.host, PLACE.backlog);
