// Headers over a head block: a look-alike of the platform's Headers that reads single fields straight from the
// block and takes it apart only when it must. Owns the order, joining and checking of fields. Whatever is wrong or
// unusual is given to a Headers object of the platform, whose errors are then ours.

import { ownText } from './head.mjs';
import { INTERNED_BYTE_MIN, LOWER, nameOf } from './names.mjs';
import {
  PlatformHeaders,
  borrowMembers,
  emptyHeaders,
  immutableHeaders,
  likePlatform,
} from './platform.mjs';
import { note, plainValue } from './values.mjs';

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
      else joined += separator(lower) + value;
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
    note(field[1]);
    return /** @type {[string, string]} */ (field);
  }

  /**
   * The fields as the standard wants to see them: sorted, joined, each Set-Cookie alone.
   * @param {FieldHeaders} headers
   */
  static sorted(headers) {
    if (headers.#names === null) headers.#takeApart();
    const names = /** @type {string[]} */ (headers.#names);
    /** @type {Map<string, string>} */
    const joined = new Map();
    /** @type {[string, string][]} */
    const cookies = [];
    for (let place = 0; place < names.length; place++) {
      const name = names[place];
      const value = headers.#values[place];
      const before = joined.get(name);
      if (name === 'set-cookie') cookies.push([name, value]);
      else joined.set(name, before === undefined ? value : before + separator(name) + value);
    }
    return [...joined, ...cookies].sort(byName);
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

/** Fetch standard, "combine": Cookie has a separator of its own. @param {string} lower */
function separator(lower) {
  return lower === 'cookie' ? '; ' : ', ';
}

/**
 * @param {[string, string]} one
 * @param {[string, string]} other
 */
function byName([one], [other]) {
  if (one === other) return 0;
  return one < other ? -1 : 1;
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
