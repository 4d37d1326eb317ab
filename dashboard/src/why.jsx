// Why a site is slow, as one line: since when, after which event, where the time goes.

import { eventBefore, heaviest, onset } from "./cause.js";
import { useHistory } from "./data.js";
import { clock, duration, ms } from "./format.js";
import { kindOf } from "./marks.js";
import { RANGES } from "./range.js";
import { usePage } from "./view.js";

const HOUR = { ...RANGES[1], isLive: true };
const RECENT_SECONDS = 3600;

/** What is said of a site's slowness in the last hour; nothing where it is not slow. */
export function Cause({ site }) {
  const { hour, slow } = usePage();
  const { data } = useHistory(HOUR, { site });
  const found = data && onset(data.times, data.series.p99_ms);
  if (!found) return null;
  const event = eventBefore(hour ?? [], found.since, data.step_seconds);
  const own = (slow.data?.requests ?? []).filter((one) => one.site === site && one.at >= found.since && one.at >= data.to - RECENT_SECONDS);
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
