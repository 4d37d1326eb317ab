// The views of one table each: upstreams, limits, events, certificates, the server itself.

import { bytes, clock, count, duration, percent, perSecond } from "../format.js";
import { Action, Card, Empty, figure, Table, text, Tile, Tiles, Waiting } from "../parts.jsx";
import { Certificates as CertificateTable, Events as EventList, Limits as LimitTable, Upstreams as UpstreamTable } from "../tables.jsx";
import { Field, Requests, useCurves } from "../panels.jsx";
import { usePage } from "../view.js";

export function Upstreams() {
  const { status, events } = usePage();
  if (!status) return <Waiting />;
  const own = events.filter(({ event }) => event.startsWith("upstream"));
  return (
    <>
      {status.proxies.length === 0 && <Card title="Upstreams" isWide><Empty>Nothing is proxied.</Empty></Card>}
      {status.proxies.map((proxy) => (
        <Card key={proxy.proxy} title={`Proxy to ${proxy.upstreams.length} upstreams, ${proxy.policy.replaceAll("_", " ")}`} isWide>
          <UpstreamTable proxies={[proxy]} isWhole />
        </Card>
      ))}
      {own.length > 0 && <Card title="Events of upstreams" isWide><EventList events={own} most={20} empty="" /></Card>}
    </>
  );
}

export function Limits() {
  const { status } = usePage();
  const curves = useCurves();
  return (
    <>
      <Card title="Limits: what was refused, and by which" isWide>{status ? <LimitTable limits={status.limits} isWhole /> : <Waiting />}</Card>
      <div class="grid two">
        <Field curves={curves} field="rejected" title="Refused" note="all limits" format={perSecond} color="orange" />
        <Requests curves={curves} />
      </div>
    </>
  );
}

const KINDS = [
  { key: "", label: "All", of: /./ },
  { key: "changes", label: "Changes", of: /^(release|reload|start|stop|app_rolled)/ },
  { key: "workers", label: "Workers", of: /^(worker|app)/ },
  { key: "overload", label: "Overload", of: /^(overload|load)/ },
  { key: "upstreams", label: "Upstreams", of: /^upstream/ },
  { key: "certificates", label: "Certificates", of: /^certificate/ },
];

export function Events() {
  const { events, route } = usePage();
  const kind = KINDS.find(({ key }) => key === route.query.kind) ?? KINDS[0];
  const chosen = (
    <nav class="choice" aria-label="Kind of event">
      {KINDS.map(({ key, label }) => (
        <a key={key} href={route.link("events", null, { kind: key })} aria-current={key === kind.key ? "true" : undefined}>{label}</a>
      ))}
    </nav>
  );
  return (
    <Card title="Events" actions={chosen} isWide>
      <EventList events={events.filter(({ event }) => kind.of.test(event))} most={500} empty="No such event in this range." />
    </Card>
  );
}

export function Certificates() {
  const answer = usePage().certificates;
  return (
    <Card title="Certificates" isWide>
      {answer.data ? <CertificateTable certificates={answer.data.certificates} isWhole /> : <Waiting {...answer} />}
      {answer.data?.total > answer.data?.certificates.length && <Empty>{count(answer.data.total)} in all; these are the first.</Empty>}
    </Card>
  );
}

/** What runs and what it has loaded. */
export function Server() {
  const { status, lately, live } = usePage();
  const curves = useCurves();
  if (!status) return <Waiting />;
  const loaded = lately.find(({ event }) => event === "reload" || event === "start");
  const columns = [
    text("root", "Root", ({ root }) => <code class="name" title={root}>{root}</code>),
    figure("files", "Files", ({ files }) => files),
    figure("bytes", "Size", (store) => store.bytes, bytes),
    figure("stored", "In memory", ({ stored_bytes }) => stored_bytes, bytes),
    figure("compressed", "Compressed", ({ compressed_bytes }) => compressed_bytes, bytes),
    figure("disk", "From disk", ({ on_disk }) => on_disk, count, { title: "files that are streamed from disk" }),
  ];
  const reload = <Action label="Reload" of="the configuration" title="reads the configuration again" path="/reload" />;
  return (
    <>
      <Tiles>
        <Tile label="Version" value={status.version} note={`process ${status.pid}`} />
        <Tile label="Runs for" value={duration(status.uptime_seconds)} note={`since ${clock(Date.now() / 1000 - status.uptime_seconds)}`} />
        <Tile label="Threads" value={count(status.threads)} />
        <Tile label="Connections" value={count(live.connections ?? status.open_connections)} note="open now" />
        <Tile label="Requests" value={count(status.requests)} note="since the start" />
        <Tile label="Reloads" value={count(status.reloads)} note="since the start" />
      </Tiles>
      <Card title="Loaded" actions={reload} isWide>
        <dl class="pairs">
          <div><dt>Configuration</dt><dd>{loaded ? `${clock(loaded.at)}: ${loaded.text}` : "as it was a day ago"}</dd></div>
          <div><dt>Sites</dt><dd>{count(status.sites.length)}</dd></div>
          <div><dt>Applications</dt><dd>{count(status.apps.length)}</dd></div>
          <div><dt>Listens at</dt><dd>{status.listening.join(", ")}</dd></div>
          <div><dt>Admin endpoint</dt><dd>{status.admin ?? "off"}</dd></div>
        </dl>
      </Card>
      <div class="grid three small">
        <Field curves={curves} field="cpu_percent" title="CPU" note="of one core" format={percent} color="orange" />
        <Field curves={curves} field="resident_bytes" title="Memory" format={bytes} color="green" />
        <Field curves={curves} field="connections" title="Connections" format={count} color="purple" />
      </div>
      <Card title="Files in memory" isWide>
        <Table label="Stores" columns={columns} rows={status.stores} keyOf={({ root }) => root} empty="No site serves files." />
      </Card>
    </>
  );
}
