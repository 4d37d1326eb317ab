// The platform's own fetch classes as they were before `install`, and what can be known about their insides.
// Everything here is found by trying it once at load, so that a platform that changed is served by the slow,
// documented way instead of a wrong fast one.

export const PlatformRequest = globalThis.Request;
export const PlatformResponse = globalThis.Response;
export const PlatformHeaders = globalThis.Headers;
export const platformFetch = globalThis.fetch;

/** A request and a response whose body was read: their methods fail as the platform's do. */
export const usedRequest = new PlatformRequest('http://used.invalid/', { method: 'POST', body: 'x' });
export const usedResponse = new PlatformResponse('x');
usedRequest.text().catch(() => {});
usedResponse.text().catch(() => {});

/** Headers that nobody may change: their methods fail as the platform's do. */
export const immutableHeaders = PlatformResponse.error().headers;

/** Headers without a field: for what checks its arguments and finds nothing. */
export const emptyHeaders = new PlatformHeaders();

/**
 * Gives `own` the members that only the platform's prototype has (a later platform has more), by asking an object of
 * the platform.
 * @param {any} own
 * @param {any} platform
 * @param {(self: any, isMethod: boolean) => any} stand a platform object that stands for `self`
 */
export function borrowMembers(own, platform, stand) {
  for (const [key, theirs] of Object.entries(Object.getOwnPropertyDescriptors(platform))) {
    if (Object.hasOwn(own, key) || key === 'constructor' || (!theirs.get && typeof theirs.value !== 'function')) continue;
    const ours = theirs.get
      ? { get [key]() { return stand(this, false)[key]; } }
      : { [key](/** @type {any[]} */ ...given) { return stand(this, true)[key](...given); } };
    const descriptor = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(ours, key));
    Object.defineProperty(own, key, { ...descriptor, enumerable: theirs.enumerable });
  }
}

/**
 * Marks the members of `own` enumerable where the platform's are, so that `for in` and spread see the same.
 * @param {object} own
 * @param {object} platform
 */
export function likePlatform(own, platform) {
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(own))) {
    const theirs = Object.getOwnPropertyDescriptor(platform, key);
    if (theirs && theirs.enumerable !== descriptor.enumerable) {
      Object.defineProperty(own, key, { ...descriptor, enumerable: theirs.enumerable });
    }
  }
}

/**
 * A way to the body that a platform response was constructed with, or undefined where there is no sure one:
 * Node 20 and 22 keep a record under a symbol of every instance, Node 24 and Bun keep nothing that can be read.
 * The way answers undefined for a body that is no string or bytes, or that somebody has begun to read.
 * @type {((response: Response) => string | Uint8Array | undefined) | undefined}
 */
export const sourceOf = findSource();

function findSource() {
  const probe = new PlatformResponse('probe');
  const key = Object.getOwnPropertySymbols(probe).find((symbol) => symbol.description === 'state');
  if (key === undefined) return undefined;
  const way = (/** @type {any} */ response) => {
    const body = response[key]?.body;
    const source = body?.source;
    if (typeof source !== 'string' && !(source instanceof Uint8Array)) return undefined;
    if (!(body.stream instanceof ReadableStream) || body.stream.locked || response.bodyUsed) return undefined;
    return source;
  };
  return isSure(way) ? way : undefined;
}

/** @param {(response: any) => any} way */
function isSure(way) {
  try {
    const bytes = way(new PlatformResponse(new Uint8Array([1, 2])));
    const read = new PlatformResponse('read');
    read.body?.getReader();
    const cloned = new PlatformResponse('cloned');
    cloned.clone();
    return (
      way(new PlatformResponse('probe')) === 'probe' &&
      bytes instanceof Uint8Array && bytes.length === 2 && bytes[1] === 2 &&
      way(new PlatformResponse(null)) === undefined &&
      way(new PlatformResponse(new ReadableStream())) === undefined &&
      way(read) === undefined &&
      way(usedResponse) === undefined &&
      way(cloned) === 'cloned'
    );
  } catch {
    return false;
  }
}
