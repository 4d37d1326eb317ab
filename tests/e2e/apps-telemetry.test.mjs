// OpenTelemetry's instrumentation of http and Express, loaded in each way that its documentation names: behind
// onehop every request leaves the spans that it leaves under Node.js alone, with the same attributes and the same parents.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { APPS, SIDES, ask, node, start, until } from "./apps/sides.mjs";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

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

const REQUESTS = [
  ["/planets/earth?unit=days", { headers: { "User-Agent": "a client/1" } }],
  ["/planets/mars", { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } }],
  ["/planets", { method: "POST", body: '{"name":"venus"}', headers: { "Content-Type": "application/json" } }],
  ["/planets", { method: "POST", body: "{nothing", headers: { "Content-Type": "application/json" } }],
  ["/late", {}],
  ["/fails", {}],
  ["/nowhere", {}],
  ["/planets/earth", { method: "HEAD" }],
  ["/asks", { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } }],
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
          env: { ...env, ELSEWHERE: elsewhere, OTEL_SEMCONV_STABILITY_OPT_IN: "http/dup", OTEL_NODE_RESOURCE_DETECTORS: "none" },
        });
        spans[side] = [];
        for (const [path, settings] of REQUESTS) {
          await ask(running, path, settings);
          spans[side].push({ request: `${settings.method ?? "GET"} ${path}`, spans: tree(await spansOf(running), running) });
        }
        await running.stop();
      }
      for (const all of Object.values(spans)) expected(all);
      if (spans.alone && spans.onehop) assert.deepEqual(spans.onehop, spans.alone);
    });
  }
}

/** What every side must have: the comparison alone would be content with two that have nothing. */
function expected(all) {
  for (const { request, spans } of all) assert.match(spans.at(-1)?.name ?? "nothing", /^(GET|POST|HEAD)/, request);
  const [first, second] = all.map(({ spans }) => spans.at(-1));
  assert.equal(first.attributes["http.route"], "/planets/:name");
  assert.equal(first.attributes["http.response.status_code"] ?? first.attributes["http.status_code"], 200);
  assert.deepEqual([first.trace, first.parent], ["its own", null]);
  assert.deepEqual([second.trace, second.parent, second.isRemote], [TRACE, PARENT, true]);
  const asked = all.at(-1).spans;
  assert.deepEqual(asked.map(({ trace }) => trace), asked.map(() => TRACE));
  assert.ok(asked.some(({ kind, parent }) => kind === 2 && parent !== null), "what the route asked is no span below its own");
}

/** A server that routes ask. */
async function other(context) {
  const server = createServer((_request, response) => response.end("elsewhere\n")).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  return server.address().port;
}

/** The spans of one request: all lines until its server's own, which ends last. */
async function spansOf(running) {
  const lines = () => running.said.filter((line) => line.startsWith("span ")).slice(running.taken ?? 0);
  const parsed = () => lines().map((line) => JSON.parse(line.slice(5)));
  await until(() => parsed().some(({ kind }) => kind === 1), () => `no span of a server: ${running.said.join("\n")}`);
  const spans = parsed();
  running.taken = (running.taken ?? 0) + spans.length;
  return spans;
}

/** Spans without what is different each time: names stand for identities, and the port for itself. */
function tree(spans, running) {
  const named = new Map(spans.map(({ id, name }) => [id, name]));
  return spans.map((span) => ({
    ...span,
    id: undefined,
    trace: span.trace === TRACE ? TRACE : "its own",
    parent: named.get(span.parent) ?? span.parent,
    attributes: steady(span.attributes, running),
  }));
}

/** Ports are other ones at each start. */
function steady(attributes, { port }) {
  const isPort = (name) => /(^|[._])port$/.test(name);
  const plain = (value) => (typeof value === "string" ? value.replaceAll(String(port), "PORT") : value);
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, isPort(name) ? "a port" : plain(value)]).sort());
}
