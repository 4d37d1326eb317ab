// What the page asks the server, and how often. Nothing else fetches.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { before, refreshSeconds, windowOf } from "./range.js";
import { RECENT_SECONDS } from "./state.js";
import { token } from "./token.js";

const STATUS_SECONDS = 5;
const SLOW_SECONDS = 15;
const TIMEOUT_MS = 10_000;
const TRIES_BEFORE_LOST = 2; // one failure may be a reload of the page's own connection

export const now = () => Date.now() / 1000;

async function get(path, signal) {
  const response = await fetch(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) });
  if (response.status === 404) return { isMissing: true };
  if (!response.ok) throw new Error(`${path.split("?")[0]}: ${response.status}`);
  return { data: await response.json() };
}

/**
 * Asks for `path()` at once and every so many seconds (null: once) while the page is visible.
 * `key` says what it is: another key begins anew, and until its answer the former data stays.
 */
export function useAnswer(key, path, seconds, version = 0) {
  const [answer, setAnswer] = useState({ key: null, data: null });
  const failures = useRef(0);
  useEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    let timer = null;
    let askedAt = 0;
    const ask = async () => {
      clearTimeout(timer);
      let isMissing = false;
      askedAt = now();
      try {
        const got = await get(path(), stop.signal);
        failures.current = 0;
        isMissing = got.isMissing ?? false;
        setAnswer({ key, data: null, ...got });
      } catch (error) {
        if (stop.signal.aborted) return;
        failures.current += 1;
        setAnswer((old) => ({ ...old, error, lostAt: failures.current < TRIES_BEFORE_LOST ? null : (old.lostAt ?? now()) }));
      }
      if (seconds !== null && !isMissing && !stop.signal.aborted) timer = setTimeout(() => document.hidden || ask(), 1000 * seconds);
    };
    const onVisible = () => !document.hidden && seconds !== null && now() - askedAt >= seconds && ask();
    document.addEventListener("visibilitychange", onVisible);
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, seconds, version]);
  return { ...answer, isStale: answer.key !== key };
}

const FREQUENT_SECONDS = 15;

const query = (window, others = {}) => new URLSearchParams({ ...window, ...others }).toString();

export const useStatus = (version) => useAnswer("status", () => "/status", STATUS_SECONDS, version);
export const useCertificates = () => useAnswer("certificates", () => "/certificates", 60);
export const useSlow = () => useAnswer("slow", () => "/slow", SLOW_SECONDS);

/** Figures over a range: `useHistory(range)`, or of one site, or of the range just before. */
export function useHistory(range, { site, isPrevious = false, isWanted = true } = {}) {
  const path = () => {
    const window = windowOf(range, now());
    return `/history?${query(isPrevious ? before(window) : window, site ? { site } : {})}`;
  };
  return useAnswer(isWanted ? `${range.key} ${site} ${isPrevious}` : null, path, refreshSeconds(range));
}

export function useRange(path, range) {
  return useAnswer(`${path} ${range.key}`, () => `${path}?${query(windowOf(range, now()))}`, refreshSeconds(range));
}

export const useFrequent = (site) => useAnswer(`frequent ${site}`, () => `/frequent?${query({}, { site })}`, FREQUENT_SECONDS);
export const useHandlers = (site) => useAnswer(site, () => `/history/handlers?${query({}, { site })}`, 30);

/** What the state is judged by, whatever range is shown: each site's last minutes, samples of hours ago, a day's events. */
export function useRecent() {
  const ago = (path, from, to) => () => `${path}?${query({ from: Math.floor(now()) - from, to: Math.floor(now()) - to })}`;
  const sample = (hours) => useAnswer(`${hours} h`, ago("/history/sites", hours * 3600, hours * 3600 - RECENT_SECONDS), 60).data;
  const samples = [sample(1), sample(6), sample(24)];
  return {
    recent: useAnswer("recent", ago("/history/sites", RECENT_SECONDS, 0), 10).data,
    usual: useMemo(() => samples.filter(Boolean), samples),
    lately: useAnswer("events", ago("/events", 25 * 3600, -1), 10).data?.events,
  };
}

/** The live stream: the last event, and whether it is open. The browser opens it again by itself. */
export function useLive() {
  const [live, setLive] = useState({ isOpen: false, sites: {} });
  useEffect(() => {
    const source = new EventSource("/live");
    source.onmessage = ({ data }) => {
      const { sites, ...others } = JSON.parse(data);
      setLive({ isOpen: true, ...others, sites: Object.fromEntries(sites.map((one) => [one.site, one])) });
    };
    source.onerror = () => setLive((old) => ({ ...old, isOpen: false, sites: {} }));
    return () => source.close();
  }, []);
  return live;
}

/** Changes something; throws with the server's own words. */
export async function post(path) {
  const response = await fetch(path, { method: "POST", headers: { "Onehop-Token": token() } });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `${path}: ${response.status}`);
  return body;
}
