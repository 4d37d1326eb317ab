/** What tests of applications with a server of their own have in common. */
import http from 'node:http';
import { wire } from './peer.mjs';

/** Whether the runtime under test is Bun, whose servers are reached in another way. */
export const ON_BUN = (process.env.ONEHOP_TEST_RUNTIME ?? '').includes('bun');

/** A real request of HTTP/1.1, to a port or a Unix socket. @returns {Promise<{status: number, body: string}>} */
export function get(options) {
  return new Promise((resolve, reject) => {
    const request = http.get({ agent: false, host: '127.0.0.1', ...options }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => { body += text; });
      response.on('end', () => resolve({ status: response.statusCode, body }));
    });
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('no answer')));
  });
}

/** A port that nobody has at this moment. */
export async function freePort() {
  const server = http.createServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

/** Waits until what the worker has written to a stream matches. */
export async function written(peer, stream, expected) {
  const deadline = Date.now() + 15_000;
  while (!expected.test(peer[stream])) {
    if (Date.now() > deadline) throw new Error(`${expected} did not come; there is:\n${peer[stream]}`);
    const more = new Promise((resolve) => { peer.child[stream].once('data', resolve); });
    const ended = peer.exit.then(() => expected.test(peer[stream]));
    if (await Promise.race([more, ended]) === false) throw new Error(`the worker ended before ${expected} came`);
  }
}

/** Says HELLO and waits for FAILED and the end. @returns {Promise<string>} */
export async function failure(peer) {
  peer.hello();
  const { payload } = await peer.control.takeKind(wire.FAILED);
  await peer.exit;
  return payload.toString();
}
