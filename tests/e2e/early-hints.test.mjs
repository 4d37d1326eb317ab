// `early_hints` with the clients that it is for: Node's HTTP/2 client and a browser, over HTTPS.
// Needs: Chromium.
//
// `ONEHOP_EARLY_HINTS_ROUNDS=9 node --test early-hints.test.mjs` measures over a distance, too.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer as createTcpServer } from "node:net";
import { after, before, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { chromium } from "playwright-core";
import { startOnehop, workFolder } from "./program.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const STYLE = "</app.css>; rel=preload; as=style";
/** One way, in milliseconds: as far as two places on different continents are. */
const DISTANCE_MS = 91;
const HANDLER_MS = 300;
/** Navigations of the browser, each in a context of its own. */
const VISITS = 8;
/** After so long a browser that has read the hints has asked for what they name. */
const UNUSED_MS = 2_000;
const STYLE_BYTES = 200 * 1024;
const ROUNDS = Number(process.env.ONEHOP_EARLY_HINTS_ROUNDS ?? 0);

let browser;
let server;
let upstream;
// What lives as long as this file; a hook's own `after` would end it with the hook.
const endings = [];
const suite = { after: (ending) => endings.push(ending) };

before(async () => {
  upstream = await startUpstream();
  suite.after(() => upstream.server.closeAllConnections());
  suite.after(() => upstream.server.close());
  const to = `reverse_proxy 127.0.0.1:${upstream.server.address().port}`;
  const folder = workFolder(suite);
  server = await startOnehop(suite, {
    folder,
    text: `{\n\tadmin off\n\tauto_https disable_redirects\n\tdata_dir ${folder}/data\n}\nhttps://localhost:0 {\n\tbind 127.0.0.1\n\ttls internal\n\tearly_hints /hinted/* {\n\t\tlink ${STYLE}\n\t}\n\tearly_hints /learned/* learn\n\t${to}\n}\n`,
  });
  server.origin = `https://localhost:${server.port}`;
  // Chromium keeps what comes over connections with an error of their certificate out of its cache, preloads too.
  const key = await publicKeyHash(server.port);
  const flags = [...FLAGS, `--ignore-certificate-errors-spki-list=${key}`];
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
});
after(async () => {
  await browser?.close();
  for (const ending of endings.reverse()) await ending();
});

/** Pages that wait for what the test says, and their stylesheet. */
async function startUpstream() {
  const asked = [];
  const state = { asked, server: undefined, beforePage: async () => {}, headers: {} };
  state.server = createServer(async (request, response) => {
    asked.push(request.url);
    if (request.url === "/app.css") {
      response.setHeader("content-type", "text/css");
      response.setHeader("cache-control", "max-age=60");
      return response.end(`h1 { color: rgb(1, 2, 3) }\n/*${"x".repeat(STYLE_BYTES)}*/`);
    }
    if (request.url === "/favicon.ico") return response.writeHead(404).end();
    await state.beforePage();
    response.writeHead(200, { "content-type": "text/html", ...state.headers });
    response.end("<!doctype html><link rel=stylesheet href=/app.css><h1>page</h1>");
  });
  state.server.listen(0, "127.0.0.1");
  await once(state.server, "listening");
  return state;
}

/** SHA-256 of the public key of the server's certificate, in the form that Chromium's flag takes. */
async function publicKeyHash(port) {
  const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const key = socket.getPeerX509Certificate().publicKey.export({ type: "spki", format: "der" });
  socket.destroy();
  return createHash("sha256").update(key).digest("base64");
}

/** A promise that others keep. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}

/** Asks with Node's client: which heads came, in their order. `whenHinted` runs at a 103. */
async function ask(path, fields, whenHinted = () => {}) {
  const session = connectHttp2(server.origin, { rejectUnauthorized: false });
  const heads = [];
  const stream = session.request({ ":path": path, ...fields });
  stream.on("headers", (head) => {
    heads.push({ status: head[":status"], link: head.link });
    whenHinted();
  });
  stream.on("response", (head) => heads.push({ status: head[":status"] }));
  stream.resume();
  await once(stream, "end");
  session.close();
  return heads;
}

const NAVIGATION = { "sec-fetch-mode": "navigate" };

test("Node's client sees 103 while the handler waits", async () => {
  const { open, opened } = gate();
  // Without the 103 this never ends.
  upstream.beforePage = () => opened;
  const heads = await ask("/hinted/node", NAVIGATION, open);
  upstream.beforePage = async () => {};
  assert.deepEqual(heads, [{ status: 103, link: STYLE }, { status: 200 }]);
});

test("a script's request gets no hints", async () => {
  assert.deepEqual(await ask("/hinted/script", { "sec-fetch-mode": "cors" }), [{ status: 200 }]);
});

test("hints are learned from the first response, and forgotten with the page's", async () => {
  upstream.headers = { link: `${STYLE}; nonce=abc, </next>; rel=next` };
  assert.deepEqual(await ask("/learned/page", NAVIGATION), [{ status: 200 }]);
  upstream.headers = {};
  assert.deepEqual(await ask("/learned/page", NAVIGATION), [{ status: 103, link: STYLE }, { status: 200 }]);
  assert.deepEqual(await ask("/learned/page", NAVIGATION), [{ status: 200 }]);
});

test("a browser asks for the stylesheet before the page's first byte", async () => {
  let early = 0;
  for (let visit = 0; visit < VISITS; visit += 1) {
    const seen = upstream.asked.length;
    const styles = () => upstream.asked.slice(seen).filter((url) => url === "/app.css").length;
    // The page is made once the stylesheet was asked for, or when it is clear that Chromium has left these hints unused,
    // as it does in a third of its first navigations; clients that read every 103 are above.
    upstream.beforePage = async () => {
      for (let waited = 0; styles() === 0 && waited < UNUSED_MS; waited += 5) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.origin}/hinted/browser`);
    const [style, ...others] = await page.evaluate(() => performance.getEntriesByName(new URL("/app.css", location).href).map(
      ({ initiatorType, nextHopProtocol }) => ({ initiatorType, nextHopProtocol })));
    if (style.initiatorType === "early-hints") early += 1;
    assert.deepEqual([style.nextHopProtocol, others], ["h2", []]);
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("h1")).color), "rgb(1, 2, 3)");
    assert.equal(styles(), 1, "it was loaded once");
    await context.close();
  }
  upstream.beforePage = async () => {};
  assert.ok(early > 0, `${early} of ${VISITS} visits used the hints`);
});

const measured = "first paint over a distance, without hints and with them";
if (ROUNDS > 0) test(measured, async (t) => {
  const { port, end } = await startDistance(server.port);
  upstream.beforePage = () => new Promise((resolve) => setTimeout(resolve, HANDLER_MS));
  const times = { plain: [], hinted: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const kind of ["plain", "hinted"]) {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`https://localhost:${port}/${kind}/page`, { waitUntil: "load" });
      const paint = await page.evaluate(() => new Promise((resolve) => {
        new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
          .observe({ type: "paint", buffered: true });
      }));
      times[kind].push(paint);
      await page.context().close();
    }
  }
  upstream.beforePage = async () => {};
  end();
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  const [plain, hinted] = [median(times.plain), median(times.hinted)];
  const list = (values) => values.map((value) => Math.round(value)).join(" ");
  t.diagnostic(`first paint without hints ${Math.round(plain)} ms (${list(times.plain)}), with ${Math.round(hinted)} ms (${list(times.hinted)})`);
});

/** Forwards connections and holds each piece for as long as it would take one way. TCP's own handshake is not held. */
async function startDistance(to) {
  const sockets = new Set();
  const carry = (from, onto) => {
    from.on("data", (bytes) => setTimeout(() => onto.write(bytes), DISTANCE_MS));
    from.on("end", () => setTimeout(() => onto.end(), DISTANCE_MS));
    from.on("error", () => onto.destroy());
  };
  const relay = createTcpServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ port: to, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    [near, far].forEach((socket) => sockets.add(socket));
    carry(near, far);
    carry(far, near);
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  return {
    port: relay.address().port,
    end() {
      relay.close();
      sockets.forEach((socket) => socket.destroy());
    },
  };
}
