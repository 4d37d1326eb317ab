const M = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];
class StandIn {
  constructor(head, source) { this.head = head; this.source = source; }
  get method() { return M[this.head.charCodeAt(0)]; }
  get url() { return 'http://x' + this.head.slice(44, this.head.indexOf('\n', 44)); }
  get signal() { return this.source.signal(); }
  get headers() {
    const out = new Headers();
    for (const r of this.head.slice(44).split('\n').slice(4)) { const i = r.indexOf(':'); if (i > 0) out.append(r.slice(0, i), r.slice(i + 1)); }
    return out;
  }
  get body() {
    const s = this.source;
    return new ReadableStream({ async pull(c) { const p = await s.read(); if (p === null) c.close(); else c.enqueue(p); }, cancel() { s.cancel(); } }, { highWaterMark: 0 });
  }
  async text() {
    if (this.source.complete) return Buffer.from(this.source.complete).toString();
    let t = []; for (let p; (p = await this.source.read()) !== null;) t.push(p); return Buffer.concat(t).toString();
  }
}
export function createRequest(head, source) { return new StandIn(head, source); }
