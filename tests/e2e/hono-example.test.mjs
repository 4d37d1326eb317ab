// The Hono example as a user has it: its routes, its event stream, its WebSocket, its page, and what a stop does to them.

import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import WebSocket from "ws";
import { ONEHOP, ROOT, appStatus, run, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "examples/hono");
const STATE_DEADLINE_MS = 15_000;
const TICKS = 3;

/** The example on a free port, with the tests' own copy of Hono. */
async function startExample(context) {
  const folder = workFolder(context);
  for (const part of ["server.mjs", "websocket.mjs", "dist", "package.json"]) {
    cpSync(join(EXAMPLE, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "tests/e2e/node_modules"), join(folder, "node_modules"));
  const text = readFileSync(join(EXAMPLE, "Onehopfile"), "utf8").replace("localhost:8080", "localhost:0");
  const server = await startOnehop(context, { folder, text: `{\n\tadmin off\n}\n${text}` });
  server.ask = (path, init) => fetch(new URL(path, server.origin), { signal: AbortSignal.timeout(STATE_DEADLINE_MS), ...init });
  server.post = (path, body) =>
    server.ask(path, { method: "POST", body, headers: { "Content-Type": "application/json" } });
  return server;
}

test("routes of the example: JSON, conditions, cookies, a password, and every kind of failure", async (context) => {
  const server = await startExample(context);

  const earth = await server.ask("/api/planets/earth");
  assert.equal(earth.status, 200);
  assert.equal(earth.headers.get("x-content-type-options"), "nosniff");
  assert.deepEqual(await earth.json(), { name: "earth", days: 365 });
  const conditions = { "If-None-Match": earth.headers.get("etag") };
  assert.equal((await server.ask("/api/planets/earth", { headers: conditions })).status, 304);

  await fails(await server.ask("/api/planets/nowhere"), 404, "no planet is called nowhere");
  await fails(await server.ask("/api/nothing"), 404, "there is nothing at /api/nothing");
  await fails(await server.post("/api/fahrenheit", '{"celsius":"warm"}'), 422, "celsius must be a number from -273.15");
  await fails(await server.post("/api/fahrenheit", '{"celsius"'), 400, "Malformed JSON in request body");
  assert.deepEqual(await (await server.post("/api/fahrenheit", '{"celsius":20}')).json(), { celsius: 20, fahrenheit: 68 });

  const visit = await server.ask("/api/visits", { headers: { Cookie: "visits=4" } });
  assert.deepEqual(await visit.json(), { visits: 5 });
  assert.match(visit.headers.get("set-cookie"), /^visits=5;.* HttpOnly; SameSite=Lax$/);

  const refused = await server.ask("/api/worker");
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get("www-authenticate"), /^Basic /);
  const about = await worker(server);
  assert.match(about.requestId, /^[0-9a-f]{16}$/);
  assert.ok((await appStatus(server)).workers.some(({ pid }) => pid === about.worker));

  const failure = await server.ask("/api/failure");
  assert.equal(failure.status, 500);
  const { error, requestId } = await failure.json();
  assert.equal(error, "something failed here");
  assert.match(requestId, /^[0-9a-f]{16}$/);
  await server.event(({ event, line }) => event === "app_output" && line === "Error: this route always fails");
  assert.equal((await appStatus(server)).failures, 0, "what the application answers for is no failure of a worker");
});

test("the example's page is served, at addresses that only the page knows too", async (context) => {
  const server = await startExample(context);
  for (const path of ["/", "/anywhere"]) {
    const page = await server.ask(path, { headers: { Accept: "text/html" } });
    assert.equal(page.status, 200, path);
    assert.match(await page.text(), /<title>Hono on onehop<\/title>/);
  }
  const script = await server.ask("/page.js");
  assert.match(script.headers.get("content-type"), /javascript/);
  assert.equal(await script.text(), readFileSync(join(EXAMPLE, "dist/page.js"), "utf8"));
});

test("ticks come one by one over one answer, go on from the last that was had, and end with their listener", async (context) => {
  const server = await startExample(context);
  const last = 41;
  const request = get(`${server.origin}/api/ticks`, { headers: { "Last-Event-ID": String(last) } });
  const [answer] = await once(request, "response");
  assert.equal(answer.headers["content-type"], "text/event-stream");
  const ids = [];
  const times = [];
  let text = "";
  for await (const piece of answer.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    text += piece;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, data, id] = /^event: tick\ndata: (.*)\nid: (\d+)$/.exec(event) ?? assert.fail(event);
      ids.push(Number(id));
      times.push(Date.parse(JSON.parse(data).time));
    }
    if (ids.length >= TICKS) break;
  }
  assert.deepEqual(ids, ids.map((_, index) => last + 1 + index));
  // Each was written when it was made: they are apart in the handler's time.
  assert.ok(times.every((time, index) => index === 0 || time > times[index - 1]));

  request.destroy();
  const left = await server.event(({ event, line }) => event === "app_output" && line.startsWith("a listener left"));
  const lastSent = Number(/tick (\d+)$/.exec(left.line)[1]);
  assert.ok(lastSent <= ids.at(-1) + 2, `the handler went on until ${lastSent}`);
  assert.deepEqual((await appStatus(server)).workers.map(({ in_flight: inFlight }) => inFlight), [0, 0]);
});

test("the chat gives back text and bytes, and refuses what is too long or no WebSocket", async (context) => {
  const server = await startExample(context);
  const chat = await openChat(server);
  chat.socket.send("grüße");
  assert.deepEqual(await chat.message(), { data: Buffer.from("grüße"), isBinary: false });
  const bytes = Buffer.from([0, 1, 254, 255]);
  chat.socket.send(bytes);
  assert.deepEqual(await chat.message(), { data: bytes, isBinary: true });
  chat.socket.close(3001, "enough");
  assert.equal(await chat.closed, 3001);
  await server.event(({ event, line }) => event === "app_output" && line === "a chat was closed with 3001");

  const loud = await openChat(server);
  loud.socket.send("x".repeat(5000));
  assert.equal(await loud.closed, 1009);

  assert.equal((await server.ask("/api/chat")).status, 426);
});

test("a reload keeps the chat, a restart closes it with 1001, and the new workers answer", async (context) => {
  const server = await startExample(context);
  const chat = await openChat(server);
  for (const words of [["reload"], ["reload", "--restart"]]) {
    assert.equal(chat.socket.readyState, WebSocket.OPEN);
    const { code, stderr } = await run(ONEHOP, [...words, "--control", server.control]);
    assert.equal(code, 0, stderr);
  }
  assert.equal(await chat.closed, 1001);
  const next = await openChat(server);
  assert.notEqual(next.greeting, chat.greeting);
  next.socket.terminate();
});

test("a stop ends the chat, for the handler too, and the server ends cleanly", async (context) => {
  const server = await startExample(context);
  const chat = await openChat(server);
  const { code, stderr } = await run(ONEHOP, ["stop", "--control", server.control]);
  assert.equal(code, 0, stderr);
  const closed = await chat.closed;
  assert.deepEqual(await server.exited, { code: 0, signal: null });
  assert.equal((await server.event(({ event }) => event === "stopped")).cut_off, 0);
  await server.event(({ event, line }) => event === "app_output" && line.startsWith("a chat was closed with"));
  const end = await server.event(({ event, pid }) => event === "worker_ended" && chat.greeting.includes(`process ${pid}.`));
  assert.equal(end.failed, false);
  assert.equal(closed, 1001);
});

async function fails(response, status, error) {
  assert.equal(response.status, status);
  assert.deepEqual(await response.json(), { error });
}

/** What the route behind the password says. */
async function worker(server) {
  const authorization = `Basic ${Buffer.from("admin:only-an-example").toString("base64")}`;
  const response = await server.ask("/api/worker", { headers: { Authorization: authorization } });
  assert.equal(response.status, 200);
  return response.json();
}

/** A socket that has been greeted. */
async function openChat(server) {
  const socket = new WebSocket(`${server.origin.replace("http", "ws")}/api/chat`, { handshakeTimeout: STATE_DEADLINE_MS });
  const closed = once(socket, "close").then(([code]) => code);
  const received = [];
  let wake;
  socket.on("message", (data, isBinary) => {
    received.push({ data, isBinary });
    wake?.();
  });
  socket.on("error", (error) => (received.push({ error }), wake?.()));
  const message = async () => {
    while (received.length === 0) await new Promise((resolve) => (wake = resolve));
    return received.shift();
  };
  const greeting = String((await message()).data);
  assert.match(greeting, /^You speak to process \d+\.$/);
  return { socket, closed, message, greeting };
}
