// The API's answers, without a server: `GET /api/codes` is the list, `GET /api/codes/404` one of it.
import { readFileSync } from 'node:fs';

const codes = JSON.parse(readFileSync(new URL('codes.json', import.meta.url), 'utf8'));
const byCode = new Map(codes.map((entry) => [String(entry.code), entry]));

/** Status and value of what is at a path. */
export function answer(method, path) {
  if (method !== 'GET' && method !== 'HEAD') return [405, { error: 'only GET and HEAD are answered' }];
  if (path === '/api/codes') return [200, codes.map(({ code, name }) => ({ code, name }))];
  const entry = path.startsWith('/api/codes/') ? byCode.get(path.slice('/api/codes/'.length)) : undefined;
  return entry ? [200, entry] : [404, { error: 'there is no such code' }];
}
