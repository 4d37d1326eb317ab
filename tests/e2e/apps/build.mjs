// Builds applications from npm, once for each state of their sources and their lockfile: a build is kept below
// target/. What is built is never changed but for its caches.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ROOT } from "../program.mjs";
import { APPS } from "./sides.mjs";

const NOT_SOURCES = ["node_modules", ".next", ".nitro", ".output", ".react-router", ".svelte-kit", "build"];
const BUILDS = join(ROOT, "target/e2e-built");

/** The application of Next.js: `next start` and server.mjs run in its folder, server.js in .next/standalone. */
export function buildNext() {
  return build("next", (place, run) => {
    run(".", ["node_modules/next/dist/bin/next", "build"], { NEXT_TELEMETRY_DISABLED: "1", NEXT_OUTPUT: "standalone" });
    // As its documentation says: standalone has neither by itself.
    cpSync(join(place, "public"), join(place, ".next/standalone/public"), { recursive: true });
    cpSync(join(place, ".next/static"), join(place, ".next/standalone/.next/static"), { recursive: true });
  });
}

/** Forgets what a run of it has cached, so that the next one begins like it. */
export function forgetNext(folder) {
  for (const place of [".next/cache/images", ".next/standalone/.next/cache/images"]) {
    rmSync(join(folder, place), { recursive: true, force: true });
  }
}

/** The applications of React Router, SvelteKit and Nitro. */
export function buildOthers() {
  return build("built", (_place, run) => {
    run("react-router", ["../node_modules/@react-router/dev/bin.js", "build"]);
    run("svelte", ["../node_modules/vite/bin/vite.js", "build"]);
    run("nitro", ["../node_modules/nitropack/dist/cli/index.mjs", "build"]);
  });
}

/** The folder of a finished build of what is in a folder here. */
function build(name, make) {
  const sources = join(APPS, name);
  const files = list(sources);
  const hash = createHash("sha256").update(readFileSync(new URL(import.meta.url)));
  for (const path of files) hash.update(`${relative(sources, path)}\0`).update(readFileSync(path)).update("\0");
  const finished = join(BUILDS, name, hash.digest("hex").slice(0, 16));
  if (existsSync(finished)) return finished;
  // Those of other states are not needed again. Renamed last: what is there under its name is whole.
  rmSync(dirname(finished), { recursive: true, force: true });
  const place = `${finished}.unfinished`;
  mkdirSync(place, { recursive: true });
  for (const path of files) cpSync(path, join(place, relative(sources, path)));
  const { ONEHOP_WORKER_LIBRARY: _, NODE_OPTIONS: __, ...environment } = process.env;
  const run = (folder, words, variables = {}, program = process.execPath) => {
    const env = { ...environment, NODE_ENV: "production", ...variables };
    execFileSync(program, words, { cwd: join(place, folder), env, stdio: ["ignore", "ignore", "inherit"] });
  };
  run(".", ["ci", "--no-audit", "--no-fund", "--prefer-offline", "--include=dev", "--loglevel=error"], {}, "npm");
  make(place, run);
  renameSync(place, finished);
  return finished;
}

/** All files below a folder, in order. */
function list(folder) {
  return readdirSync(folder)
    .filter((name) => !NOT_SOURCES.includes(name))
    .sort()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? list(path) : [path]));
}
