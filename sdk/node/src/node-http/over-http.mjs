/**
 * The other way to an application's own server: HTTP/1.1 on a Unix socket that onehop has named, with the
 * runtime's own parser. For runtimes whose server cannot be driven with frames, and where the Onehopfile says so.
 */
import diagnostics from 'node:diagnostics_channel';
import { openDoor } from './door.mjs';

/**
 * @param {import('./adopt.mjs').Adoption} adoption
 * @param {import('../runtime.mjs').Runtime} runtime told what is in flight
 * @param {string|null} path
 * @param {string} reason
 */
export async function serveOverHttp(adoption, runtime, path, reason) {
  if (path === null) throw new Error(`requests must come as HTTP (${reason}), and onehop has named no socket for it`);
  process.stderr.write(`onehop: requests come as HTTP over a Unix socket: ${reason}\n`);
  const { server, place } = adoption;
  diagnostics.subscribe('http.server.request.start', ({ server: of, response }) => {
    if (of === server) count(runtime, response);
  });
  const door = openDoor(server, path, place);
  if (door.listening) return;
  await new Promise((resolve, reject) => {
    door.once('listening', resolve);
    door.once('error', reject);
  });
}

function count(runtime, response) {
  runtime.inFlight += 1;
  runtime.begun += 1;
  if (!runtime.lag.watching) runtime.lag.watch(runtime);
  response.once('close', () => runtime.ended());
}
