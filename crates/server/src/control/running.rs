//! Start, reload, stop.
//!
//! The order of a start: read the trees, build the snapshot, bind every address, start the cores. Only
//! then are requests answered, and nothing that can fail is left.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Instant, SystemTime};

use onehop_archive::installed::Packed;
use onehop_certificates::issuer::RevocationReason;
use onehop_config::checked::{self, Checked, ListenAddress};
use onehop_files::tree::CompressorProgram;
use onehop_metrics::access_log::ServerLogTarget;
use onehop_metrics::families::Families;
use onehop_metrics::recent::Recent;
use onehop_metrics::stats::Stats;
use onehop_metrics::{Registry, collect};
use onehop_otlp::{MetricsExport, Traces};
use onehop_supervisor::loaded::Files;
use onehop_supervisor::{AppEventSink, AppStatus, Restart, SuperviseOptions, Supervisor};
use onehop_upstream::tls::system_roots;

use super::admin::{Admin, Api};
use super::bind::{self, Bound};
use super::certificate_report::{CertificatesStatus, RevokedCertificate};
use super::certificates::Certificates;
use super::cores::{Cores, cores_allowed};
use super::descriptors::{self, Needs};
use super::events::{Event, EventSink};
use super::fixed::Fixed;
use super::history::{self, Live, Observed, Reading, Recorder, View};
use super::logs::LogReports;
use super::memory;
use super::publish::{Configured, Kept, Publisher};
use super::start_error::StartError;
use super::stats;
use super::status::{ReloadSummary, SiteStatus, Status, StoreStatus};
use super::trees::Trees;
use super::upstreams::Upstreams;
use crate::limits::{ADMIN_PORTS_TRIED_MAX, GRACE_PERIOD_MAX, TUNNEL_GRACE_MARGIN, TUNNEL_GRACE_MAX};
use crate::request::core::Shared;
use crate::request::retained::RetainedRequest;
use crate::request::route::{apps_of_site, configured_apps, store_specs};
use crate::request::visits::FrequentOfSite;
use onehop_connection::limits::Timeouts;

/// Reads the configuration anew; the error is for a person.
pub type Load = Arc<dyn Fn() -> Result<Checked, String> + Send + Sync>;

/// What the program decides, besides the checked settings.
pub struct Options {
    /// Core threads; overrides the file's.
    pub threads: Option<NonZeroUsize>,
    /// Where events go.
    pub events: EventSink,
    /// Path of the control socket; none means that there is none.
    pub control_socket: Option<PathBuf>,
    /// Reads the configuration anew for a reload.
    pub load: Load,
    /// The process that compresses files; `None` lets the server do it, and keep the memory.
    pub compressor: Option<CompressorProgram>,
    /// How workers of applications are started.
    pub supervise: SuperviseOptions,
    /// Deadlines of connections.
    pub timeouts: Timeouts,
    /// Bound on open connections; `None` takes what limits and descriptors allow.
    pub connections_max: Option<NonZeroUsize>,
    /// The last lines of logs, applications and events: the server adds those of access logs.
    pub recent: Arc<Recent>,
    /// Where events are to be shown: the server sets it to what the configuration says.
    pub server_log: Arc<ServerLogTarget>,
    /// The pack that the program is: what lies below its base is served, read and unpacked from there.
    pub packed: Option<Packed>,
    /// The server's folder among the histories in the data directory; `None` holds its history in memory.
    pub history: Option<String>,
}

/// Gives, for an application's name, the files that its processes have loaded; nothing where it does not run.
pub type AppFiles = Arc<dyn Fn(&str) -> Option<Arc<Files>> + Send + Sync>;

/// The server before it runs.
pub struct Server;

/// A server that runs.
pub struct Running {
    inner: Arc<Inner>,
    /// Ends with this value.
    _admin: Option<Admin>,
}

struct Inner {
    publisher: Arc<Publisher>,
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    cores: Cores,
    trees: Mutex<Trees>,
    supervisor: Supervisor,
    upstreams: Upstreams,
    certificates: Certificates,
    recorder: Recorder,
    /// By number of the listener; `None` once it is closed.
    bound: Mutex<Vec<Option<String>>>,
    events: EventSink,
    recent: Arc<Recent>,
    load: Load,
    /// One reload at a time.
    reloading: Mutex<()>,
    /// Until now.
    reloads: AtomicU64,
    started: Instant,
    /// The thread that exports metrics, where the configuration asks for it.
    metrics_export: Mutex<Option<MetricsExport>>,
    admin: Option<String>,
    fixed: Fixed,
    /// Whatever descriptors and memory allow.
    connections_fixed: Option<usize>,
    /// For threads that end with the server.
    itself: Weak<Inner>,
}

/// Everything that a server listens on.
struct Sockets {
    listeners: Vec<Bound>,
    admin: Option<std::net::TcpListener>,
    control: Option<std::os::unix::net::UnixListener>,
}

impl Server {
    /// Reads the trees, binds every address and answers requests.
    pub fn start(checked: Checked, options: Options) -> Result<Running, StartError> {
        let started = Instant::now();
        descriptors::raise_limit();
        let Options { threads, events, control_socket, load, compressor, supervise, timeouts, .. } = options;
        let Options { connections_max, packed, recent, server_log, history, .. } = options;
        let (recorder, events) = Recorder::new(history, events);
        let packed = packed.map(Arc::new);
        let fixed = Fixed::of(&checked.global, threads);
        let cores = threads.or(checked.global.threads).map_or_else(cores_allowed, NonZeroUsize::get);
        let (needs, limit, share) = bounds(&checked, cores)?;
        let registry = Arc::new(Registry::new(cores));

        // Workers start while the trees are read; requests wait for them, listening does not.
        let supervisor =
            Supervisor::new(supervise, packed.clone(), cores, share.windows, app_events(&events));
        let pools = supervisor.start(configured_apps(&checked))?;
        let upstreams = Upstreams::new(packed.clone(), Arc::clone(&events));
        let prepared = upstreams.prepare(&checked).map_err(StartError::Store)?;
        let certificates = Certificates::new(Arc::clone(&events));
        let tls = certificates.prepare(&checked).map_err(StartError::Tls)?;
        let specs = store_specs(&checked);
        let read = Trees::read(&specs, share.files_bytes, compressor, packed, Arc::clone(&events));
        let (mut trees, stores) = read.map_err(StartError::Store)?;
        let admin_address = checked.global.admin;
        let logs = LogReports::new(&registry, &events, &recent);
        let made = (prepared.proxies(), tls.sites.clone());
        let configured = Configured::new(checked, specs, stores, pools, made, Kept::new(&registry), &logs)
            .map_err(StartError::Store)?;
        let allowed = needs.connections(limit, configured.needs_second_descriptor());
        let allowed = allowed.map_err(StartError::Descriptors)?;
        let connections_fixed = connections_max.map(NonZeroUsize::get);
        let connections = connections_fixed.unwrap_or_else(|| share.connections.min(allowed));
        warn_of_few_descriptors(limit, connections, &events);
        let shared = Shared::new(configured.snapshot(), cores, connections, timeouts);
        shared.set_connections_max(connections, share.connections);
        let shared = shared_by_cores(shared, &certificates, &share, &events);

        let sockets = Sockets::bind(&configured.kept.addresses, cores, admin_address, control_socket)?;
        let admin = sockets.admin.as_ref().and_then(|socket| socket.local_addr().ok());
        let core_threads = Cores::start(cores, &shared, &registry)?;
        supervisor.open(core_threads.attach());
        upstreams.carry_out(prepared);
        certificates.carry_out(tls);
        let publisher = Arc::new(Publisher::new(configured, Arc::clone(&shared), server_log));
        trees.watch(&publisher);
        let inner = Arc::new_cyclic(|itself| Inner {
            publisher,
            shared,
            registry,
            cores: core_threads,
            trees: Mutex::new(trees),
            supervisor,
            upstreams,
            certificates,
            recorder,
            bound: Mutex::default(),
            events,
            recent,
            load,
            reloading: Mutex::new(()),
            reloads: AtomicU64::new(0),
            started,
            metrics_export: Mutex::default(),
            admin: admin.map(|address| address.to_string()),
            fixed,
            connections_fixed,
            itself: Weak::clone(itself),
        });
        Self::serve(inner, sockets)
    }

    /// Requests are taken from here on, of clients and of those who look after the server.
    fn serve(inner: Arc<Inner>, sockets: Sockets) -> Result<Running, StartError> {
        for (number, socket) in sockets.listeners.into_iter().enumerate() {
            inner.listen(number, socket);
        }
        if let Some(address) = &inner.admin {
            let instead_of = match inner.publisher.current().checked.global.admin {
                checked::Admin::Default(wanted) => {
                    Some(wanted.to_string()).filter(|wanted| wanted != address)
                }
                checked::Admin::Off | checked::Admin::Address(_) => None,
            };
            (inner.events)(Event::AdminListening { address: address.clone(), instead_of });
        }
        let api: Arc<dyn Api> = Arc::clone(&inner) as Arc<dyn Api>;
        let has_admin = sockets.admin.is_some() || sockets.control.is_some();
        let admin = has_admin.then(|| Admin::start(sockets.admin, sockets.control, api)).transpose()?;
        let observed = Arc::downgrade(&inner) as Weak<dyn Observed>;
        inner.recorder.start(observed, Arc::clone(&inner.events))?;
        inner.export_metrics();
        (inner.events)(Event::Ready { took: inner.started.elapsed() });
        Ok(Running { inner, _admin: admin })
    }
}

impl Sockets {
    fn bind(
        addresses: &[ListenAddress],
        cores: usize,
        admin: checked::Admin,
        control: Option<PathBuf>,
    ) -> Result<Self, StartError> {
        let listeners = addresses.iter().map(|address| bind::bind(address, cores, &[]));
        Ok(Self {
            listeners: listeners.collect::<Result<_, _>>()?,
            admin: bind_admin(admin)?,
            control: control.map(|path| bind::bind_control(&path)).transpose()?,
        })
    }
}

impl Running {
    /// Bound addresses, in the order of the listeners.
    pub fn addresses(&self) -> Vec<String> {
        self.inner.addresses()
    }

    /// Builds a snapshot from what `Options::load` reads, then publishes it. A failure changes nothing.
    pub fn reload(&self) -> Result<ReloadSummary, String> {
        self.inner.reload(Restart::Changed)
    }

    /// The same, with new processes for every application.
    pub fn restart(&self) -> Result<ReloadSummary, String> {
        self.inner.reload(Restart::All)
    }

    /// What applications have loaded, to be asked from other threads.
    pub fn app_files(&self) -> AppFiles {
        let inner = Arc::clone(&self.inner);
        Arc::new(move |name| inner.supervisor.files(name))
    }

    /// Opens the files of all access logs anew: those before were moved away.
    pub fn reopen_logs(&self) {
        self.inner.publisher.reopen_logs();
    }

    /// Begins to stop: no new connections, what is in flight is finished within the grace period.
    pub fn stop(&self) {
        self.inner.stop();
    }

    /// Waits until the server has stopped, by whomever; the number of connections that were cut off.
    pub fn wait(self) -> u64 {
        self.inner.cores.wait_until_drained();
        // Nobody asks workers anything any more: they finish what runs besides, and none outlives the server.
        self.inner.supervisor.stop();
        self.inner.upstreams.stop();
        let cut_off = self.inner.cores.join();
        self.inner.publisher.finish_logs();
        if let Some(traces) = self.inner.shared.traces() {
            traces.stop();
        }
        let export = self.inner.metrics_export.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(export) = export {
            export.stop();
        }
        self.inner.remove_unix_sockets();
        // A reload that still reads a tree holds the lock; the process ends without waiting for it.
        if let Ok(mut trees) = self.inner.trees.try_lock() {
            trees.stop();
        }
        (self.inner.events)(Event::Stopped { cut_off });
        self.inner.recorder.stop();
        cut_off
    }

    /// What the server is doing.
    pub fn status(&self) -> Status {
        self.inner.status()
    }

    /// What reload, stop and status need, to be called from other threads.
    pub fn api(&self) -> Arc<dyn Api> {
        Arc::clone(&self.inner) as Arc<dyn Api>
    }
}

impl Inner {
    fn lock_trees(&self) -> std::sync::MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> Vec<String> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
    }

    fn listen(&self, number: usize, socket: Bound) {
        let current = self.publisher.current();
        let scheme = if current.is_encrypted(number) { "https" } else { "http" };
        let (address, url) = match &socket {
            Bound::Tcp(_, bound) => {
                let host = current.answered_host(number);
                (bound.to_string(), format!("{scheme}://{}", reachable(*bound, host)))
            }
            Bound::Unix(socket) => {
                let path = socket.local_addr().ok().and_then(|a| a.as_pathname().map(PathBuf::from));
                let path = path.unwrap_or_default().display().to_string();
                (path.clone(), format!("unix/{path}"))
            }
        };
        self.cores.listen(number, socket);
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.len() <= number {
            bound.resize(number + 1, None);
        }
        if let Some(place) = bound.get_mut(number) {
            *place = Some(address.clone());
        }
        (self.events)(Event::Listening { url, address });
    }

    fn try_reload(&self, restart: Restart) -> Result<ReloadSummary, String> {
        let begun = Instant::now();
        let checked = (self.load)()?;
        let specs = store_specs(&checked);
        let (before, known) = self.publisher.current().outlasting();
        let mut trees = self.lock_trees();
        let cores = self.cores.count();
        let (needs, limit) = (Needs::of(&checked, cores), descriptors::limit());
        // Windows stay what they were at the start: workers have been told.
        let share = memory::share(&checked, cores, needs.connections(limit, false)?, memory::available())?;
        let change = trees.plan(&specs, &known, share.files_bytes)?;
        // Whatever can fail has to fail before anything is changed.
        let upstreams = self.upstreams.prepare(&checked)?;
        let tls = self.certificates.prepare(&checked)?;
        let apps = self
            .supervisor
            .prepare(&configured_apps(&checked), restart)
            .map_err(|error| error.to_string())?;
        let stores = change.stores.clone();
        let reports = LogReports::new(&self.registry, &self.events, &self.recent);
        let made = Configured::new(
            checked,
            specs,
            stores,
            apps.pools(),
            (upstreams.proxies(), tls.sites.clone()),
            before.clone(),
            &reports,
        );
        let made = made.and_then(|configured| {
            let allowed = needs.connections(limit, configured.needs_second_descriptor())?;
            Ok((self.open(&configured, &before.addresses)?, allowed, configured))
        });
        let (opened, allowed, configured) = match made {
            Ok(made) => made,
            Err(reason) => {
                self.supervisor.abandon(apps);
                return Err(reason);
            }
        };
        let numbers = configured.kept.addresses.iter().enumerate();
        let closed = numbers
            .filter(|(number, address)| configured.listener(address).is_none() && self.is_open(*number));
        let closed: Vec<usize> = closed.map(|(number, _)| number).collect();
        let sites = configured.checked.sites.len();
        let at_next_start = self.fixed.unlike(&configured.checked.global);
        // A site is served once its certificates are there.
        self.certificates.carry_out(tls);
        self.publisher.replace(configured);
        self.supervisor.carry_out(apps);
        self.upstreams.carry_out(upstreams);
        trees.carry_out(change, &self.publisher);
        let connections = self.connections_fixed.unwrap_or(share.connections.min(allowed));
        self.export_metrics();
        self.shared.set_connections_max(connections, share.connections);
        self.shared.connection.set_compressors_bytes_max(share.coders_bytes);
        for (number, socket) in opened {
            self.listen(number, socket);
        }
        for number in closed {
            self.cores.unlisten(number);
            if let Some(place) = self.bound.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
                *place = None;
            }
        }
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(ReloadSummary { sites, took_ms, at_next_start })
    }

    /// Exports metrics from now on as the configuration says.
    fn export_metrics(&self) {
        let wanted = self.publisher.current().checked.global.metrics_export.clone();
        let mut export = self.metrics_export.lock().unwrap_or_else(PoisonError::into_inner);
        if export.as_ref().map(MetricsExport::settings) == wanted.as_ref() {
            return;
        }
        let started = SystemTime::now().checked_sub(self.started.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        *export = wanted.and_then(|wanted| {
            let (server, events) = (Weak::clone(&self.itself), Arc::clone(&self.events));
            let read = Box::new(move || server.upgrade().map(|server| server.metrics()));
            let report = Arc::new(move |message| events(Event::Warning { message }));
            let export = MetricsExport::start(wanted, started, read, system_roots, report);
            let failed = |error| Event::Warning { message: format!("metrics are not exported: {error}") };
            export.map_err(|error| (self.events)(failed(error))).ok()
        });
    }

    /// Binds what is configured and not bound yet.
    fn open(&self, configured: &Configured, before: &[ListenAddress]) -> Result<Vec<(usize, Bound)>, String> {
        let mut opened = Vec::new();
        for (number, address) in configured.kept.addresses.iter().enumerate() {
            let wanted = configured.listener(address);
            if let Some(wanted) = wanted.filter(|_| self.is_open(number)) {
                bind::adjust(&wanted.address).map_err(|error| error.to_string())?;
            } else if wanted.is_some() {
                let socket =
                    bind::bind(address, self.cores.count(), before).map_err(|error| error.to_string())?;
                opened.push((number, socket));
            }
        }
        Ok(opened)
    }

    /// A path that nobody listens behind misleads whoever connects to it.
    fn remove_unix_sockets(&self) {
        let current = self.publisher.current();
        for (number, address) in current.kept.addresses.iter().enumerate() {
            if let ListenAddress::Unix { path, .. } = address
                && self.is_open(number)
            {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn is_open(&self, number: usize) -> bool {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.get(number).is_some_and(Option::is_some)
    }
}

impl Observed for Inner {
    fn reading(&self) -> Reading {
        Reading {
            sites: self.registry.sites(),
            connections: self.shared.open_connections() as u64,
            apps: self.supervisor.status(),
        }
    }

    fn history_settings(&self) -> (Option<checked::History>, Option<PathBuf>) {
        let current = self.publisher.current();
        let global = &current.checked.global;
        (global.history, global.data_directory.clone())
    }
}

impl Api for Inner {
    fn status(&self) -> Status {
        let current = self.publisher.current();
        let counted = self.registry.sites().into_iter();
        let counted: BTreeMap<_, _> = counted
            .map(|(label, cores)| {
                let status = SiteStatus::of(&label, &cores);
                (label, status)
            })
            .collect();
        let status_of = |site: &checked::Site| {
            let status = counted.get(site.label.as_str()).cloned();
            let status =
                status.unwrap_or_else(|| SiteStatus { site: site.label.clone(), ..SiteStatus::default() });
            SiteStatus { apps: apps_of_site(site).iter().map(|app| app.name.clone()).collect(), ..status }
        };
        let sites = current.checked.sites.iter();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs(),
            threads: self.cores.count(),
            listening: self.addresses(),
            admin: self.admin.clone(),
            reloads: self.reloads.load(Ordering::Relaxed),
            open_connections: self.shared.open_connections() as u64,
            requests: counted.values().map(|site| site.requests).sum(),
            sites: sites.map(status_of).collect(),
            stores: current.stores.iter().map(|store| StoreStatus::of(store)).collect(),
            apps: self.supervisor.status(),
            proxies: self.upstreams.status(),
            limits: current.limits().map(stats::limiter).collect(),
            rate_limits: current.kept.rate_limiters.iter().map(stats::rate_limit).collect(),
            certificates: self.certificates.report(SystemTime::now()).problems(),
        }
    }

    fn slow(&self) -> Vec<RetainedRequest> {
        self.shared.retained()
    }

    fn frequent(&self, site: &str) -> FrequentOfSite {
        self.shared.frequent(site)
    }

    fn certificates(&self) -> CertificatesStatus {
        self.certificates.report(SystemTime::now()).all()
    }

    fn revoke(&self, name: &str, reason: RevocationReason) -> Result<RevokedCertificate, String> {
        self.certificates.revoke(name, reason)
    }

    fn reload(&self, restart: Restart) -> Result<ReloadSummary, String> {
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.is_stopping() {
            return Err("the server is stopping".to_owned());
        }
        match self.try_reload(restart) {
            Ok(summary) => {
                self.reloads.fetch_add(1, Ordering::Relaxed);
                (self.events)(Event::Reloaded { sites: summary.sites });
                for option in &summary.at_next_start {
                    let message =
                        format!("`{option}` stays as it was at the start: restart onehop to change it");
                    (self.events)(Event::Warning { message });
                }
                Ok(summary)
            }
            Err(reason) => {
                (self.events)(Event::ReloadFailed { reason: reason.clone() });
                Err(reason)
            }
        }
    }

    fn workers(&self, app: &str, wanted: Option<usize>) -> Result<AppStatus, String> {
        self.supervisor.workers(app, wanted).map_err(|error| error.to_string())
    }

    fn roll(&self, app: &str) -> Result<AppStatus, String> {
        self.supervisor.roll(app).map_err(|error| error.to_string())
    }

    fn history(&self, view: &View) -> Option<String> {
        let View::Handlers(site) = view else {
            return self.recorder.look(|history, now| view.of(history, now));
        };
        let sites = self.registry.sites();
        let cores = sites.into_iter().find(|(label, _)| **label == **site)?.1;
        Some(history::handlers(&cores))
    }

    fn live(&self, live: &mut Live) -> Option<String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        live.next(self.reading(), now.as_secs())
    }

    fn stop(&self) {
        let in_flight = self.shared.open_connections() as u64;
        let grace = self.publisher.current().checked.global.grace_period.min(GRACE_PERIOD_MAX);
        self.shared.begin_stop(TUNNEL_GRACE_MAX.min(grace.saturating_sub(TUNNEL_GRACE_MARGIN)));
        // Whoever hears of it finds it so.
        (self.events)(Event::Stopping { in_flight });
        self.supervisor.announce_stop();
        self.cores.stop(grace);
    }

    fn recent(&self) -> Arc<Recent> {
        Arc::clone(&self.recent)
    }

    fn mark_load(&self, begins: bool) {
        (self.events)(if begins { Event::LoadBegan } else { Event::LoadEnded });
    }

    fn metrics(&self) -> Families {
        let (limiters, rate_limiters) = {
            let current = self.publisher.current();
            (current.limits().map(stats::limiter).collect(), current.kept.rate_limiters.clone())
        };
        let stats = Stats {
            connections_max: self.shared.connections_max() as u64,
            apps: self.supervisor.status().into_iter().map(stats::app).collect(),
            upstreams: stats::upstreams(self.upstreams.status()),
            limiters,
            rate_limits: rate_limiters.iter().map(stats::rate_limit).collect(),
        };
        let (mut families, now) = (collect::families(&self.registry, &stats), SystemTime::now());
        self.certificates.report(now).write_metrics(now, &mut families);
        families
    }
}

/// The descriptors that are needed, how many there may be, and what the memory is divided into.
fn bounds(checked: &Checked, cores: usize) -> Result<(Needs, usize, memory::Share), StartError> {
    let (needs, limit) = (Needs::of(checked, cores), descriptors::limit());
    let allowed = needs.connections(limit, false).map_err(StartError::Descriptors)?;
    let share = memory::share(checked, cores, allowed, memory::available()).map_err(StartError::Memory)?;
    Ok((needs, limit, share))
}

/// What the cores share, with its part of the memory, what clients are shown, and its way to report.
fn shared_by_cores(
    shared: Shared,
    certificates: &Certificates,
    share: &memory::Share,
    events: &EventSink,
) -> Arc<Shared> {
    let shared = shared.with_certificates(certificates.chains(), certificates.challenges());
    let shared = shared.with_windows(share.windows);
    let sink = Arc::clone(events);
    let report = Arc::new(move |message| sink(Event::Warning { message }));
    let shared = shared.with_traces(Traces::new(system_roots, report));
    shared.connection.set_compressors_bytes_max(share.coders_bytes);
    let sink = Arc::clone(events);
    shared.incidents.report_to(Box::new(move |incident| sink(Event::ResponsesFailed(incident))));
    Arc::new(shared)
}

/// The sink of the supervisor's events.
fn app_events(events: &EventSink) -> AppEventSink {
    let events = Arc::clone(events);
    Arc::new(move |event| events(Event::App(event)))
}

fn warn_of_few_descriptors(limit: usize, connections: usize, events: &EventSink) {
    if let Some(message) = descriptors::warning(limit, connections) {
        events(Event::Warning { message });
    }
}

fn bind_admin(admin: checked::Admin) -> Result<Option<std::net::TcpListener>, StartError> {
    let (address, ports) = match admin {
        checked::Admin::Off => return Ok(None),
        checked::Admin::Address(address) => (address, 1),
        checked::Admin::Default(address) => (address, ADMIN_PORTS_TRIED_MAX),
    };
    let failed = |error: std::io::Error| StartError::Bind {
        address: format!("{address} (admin)"),
        reason: format!("{error}; set `admin ADDRESS` or `admin off` in the global block"),
    };
    let mut bound = std::net::TcpListener::bind(address);
    for port in 1..ports {
        match &bound {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            _ => break,
        }
        bound = std::net::TcpListener::bind((address.ip(), address.port().saturating_add(port)));
    }
    bound.map(Some).map_err(failed)
}

/// An address that a browser can be pointed at, where this host is one that is answered there.
fn reachable(bound: std::net::SocketAddr, host: &str) -> String {
    match bound.ip().is_unspecified() {
        false => bound.to_string(),
        true if host.contains(':') => format!("[{host}]:{}", bound.port()),
        true => format!("{host}:{}", bound.port()),
    }
}
