/**
 * What this library has to say to people goes to standard error, which the server makes log lines of.
 */
import { inspect } from 'node:util';

/** @param {string} about what the error belongs to @param {unknown} error */
export function report(about, error) {
  process.stderr.write(`${about}: ${describe(error)}\n`);
}

/** An error with its stack and its causes. @param {unknown} error */
export function describe(error) {
  return inspect(error, { colors: false, depth: 4 });
}
