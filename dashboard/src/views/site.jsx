// One site: its figures, curves, handlers, the workers behind it, its slow requests.

import { useFrequent, useHandlers } from "../data.js";
import { count, duration, ms, perSecond, share, siteName } from "../format.js";
import { Failures, Latency, OfApps, Requests, Sent, useApps, useCurves } from "../panels.jsx";
import { Card, Empty, Figure, figure, State, Table, text, Tile, Tiles, Waiting } from "../parts.jsx";
import { siteState } from "../state.js";
import { Events } from "../tables.jsx";
import { usePage } from "../view.js";
import { Cause } from "../why.jsx";
import { Workers } from "./apps.jsx";
import { Shared } from "./overview.jsx";
import { SlowTable } from "./slow.jsx";

export function Site({ site }) {
  const { status, slow, now, live, events, problems } = usePage();
  const curves = useCurves(site);
  const handlers = useHandlers(site);
  const frequent = useFrequent(site);
  const history = useApps().data;
  const known = status?.sites.find((one) => one.site === site);
  if (status && !known) return <Card title={siteName(site)} isWide><Empty>No site has this address. Press / to search the others.</Empty></Card>;
  // A status that says which applications a site has is believed; else all are shown where it has any.
  const hasApp = handlers.data?.handlers.some(({ handler }) => handler === "app") ?? false;
  const apps = (status?.apps ?? []).filter(({ app }) => (known?.apps ? known.apps.includes(app) : hasApp));
  const state = siteState(site, now);
  const names = apps.map(({ app }) => app);
  const own = (slow.data?.requests ?? []).filter((one) => one.site === site);
  return (
    <>
      <section class={`sentence card is-${state.level}`} aria-label="State">
        <h2>{siteName(site)} <State {...state} /></h2>
        {problems.filter(({ about }) => about === site).map(({ text, next }) => <p key={text}><b>{text}.</b> {next}</p>)}
        <Cause site={site} />
      </section>
      {curves.data && (
        <Tiles>
          <Tile label="Now" value={perSecond(live.sites[site]?.requests)} note={`p99 ${ms(live.sites[site]?.p99_ms)}`} />
          <Shared total={curves.data.total} previous={curves.data.previous} seconds={curves.data.to - curves.data.from} />
          <Tile label="Streams" value={count(known?.streams_open)} note="open now" title="event streams, WebSockets, tunnels" />
        </Tiles>
      )}
      <div class="grid two">
        <Requests curves={curves} />
        <Latency curves={curves} />
      </div>
      <div class="grid four small">
        <Failures curves={curves} />
        <Sent curves={curves} />
        {names.length > 0 && <OfApps history={history} field="cpu_percent" names={names} />}
        {names.length > 0 && <OfApps history={history} field="resident_bytes" names={names} />}
      </div>
      <div class="grid two">
        <Card title="Routes, since the start">
          {handlers.data ? <Routes handlers={handlers.data.handlers} /> : <Waiting {...handlers} />}
        </Card>
        <Card title="Events">
          <Events events={events} most={7} empty="No event in this range." />
        </Card>
      </div>
      <div class="grid two">{apps.map((app) => <Workers key={app.app} app={app} />)}</div>
      {frequent.data && <Frequent frequent={frequent.data} />}
      {!slow.isMissing && slow.data && (
        <Card title="Slowest requests" isWide><SlowTable requests={own.slice(0, 10)} isOfSite /></Card>
      )}
    </>
  );
}

function Routes({ handlers }) {
  const errors = ({ errors, requests }) => <Figure value={errors}>{count(errors)}, {share(errors, requests)}</Figure>;
  const columns = [
    text("route", "Route", ({ route }) => <code class="name" title={route}>{route}</code>),
    text("handler", "Handler", ({ handler }) => <code>{handler}</code>),
    figure("requests", "Requests", ({ requests }) => requests),
    figure("errors", "Errors", (one) => one.errors, null, { cell: errors }),
    figure("p50", "p50", ({ p50_ms }) => p50_ms, ms),
    figure("p99", "p99", ({ p99_ms }) => p99_ms, ms),
  ];
  return (
    <Table label="Routes" columns={columns} rows={handlers} keyOf={({ route, handler }) => `${route} ${handler}`} initial="requests"
      empty="No request has come yet." />
  );
}

/** What is asked for most, by whom. What is counted of a busy site is a sample: its figures are near the truth, not exact. */
function Frequent({ frequent: { seconds, requests, paths, agents, addresses } }) {
  const kinds = [["Top paths", "Path", paths], ["Top user agents", "User-Agent", agents], ["Top addresses", "Address", addresses]];
  const columns = (label) => [
    text("text", label, ({ text: name }) => <code class="name" title={name}>{name}</code>),
    figure("requests", "Requests", (one) => one.requests, count),
    figure("share", "Share", (one) => one.requests, (value) => share(value, requests)),
  ];
  return (
    <div class="grid three">
      {kinds.map(([title, label, rows]) => (
        <Card key={title} title={title} actions={<small class="faint">last {duration(seconds)}</small>}>
          <Table label={title} columns={columns(label)} rows={rows} keyOf={({ text: name }) => name} initial="requests" most={8}
            empty="No request has come in the last hour." />
        </Card>
      ))}
    </div>
  );
}
