// socket.io as its documentation sets it up: on Node's own server, every transport allowed.

import { createServer } from "node:http";
import { Server } from "socket.io";

const server = createServer((request, response) => response.end(`plain ${request.url}\n`));
const io = new Server(server);
const left = {};
let here = 0;

io.on("connection", (socket) => {
  here += 1;
  socket.emit("worker", process.pid);
  socket.on("echo", (value, acknowledge) => acknowledge(value));
  socket.on("say", (text) => io.emit("said", text));
  socket.on("disconnect", (reason) => {
    left[reason] = (left[reason] ?? 0) + 1;
    here -= 1;
    if (here === 0) console.log(`left ${JSON.stringify(left)}`);
  });
});

server.listen(process.env.PORT || 3000, () => console.log("listening"));
