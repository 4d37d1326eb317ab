// gRPC through onehop, with @grpc/grpc-js on both sides: HTTP/2 from the client, in the clear and over TLS, and HTTP/2 in
// the clear to an upstream, and to the program of an `app`.
// Needs: openssl.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { PIECES, serve, SERVICE } from "./grpc-service.mjs";
import { ONEHOP, run, startOnehop, workFolder } from "./program.mjs";

const STREAMS = 1_000;
/** Streams that onehop gives one connection are 128. */
const CONNECTIONS = 10;

const Client = grpc.makeGenericClientConstructor(SERVICE, "Echo");

const unary = (client, request, metadata = new grpc.Metadata(), options = {}, method = "unary") =>
  new Promise((resolve, reject) => {
    let trailers;
    const call = client[method](request, metadata, options, (error, value) =>
      error ? reject(error) : setImmediate(() => resolve({ value, trailers })),
    );
    call.on("status", (status) => (trailers = status.metadata));
  });

const all = async (call) => {
  const pieces = [];
  for await (const piece of call) pieces.push(piece);
  return pieces;
};

/** What the server has seen of calls, once that is so. */
const seen = async (client, is) => {
  for (;;) {
    const state = JSON.parse((await unary(client, "all", undefined, undefined, "seen")).value);
    if (is(state)) return state;
  }
};

/** `reverse_proxy` before a server in this process. */
async function proxy(context) {
  const { server, port } = await serve("127.0.0.1:0");
  context.after(() => server.forceShutdown());
  return `reverse_proxy h2c://127.0.0.1:${port}`;
}

/** The server as a program. Each call holds its place until its end. */
function program() {
  const file = fileURLToPath(new URL("grpc-service.mjs", import.meta.url));
  return `app {\n\t\tcommand ${process.execPath} ${file}\n\t\tprotocol h2c\n\t\tconcurrency 4096\n\t\tlimit off\n\t\trequest_buffers off\n\t}`;
}

/** onehop with this directive, and clients that each have a connection of their own. */
async function start(context, { encrypted, handler }) {
  const directive = await handler(context);
  const folder = workFolder(context);
  let [address, tls, credentials] = ["http://localhost:0", "", grpc.credentials.createInsecure()];
  if (encrypted) {
    const { code, stderr } = await run("openssl", [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost".split(" "),
      ..."-addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:false".split(" "),
      ...["-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")],
    ]);
    assert.equal(code, 0, stderr);
    address = "https://localhost:0";
    tls = `\ttls ${folder}/cert.pem ${folder}/key.pem\n`;
    credentials = grpc.credentials.createSsl(readFileSync(join(folder, "cert.pem")));
  }
  const text = (generation) =>
    `{\n\tadmin off\n\tauto_https off\n}\n${address} {\n${tls}\theader X-Generation ${generation}\n` +
    `\t${directive}\n}\n`;
  const server = await startOnehop(context, { folder, text: text(0) });
  if (handler === program) await server.event(({ event }) => event === "app_ready");
  const clients = Array.from({ length: CONNECTIONS }, () => {
    // Channels of one process to one address share a connection unless they are told not to.
    const client = new Client(`localhost:${server.port}`, credentials, { "grpc.use_local_subchannel_pool": 1 });
    context.after(() => client.close());
    return client;
  });
  const reload = async (generation) => {
    writeFileSync(server.file, text(generation));
    const { code, stderr } = await run(ONEHOP, ["reload", "--control", server.control]);
    assert.equal(code, 0, stderr);
  };
  return { client: clients[0], clients, reload };
}

for (const [over, site] of [
  ["to an upstream, in the clear", { handler: proxy, encrypted: false }],
  ["to an upstream, over TLS", { handler: proxy, encrypted: true }],
  ["to a program", { handler: program, encrypted: false }],
]) {
  test(`calls of all four kinds ${over}, with metadata, trailers and errors`, async (context) => {
    const { client } = await start(context, site);
    const metadata = new grpc.Metadata();
    metadata.set("x-sent", "7");
    const { value, trailers } = await unary(client, "a", metadata);
    assert.equal(value, "a!");
    assert.deepEqual(trailers.get("x-trailer"), ["7"]);
    const error = await unary(client, "fail").catch((error) => error);
    assert.equal(error.code, grpc.status.NOT_FOUND);
    assert.equal(error.details, "no such thing");
    assert.deepEqual(await all(client.download("b")), Array.from({ length: PIECES }, (_, number) => `b ${number}`));
    const sum = await new Promise((resolve, reject) => {
      const call = client.upload((error, sum) => (error ? reject(error) : resolve(sum)));
      for (let number = 0; number < PIECES; number += 1) call.write("x".repeat(50_000));
      call.end();
    });
    assert.equal(sum, String(PIECES * 50_000));
    const chat = client.chat();
    const pieces = chat[Symbol.asyncIterator]();
    for (let number = 0; number < PIECES; number += 1) {
      // Each piece is sent once the last one has been responded to.
      chat.write(String(number));
      assert.equal((await pieces.next()).value, `${number}!`);
    }
    chat.end();
    assert.equal((await pieces.next()).done, true);
  });

  test(`deadlines and cancellations reach the server ${over}`, async (context) => {
    const { client } = await start(context, site);
    const late = await unary(client, "hang", new grpc.Metadata(), { deadline: Date.now() + 500 }).catch((error) => error);
    assert.equal(late.code, grpc.status.DEADLINE_EXCEEDED);
    const { deadlines } = await seen(client, ({ cancelled }) => cancelled.includes("hang"));
    assert.ok(deadlines[0] <= 500, `${deadlines}`);
    const call = client.download("hang");
    await new Promise((resolve) => call.once("data", resolve));
    const ended = new Promise((resolve) => call.once("error", resolve));
    call.cancel();
    assert.equal((await ended).code, grpc.status.CANCELLED);
    await seen(client, ({ cancelled }) => cancelled.includes("download"));
  });

  test(`${STREAMS} streams at a time ${over}, and a reload among them`, async (context) => {
    const { clients, reload } = await start(context, site);
    const chats = Array.from({ length: STREAMS }, (_, number) => {
      const call = clients[number % CONNECTIONS].chat();
      return { call, pieces: call[Symbol.asyncIterator]() };
    });
    const say = (piece) =>
      Promise.all(
        chats.map(async ({ call, pieces }, number) => {
          call.write(`${number} ${piece}`);
          assert.equal((await pieces.next()).value, `${number} ${piece}!`);
        }),
      );
    // All of them are open at once: each has been responded to, and none has ended.
    await say("before");
    await reload(1);
    await say("after");
    for (const { call } of chats) call.end();
    for (const { pieces } of chats) assert.equal((await pieces.next()).done, true);
    assert.equal((await unary(clients[0], "a")).value, "a!");
  });
}
