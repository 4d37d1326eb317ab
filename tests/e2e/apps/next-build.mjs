// Builds the application of Next.js from npm, once for each state of its sources and its lockfile: the build is
// kept below target/. What is built is never changed but for its caches.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { ROOT } from "../program.mjs";
import { APPS } from "./sides.mjs";

const SOURCES = join(APPS, "next");
const NOT_SOURCES = ["node_modules", ".next"];
const BUILDS = join(ROOT, "target/e2e-next");

/** The folder of the finished build: `next start` and server.mjs run in it, server.js in .next/standalone. */
export function build() {
  const files = list(SOURCES);
  const hash = createHash("sha256");
  for (const path of files) hash.update(`${relative(SOURCES, path)}\0`).update(readFileSync(path)).update("\0");
  const finished = join(BUILDS, hash.digest("hex").slice(0, 16));
  if (existsSync(finished)) return finished;
  // Renamed last: what is there under its name is whole. Paths inside are relative.
  const place = `${finished}.unfinished`;
  rmSync(BUILDS, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  for (const path of files) cpSync(path, join(place, relative(SOURCES, path)));
  const { ONEHOP_WORKER_LIBRARY: _, NODE_OPTIONS: __, ...environment } = process.env;
  const env = { ...environment, NEXT_TELEMETRY_DISABLED: "1", NEXT_OUTPUT: "standalone", NODE_ENV: "production" };
  const run = (program, ...words) => execFileSync(program, words, { cwd: place, env, stdio: ["ignore", "pipe", "inherit"] });
  run("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--include=dev");
  run(process.execPath, "node_modules/next/dist/bin/next", "build");
  // As its documentation says: standalone has neither by itself.
  cpSync(join(place, "public"), join(place, ".next/standalone/public"), { recursive: true });
  cpSync(join(place, ".next/static"), join(place, ".next/standalone/.next/static"), { recursive: true });
  renameSync(place, finished);
  return finished;
}

/** Forgets what a run has cached, so that the next one begins like it. */
export function forget(folder) {
  for (const place of [".next/cache/images", ".next/standalone/.next/cache/images"]) {
    rmSync(join(folder, place), { recursive: true, force: true });
  }
}

/** All files below a folder, in order. */
function list(folder) {
  return readdirSync(folder)
    .filter((name) => !NOT_SOURCES.includes(name))
    .sort()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? list(path) : [path]));
}
