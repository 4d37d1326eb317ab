// Head blocks of what applications give as headers. Whatever is not plainly right is left to the platform.

import { headersOver, isFieldHeaders, toBlock } from './headers.mjs';
import { nameOf } from './names.mjs';
import { PlatformHeaders } from './platform.mjs';
import { hasControls, plainValue } from './values.mjs';

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

/**
 * Throws where a value has a character that cannot be sent.
 * @param {string} block
 */
export function refuseControls(block) {
  if (!hasControls(block)) return;
  for (const [name, value] of headersOver(block, 0)) {
    if (hasControls(value)) throw new TypeError(`The value of the field ${name} has a control character.`);
  }
}
