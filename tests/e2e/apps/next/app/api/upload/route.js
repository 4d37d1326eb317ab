import { createHash } from "node:crypto";

export async function POST(request) {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of request.body) {
    hash.update(piece);
    bytes += piece.length;
  }
  return Response.json({ bytes, sha256: hash.digest("hex") });
}
