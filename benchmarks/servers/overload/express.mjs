// Express 5 as people write it, in front of work that takes its time: a fixed amount of CPU, or a query to a database
// that answers five at once. With BENCH_TOOBUSY it refuses by the lag of its event loop, as toobusy-js's readme shows.

import express from "express";
import { PLACE } from "./place.mjs";
import { Pool } from "./pool.mjs";
import { burnt } from "./work.mjs";

const app = express();
if (process.env.BENCH_TOOBUSY) {
  const { default: toobusy } = await import("toobusy-js");
  app.use((request, response, next) => {
    if (toobusy()) response.status(503).send("I'm busy right now, sorry.");
    else next();
  });
}

const pool = new Pool();
// What matters most (`/high`) and the rest ask for the same work.
for (const prefix of ["/work", "/high"]) {
  app.get(`${prefix}/cpu`, (request, response) => {
    response.json(burnt());
  });
  app.get(`${prefix}/pool`, async (request, response) => {
    response.json(await pool.query());
  });
}
app.listen(PLACE.port, PLACE.host, PLACE.backlog);
