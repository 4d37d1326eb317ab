// What the routes answer with, the same in every framework.

'use strict';

const { createHash } = require('node:crypto');
const { join } = require('node:path');

exports.FILES = join(__dirname, 'files');
exports.DATA = { text: 'grüße', list: [1, 2, 3], nested: { yes: true } };
exports.LONG_TEXT = 'A line that is worth compressing.\n'.repeat(400);
exports.BIG = Buffer.alloc(2 << 20, '0123456789abcdef');
exports.PIECES = ['first\n', 'second\n', 'third\n', 'fourth\n'];
exports.EVENTS = ['event: greeting\ndata: hello\n\n', ': a comment\n\n', 'id: 7\ndata: two\ndata: lines\n\n'];
exports.COOKIES = ['session=abc; Path=/; HttpOnly', 'theme=dark; Max-Age=60', 'old=; Expires=Thu, 01 Jan 1970 00:00:00 GMT'];
/** Fields of about 60 KiB together, and many small ones. */
exports.BIG_FIELDS = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`X-Big-${index}`, String(index).repeat(10_000)]));
exports.MANY_FIELDS = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`X-Many-${index}`, `value ${index}`]));

exports.rest = () => new Promise((resolve) => setTimeout(resolve, 4));
exports.digest = (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);
