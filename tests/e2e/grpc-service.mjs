// The service of grpc.test.mjs: a server in its process, or the program of an `app`.

import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";

/** Pieces of a response in pieces. */
export const PIECES = 20;

const bytes = (value) => Buffer.from(value);
const method = (name, requestStream, responseStream) => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: String,
  responseSerialize: bytes,
  responseDeserialize: String,
});
export const SERVICE = {
  unary: method("Unary", false, false),
  seen: method("Seen", false, false),
  download: method("Download", false, true),
  upload: method("Upload", true, false),
  chat: method("Chat", true, true),
};

/** Starts a server that remembers deadlines and which calls were cancelled; it listens at an address of gRPC. */
export async function serve(address) {
  const seen = { cancelled: [], deadlines: [] };
  const server = new grpc.Server();
  server.addService(SERVICE, {
    seen: (call, done) => done(null, JSON.stringify(seen)),
    unary(call, done) {
      const deadline = call.getDeadline();
      if (Number.isFinite(Number(deadline))) seen.deadlines.push(Number(deadline) - Date.now());
      if (call.request === "fail") return done({ code: grpc.status.NOT_FOUND, details: "no such thing" });
      if (call.request === "hang") return call.on("cancelled", () => seen.cancelled.push("hang"));
      const trailers = new grpc.Metadata();
      trailers.set("x-trailer", call.metadata.get("x-sent")[0] ?? "none");
      done(null, `${call.request}!`, trailers);
    },
    download(call) {
      if (call.request === "hang") {
        call.write("first");
        return call.on("cancelled", () => seen.cancelled.push("download"));
      }
      for (let number = 0; number < PIECES; number += 1) call.write(`${call.request} ${number}`);
      call.end();
    },
    upload(call, done) {
      let sum = 0;
      call.on("data", (piece) => (sum += piece.length));
      call.on("end", () => done(null, String(sum)));
    },
    chat(call) {
      call.on("data", (piece) => call.write(`${piece}!`));
      call.on("end", () => call.end());
    },
  });
  const port = await new Promise((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure();
    server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
  return { server, port };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(`unix:${process.env.ONEHOP_SOCKET}`);
