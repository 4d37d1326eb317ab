// Headers over a head block: a look-alike of the platform's Headers that reads single fields straight from the
// block and takes it apart only when it must. Owns the order, joining and checking of fields. Whatever is wrong or
// unusual is given to a Headers object of the platform, whose errors are then ours.

import { ownText } from './head.mjs';
import { INTERNED_BYTE_MIN, LOWER, nameOf } from './names.mjs';
import { PlatformHeaders, borrowMembers, emptyHeaders, immutableHeaders, likePlatform, refuseCloning } from './platform.mjs';

/** What is not in nearly every value: beyond a byte, or a control character. */
const UNUSUAL_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Fetch standard, "header value": no NUL, CR or LF; nothing beyond a byte. */
const BAD_VALUE = /[\0\r\n\u0100-\uffff]/;

/** RFC 9110 section 5.5 knows no such value, and the worker protocol carries none; the fetch standard allows it. */
const CONTROL = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/;

/** True once any value with a control character was seen: only then is a block searched for one. */
let mayHaveControls = false;

/** HTTP whitespace at either end, which the standard takes off. */
const BLANK_ENDS = /^[\t\n\r ]+|[\t\n\r ]+$/g;

/** Highest character that BLANK_ENDS takes off. */
const BLANK_MAX = 0x20;

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Says to the constructor that the caller is this module. */
const INSIDE = Symbol('inside');

/** A Headers object over a head block. It has the platform's prototype behind its own. */
class FieldHeaders {
  /** The block, or a string that has it at its end. @type {string} */
  #block;
  /** Where the block begins in #block. */
  #at;
  /** True where single names cannot be found by their interned character. */
  #unsure;
  /** True where nobody may change the fields. */
  #immutable;
  /** Lower-case names in the order of the block, null until the block is taken apart. @type {string[] | null} */
  #names = null;
  /** The values that belong to #names. @type {string[]} */
  #values = [];
  /** Goes up with each change, so that iterators know that theirs is an old list. */
  #version = 0;

  /**
   * @param {symbol} inside
   * @param {string} block
   * @param {number} at
   * @param {boolean} unsure
   * @param {boolean} immutable
   */
  constructor(inside, block, at, unsure, immutable) {
    if (inside !== INSIDE) throw new TypeError('Illegal constructor');
    this.#block = block;
    this.#at = at;
    this.#unsure = unsure;
    this.#immutable = immutable;
    refuseCloning?.(this);
  }

  /** @param {string} name */
  get(name) {
    if (!(#block in this)) return PlatformHeaders.prototype.get.apply(this, arguments);
    const known = nameOf(name);
    if (known === undefined) {
      emptyHeaders.get(...arguments);
      return this.get(`${name}`);
    }
    if (this.#names === null) {
      if (known.titled !== '' && !this.#unsure) return this.#find(known);
      this.#takeApart();
    }
    return this.#join(known.lower);
  }

  /** @param {string} name */
  has(name) {
    if (!(#block in this)) return PlatformHeaders.prototype.has.apply(this, arguments);
    if (nameOf(name) === undefined) {
      emptyHeaders.has(...arguments);
      name = `${name}`;
    }
    return this.get(name) !== null;
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  append(name, value) {
    if (!(#block in this)) return PlatformHeaders.prototype.append.apply(this, arguments);
    const [lower, checked] = this.#check('append', arguments);
    this.#names?.push(lower);
    this.#values.push(checked);
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  set(name, value) {
    if (!(#block in this)) return PlatformHeaders.prototype.set.apply(this, arguments);
    const [lower, checked] = this.#check('set', arguments);
    const names = /** @type {string[]} */ (this.#names);
    const first = names.indexOf(lower);
    if (first < 0) {
      names.push(lower);
      this.#values.push(checked);
      return;
    }
    this.#values[first] = checked;
    this.#remove(lower, first + 1);
  }

  /** @param {string} name */
  delete(name) {
    if (!(#block in this)) return PlatformHeaders.prototype.delete.apply(this, arguments);
    let known = nameOf(name);
    if (known === undefined || this.#immutable) {
      (this.#immutable ? immutableHeaders : emptyHeaders).delete(...arguments);
      known = nameOf(`${name}`);
    }
    if (this.#names === null) this.#takeApart();
    this.#version++;
    this.#remove(/** @type {import('./names.mjs').Name} */ (known).lower, 0);
  }

  getSetCookie() {
    if (!(#block in this)) return PlatformHeaders.prototype.getSetCookie.apply(this, arguments);
    if (this.#names === null) this.#takeApart();
    return this.#values.filter((_, place) => /** @type {string[]} */ (this.#names)[place] === 'set-cookie');
  }

  keys() {
    if (!(#block in this)) return PlatformHeaders.prototype.keys.apply(this, arguments);
    return new FieldIterator(this, 0);
  }

  values() {
    if (!(#block in this)) return PlatformHeaders.prototype.values.apply(this, arguments);
    return new FieldIterator(this, 1);
  }

  entries() {
    if (!(#block in this)) return PlatformHeaders.prototype.entries.apply(this, arguments);
    return new FieldIterator(this, 2);
  }

  /**
   * @param {(value: string, name: string, headers: any) => void} callback
   * @param {any} [thisArgument]
   */
  forEach(callback, thisArgument) {
    if (!(#block in this)) return PlatformHeaders.prototype.forEach.apply(this, arguments);
    if (typeof callback !== 'function') return emptyHeaders.forEach(...arguments);
    for (const [name, value] of this.entries()) callback.call(thisArgument, value, name, this);
  }

  /**
   * @param {number} depth
   * @param {any} options
   */
  [INSPECT](depth, options) {
    const copy = #block in this ? new PlatformHeaders(/** @type {any} */ (this)) : this;
    return PlatformHeaders.prototype[INSPECT]?.call(copy, depth, options) ?? copy;
  }

  /** The value or joined values of an interned name, read from the block. @param {import('./names.mjs').Name} name */
  #find(name) {
    const titled = this.#seek(name.titled, this.#at);
    const lower = this.#seek(name.record, this.#at);
    if (titled < 0 && lower < 0) return null;
    const first = titled < 0 ? lower : titled;
    if ((titled >= 0 && lower >= 0) || this.#seek(titled < 0 ? name.record : name.titled, first + 1) >= 0) {
      this.#takeApart();
      return this.#join(name.lower);
    }
    return ownText(this.#block.slice(first + 1, this.#block.indexOf('\n', first)));
  }

  /**
   * Where a record begins with this character. One search for a single character is what the engine does fastest;
   * the same character in a value is told apart by what stands before it.
   * @param {string} character
   * @param {number} from
   */
  #seek(character, from) {
    let at = this.#block.indexOf(character, from);
    while (at > this.#at && this.#block.charCodeAt(at - 1) !== 10) at = this.#block.indexOf(character, at + 1);
    return at;
  }

  #takeApart() {
    const block = this.#block;
    /** @type {string[]} */
    const names = [];
    for (let at = this.#at; at < block.length; ) {
      const end = block.indexOf('\n', at);
      if (end < 0) break;
      const first = block.charCodeAt(at);
      if (first >= INTERNED_BYTE_MIN) {
        names.push(LOWER[first & 0x3f]);
        this.#values.push(block.slice(at + 1, end));
      } else {
        const colon = block.indexOf(':', at);
        const spelling = block.slice(at, colon);
        names.push(nameOf(spelling)?.lower ?? spelling.toLowerCase());
        this.#values.push(block.slice(colon + 1, end));
      }
      at = end + 1;
    }
    this.#names = names;
  }

  /** @param {string} lower */
  #join(lower) {
    const names = /** @type {string[]} */ (this.#names);
    let joined = null;
    for (let place = 0; place < names.length; place++) {
      if (names[place] !== lower) continue;
      const value = this.#values[place];
      if (joined === null) joined = value;
      else joined += (lower === 'cookie' ? '; ' : ', ') + value;
    }
    // Only single values are made independent: who keeps all fields keeps about the head's size anyway.
    return joined === null ? null : ownText(joined);
  }

  /**
   * @param {string} lower
   * @param {number} from
   */
  #remove(lower, from) {
    const names = /** @type {string[]} */ (this.#names);
    for (let place = names.length - 1; place >= from; place--) {
      if (names[place] !== lower) continue;
      names.splice(place, 1);
      this.#values.splice(place, 1);
    }
  }

  /**
   * The lower-case name and the checked value of a change; throws as the platform does.
   * @param {'append' | 'set'} change
   * @param {IArguments} given
   * @returns {[string, string]}
   */
  #check(change, given) {
    if (this.#immutable) immutableHeaders[change](...given);
    const name = nameOf(given[0]);
    const value = given.length < 2 ? undefined : plainValue(given[1]);
    if (this.#names === null) this.#takeApart();
    this.#version++;
    if (name !== undefined && value !== undefined) return [name.lower, value];
    const platform = new PlatformHeaders();
    platform[change](...given);
    const [field] = platform;
    mayHaveControls ||= CONTROL.test(field[1]);
    return /** @type {[string, string]} */ (field);
  }

  /** The fields as the standard wants to see them: sorted, joined, each Set-Cookie alone. @returns {[string, string][]} */
  static sorted(headers) {
    if (headers.#names === null) headers.#takeApart();
    const names = /** @type {string[]} */ (headers.#names);
    /** @type {[string, string][]} */
    const fields = [];
    for (const name of [...new Set(names)].sort()) {
      if (name === 'set-cookie') for (const value of headers.getSetCookie()) fields.push([name, value]);
      else fields.push([name, headers.#join(name)]);
    }
    return fields;
  }

  /** @param {FieldHeaders} headers */
  static version(headers) {
    return headers.#version;
  }

  /** @param {any} value */
  static isOne(value) {
    return typeof value === 'object' && value !== null && #block in value;
  }

  /** The fields as a head block, in lower case. @param {FieldHeaders} headers */
  static toBlock(headers) {
    if (headers.#names === null) headers.#takeApart();
    const names = /** @type {string[]} */ (headers.#names);
    let block = '';
    for (let place = 0; place < names.length; place++) {
      block += `${nameOf(names[place])?.record ?? `${names[place]}:`}${headers.#values[place]}\n`;
    }
    return block;
  }
}

const { sorted, version } = FieldHeaders;
export const { isOne: isFieldHeaders, toBlock } = FieldHeaders;
for (const key of ['sorted', 'version', 'isOne', 'toBlock']) Reflect.deleteProperty(FieldHeaders, key);

/** Goes through the fields as they are at each step: a change in between is seen, as the standard asks. */
class FieldIterator {
  #headers;
  #part;
  #at = 0;
  #version = -1;
  /** @type {[string, string][]} */
  #fields = [];

  /**
   * @param {FieldHeaders} headers
   * @param {0 | 1 | 2} part
   */
  constructor(headers, part) {
    this.#headers = headers;
    this.#part = part;
  }

  next() {
    if (this.#version !== version(this.#headers)) {
      this.#version = version(this.#headers);
      this.#fields = sorted(this.#headers);
    }
    if (this.#at >= this.#fields.length) return { value: undefined, done: true };
    const field = this.#fields[this.#at++];
    return { value: this.#part === 2 ? [field[0], field[1]] : field[this.#part], done: false };
  }
}

const platformIterator = Object.getPrototypeOf(emptyHeaders.entries());
Object.setPrototypeOf(FieldIterator.prototype, Object.getPrototypeOf(platformIterator));
Object.defineProperty(FieldIterator.prototype, Symbol.toStringTag, {
  value: platformIterator[Symbol.toStringTag],
  configurable: true,
});

Object.defineProperty(FieldHeaders.prototype, Symbol.iterator, {
  value: FieldHeaders.prototype.entries,
  writable: true,
  configurable: true,
});
Object.setPrototypeOf(FieldHeaders.prototype, PlatformHeaders.prototype);
Reflect.deleteProperty(FieldHeaders.prototype, 'constructor');
borrowMembers(FieldHeaders.prototype, PlatformHeaders.prototype, (self) =>
  isFieldHeaders(self) ? new PlatformHeaders(self) : self,
);
likePlatform(FieldHeaders.prototype, PlatformHeaders.prototype);

/**
 * Headers over a block.
 * @param {string} block a head block, or a string that ends with one
 * @param {number} at where the block begins
 * @param {{ unsure?: boolean, immutable?: boolean }} [how] unsure: interned names may stand there in full
 * @returns {Headers}
 */
export function headersOver(block, at, how) {
  return /** @type {any} */ (new FieldHeaders(INSIDE, block, at, how?.unsure === true, how?.immutable === true));
}

/**
 * A value as the platform would keep it, undefined where the platform has to decide.
 * @param {unknown} value
 * @returns {string | undefined}
 */
export function plainValue(value) {
  if (typeof value !== 'string') return undefined;
  const length = value.length;
  if (length > 0 && (value.charCodeAt(0) <= BLANK_MAX || value.charCodeAt(length - 1) <= BLANK_MAX)) {
    value = value.replace(BLANK_ENDS, '');
  }
  const text = /** @type {string} */ (value);
  return UNUSUAL_VALUE.test(text) ? unusualValue(text) : text;
}

/** @param {string} value */
function unusualValue(value) {
  if (BAD_VALUE.test(value)) return undefined;
  mayHaveControls = true;
  return value;
}

/**
 * Throws where a value has a character that cannot be sent: the server would give the whole worker up.
 * @param {string} block
 */
export function refuseControls(block) {
  if (!mayHaveControls || !CONTROL.test(block)) return;
  for (const [name, value] of headersOver(block, 0)) {
    if (CONTROL.test(value)) throw new TypeError(`The value of the field ${name} has a control character.`);
  }
}

/**
 * What an application gave as headers, as a head block; undefined where the platform has to decide (and to throw).
 * @param {any} init
 * @returns {string | undefined}
 */
export function blockOf(init) {
  if (init === undefined) return '';
  if (typeof init !== 'object' || init === null) return undefined;
  if (isFieldHeaders(init)) return toBlock(init);
  const prototype = Object.getPrototypeOf(init);
  if (prototype === Object.prototype || prototype === null) return blockOfRecord(init);
  if (prototype === Array.prototype || prototype === PlatformHeaders.prototype) return blockOfPairs(init);
  return undefined;
}

/** @param {Record<string, unknown>} init */
function blockOfRecord(init) {
  // Symbols are refused and getters run by the platform; both are rare enough to let it do so.
  if (Symbol.iterator in init || Object.getOwnPropertySymbols(init).length > 0) return undefined;
  let block = '';
  for (const key of Object.keys(init)) {
    const name = nameOf(key);
    const value = plainValue(init[key]);
    if (name === undefined || value === undefined) return undefined;
    block += `${name.record}${value}\n`;
  }
  return block;
}

/** @param {Iterable<any>} init */
function blockOfPairs(init) {
  let block = '';
  for (const pair of init) {
    if (!Array.isArray(pair) || pair.length !== 2) return undefined;
    const name = nameOf(pair[0]);
    const value = plainValue(pair[1]);
    if (name === undefined || value === undefined) return undefined;
    block += `${name.record}${value}\n`;
  }
  return block;
}
