import assert from 'node:assert/strict';
import test from 'node:test';
import { alone, framed } from './both-ways.mjs';

const MANY = Array.from({ length: 60 }, (_, number) => `v${number}=${'x'.repeat(900)}`);

/** What listeners do with a response, and with which request. */
const CASES = [
  ['nothing but end', (q, s) => s.end()],
  ['a text', (q, s) => s.end('text')],
  ['a text that is no ASCII', (q, s) => s.end('äöü €')],
  ['a text in Latin-1', (q, s) => s.end('äöü', 'latin1')],
  ['a text in hexadecimal', (q, s) => s.end('68656c6c6f', 'hex')],
  ['bytes', (q, s) => s.end(Buffer.from([0, 255, 10, 13]))],
  ['an array of bytes', (q, s) => s.end(new Uint8Array([1, 2, 3]))],
  ['pieces', (q, s) => { s.write('a'); s.write(Buffer.from('b')); s.end('c'); }],
  ['pieces later', (q, s) => { s.write('a'); setImmediate(() => { s.write('b'); setImmediate(() => s.end()); }); }],
  ['a piece in another encoding', (q, s) => { s.write('YQ==', 'base64'); s.end('ff', 'hex'); }],
  ['an empty piece', (q, s) => { s.write(''); s.end('x'); }],
  ['flushed headers', (q, s) => { s.setHeader('A', '1'); s.flushHeaders(); setImmediate(() => s.end('x')); }],
  ['a status and a reason', (q, s) => { s.statusCode = 418; s.statusMessage = 'Tea'; s.end(); }],
  ['writeHead with an object', (q, s) => { s.writeHead(201, { 'X-Case': 'a', 'x-lower': 'b' }); s.end('x'); }],
  ['writeHead with a reason', (q, s) => { s.writeHead(404, 'No', { A: '1' }); s.end('x'); }],
  ['writeHead with a list', (q, s) => { s.writeHead(200, ['A', '1', 'A', '2', 'B', '3']); s.end('x'); }],
  ['writeHead after setHeader', (q, s) => { s.setHeader('A', '1'); s.setHeader('B', '2'); s.writeHead(200, { a: '3' }); s.end(); }],
  ['writeHead with a list after setHeader', (q, s) => { s.setHeader('A', '1'); s.writeHead(200, ['A', '2', 'C', '3']); s.end(); }],
  ['writeHead twice', (q, s) => { s.writeHead(200); try { s.writeHead(201); } catch (e) { s.end(e.code); } }],
  ['a field too late', (q, s) => { s.write('x'); try { s.setHeader('A', '1'); } catch (e) { s.end(e.code); } }],
  ['several values', (q, s) => { s.setHeader('Set-Cookie', ['a=1', 'b=2']); s.setHeader('X', ['1', '2']); s.end(); }],
  ['appended values', (q, s) => { s.appendHeader('Set-Cookie', 'a=1'); s.appendHeader('Set-Cookie', 'b=2'); s.end(); }],
  ['several cookies of a request field', (q, s) => { s.setHeader('Cookie', ['a', 'b']); s.end(); }],
  ['a number as a value', (q, s) => { s.setHeader('X-Number', 5); s.end(); }],
  ['Latin-1 in a value', (q, s) => { s.setHeader('X-Latin', 'caf\xe9'); s.end(); }],
  ['an empty value', (q, s) => { s.setHeader('X-Empty', ''); s.end('x'); }],
  ['60 KiB of fields', (q, s) => { s.setHeader('Set-Cookie', MANY); s.end('x'); }],
  ['a value that is refused', (q, s) => { try { s.setHeader('X', 'a\nb'); } catch (e) { s.end(e.code); } }],
  ['a value that writeHead refuses', (q, s) => { try { s.writeHead(200, { X: 'a\rb' }); } catch (e) { s.end(e.code); } }],
  ['a name that writeHead refuses', (q, s) => { try { s.writeHead(200, { 'a b': '1' }); } catch (e) { s.end(e.code); } }],
  ['a field without a value', (q, s) => { try { s.setHeader('X', undefined); } catch (e) { s.end(e.code); } }],
  ['a removed field', (q, s) => { s.setHeader('A', '1'); s.removeHeader('a'); s.end(String(s.hasHeader('A'))); }],
  ['setHeaders of a Map', (q, s) => { s.setHeaders(new Map([['A', '1'], ['B', '2']])); s.end(); }],
  ['a length by hand', (q, s) => { s.setHeader('Content-Length', 4); s.end('text'); }],
  ['a length by hand in pieces', (q, s) => { s.setHeader('Content-Length', '4'); s.write('te'); s.end('xt'); }],
  ['no length', (q, s) => { s.removeHeader('Content-Length'); s.end('text'); }],
  ['chunks by hand', (q, s) => { s.setHeader('Transfer-Encoding', 'chunked'); s.end('text'); }],
  ['no framing at all', (q, s) => { s.removeHeader('Transfer-Encoding'); s.write('x'); s.end(); }],
  ['strict about its length', (q, s) => { s.strictContentLength = true; s.setHeader('Content-Length', 4); s.write('te'); s.end('xt'); }],
  ['a connection that is to close', (q, s) => { s.setHeader('Connection', 'close'); s.end('x'); }],
  ['a date of its own', (q, s) => { s.setHeader('Date', 'now'); s.end('x'); }],
  ['204', (q, s) => { s.statusCode = 204; s.end(); }],
  ['204 with a body', (q, s) => { s.statusCode = 204; s.end('x'); }],
  ['205', (q, s) => { s.statusCode = 205; s.end(); }],
  ['304', (q, s) => { s.statusCode = 304; s.setHeader('ETag', '"a"'); s.end(); }],
  ['304 with a length', (q, s) => { s.writeHead(304, { 'Content-Length': '5' }); s.end(); }],
  ['304 with a body', (q, s) => { s.statusCode = 304; s.end('x'); }],
  ['HEAD', (q, s) => { s.setHeader('A', '1'); s.end('body'); }, { method: 'HEAD' }],
  ['HEAD with a length', (q, s) => { s.setHeader('Content-Length', '7'); s.end(); }, { method: 'HEAD' }],
  ['HEAD in pieces', (q, s) => { s.write('a'); s.end('b'); }, { method: 'HEAD' }],
  ['trailers', (q, s) => { s.setHeader('Trailer', 'X-T'); s.write('a'); s.addTrailers({ 'X-T': 'b', 'X-U': ['1', '2'] }); s.end(); }],
  ['trailers of an answer with a length', (q, s) => { s.setHeader('Content-Length', '1'); s.addTrailers({ 'X-T': 'b' }); s.end('a'); }],
  ['announced trailers that cannot be', (q, s) => { s.setHeader('Trailer', 'X-T'); s.setHeader('Content-Length', '1'); try { s.writeHead(200); } catch (e) { s.removeHeader('Trailer'); s.end(e.code.slice(0, 1)); } }],
  ['a disposition in UTF-8', (q, s) => { s.setHeader('Content-Disposition', `attachment; filename="${Buffer.from('é').latin1Slice()}"`); s.setHeader('Content-Length', '1'); s.end('x'); }],
  ['a disposition before bytes', (q, s) => { s.setHeader('Content-Disposition', `inline; filename="${Buffer.from('é€').latin1Slice()}"`); s.end(Buffer.from('x')); }],
  ['Latin-1 in a value before a text', (q, s) => { s.setHeader('X-Latin', 'caf\xe9'); s.end('x'); }],
  ['Latin-1 in a value before bytes', (q, s) => { s.setHeader('X-Latin', 'caf\xe9'); s.end(Buffer.from('x')); }],
  ['Latin-1 in a value before a text in Latin-1', (q, s) => { s.setHeader('X-Latin', 'caf\xe9'); s.end('x', 'latin1'); }],
  ['early hints', (q, s) => { s.writeEarlyHints({ link: ['</a.css>; rel=preload', '</b.js>; rel=preload'], 'x-id': '1' }); s.end('x'); }],
  ['processing', (q, s) => { s.writeProcessing(); s.end('x'); }],
  ['cork', (q, s) => { s.cork(); s.write('a'); s.write('b'); s.uncork(); s.end('c'); }],
  // Node 22 and 24 write the last chunk before what was corked.
  ...(process.versions.node.startsWith('20.') ? [['cork that nobody takes away', (q, s) => { s.cork(); s.write('a'); s.write('b'); s.end('c'); }]] : []),
  ['end twice', (q, s) => { s.end('a'); s.end(); }],
  ['a big body', (q, s) => s.end('x'.repeat(200_000))],
  ['big bytes', (q, s) => s.end(Buffer.alloc(200_000, 7))],
  ['the body of the request', (q, s) => q.pipe(s), { method: 'POST', body: 'hello' }],
  ['a body that nobody reads', (q, s) => s.end('x'), { method: 'POST', body: 'hello' }],
  ['a body read later', (q, s) => setImmediate(async () => { let t = ''; for await (const p of q) t += p; s.end(t); }), { method: 'PUT', body: 'later' }],
  ['what the request is', (q, s) => s.end(JSON.stringify([q.method, q.url, q.httpVersion, q.headers.host, q.headers['x-a'], q.headersDistinct['x-a']])), { target: '/a?b=%20', fields: [['X-A', '1'], ['x-a', '2']] }],
  ['fields that Node joins and those it drops', (q, s) => s.end(JSON.stringify([q.headers.cookie, q.headers['user-agent'], q.headers.accept])), { fields: [['Cookie', 'a=1'], ['Cookie', 'b=2'], ['User-Agent', 'one'], ['User-Agent', 'two'], ['Accept', 'a'], ['Accept', 'b']] }],
  ['raw fields', (q, s) => s.end(JSON.stringify(q.rawHeaders.filter((_, at) => q.rawHeaders[at - (at % 2)].match(/^X-(One|Two)$/)))), { fields: [['X-One', 'a'], ['X-Two', 'caf\xe9']] }],
  ['a method of its own', (q, s) => s.end(q.method), { method: 'PROPFIND' }],
  ['DELETE with a body', (q, s) => q.pipe(s), { method: 'DELETE', body: 'gone' }],
  ['fields that are joined', (q, s) => { s.setHeader('X-Unique', ['a', 'b']); s.end(); }, { options: { uniqueHeaders: ['x-unique'] } }],
  ['duplicates that are joined', (q, s) => s.end(q.headers['user-agent']), { fields: [['User-Agent', 'one'], ['User-Agent', 'two']], options: { joinDuplicateHeaders: true } }],
  ['a rejected body', (q, s) => { s.statusCode = 204; try { s.end('x'); } catch (e) { s.setHeader; s.end(); } }, { options: { rejectNonStandardBodyWrites: true } }],
  ['an answer that is broken off', (q, s) => { s.writeHead(200, { 'Content-Length': '10' }); s.write('x'); setImmediate(() => s.destroy()); }],
  ['an answer by hand', (q, s) => s.socket.write('HTTP/1.1 202 Accepted\r\nX-A: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi', () => s.socket.end())],
  ['chunks by hand on the socket', (q, s) => { s.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'); s.socket.end('3\r\nfoo\r\n3\r\nbar\r\n0\r\n\r\n'); }],
  ['more bytes than its length', (q, s) => { s.setHeader('Content-Length', 3); s.write(Buffer.from('ab')); s.write('cde'); s.end('f'); }],
  ['a null for a piece', (q, s) => { try { s.write(null); } catch (e) { s.end(e.code); } }],
  ['a number for a piece', (q, s) => { try { s.write(5); } catch (e) { s.end(e.code); } }],
];

for (const [name, listener, request] of CASES) {
  test(`over frames as with Node alone: ${name}`, async () => {
    const [expected, found] = [await alone(listener, request), await framed(listener, request)];
    assert.deepEqual(found, expected);
  });
}

/** What must not cost more than this one request, whatever becomes of it. */
const HARMLESS = [
  ['an answer by hand after the head has left', (q, s) => { s.writeHead(200); s.write('part'); setImmediate(() => s.socket?.end('HTTP/1.1 500 No\r\n\r\n')); }],
  ['an answer after one by hand', (q, s) => { s.socket.write('HTTP/1.1 200 OK\r\n\r\nhello'); setImmediate(() => s.end('x')); }],
  ['a head that is taken back', (q, s) => { s.write('x'); setImmediate(() => { s._header = null; s.writeHead(500); s.end(); }); }],
  ['a hundred interim answers', (q, s) => { for (let n = 0; n < 100; n += 1) s.writeProcessing(); s.end('x'); }],
  ['hints of 100 KiB', (q, s) => { s.writeEarlyHints({ link: '</a>; rel=preload', 'x-big': 'x'.repeat(100_000) }); s.end('x'); }],
  ['trailers of 100 KiB', (q, s) => { s.write('x'); s.addTrailers({ 'X-T': 'x'.repeat(100_000) }); s.end(); }],
  ['300 trailers', (q, s) => { s.write('x'); s.addTrailers(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`X-${n}`, 'x']))); s.end(); }],
  ['300 fields', (q, s) => { s.setHeader('X', Array.from({ length: 300 }, () => 'x')); s.end('x'); }],
  ['100 KiB of fields', (q, s) => { s.setHeader('X', 'x'.repeat(100_000)); s.end('x'); }],
  ['a final status of 1xx', (q, s) => { s.statusCode = 102; s.end(); }],
  ['a status of 1xx by hand', (q, s) => s.socket.end('HTTP/1.1 099 No\r\n\r\n')],
];

for (const [name, listener, request] of HARMLESS) {
  test(`one request alone pays for ${name}`, async () => {
    const found = await framed(listener, request, true);
    assert.ok(found.informational.length <= 16);
    assert.ok(JSON.stringify(found.trailers).length < 65_536);
    // An answer has one head, and either an end or a reset.
    assert.ok(found.heads <= 1, `${found.heads} heads`);
    assert.ok(found.status === 0 || (found.status >= 200 && found.status <= 999), String(found.status));
  });
}

test('a callback of an empty piece is called', async () => {
  const found = await framed((q, s) => s.write('', () => s.end('called')));
  assert.equal(found.body.toString(), 'called');
});

test('a socket that was written to by hand says when it takes more', async () => {
  const found = await framed((q, s) => {
    s.socket.write('HTTP/1.1 200 OK\r\n\r\n');
    assert.equal(s.socket.write(Buffer.alloc(100_000)), false);
    s.socket.once('drain', () => s.socket.end('more'));
  });
  assert.equal(found.body.length, 100_004);
});

test('a hundred thousand rows that are written one by one go out in few frames and in no time', async () => {
  const row = 'a row of a table\n';
  const begun = performance.now();
  const found = await framed((q, s) => {
    for (let number = 0; number < 100_000; number += 1) s.write(row);
    s.end();
  });
  assert.equal(found.body.length, 100_000 * row.length);
  assert.ok(performance.now() - begun < 20_000);
});
