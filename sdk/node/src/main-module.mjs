/** Which modules Node's command line names, as Node finds them. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

/**
 * Waits for what else the command line loads before the main module: Node 20 loads it all at the same time. Node tells
 * the errors of these modules itself.
 */
export async function awaitOtherPreloads() {
  const words = [...(process.env.NODE_OPTIONS ?? '').split(/\s+/), ...process.execArgv];
  for (const [at, word] of words.entries()) {
    let name = words[at - 1] === '--import' ? word : '';
    if (word.startsWith('--import=')) name = word.slice('--import='.length);
    if (name !== '') await importFromHere(name).catch(() => {});
  }
}

/** `import` as the command line means it: relative to the working directory. */
async function importFromHere(name) {
  if (/^(?:file|data):/.test(name)) return import(name);
  if (/^\.{0,2}\//.test(name)) return import(new URL(name, pathToFileURL(`${process.cwd()}/`)).href);
  // A package: Node may find another file of it for `import` than `require` does. Before Node 20.12 nobody can tell.
  const way = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (way === undefined) return null;
  const { emitWarning } = process;
  process.emitWarning = (text, ...rest) => {
    if (!String(text).includes('USE_MAIN_CONTEXT')) Reflect.apply(emitWarning, process, [text, ...rest]);
  };
  try {
    const filename = path.join(process.cwd(), '[preload]');
    const script = new vm.Script('(name) => import(name)', { filename, importModuleDynamically: way });
    return await script.runInThisContext()(name);
  } finally {
    process.emitWarning = emitWarning;
  }
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
