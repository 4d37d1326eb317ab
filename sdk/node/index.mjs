/**
 * What an application imports: `import { Response, upgradeWebSocket, sendFile } from 'onehop'`. In a worker of onehop
 * these are the worker's own, whatever version of this package is installed; anywhere else Response is the
 * platform's, and what needs the server says that there is none.
 */

const worker = globalThis.onehop;

/** The worker's Response, which costs a fraction of the platform's; the platform's outside of a worker. */
export const Response = worker?.Response ?? globalThis.Response;

/** Answers a request for a WebSocket with a socket and the response to return. */
export const upgradeWebSocket = worker?.upgradeWebSocket ?? missing('upgradeWebSocket');

/** An answer whose body is a file that the server opens and sends itself. */
export const sendFile = worker?.sendFile ?? missing('sendFile');

/** The worker library's version, or null outside of a worker. */
export const version = worker?.version ?? null;

function missing(name) {
  return () => {
    throw new Error(
      `${name} works in a worker of onehop only, and this process is none. Start the application with `
        + '`onehop app FILE`, or name it in an Onehopfile: app /api/* FILE',
    );
  };
}
