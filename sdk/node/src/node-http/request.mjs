/**
 * Fills Node's own IncomingMessage with what a REQUEST says, through the calls that Node's parser uses.
 */
import { authority, clientAddress, FACT, fieldsAt, method, ownText, target } from '../fetch/head.mjs';
import { INTERNED, INTERNED_BYTE_MIN, LOWER } from '../fetch/names.mjs';

/** Where a REQUEST gives the body's length, and what stands there when it is not known. */
const LENGTH_AT = 32;
const UNKNOWN_LENGTH = '\xff'.repeat(8);
const LOWER_CASE_BIT = 0x40;
const NUMBER_BITS = 0x3f;
/**
 * A slice keeps the text that it was cut from alive, here the whole head. Heads up to this many characters may stay;
 * of longer ones, which a client could make to fill memory, each value becomes a text of its own.
 */
const KEPT_HEAD_CHARACTERS_MAX = 4096;

/** Characters of `X-Forwarded-For`, the shortest of the names that are added. */
const FORWARDED_CHARACTERS_MIN = 15;
const LETTER_X = 0x78;

/** Fields of a request that an application sees where its server says nothing else, as with Node alone. */
const FIELDS_MAX = 2000;

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {string} head the REQUEST's fixed part and head block
 * @param {number|null} fieldsMax the server's `maxHeadersCount`; 0 is no bound
 */
export function fill(request, head, fieldsMax) {
  const facts = head.charCodeAt(1);
  const isOld = (facts & FACT.http10) !== 0;
  const own = head.length > KEPT_HEAD_CHARACTERS_MAX ? ownText : asIs;
  request.httpVersionMajor = 1;
  request.httpVersionMinor = isOld ? 0 : 1;
  request.httpVersion = isOld ? '1.0' : '1.1';
  request.url = own(target(head));
  const list = fieldList(head, fieldsAt(head), own);
  // The server acts on these itself and does not pass them on; an application that looks finds what was sent.
  if ((facts & FACT.expects) !== 0) list.push('Expect', '100-continue');
  if ((facts & FACT.upgrade) !== 0) list.push('Connection', 'Upgrade');
  // Framing is the server's, and yet how body parsers (`type-is`) see that there is a body.
  if (head.startsWith(UNKNOWN_LENGTH, LENGTH_AT)) list.push('Transfer-Encoding', 'chunked');
  addForwarded(list, head, own);
  const count = 2 * (fieldsMax ?? FIELDS_MAX);
  if (count > 0 && list.length > count) list.length = count;
  request._addHeaderLines(list, list.length);
  request.method = own(method(head));
}

/**
 * The fields of a head block from `at` on as Node keeps raw headers: name, value, name, value.
 * @param {string} block @param {number} at @param {(text: string) => string} own
 */
export function fieldList(block, at, own = asIs) {
  const list = [];
  while (at < block.length) {
    const end = block.indexOf('\n', at);
    const first = block.charCodeAt(at);
    if (first >= INTERNED_BYTE_MIN) {
      list.push((first & LOWER_CASE_BIT) === 0 ? INTERNED[first & NUMBER_BITS] : LOWER[first & NUMBER_BITS]);
      list.push(own(block.slice(at + 1, end)));
    } else {
      const colon = block.indexOf(':', at);
      list.push(own(block.slice(at, colon)), own(block.slice(colon + 1, end)));
    }
    at = end + 1;
  }
  return list;
}

/**
 * Adds what a proxy in front of the application would say of its client: applications that were behind one read it. What a
 * trusted proxy said already stays as it came.
 * @param {string[]} list @param {string} head @param {(text: string) => string} own
 */
function addForwarded(list, head, own) {
  let known = 0;
  for (let at = list.length - 2; at >= 0; at -= 2) {
    const name = list[at];
    if (name.length >= FORWARDED_CHARACTERS_MIN && (name.charCodeAt(0) | 0x20) === LETTER_X) known |= forwarded(name);
  }
  const client = (known & 1) === 0 ? clientAddress(head) : null;
  if (client !== null) list.push('X-Forwarded-For', client.address);
  if ((known & 2) === 0) list.push('X-Forwarded-Proto', (head.charCodeAt(1) & FACT.tls) === 0 ? 'http' : 'https');
  const host = (known & 4) === 0 ? authority(head) : '';
  if (host !== '') list.push('X-Forwarded-Host', own(host));
}

/** Which of the fields that are added this is, as a bit. */
function forwarded(name) {
  const lower = name.toLowerCase();
  if (lower === 'x-forwarded-for') return 1;
  if (lower === 'x-forwarded-proto') return 2;
  return lower === 'x-forwarded-host' ? 4 : 0;
}

function asIs(text) {
  return text;
}
