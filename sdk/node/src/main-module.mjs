/** Which modules Node's command line names, as Node finds them. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * What else the command line has loaded before the main module. Packages are left out: Node may find other files of
 * theirs for `import` than `require` does, and nothing is to be loaded twice.
 * @returns {string[]}
 */
export function otherPreloads() {
  const words = process.execArgv;
  const base = pathToFileURL(`${process.cwd()}/`);
  return words.flatMap((word, at) => {
    let name = words[at - 1] === '--import' ? word : '';
    if (word.startsWith('--import=')) name = word.slice('--import='.length);
    if (/^(?:file|data):/.test(name)) return [name];
    return /^\.{0,2}\//.test(name) ? [new URL(name, base).href] : [];
  });
}

/**
 * The main module's URL, its file found as Node does: by links, without an extension, as a folder.
 * @param {string} name
 */
export function mainModule(name) {
  let file = name;
  try {
    file = createRequire(path.join(process.cwd(), 'main')).resolve(path.resolve(name));
  } catch {
    // Node is about to say so.
  }
  return pathToFileURL(file).href;
}
