// What the program asks of the kernel while it answers from memory: nothing about files.
// Needs: strace.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { ROOT, startOnehop, workFolder } from "./program.mjs";

const REQUESTS = 1_000;

/** Calls that name or read a file, or ask about one. */
const ABOUT_FILES =
  /^(open|openat|openat2|creat|stat|fstat|lstat|newfstatat|statx|access|faccessat2?|readlink(at)?|getdents(64)?|pread64|preadv2?|read|readv|lseek|mmap|sendfile|splice|getcwd|chdir|fcntl|ioctl)$/;

test(`${REQUESTS} requests for a page in memory make no file system call`, async (context) => {
  const folder = workFolder(context);
  const trace = join(folder, "trace");
  const server = await startOnehop(context, {
    folder,
    text: `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tspa ${join(ROOT, "examples/quickstart/dist")}\n}\n`,
    prefix: ["strace", "-f", "-o", trace],
    threads: 1,
  });
  const connection = await Connection.open(server.port);
  const marker = "/items/the-measured-part-begins-here";
  await connection.request(marker, { fields: { Accept: "text/html" } });
  for (let index = 0; index < REQUESTS; index += 1) {
    const path = ["/", "/items/42", "/favicon.svg"][index % 3];
    const answer = await connection.request(path, { fields: { Accept: "text/html", "Accept-Encoding": index % 2 ? "br" : "identity" } });
    assert.equal(answer.status, 200);
  }
  await connection.request("/items/and-ends-here", { fields: { Accept: "text/html" } });
  connection.close();

  // strace writes a line when a call returns: wait until the last request's line is there.
  let lines = [];
  const begun = Date.now();
  while (!lines.some((line) => line.includes("/items/and-ends-here"))) {
    lines = readFileSync(trace, "utf8").split("\n");
    assert.ok(Date.now() - begun < 10_000, "the trace does not show the requests");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const first = lines.findIndex((line) => line.includes(marker.slice(0, 16)));
  const last = lines.findIndex((line) => line.includes("/items/and-ends"));
  // Only the thread that answers counts: beside it the control thread watches the folder, and threads
  // of its own compress.
  const thread = /^\d+/.exec(lines[first])[0];
  const calls = new Map();
  const about = [];
  for (const line of lines.slice(first, last).filter((line) => line.startsWith(`${thread} `))) {
    const name = /^\d+\s+(\w+)\(/.exec(line)?.[1];
    if (!name) continue;
    calls.set(name, (calls.get(name) ?? 0) + 1);
    if (ABOUT_FILES.test(name)) about.push(line);
  }
  const sum = [...calls].sort(([, one], [, other]) => other - one).map(([name, count]) => `${name} ${count}`);
  context.diagnostic(sum.join(", "));
  assert.deepEqual(about.slice(0, 5), [], `${about.length} calls about files`);
  const perRequest = [...calls.values()].reduce((one, other) => one + other, 0) / REQUESTS;
  assert.ok(perRequest < 4.5, `${perRequest} system calls per request: ${sum.join(", ")}`);
});
