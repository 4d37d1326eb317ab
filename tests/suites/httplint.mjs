// Has httplint read answers of the quickstart; its notes of level "bad" fail.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT, startOnehop } from "../e2e/program.mjs";

const PATHS = ["/", "/items/42", "/robots.txt", "/favicon.svg", "/assets/gone-00000000.js"];
const endings = [];
const folder = mkdtempSync(join(tmpdir(), "onehop-lint-"));
const server = await startOnehop(
  { after: (ending) => endings.push(ending) },
  { folder, text: `{\n\tadmin off\n}\nhttp://localhost:0 {\n\tspa ${join(ROOT, "examples/quickstart/dist")}\n}\n` },
);

/** The bytes of one answer, as they came. */
async function answerTo(path, fields = "") {
  const socket = connect(server.port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n${fields}Connection: close\r\n\r\n`);
  const parts = [];
  socket.on("data", (bytes) => parts.push(bytes));
  await once(socket, "close");
  return Buffer.concat(parts);
}

let bad = 0;
for (const path of PATHS) {
  for (const fields of ["", "Accept-Encoding: br\r\n"]) {
    const lint = spawn(process.env.HTTPLINT, ["-n"], { stdio: ["pipe", "pipe", "inherit"] });
    let notes = "";
    lint.stdout.on("data", (text) => (notes += text));
    lint.stdin.end(await answerTo(path, fields));
    await once(lint, "close");
    const lines = notes.split("\n").filter((line) => /\[(BAD|WARN)\]/.test(line));
    console.log(`${path} ${fields.trim() || "(no fields)"}: ${notes.split("[GOOD]").length - 1} good${lines.map((line) => `\n  ${line}`).join("")}`);
    if (lines.some((line) => line.includes("[BAD]"))) bad += 1;
  }
}
for (const ending of endings) ending();
rmSync(folder, { recursive: true, force: true });
process.exitCode = bad > 0 ? 1 : 0;
