/**
 * Calls code of the application from a root async context: what one request puts into an AsyncLocalStorage must
 * never be seen by another that arrived in the same read.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

const OPTIONS = { requireManualDestroy: true };
const root = new AsyncResource('ONEHOP', OPTIONS);

/**
 * Where contexts are frames (Node 24, Bun), leaving the root's scope puts back what was there. Where they hang on
 * resources (Node 20 and 22), `enterWith` writes into the running resource, so that each call needs its own.
 */
const rootStaysClean = (() => {
  const probe = new AsyncLocalStorage();
  const resource = new AsyncResource('ONEHOP_PROBE', OPTIONS);
  resource.runInAsyncScope(() => probe.enterWith(true));
  const seen = resource.runInAsyncScope(() => probe.getStore());
  probe.disable();
  return seen === undefined;
})();

/**
 * `call.call(self, a, b, c)` in a context of its own.
 * @type {(call: Function, self: any, a?: any, b?: any, c?: any) => any}
 */
export const isolated = rootStaysClean
  ? (call, self, a, b, c) => root.runInAsyncScope(call, self, a, b, c)
  : (call, self, a, b, c) => new AsyncResource('ONEHOP_REQUEST', OPTIONS).runInAsyncScope(call, self, a, b, c);

/**
 * The same, in the context that `holder` had when it was first given here: what one call puts there, the next finds.
 * @type {(holder: {asyncResource: AsyncResource|null}, call: Function, self: any, a?: any, b?: any, c?: any) => any}
 */
export const isolatedWith = rootStaysClean
  ? (_, call, self, a, b, c) => root.runInAsyncScope(call, self, a, b, c)
  : (holder, call, self, a, b, c) => {
    holder.asyncResource ??= new AsyncResource('ONEHOP_REQUEST', OPTIONS);
    return holder.asyncResource.runInAsyncScope(call, self, a, b, c);
  };

/**
 * The context of now, for what is called later: `here()(call, a)` is `call(a)` in it. What Node has for this
 * (`AsyncResource.bind`, `AsyncLocalStorage.snapshot`) costs ten times as much in Node 20.
 * @returns {(call: Function, a?: any) => any}
 */
export function here() {
  const resource = new AsyncResource('ONEHOP_HERE', OPTIONS);
  return (call, a) => resource.runInAsyncScope(call, undefined, a);
}

/** Runs `call` in the root context itself; only for code of this library that goes on to call `isolated`. */
export function fromRoot(call, self) {
  return root.runInAsyncScope(call, self);
}
