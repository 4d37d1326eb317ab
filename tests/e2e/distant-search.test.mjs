// The search service of experiments/ as a user has it: results for words, responses of about 1, 10 and 200 KiB, and the same
// bytes through the proxy, whose connections are open before the first search.
// Needs: Caddy.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request as requestTls } from "node:https";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CADDY, ONEHOP, ROOT, accepts, freePort, run, startCaddy, startOnehop, workFolder } from "./program.mjs";

const EXAMPLE = join(ROOT, "experiments/distant-search");
const START_MS = 30_000;
const CLOSE_MS = 10_000;
const KIB = 1024;
const SEARCH = "/indexes/books/search";
/** How many hits are asked for, and about how many KiB they are: those of the measurement. */
const SIZES = [
  { limit: 3, kibibytes: 1 },
  { limit: 26, kibibytes: 10 },
  { limit: 505, kibibytes: 200 },
];

/** Looks again and again until something holds; gives what the last look found. */
async function until(look, holds, limit, what) {
  const begun = Date.now();
  for (;;) {
    const found = await look().catch((error) => error);
    if (holds(found)) return found;
    assert.ok(Date.now() - begun < limit, `${what}: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The service without onehop, ended with the test. */
async function startService(context, environment = {}) {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), ...environment };
  const child = spawn(process.execPath, [join(EXAMPLE, "search.mjs")], { env, stdio: ["ignore", "ignore", "inherit"] });
  context.after(() => child.kill("SIGKILL"));
  await until(() => accepts(port), (listens) => listens === true, START_MS, "the service does not listen");
  return port;
}

/** A certificate of 127.0.0.1 that nobody issued but itself. */
function certificate(folder) {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=search".split(" ");
  const name = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert];
  execFileSync("openssl", [...words, ...name], { stdio: "ignore" });
  return { SEARCH_CERTIFICATE: cert, SEARCH_KEY: key };
}

/** A file of the example with other ports. */
function onPorts(file, service, proxy) {
  return readFileSync(join(EXAMPLE, file), "utf8")
    .replaceAll("100.2.3.4:7718", `127.0.0.1:${service}`)
    .replaceAll(":7700", `:${service}`)
    .replaceAll(":7718", `:${proxy}`);
}

/** The example's Onehopfile on free ports, or another file of it before a service that is there already. */
async function startExample(context, { upstream, file = "Onehopfile", env = {} } = {}) {
  const folder = workFolder(context);
  for (const name of readdirSync(EXAMPLE).filter((name) => /\.(mjs|json)$/.test(name))) {
    cpSync(join(EXAMPLE, name), join(folder, name));
  }
  symlinkSync(join(EXAMPLE, "node_modules"), join(folder, "node_modules"));
  const [service, proxy] = [upstream ?? (await freePort()), await freePort()];
  const text = onPorts(file, service, proxy);
  const server = await startOnehop(context, { folder, text: `{\n\tadmin off\n}\n${text}`, env });
  return { server, service: `http://localhost:${service}`, proxy: `http://127.0.0.1:${proxy}`, local: `http://localhost:${proxy}` };
}

/** The connections of the only upstream. */
async function connections(server) {
  const { stdout } = await run(ONEHOP, ["status", "--json", "--control", server.control]);
  return JSON.parse(stdout).proxies[0].upstreams[0].connections;
}

const query = (words, limit) => `${SEARCH}?${new URLSearchParams({ q: words, limit })}`;

let plain;
const ends = [];
before(async () => (plain = `http://127.0.0.1:${await startService({ after: (end) => ends.push(end) })}`));
after(() => ends.forEach((end) => end()));

test("a search finds paragraphs with its words, best first, and says how many there are", async () => {
  const { hits, estimatedTotalHits } = await (await fetch(plain + query("white rabbit gloves", 20))).json();
  assert.ok(hits.length > 0 && estimatedTotalHits >= hits.length);
  assert.equal(hits[0].author, "Lewis Carroll");
  for (const { text } of hits) assert.match(text, /rabbit/i);
  const some = await (await fetch(plain + query("sea", 5))).json();
  assert.equal(some.hits.length, 5);
  assert.ok(some.estimatedTotalHits > 100);
  const next = await (await fetch(`${plain}${query("sea", 5)}&offset=5`)).json();
  assert.equal(new Set([...some.hits, ...next.hits].map(({ id }) => id)).size, 10);
});

test("what is no word finds nothing, and operators of SQLite are words", async () => {
  for (const words of ["", "***", '"', "xyzzyplugh"]) {
    const response = await fetch(plain + query(words, 5));
    assert.deepEqual([response.status, (await response.json()).hits], [200, []], words);
  }
  for (const words of ['rabbit OR "', "NEAR(", "text:rabbit", "rabbit*"]) {
    assert.equal((await fetch(plain + query(words, 5))).status, 200, words);
  }
});

test("a limit that is no number up to 1000 is refused, and so are other paths and methods", async () => {
  for (const limit of ["-1", "1001", "many", "1.5"]) assert.equal((await fetch(plain + query("sea", limit))).status, 400, limit);
  assert.equal((await fetch(`${plain}/indexes/films/search?q=sea`)).status, 404);
  assert.equal((await fetch(plain + query("sea", 5), { method: "DELETE" })).status, 405);
});

test("responses are about 1, 10 and 200 KiB long, and the service prints the same ones", async () => {
  for (const { limit, kibibytes } of SIZES) {
    const body = await (await fetch(plain + query("whale", limit))).text();
    const found = Buffer.byteLength(body) / KIB;
    assert.ok(Math.abs(found - kibibytes) <= kibibytes * 0.05, `${limit} hits are ${found} KiB`);
    const printed = execFileSync(process.execPath, [join(EXAMPLE, "search.mjs"), query("whale", limit)]);
    assert.equal(printed.toString(), body);
  }
});

test("through the proxy of the example come the bytes of the service", async (context) => {
  const { service, local } = await startExample(context);
  for (const { limit } of SIZES) {
    const expected = await (await fetch(plain + query("whale", limit))).text();
    for (const origin of [service, local]) {
      const response = await fetch(origin + query("whale", limit));
      assert.equal(response.headers.get("content-type"), "application/json");
      assert.equal(await response.text(), expected, `${origin}, ${limit} hits`);
    }
  }
});

test("with `pool min 4` four connections are open before the first search, which then opens none", async (context) => {
  const upstream = await startService(context, { SEARCH_IDLE_SECONDS: "3600" });
  const { server, proxy } = await startExample(context, { upstream, file: "measured/min4.Onehopfile" });
  const open = await until(() => connections(server), ({ open }) => open === 4, START_MS, "four connections");
  assert.deepEqual([open.dials, open.reused], [4, 0]);
  for (let searches = 0; searches < 20; searches += 1) assert.equal((await fetch(proxy + query("sea", 3))).status, 200);
  const later = await connections(server);
  assert.deepEqual([later.open, later.dials, later.reused], [4, 4, 20]);
});

test("the Caddyfile runs unchanged, and one connection is open before the first search", async (context) => {
  const upstream = await startService(context, { SEARCH_IDLE_SECONDS: "3600" });
  const { server, proxy } = await startExample(context, { upstream, file: "Caddyfile" });
  await until(() => connections(server), ({ open }) => open === 1, START_MS, "one connection");
  const expected = await (await fetch(plain + query("whale", 26))).text();
  assert.equal(await (await fetch(proxy + query("whale", 26))).text(), expected);
  assert.equal((await connections(server)).dials, 1);
});

test("Caddy with the same file sends the same bytes", { skip: !CADDY && "Caddy is not here" }, async (context) => {
  const folder = workFolder(context);
  const [upstream, port] = [await startService(context), await freePort()];
  const file = join(folder, "Caddyfile");
  writeFileSync(file, `{\n\tadmin off\n}\n${onPorts("Caddyfile", upstream, port)}`);
  await startCaddy(context, { file, folder, port });
  for (const { limit } of SIZES) {
    const expected = await (await fetch(plain + query("whale", limit))).text();
    assert.equal(await (await fetch(`http://127.0.0.1:${port}${query("whale", limit)}`)).text(), expected, `${limit} hits`);
  }
});

test("a service with TLS is asked over HTTP/1.1 and HTTP/2, with the same bytes", async (context) => {
  const identity = certificate(workFolder(context));
  const environment = { ...identity, SEARCH_HTTP2: "1", SEARCH_IDLE_SECONDS: "3600" };
  const upstream = await startService(context, environment);
  const expected = await (await fetch(plain + query("whale", 505))).text();
  const authority = readFileSync(identity.SEARCH_CERTIFICATE);
  assert.equal(await askedOverTls(upstream, authority, query("whale", 505)), expected);
  assert.equal(await askedOverHttp2(upstream, authority, query("whale", 505)), expected);
  for (const version of ["1.1", "2"]) {
    for (const file of ["measured/tls.Caddyfile", "measured/tls-min4.Onehopfile"]) {
      const env = { SEARCH_VERSIONS: version, SEARCH_AUTHORITY: identity.SEARCH_CERTIFICATE };
      const { proxy } = await startExample(context, { upstream, file, env });
      assert.equal(await (await fetch(proxy + query("whale", 505))).text(), expected, `${file}, HTTP/${version}`);
    }
  }
});

async function askedOverTls(port, ca, path) {
  const request = requestTls({ host: "127.0.0.1", port, ca, path, ALPNProtocols: ["http/1.1"] }).end();
  const [response] = await once(request, "response");
  const parts = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function askedOverHttp2(port, ca, path) {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
  const parts = [];
  for await (const part of session.request({ ":path": path })) parts.push(part);
  session.close();
  return Buffer.concat(parts).toString();
}

test("an idle connection is kept as long as the service is asked to keep it", async (context) => {
  const port = await startService(context, { SEARCH_IDLE_SECONDS: "1" });
  const socket = connect(port, "127.0.0.1");
  const ended = once(socket, "close", { signal: AbortSignal.timeout(CLOSE_MS) });
  socket.resume().write(`GET ${query("sea", 1)} HTTP/1.1\r\nHost: search\r\n\r\n`);
  const begun = Date.now();
  await ended;
  assert.ok(Date.now() - begun >= 900);
});
