// AsyncLocalStorage under load: every request keeps its own store wherever it does under Node.js alone, and never
// sees another's. Requests come pipelined, many in one read, and from many connections at once.
// Needs: Node 20, 22 and 24.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { SIDES, ask, node, start } from "./apps/sides.mjs";

const REQUESTS = 500;
const PIPELINED = 20;
const ANSWERS_MS = 30_000;

for (const version of [20, 22, 24]) {
  test(`${REQUESTS} requests pipelined and ${REQUESTS} at once each keep their store, Node.js ${version}`, async (context) => {
    const seen = {};
    for (const side of SIDES) {
      // A thousand requests on a slow machine may wait longer than the three seconds after which the queue refuses them.
      const options = ["limit off"];
      const running = await start(context, side, { program: [node(version)], file: "store/server.mjs", options });
      const ids = Array.from({ length: REQUESTS }, (_, index) => index);
      const connections = Array.from({ length: REQUESTS / PIPELINED }, (_, index) => ids.slice(index * PIPELINED, (index + 1) * PIPELINED));
      const pipelined = await Promise.all(connections.map((some) => pipeline(running.port, some)));
      const parallel = await Promise.all(ids.map((id) => single(running, id)));
      const answers = [...pipelined.flat(), ...parallel];
      assert.equal(answers.length, 2 * REQUESTS);
      const totals = JSON.parse((await ask(running, "/totals")).body);
      const foreign = Object.entries(totals).filter(([, verdicts]) => verdicts.foreign);
      assert.deepEqual(foreign, [], `${side}: a store of another request was seen`);
      assert.deepEqual(Object.keys(totals["before it is set"]), ["none"], side);
      seen[side] = verdictsOf(totals);
      await running.stop();
    }
    // Listeners of bodies run in whatever context the bytes came in: there the store may be missing, as it may alone.
    for (const [point, verdicts] of Object.entries(seen.onehop ?? {})) {
      const unseen = verdicts.filter((verdict) => !(seen.alone ?? seen.onehop)[point]?.includes(verdict));
      assert.deepEqual(unseen, [], `${point}: ${verdicts} behind onehop, ${seen.alone?.[point]} alone`);
    }
    for (const verdicts of Object.values(seen)) assert.ok(verdicts["after all"], "no request was seen to its end");
  });
}

/** Which stores were seen at each point. */
function verdictsOf(totals) {
  return Object.fromEntries(Object.entries(totals).map(([point, verdicts]) => [point, Object.keys(verdicts)]));
}

/** What a request sends: every third has no body, the others one that comes in one or several pieces. */
function parts(id) {
  const body = id % 3 === 0 ? "" : `${id} `.repeat((id * 37) % 9_000);
  const fields = [`Host: localhost`, `X-Id: ${id}`, `X-Read: ${id % 2 ? "iterate" : "listen"}`];
  if (body) fields.push(`Content-Length: ${body.length}`);
  const method = body ? "POST" : "GET";
  return { body, fields, method, wanted: createHash("sha256").update(body).digest("hex") };
}

async function single(running, id) {
  const { body, fields, method, wanted } = parts(id);
  const headers = Object.fromEntries(fields.map((field) => field.split(": ")));
  check(id, wanted, (await ask(running, "/", { method, headers, body })).body.toString());
  return id;
}

/** All requests in one write; their answers, in order. */
async function pipeline(port, ids) {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const all = ids.map(parts);
  socket.write(all.map(({ body, fields, method }) => `${method} / HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`).join(""));
  const bodies = await answers(socket, ids.length);
  socket.destroy();
  ids.forEach((id, index) => check(id, all[index].wanted, bodies[index]));
  return ids;
}

function check(id, wanted, body) {
  const [first, second] = body.split("\n");
  const answer = JSON.parse(second);
  assert.deepEqual([first, answer.id, answer.sha256], [String(id), String(id), wanted], `request ${id}`);
}

/** Bodies of so many chunked answers. */
async function answers(socket, count) {
  let text = "";
  const bodies = [];
  const timer = setTimeout(() => socket.destroy(new Error(`only ${bodies.length} of ${count} answers: ${text.slice(0, 300)}`)), ANSWERS_MS);
  for await (const piece of socket.setEncoding("latin1")) {
    text += piece;
    for (let end; bodies.length < count && (end = text.indexOf("\r\n0\r\n\r\n")) >= 0; text = text.slice(end + 7)) {
      const [head, ...rest] = text.slice(0, end).split("\r\n\r\n");
      assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
      bodies.push(chunks(`${rest.join("\r\n\r\n")}\r\n`));
    }
    if (bodies.length === count) break;
  }
  clearTimeout(timer);
  return bodies;
}

function chunks(text) {
  let body = "";
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, end), 16);
    body += text.slice(end + 2, end + 2 + size);
    at = end + 4 + size;
  }
  return body;
}
