/**
 * Which files this process has loaded as modules. The server keeps it over a reload until one of them changes.
 *
 * Node reports each module that it loads with `process.send` where `WATCH_REPORT_DEPENDENCIES` is set (`node --watch`
 * works that way). It is set here so that only a look-up finds it: neither `{ ...process.env }` nor a child process
 * gets it. `require.cache` completes the list: a `--require` preload may have been there before, and in Bun it holds ES
 * modules too.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const LIBRARY = path.dirname(fileURLToPath(import.meta.url)) + path.sep;
/** How often `require.cache` is looked through: that takes a tenth of a millisecond for a thousand modules. */
const SCAN_MILLISECONDS = 5_000;

export class Loaded {
  #known = new Set();
  #fresh = [];
  #scanned = -Infinity;
  #cache = createRequire(import.meta.url).cache;
  #isScheduled = false;
  /** Called, once it is set, soon after a file was loaded. @type {(() => void)|null} */
  report = null;

  /** From now on. */
  install() {
    const names = Object.getPrototypeOf(process.env);
    if (process.versions.bun || names === null || names === Object.prototype) return;
    // Not '1': an application that asks whether `node --watch` runs it compares with that.
    Object.defineProperty(names, 'WATCH_REPORT_DEPENDENCIES', { value: 'onehop', configurable: true });
  }

  /** Whether a message of `process.send` is Node's report. @param {unknown} message */
  takes(message) {
    const names = message?.['watch:import'] ?? message?.['watch:require'];
    if (!Array.isArray(names)) return false;
    names.forEach((name) => this.#add(name));
    return true;
  }

  /** The files that were not taken before. */
  take(now = performance.now()) {
    if (now - this.#scanned >= SCAN_MILLISECONDS) {
      this.#scanned = now;
      for (const name in this.#cache) this.#add(name);
    }
    return this.#fresh.splice(0);
  }

  #add(name) {
    const file = fileOf(name);
    if (file === null || file.startsWith(LIBRARY) || this.#known.has(file)) return;
    this.#known.add(file);
    this.#fresh.push(file);
    if (this.report === null || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.report();
    }).unref();
  }
}

/** The absolute path of a path or a file: URL, or null. */
function fileOf(name) {
  if (typeof name !== 'string' || name.includes('\0')) return null;
  if (path.isAbsolute(name)) return name;
  if (!name.startsWith('file:')) return null;
  try {
    return fileURLToPath(name);
  } catch {
    return null;
  }
}
