// Express 5 as its documentation shows it: a router, its own JSON parser, an ETag on every answer.

import express from "express";
import { PLACE } from "./place.mjs";
import { echo, item } from "./work.mjs";

const app = express();
app.use(express.json());
app.get("/api/items/:id", (request, response) => {
  response.json(item(request.params.id));
});
app.post("/api/echo", (request, response) => {
  response.json(echo(request.body));
});
app.listen(PLACE.port, PLACE.host, PLACE.backlog);
