/** Bytes of a body in the pieces in which the application gave them, waiting to be copied into frames. */

export class Pieces {
  /** Bytes that wait. */
  bytes = 0;
  #pieces = [];
  /** Bytes of the first piece that are gone. */
  #gone = 0;

  /** Keeps bytes, which must not change until they are gone. @param {Uint8Array} piece */
  push(piece) {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.bytes += piece.length;
  }

  /** The next `count` bytes, at most those that wait, are written into `buffer` at `at` and forgotten. */
  moveInto(buffer, at, count) {
    let whole = 0;
    for (let left = count; left > 0;) {
      const piece = this.#pieces[whole];
      const bytes = Math.min(left, piece.length - this.#gone);
      buffer.set(bytes === piece.length ? piece : piece.subarray(this.#gone, this.#gone + bytes), at);
      at += bytes;
      left -= bytes;
      this.#gone += bytes;
      if (this.#gone < piece.length) break;
      this.#gone = 0;
      whole += 1;
    }
    this.bytes -= count;
    if (this.bytes === 0) this.#pieces.length = 0;
    else if (whole > 0) this.#pieces.splice(0, whole);
  }

  /** All that waits, as one. @returns {Uint8Array} */
  joined() {
    const [first] = this.#pieces;
    return this.#pieces.length === 1 && this.#gone === 0 ? first : Buffer.concat(this.#pieces).subarray(this.#gone);
  }

  clear() {
    this.#pieces.length = 0;
    this.#gone = 0;
    this.bytes = 0;
  }
}
