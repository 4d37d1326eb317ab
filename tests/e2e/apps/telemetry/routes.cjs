// The routes of both applications, which know nothing of OpenTelemetry.

const { request } = require("node:http");

/** Adds them to an application of Express. */
exports.addRoutes = (app, json, port) => {
  app.use(json());
  app.get("/planets/:name", (request, response) => response.json({ planet: request.params.name }));
  app.post("/planets", (request, response) => response.status(201).json(request.body));
  app.get("/late", (_request, response) => {
    response.write("early\n");
    setTimeout(() => response.end("late\n"), 20);
  });
  app.get("/fails", () => {
    throw new Error("this route always fails");
  });
  // What it asks itself is a span of the same trace.
  app.get("/asks", (_request, response) => {
    request({ port: port(), host: "127.0.0.1", path: "/elsewhere" })
      .on("response", (answer) => answer.resume().on("end", () => response.json({ asked: answer.statusCode })))
      .on("error", (error) => response.json({ asked: error.code }))
      .end();
  });
};
