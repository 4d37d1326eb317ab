// Every fenced block of README.md and docs: configurations validate, command lines parse, data and scripts parse.
//
// A block after `<!-- not run: REASON -->` is left out and listed. Links and anchors are checked by `cargo xtask tidy`.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { ONEHOP, ROOT, run, workFolder } from "./program.mjs";
import { commandLines } from "./shell-words.mjs";

/** Languages of blocks that show output, or files of other programs. */
const SHOWN_ONLY = ["text", "http", "nginx", "yaml"];
/** Folders of a real machine; examples find them below the test's folder instead. */
const ABSOLUTE = /(?<=[\s"])\/(?=(?:etc|srv|var)\/)/g;
/** Tools whose command lines follow `onehop bench`; their options are not those of onehop. */
const FOREIGN = ["wrk", "ab", "autocannon", "oha", "hey", "k6", "h2load"];

const blocks = pages().flatMap((page) => blocksOf(page, readFileSync(join(ROOT, page), "utf8")));
const wanted = (...languages) => blocks.filter((block) => languages.includes(block.language) && !block.reason);

test("every block names its language, and those that are not run say why", (context) => {
  const known = ["caddyfile", "json", "toml", "sh", "console", "js", "ini", ...SHOWN_ONLY];
  for (const block of blocks) assert.ok(known.includes(block.language), `${block.place}: language \`${block.language}\``);
  const counts = {};
  for (const { language, reason } of blocks) counts[reason ? "not run" : language] = (counts[reason ? "not run" : language] ?? 0) + 1;
  context.diagnostic(Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", "));
  for (const block of blocks.filter((block) => block.reason)) context.diagnostic(`${block.place} is not run: ${block.reason}`);
});

test("every Onehopfile is valid, without a warning", async (context) => {
  const directives = (await run(ONEHOP, ["help", "directive"])).stdout.toString().split("\n");
  const folder = workFolder(context);
  const authority = join(folder, "tls/pki/authorities/local");
  assert.equal((await run(ONEHOP, ["trust", "--print", "--data-dir", folder])).code, 0, "certificates for examples are made");
  await check(wanted("caddyfile"), async (block, number) => {
    const place = join(folder, String(number));
    const text = wholeFile(block.text, directives).replaceAll(ABSOLUTE, `${place}/`);
    makeFiles(place, text, authority);
    writeFileSync(join(place, "Onehopfile"), text);
    const environment = { ...process.env, HOME: place, XDG_DATA_HOME: place, ONEHOP_CONTROL: join(place, "control") };
    const { code, stderr } = await run(ONEHOP, ["validate"], { cwd: place, env: environment });
    return code === 0 && !stderr.includes("warning") ? "" : stderr;
  });
});

test("every command line of onehop has a command and options that exist", async (context) => {
  const lines = wanted("sh", "console", "ini").flatMap((block) =>
    commandLines(block.text, block.language).map((words) => ({ place: block.place, words })),
  );
  assert.ok(lines.length >= 60, `only ${lines.length} command lines were found`);
  context.diagnostic(`${lines.length} command lines`);
  await check(lines, async ({ words }) => {
    const { code, stdout, stderr } = await run(ONEHOP, withHelp(words));
    const isHelp = words.includes("--version") || /^Usage: /m.test(stdout.toString());
    return code === 0 && isHelp ? "" : `onehop ${words.join(" ")}\n${stderr}`;
  });
});

test("every option in a synopsis of onehop exists", async (context) => {
  const helps = new Map();
  const found = synopses();
  context.diagnostic(`${found.length} synopses`);
  await check(found, async ({ text }) => {
    const words = text.split(" ").slice(1);
    const end = words.findIndex((word) => !/^[a-z-]+$/.test(word) || word.startsWith("-"));
    const command = words.slice(0, Math.min(end < 0 ? words.length : end, words[0] === "bench" || words[0] === "certs" ? 2 : 1));
    const line = command.join(" ");
    if (!helps.has(line)) helps.set(line, (await run(ONEHOP, [...command, "--help"])).stdout.toString());
    const options = text.match(/(?<=[\s[|(])--[a-z0-9-]+/g) ?? [];
    const missing = options.filter((option) => !new RegExp(`${option}(?![a-z0-9-])`).test(helps.get(line)));
    return missing.length === 0 ? "" : `onehop ${line} has no ${missing.join(", ")}`;
  });
});

test("every measured figure of an explanation stands in a page that holds measurements", async () => {
  const sources = ["benchmarks/README.md", "ARCHITECTURE.md", "docs/frameworks.md"].map((page) => readFileSync(join(ROOT, page), "utf8"));
  const explanations = pages().filter((page) => page.startsWith("docs/explain/"));
  const figures = explanations.flatMap((page) => {
    const found = readFileSync(join(ROOT, page), "utf8").matchAll(/(\d+\.\d+)(?= (?:[µu]s|to \d))|\d+\.\d+ \(\d+\.\d+ to \d+\.\d+\)/g);
    return [...found].map(([whole, figure]) => ({ place: page, figure: figure ?? whole }));
  });
  assert.ok(figures.length >= 20, `only ${figures.length} figures were found`);
  await check(figures, ({ figure }) => (sources.some((text) => text.includes(figure)) ? "" : `${figure} was not measured`));
});

test("every block of JSON and TOML parses", async (context) => {
  for (const block of wanted("json")) assert.doesNotThrow(() => JSON.parse(block.text), block.place);
  const folder = workFolder(context);
  await check(wanted("toml"), async (block) => {
    writeFileSync(join(folder, "scenario.toml"), block.text);
    const { code, stderr } = await run(ONEHOP, ["bench", "run", folder, "--list"]);
    return code === 0 ? "" : stderr;
  });
});

test("every script has JavaScript's syntax", async (context) => {
  const file = join(workFolder(context), "block.mjs");
  await check(wanted("js"), async (block) => {
    writeFileSync(file, block.text);
    const { code, stderr } = await run(process.execPath, ["--check", file]);
    return code === 0 ? "" : stderr;
  });
});

/** Fails with all that `fault` says of items, each with its place. */
async function check(items, fault) {
  const faults = [];
  for (const [number, item] of items.entries()) {
    const text = await fault(item, number);
    if (text) faults.push(`${item.place}: ${text}`);
  }
  assert.equal(faults.join("\n"), "");
}

/** The pages, relative to the checkout. */
function pages() {
  const found = readdirSync(join(ROOT, "docs"), { recursive: true }).filter((name) => name.endsWith(".md"));
  return ["README.md", ...found.map((name) => join("docs", name)).sort()];
}

/** The fenced blocks of a page, which may be indented in a list. */
function blocksOf(page, text) {
  const found = [];
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const [, indent, language] = /^( *)```(\S*)$/.exec(lines[index]) ?? [];
    if (indent === undefined) continue;
    const before = lines.slice(0, index).findLast((line) => line.trim() !== "");
    const reason = /^\s*<!-- not run: (.+) -->$/.exec(before ?? "")?.[1];
    const begin = index + 1;
    index = lines.findIndex((line, at) => at >= begin && line === `${indent}\`\`\``);
    assert.ok(index >= begin, `${page}:${begin}: the block has no end`);
    const inside = lines.slice(begin, index).map((line) => line.slice(indent.length));
    found.push({ place: `${page}:${begin}`, language, reason, text: `${inside.join("\n")}\n` });
  }
  return found;
}

/** Texts in backquotes that begin with `onehop` and show options, such as the first line of a chapter about a command. */
function synopses() {
  return pages().flatMap((page) => {
    const prose = readFileSync(join(ROOT, page), "utf8").replaceAll(/^ *```[^]*?^ *```$/gm, "");
    const texts = [...prose.matchAll(/`(onehop [^`]*--[^`]*)`/g)].map(([, text]) => text.replaceAll(/\s+/g, " "));
    return texts.filter((text) => !FOREIGN.includes(text.split(" ")[2])).map((text) => ({ place: page, text }));
  });
}

/** An Onehopfile: directives alone are put into a site. */
function wholeFile(text, directives) {
  const first = /^[^\s#]\S*/m.exec(text)?.[0] ?? "";
  return directives.includes(first) || first.startsWith("@") ? `:8080 {\n${text}}\n` : text;
}

/** Makes the files and folders that a configuration names. */
function makeFiles(folder, text, authority) {
  const inFolder = (name) => (name.startsWith(folder) ? name : join(folder, name));
  mkdirSync(folder, { recursive: true });
  const words = text.split("\n").map((line) => line.trim().split(/\s+/));
  for (const [directive, ...rest] of words) {
    const paths = rest.filter((word) => /^[\w./-]+$/.test(word) && !/^\d+$/.test(word));
    const folders = paths.filter((path) => ["root", "files", "cwd"].includes(directive) || /\bdist$/.test(path));
    for (const path of folders) {
      mkdirSync(inFolder(path), { recursive: true });
      writeFileSync(join(inFolder(path), "index.html"), "<!doctype html>");
    }
    for (const path of paths.filter((path) => /\.(?:[cm]?js|ts|env|pem|key|crt)$|\/\w*\.env$|^\.env$|^(?:\.\/)?bin\//.test(path))) {
      const file = inFolder(path);
      mkdirSync(dirname(file), { recursive: true });
      const sample = sampleFor(path);
      if (sample) copyFileSync(join(authority, sample), file);
      else writeFileSync(file, "", { mode: 0o755 });
    }
  }
}

/** The authority's file for a path that names a certificate or a key. */
function sampleFor(path) {
  if (/\.key$|key\.pem$/.test(path)) return "intermediate.key";
  return /\.(?:pem|crt)$/.test(path) ? "intermediate.crt" : undefined;
}

/** A command line that only parses: `--help` after its options, before what belongs to another program. */
function withHelp(words) {
  const foreign = words[0] === "bench" && FOREIGN.includes(words[1]) ? 2 : words.length;
  const end = words.includes("--") ? Math.min(words.indexOf("--"), foreign) : foreign;
  return [...words.slice(0, end), "--help"];
}
