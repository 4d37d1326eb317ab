/**
 * Hono's `upgradeWebSocket` for onehop: copy this file into an application of your own. Hono brings the helper, each
 * server brings the few lines that open a socket; for onehop they are `onehop.upgradeWebSocket`.
 */
import { defineWebSocketHelper, WSContext } from 'hono/ws';

/**
 * As on other servers: `app.get('/path', upgradeWebSocket((c) => ({ onOpen, onMessage, onClose, onError })))`. A second
 * argument is handed on: `{ protocol, maxPayload }`. A request that asks for no WebSocket is told so with 426 or 400.
 */
export const upgradeWebSocket = defineWebSocketHelper((c, events, options) => {
  const { socket, response } = onehop.upgradeWebSocket(c.req.raw, options);
  if (response.status !== 101) return response;
  // What Hono's handlers expect of bytes: an ArrayBuffer, at once.
  socket.binaryType = 'arraybuffer';
  const context = new WSContext({
    raw: socket,
    url: c.req.url,
    protocol: socket.protocol,
    get readyState() {
      return socket.readyState;
    },
    send: (data) => socket.send(data),
    close: (code, reason) => socket.close(code, reason),
  });
  for (const type of ['Open', 'Message', 'Close', 'Error']) {
    socket.addEventListener(type.toLowerCase(), async (event) => {
      try {
        await events[`on${type}`]?.(event, context);
      } catch (error) {
        // Uncaught, it would end the process, and with it every other socket.
        console.error(error);
      }
    });
  }
  return response;
});
