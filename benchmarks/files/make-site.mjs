// Makes the site that every server of the comparison serves: an index page of exactly 788 bytes
// and one script of exactly 100 KiB that it names, with .br and .gz beside both for the servers
// that want them ready made. The same bytes on every machine.
//
// Usage: node make-site.mjs FOLDER

import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const INDEX_BYTES = 788;
const SCRIPT_BYTES = 100 * 1024;

const folder = process.argv[2];
if (!folder) {
  console.error("usage: node make-site.mjs FOLDER");
  process.exit(2);
}

// A small generator of numbers (a linear congruence), so that the text is the same everywhere.
let state = 2463534242;
function below(bound) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * bound);
}
const pick = (list) => list[below(list.length)];

// Text with the grain of a minified bundle: it compresses to about a fifth, as those do.
const verbs = ["render", "update", "mount", "patch", "observe", "resolve", "select", "measure", "commit", "restore"];
const nouns = ["Node", "Route", "State", "Queue", "Field", "Frame", "Cache", "Event", "Layer", "Token", "Range"];
const name = () => pick("abcdefghijklmnopqrstuvwxyz") + pick("abcdefghijklmnopqrstuvwxyz0123456789");
const shapes = [
  () => `function ${name()}(${name()},${name()}){return ${name()}.${pick(verbs)}${pick(nouns)}(${name()},${below(4096)})}`,
  () => `const ${name()}${below(99)}=${name()}=>${name()}?${name()}.${pick(verbs)}(${below(99)}):void 0;`,
  () => `if(${name()}&&${name()}.${pick(nouns).toLowerCase()}!==null)throw new Error("${pick(verbs)} ${pick(nouns)} ${below(999)}");`,
  () => `for(let ${name()}=0;${name()}<${name()}.length;${name()}++)${name()}.push(${name()}["${pick(nouns)}${below(99)}"]);`,
  () => `var ${name()}={${pick(verbs)}:${below(2)?"!0":"!1"},${pick(nouns).toLowerCase()}:"${below(2 ** 31).toString(36)}"};`,
];
let script = "";
while (script.length < SCRIPT_BYTES) script += pick(shapes)();
script = script.slice(0, SCRIPT_BYTES - 4) + "\n//.";
script = script.slice(0, SCRIPT_BYTES);

const hash = createHash("sha256").update(script).digest("hex").slice(0, 8);
const scriptPath = `assets/index-${hash}.js`;

const head = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>A page of 788 bytes</title>
    <script type="module" crossorigin src="/${scriptPath}"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>`;
const tail = `</noscript>
  </body>
</html>
`;
const sentence =
  "This page is as long as the index page that a usual build makes: a few lines of head, one script, one empty element. " +
  "What a server does with it is the same work in little that it does with every answer: read a head, find the file, " +
  "write the fields that caches need, and send it. ";
const room = INDEX_BYTES - head.length - tail.length;
const index = head + sentence.repeat(4).slice(0, room) + tail;
if (index.length !== INDEX_BYTES) throw new Error(`the page has ${index.length} bytes`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, "assets"), { recursive: true });
for (const [path, text] of [["index.html", index], [scriptPath, script]]) {
  const bytes = Buffer.from(text);
  const target = join(folder, path);
  writeFileSync(target, bytes);
  writeFileSync(`${target}.gz`, gzipSync(bytes, { level: 9 }));
  writeFileSync(`${target}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}
console.log(`/${scriptPath}`);
