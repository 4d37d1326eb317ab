/** Where a syntax error stands: Node tells it on standard error only, and keeps it from whoever catches the error. */
import { spawnSync } from 'node:child_process';
import { describe } from './report.mjs';

/** How long Node may take to look at one file. */
const CHECK_MILLISECONDS = 5_000;

/** @param {SyntaxError} error @param {string} file @returns {string|null} null where it is in a file that `file` imports */
export function placed(error, file) {
  if (process.versions.bun || error.stack?.includes(file)) return describe(error);
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MILLISECONDS });
  return stderr ? stderr.trim() : null;
}
