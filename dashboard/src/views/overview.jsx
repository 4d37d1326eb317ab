// The first page: the state in one sentence, then everything on one sheet.

import { useRange } from "../data.js";
import { bytes, bytesPerSecond, count, ms, percent, perSecond, share } from "../format.js";
import { parse } from "../route.js";
import { Failures, Field, Latency, OfApps, Requests, Sent, useApps, useCurves } from "../panels.jsx";
import { Card, Delta, State, Tile, Tiles, Waiting } from "../parts.jsx";
import { Apps, Certificates, Events, Limits, Sites, Upstreams, workersOf } from "../tables.jsx";
import { usePage } from "../view.js";
import { Cause } from "../why.jsx";

export function Overview() {
  const { status, certificates, events, route } = usePage();
  const curves = useCurves();
  const sites = useRange("/history/sites", route.range);
  const apps = useApps().data;
  return (
    <>
      <Sentence />
      {curves.data && <Figures history={curves.data} />}
      <div class="grid two">
        <Requests curves={curves} />
        <Latency curves={curves} />
      </div>
      <Card title="Sites" isWide>
        {sites.data ? <Sites history={sites.data} most={50} /> : <Waiting {...sites} />}
      </Card>
      <div class="grid four small">
        <Failures curves={curves} />
        <Sent curves={curves} />
        <Field curves={curves} field="cpu_percent" title="CPU" note="of one core" format={percent} color="orange" />
        <OfApps history={apps} field="resident_bytes" />
      </div>
      <div class="grid two">
        <Card title="Applications" more={route.link("apps")}>
          {status ? <Apps apps={status.apps} history={apps} /> : <Waiting />}
        </Card>
        <Card title="Upstreams" more={route.link("upstreams")}>
          {status ? <Upstreams proxies={status.proxies} /> : <Waiting />}
        </Card>
        <Card title="Limits" more={route.link("limits")}>
          {status ? <Limits limits={status.limits} /> : <Waiting />}
        </Card>
        <Card title="Certificates" more={route.link("certificates")}>
          {certificates.data ? <Certificates certificates={certificates.data.certificates} most={6} /> : <Waiting {...certificates} />}
        </Card>
      </div>
      <Card title="Events" more={route.link("events")} isWide>
        <Events events={events} most={8} empty="No event in this range." />
      </Card>
    </>
  );
}

/** The first row, and below it whatever else is wrong. */
function Sentence() {
  const { sentence, problems, route } = usePage();
  const others = problems.filter((one) => one !== sentence);
  const kept = (link) => {
    const { view, name } = parse(link);
    return route.link(view, name);
  };
  return (
    <section class={`sentence card is-${sentence.level}`} aria-label="State">
      <h1><State level={sentence.level} /> {sentence.href ? <a href={kept(sentence.href)}>{sentence.text}</a> : sentence.text}</h1>
      {sentence.next && <p>{sentence.next}</p>}
      {sentence.slowSite && <Cause key={sentence.slowSite} site={sentence.slowSite} />}
      {others.length > 0 && (
        <ul>
          {others.map((one) => (
            <li key={one.text}>
              <State level={one.level} /> <a href={kept(one.href)}>{one.text}</a> <span class="faint">{one.next}</span>
              {one.slowSite && <Cause site={one.slowSite} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The range's figures, each with its change to the range before. */
function Figures({ history }) {
  const { status, live } = usePage();
  const { total, previous, from, to } = history;
  const memory = status && workersOf(status.apps);
  return (
    <Tiles>
      <Shared total={total} previous={previous} seconds={to - from} />
      <Tile label="Worker memory" value={memory ? bytes(memory.memory) : "–"} note={memory ? `${memory.text}, now` : ""} />
      <Tile label="CPU now" value={live.cpu_percent === undefined ? "–" : percent(Math.round(live.cpu_percent))} note="of one core" />
      <Tile label="Connections" value={count(live.connections ?? status?.open_connections)} note="open now" />
    </Tiles>
  );
}

/** The figures that the whole server and one site have. */
export function Shared({ total, previous, seconds }) {
  const errorShare = (one) => (one.requests ? one.errors / one.requests : null);
  const change = (field, isBad) => <Delta value={total[field]} before={previous[field]} isBad={isBad} />;
  return (
    <>
      <Tile label="Requests" value={count(total.requests)} note={perSecond(total.requests / seconds)} delta={change("requests")} />
      <Tile label="Errors" value={share(total.errors, total.requests)} note={count(total.errors)} title="responses with a status of 500 or above"
        level={errorShare(total) > 0.01 ? "bad" : undefined} delta={<Delta value={errorShare(total)} before={errorShare(previous)} isBad />} />
      <Tile label="p50" value={ms(total.p50_ms)} delta={change("p50_ms", true)} title="half of the requests are faster" />
      <Tile label="p99" value={ms(total.p99_ms)} delta={change("p99_ms", true)}
        title="99 of 100 requests are faster; without cold starts and streams" />
      <Tile label="Cold starts" value={count(total.cold_starts)} title="first answers of new workers; not in the percentiles"
        note={total.cold_starts ? `slowest ${ms(total.slowest_cold_start_ms)}` : "not in p50, p99"} />
      <Tile label="Refused" value={count(total.rejected)} level={total.rejected ? "warn" : undefined} delta={change("rejected", true)}
        note={total.rejected ? perSecond(total.rejected / seconds) : "by limits"} />
      <Tile label="Sent" value={bytes(total.bytes)} note={bytesPerSecond(total.bytes / seconds)} delta={change("bytes")} />
    </>
  );
}
