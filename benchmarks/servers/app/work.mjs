// What every server of `cargo xtask bench handlers` does for an answer, whatever stands in front of it: the
// same values and the same bytes. A server's own file only says how they are sent.

/** The content type of every JSON answer, spelled as Fastify spells it. */
export const JSON_TYPE = "application/json; charset=utf-8";

const CHUNK = new Uint8Array(16 * 1024).fill(0x6f);
const CHUNKS = 64;

/** What `GET /api/items/ID` answers. */
export function item(id) {
  return { id, name: "A thing among others", price: 1999, tags: ["small", "green"], available: true };
}

/** What `POST /api/echo` answers. */
export function echo(body) {
  return { token: body.token };
}

/** What `POST /api/upload` answers. */
export function counted(bytes) {
  return { bytes };
}

/** The content of `GET /api/stream`: 1 MiB in pieces of 16 KiB. */
export function* pieces() {
  for (let index = 0; index < CHUNKS; index += 1) yield CHUNK;
}
