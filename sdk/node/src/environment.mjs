/**
 * What onehop says to a worker by its environment. The variables are taken away: neither the application nor the
 * processes that it starts are to see them.
 */

/** As `launch.rs` writes it. */
const TRACE = '--trace-sigint';
/** By which the next server finds what this one has left: a child process is to have it, too. */
const KEPT = 'ONEHOP_INVOCATION_ID';

/**
 * @returns {{descriptors: number[], platformResponse: boolean, port: number|null, portIsNamed: boolean,
 * overHttp: boolean, httpSocket: string|null, files: string|null, tracesInterrupts: boolean}|null} null where this process was not started by onehop
 */
export function takeSettings() {
  const { env } = process;
  const match = /^(\d+)-(\d+)$/.exec(env.ONEHOP_LANES ?? '');
  if (match === null || Number(match[2]) <= Number(match[1])) return null;
  const [first, last] = [Number(match[1]), Number(match[2])];
  const named = portNumber(env.ONEHOP_PORT);
  const settings = {
    descriptors: Array.from({ length: last - first + 1 }, (_, index) => first + index),
    platformResponse: env.ONEHOP_PLATFORM_RESPONSE === '1',
    /** The port of the application's own server, where somebody says it. */
    port: named ?? portNumber(env.PORT),
    /** Whether the Onehopfile says it: then no other server is meant. */
    portIsNamed: named !== null,
    overHttp: env.ONEHOP_PROTOCOL === 'http',
    httpSocket: env.ONEHOP_HTTP_SOCKET ?? null,
    /** The folder whose files the server may send for the application. */
    files: env.ONEHOP_FILES ?? null,
    tracesInterrupts: false,
  };
  for (const name of Object.keys(env)) {
    if (name.startsWith('ONEHOP_') && name !== KEPT) delete env[name];
  }
  // Nor an option that is onehop's, and that children would inherit.
  const trace = process.execArgv.indexOf(TRACE);
  if (trace >= 0) process.execArgv.splice(trace, 1);
  settings.tracesInterrupts = trace >= 0;
  return settings;
}

function portNumber(text) {
  const number = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0;
  return number > 0 && number <= 65_535 ? number : null;
}
