// What is asked: the same bytes to every application, alone and below onehop. An application that has no such route
// says so on both sides.

import { bytesOf } from './wire.mjs';

const MIB = 1 << 20;
const BOUNDARY = '----boundary-of-the-test';
const TEXT = 'Some text with ümlauts.\n';
const LARGE = Buffer.alloc(2 * MIB, 'fedcba9876543210');

const JSON_TYPE = ['Content-Type', 'application/json'];
const FORM_TYPE = ['Content-Type', 'application/x-www-form-urlencoded'];
const BYTES_TYPE = ['Content-Type', 'application/octet-stream'];

/** A request that brings its script; see apps/script.cjs for the words. */
export function scripted(steps, { method = 'GET', fields = [], target = '/node/script', ...rest } = {}) {
  const text = JSON.stringify(steps).replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return { method, target, fields: [['X-Script', text], ...fields], ...rest };
}

function part(head, content) {
  return Buffer.concat([Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')]);
}

const UPLOAD = Buffer.concat([
  part('name="title"', 'an upload'),
  part('name="title"', 'twice'),
  part('name="file"; filename="hello.txt"\r\nContent-Type: text/plain', 'hello'),
  part('name="picture"; filename="gr\u00fc\u00dfe.bin"\r\nContent-Type: application/octet-stream', Buffer.alloc(300_000, 7)),
  Buffer.from(`--${BOUNDARY}--\r\n`),
]);
const UPLOAD_TYPE = ['Content-Type', `multipart/form-data; boundary=${BOUNDARY}`];

const get = (target, ...fields) => ({ target, fields });
const post = (target, body, ...fields) => ({ method: 'POST', target, fields, body });

/** Requests by what their case is called. */
const ROUTES = {
  'a text': get('/'),
  'JSON': get('/json'),
  'JSON that is asked for with its tag': get('/json', ['If-None-Match', '*']),
  'JSON is taken': post('/json', JSON.stringify({ text: TEXT, list: [1, 2] }), JSON_TYPE),
  'JSON in chunks': { method: 'POST', target: '/json', fields: [JSON_TYPE], chunks: ['{"a":', '[1,2', ']}'] },
  'JSON that is none': post('/json', '{"a":', JSON_TYPE),
  'JSON of another charset': post('/json', '{}', ['Content-Type', 'application/json; charset=klingon']),
  'JSON with no bytes': post('/json', '', JSON_TYPE),
  'a body without a type': post('/json', 'text'),
  'a compressed body': post('/json', Buffer.from('H4sIAAAAAAAAA6tWSlSyMqwFAPnnVDoHAAAA', 'base64'), JSON_TYPE, ['Content-Encoding', 'gzip']),
  'parameters': get('/users/7?name=a%20b&list=1&list=2&empty=&nested%5Bx%5D=y'),
  'an escaped parameter': get('/users/%E2%82%AC%2Fx'),
  'a parameter that is broken': get('/users/%E0%A4%A'),
  'DELETE with a body': { method: 'DELETE', target: '/users/7', fields: [JSON_TYPE], body: '{"why":"old"}' },
  'DELETE without': { method: 'DELETE', target: '/users/7' },
  'GET with a body': { target: '/json', fields: [JSON_TYPE], body: '{"ignored":true}' },
  'a form': post('/form', 'a=1&b=two+words&c=%C3%BC&a=3', FORM_TYPE),
  'an upload': post('/upload', UPLOAD, UPLOAD_TYPE),
  'an upload in chunks': { method: 'POST', target: '/upload', fields: [UPLOAD_TYPE], chunks: [UPLOAD.subarray(0, 70), UPLOAD.subarray(70, 100_000), UPLOAD.subarray(100_000)] },
  'an upload that stops early': post('/upload', UPLOAD.subarray(0, 500), UPLOAD_TYPE),
  'cookies': get('/cookies', ['Cookie', 'theme=light; session=1'], ['X-Other', 'between']),
  'cookies in two fields': get('/cookies', ['Cookie', 'a=1'], ['Cookie', 'b=2']),
  'a redirect': get('/redirect', ['Accept', 'text/html']),
  'a redirect for good': get('/moved'),
  'a stream': get('/stream'),
  'a stream of HTTP/1.0-like clients': get('/stream', ['Connection', 'close']),
  'events': get('/events', ['Accept', 'text/event-stream']),
  'nothing (204)': get('/empty'),
  'unchanged (304)': get('/unchanged'),
  'reset (205)': get('/reset'),
  'compression': get('/compressed', ['Accept-Encoding', 'gzip']),
  'deflate': get('/compressed', ['Accept-Encoding', 'deflate']),
  'compression of a HEAD': { method: 'HEAD', target: '/compressed', fields: [['Accept-Encoding', 'gzip']] },
  'compressed events': get('/events', ['Accept-Encoding', 'gzip']),
  'a long text': get('/compressed'),
  '2 MiB down': get('/big'),
  '2 MiB up': post('/sum', LARGE, BYTES_TYPE),
  '2 MiB up in chunks': { method: 'POST', target: '/sum', fields: [BYTES_TYPE], chunks: [LARGE.subarray(0, 1), LARGE.subarray(1, MIB), LARGE.subarray(MIB)] },
  'nothing up': post('/sum', '', BYTES_TYPE),
  'large and many fields': get('/fields'),
  'who asks': get('/who?x=1'),
  'who asks, through proxies': get('/who', ['X-Requested-With', 'XMLHttpRequest'], ['Host', 'sub.example.test:8443']),
  'a sent file': get('/file'),
  'a part of a sent file': get('/file', ['Range', 'bytes=10-19']),
  'a download': get('/download'),
  'a thrown error': get('/throw'),
  'a thrown error as JSON': get('/throw', ['Accept', 'application/json']),
  'a rejected promise': get('/reject'),
  'an error after the head': get('/late-throw'),
  'a stream that fails': get('/broken-stream'),
  'trailers of the framework': get('/trailers', ['TE', 'trailers']),
  'no such page': get('/nothing/here'),
  'no such method': { method: 'PUT', target: '/json', body: '{}', fields: [JSON_TYPE] },
  'an unusual method': { method: 'PROPFIND', target: '/json' },
  'OPTIONS': { method: 'OPTIONS', target: '/json' },
  'OPTIONS of everything': { method: 'OPTIONS', target: '*' },
  'HEAD of a text': { method: 'HEAD', target: '/' },
  'HEAD of JSON': { method: 'HEAD', target: '/json' },
  'HEAD of a stream': { method: 'HEAD', target: '/stream' },
  'HEAD of much': { method: 'HEAD', target: '/big' },
  'HEAD of nothing': { method: 'HEAD', target: '/nothing/here' },
  'a static file': get('/files/hello.txt'),
  'HEAD of a static file': { method: 'HEAD', target: '/files/hello.txt' },
  'a static page': get('/files/page.html'),
  'an index': get('/files/folder/'),
  'a folder': get('/files/folder'),
  'a hidden file': get('/files/.hidden'),
  'no such file': get('/files/none.txt'),
  'a path that climbs': get('/files/..%2f..%2fscript.cjs'),
  'a range': get('/files/numbers.txt', ['Range', 'bytes=5-99']),
  'a last range': get('/files/numbers.txt', ['Range', 'bytes=-7']),
  'a range beyond': get('/files/numbers.txt', ['Range', 'bytes=999999-']),
  'two ranges': get('/files/numbers.txt', ['Range', 'bytes=0-1,5-6']),
  'a large static file, compressed': get('/files/numbers.txt', ['Accept-Encoding', 'gzip']),
  'an old copy': get('/files/hello.txt', ['If-Modified-Since', 'Thu, 01 Jan 2015 00:00:00 GMT']),
  'a new copy': get('/files/hello.txt', ['If-Modified-Since', 'Thu, 01 Jan 2099 00:00:00 GMT']),
  'a precondition': get('/files/hello.txt', ['If-Unmodified-Since', 'Thu, 01 Jan 2015 00:00:00 GMT']),
  'another tag': get('/files/hello.txt', ['If-Match', '"nothing"']),
};

const FACTS = { fields: [['X-Odd-CASE', 'One'], ['x-twice', '1'], ['X-Twice', '2'], ['Accept', 'a/b'], ['Accept', 'c/d'], ['Cookie', 'a=1'], ['Cookie', 'b=2'], ['User-Agent', 'first'], ['User-Agent', 'second'], ['X-Latin', 'gr\u00fc\u00dfe'], ['X-Empty', '']] };

/** What Node's own objects say and do, wherever they are reached from. */
const NODE = {
  'what a request says': { target: '/node/facts?a=b&c=%20', ...FACTS },
  'what a request with a body says': { method: 'POST', target: '/node/facts', fields: [['Content-Type', 'text/x-own']], body: TEXT },
  'what a request with trailers says': { method: 'PUT', target: '/node/facts', fields: [['Trailer', 'X-Sum, X-Other'], ['Content-Type', 'text/x-own']], chunks: ['one', 'two'], trailers: [['X-Sum', '6'], ['x-sum', '7'], ['X-Other', 'y']] },
  'what a request without Host fields but one says': { target: '/node/facts', fields: [['Host', 'other.example.test:81']] },
  'a request for a whole URL': { target: 'http://example.test/node/facts?whole=yes', fields: [] },
  'a request with 12 KiB of fields': { target: '/node/facts', fields: Array.from({ length: 60 }, (_, index) => [`X-Long-${index}`, 'v'.repeat(180)]) },
  'a target of 6 KiB': { target: `/node/facts?${'q'.repeat(6_000)}` },
  'a head with a message of its own': scripted([['writeHead', 202, 'Taken With Thanks', { 'X-A': 'b' }], ['end', 'ok']]),
  'statusMessage': scripted([['set', 'statusCode', 404], ['set', 'statusMessage', 'Gone Fishing'], ['end']]),
  'an unusual status': scripted([['set', 'statusCode', 599], ['end', 'x']]),
  'an unknown status': scripted([['set', 'statusCode', 299], ['end', 'x']]),
  'a head as a list': scripted([['writeHead', 200, ['X-One', '1', 'x-one', '2', 'X-ODD-Case', '3']], ['end', 'x']]),
  'fields of every kind': scripted([['setHeader', 'X-List', ['a', 'b']], ['setHeader', 'x-lower', 'v'], ['setHeader', 'X-Number', 7], ['appendHeader', 'X-List', 'c'], ['setHeader', 'Set-Cookie', ['a=1', 'b=2']], ['end', 'x']]),
  'a field of several cases': scripted([['setHeader', 'X-Name', '1'], ['setHeader', 'x-NAME', '2'], ['end', 'x']]),
  'latin-1 in a field': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe \u00ff'], ['end', 'x']]),
  'latin-1 in a field before bytes': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe \u00ff'], ['end', { bytes: 'AAEC' }]]),
  'latin-1 in a field before pieces': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe'], ['write', 'x'], ['pause', 2], ['end', 'y']]),
  'latin-1 in a field that is flushed': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe'], ['flushHeaders'], ['pause', 2], ['end', 'y']]),
  'latin-1 in a field without a body': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe'], ['end']]),
  'latin-1 in a field of a HEAD': scripted([['setHeader', 'X-Latin', 'gr\u00fc\u00dfe'], ['end', 'x']], { method: 'HEAD' }),
  'an empty field': scripted([['setHeader', 'X-Empty', ''], ['end', 'x']]),
  'a field with spaces around': scripted([['setHeader', 'X-Spaces', '  a  '], ['end', 'x']]),
  '60 KiB of fields': scripted([...Array.from({ length: 5 }, (_, index) => ['setHeader', `X-Big-${index}`, { repeat: [String(index), 12_000] }]), ['end', 'x']]),
  'fields that were taken back': scripted([['setHeader', 'X-A', '1'], ['removeHeader', 'x-a'], ['removeHeader', 'date'], ['end', 'x']]),
  'no Date': scripted([['set', 'sendDate', false], ['end', 'x']]),
  'fields of the connection': scripted([['setHeader', 'Connection', 'keep-alive'], ['setHeader', 'Keep-Alive', 'timeout=99'], ['end', 'x']]),
  'Connection: close': scripted([['setHeader', 'Connection', 'close'], ['end', 'x']]),
  'chunks by hand': scripted([['setHeader', 'Transfer-Encoding', 'chunked'], ['write', 'a'], ['end', 'b']]),
  'a Server of its own': scripted([['setHeader', 'Server', 'mine'], ['setHeader', 'Via', '1.1 me'], ['setHeader', 'Alt-Svc', 'clear'], ['end', 'x']]),
  'a Date of its own': scripted([['setHeader', 'Date', 'Thu, 01 Jan 2015 00:00:00 GMT'], ['end', 'x']]),
  'a length by hand': scripted([['setHeader', 'Content-Length', 5], ['write', 'ab'], ['end', 'cde']]),
  'a length by hand with flushHeaders': scripted([['setHeader', 'Content-Length', '2'], ['flushHeaders'], ['pause', 3], ['end', 'ab']]),
  'a length that is too long': scripted([['setHeader', 'Content-Length', 9], ['end', 'short']]),
  'a length that is too short': scripted([['setHeader', 'Content-Length', 3], ['end', 'longer']]),
  'a strict length': scripted([['set', 'strictContentLength', true], ['setHeader', 'Content-Length', 3], ['try', 'end', 'longer'], ['try', 'end', 'abc']]),
  'a HEAD with a length': scripted([['setHeader', 'Content-Length', 1234], ['end']], { method: 'HEAD' }),
  'a HEAD with a body': scripted([['write', 'never sent'], ['end', 'neither']], { method: 'HEAD' }),
  'a 204 with a body': scripted([['writeHead', 204, { 'X-A': 'b' }], ['end', 'never sent']]),
  'a 304 with a body': scripted([['writeHead', 304, { ETag: '"x"', 'Content-Length': 10 }], ['end', 'never sent']]),
  'a 205 with a body': scripted([['writeHead', 205], ['end', 'sent']]),
  'a 204 with a length': scripted([['writeHead', 204, { 'Content-Length': 0 }], ['end']]),
  'an empty end': scripted([['end']]),
  'an empty write': scripted([['write', ''], ['end', '']]),
  'bytes': scripted([['end', { bytes: 'AAECA/8=' }]]),
  'text as latin-1': scripted([['write', 'gr\u00fc\u00dfe', 'latin1'], ['end', 'e9', 'hex']]),
  'text as UTF-16': scripted([['end', 'ab', 'utf16le']]),
  'pieces with pauses': scripted([['write', 'a'], ['pause', 3], ['write', 'b'], ['pause', 3], ['write', 'c'], ['end']]),
  'pieces held together': scripted([['cork'], ['write', 'a'], ['write', 'b'], ['uncork'], ['pause', 2], ['end', 'c']]),
  'many pieces': scripted(Array.from({ length: 200 }, (_, index) => ['write', `${index} `]).concat([['end', 'end']])),
  'flushHeaders': scripted([['setHeader', 'X-A', 'b'], ['flushHeaders'], ['pause', 5], ['end', 'later']]),
  'trailers': scripted([['setHeader', 'Trailer', 'X-Sum'], ['write', 'body'], ['addTrailers', { 'X-Sum': '7', 'x-odd': 'gr\u00fc' }], ['end']]),
  'trailers without a body': scripted([['writeHead', 200, { Trailer: 'X-Sum', 'Transfer-Encoding': 'chunked' }], ['addTrailers', [['X-Sum', '7'], ['X-Sum', '8']]], ['end']]),
  'trailers of an answer with a length': scripted([['setHeader', 'Content-Length', 1], ['addTrailers', { 'X-Sum': '7' }], ['end', 'x']]),
  'early hints': scripted([['writeEarlyHints', { link: ['</a.css>; rel=preload', '</b.js>; rel=preload'], 'x-trace': '1' }], ['pause', 2], ['end', 'x']]),
  'processing': scripted([['writeProcessing'], ['pause', 2], ['writeProcessing'], ['end', 'x']]),
  'early hints after the head': scripted([['flushHeaders'], ['try', 'writeEarlyHints', { link: '</a>; rel=preload' }], ['end', 'x']]),
  'a head that is set twice': scripted([['writeHead', 200], ['try', 'writeHead', 201], ['end', 'x']]),
  'a field after the head': scripted([['write', 'a'], ['try', 'setHeader', 'X-A', 'b'], ['end', 'x']]),
  'fields that are none': scripted([['try', 'setHeader', 'X A', 'b'], ['try', 'setHeader', 'X-A', 'b\r\nX-B: c'], ['try', 'setHeader', 'X-A', '\u20ac'], ['try', 'writeHead', 42], ['end', 'x']]),
  'what was read': scripted([['read'], ['end', 'read']], { method: 'POST', fields: [BYTES_TYPE], body: LARGE }),
  'what comes is sent back': scripted([['echo']], { method: 'POST', fields: [BYTES_TYPE], body: LARGE.subarray(0, 700_000) }),
  'what comes in chunks is sent back': scripted([['echo']], { method: 'POST', fields: [BYTES_TYPE], chunks: ['one', LARGE.subarray(0, 100_000), 'two'] }),
  'much that is piped': scripted([['pour', 3 * MIB]]),
  'much of known length that is piped': scripted([['setHeader', 'Content-Length', 3 * MIB], ['pour', 3 * MIB]]),
  'much that is written with drain': scripted([['fill', 2 * MIB], ['end']]),
  'an answer before the body was read': scripted([['end', 'early']], { method: 'POST', fields: [BYTES_TYPE], body: 'a short body' }),
  'callbacks': scripted([['callbacks', 'a', 'b']]),
};


/** Cases with more than one request, or that are more than a request. */
const TALKS = {
  'requests in one write': async (wire) => {
    const targets = ['/', '/json', '/users/1?n=1', '/stream', '/nothing', '/node/facts', '/'];
    wire.write(Buffer.concat(targets.map((target) => bytesOf({ target }))));
    return answersOf(wire, targets);
  },
  'bodies in one write': async (wire) => {
    const requests = [post('/json', '{"n":1}', JSON_TYPE), get('/'), post('/form', 'n=2', FORM_TYPE), post('/sum', 'three', BYTES_TYPE), get('/empty'), get('/json')];
    wire.write(Buffer.concat(requests.map(bytesOf)));
    return answersOf(wire, requests);
  },
  'a slow answer before a quick one': async (wire) => {
    wire.write(Buffer.concat([scripted([['pause', 30], ['end', 'slow']]), scripted([['end', 'quick']]), scripted([['write', 'b'], ['pause', 10], ['end', 'oth']])].map(bytesOf)));
    return answersOf(wire, [1, 2, 3]);
  },
  'what requests in one write store': async (wire) => {
    wire.write(Buffer.concat([1, 2, 3, 4].map((id) => bytesOf({ target: `/node/store?id=${id}` }))));
    return answersOf(wire, [1, 2, 3, 4]);
  },
  'what requests after each other store': async (wire) => {
    const answers = [];
    for (const id of [5, 6]) {
      wire.write(bytesOf({ target: `/node/store?id=${id}` }));
      answers.push(await wire.answer());
    }
    return answers;
  },
  'a request that comes byte by byte': async (wire) => {
    const bytes = bytesOf(post('/json', '{"slow":true}', JSON_TYPE));
    for (let place = 0; place < bytes.length; place += 7) {
      wire.write(bytes.subarray(place, place + 7));
      await new Promise(setImmediate);
    }
    return [await wire.answer()];
  },
  'a body that comes slowly': async (wire) => {
    const bytes = bytesOf({ method: 'POST', target: '/sum', fields: [BYTES_TYPE], body: Buffer.alloc(3_000, 'x') });
    for (let place = 0; place < bytes.length; place += 500) {
      wire.write(bytes.subarray(place, place + 500));
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    return [await wire.answer()];
  },
  'Expect: 100-continue': async (wire) => {
    wire.write(bytesOf({ method: 'POST', target: '/sum', fields: [BYTES_TYPE, ['Expect', '100-continue'], ['Content-Length', '5']] }));
    const interim = await wire.interim();
    wire.write('hello');
    const answer = await wire.answer();
    return [{ ...answer, interim: [interim, ...answer.interim] }];
  },
  'Expect: 100-continue that is refused': async (wire) => {
    wire.write(bytesOf({ method: 'POST', target: '/sum', fields: [BYTES_TYPE, ['Expect', '100-continue'], ['X-Refuse', '1'], ['Content-Length', '5']] }));
    const first = await wire.answer();
    return [first];
  },
  'Expect: 100-continue with the body at once': async (wire) => {
    wire.write(bytesOf({ method: 'POST', target: '/sum', fields: [BYTES_TYPE, ['Expect', '100-continue']], body: 'hello' }));
    const answer = await wire.answer('POST');
    return [answer];
  },
  'another expectation': async (wire) => {
    wire.write(bytesOf({ method: 'POST', target: '/sum', fields: [BYTES_TYPE, ['Expect', 'miracles']], body: 'hello' }));
    return [await wire.answer('POST')];
  },
  'HTTP/1.0': async (wire) => {
    wire.write('GET /json HTTP/1.0\r\nHost: example.test\r\n\r\n');
    return [await wire.answer()];
  },
  'a stream for HTTP/1.0': async (wire) => {
    wire.write('GET /stream HTTP/1.0\r\nHost: example.test\r\n\r\n');
    return [await wire.answer()];
  },
  'facts for HTTP/1.0': async (wire) => {
    wire.write('GET /node/facts HTTP/1.0\r\nHost: example.test\r\n\r\n');
    return [await wire.answer()];
  },
  'Connection: close of the client': async (wire) => {
    wire.write(bytesOf({ target: '/node/facts', fields: [['Connection', 'close']] }));
    return [await wire.answer()];
  },
  'a WebSocket': (wire) => webSocket(wire, '/socket'),
  'a WebSocket with a head behind it': (wire) => webSocket(wire, '/socket', { together: true }),
  'a WebSocket where none is': (wire) => webSocket(wire, '/nowhere'),
  'another upgrade': async (wire) => {
    wire.write(bytesOf({ target: '/json', fields: [['Connection', 'Upgrade'], ['Upgrade', 'telnet']] }));
    return [await wire.answer()];
  },
};

async function answersOf(wire, requests) {
  const answers = [];
  for (let place = 0; place < requests.length; place += 1) answers.push(await wire.answer());
  return answers;
}

/** A handshake, a text, a long message, a ping and a close; what comes back is compared byte by byte. */
async function webSocket(wire, target, { together = false } = {}) {
  const handshake = bytesOf({ target, fields: [['Connection', 'Upgrade'], ['Upgrade', 'websocket'], ['Sec-WebSocket-Version', '13'], ['Sec-WebSocket-Key', 'AAECAwQFBgcICQoLDA0ODw==']] });
  const messages = ['hello', 'x'.repeat(70_000)].map((data) => Buffer.from(JSON.stringify({ event: 'echo', data })));
  const first = frame(1, messages[0]);
  wire.write(together ? Buffer.concat([handshake, first]) : handshake);
  const answer = await wire.answer();
  if (answer.status !== 101) return [answer];
  if (!together) wire.write(first);
  const parts = [await wire.bytes(2 + messages[0].length)];
  wire.write(frame(1, messages[1]));
  parts.push(await wire.bytes(10 + messages[1].length));
  wire.write(frame(9, Buffer.from('ping')));
  parts.push(await wire.bytes(6));
  wire.write(frame(8, Buffer.from([3, 232])));
  parts.push(await wire.bytes());
  return [{ ...answer, body: Buffer.concat(parts) }];
}

/** A masked frame, as clients send them. */
function frame(code, content) {
  const length = content.length < 126 ? [0x80 | content.length] : content.length < 65_536 ? [0xfe, content.length >> 8, content.length & 255] : [0xff, 0, 0, 0, 0, 0, content.length >> 16, (content.length >> 8) & 255, content.length & 255];
  return Buffer.concat([Buffer.from([0x80 | code, ...length, 0, 0, 0, 0]), content]);
}

/** Answers that do not come, or not as a whole, by Node alone: nobody waits long for them. */
const NEVER = new Set(['a length that is too long', 'a strict length', 'Expect: 100-continue that is refused', 'another upgrade', 'an error after the head', 'early hints after the head']);
const NEVER_MS = 700;

/** Every case: its name, how it is asked on a connection of its own, and the request where it is no more than one. */
export const CASES = [
  ...Object.entries({ ...ROUTES, ...NODE }).map(([name, request]) => ({
    name,
    request,
    ask: async (wire) => {
      wire.write(bytesOf(request));
      return [await wire.answer(request.method)];
    },
  })),
  ...Object.entries(TALKS).map(([name, ask]) => ({ name, ask })),
].map((one) => ({ ...one, patience: NEVER.has(one.name) ? NEVER_MS : undefined }));
