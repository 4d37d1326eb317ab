// HTTP/2 with Node's own client, in clear text with prior knowledge and over TLS, and WebSockets over extended CONNECT to an
// application that knows nothing of it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { after, before, describe, test } from "node:test";
import WebSocket from "ws";
import { LARGE, startSite } from "./http2-sites.mjs";

const REQUESTS = 300;

for (const scheme of ["http", "https"]) {
  describe(`Node's client over ${scheme}`, () => {
    const endings = [];
    const suite = { after: (ending) => endings.push(ending) };
    let server;
    let session;

    before(async () => {
      server = await startSite(suite, scheme, "grace_period 20s");
      session = await connect(server);
    });
    after(async () => {
      session.destroy();
      for (const ending of endings) await ending();
    });

    test("the protocol is HTTP/2", () => {
      assert.equal(session.alpnProtocol, scheme === "https" ? "h2" : "h2c");
      assert.equal(session.remoteSettings.enableConnectProtocol, true);
    });

    test(`${REQUESTS} requests at once are answered`, async () => {
      const all = await Promise.all(Array.from({ length: REQUESTS }, (_, number) => ask(session, { ":path": `/api/${number}` })));
      for (const [number, { status, body }] of all.entries()) {
        assert.equal(status, 200);
        assert.equal(new URL(JSON.parse(body).url).pathname, `/api/${number}`);
      }
    });

    test("a file arrives whole, and so does what is sent", async () => {
      const { status, headers, body } = await ask(session, { ":path": "/large.bin" });
      assert.deepEqual([status, headers["content-length"], body.length], [200, String(LARGE), LARGE]);
      const sent = Buffer.alloc(3_000_000, "an upload ");
      const echoed = await ask(session, { ":method": "POST", ":path": "/api/echo" }, sent);
      assert.equal(echoed.headers["x-length"], "none");
      assert.ok(echoed.body.equals(sent), `${echoed.body.length} bytes`);
      const known = await ask(session, { ":method": "POST", ":path": "/api/echo", "content-length": 4 }, Buffer.from("four"));
      assert.deepEqual([known.headers["x-length"], known.body.toString()], ["4", "four"]);
    });

    test("events come, and several cookies are one field", async () => {
      const events = await ask(session, { ":path": "/api/events" });
      assert.equal(events.body.toString(), [0, 1, 2, 3, 4].map((count) => `data: ${count}\n\n`).join(""));
      const { body } = await ask(session, { ":path": "/api/cookies", cookie: ["a=1", "b=2"] });
      assert.equal(JSON.parse(body).cookie, "a=1; b=2");
    });

    test("conditions, parts and HEAD are as over HTTP/1.1", async () => {
      const { headers } = await ask(session, { ":path": "/style.css" });
      const unchanged = await ask(session, { ":path": "/style.css", "if-none-match": headers.etag });
      assert.deepEqual([unchanged.status, unchanged.body.length], [304, 0]);
      const part = await ask(session, { ":path": "/large.bin", range: "bytes=16-31" });
      assert.deepEqual([part.status, part.body.toString()], [206, "0123456789abcdef"]);
      const head = await ask(session, { ":method": "HEAD", ":path": "/large.bin" });
      assert.deepEqual([head.status, head.headers["content-length"], head.body.length], [200, String(LARGE), 0]);
    });

    test("a stream that is cancelled disturbs no other", async () => {
      const cancelled = session.request({ ":path": "/large.bin" });
      const whole = ask(session, { ":path": "/large.bin" });
      await once(cancelled, "response");
      cancelled.close(constants.NGHTTP2_CANCEL);
      await once(cancelled, "close");
      assert.equal((await whole).body.length, LARGE);
    });

    for (const protocol of [undefined, "chat"]) {
      test(`a WebSocket of \`ws\` echoes${protocol ? " with a subprotocol" : ""}`, async () => {
        const { socket, received } = await openSocket(session, "/socket?a=b", protocol);
        const [hello] = await received(1);
        assert.deepEqual(JSON.parse(hello), { url: "/socket?a=b", cookie: "c=d", protocol: protocol ?? "" });
        const messages = ["text", Buffer.alloc(100_000, "binary "), Buffer.alloc(500_000, "more than a window "), ""];
        for (const message of messages) socket.send(message);
        const echoed = await received(1 + messages.length);
        for (const [index, message] of messages.entries()) assert.equal(String(echoed[index + 1]), String(message), `message ${index}`);
        socket.close(1000, "done");
        const [code, reason] = await once(socket, "close");
        assert.deepEqual([code, String(reason)], [1000, "done"]);
      });
    }

    test("twenty WebSockets share a connection with requests", async () => {
      const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(session, "/socket")));
      await Promise.all(sockets.map(async ({ socket, received }, index) => {
        await received(1);
        for (let count = 0; count < 20; count += 1) socket.send(`${index} ${count}`);
        const echoed = await received(21);
        assert.deepEqual(echoed.slice(1).map(String), Array.from({ length: 20 }, (_, count) => `${index} ${count}`));
      }));
      assert.equal((await ask(session, { ":path": "/socket" })).body.toString(), "plain");
      await Promise.all(sockets.map(({ socket }) => (socket.close(), once(socket, "close"))));
    });

    test("a stop lets the session end well", async () => {
      const other = await connect(server);
      const failures = [];
      other.on("error", (error) => failures.push(error));
      const slow = ask(other, { ":path": "/large.bin" });
      const goaway = once(other, "goaway");
      assert.equal((await ask(other, { ":path": "/api/last" })).status, 200);
      server.child.kill("SIGTERM");
      const [code] = await goaway;
      assert.equal(code, constants.NGHTTP2_NO_ERROR);
      assert.equal((await slow).body.length, LARGE);
      if (!other.destroyed) await once(other, "close");
      assert.deepEqual(failures, []);
      session.destroy();
      assert.deepEqual(await server.exited, { code: 0, signal: null });
    });
  });
}

/** A session that has the server's settings. */
async function connect(server) {
  const target = { host: "127.0.0.1", port: server.port };
  const overTls = () => connectTls({ ...target, servername: "localhost", ca: server.ca, ALPNProtocols: ["h2"] });
  const createConnection = server.ca ? overTls : () => connectTcp(target);
  const session = connectHttp2(server.origin, { createConnection });
  await once(session, "remoteSettings");
  return session;
}

/** Sends a request and gives the whole response. */
function ask(session, headers, body) {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers, { endStream: body === undefined });
    const parts = [];
    let head;
    stream.on("response", (fields) => (head = fields));
    stream.on("data", (part) => parts.push(part));
    stream.on("error", reject);
    stream.on("end", () => resolve({ status: head?.[":status"], headers: head, body: Buffer.concat(parts) }));
    if (body !== undefined) stream.end(body);
  });
}

/** A client of `ws` on a stream of extended CONNECT (RFC 8441), which the library itself does not open. */
async function openSocket(session, path, protocol) {
  const headers = { ":method": "CONNECT", ":protocol": "websocket", ":path": path, "sec-websocket-version": "13", cookie: "c=d" };
  if (protocol) headers["sec-websocket-protocol"] = protocol;
  const stream = session.request(headers, { endStream: false });
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 200);
  assert.equal(head["sec-websocket-protocol"], protocol);
  const socket = new WebSocket(null, undefined, { closeTimeout: 10_000 });
  socket._isServer = false;
  const messages = [];
  let wake = () => {};
  socket.on("message", (data, isBinary) => {
    messages.push(isBinary ? data : String(data));
    wake();
  });
  socket.setSocket(stream, Buffer.alloc(0), { allowSynchronousEvents: true, maxPayload: 0, skipUTF8Validation: false });
  const received = async (count) => {
    while (messages.length < count) await new Promise((resolve) => (wake = resolve));
    return messages;
  };
  return { socket, received };
}
