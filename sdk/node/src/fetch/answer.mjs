import { TAGS } from './response.mjs';
export function toAnswer(r) {
  const tag = TAGS.get(r);
  if (tag) return { status: 101, fields: tag.headers.map(([n, v]) => `${n}:${v}\n`).join(''), length: -1, body: null, file: null, upgrade: tag.onTunnel };
  if (!(r instanceof Response)) throw new TypeError('not a Response');
  let fields = ''; for (const [n, v] of r.headers) fields += `${n}:${v}\n`;
  return { status: r.status, fields, length: Number(r.headers.get('content-length') ?? -1), body: r.body, file: null, upgrade: null };
}
