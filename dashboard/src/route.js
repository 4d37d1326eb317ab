// Addresses of views: `#/sites/https%3A%2F%2Fa.example?range=1h`. Pure.

/** `{view, name, query}` of a hash; `view` is "" for the overview, `name` what it is about. */
export function parse(hash) {
  const [path, text = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [view = "", name = null] = path.split("/");
  return { view, name: name && decoded(name), query: Object.fromEntries(new URLSearchParams(text)) };
}

/** The hash of a view. Parameters that are undefined are left out. */
export function href(view, name = null, query = {}) {
  const path = name === null ? view : `${view}/${encodeURIComponent(name)}`;
  const present = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(present).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
