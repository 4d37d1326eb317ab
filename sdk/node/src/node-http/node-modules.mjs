/**
 * Node's own http, past what loaders put in front of it: to a tracing tool's loader hook an import from here would be the
 * application's own, and what the application requires besides would be wrapped twice.
 */

/** @type {import('node:http')} */
export const http = process.getBuiltinModule
  ? process.getBuiltinModule('node:http')
  : (await import('node:http')).default;
