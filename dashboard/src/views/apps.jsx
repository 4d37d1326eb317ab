// Applications and their workers, with what may be changed.

import { bytes, count, duration, ms } from "../format.js";
import { OfApps, useApps } from "../panels.jsx";
import { Action, Bar, Card, Empty, State, Table } from "../parts.jsx";
import { Apps as AppTable, Events } from "../tables.jsx";
import { level } from "../state.js";
import { usePage } from "../view.js";

export function Apps() {
  const { status, events, hour } = usePage();
  const history = useApps().data;
  const apps = status?.apps ?? [];
  const exits = (hour ?? []).filter(({ event }) => event === "worker_exited");
  const own = events.filter(({ event }) => /^(worker|app|release|overload)/.test(event));
  return (
    <>
      <Card title="Applications" isWide><AppTable apps={apps} history={history} exits={exits} /></Card>
      {apps.map((app) => <Workers key={app.app} app={app} />)}
      {apps.length > 0 && (
        <div class="grid two">
          {["cpu_percent", "resident_bytes", "lag_ms", "queued"].map((field) => <OfApps key={field} history={history} field={field} />)}
        </div>
      )}
      <Card title="Events of workers" isWide><Events events={own} most={30} empty="No worker ended or started in this range." /></Card>
    </>
  );
}

/** The processes of one application. */
export function Workers({ app }) {
  const columns = [
    { key: "pid", label: "Worker", cell: ({ pid }) => <code>{pid}</code> },
    { key: "state", label: "State", cell: (one) => <State level={level.worker(one)} text={one.state} /> },
    { key: "age", label: "Runs for", isNumber: true, sort: ({ age_seconds }) => age_seconds, cell: ({ age_seconds }) => duration(age_seconds) },
    { key: "memory", label: "Memory", isNumber: true, sort: ({ resident_bytes }) => resident_bytes, cell: ({ resident_bytes }) => (resident_bytes ? bytes(resident_bytes) : "–") },
    { key: "lag", label: "Lag", isNumber: true, sort: ({ lag_ms }) => lag_ms, title: "longest delay of its event loop at the last look", cell: ({ lag_ms }) => ms(lag_ms) },
    { key: "flight", label: "In flight", isNumber: true, cell: ({ in_flight, concurrency, pid }) => <><Bar value={in_flight} bound={concurrency} label={`Worker ${pid}: ${in_flight} of ${concurrency}`} /> {in_flight} of {concurrency ?? "–"}</> },
    { key: "requests", label: "Requests", isNumber: true, sort: ({ requests }) => requests, cell: ({ requests }) => count(requests) },
    { key: "protocol", label: "Protocol", isMinor: true, cell: ({ protocol }) => protocol ?? "–" },
  ];
  const name = encodeURIComponent(app.app);
  const actions = (
    <span class="actions">
      <Action label="−" title={`one worker less for ${app.app}`} path={`/workers/${name}/${app.wanted - 1}`} isDisabled={app.wanted <= 1} />
      <Action label="+" title={`one more worker for ${app.app}`} path={`/workers/${name}/${app.wanted + 1}`} />
      <Action label="Restart workers" title={`new workers for ${app.app}, one after the other`} path={`/restart/${name}`} />
    </span>
  );
  return (
    <Card title={`Workers of ${app.app}`} actions={actions} isWide>
      {app.state === "failing" && <Empty><State level="bad" text={app.reason ?? "It fails."} /></Empty>}
      <Table label={`Workers of ${app.app}`} columns={columns} rows={app.workers} keyOf={({ pid }) => pid} empty="It has no worker now." />
    </Card>
  );
}
