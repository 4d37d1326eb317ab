/** How places where servers listen are called in texts for people. */

/** @param {string|null} address @param {number|null} port */
export function describePlace(address, port) {
  if (typeof address === 'string' && port === -1) return address;
  return typeof port === 'number' && port >= 0 ? `port ${port}` : 'its socket';
}
