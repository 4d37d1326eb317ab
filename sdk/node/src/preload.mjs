/**
 * The worker's entry under Node: `node --import preload.mjs APP_FILE [ARGS…]`, started by onehop with connected sockets
 * among its descriptors. The application stays the main module of its process. This module makes ready what must
 * be there before it; the rest is `start.mjs`'s. In worker threads, which inherit preloads, it does nothing.
 */
import { isMainThread } from 'node:worker_threads';

if (isMainThread && process.env.ONEHOP_LANES !== undefined) {
  leaveArguments();
  const { startUnderNode } = await import('./start.mjs');
  await startUnderNode();
}

/** What `fork` passes on to a child is not to bring it this preload. */
function leaveArguments() {
  const at = process.execArgv.indexOf(import.meta.url);
  if (at > 0 && process.execArgv[at - 1] === '--import') process.execArgv.splice(at - 1, 2);
}
