// The Express application on every core, with toobusy-js as its limiter where $MAP_LIMIT is not "off".

import cluster from "node:cluster";
import { availableParallelism } from "node:os";
import toobusy from "toobusy-js";
import { application } from "./application.mjs";

/** Refuses a request while the event loop is late. */
function limiter(request, response, next) {
  if (toobusy()) response.status(503).send("busy");
  else next();
}

if (cluster.isPrimary) {
  for (let core = 0; core < availableParallelism(); core += 1) cluster.fork();
} else {
  application(process.env.MAP_LIMIT === "off" ? [] : [limiter]).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
}
