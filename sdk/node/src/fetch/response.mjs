export const TAGS = new WeakMap();
export function createUpgradeResponse(headers, onTunnel) { const r = new Response(null); TAGS.set(r, { headers, onTunnel }); return r; }
