// The same Caddyfiles and the same requests on real Caddy and on onehop. What differs must stand in
// tests/caddy/differences.mjs with its reason; what stands there and no longer differs fails too.
// Needs: Caddy.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { makeTree, requestsFor, written } from "../caddy/corpus.mjs";
import { DIFFERENCES } from "../caddy/differences.mjs";
import { Connection } from "./connection.mjs";
import { CADDY, freePort, OUTPUT, ROOT, startCaddy, startOnehop, workFolder } from "./program.mjs";

const SITES = join(ROOT, "tests/caddy/sites");
const LONG_TEXT = "A long text that is worth compressing. ".repeat(60);

/** Fields that a client acts on. The others (Date, Server, an ETag's own bytes) are each server's own. */
const FIELDS = [
  "content-type",
  "content-encoding",
  "content-range",
  "content-length",
  "accept-ranges",
  "location",
  "cache-control",
  "vary",
  "allow",
  "last-modified",
  "www-authenticate",
  "x-content-type-options",
  ...["set", "add", "replace", "late", "text", "path", "route", "uri", "query", "folder", "all", "from", "also"].map((name) => `x-${name}`),
];

/** Compressing the small tree takes a fraction of this. */
const COMPRESSED_MS = 5_000;

const used = new Set();
const sites = readdirSync(SITES)
  .filter((name) => name.endsWith(".Caddyfile") && (!process.env.ONEHOP_SITES || process.env.ONEHOP_SITES.split(",").includes(name.split(".")[0])))
  .map((name) => name.replace(".Caddyfile", ""));

for (const site of sites) {
  test(`${site}.Caddyfile answers alike`, { skip: !CADDY && "Caddy is not here" }, async (context) => {
    const folder = workFolder(context);
    const root = join(folder, "root");
    mkdirSync(root);
    makeTree(root);
    const text = readFileSync(join(SITES, `${site}.Caddyfile`), "utf8");
    const [caddyPort, onehopPort] = [await freePort(), await freePort()];
    const env = { ROOT: root, LONG_TEXT };
    const caddyFile = join(folder, "caddy.Caddyfile");
    writeFileSync(caddyFile, `{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n${text}`);
    const caddy = await startCaddy(context, { file: caddyFile, folder, port: caddyPort, env: { ...env, PORT: String(caddyPort) } });
    const onehop = await startOnehop(context, {
      folder,
      name: "Caddyfile",
      text: `{\n\tadmin off\n\tauto_https off\n}\n${text}`,
      env: { ...env, PORT: String(onehopPort) },
    });
    const faults = [];
    let differing = 0;
    let open = 0;
    await compressed(onehop.port, site === "precompressed" ? ["/assets/app.js"] : ["/assets/app.js", "/docs/guide.txt", "/index.html"]);
    const requests = requestsFor(site);
    const [left, right] = [new Asker(caddy.port), new Asker(onehop.port)];
    for (const request of requests) {
      const [expected, actual] = [await left.ask(request), await right.ask(request)];
      for (const what of differences(expected, actual)) {
        const line = written(request);
        const difference = { site, line, request, status: actual.status, what: what.name, caddy: what.expected, onehop: what.actual };
        const known = DIFFERENCES.find((entry) => covers(entry, difference));
        if (known) {
          used.add(known);
          if (known.open) open += 1;
          else differing += 1;
        } else {
          faults.push(`${line}\n    ${what.name}: Caddy ${show(what.expected)}\n    ${" ".repeat(what.name.length)}  onehop ${show(what.actual)}`);
        }
      }
    }
    left.close();
    right.close();
    writeFileSync(join(OUTPUT, `caddy-${site}.txt`), faults.join("\n"));
    context.diagnostic(`${requests.length} requests, ${differing} intended differences, ${open} to mend`);
    assert.equal(faults.length, 0, `${faults.length} differences that are not on the list:\n${faults.slice(0, 12).join("\n")}`);
  });
}

test("every difference on the list exists", { skip: (!CADDY || process.env.ONEHOP_SITES) && "not all were compared" }, () => {
  const unused = DIFFERENCES.filter((entry) => !used.has(entry)).map((entry) => `${entry.open ? "mended, take it off the list: " : ""}${entry.reason}`);
  assert.deepEqual(unused, []);
});

/** Compression goes on behind the first answers: waits until it has come to these files. */
async function compressed(port, targets) {
  const asker = new Asker(port);
  const fields = { "Accept-Encoding": "gzip, br, zstd" };
  const begun = Date.now();
  for (const target of targets) {
    for (;;) {
      const answer = await asker.ask({ target, fields });
      const never = answer.status !== 200 || !answer.field("vary")?.includes("Accept-Encoding");
      if (never || answer.field("content-encoding")) break;
      assert.ok(Date.now() - begun < COMPRESSED_MS, `${target} was never compressed`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  asker.close();
}

/** Asks over one kept connection, opened again when the server closes it. */
class Asker {
  #connection = null;
  constructor(port) {
    this.port = port;
  }
  async ask(request) {
    const { target, method, host } = request;
    const fields = { ...request.fields };
    if (request.own) {
      const first = await this.#send(target, {});
      if (first.field?.("etag")) fields[request.own] = first.field("etag");
    }
    return this.#send(target, { method, fields, host });
  }
  async #send(target, options) {
    for (let attempt = 0; ; attempt += 1) {
      if (!this.#connection || this.#connection.isOver) this.#connection = await Connection.open(this.port);
      try {
        return { method: options.method, ...(await this.#connection.request(target, options)) };
      } catch (error) {
        this.close();
        if (error.kind !== "unanswered" || attempt > 0) return { status: String(error.kind ?? error), fields: new Map(), body: Buffer.alloc(0), field: () => undefined };
      }
    }
  }
  close() {
    this.#connection?.close();
    this.#connection = null;
  }
}

/** What two answers differ in. */
function differences(expected, actual) {
  const found = [];
  const compare = (name, one, other) => one !== other && found.push({ name, expected: one, actual: other });
  compare("status", expected.status, actual.status);
  // Another status is another answer: its fields would only repeat that.
  if (found.length > 0) return found;
  for (const name of FIELDS) {
    // The length of an encoded body is the encoder's business.
    if (name === "content-length" && expected.fields.has("content-encoding") && actual.fields.has("content-encoding")) continue;
    if (name === "content-length" && expected.body.length > 0 && !expected.fields.has(name)) continue;
    compare(name, expected.fields.get(name), actual.fields.get(name));
  }
  const kind = (answer) => (answer.fields.has("etag") ? (answer.fields.get("etag").startsWith("W/") ? "weak" : "strong") : "none");
  compare("etag", kind(expected), kind(actual));
  compare("body", readable(expected), readable(actual));
  return found;
}

/** The content without its coding; pages and boundaries that are each server's own are made alike. */
function readable(answer) {
  let body = answer.body;
  const coding = answer.fields.get("content-encoding");
  const isPart = answer.status === 206;
  try {
    if (coding === "gzip" && !isPart && body.length) body = gunzipSync(body);
    if (coding === "br" && !isPart && body.length) body = brotliDecompressSync(body);
    if (coding === "zstd") return `${body.length > 0 ? "some" : "no"} zstd`;
  } catch {
    return "content that cannot be decoded";
  }
  const type = answer.fields.get("content-type") ?? "";
  let text = body.toString("latin1");
  const boundary = /boundary=(\S+)/.exec(type)?.[1];
  if (boundary) text = text.replaceAll(boundary, "BOUNDARY");
  return text;
}

function covers(entry, difference) {
  const fits = (pattern, value) => pattern === undefined || (pattern instanceof RegExp ? pattern.test(String(value)) : pattern === value);
  return (
    fits(entry.site, difference.site) &&
    fits(entry.request, difference.line) &&
    fits(entry.what, difference.what) &&
    fits(entry.status, difference.status) &&
    (entry.if === undefined || entry.if(difference))
  );
}

function show(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 160 ? `${text.slice(0, 160)}… (${text.length})` : text;
}
