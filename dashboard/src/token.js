// The right to change something: it comes once in the address and leaves it at once.

const KEY = "onehop-token";

/** Moves `#token=…` from the address bar into this tab's storage. Runs before anything reads the hash. */
export function takeToken() {
  const found = /^#\/?(?:.*[?&])?token=([^&]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
}

export const token = () => sessionStorage.getItem(KEY);
