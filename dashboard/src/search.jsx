// The search for a site: `/` comes here from anywhere.

import { useState } from "preact/hooks";
import { siteName } from "./format.js";
import { usePage } from "./view.js";

const MOST = 8;

export function Search() {
  const { status, route } = usePage();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  const wanted = text.trim().toLowerCase();
  const found = (status?.sites ?? []).map(({ site }) => site).filter((site) => site.toLowerCase().includes(wanted)).slice(0, MOST);
  const isShown = isOpen && found.length > 0;
  const go = (site) => {
    location.hash = route.link("sites", site);
    setText("");
    setIsOpen(false);
    document.activeElement?.blur();
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((at + step + found.length) % Math.max(found.length, 1));
    else if (event.key === "Enter" && found[at]) go(found[at]);
    else if (event.key === "Escape") event.target.blur();
    else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        id="search" type="search" role="combobox" placeholder="Search sites" autocomplete="off" aria-label="Search sites"
        aria-expanded={isShown} aria-controls="found" aria-activedescendant={isShown ? `found-${at}` : undefined}
        value={text} onFocus={() => setIsOpen(true)} onBlur={() => setIsOpen(false)} onKeyDown={onKeyDown}
        onInput={({ target }) => { setText(target.value); setAt(0); setIsOpen(true); }}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="found" role="listbox" aria-label="Sites" hidden={!isShown}>
        {found.map((site, index) => (
          // Pressing would take the focus from the field, which closes the list before the click.
          <li key={site} id={`found-${index}`} role="option" aria-selected={index === at}
            onPointerDown={(event) => { event.preventDefault(); go(site); }}>
            {siteName(site)}
          </li>
        ))}
      </ul>
    </div>
  );
}
