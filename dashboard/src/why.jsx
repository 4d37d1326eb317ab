// Why a site is slow, as one line: since when, after which event, where the time goes.

import { eventBefore, heaviest, onset } from "./cause.js";
import { useHistory } from "./data.js";
import { clock, duration, ms } from "./format.js";
import { kindOf } from "./marks.js";
import { RANGES } from "./range.js";
import { usePage } from "./view.js";

const HOUR = { ...RANGES[1], isLive: true };
const DAY = { ...RANGES[3], isLive: true };

/** What is said of a slow site: its rise is looked for in the last hour, else in the last day. */
export function Cause({ site }) {
  const { lately, slow } = usePage();
  const hour = useHistory(HOUR, { site }).data;
  const isHere = hour && onset(hour.times, hour.series.p99_ms);
  const day = useHistory(DAY, { site, isWanted: hour !== null && !isHere }).data;
  const data = isHere ? hour : day;
  const found = data && onset(data.times, data.series.p99_ms);
  if (!found) return null;
  const event = eventBefore(lately, found.since, data.step_seconds);
  const own = (slow.data?.requests ?? []).filter((one) => one.site === site && one.at >= found.since);
  const part = heaviest(own);
  return (
    <dl class="cause">
      <div>
        <dt>Since</dt>
        <dd><b>{clock(found.since)}</b>, {duration(data.to - found.since)} ago: p99 from {ms(found.before)} to {ms(found.now)}</dd>
      </div>
      <div>
        <dt>After</dt>
        <dd>{event ? <><b>{kindOf(event)}</b> at {clock(event.at)}: {event.text}</> : "no event just before"}</dd>
      </div>
      {part && (
        <div>
          <dt>Why</dt>
          <dd><b>{Math.round(100 * part.share)} %</b> of its slow requests’ time is <b>{part.part.label}</b></dd>
        </div>
      )}
    </dl>
  );
}
