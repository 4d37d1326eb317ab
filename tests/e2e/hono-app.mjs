// One Hono application with as many of Hono's parts as can be asked without a network, and what is asked of it. Used by
// hono.test.mjs with requests of the platform and with those of the worker's library.

import { Hono } from 'hono';
import { basicAuth } from 'hono/basic-auth';
import { bearerAuth } from 'hono/bearer-auth';
import { bodyLimit } from 'hono/body-limit';
import { some } from 'hono/combine';
import { compress } from 'hono/compress';
import { contextStorage, getContext } from 'hono/context-storage';
import { deleteCookie, getCookie, getSignedCookie, setCookie, setSignedCookie } from 'hono/cookie';
import { cors } from 'hono/cors';
import { csrf } from 'hono/csrf';
import { etag } from 'hono/etag';
import { HTTPException } from 'hono/http-exception';
import { jwt, sign } from 'hono/jwt';
import { languageDetector } from 'hono/language';
import { methodOverride } from 'hono/method-override';
import { poweredBy } from 'hono/powered-by';
import { prettyJSON } from 'hono/pretty-json';
import { requestId } from 'hono/request-id';
import { secureHeaders } from 'hono/secure-headers';
import { stream, streamSSE, streamText } from 'hono/streaming';
import { timeout } from 'hono/timeout';
import { appendTrailingSlash, trimTrailingSlash } from 'hono/trailing-slash';
import { validator } from 'hono/validator';

const SECRET = 'a secret of the tests';

/** A new application; the fetch classes are those that are global when it answers. */
export function buildApp() {
  const app = new Hono();
  routing(app);
  bodies(app);
  answers(app);
  streams(app);
  middleware(app);
  mounted(app);
  app.notFound((c) => c.text(`nothing at ${c.req.path}`, 404));
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse();
    return c.text(`${error.name}: ${error.message}`, 500);
  });
  return app;
}

/** @param {Hono} app */
function routing(app) {
  app.get('/', (c) => c.text('home'));
  app.get('/users/:id{[0-9]+}', (c) => c.json({ id: c.req.param('id'), query: c.req.query(), all: c.req.queries('tag') }));
  app.get('/any/*', (c) => c.text(`${c.req.method} ${c.req.path} ${c.req.url}`));
  app.get('/optional/:name?', (c) => c.text(c.req.param('name') ?? 'nobody'));
  app.on(['PURGE', 'PUT', 'DELETE'], '/several', (c) => c.text(c.req.method));
  app.all('/all', (c) => c.text(`all ${c.req.method}`));
  app.get('/headers', (c) => c.json(c.req.header()));
  app.get('/header/:name', (c) => c.json({ value: c.req.header(c.req.param('name')) ?? null }));
  app.get('/raw', (c) => c.json([c.req.raw instanceof Request, c.req.raw.url, c.req.raw.method, [...c.req.raw.headers]]));
  app.get('/throw', () => { throw new Error('thrown'); });
  app.get('/exception', () => { throw new HTTPException(418, { message: 'teapot' }); });
  app.get('/exception-response', () => { throw new HTTPException(401, { res: new Response('own', { status: 401, headers: { 'www-authenticate': 'x' } }) }); });
  app.route('/sub', new Hono().get('/', (c) => c.text('sub')).get('/deep/:x', (c) => c.text(c.req.param('x'))));
  app.basePath('/base').get('/inner', (c) => c.text(c.req.path));
}

/** @param {Hono} app */
function bodies(app) {
  app.post('/json', async (c) => c.json(await c.req.json()));
  app.post('/text', async (c) => c.text(await c.req.text()));
  app.post('/form', async (c) => c.json(await c.req.parseBody({ all: true, dot: true })));
  app.post('/file', async (c) => {
    const { file } = await c.req.parseBody();
    return c.json(file instanceof File ? [file.name, file.type, await file.text()] : 'no file');
  });
  app.post('/form-data', async (c) => c.json([...(await c.req.formData()).keys()]));
  app.post('/bytes', async (c) => c.body(await c.req.arrayBuffer()));
  app.post('/blob', async (c) => { const blob = await c.req.blob(); return c.json([blob.type, blob.size]); });
  app.post('/twice', async (c) => c.json([await c.req.text(), await c.req.json(), (await c.req.arrayBuffer()).byteLength]));
  app.post('/clone', async (c) => c.json([await c.req.raw.clone().text(), await c.req.raw.text()]));
  app.post('/again', async (c) => c.text(await new Request(c.req.raw, { headers: { 'x-new': '1' } }).text()));
  app.post('/echo-stream', (c) => new Response(c.req.raw.body, { headers: { 'content-type': 'application/octet-stream' } }));
  app.post('/validate', validator('json', (value, c) => (typeof value?.name === 'string' ? { name: value.name } : c.text('no name', 400))), (c) => c.json(c.req.valid('json')));
  app.post('/validate-form', validator('form', (value) => value), (c) => c.json(c.req.valid('form')));
  app.get('/validate-query', validator('query', (value, c) => (value.q ? { q: value.q } : c.text('no q', 400))), validator('header', (value) => ({ host: value.host })), (c) => c.json([c.req.valid('query'), c.req.valid('header')]));
  app.post('/limited', bodyLimit({ maxSize: 10, onError: (c) => c.text('too large', 413) }), async (c) => c.text(await c.req.text()));
}

/** @param {Hono} app */
function answers(app) {
  app.get('/html', (c) => c.html('<p>hello</p>'));
  app.get('/created', (c) => c.json({ ok: true }, 201, { 'X-Custom': 'yes' }));
  app.get('/empty', (c) => c.body(null, 204));
  app.get('/redirect', (c) => c.redirect('/elsewhere', 301));
  app.get('/bare', () => new Response('bare'));
  app.get('/static-json', () => Response.json({ made: 'by Response' }));
  app.get('/static-redirect', () => Response.redirect('http://example.com/there', 307));
  app.get('/set-headers', (c) => {
    c.header('X-A', '1');
    c.header('X-B', '2', { append: true });
    c.header('X-B', '3', { append: true });
    c.status(202);
    return c.text('headers');
  });
  app.get('/res-headers', async (c) => {
    c.res = new Response('set', { headers: { 'x-set': '1' } });
    c.res.headers.append('x-set', '2');
  });
  app.use('/wrapped/*', async (c, next) => {
    c.header('x-before', '1');
    await next();
    c.res.headers.set('x-after', '1');
    c.res = new Response(`[${await c.res.text()}]`, c.res);
  });
  app.get('/wrapped/text', (c) => c.text('inside'));
  app.get('/wrapped/json', (c) => c.json([1]));
  app.get('/wrapped/bytes', () => new Response(new Uint8Array([65, 66])));
}

/** @param {Hono} app */
function streams(app) {
  app.get('/stream', (c) => stream(c, async (to) => {
    await to.write(new Uint8Array([72, 105]));
    await to.pipe(new ReadableStream({ start(controller) { controller.enqueue(new TextEncoder().encode(' there')); controller.close(); } }));
  }));
  app.get('/stream-text', (c) => streamText(c, async (to) => { await to.writeln('one'); await to.write('two'); }));
  app.get('/events', (c) => streamSSE(c, async (to) => {
    await to.writeSSE({ data: 'first', event: 'tick', id: '1' });
    await to.writeSSE({ data: 'two\nlines' });
  }));
  app.get('/stream-fails', (c) => stream(c, async () => { throw new Error('inside a stream'); }, async (_, to) => { await to.write('caught'); }));
}

/** @param {Hono} app */
function middleware(app) {
  app.use('/cors/*', cors({ origin: ['http://a.example', 'http://b.example'], credentials: true, allowMethods: ['GET', 'PUT'], exposeHeaders: ['X-One'], maxAge: 60 }));
  app.get('/cors/x', (c) => c.text('cors'));
  app.use('/cors-any/*', cors());
  app.get('/cors-any/x', (c) => c.json({}));
  app.use('/etag/*', etag());
  app.get('/etag/x', (c) => c.text('entity'));
  app.get('/etag/stream', (c) => streamText(c, async (to) => { await to.write('entity'); }));
  app.use('/basic/*', basicAuth({ username: 'ann', password: 'secret' }));
  app.get('/basic/x', (c) => c.text('inside'));
  app.use('/bearer/*', bearerAuth({ token: 'token-1' }));
  app.get('/bearer/x', (c) => c.text('inside'));
  app.use('/jwt/*', jwt({ secret: SECRET, alg: 'HS256' }));
  app.get('/jwt/x', (c) => c.json(c.get('jwtPayload')));
  app.use('/some/*', some(bearerAuth({ token: 'token-1' }), basicAuth({ username: 'ann', password: 'secret' })));
  app.get('/some/x', (c) => c.text('some'));
  app.get('/cookie', async (c) => {
    setCookie(c, 'a', '1', { path: '/', httpOnly: true, secure: true, sameSite: 'Lax' });
    setCookie(c, 'b', 'two words');
    await setSignedCookie(c, 'signed', 'value', SECRET);
    deleteCookie(c, 'old');
    return c.json([getCookie(c), await getSignedCookie(c, SECRET, 'signed')]);
  });
  app.use('/compress/*', compress({ threshold: 10 }));
  app.get('/compress/text', (c) => c.text('compressible '.repeat(100)));
  app.get('/compress/small', (c) => c.text('small'));
  app.get('/compress/known', (c) => { c.header('content-length', '1300'); return c.text('compressible '.repeat(100)); });
  app.get('/compress/image', (c) => c.body('x'.repeat(2000), 200, { 'content-type': 'image/png' }));
  app.use('/override/*', methodOverride({ app }));
  app.post('/override/x', (c) => c.text('posted'));
  app.delete('/override/x', async (c) => c.json(await c.req.parseBody()));
  app.use('/csrf/*', csrf());
  app.post('/csrf/x', (c) => c.text('safe'));
  app.use('/secure/*', secureHeaders());
  app.get('/secure/x', (c) => c.text('secure'));
  app.use('/pretty/*', prettyJSON());
  app.get('/pretty/x', (c) => c.json({ a: { b: 1 } }));
  app.use('/powered/*', poweredBy());
  app.get('/powered/x', (c) => c.text('powered'));
  app.use('/id/*', requestId({ generator: () => 'made-by-the-test' }));
  app.get('/id/x', (c) => c.text(c.get('requestId').length > 0 ? 'has an id' : 'none'));
  app.use('/timeout/*', timeout(5000));
  app.get('/timeout/x', (c) => c.text('in time'));
  app.use('/language/*', languageDetector({ supportedLanguages: ['en', 'de'], fallbackLanguage: 'en' }));
  app.get('/language/x', (c) => c.text(c.get('language')));
  app.use('/storage/*', contextStorage());
  app.get('/storage/x', (c) => c.text(getContext().req.path));
  const trimmed = new Hono({ strict: true }).use(trimTrailingSlash()).get('/x', (c) => c.text('trimmed'));
  app.mount('/trim', trimmed.fetch);
  const appended = new Hono({ strict: true }).use(appendTrailingSlash()).get('/x/', (c) => c.text('appended'));
  app.mount('/append', appended.fetch);
}

/** @param {Hono} app */
function mounted(app) {
  app.mount('/mount', async (request) => {
    const body = request.method === 'POST' ? await request.text() : null;
    return Response.json([request instanceof Request, request.method, request.url, request.headers.get('x-one'), body]);
  });
  app.mount('/mount-plain', (request) => new Response(new URL(request.url).pathname), { replaceRequest: false });
}

const basic = (text) => ['Authorization', `Basic ${btoa(text)}`];
const json = ['Content-Type', 'application/json'];
const urlencoded = ['Content-Type', 'application/x-www-form-urlencoded'];
const multipart = ['Content-Type', 'multipart/form-data; boundary=b'];
const form = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="n.txt"\r\nContent-Type: text/plain\r\n\r\nthe file\r\n--b--\r\n';
const gets = [
  '/', '/users/7?tag=a&tag=b&x=%20y', '/users/abc', '/any/a/b?c=d', '/any/%E2%82%AC/x', '/any/a%2Fb', '/optional', '/optional/ann', '/optional/a%20b',
  '/several', '/all', '/headers', '/header/x-one', '/header/X-ONE', '/header/cookie', '/header/missing', '/raw', '/throw', '/exception', '/exception-response', '/sub', '/sub/deep/x',
  '/base/inner', '/html', '/created', '/empty', '/redirect', '/bare', '/static-json', '/static-redirect', '/set-headers', '/res-headers', '/wrapped/text', '/wrapped/json',
  '/wrapped/bytes', '/stream', '/stream-text', '/events', '/stream-fails', '/etag/x', '/etag/stream', '/secure/x', '/pretty/x', '/pretty/x?pretty', '/powered/x', '/id/x', '/timeout/x',
  '/language/x', '/language/x?lang=de', '/storage/x', '/trim/x', '/trim/x/', '/append/x', '/append/x/', '/mount', '/mount/a?b=c', '/mount-plain/x', '/nothing', '//', '/validate-query?q=1', '/validate-query',
  '/compress/text', '/compress/small', '/compress/known', '/compress/image', '/basic/x', '/bearer/x', '/jwt/x', '/some/x', '/cookie',
];

/** What is asked: method, target, fields, body. */
export async function buildRequests() {
  const token = await sign({ sub: 'ann', exp: 4_000_000_000 }, SECRET, 'HS256');
  const fields = [['Host', 'example.com'], ['X-One', '1'], ['x-one', '2'], ['Cookie', 'a=1; b=%20'], ['Cookie', 'c=3'], ['Accept-Language', 'de-DE,de;q=0.9']];
  const plain = gets.flatMap((target) => ['GET', 'HEAD'].map((method) => ({ method, target, fields })));
  const posts = [
    ['/json', '{"a":[1,"\u20ac"]}', [json]], ['/json', '{"a":', [json]], ['/json', '', [json]], ['/text', 'text'], ['/text', ''],
    ['/form', 'a=1&a=2&b.c=3&d%5B%5D=4', [urlencoded]], ['/form', form, [multipart]], ['/file', form, [multipart]], ['/form-data', form, [multipart]],
    ['/form-data', 'x', [['Content-Type', 'text/plain']]], ['/bytes', 'bytes'], ['/blob', 'blob', [['Content-Type', 'text/x-blob']]], ['/twice', '[1]', [json]], ['/clone', 'cloned'],
    ['/again', 'again'], ['/echo-stream', 'echo'.repeat(20_000)], ['/validate', '{"name":"x"}', [json]], ['/validate', '{}', [json]], ['/validate', 'x', [json]], ['/validate', '{"name":"x"}'],
    ['/validate-form', 'a=1&b=2', [urlencoded]], ['/validate-form', form, [multipart]], ['/limited', 'short', [['Content-Length', '5']]], ['/limited', 'much too long', [['Content-Length', '13']]],
    ['/limited', 'much too long'], ['/limited', 'short'], ['/override/x', 'a=1&_method=DELETE', [urlencoded]], ['/override/x', 'a=1', [urlencoded]],
    ['/csrf/x', 'a=1', [urlencoded, ['Origin', 'http://evil.example']]], ['/csrf/x', 'a=1', [urlencoded, ['Origin', 'http://example.com']]], ['/mount/x', 'mounted'], ['/all', 'x'], ['/nothing', 'x'],
  ].flatMap(([target, body, more = []]) => [false, true].map((streaming) => ({ method: 'POST', target, body, streaming, fields: [...fields, ...more] })));
  const others = [
    ['PUT', '/several'], ['DELETE', '/several'], ['PURGE', '/several'], ['OPTIONS', '/all'], ['PATCH', '/all'], ['POST', '/several'],
    ['OPTIONS', '/cors/x', [['Origin', 'http://a.example'], ['Access-Control-Request-Method', 'PUT'], ['Access-Control-Request-Headers', 'x-a, x-b']]],
    ['GET', '/cors/x', [['Origin', 'http://b.example']]], ['GET', '/cors/x', [['Origin', 'http://c.example']]], ['GET', '/cors-any/x', [['Origin', 'http://c.example']]],
    ['OPTIONS', '/cors-any/x', [['Origin', 'http://c.example']]], ['GET', '/etag/x', [['If-None-Match', '*']]], ['GET', '/etag/x', [['If-None-Match', '"58d7c5d3e1ee2b5d8b8c8ad0f0e4d0b8c7a1f2c3"']]],
    ['GET', '/basic/x', [basic('ann:secret')]], ['GET', '/basic/x', [basic('ann:wrong')]], ['GET', '/bearer/x', [['Authorization', 'Bearer token-1']]], ['GET', '/bearer/x', [['Authorization', 'Bearer no']]],
    ['GET', '/bearer/x', [['Authorization', 'nonsense']]], ['GET', '/jwt/x', [['Authorization', `Bearer ${token}`]]], ['GET', '/jwt/x', [['Authorization', 'Bearer x.y.z']]], ['GET', '/some/x', [basic('ann:secret')]],
    ['GET', '/compress/text', [['Accept-Encoding', 'gzip']]], ['GET', '/compress/text', [['Accept-Encoding', 'deflate, gzip;q=0.5']]], ['GET', '/compress/small', [['Accept-Encoding', 'gzip']]],
    ['GET', '/compress/known', [['Accept-Encoding', 'gzip']]], ['GET', '/compress/image', [['Accept-Encoding', 'gzip']]], ['GET', '/compress/text', [['Accept-Encoding', 'br']]],
    ['HEAD', '/compress/text', [['Accept-Encoding', 'gzip']]],
  ].map(([method, target, more = []]) => ({ method, target, fields: [...fields, ...more] }));
  return [...plain, ...posts, ...others];
}
