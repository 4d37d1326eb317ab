// What every server of this experiment answers, without a server: the same bytes from each.

const ENTRIES = 1000;
const PIECES = 64;
const PIECE_BYTES = 1024;

/** The longest value that a store takes. */
export const VALUE_BYTES_MAX = 65_536;

/** `/local`: an answer that needs nothing. */
export function local() {
  return { ok: true, hello: "world" };
}

/** `/item/:id`: an answer with a parameter of the path. */
export function item(id) {
  return { id, name: `Item ${id}`, tags: ["small", "blue"] };
}

/** What is in the stores at first: a name and a value each. */
export function* entries() {
  for (let number = 0; number < ENTRIES; number += 1) yield [`item-${number}`, JSON.stringify(item(String(number)))];
}

/** What a write to a store answers. */
export function written(key, value) {
  return { key, bytes: Buffer.byteLength(value) };
}

/** The answer to everything else. */
export const MISSING = { error: "not found" };

/** The answer to a value that is too long. */
export const TOO_LONG = { error: "value too long" };

/** The answer where MariaDB cannot be asked. */
export const NO_DATABASE = { error: "the database does not answer" };

/** `/stream`: the pieces of a body that is made while it is sent. */
export function* pieces() {
  for (let number = 1; number <= PIECES; number += 1) {
    const line = `${String(number).padStart(4, "0")} `;
    yield Buffer.from(`${line.padEnd(PIECE_BYTES - 1, "abcdefghij")}\n`);
  }
}

/** The same as a stream of the Web, made only as fast as the client reads. */
export function streamed() {
  const made = pieces();
  return new ReadableStream({
    pull(controller) {
      const { done, value } = made.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}
