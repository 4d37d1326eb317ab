export function install() { globalThis.onehop = { Response, version: '0' }; }
