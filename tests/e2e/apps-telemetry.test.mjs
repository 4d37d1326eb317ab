// OpenTelemetry's instrumentation of http and Express, loaded in each way that its documentation names: behind
// onehop every request leaves the spans that it leaves under Node.js alone, with the same attributes and the same parents.
// Needs: Node 20, 22 and 24.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { APPS, SIDES, ask, node, start } from "./apps/sides.mjs";

const PARENT = "b7ad6b7169203331";
/** Nothing is sent anywhere. */
const QUIET = {
  OTEL_NODE_RESOURCE_DETECTORS: "none",
  OTEL_TRACES_EXPORTER: "none",
  OTEL_METRICS_EXPORTER: "none",
  OTEL_LOGS_EXPORTER: "none",
};
/** The trace that a client's request belongs to; the first of them belongs to none. */
const traceOf = (index) => `0af7651916cd43dd8448eb21000000${String(index).padStart(2, "0")}`;

const REQUIRE = join(APPS, "telemetry/tracing.cjs");
const IMPORT = join(APPS, "telemetry/tracing.mjs");
/** The hook that its documentation names for applications of ES modules. */
const HOOK = `--experimental-loader=${join(APPS, "node_modules/@opentelemetry/instrumentation/hook.mjs")}`;

const WAYS = [
  { name: "--require", file: "telemetry/server.cjs", words: ["--require", REQUIRE] },
  { name: "NODE_OPTIONS", file: "telemetry/server.cjs", env: { NODE_OPTIONS: `--require ${REQUIRE}` } },
  { name: "--import with the loader's hook", file: "telemetry/server.mjs", words: [HOOK, "--import", IMPORT] },
  { name: "NODE_OPTIONS with the loader's hook", file: "telemetry/server.mjs", env: { NODE_OPTIONS: `${HOOK} --import ${IMPORT}` } },
];

const KIND_SERVER = 1;
const KIND_CLIENT = 2;

const REQUESTS = [
  ["/planets/earth?unit=days", { headers: { "User-Agent": "a client/1" } }],
  ["/planets/mars", {}],
  ["/planets", { method: "POST", body: '{"name":"venus"}', headers: { "Content-Type": "application/json" } }],
  ["/planets", { method: "POST", body: "{nothing", headers: { "Content-Type": "application/json" } }],
  ["/late", {}],
  ["/fails", {}],
  ["/nowhere", {}],
  ["/planets/earth", { method: "HEAD" }],
  ["/asks", {}],
];

for (const version of [20, 22, 24]) {
  for (const { name, file, words = [], env = {} } of WAYS) {
    test(`OpenTelemetry sees the same requests, loaded by ${name}, Node.js ${version}`, async (context) => {
      const elsewhere = await other(context);
      const spans = {};
      for (const side of SIDES) {
        const running = await start(context, side, {
          program: [node(version), ...words],
          file,
          env: { ...env, ELSEWHERE: elsewhere, ...QUIET },
        });
        for (const [index, [path, settings]] of REQUESTS.entries()) {
          const headers = index === 0 ? settings.headers : { ...settings.headers, traceparent: `00-${traceOf(index)}-${PARENT}-01` };
          await ask(running, path, { ...settings, headers });
        }
        await running.stop();
        spans[side] = spansOf(running);
      }
      for (const all of Object.values(spans)) expected(all);
      if (spans.alone && spans.onehop) assert.deepEqual(spans.onehop, spans.alone);
    });
  }
}

/** What every side must have: the comparison alone would be content with two that have nothing. */
function expected(all) {
  const servers = all.map(({ request, spans }) => {
    const own = spans.filter(({ kind }) => kind === KIND_SERVER);
    assert.equal(own.length, 1, `${request} has ${own.length} spans of the server`);
    return own[0];
  });
  assert.equal(servers[0].attributes["http.route"], "/planets/:name");
  assert.equal(servers[0].attributes["http.response.status_code"], 200);
  assert.deepEqual(
    servers.map(({ parent, isRemote, ended }) => [parent, isRemote, ended]),
    servers.map((_, index) => [index === 0 ? null : PARENT, index > 0, true]),
  );
  const asked = all.at(-1).spans.find(({ kind }) => kind === KIND_CLIENT);
  assert.ok(asked && asked.parent !== PARENT, "what a route asked is no span below its own");
}

/** A server that routes ask. */
async function other(context) {
  const server = createServer((_request, response) => response.end("elsewhere\n")).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  return server.address().port;
}

/**
 * The spans of each request, in an order that does not depend on when they ended. What is different each time is
 * left out: names stand for identities.
 */
function spansOf(running) {
  const all = running.said.filter((line) => line.startsWith("span ")).map((line) => JSON.parse(line.slice(5)));
  const named = new Map(all.map(({ id, name }) => [id, name]));
  const known = REQUESTS.map((_, index) => traceOf(index));
  return REQUESTS.map(([path, { method = "GET" }], index) => {
    const spans = all
      .filter(({ trace }) => (index === 0 ? !known.includes(trace) : trace === known[index]))
      .map((span) => ({ ...span, id: 0, trace: 0, parent: named.get(span.parent) ?? span.parent, attributes: steady(span.attributes, running) }));
    return { request: `${method} ${path}`, spans: spans.sort((one, two) => (key(one) < key(two) ? -1 : 1)) };
  });
}

function key({ kind, name, attributes }) {
  return JSON.stringify([kind, name, attributes]);
}

/**
 * Ports are other ones at each start, and an application that listens on every address of both families is told of
 * an IPv4 client as an IPv6 one, where onehop gives the address as the client has it.
 */
function steady(attributes, { port }) {
  const isPort = (name) => /(^|[._])port$/.test(name);
  const plain = (value) => (typeof value === "string" ? value.replace("::ffff:", "").replaceAll(String(port), "PORT") : value);
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, isPort(name) ? "a port" : plain(value)]).sort());
}
