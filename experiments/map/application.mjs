// The map's data as an Express application, without a port.

import express from "express";
import { fileURLToPath } from "node:url";
import { answer } from "./points.mjs";

/** The application; `before` is what each request goes through first. */
export function application(before = []) {
  const app = express();
  for (const each of before) app.use(each);
  app.get("/raw_data", async (request, response) => {
    const { status, value, headers } = await answer((name) => request.query[name]);
    response.status(status).set(headers).json(value);
  });
  app.use(express.static(fileURLToPath(new URL("public", import.meta.url))));
  return app;
}
