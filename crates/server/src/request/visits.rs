//! The most frequent paths, user agents and client addresses of each site, in this hour and the one before.
//!
//! A core counts all of its requests while they are few, and a random sample when they are many, so that the cost is bounded. These
//! texts are not in `/metrics`. Neither queries nor other fields are kept: they may hold secrets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onehop_http1::RequestHead;
use onehop_metrics::frequent::{Counted, Frequent};
use serde::Serialize;

use crate::limits::{
    VISITS_ADAPTED_AFTER, VISITS_PER_SECOND, VISITS_PERIOD, VISITS_SHOWN_MAX, VISITS_SITES_MAX,
    VISITS_STRIDE_MAX,
};

/// The requests of one core that are looked at.
pub struct Visits {
    /// Requests until the next one that is.
    left: AtomicU32,
    state: Mutex<State>,
}

struct State {
    /// One request in so many is looked at.
    stride: u32,
    /// A second, and how many were in it.
    second: Instant,
    looked_at: u32,
    /// This period's beginning.
    began: Instant,
    /// A few: one after the other is looked at sooner than a name is hashed.
    sites: Vec<SiteTables>,
}

/// This period of a site and the one before.
struct SiteTables {
    label: Arc<str>,
    current: Tables,
    before: Tables,
}

/// One period of a site.
#[derive(Debug, Default, Clone)]
struct Tables {
    paths: Frequent,
    agents: Frequent,
    /// By their octets; `-` where a client has none.
    addresses: Frequent,
}

/// What `GET /frequent` shows of a site; documented in docs/control-api.md.
#[derive(Debug, Default, Serialize)]
pub struct FrequentOfSite {
    /// Its label.
    pub site: String,
    /// So many seconds ago the counting began.
    pub seconds: u64,
    /// Requests in that time.
    pub requests: u64,
    /// Paths without their query, of responses below 400.
    pub paths: Vec<Row>,
    /// `User-Agent`
    pub agents: Vec<Row>,
    /// Clients.
    pub addresses: Vec<Row>,
}

/// One of the most frequent texts.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The text.
    pub text: String,
    /// How often it came.
    pub requests: u64,
    /// By how much `requests` may be too large.
    pub excess: u64,
}

impl Default for Visits {
    fn default() -> Self {
        let now = Instant::now();
        let state = State { stride: 1, second: now, looked_at: 0, began: now, sites: Vec::new() };
        Self { left: AtomicU32::new(0), state: Mutex::new(state) }
    }
}

impl Visits {
    /// Whether this request is counted. All requests pay for this, and for nothing else here.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // Only its core counts.
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.wrapping_sub(1), Ordering::Relaxed);
        left == 0
    }

    /// Counts a request of this site. Its path counts only if the response's status is below 400.
    #[cold]
    #[inline(never)] // So that `xtask bench instructions` can tell what it costs.
    pub(crate) fn count(&self, site: &Arc<str>, head: &RequestHead, client: Option<IpAddr>, status: u16) {
        let now = Instant::now();
        let mut state = self.lock();
        let weight = u64::from(state.stride);
        state.adapt(now);
        state.turn(now);
        self.left.store(fastrand::u32(0..2 * state.stride - 1), Ordering::Relaxed);
        let Some(tables) = state.tables(site) else { return };
        if status < 400 {
            tables.paths.add(head.path(), weight);
        }
        tables.agents.add(head.find("user-agent").unwrap_or(b"-"), weight);
        match client {
            Some(IpAddr::V4(client)) => tables.addresses.add(&client.octets(), weight),
            Some(IpAddr::V6(client)) => tables.addresses.add(&client.octets(), weight),
            None => tables.addresses.add(b"-", weight),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// This period of a site, if there is room for it.
    fn tables(&mut self, site: &Arc<str>) -> Option<&mut Tables> {
        let is_it = |known: &SiteTables| Arc::ptr_eq(&known.label, site) || known.label == *site;
        let number = match self.sites.iter().position(is_it) {
            Some(number) => number,
            None if self.sites.len() < VISITS_SITES_MAX => {
                let (current, before) = Default::default();
                self.sites.push(SiteTables { label: Arc::clone(site), current, before });
                self.sites.len() - 1
            }
            None => return None,
        };
        self.sites.get_mut(number).map(|site| &mut site.current)
    }

    /// Looks at fewer requests of a busy second, and at more after a quiet one.
    fn adapt(&mut self, now: Instant) {
        self.looked_at += 1;
        if now.saturating_duration_since(self.second) >= VISITS_ADAPTED_AFTER {
            if self.looked_at < VISITS_PER_SECOND / 4 {
                self.stride = (self.stride / 2).max(1);
            }
            (self.second, self.looked_at) = (now, 0);
        } else if self.looked_at >= VISITS_PER_SECOND {
            self.stride = self.stride.saturating_mul(2).min(VISITS_STRIDE_MAX);
            (self.second, self.looked_at) = (now, 0);
        }
    }

    /// Begins the next period when this one is over.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < VISITS_PERIOD {
            return;
        }
        let is_older = age >= 2 * VISITS_PERIOD;
        for site in &mut self.sites {
            site.before = std::mem::take(&mut site.current);
            if is_older {
                site.before = Tables::default();
            }
        }
        self.sites.retain(|site| site.before.agents.total() > 0);
        self.began = now;
    }
}

/// What all cores have counted of a site.
pub(crate) fn of_site(cores: &[Visits], site: &str) -> FrequentOfSite {
    let now = Instant::now();
    let (mut all, mut began) = (Tables::default(), now);
    for core in cores {
        let mut state = core.lock();
        state.turn(now);
        let Some(found) = state.sites.iter().find(|known| *known.label == *site) else { continue };
        let start = Some(state.began).filter(|_| found.before.agents.total() == 0);
        began = began.min(start.or_else(|| state.began.checked_sub(VISITS_PERIOD)).unwrap_or(now));
        for tables in [&found.current, &found.before] {
            all.paths.merge(&tables.paths);
            all.agents.merge(&tables.agents);
            all.addresses.merge(&tables.addresses);
        }
    }
    FrequentOfSite {
        site: site.to_owned(),
        seconds: now.saturating_duration_since(began).as_secs(),
        requests: all.agents.total(),
        paths: rows(&all.paths, text),
        agents: rows(&all.agents, text),
        addresses: rows(&all.addresses, address),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn address(bytes: &[u8]) -> String {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).to_string());
    let v6 = <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).to_string());
    v4.or(v6).unwrap_or_else(|_| text(bytes))
}

fn rows(frequent: &Frequent, shown: fn(&[u8]) -> String) -> Vec<Row> {
    let row = |Counted { text, count, excess }| Row { text: shown(&text), requests: count, excess };
    frequent.top(VISITS_SHOWN_MAX).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use onehop_http1::{Limits, ServerCodec};

    use super::*;

    fn head(path: &str) -> RequestHead {
        let mut head = RequestHead::new();
        let text = format!("GET {path}?secret=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: browser\r\n\r\n");
        let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
        assert!(matches!(read, Ok(Some(_))));
        head
    }

    fn ask(visits: &Visits, site: &Arc<str>, path: &str, status: u16, times: usize) {
        let head = head(path);
        for _ in 0..times {
            if visits.is_due() {
                visits.count(site, &head, Some([10, 0, 0, 1].into()), status);
            }
        }
    }

    #[test]
    fn a_few_requests_are_counted_exactly_over_cores_and_without_queries() {
        let cores = [Visits::default(), Visits::default()];
        let site: Arc<str> = "a".into();
        ask(&cores[0], &site, "/one", 200, 20);
        ask(&cores[1], &site, "/one", 304, 5);
        ask(&cores[1], &site, "/two", 200, 7);
        ask(&cores[1], &site, "/wp-login.php", 404, 9);
        cores[1].count(&site, &head("/two"), Some([0xfd00, 0, 0, 0, 0, 0, 0, 1].into()), 200);
        let shown = serde_json::to_value(of_site(&cores, "a")).expect("JSON");
        let row = |text: &str, requests: u64| serde_json::json!({ "text": text, "requests": requests, "excess": 0 });
        assert_eq!(shown["paths"], serde_json::json!([row("/one", 25), row("/two", 8)]));
        assert_eq!(shown["agents"], serde_json::json!([row("browser", 42)]));
        assert_eq!(shown["addresses"], serde_json::json!([row("10.0.0.1", 41), row("fd00::1", 1)]));
        assert_eq!(shown["requests"], 42);
        assert_eq!(of_site(&cores, "b").requests, 0);
    }

    #[test]
    fn of_many_requests_a_few_are_looked_at_and_the_counts_stay_near_the_truth() {
        let cores = [Visits::default()];
        let site: Arc<str> = "a".into();
        for _ in 0..200 {
            ask(&cores[0], &site, "/often", 200, 3_000);
            ask(&cores[0], &site, "/seldom", 200, 1_000);
        }
        let looked_at = cores[0].lock().stride;
        assert!(looked_at > 64, "one in {looked_at}");
        let shown = serde_json::to_value(of_site(&cores, "a")).expect("JSON");
        let often = shown["paths"][0]["requests"].as_f64().expect("a number") / 600_000.0;
        assert!((0.8..1.2).contains(&often) && shown["paths"][0]["text"] == "/often", "{shown}");
    }

    #[test]
    fn the_hour_before_the_last_one_is_forgotten() {
        let cores = [Visits::default()];
        let site: Arc<str> = "a".into();
        ask(&cores[0], &site, "/old", 200, 3);
        let mut state = cores[0].lock();
        let began = state.began;
        state.turn(began + VISITS_PERIOD);
        assert_eq!(state.sites[0].before.paths.total(), 3);
        state.turn(began + 2 * VISITS_PERIOD);
        assert!(state.sites.is_empty());
    }

    #[test]
    fn sites_beyond_the_bound_are_not_counted() {
        let cores = [Visits::default()];
        for number in 0..VISITS_SITES_MAX + 5 {
            ask(&cores[0], &number.to_string().into(), "/", 200, 1);
        }
        assert_eq!(cores[0].lock().sites.len(), VISITS_SITES_MAX);
    }
}
