/** Where a syntax error stands: Node tells it on standard error only, and keeps it from whoever catches the error. */
import { spawnSync } from 'node:child_process';
import { describe } from './report.mjs';

/** How long Node may take to look at one file. */
const CHECK_MILLISECONDS = 5_000;

/**
 * @param {SyntaxError} error @param {string} file
 * @returns {string|null} null where it is in a file that `file` imports: standard error alone will have the place
 */
export function placed(error, file) {
  if (process.versions.bun) return describe(error);
  if (error.stack?.includes(file)) return messageFirst(error, describe(error));
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MILLISECONDS });
  return stderr ? messageFirst(error, stderr.trim()) : null;
}

/** Node begins with the place. The first line is all that some views have room for. */
function messageFirst(error, text) {
  const message = `${error.name}: ${error.message}`;
  return text.startsWith(message) ? text : `${message} (${text.split('\n', 1)[0]})\n${text}`;
}
