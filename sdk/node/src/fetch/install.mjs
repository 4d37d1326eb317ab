// Puts the fetch objects in the place of the platform's, so that code which never heard of them works on: platform
// functions are given real objects, and `instanceof` and `constructor` hold for both kinds. Only where an
// application turns out to export a handler: one with a server of its own keeps the platform's, and so does what has
// taken them while it was loaded.

import { PlatformRequest, PlatformResponse, platformFetch } from './platform.mjs';
import { isLazyRequest, toPlatform } from './request.mjs';
import { Response, createUpgradeResponse, isFastResponse, realResponse, sendFile } from './response.mjs';

/**
 * Installs the fetch objects; a second call changes only which Response is the global one.
 * @param {{ platformResponse?: boolean }} [options] platformResponse: leave the global Response alone
 */
export function install({ platformResponse = false } = {}) {
  put('Request', RequestForAll);
  put('fetch', fetchForAll);
  put('Response', platformResponse ? PlatformResponse : Response);
  PlatformRequest.prototype.constructor = RequestForAll;
  PlatformResponse.prototype.constructor = globalThis.Response;
  for (const name of ['compileStreaming', 'instantiateStreaming']) wrapStreaming(name);
}

/** What applications find under `onehop`, from the beginning on. */
export function announce() {
  const own = /** @type {any} */ (globalThis).onehop ?? {};
  Object.assign(own, { Response, createUpgradeResponse, isFastResponse, realResponse, sendFile });
  Object.defineProperty(globalThis, 'onehop', { value: own, configurable: true, writable: true, enumerable: false });
}

/**
 * The platform's class in all respects, but that a lazy request is turned into a real one first. A proxy and no
 * subclass: name, prototype, statics, subclasses and `instanceof` are then the platform's own.
 */
const RequestForAll = new Proxy(PlatformRequest, {
  construct(platform, given, newTarget) {
    const made = Reflect.construct(platform, real(given), newTarget);
    const [input, init] = given;
    // The platform writes `post` as POST, which is not what matchers saw: methods are case-sensitive (RFC 9110 section 9.1).
    if (isLazyRequest(input) && init?.method === undefined && made.method !== input.method) {
      Object.defineProperty(made, 'method', { value: input.method, configurable: true });
    }
    return made;
  },
});

const fetchForAll = new Proxy(platformFetch, {
  async apply(platform, self, given) {
    return Reflect.apply(platform, self, real(given));
  },
});

/**
 * The arguments of Request and fetch, with a real request in the place of a lazy one.
 * @param {any[]} given
 */
function real(given) {
  const [input, init] = given;
  if (!isLazyRequest(input)) return given;
  return [toPlatform(input, init?.body === undefined || init.body === null), ...given.slice(1)];
}

/**
 * WebAssembly's functions that take a response. Bun's look into it.
 * @param {string} name
 */
function wrapStreaming(name) {
  const functions = /** @type {any} */ (globalThis.WebAssembly);
  const platform = functions?.[name];
  if (typeof platform !== 'function' || wrapped.has(platform)) return;
  functions[name] = new Proxy(platform, {
    apply(_, self, [source, ...rest]) {
      if (typeof source !== 'object') return Reflect.apply(platform, self, [source, ...rest]);
      const response = Promise.resolve(source).then((value) => (isFastResponse(value) ? realResponse(value) : value));
      return Reflect.apply(platform, self, [response, ...rest]);
    },
  });
  wrapped.add(functions[name]);
}

const wrapped = new WeakSet();

/**
 * @param {string} name
 * @param {any} value
 */
function put(name, value) {
  const before = Object.getOwnPropertyDescriptor(globalThis, name);
  const enumerable = before?.enumerable === true;
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable });
}
