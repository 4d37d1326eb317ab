// Ranges, conditions and codings asked for with curl, against `file_server` with `encode` and `spa`.
// Each row says what is asked and what must come back.
// Needs: curl.

import assert from "node:assert/strict";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { run, startOnehop, workFolder } from "./program.mjs";

const WRITTEN = "Fri, 02 Jan 2026 03:04:05 GMT";
const EARLIER = "Thu, 01 Jan 2026 00:00:00 GMT";
const LATER = "Sat, 03 Jan 2026 00:00:00 GMT";
const DIGITS = "0123456789".repeat(100);
const TEXT = "The quick brown fox jumps over the lazy dog. ".repeat(100);

const endings = [];
const suite = { after: (ending) => endings.push(ending) };
let origin;
let folder;

before(async () => {
  folder = workFolder(suite);
  const root = join(folder, "root");
  mkdirSync(root);
  for (const [name, content] of [["digits.bin", DIGITS], ["text.txt", TEXT], ["empty.txt", ""], ["index.html", "<title>x</title>"]]) {
    writeFileSync(join(root, name), content);
    utimesSync(join(root, name), new Date(WRITTEN), new Date(WRITTEN));
  }
  const server = await startOnehop(suite, {
    folder,
    text: `{\n\tadmin off\n}\nhttp://localhost:0 {\n\troot * ${root}\n\tencode br gzip zstd\n\tfile_server\n}\n`,
  });
  origin = server.origin;
  // Compression goes on behind the first answers.
  for (const coding of ["br", "gzip", "zstd"]) {
    while ((await curl("/text.txt", "-H", `Accept-Encoding: ${coding}`)).field("content-encoding") !== coding);
  }
});
after(async () => {
  for (const ending of endings) await ending();
});

/** Asks with curl; gives status, fields and content as they came. */
async function curl(path, ...options) {
  const { code, stdout, stderr } = await run("curl", ["--silent", "--show-error", "--include", "--max-time", "10", ...options, origin + path]);
  assert.equal(code, 0, `curl: ${stderr}`);
  const end = stdout.indexOf("\r\n\r\n");
  const [statusLine, ...lines] = stdout.subarray(0, end).toString("latin1").split("\r\n");
  const fields = new Map(lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  return { status: Number(statusLine.split(" ")[1]), fields, field: (name) => fields.get(name), body: stdout.subarray(end + 4) };
}

/** Each row: what is asked for, then status, and the fields and content that must come. */
async function check(path, rows) {
  const etag = (await curl(path)).field("etag");
  assert.match(etag, /^"[^"]+"$/, "no strong ETag");
  for (const [fields, status, expected = {}] of rows) {
    const options = Object.entries(fields).flatMap(([name, value]) => ["-H", `${name}: ${value.replace("ETAG", etag)}`]);
    const answer = await curl(path, ...options);
    const row = `${path} ${JSON.stringify(fields)}`;
    assert.equal(answer.status, status, row);
    for (const [name, value] of Object.entries(expected)) {
      if (name === "body") assert.equal(answer.body.toString("latin1"), value, row);
      else assert.equal(answer.field(name), value ?? undefined, `${row}: ${name}`);
    }
    if (status === 304) assert.equal(answer.body.length, 0, row);
  }
}

test("single ranges", () =>
  check("/digits.bin", [
    [{ Range: "bytes=0-9" }, 206, { "content-range": "bytes 0-9/1000", "content-length": "10", body: "0123456789" }],
    [{ Range: "bytes=995-" }, 206, { "content-range": "bytes 995-999/1000", body: "56789" }],
    [{ Range: "bytes=-3" }, 206, { "content-range": "bytes 997-999/1000", body: "789" }],
    [{ Range: "bytes=990-5000" }, 206, { "content-range": "bytes 990-999/1000", "content-length": "10" }],
    [{ Range: "bytes=-5000" }, 206, { "content-range": "bytes 0-999/1000" }],
    [{ Range: "bytes=0-0" }, 206, { "content-range": "bytes 0-0/1000", body: "0" }],
    [{ Range: "bytes=1000-" }, 416, { "content-range": "bytes */1000" }],
    [{ Range: "bytes=-0" }, 416, { "content-range": "bytes */1000" }],
    [{ Range: "seconds=1-2" }, 200, { "content-length": "1000", "accept-ranges": "bytes" }],
  ]));

test("several ranges come as parts, each with its place", async () => {
  const answer = await curl("/digits.bin", "-H", "Range: bytes=0-1,10-12,-1");
  assert.equal(answer.status, 206);
  const boundary = /^multipart\/byteranges; boundary="?([^"]+)"?$/.exec(answer.field("content-type"))?.[1];
  assert.ok(boundary, answer.field("content-type"));
  const parts = answer.body.toString("latin1").split(`--${boundary}`);
  assert.equal(parts.at(-1).trim(), "--");
  const found = parts.slice(1, -1).map((part) => {
    const [head, body] = part.split("\r\n\r\n");
    return [/content-range: (.*)/i.exec(head)[1].trim(), body.replace(/\r\n$/, "")];
  });
  assert.deepEqual(found, [["bytes 0-1/1000", "01"], ["bytes 10-12/1000", "012"], ["bytes 999-999/1000", "9"]]);
  assert.equal(Number(answer.field("content-length")), answer.body.length);
});

test("too many ranges are answered with the whole or refused, never multiplied", async () => {
  const many = Array.from({ length: 500 }, (_, index) => `${index}-`).join(",");
  const answer = await curl("/digits.bin", "-H", `Range: bytes=${many}`);
  assert.ok([200, 416].includes(answer.status), String(answer.status));
  assert.ok(answer.body.length <= 1000);
});

test("conditions by version", () =>
  check("/digits.bin", [
    [{ "If-None-Match": "ETAG" }, 304, { "content-length": null }],
    [{ "If-None-Match": "W/ETAG" }, 304],
    [{ "If-None-Match": '"a", ETAG, "b"' }, 304],
    [{ "If-None-Match": "*" }, 304],
    [{ "If-None-Match": '"another"' }, 200, { "content-length": "1000" }],
    [{ "If-Match": "ETAG" }, 200],
    [{ "If-Match": "*" }, 200],
    [{ "If-Match": "W/ETAG" }, 412],
    [{ "If-Match": '"another"' }, 412],
  ]));

test("conditions by date, and versions before dates", () =>
  check("/digits.bin", [
    [{ "If-Modified-Since": WRITTEN }, 304],
    [{ "If-Modified-Since": LATER }, 304],
    [{ "If-Modified-Since": EARLIER }, 200],
    [{ "If-Modified-Since": "yesterday" }, 200],
    [{ "If-Unmodified-Since": WRITTEN }, 200],
    [{ "If-Unmodified-Since": EARLIER }, 412],
    [{ "If-None-Match": '"another"', "If-Modified-Since": LATER }, 200],
    [{ "If-None-Match": "ETAG", "If-Modified-Since": EARLIER }, 304],
    [{ "If-Match": "ETAG", "If-Unmodified-Since": EARLIER }, 200],
  ]));

test("If-Range sends the part of what is unchanged and the whole of what is not", () =>
  check("/digits.bin", [
    [{ Range: "bytes=0-1", "If-Range": "ETAG" }, 206, { body: "01" }],
    [{ Range: "bytes=0-1", "If-Range": '"another"' }, 200, { "content-length": "1000" }],
    [{ Range: "bytes=0-1", "If-Range": "W/ETAG" }, 200],
    [{ Range: "bytes=0-1", "If-Range": EARLIER }, 200],
    [{ Range: "bytes=5000-", "If-Range": '"another"' }, 200],
    [{ Range: "bytes=0-1", "If-None-Match": "ETAG" }, 304],
  ]));

test("HEAD tells what GET would, without content", async () => {
  for (const options of [[], ["-H", "Accept-Encoding: gzip"]]) {
    const got = await curl("/text.txt", ...options);
    const told = await curl("/text.txt", "--head", ...options);
    assert.equal(told.status, 200);
    assert.equal(told.body.length, 0);
    for (const name of ["content-length", "content-type", "etag", "last-modified", "content-encoding", "vary", "accept-ranges"]) {
      assert.equal(told.field(name), got.field(name), name);
    }
  }
});

test("codings by weight, each with its own version", () =>
  check("/text.txt", [
    [{}, 200, { "content-encoding": null, vary: "Accept-Encoding", body: TEXT }],
    [{ "Accept-Encoding": "br;q=0, gzip;q=0, zstd;q=0" }, 200, { "content-encoding": null }],
    [{ "Accept-Encoding": "gzip;q=0.1, br;q=0.2, zstd;q=0.9" }, 200, { "content-encoding": "zstd" }],
    [{ "Accept-Encoding": "gzip, br;q=0" }, 200, { "content-encoding": "gzip" }],
    [{ "Accept-Encoding": "deflate" }, 200, { "content-encoding": null }],
    [{ "Accept-Encoding": "*;q=0, identity" }, 200, { "content-encoding": null }],
    // The identity's version does not stand for an encoded one.
    [{ "Accept-Encoding": "br", "If-None-Match": "ETAG" }, 200, { "content-encoding": "br" }],
    [{ "If-None-Match": "ETAG" }, 304, { vary: "Accept-Encoding" }],
  ]));

test("curl undoes every coding that it is sent", async () => {
  for (const coding of ["gzip", "br", "zstd"]) {
    const { code, stdout } = await run("curl", ["--silent", "--compressed", "-H", `Accept-Encoding: ${coding}`, `${origin}/text.txt`]);
    // A curl without a decoder for it says so with 61.
    if (code !== 61) assert.equal(stdout.toString(), TEXT, coding);
  }
});

test("an empty file is whole", () =>
  check("/empty.txt", [
    [{}, 200, { "content-length": "0", body: "" }],
    [{ "Accept-Encoding": "gzip" }, 200, { "content-encoding": null }],
  ]));
