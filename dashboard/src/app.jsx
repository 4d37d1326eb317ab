// The frame of every view: what is asked for all of them, navigation, the range, messages.

import { useEffect, useMemo, useState } from "preact/hooks";
import { now, useCertificates, useLive, useRange, useRecent, useSlow, useStatus } from "./data.js";
import { clock, siteName } from "./format.js";
import { RANGES, unzoomed } from "./range.js";
import { State } from "./parts.jsx";
import { Search } from "./search.jsx";
import { problemsOf, sentenceOf } from "./state.js";
import { liveRate } from "./tables.jsx";
import { Page, useKeys, usePage, useRoute, useTheme } from "./view.js";
import { Apps } from "./views/apps.jsx";
import { Certificates, Events, Limits, Server, Upstreams } from "./views/others.jsx";
import { Overview } from "./views/overview.jsx";
import { Site } from "./views/site.jsx";
import { Slow } from "./views/slow.jsx";
import { href, parse } from "./route.js";

const VIEWS = [
  { view: "", label: "Overview", show: Overview },
  { view: "apps", label: "Applications", show: Apps },
  { view: "upstreams", label: "Upstreams", show: Upstreams },
  { view: "limits", label: "Limits", show: Limits },
  { view: "slow", label: "Slow requests", show: Slow },
  { view: "events", label: "Events", show: Events },
  { view: "certificates", label: "Certificates", show: Certificates },
  { view: "server", label: "Server", show: Server },
];
const NOTHING = [];
const MESSAGE_MS = 6000;

/** Reads the address itself, so that a key pressed right after a zoom finds it. */
function leaveZoom() {
  const { view, name, query } = parse(location.hash);
  if (query.from) location.hash = href(view, name, unzoomed(query));
}

export function App() {
  const route = useRoute();
  const theme = useTheme();
  const [message, setMessage] = useState("");
  const [version, setVersion] = useState(0);
  const { data: status, lostAt } = useStatus(version);
  const certificates = useCertificates();
  const slow = useSlow();
  const events = useRange("/events", route.range).data?.events ?? NOTHING;
  const { recent, usual, lately } = useRecent();
  const live = useLive();
  const problems = useMemo(
    () => problemsOf({ status, certificates: certificates.data, recent, usual, events: lately, now: now() }),
    [status, certificates.data, recent, usual, lately]);
  const sentence = sentenceOf({ status, problems, recent, lostAt });

  const tell = (text) => {
    setMessage(text);
    setVersion((old) => old + 1);
  };
  useEffect(() => {
    if (!message) return undefined;
    const timer = setTimeout(() => setMessage(""), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [message]);
  useKeys(leaveZoom);
  const view = VIEWS.find((one) => one.view === route.view);
  const title = route.view === "sites" ? siteName(route.name ?? "") : (view?.label ?? "Not found");
  useEffect(() => {
    document.title = `${sentence.level === "bad" ? "✕ " : sentence.level === "warn" ? "▲ " : ""}${title} · onehop`;
  }, [title, sentence.level]);
  useEffect(() => {
    scrollTo(0, 0);
    document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [route.view, route.name]);

  const page = {
    route, status, certificates, slow, events, lately: lately ?? NOTHING, live, now: { recent, usual }, problems, sentence, isDark: theme.isDark, tell,
  };
  const Show = view?.show;
  return (
    <Page.Provider value={page}>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to the figures</a>
      <Header theme={theme} />
      <Toolbar />
      <main id="content" tabIndex={-1}>
        {route.view !== "" && <h1 class="hidden">{title}</h1>}
        {route.view === "sites" ? <Site key={route.name} site={route.name} /> : Show ? <Show /> : <p class="empty">There is no such view.</p>}
      </main>
      <footer>
        <span class="keys">
          Keys: <kbd>/</kbd> search, <kbd>j</kbd> <kbd>k</kbd> rows, <kbd>Enter</kbd> open, <kbd>Esc</kbd> leave a zoom. Drag in a curve to zoom.
        </span>
        <span>onehop {status?.version}</span>
      </footer>
      <p class="message" role="status" hidden={!message}>{message}</p>
    </Page.Provider>
  );
}

function Header({ theme }) {
  const { route, live, problems, slow } = usePage();
  const worst = (view) => problems.find(({ href }) => parse(href).view === view)?.level;
  return (
    <header class="bar">
      <a class="brand" href={route.link("")}><img src="./assets/icon.svg" alt="" width="22" height="22" />onehop</a>
      <nav aria-label="Views">
        {VIEWS.filter(({ view }) => view !== "slow" || !slow.isMissing).map(({ view, label }) => (
          <a key={view} href={route.link(view)} aria-current={route.view === view ? "page" : undefined}>
            {label}{worst(view) && <State level={worst(view)} text={<span class="hidden">has a problem</span>} />}
          </a>
        ))}
      </nav>
      <span class="live" title={live.isOpen ? "requests per second, every 2 seconds" : "the live stream is closed; the page opens it again"}>
        <State level={live.isOpen ? "well" : "busy"} /> {live.isOpen ? liveRate(live) : "not live"}
      </span>
      <button type="button" class="action theme" onClick={theme.next} title="light, dark, or as the system has it">
        {{ system: "◐ Auto", light: "○ Light", dark: "● Dark" }[theme.choice]}<span class="hidden"> colours</span>
      </button>
    </header>
  );
}

function Toolbar() {
  const { route } = usePage();
  const { query, range } = route;
  const to = (changed) => route.link(route.view, route.name, { kind: query.kind, ...changed });
  return (
    <div class="toolbar">
      <Search />
      <nav class="choice" aria-label="Range">
        {RANGES.map(({ key, label }) => (
          <a key={key} href={to({ range: key, from: undefined, to: undefined })} aria-current={range.key === key ? "true" : undefined}>{label}</a>
        ))}
      </nav>
      {!range.isLive && (
        <a class="action" href={to({ from: undefined, to: undefined })}>✕ {clock(range.from)} to {clock(range.to)}</a>
      )}
      <Switch label="Compare" title="draws the range before it, too" isOn={query.compare === "1"}
        onChange={(isOn) => route.set({ ...query, compare: isOn ? "1" : undefined })} />
      <Switch label="Cold starts" title="marks first answers of new workers; percentiles are without them" isOn={query.cold !== "0"}
        onChange={(isOn) => route.set({ ...query, cold: isOn ? undefined : "0" })} />
    </div>
  );
}

const Switch = ({ label, title, isOn, onChange }) => (
  <label title={title}><input type="checkbox" checked={isOn} onChange={({ target }) => onChange(target.checked)} /> {label}</label>
);
