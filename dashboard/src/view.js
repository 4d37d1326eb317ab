// Where the reader is, and how the page looks: the hash, the theme, the list that the keyboard moves in.

import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { rangeOf } from "./range.js";
import { href, parse } from "./route.js";

export const Page = createContext(null);
export const usePage = () => useContext(Page);

/** The route with its range; `set(query)` changes parameters, `link` keeps those that hold for every view. */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = () => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return useMemo(() => {
    const { view, name, query } = parse(hash);
    const { range, from, to, compare, cold } = query;
    const lasting = { range, from, to, compare, cold };
    return {
      view,
      name,
      query,
      range: rangeOf(query),
      link: (view, name = null, others = {}) => href(view, name, { ...lasting, ...others }),
      set: (changed) => { location.hash = href(view, name, changed); },
    };
  }, [hash]);
}

const THEMES = ["system", "light", "dark"];

/** The theme chosen here, and whether it is dark now. */
export function useTheme() {
  const [choice, setChoice] = useState(localStorage.getItem("onehop-theme") ?? "system");
  const [isSystemDark, setIsSystemDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const onChange = () => setIsSystemDark(media.matches);
    media.addEventListener("change", onChange);
    return () => media.removeEventListener("change", onChange);
  }, []);
  const isDark = choice === "dark" || (choice === "system" && isSystemDark);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  const next = () => {
    const following = THEMES[(THEMES.indexOf(choice) + 1) % THEMES.length];
    localStorage.setItem("onehop-theme", following);
    setChoice(following);
  };
  return { choice, isDark, next };
}

const isTyping = ({ target }) => target.closest("input, select, textarea") !== null;

/** The page's keys: `/` to the search, j and k through the rows of the first list, Escape out of a zoom. */
export function useKeys(onEscape) {
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector("#search")?.focus();
      } else if (event.key === "j" || event.key === "k") {
        const rows = [...document.querySelectorAll("main tbody tr a.row")];
        const at = rows.indexOf(document.activeElement);
        const step = event.key === "j" ? 1 : -1;
        rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
      } else if (event.key === "Escape") {
        onEscape();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [onEscape]);
}
