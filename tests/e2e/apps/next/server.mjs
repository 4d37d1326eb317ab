import { createServer } from "node:http";
import next from "next";

const port = Number.parseInt(process.env.PORT || "3000", 10);
const app = next({ dev: false });
const handle = app.getRequestHandler();

await app.prepare();
createServer((request, response) => {
  response.setHeader("X-Custom-Server", "yes");
  handle(request, response);
}).listen(port);
