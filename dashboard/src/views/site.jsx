// One site: its figures, curves, handlers, the workers behind it, its slow requests.

import { useHandlers } from "../data.js";
import { count, ms, perSecond, share, siteName } from "../format.js";
import { Field, Latency, OfApps, Requests, Sent, useApps, useCurves } from "../panels.jsx";
import { Card, Empty, State, Table, Tile, Tiles, Waiting } from "../parts.jsx";
import { Events, siteState } from "../tables.jsx";
import { usePage } from "../view.js";
import { Cause } from "../why.jsx";
import { Workers } from "./apps.jsx";
import { Shared } from "./overview.jsx";
import { SlowTable } from "./slow.jsx";

export function Site({ site }) {
  const { status, slow, now, live, events } = usePage();
  const curves = useCurves(site);
  const handlers = useHandlers(site);
  const history = useApps().data;
  const known = status?.sites.find((one) => one.site === site);
  if (status && !known) return <Card title={siteName(site)} isWide><Empty>No site has this address. Press / to search the others.</Empty></Card>;
  // A status that says which applications a site has is believed; else all are shown where it has any.
  const hasApp = handlers.data?.handlers.some(({ handler }) => handler === "app") ?? false;
  const apps = (status?.apps ?? []).filter(({ app }) => (known?.apps ? known.apps.includes(app) : hasApp));
  const names = apps.map(({ app }) => app);
  const own = (slow.data?.requests ?? []).filter((one) => one.site === site);
  return (
    <>
      <section class="sentence card" aria-label="State">
        <h1>{siteName(site)} <State {...siteState(site, now)} /></h1>
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
        <Sent curves={curves} />
        <Field curves={curves} field="cold_starts" title="Cold starts" note="per second" format={perSecond} color="purple" />
        {names.length > 0 && <OfApps history={history} field="cpu_percent" names={names} />}
        {names.length > 0 && <OfApps history={history} field="resident_bytes" names={names} />}
      </div>
      <div class="grid two">
        <Card title="Handlers, since the start">
          {handlers.data ? <Handlers handlers={handlers.data.handlers} /> : <Waiting {...handlers} />}
        </Card>
        <Card title="Events">
          <Events events={events} most={7} empty="No event in this range." />
        </Card>
      </div>
      {apps.map((app) => <Workers key={app.app} app={app} />)}
      {!slow.isMissing && slow.data && (
        <Card title="Slowest requests" isWide><SlowTable requests={own.slice(0, 10)} isOfSite /></Card>
      )}
    </>
  );
}

function Handlers({ handlers }) {
  const columns = [
    { key: "handler", label: "Handler", isText: true, cell: ({ handler }) => <code>{handler}</code> },
    { key: "requests", label: "Requests", isNumber: true, sort: ({ requests }) => requests, cell: ({ requests }) => count(requests) },
    { key: "errors", label: "Errors", isNumber: true, sort: ({ errors }) => errors, cell: ({ errors, requests }) => `${count(errors)}, ${share(errors, requests)}` },
    { key: "p50", label: "p50", isNumber: true, sort: ({ p50_ms }) => p50_ms ?? -1, cell: ({ p50_ms }) => ms(p50_ms) },
    { key: "p99", label: "p99", isNumber: true, sort: ({ p99_ms }) => p99_ms ?? -1, cell: ({ p99_ms }) => ms(p99_ms) },
  ];
  return <Table label="Handlers" columns={columns} rows={handlers} keyOf={({ handler }) => handler} initial="requests" empty="No request has come yet." />;
}
