// Node's https and Chromium as clients of run.py: `node clients.mjs CASE ec=PORT rsa=PORT ca=FILE digest=HEX certificate=FILE`.
// The last line on standard output is JSON: `ok` and `detail`, or `skipped` with a reason.

import { createHash, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect } from "node:tls";

const [name, ...words] = process.argv.slice(2);
const given = Object.fromEntries(words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
const ca = readFileSync(given.ca);
const CHROMIUM = process.env.ONEHOP_CHROMIUM ?? "/usr/bin/chromium";

function get(path, port, agent, options = {}) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "localhost", port, path, ca, agent, family: 4, ...options }, (answer) => {
      const pieces = [];
      const { socket } = answer;
      const negotiated = { protocol: socket.getProtocol(), cipher: socket.getCipher()?.name };
      answer.on("data", (piece) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => resolve({ status: answer.statusCode, body: Buffer.concat(pieces), socket, ...negotiated }));
    });
    asked.on("error", reject);
    asked.end();
  });
}

function check(answer) {
  if (answer.status !== 200 || String(answer.body) !== "hello\n") throw new Error(`${answer.status} ${answer.body}`);
  return answer;
}

function checkLarge(answer) {
  const found = createHash("sha256").update(answer.body).digest("hex");
  if (answer.status !== 200 || found !== given.digest) throw new Error(`a wrong body of ${answer.body.length} bytes`);
  return answer;
}

/** A connection and a request on it; its session for the next one. */
function visit(port, version, session) {
  return new Promise((resolve, reject) => {
    let kept;
    let text = "";
    let isReused;
    const versions = { minVersion: version, maxVersion: version };
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ca, session, ...versions });
    socket.on("session", (next) => (kept = next));
    socket.on("error", reject);
    socket.on("data", (piece) => (text += piece));
    socket.on("secureConnect", () => {
      isReused = socket.isSessionReused();
      kept ??= version === "TLSv1.2" ? socket.getSession() : undefined;
      socket.write("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    });
    socket.on("close", () => {
      if (!text.startsWith("HTTP/1.1 200") || !text.endsWith("hello\n")) reject(new Error(text));
      resolve({ session: kept, isReused });
    });
  });
}

async function chromium() {
  let playwright;
  try {
    ({ chromium: playwright } = await import("../e2e/node_modules/playwright-core/index.mjs"));
  } catch {
    return { skipped: "playwright-core is not in tests/e2e/node_modules" };
  }
  if (!existsSync(CHROMIUM)) return { skipped: "Chromium is not installed" };
  const key = new X509Certificate(readFileSync(given.certificate)).publicKey.export({ type: "spki", format: "der" });
  const digest = createHash("sha256").update(key).digest("base64");
  const browser = await playwright.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      // Trusts exactly this key, and checks all else.
      `--ignore-certificate-errors-spki-list=${digest}`,
    ],
  });
  try {
    const page = await browser.newPage();
    const protocol = await page.context().newCDPSession(page);
    await protocol.send("Network.enable");
    const details = new Promise((resolve) => {
      protocol.on("Network.responseReceived", ({ response }) => resolve(response.securityDetails));
    });
    const answer = await page.goto(`https://localhost:${given.ec}/`);
    if (answer.status() !== 200 || !(await page.content()).includes("<p>hello")) throw new Error(`status ${answer.status()}`);
    const found = await page.evaluate(async () => {
      const body = await (await fetch("/large.bin")).arrayBuffer();
      const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
      return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    });
    if (found !== given.digest) throw new Error("a wrong body");
    const { protocol: version, keyExchangeGroup, cipher } = await details;
    return { ok: true, detail: `Chromium ${browser.version()}: ${version}, ${keyExchangeGroup}, ${cipher}` };
  } finally {
    await browser.close();
  }
}

const cases = {
  async "node-keep-alive"() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set();
    let last;
    for (let count = 0; count < 20; count += 1) {
      last = check(await get("/hello.txt", given.ec, agent));
      sockets.add(last.socket);
    }
    agent.destroy();
    return { ok: sockets.size === 1, detail: `${sockets.size} connection, ${last.protocol}, ${last.cipher}` };
  },
  async "node-tls12"() {
    const said = [];
    for (const port of [given.ec, given.rsa]) {
      const answer = check(await get("/hello.txt", port, undefined, { maxVersion: "TLSv1.2" }));
      checkLarge(await get("/large.bin", port, undefined, { maxVersion: "TLSv1.2" }));
      said.push(`${answer.protocol} ${answer.cipher}`);
    }
    return { ok: said.every((text) => text.startsWith("TLSv1.2")), detail: said.join("; ") };
  },
  async "node-resumed"() {
    const said = [];
    for (const version of ["TLSv1.2", "TLSv1.3"]) {
      for (const port of [given.ec, given.rsa]) {
        const first = await visit(port, version);
        const second = await visit(port, version, first.session);
        said.push(!first.isReused && second.isReused);
      }
    }
    return { ok: said.every(Boolean), detail: `resumed: ${said}` };
  },
  async "node-large"() {
    for (const port of [given.ec, given.rsa]) checkLarge(await get("/large.bin", port));
    return { ok: true, detail: `Node ${process.version}` };
  },
  chromium,
};

const deadline = setTimeout(() => {
  console.log(JSON.stringify({ ok: false, detail: "took too long" }));
  process.exit(1);
}, 18_000);
try {
  console.log(JSON.stringify(await cases[name]()));
} catch (error) {
  console.log(JSON.stringify({ ok: false, detail: String(error) }));
}
clearTimeout(deadline);
