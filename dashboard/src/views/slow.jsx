// The slowest requests, and where the time of each went.

import { heaviest, PARTS, partsOf } from "../cause.js";
import { clock, ms, siteName } from "../format.js";
import { Card, Empty, figure, State, Table, text, Waiting } from "../parts.jsx";
import { usePage } from "../view.js";

export function Slow() {
  const { slow } = usePage();
  if (slow.isMissing) return <Card title="Slow requests" isWide><Empty>This onehop does not keep slow requests.</Empty></Card>;
  return <Card title="Slow and failed requests" isWide>{slow.data ? <SlowTable requests={slow.data.requests} /> : <Waiting {...slow} />}</Card>;
}

export function SlowTable({ requests, isOfSite }) {
  const { route } = usePage();
  const most = Math.max(1, ...requests.map(({ total_ms }) => total_ms));
  const link = ({ site }) => <a href={route.link("sites", site)}>{siteName(site)}</a>;
  const code = (status) => (status >= 500 ? <State level="bad" text={status} /> : status);
  const columns = [
    { key: "at", label: "At", sort: ({ at }) => at, cell: ({ at }) => clock(at, undefined, true) },
    !isOfSite && { key: "site", label: "Site", isMinor: true, sort: ({ site }) => site, cell: link },
    text("path", "Request", ({ method, path }) => <code class="name" title={`${method} ${path}`}>{method} {path}</code>),
    figure("status", "Status", ({ status }) => status, null, { cell: ({ status }) => code(status) }),
    figure("total", "Took", ({ total_ms }) => total_ms, ms),
    { key: "parts", label: "Parts", cell: (request) => <Parts request={request} most={most} /> },
    { key: "heaviest", label: "Mostly", cell: (request) => <Mostly request={request} /> },
    isOfSite && { key: "handler", label: "Handler", isMinor: true, cell: ({ handler }) => <code>{handler}</code> },
    { key: "why", label: "Kept because", isMinor: true, cell: ({ why }) => <span class="name" title={why}>{why}</span> },
    { key: "id", label: "Id", isMinor: true, cell: ({ id }) => <code class="faint">{id}</code> },
  ].filter(Boolean);
  return (
    <>
      {requests.length > 0 && (
        <ul class="legend parts">
          {PARTS.map(({ key, label }) => (
            <li key={key}>
              <svg class={`swatch part-${key}`} width="12" height="10" aria-hidden="true"><rect width="12" height="10" rx="2" /></svg> {label}
            </li>
          ))}
        </ul>
      )}
      <Table label="Slow requests" columns={columns} rows={requests} keyOf={({ id, at }) => `${id}${at}`} initial="total"
        empty="No request was slow or failed." />
    </>
  );
}

function Mostly({ request }) {
  const found = heaviest([request]);
  return found ? `${Math.round(100 * found.share)} % ${found.part.short}` : "–";
}

/** The parts in the order in which they happen, to the scale of the slowest request. */
function Parts({ request, most }) {
  const parts = partsOf(request);
  const width = (160 * request.total_ms) / most;
  const sum = Math.max(request.total_ms, Object.values(parts).reduce((all, value) => all + value, 0));
  let left = 0;
  const text = PARTS.map(({ key, label }) => `${label} ${ms(parts[key])}`).join(", ");
  return (
    <svg class="parts-bar" viewBox="0 0 160 12" width="160" height="12" role="img" aria-label={text}>
      <title>{text}</title>
      <rect class="ground" width={width} height="12" rx="2" />
      {PARTS.map(({ key }) => {
        const size = (width * parts[key]) / sum;
        left += size;
        return size > 0.3 && <rect key={key} class={`part-${key}`} x={left - size} width={size} height="12" />;
      })}
    </svg>
  );
}
