// Cases about requests: addresses, attributes, and what the platform makes of them.

const PATHS = [
  '/', '/a', '/a/b/c', '/a/', '//', '//a//b', '/a.b', '/.a', '/..a', '/a..', '/.', '/..', '/./a', '/a/./b', '/a/../b',
  '/a/..', '/a/.', '/%2e/a', '/a/%2E%2e/b', '/a/.%2e', '/%2f', '/%41', '/%', '/%zz', '/a%20b', '/a+b', '/a b', '/a;b=c',
  '/a,b', "/it's", '/(x)', '/[x]', '/{x}', '/<x>', '/"x"', '/`x`', '/|x|', '/a\\b', '/~x', '/!$&*', '/:a', '/@a', '/a:b',
  '/a=b', '/a^b', '/a\tb', '/\x7f', '/_', '/-', '/a//../b', '/...', '/a/.../b', '/C:/x', '/C|/x',
];

const QUERIES = [
  '/?', '/?a', '/?a=b', '/?a=b&c=d', '/?a=b?c', '/??', '/?a/../b', '/?.', '/?%2e', '/?%', "/?it's", '/?a b', '/?a+b',
  '/?"x"', '/?<x>', '/?{x}', '/?[x]', '/?|x', '/?`x`', '/?a\\b', '/?a^b', '/?~', '/?a=%C3%A9', '/?:@', '/?a;b', '/a?b#c',
  '/#', '/a#b', '/?/.', '/x?y=/./z',
];

const AUTHORITIES = [
  'example.com', 'EXAMPLE.com', 'example.com:80', 'example.com:443', 'example.com:8080', 'example.com:', 'example.com.',
  '127.0.0.1', '127.1', '0x7f.1', '127.0.0.1:3000', '[::1]', '[::1]:8080', '[0:0::1]', 'localhost', 'localhost:5173',
  'a_b.example', 'xn--mnchen-3ya.example', 'a-b.example', '1.2.3.4.5.example', '%65xample.com', 'example.com:0', 'example.com:00080',
];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND', 'REPORT', 'x-own', 'patch'];

const ATTRIBUTES = [
  'method', 'destination', 'referrer', 'referrerPolicy', 'mode', 'credentials', 'cache', 'redirect', 'integrity', 'keepalive',
  'isReloadNavigation', 'isHistoryNavigation', 'duplex', 'bodyUsed', 'body', 'attribute', 'nonsense', 'priority', 'url',
];

const post = { method: 'POST', body: 'hello', fields: [['Content-Type', 'text/plain'], ['X-One', '1']] };

export const cases = [
  ...PATHS.map((target) => [`url of path ${escape(target)}`, (w) => w.request({ target }).url]),
  ...QUERIES.map((target) => [`url of query ${target}`, (w) => w.request({ target }).url]),
  ...AUTHORITIES.map((authority) => [`url of ${authority}`, (w) => w.request({ authority, target: '/x' }).url]),
  ...AUTHORITIES.map((authority) => [`url of ${authority} with TLS`, (w) => w.request({ authority, tls: 'TLSv1.3' }).url]),
  ...METHODS.map((method) => [`method ${method}`, (w) => w.request({ method }).method]),
  ...ATTRIBUTES.map((key) => [`request.${key}`, (w) => w.request({})[key]]),
  ...ATTRIBUTES.map((key) => [`request.${key} with a body`, (w) => w.shape(w.request(post)[key])]),
  ...ATTRIBUTES.map((key) => [`setting request.${key}`, (w) => {
    'use strict';
    const request = w.request({});
    request[key] = 'x';
    return w.shape(request[key]);
  }]),
  ...ATTRIBUTES.filter((key) => key !== 'attribute' && key !== 'nonsense' && key !== 'priority').map((key) => [
    `request.${key} again`, (w) => {
      const request = w.request(post);
      return request[key] === request[key];
    },
  ]),
  ...evaluated([
    (w) => w.request({}) instanceof Request,
    (w) => w.request({}) instanceof Response,
    (w) => w.request({}).constructor === Request,
    (w) => w.request({}).constructor.name,
    (w) => Request.name,
    (w) => Request.length,
    (w) => typeof Request,
    (w) => Object.getOwnPropertyNames(Request).sort(),
    (w) => Object.getPrototypeOf(Request) === Function.prototype,
    (w) => Request.prototype.constructor === Request,
    (w) => Object.getOwnPropertyDescriptor(globalThis, 'Request').enumerable,
    (w) => Object.getOwnPropertyDescriptor(globalThis, 'Request').writable,
    (w) => Object.getOwnPropertyDescriptor(globalThis, 'fetch').enumerable,
    (w) => fetch.name,
    (w) => fetch.length,
    (w) => Request(),
    (w) => new Request(),
    (w) => new Request('not a url'),
    (w) => new Request('http://example.com/', { method: 'TRACE' }),
    (w) => new Request('http://user@example.com/'),
    (w) => new Request('http://example.com/', { body: 'x' }),
    (w) => new Request('http://example.com/a b').url,
    (w) => new Request('http://example.com/') instanceof Request,
    (w) => `${w.request({})}`,
    (w) => Object.prototype.toString.call(w.request({})),
    (w) => w.request({})[Symbol.toStringTag],
    (w) => JSON.stringify(w.request(post)),
    (w) => Object.keys(w.request({})),
    (w) => Object.getOwnPropertyNames(w.request({})),
    (w) => { const seen = []; for (const key in w.request({})) seen.push(key); return seen.sort(); },
    (w) => ({ ...w.request({}) }),
    (w) => 'url' in w.request({}),
    (w) => 'text' in w.request({}),
    (w) => 'nonsense' in w.request({}),
    (w) => typeof w.request({}).text,
    (w) => w.request({}).text.length,
    (w) => w.request({}).clone.name,
    (w) => w.request({}).signal instanceof AbortSignal,
    (w) => w.request({}).signal.aborted,
    (w) => w.request({}).headers instanceof Headers,
    (w) => w.request(post).body instanceof ReadableStream,
    (w) => w.request({ method: 'POST' }).body,
    (w) => w.request({ method: 'POST', body: '' }).text(),
    (w) => Object.isFrozen(w.request({})),
    (w) => Object.isExtensible(w.request({})),
    (w) => { const request = w.request({}); request.user = 'ann'; return [request.user, Object.keys(request)]; },
    (w) => { const request = w.request({}); Object.defineProperty(request, 'url', { value: 'own' }); return request.url; },
    (w) => Object.create(w.request({})).url,
    (w) => new Proxy(w.request({}), {}).url,
    (w) => Reflect.get(w.request({ target: '/r' }), 'url'),
    (w) => structuredClone(w.request({})),
    (w) => w.inspect(w.request({ fields: [['X-One', '1']] })),
    (w) => w.inspect({ request: w.request({}) }).includes('Request {'),
    (w) => new URL(w.request({ target: '/a?b=c' }).url).searchParams.get('b'),
    // What the platform makes of it.
    (w) => new Request(w.request({ target: '/t' })).url,
    (w) => new Request(w.request({ method: 'DELETE' })).method,
    (w) => new Request(w.request({ method: 'DELETE' }), { method: 'PUT' }).method,
    (w) => [...new Request(w.request(post)).headers],
    (w) => [...new Request(w.request(post), { headers: { z: '1' } }).headers],
    (w) => new Request(w.request(post)).text(),
    (w) => new Request(w.request({ ...post, streaming: true })).text(),
    (w) => { const one = w.request(post); new Request(one); return one.bodyUsed; },
    (w) => { const one = w.request(post); new Request(one); return one.text(); },
    (w) => { const one = w.request(post); new Request(one, { body: 'y' }); return one.bodyUsed; },
    (w) => { const one = w.request(post); new Request(one, { body: 'y' }); return one.text(); },
    (w) => new Request(w.request(post), { body: 'other' }).text(),
    (w) => new Request(w.request(post), { body: null }).text(),
    (w) => new Request(w.request(post), { method: 'GET' }),
    (w) => new Request(w.request(post), { method: 'bad method' }),
    (w) => new Request('http://other.example/', w.request(post)).url,
    (w) => new Request('http://other.example/', { ...w.request(post), method: 'POST' }).method,
    (w) => new Request('http://other.example/', w.request({ method: 'DELETE', fields: [['X-One', '1']] })).method,
    (w) => [...new Request('http://other.example/', w.request({ fields: [['X-One', '1']] })).headers],
    (w) => new Request('http://other.example/', w.request(post)).text(),
    async (w) => { const one = w.request(post); await one.text(); return new Request(one); },
    (w) => { const one = w.request(post); one.body.getReader(); return new Request(one); },
    (w) => { const one = w.request(post); one.headers.set('x-one', '2'); return new Request(one).headers.get('x-one'); },
    (w) => new Request(new Request(w.request(post))).text(),
    (w) => new Request(w.request(post)).constructor === Request,
    (w) => new Request(w.request(post)).signal.aborted,
    (w) => new Request(w.request(post), { signal: AbortSignal.abort() }).signal.aborted,
    (w) => { class Own extends Request { get own() { return `${this.method} ${this.url}`; } } return new Own(w.request(post)).own; },
    (w) => { class Own extends Request {} return new Own(w.request(post)) instanceof Own; },
    (w) => { class Own extends Request {} return w.request(post) instanceof Own; },
    (w) => { class Own extends Request {} return new Own(w.request(post)).text(); },
    (w) => new URL(w.request({ target: '/p' }).url).pathname,
    async (w) => (await fetch(w.request({ authority: w.echo, target: '/e?x=1' }))).json(),
    async (w) => (await fetch(w.request({ ...post, authority: w.echo }))).json(),
    async (w) => (await fetch(w.request({ ...post, authority: w.echo, streaming: true }))).json(),
    async (w) => (await fetch(w.request({ ...post, authority: w.echo }), { method: 'PUT', body: 'b' })).json(),
    async (w) => (await fetch(new Request(w.request({ ...post, authority: w.echo })))).json(),
    async (w) => (await fetch(`http://${w.echo}/s`, { headers: w.request(post).headers })).json(),
    async (w) => (await fetch(`http://${w.echo}/s`, { method: 'POST', body: w.request(post).body, duplex: 'half' })).json(),
    async (w) => (await fetch(`http://${w.echo}/s`)) instanceof Response,
    async (w) => (await fetch(`http://${w.echo}/s`)).constructor === Response,
    async (w) => { const one = w.request({ ...post, authority: w.echo }); await fetch(one); return one.bodyUsed; },
    async (w) => { const one = w.request({ ...post, authority: w.echo }); await one.text(); return fetch(one); },
    (w) => fetch(w.request({ authority: w.echo }), { signal: AbortSignal.abort() }),
    async (w) => (await fetch(w.request({ ...post, authority: w.echo, fields: [['Host', 'own.example'], ['Content-Length', '5'], ['Content-Type', 'a/b']] }))).json(),
    async (w) => (await fetch(`http://${w.echo}/p`, w.request({ ...post, fields: [['Host', 'own.example'], ['Content-Length', '5'], ['Accept', 'a/b']] }))).json(),
    async (w) => (await fetch(new Request(`http://${w.echo}/p`, w.request({ ...post, streaming: true, fields: [['X-One', '1'], ['Cookie', 'a=b']] })))).json(),
    async (w) => { const one = w.request({ ...post, authority: w.echo }); const copy = one.clone(); return [await (await fetch(one)).json(), await copy.text()]; },
    (w) => fetch(),
    (w) => fetch('not a url'),
    (w) => { const promise = fetch('not a url'); promise.catch(() => {}); return promise instanceof Promise; },
    (w) => fetch(w.request({ authority: w.echo }), { method: 'bad method' }),
  ]),
];

/** @param {((w: any) => unknown)[]} expressions */
function evaluated(expressions) {
  return expressions.map((expression) => [expression.toString().replace(/^(async )?\(w\) => /, ''), expression]);
}
