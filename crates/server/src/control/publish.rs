//! Builds snapshots and publishes them.
//!
//! Owns what is configured now: the settings, their compiled routes and the newest store of each root.
//! Every change builds a whole new snapshot; requests in flight keep the one they began with.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onehop_config::checked::{Checked, HostPattern, ListenAddress, Listener};
use onehop_files::store::Store;
use onehop_files::tree::StoreSpec;
use onehop_limits::ConcurrencyLimiter;
use onehop_metrics::Registry;
use onehop_metrics::access_log::ServerLogTarget;
use onehop_metrics::site::SiteCounters;

use super::limiters;
use super::logs::{LogReports, OpenLog, OpenServerLog, SiteLogs, open_logs};
use crate::limits::LOG_FINISH_DEADLINE;
use crate::request::admission::SiteLimiters;
use crate::request::admission::rate::{self, ClientRateLimiter};
use crate::request::core::Shared;
use crate::request::handle::proxy::Proxy;
use crate::request::per_address::PerAddress;
use crate::request::route::{
    ErrorRoutes, HostTable, Known, Route, Site, SiteTls, Snapshot, TlsListeners, compile, compile_errors,
};
use onehop_workers::Pool;

/// Publishes snapshots, one at a time.
pub(super) struct Publisher {
    current: Mutex<Configured>,
    /// Set once the first snapshot is there.
    shared: Arc<Shared>,
    server_log: Arc<ServerLogTarget>,
}

/// What is configured.
pub(super) struct Configured {
    pub(super) checked: Checked,
    pub(super) specs: Vec<StoreSpec>,
    pub(super) stores: Vec<Arc<Store>>,
    /// One for each of `configured_apps`, in that order.
    pub(super) pools: Vec<Arc<Pool>>,
    /// Every `reverse_proxy`, by number.
    pub(super) proxies: Vec<Arc<Proxy>>,
    /// TLS by number of the site.
    tls: Vec<Option<Arc<SiteTls>>>,
    /// What the next configuration goes on with.
    pub(super) kept: Kept,
    routes: Vec<Arc<[Route]>>,
    /// By number of the site.
    limiters: Vec<Arc<SiteLimiters>>,
    errors: Vec<Arc<[ErrorRoutes]>>,
    counters: Vec<Vec<Arc<SiteCounters>>>,
    logs: SiteLogs,
    /// Where the server's own messages go from the publication on.
    server_log: Option<OpenServerLog>,
}

/// What outlives a reload.
#[derive(Clone)]
pub(super) struct Kept {
    /// What is counted.
    registry: Arc<Registry>,
    /// Addresses by number of the listener, as long as the process runs: a number is never used for
    /// another address, because connections remember it.
    pub(super) addresses: Vec<ListenAddress>,
    /// Every `rate_limit`: whose settings stay the same goes on counting where it is.
    pub(super) rate_limiters: Vec<Arc<ClientRateLimiter>>,
    /// Every `limit` once, but for those of applications: the same, with those that are in.
    pub(super) limiters: Vec<Arc<ConcurrencyLimiter>>,
    /// Every access log once.
    logs: Vec<OpenLog>,
}

impl Kept {
    /// Of a process that starts.
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        let registry = Arc::clone(registry);
        Self {
            registry,
            addresses: Vec::new(),
            rate_limiters: Vec::new(),
            limiters: Vec::new(),
            logs: Vec::new(),
        }
    }
}

impl Configured {
    /// Settings with the stores of their specs. `kept` is that of before, if any.
    pub(super) fn new(
        checked: Checked,
        specs: Vec<StoreSpec>,
        stores: Vec<Arc<Store>>,
        pools: Vec<Arc<Pool>>,
        (proxies, tls): (Vec<Arc<Proxy>>, Vec<Option<Arc<SiteTls>>>),
        mut kept: Kept,
        reports: &LogReports,
    ) -> Result<Self, String> {
        let apps: Vec<_> = pools.iter().map(|pool| Arc::clone(&pool.app)).collect();
        let settings: Vec<_> = proxies.iter().map(|proxy| Arc::clone(&proxy.settings)).collect();
        kept.rate_limiters = rate::limiters(&checked, &kept.rate_limiters);
        let made = limiters::make(&checked, &kept.limiters)?;
        kept.limiters = made.all;
        let known = Known {
            stores: &specs,
            own_files: &checked.own_files(),
            apps: &apps,
            proxies: &settings,
            rate_limiters: &kept.rate_limiters,
            limits: &[],
            logs: &[],
            routes: None,
        };
        let opened = open_logs(&checked, &kept.logs, reports)?;
        kept.logs = opened.all;
        let counters: Vec<_> = checked.sites.iter().map(|site| kept.registry.site(&site.label)).collect();
        let sites = || {
            let sites = checked.sites.iter().zip(&made.sites).zip(&counters);
            sites.map(move |((site, limiters), counters)| {
                let (limits, logs) = (&limiters.limits, &site.logs);
                let routes = counters.first().map(|counters| counters.route_names());
                (site, Known { limits, logs, routes, ..known })
            })
        };
        let routes = sites().map(|(site, known)| compile(&site.routes, known)).collect();
        let errors = sites().map(|(site, known)| compile_errors(&site.errors, known)).collect();
        let limiters = made.sites.iter().map(|site| Arc::clone(&site.limiters)).collect();
        let (logs, server_log) = (opened.of_sites, opened.of_server);
        for listener in &checked.listeners {
            if !kept.addresses.iter().any(|known| is_same_place(known, &listener.address)) {
                kept.addresses.push(listener.address.clone());
            }
        }
        Ok(Self {
            checked,
            specs,
            stores,
            pools,
            proxies,
            tls,
            kept,
            routes,
            limiters,
            errors,
            counters,
            logs,
            server_log,
        })
    }

    /// What the next configuration goes on with, and the trees that are in memory.
    pub(super) fn outlasting(&self) -> (Kept, Vec<(StoreSpec, Arc<Store>)>) {
        (self.kept.clone(), self.specs.iter().cloned().zip(self.stores.clone()).collect())
    }

    /// The listener that is configured at an address.
    pub(super) fn listener(&self, address: &ListenAddress) -> Option<&Listener> {
        self.checked.listeners.iter().find(|listener| is_same_place(&listener.address, address))
    }

    /// How many connections an address may have. A peer that any site takes for a proxy brings many clients.
    fn per_address(&self) -> PerAddress {
        let global = &self.checked.global;
        let most = global.connections_per_address.and_then(NonZeroU32::new);
        let of_sites = self.pools.iter().map(|pool| &pool.app.trusted_proxies);
        let of_sites = of_sites.chain(self.proxies.iter().map(|proxy| &proxy.settings.trusted_proxies));
        let mut trusted = Vec::new();
        for network in of_sites.chain([&global.trusted_proxies]).flatten().filter(|_| most.is_some()) {
            if !trusted.contains(network) {
                trusted.push(*network);
            }
        }
        PerAddress { most, trusted }
    }

    /// Whether the connections of a listener are encrypted.
    pub(super) fn is_encrypted(&self, number: usize) -> bool {
        let listener = self.kept.addresses.get(number).and_then(|address| self.listener(address));
        listener.is_some_and(|listener| listener.tls)
    }

    /// A host that a site of a listener answers; `localhost` where one answers every host, or none has an exact one.
    pub(super) fn answered_host(&self, number: usize) -> &str {
        let listener = self.kept.addresses.get(number).and_then(|address| self.listener(address));
        let sites = listener.map_or(&[][..], |listener| &listener.sites);
        let mut first = None;
        for site in sites.iter().filter_map(|&site| self.checked.sites.get(site)) {
            let exact = site.hosts.iter().find_map(|host| match host {
                HostPattern::Exact(host) => Some(host.as_str()),
                _ => None,
            });
            if site.hosts.is_empty() || exact == Some("localhost") {
                return "localhost";
            }
            first = first.or(exact);
        }
        first.unwrap_or("localhost")
    }

    fn tls_listeners(&self) -> TlsListeners {
        let global = &self.checked.global.tls;
        TlsListeners {
            encrypted: (0..self.kept.addresses.len()).map(|number| self.is_encrypted(number)).collect(),
            default_name: global.default_name.clone(),
            fallback_name: global.fallback_name.clone(),
        }
    }

    /// Every `limit` with its requests, those of applications too.
    pub(super) fn limits(&self) -> impl Iterator<Item = &ConcurrencyLimiter> {
        let own = self.pools.iter().filter_map(|pool| pool.limiter.as_ref());
        self.kept.limiters.iter().chain(own).map(Arc::as_ref)
    }

    /// Whether a connection may need a second descriptor: for an answer from disk, or from an upstream.
    pub(super) fn needs_second_descriptor(&self) -> bool {
        !self.proxies.is_empty()
            || self.stores.iter().any(|store| store.totals.on_disk > 0)
            || self.routes.iter().any(|routes| routes.iter().any(Route::may_need_disk))
            || self
                .errors
                .iter()
                .flat_map(|errors| errors.iter())
                .any(|errors| errors.routes.iter().any(Route::may_need_disk))
    }

    /// A snapshot of all this.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        let sites =
            self.checked.sites.iter().zip(&self.routes).zip(&self.limiters).zip(&self.errors).zip(&self.logs);
        let sites = sites.zip(&self.tls).zip(&self.counters);
        let sites = sites.map(|((((((site, routes), limiters), errors), logs), tls), counters)| Site {
            label: site.label.as_str().into(),
            routes: Arc::clone(routes),
            limiters: Arc::clone(limiters),
            errors: Arc::clone(errors),
            counters: counters.clone(),
            logs: logs.clone(),
            tls: tls.clone(),
        });
        let hosts = self.kept.addresses.iter().map(|address| {
            let numbers =
                self.listener(address).map(|listener| listener.sites.as_slice()).unwrap_or_default();
            HostTable::new(numbers.iter().filter_map(|number| {
                self.checked.sites.get(*number).map(|site| (*number, site.hosts.as_slice()))
            }))
        });
        Arc::new(Snapshot {
            hosts: hosts.collect(),
            sites: sites.collect(),
            stores: self.stores.clone(),
            apps: self.pools.clone(),
            proxies: self.proxies.clone(),
            per_address: self.per_address(),
            proxy_protocol: self.checked.global.proxy_protocol.clone().map(Arc::new),
            tls: self.tls_listeners(),
            protocols: self.checked.global.protocols,
            trusted_proxies: self.checked.global.trusted_proxies.clone(),
        })
    }
}

impl Publisher {
    /// A publisher whose first snapshot `shared` already has.
    pub(super) fn new(
        mut configured: Configured,
        shared: Arc<Shared>,
        server_log: Arc<ServerLogTarget>,
    ) -> Self {
        server_log.set(configured.server_log.take());
        Self { current: Mutex::new(configured), shared, server_log }
    }

    /// What is configured now.
    pub(super) fn current(&self) -> MutexGuard<'_, Configured> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, within a bound, until the lines that were handed over are written.
    pub(super) fn finish_logs(&self) {
        let until = Instant::now() + LOG_FINISH_DEADLINE;
        let open = self.current().kept.logs.clone();
        open.iter().for_each(|log| log.writer.finish(until));
    }

    /// Opens every log file anew.
    pub(super) fn reopen_logs(&self) {
        self.current().kept.logs.iter().for_each(|log| log.writer.reopen());
    }

    /// Publishes other settings.
    pub(super) fn replace(&self, mut configured: Configured) {
        let mut current = self.current();
        // A tree may have changed since the stores were chosen: what is newer stays.
        for (spec, store) in configured.specs.iter().zip(&mut configured.stores) {
            if let Some(number) = current.specs.iter().position(|before| before == spec)
                && let Some(newest) = current.stores.get(number)
            {
                *store = Arc::clone(newest);
            }
        }
        self.server_log.set(configured.server_log.take());
        *current = configured;
        current.kept.logs.iter().for_each(|log| log.writer.reopen());
        self.shared.publish(current.snapshot());
    }

    /// Publishes a newer store of a tree; one that is no longer configured so is passed over.
    pub(super) fn replace_store(&self, spec: &StoreSpec, store: Arc<Store>) {
        let mut current = self.current();
        let Some(number) = current.specs.iter().position(|known| known == spec) else { return };
        if let Some(place) = current.stores.get_mut(number) {
            *place = store;
            self.shared.publish(current.snapshot());
        }
    }
}

/// Whether two addresses cannot be listened on at once. The permissions of a Unix socket are no part of
/// its place.
fn is_same_place(one: &ListenAddress, other: &ListenAddress) -> bool {
    match (one, other) {
        (ListenAddress::Unix { path, .. }, ListenAddress::Unix { path: other, .. }) => path == other,
        _ => one == other,
    }
}
