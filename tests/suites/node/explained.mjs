/**
 * Tests that pass on Node alone and fail with their server under onehop, each with its reason. An entry that no test
 * needs any more fails the run. A defect is no reason.
 */

/** @type {import('./compare.mjs').Explanation[]} */
export const EXPLAINED = [];
