// Applications and their workers, with what may be changed.

import { bytes, duration, ms } from "../format.js";
import { OfApps, useApps } from "../panels.jsx";
import { Action, Bar, Card, Empty, figure, State, Table } from "../parts.jsx";
import { Apps as AppTable, Events } from "../tables.jsx";
import { level } from "../state.js";
import { usePage } from "../view.js";

export function Apps() {
  const { status, events } = usePage();
  const history = useApps().data;
  const apps = status?.apps ?? [];
  const own = events.filter(({ event }) => /^(worker|app|release|overload)/.test(event));
  return (
    <>
      <Card title="Applications" isWide><AppTable apps={apps} history={history} isWhole /></Card>
      <div class="grid two">{apps.map((app) => <Workers key={app.app} app={app} />)}</div>
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
  const used = ({ in_flight, concurrency, pid }) => {
    const words = `${in_flight} of ${concurrency ?? "–"}`;
    return <>{words} <Bar value={in_flight} bound={concurrency} label={`Worker ${pid}: ${words}`} /></>;
  };
  const columns = [
    { key: "pid", label: "Worker", cell: ({ pid, protocol }) => <code title={protocol ? `speaks ${protocol}` : "not ready"}>{pid}</code> },
    { key: "state", label: "State", cell: (one) => <State level={level.worker(one)} text={one.state} /> },
    figure("age", "Runs for", ({ age_seconds }) => age_seconds, duration),
    figure("memory", "Memory", ({ resident_bytes }) => resident_bytes || null, bytes),
    figure("lag", "Lag", ({ lag_ms }) => lag_ms, ms, { title: "longest delay of its event loop at the last look" }),
    figure("flight", "In flight", ({ in_flight }) => in_flight, null, { cell: used }),
    figure("requests", "Requests", ({ requests }) => requests),
  ];
  const name = encodeURIComponent(app.app);
  const actions = (
    <span class="actions">
      <Action label="−" of={`one worker of ${app.app}`} title="one worker less, until the next reload"
        path={`/workers/${name}/${app.wanted - 1}`} isDisabled={app.wanted <= 1} />
      <Action label="+" of={`one worker of ${app.app}`} title="one more worker, until the next reload"
        path={`/workers/${name}/${app.wanted + 1}`} />
      <Action label="Restart workers" of={`of ${app.app}`} title="new ones take over, one after the other; no request is lost"
        path={`/restart/${name}`} />
    </span>
  );
  return (
    <Card title={`Workers of ${app.app}`} actions={actions}>
      {app.state === "failing" && <Empty><State level="bad" text={app.reason ?? "It fails."} /></Empty>}
      <Table label={`Workers of ${app.app}`} columns={columns} rows={app.workers} keyOf={({ pid }) => pid} empty="It has no worker now." />
    </Card>
  );
}
