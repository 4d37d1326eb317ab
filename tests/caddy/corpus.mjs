// The requests with which Caddy and onehop are compared, and the folder that both serve.
// The folder's bytes and dates are fixed, so that every answer but its date is too.

import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const WRITTEN = new Date("2026-01-02T03:04:05Z");

const sentence = "All the king's horses and all the king's men read the documentation first. ";
const script = 'export const greet = (name) => `Hello, ${name}!`;\n'.repeat(80);
const FILES = {
  "index.html": "<!doctype html>\n<title>Index</title>\n<p>The index page.</p>\n".repeat(12),
  "start.html": "<!doctype html>\n<title>Start</title>\n",
  "about.html": "<!doctype html>\n<title>About</title>\n",
  "docs/index.html": "<!doctype html>\n<title>Docs</title>\n",
  "docs/guide.txt": sentence.repeat(20),
  "docs/prefix/page.html": "<!doctype html>\n<title>Prefixed</title>\n",
  "assets/app.js": script,
  "assets/app.js.gz": gzipSync(script),
  "assets/app.js.br": brotliCompressSync(script),
  "assets/style.css": "body { margin: 0; color: #123; }\n".repeat(40),
  "assets/photo.jpg": Buffer.from(Array.from({ length: 2000 }, (_, index) => (index * 7919) % 251)),
  "assets/module.wasm": Buffer.from([0, 97, 115, 109, 1, 0, 0, 0]),
  "assets/font.woff2": Buffer.alloc(900, 7),
  "assets/icon.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n'.repeat(30),
  "assets/map.js.map": '{"version":3}\n',
  "assets/mod.mjs": "export {};\n",
  "with space.txt": "A space in its name.\n",
  "ünï.txt": "Letters outside ASCII in its name.\n",
  "plus+sign.txt": "plus\n",
  "big.txt": sentence.repeat(4000),
  "data.json": '{"rows": [1, 2, 3]}\n'.repeat(40),
  "feed.xml": "<?xml version='1.0'?><feed/>\n".repeat(30),
  "manifest.webmanifest": "{}\n",
  "no-extension": "No extension.\n",
  "unknown.kind": "Unknown kind.\n",
  "empty.txt": "",
  "top.secret": "hidden by a pattern\n",
  "hidden/file.txt": "hidden by its folder's name\n",
  ".dotfile": "a dotfile\n",
  ".well-known/acme-challenge/token": "token\n",
  "list/a.txt": "a\n",
  "list/b.html": "<p>b</p>\n",
  "list/<odd> & \"name\".txt": "odd\n",
  "list/sub/c.txt": "c\n",
};

/** Makes the folder that both serve. */
export function makeTree(root) {
  const folders = new Set([root, join(root, "empty")]);
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    utimesSync(join(root, path), WRITTEN, WRITTEN);
    for (let folder = dirname(join(root, path)); folder.length >= root.length; folder = dirname(folder)) folders.add(folder);
  }
  mkdirSync(join(root, "empty"), { recursive: true });
  symlinkSync("guide.txt", join(root, "docs/link.txt"));
  for (const folder of folders) utimesSync(folder, WRITTEN, WRITTEN);
}

/** Paths of every kind that a client may ask for, beside those of one configuration. */
const TARGETS = [
  "/",
  "/index.html",
  "/index.html?x=1",
  "/start.html",
  "/about.html",
  "/about",
  "/docs",
  "/docs?x=1&y=%20",
  "/docs/",
  "/docs/index.html",
  "/docs/guide.txt",
  "/docs/guide.txt/",
  "/docs/link.txt",
  "/docs/../about.html",
  "/docs/%2e%2e/about.html",
  "/docs/./guide.txt",
  "/docs//guide.txt",
  "//about.html",
  "/../about.html",
  "/DOCS/",
  "/assets/app.js",
  "/assets/style.css",
  "/assets/photo.jpg",
  "/assets/module.wasm",
  "/assets/font.woff2",
  "/assets/icon.svg",
  "/assets/map.js.map",
  "/assets/mod.mjs",
  "/assets/app.js.br",
  "/assets/",
  "/with%20space.txt",
  "/%C3%BCn%C3%AF.txt",
  "/plus+sign.txt",
  "/plus%2Bsign.txt",
  "/big.txt",
  "/data.json",
  "/feed.xml",
  "/manifest.webmanifest",
  "/no-extension",
  "/unknown.kind",
  "/empty.txt",
  "/empty/",
  "/empty",
  "/list/",
  "/list/sub/",
  "/list?sort=size&order=desc",
  "/list/?sort=size&order=desc",
  "/list/?sort=name&order=desc",
  "/list/?sort=time&limit=1",
  "/top.secret",
  "/hidden/file.txt",
  "/.dotfile",
  "/.well-known/acme-challenge/token",
  "/missing",
  "/missing/",
  "/missing.js",
  "/assets/missing-0a1b2c3d.js",
  "/a%2Fb",
  "/docs%2Fguide.txt",
  "/docs%5Cguide.txt",
  "/about.html%00",
  "/about%2Ehtml",
  "/about.html;v=1",
  "/about.html#part",
];

/** Paths that mean something to one configuration. */
const OWN_TARGETS = {
  "try-files": ["/app/", "/app/deep/link", "/strict/x", "/strict/", "/docs/guide", "/nothing?y=2"],
  "single-page": ["/app/deep/link", "/items/42", "/items/42.5"],
  encode: ["/long", "/short"],
  errors: ["/down/x", "/docs/missing", "/missing/page", "/strict/x", "/gone/x", "/moved/x", "/pageless/x", "/unanswered/x", "/renamed/x?y=z", "/stripped/x", "/stripped/about.html", "/down/"],
  handle: ["/api/", "/api/x%20y", "/api", "/static/about.html", "/static/", "/static/docs", "/static/missing", "/static", "/nested/docs/guide.txt", "/nested/docs/", "/nested/else", "/exact", "/exact/"],
  header: ["/docs/guide.txt?x=1", "/a%20b"],
  redir: ["/old", "/moved", "/found", "/other", "/temporary", "/kept", "/page", "/blog/", "/blog/a/b?c=d", "/blog", "/host", "/query?a=b&c=%20d", "/query", "/UPPER/Case?x", "/old/"],
  rewrite: ["/old.html", "/query?", "/query?x=y", "/querying", "/to-query", "/to-query?c=d", "/keep?a=1", "/keep", "/prefix/page.html", "/up"],
  respond: ["/status", "/created", "/teapot", "/nothing", "/json", "/host?a=b", "/scheme", "/header", "/lines", "/braces", "/unauthorised", "/closing", "/gone", "/env", "/Status"],
  matchers: ["/absent", "/absent/1", "/both/1", "/both", "/either", "/never", "/certain", "/a", "/x.php", "/dir/x.php", "/x.PHP", "/mid/a/end", "/mid/a/b/end", "/an-inside-path", "/inside", "/exact", "/exact/", "/EXACT", "/prefix", "/prefixed/more"],
  order: ["/moved", "/api/x"],
  uri: ["/query/set?bar=1&foo=2&foo=3", "/query/set?bar=a%26b", "/query/set", "/query/add?a=1", "/query/delete?a=1&foo=2", "/query/delete?f%6Fo=2", "/query/rename?bar=1&foo=2&foo=3", "/query/rename?bar=1", "/query/replace?foo=banana&foo=x", "/query/all?a=a&b=bab", "/query/block?foo=a&gone=1&old=2", "/query/delete?z=1&a=%41", "/query/delete?a=1;foo=2&b=3", "/query/delete?a=%zz&b=3", "/merge/a//b///c?d//e", "/path/a/b?c=d", "/path/a%20b", "/path/", "/dots/a.html", "/dots/a.html.html", "/space/a%20b%20c"],
  captures: ["/old/x", "/old/a%20b", "/go/guide.txt", "/go/a%3Fb", "/items/a", "/items/a/b/c", "/items/a%20b", "/items/%C3%A9/x", "/test/x", "/both/a", "/both/ab", "/both/"],
  "request-header": ["/data.json", "/set/x", "/add/x", "/delete/x", "/prefix/x", "/suffix/x", "/middle/x", "/every/x", "/replace/x", "/uri/x?y=z", "/empty/x"],
  snippets: ["/docs/docs/guide.txt", "/alternative/a.txt", "/alternative/alternative/a.txt"],
};

/** Ways to ask, tried on a few targets of each configuration. */
const WAYS = [
  { method: "HEAD" },
  { method: "POST" },
  { method: "PUT" },
  { method: "DELETE" },
  { method: "OPTIONS" },
  { method: "BREW" },
  { fields: { "Accept-Encoding": "gzip" } },
  { fields: { "Accept-Encoding": "br" } },
  { fields: { "Accept-Encoding": "zstd" } },
  { fields: { "Accept-Encoding": "gzip, deflate, br, zstd" } },
  { fields: { "Accept-Encoding": "gzip;q=0" } },
  { fields: { "Accept-Encoding": "gzip;q=0.2, zstd;q=0.9" } },
  { fields: { "Accept-Encoding": "*" } },
  { fields: { "Accept-Encoding": "identity" } },
  { method: "HEAD", fields: { "Accept-Encoding": "gzip" } },
  { fields: { Range: "bytes=0-9" } },
  { fields: { Range: "bytes=5-" } },
  { fields: { Range: "bytes=-5" } },
  { fields: { Range: "bytes=99999999-" } },
  { fields: { Range: "bytes=0-0,4-5" } },
  { fields: { Range: "bytes=5-2" } },
  { fields: { Range: "lines=1-2" } },
  { fields: { Range: "bytes=0-9", "Accept-Encoding": "gzip" } },
  { method: "HEAD", fields: { Range: "bytes=0-9" } },
  { fields: { Range: "bytes=0-9", "If-Range": '"another"' } },
  { fields: { Range: "bytes=0-9", "If-Range": WRITTEN.toUTCString() } },
  { fields: { "If-None-Match": "*" } },
  { fields: { "If-None-Match": '"another"' } },
  { own: "If-None-Match" },
  { own: "If-Match" },
  { own: "If-Range", fields: { Range: "bytes=0-9" } },
  { fields: { "If-Match": '"another"' } },
  { fields: { "If-Match": "*" } },
  { fields: { "If-Modified-Since": WRITTEN.toUTCString() } },
  { fields: { "If-Modified-Since": "Mon, 01 Jan 1990 00:00:00 GMT" } },
  { fields: { "If-Modified-Since": "not a date" } },
  { fields: { "If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT" } },
  { fields: { "If-Unmodified-Since": WRITTEN.toUTCString() } },
  { fields: { Accept: "application/json" } },
  { fields: { Accept: "text/html,*/*;q=0.8" } },
  { fields: { "X-Test": "alpha" } },
  { fields: { "X-Test": "beta" } },
  { host: "one.example.com" },
  { host: "ONE.example.com" },
  { host: "any.two.example.com" },
  { host: "deep.any.two.example.com" },
];

/** Every request for one configuration. */
export function requestsFor(site) {
  const own = OWN_TARGETS[site] ?? [];
  const asked = [...own, "/", "/docs/guide.txt", "/assets/app.js", "/docs", "/missing", "/list/"];
  const requests = [...own, ...TARGETS].map((target) => ({ target }));
  for (const way of WAYS) {
    for (const target of asked.slice(0, Math.max(6, own.length > 8 ? 8 : own.length + 3))) requests.push({ target, ...way });
  }
  return requests;
}

/** A request as a line, for reports and for the list of differences. */
export function written({ target, method = "GET", fields = {}, host, own }) {
  const parts = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  if (own) parts.push(`${own}: (its own)`);
  if (host) parts.push(`Host: ${host}`);
  return [`${method} ${target}`, ...parts].join(" | ");
}
