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
  const text = inspect(error, { colors: false, depth: 4 });
  // Bun's errors about source text say their place nowhere else.
  const place = error?.position;
  return place?.file ? `${text}\n    at ${place.file}:${place.line}:${place.column}` : text;
}
