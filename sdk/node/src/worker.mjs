/**
 * The worker's entry under Bun: `bun worker.mjs APP_FILE [ARGS…]`, started by onehop with connected sockets among its
 * descriptors. Bun itself listens for a main module that exports a handler, so that the application is imported
 * here. (It works under Node too, but for `require.main` and `import.meta.main`.)
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { start } from './start.mjs';

const file = takeAppFile();
const worker = await start(file);
worker.begins();
worker.follow(import(pathToFileURL(file).href), true);

/** What the application sees of the command line is what it would see without onehop. */
function takeAppFile() {
  const name = process.argv[2];
  if (name === undefined) {
    process.stderr.write('worker.mjs APP_FILE [ARGS…]: which application?\n');
    process.exit(2);
  }
  const absolute = path.resolve(name);
  process.argv.splice(1, 2, absolute);
  return absolute;
}
