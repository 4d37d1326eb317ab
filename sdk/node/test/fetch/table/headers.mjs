// Cases about headers: of a request over a head in several spellings, and of a response.

const plain = [
  ['Host', 'example.com'], ['Accept', 'text/html'], ['X-Two', 'b'], ['Cookie', 'a=1'], ['x-one', 'first'], ['X-One', 'second'],
  ['Accept', '*/*'], ['Cookie', 'b=2'], ['User-Agent', 'test agent \xe9\xff'], ['X-Empty', ''], ['Vary', 'Accept'],
];
const respond = [
  ['Content-Type', 'text/html'], ['Set-Cookie', 'a=1; Path=/'], ['X-B', '1'], ['Set-Cookie', 'b=2'], ['vary', 'Accept'],
  ['Vary', 'Origin'], ['x-b', '2'], ['ETag', '"x"'],
];

/** Where the headers come from; the platform's come from the same list. */
const KINDS = {
  'request headers': (w) => w.request({ fields: plain }).headers,
  'request headers in full': (w) => w.request({ fields: plain, spelling: 'full' }).headers,
  'request headers in capitals': (w) => w.request({ fields: plain.map(([name, value]) => [name.toUpperCase(), value]) }).headers,
  'request headers in lower case': (w) => w.request({ fields: plain.map(([name, value]) => [name.toLowerCase(), value]) }).headers,
  'response headers': (w) => new Response(null, { headers: respond }).headers,
};

const READS = [
  (h) => [...h], (h) => [...h.keys()], (h) => [...h.values()], (h) => [...h.entries()], (h) => h.getSetCookie(),
  (h) => h.get('accept'), (h) => h.get('Accept'), (h) => h.get('ACCEPT'), (h) => h.get('cookie'), (h) => h.get('x-one'),
  (h) => h.get('X-ONE'), (h) => h.get('x-empty'), (h) => h.get('user-agent'), (h) => h.get('vary'), (h) => h.get('set-cookie'),
  (h) => h.get('missing'), (h) => h.get('etag'), (h) => h.get('authorization'), (h) => h.has('accept'), (h) => h.has('x-one'),
  (h) => h.has('missing'), (h) => h.has('X-Empty'), (h) => h.has('set-cookie'), (h) => new Headers(h).get('x-one'),
  (h) => [...new Headers(h)], (h) => Object.fromEntries(h), (h) => JSON.stringify(h), (h) => JSON.stringify([...h]),
  (h) => { const seen = []; h.forEach((value, name) => seen.push([name, value])); return seen; },
  (h) => [...new Response(null, { headers: h }).headers], (h) => [...new Request('http://a.example/', { headers: h }).headers],
  (h) => [...new Map(h)],
];

const CHANGES = [
  (h) => { h.set('accept', 'x'); return [...h]; },
  (h) => { h.set('x-one', 'x'); return [...h]; },
  (h) => { h.set('New', 'x'); return [...h]; },
  (h) => { h.append('accept', 'x'); return h.get('accept'); },
  (h) => { h.append('X-One', 'third'); return h.get('x-one'); },
  (h) => { h.append('New', ' padded\t'); return h.get('new'); },
  (h) => { h.append('set-cookie', 'c=3'); return [h.getSetCookie(), [...h]]; },
  (h) => { h.set('Set-Cookie', 'c=3'); return [h.getSetCookie(), [...h]]; },
  (h) => { h.append('cookie', 'c=3'); return h.get('cookie'); },
  (h) => { h.delete('accept'); return [h.has('accept'), [...h]]; },
  (h) => { h.delete('X-ONE'); return [...h]; },
  (h) => { h.delete('missing'); return [...h].length; },
  (h) => { h.delete('set-cookie'); return h.getSetCookie(); },
  (h) => { h.set('host', 'other.example'); return h.get('host'); },
  (h) => { const seen = []; for (const [name] of h) { seen.push(name); if (name === 'vary') h.append('zz', '1'); } return seen; },
  (h) => { const seen = []; for (const [name] of h) { seen.push(name); h.delete(name); } return seen; },
  (h) => { for (const pair of h) pair[1] = 'changed'; return [...h]; },
];

/** What does not depend on the fields that are there. */
const CHECKS = [
  (h) => h.get(), (h) => h.get(''), (h) => h.get('a b'), (h) => h.get('a:b'), (h) => h.get('\xe9'), (h) => h.get('\u0100'), (h) => h.get(1),
  (h) => h.get(null), (h) => h.get(undefined), (h) => h.get(Symbol('s')), (h) => h.get({ toString: () => 'vary' }) !== undefined,
  (h) => h.has(), (h) => h.has(''), (h) => h.has('a b'), (h) => h.has(1), (h) => h.has(Symbol('s')),
  (h) => h.set(), (h) => h.set('a'), (h) => h.set('', 'x'), (h) => h.set('a b', 'x'), (h) => h.set('a', 'x\ny'), (h) => h.set('a', '\0'),
  (h) => h.set('a', '\u0100'), (h) => h.set('a', Symbol('s')), (h) => { h.set('a', 1); return h.get('a'); },
  (h) => { h.set('a', null); return h.get('a'); }, (h) => { h.set('a', undefined); return h.get('a'); },
  (h) => { h.set('a', '  x  '); return h.get('a'); }, (h) => { h.set('a', '\r\n x \r\n'); return h.get('a'); },
  (h) => { h.set('a', ''); return h.get('a'); }, (h) => { h.set('a', '   '); return h.get('a'); }, (h) => { h.set('a', '\x01\x7f'); return h.get('a'); },
  (h) => { h.set('a', '\x0bx\x0c'); return h.get('a'); }, (h) => { h.set('a', '\xe9'); return h.get('a'); }, (h) => { h.set(1, 2); return h.get('1'); },
  (h) => h.set('a', 'x'), (h) => h.append(), (h) => h.append('a'), (h) => h.append('a b', 'x'), (h) => h.append('a', 'x\r'),
  (h) => h.append('a', 'x'), (h) => h.append('', ''), (h) => { h.append('a', '1'); h.append('A', '2'); return h.get('a'); },
  (h) => h.delete(), (h) => h.delete(''), (h) => h.delete('a b'), (h) => h.delete('a'), (h) => h.forEach(), (h) => h.forEach(1),
  (h) => h.forEach(() => {}), (h) => { let self; h.forEach(function () { self = this; }, 7); return self; },
  (h) => { let self; h.forEach((value, name, all) => { self = all === h; }); return self; },
  (h) => h instanceof Headers, (h) => h.constructor === Headers, (h) => h.constructor.name, (h) => `${h}`, (h) => h[Symbol.toStringTag],
  (h) => Object.keys(h), (h) => Object.getOwnPropertyNames(h), (h) => { const seen = []; for (const key in h) seen.push(key); return seen.sort(); },
  (h) => ({ ...h }), (h) => structuredClone(h), (h) => typeof h[Symbol.iterator], (h) => h[Symbol.iterator] === h.entries, (h) => h.get.length, (h) => h.set.name,
  (h) => `${h.entries()}`, (h) => h.entries()[Symbol.toStringTag], (h) => typeof h.entries().next, (h) => { const i = h.keys(); return i[Symbol.iterator]() === i; },
  (h) => Object.keys(h.entries().next()).sort(), (h) => { const i = h.entries(); [...i]; return i.next(); },
  (h) => { const get = h.get; return get('a'); }, (h) => Object.create(h).get('a'), (h) => new Proxy(h, {}).get('a'), (h) => h.nonsense,
];

/** What may be given as headers to a new Response. */
const INITS = [
  undefined, null, {}, [], '', 'x', 1, true, { A: 'b' }, { a: 1 }, { a: null }, { a: undefined }, { a: ['x', 'y'] }, { a: 'x', A: 'y' }, { 'a b': 'x' },
  { '': 'x' }, { a: 'x\ny' }, { a: ' x ' }, { a: '\u0100' }, { '\u0100': 'a' }, { a: '\xe9' }, [['a', 'b']], [['a', 'b'], ['A', 'c']], [['a']], [['a', 'b', 'c']], [[]], ['ab'], [1],
  [['Set-Cookie', 'a'], ['set-cookie', 'b']], { 'Set-Cookie': 'a' }, { 'Content-Length': '5' }, { 'content-type': 'a/b' }, { 'Content-Type': 'a/b; charset=x' },
  new Map([['a', 'b']]), new Map([['a', 1]]), new Set([['a', 'b']]), new URLSearchParams('a=b'), new Headers({ a: 'b' }), new Headers([['set-cookie', 'a'], ['set-cookie', 'b']]),
  Object.create({ a: 'inherited' }), Object.create(null, { a: { value: 'hidden', enumerable: false } }), { [Symbol('s')]: 'x' }, { get a() { return 'got'; } },
  { get a() { throw new Error('from a getter'); } }, { a: { toString: () => 'text' } }, { a: Symbol('s') }, { 2: 'two', 1: 'one', b: 'x', a: 'y' }, () => {}, new Date(0), /x/,
  { 'x-\xe9': 'a' }, { 'content-type': '' }, { Connection: 'close', 'Transfer-Encoding': 'chunked' }, [new Set(['a', 'b'])], ['a:b'], { a: 1n }, { a: true }, { a: {} }, { a: NaN },
];

export const cases = [
  ...Object.entries(KINDS).flatMap(([kind, make]) =>
    [...READS, ...CHANGES].map((expression) => [`${kind}: ${text(expression)}`, (w) => expression(make(w))]),
  ),
  ...['request headers', 'response headers'].flatMap((kind) =>
    CHECKS.map((expression) => [`${kind}: ${text(expression)}`, (w) => expression(KINDS[kind](w))]),
  ),
  ...INITS.map((headers, place) => [`new Response('x', { headers: ${show(headers)} }) (${place})`, () => [...new Response('x', { headers }).headers]]),
  ...INITS.map((headers, place) => [`Response.json(1, { headers: ${show(headers)} }) (${place})`, () => [...Response.json(1, { headers }).headers]]),
  ['inspecting headers', (w) => w.inspect(KINDS['response headers'](w))],
  ['inspecting request headers', (w) => w.inspect(KINDS['request headers'](w))],
];

/** @param {(h: any) => unknown} expression */
function text(expression) {
  return expression.toString().replace(/^\(h\) => /, '');
}

/** @param {any} value */
function show(value) {
  try {
    if (typeof value === 'function' || value instanceof RegExp) return `${value}`;
    return `${value?.constructor?.name ?? ''} ${JSON.stringify(value)}`.replaceAll('\\u0000', 'NUL');
  } catch {
    return 'an unusual object';
  }
}
