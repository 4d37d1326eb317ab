//! Which site answers, and what it does: the snapshot that every core reads.
//!
//! Owns the compiled form of the checked settings. Immutable once published; a change is a new
//! snapshot. Never opens a file: stores are handed in by the control plane.

mod captures;
mod compile;
mod hosts;
mod matcher;
mod root;
mod template;

use std::sync::Arc;

use onehop_certificates::keeper::OnDemand;
use onehop_certificates::loaded::Loaded;
use onehop_config::checked::limit::Priority;
use onehop_config::checked::{
    self, Encode, FileServer, HeaderOp, HeaderStep, LogAppend, ProxyProtocol, RedirectKind, Spa, Template,
    Tracing, UriChange,
};
use onehop_message::methods::Methods;
use onehop_metrics::access_log::{LogTarget, Logs};
use onehop_metrics::route::RouteNumber;
use onehop_metrics::site::SiteCounters;
use onehop_tls::{Chain, Policy};
use regex_lite::Regex;

pub(crate) use captures::Captures;
pub use compile::{
    Known, apps_of_site, compile, compile_errors, configured_apps, configured_limits, store_specs,
};
pub use hosts::HostTable;
pub(crate) use matcher::matches;
pub use root::Root;
pub(crate) use template::{Into, expand, expand_path_replacement, expand_root};

use crate::request::admission::SiteLimiters;
use crate::request::admission::rate::ClientRateLimiter;
use crate::request::early_hints::EarlyHints;
use crate::request::handle::basic_auth::BasicAuth;
use crate::request::handle::proxy::Proxy;
use crate::request::per_address::PerAddress;
use onehop_files::store::Store;
use onehop_workers::Pool;

/// Everything that requests need to know, as it is at one moment.
pub struct Snapshot {
    /// By number of the listener.
    pub hosts: Vec<HostTable>,
    /// By number of the site.
    pub sites: Vec<Site>,
    /// Trees in memory, by number.
    pub stores: Vec<Arc<Store>>,
    /// Applications, by number.
    pub apps: Vec<Arc<Pool>>,
    /// Every `reverse_proxy`, by number.
    pub proxies: Vec<Arc<Proxy>>,
    /// How many connections one address may have.
    pub per_address: PerAddress,
    /// Who may say whose a connection is, before its first request.
    pub proxy_protocol: Option<Arc<ProxyProtocol>>,
    /// What holds for TLS on every listener.
    pub tls: TlsListeners,
    /// Which versions of HTTP are spoken.
    pub protocols: checked::Protocols,
    /// Proxies in front of every site, whose word about the client counts.
    pub trusted_proxies: Vec<checked::Network>,
}

/// What holds for TLS on every listener.
#[derive(Debug, Default)]
pub struct TlsListeners {
    /// By number of the listener: whether its connections are encrypted.
    pub encrypted: Vec<bool>,
    /// The name that a client means which sends none.
    pub default_name: Option<String>,
    /// The name whose certificate is shown where there is none for the client's.
    pub fallback_name: Option<String>,
}

/// TLS of one site.
pub struct SiteTls {
    /// What is negotiated.
    pub policy: Policy,
    /// Certificates from files.
    pub files: Vec<FileChain>,
    /// What is obtained is shown before what files hold.
    pub prefers_managed: bool,
    /// Obtains certificates for names that have none.
    pub on_demand: Option<OnDemand>,
}

/// A certificate from a file, with the names that it is for.
pub struct FileChain {
    /// What is known of it.
    pub loaded: Arc<Loaded>,
    /// As handshakes use it.
    pub chain: Chain,
}

/// One site, compiled.
pub struct Site {
    /// The `site` label.
    pub label: Arc<str>,
    /// In acting order.
    pub routes: Arc<[Route]>,
    /// The limiters of its requests.
    pub limiters: Arc<SiteLimiters>,
    /// For requests that have failed, in acting order.
    pub errors: Arc<[ErrorRoutes]>,
    /// This site's counters, one for each core.
    pub counters: Vec<Arc<SiteCounters>>,
    /// Where its requests are logged.
    pub logs: Vec<LogTarget>,
    /// How it is encrypted on listeners with TLS.
    pub tls: Option<Arc<SiteTls>>,
}

/// A compiled [`checked::Route`].
#[derive(Debug)]
pub struct Route {
    /// `None` matches every request.
    pub matcher: Option<checked::Matcher>,
    /// Of a group, only the first that matches is taken.
    pub group: Option<u32>,
    /// What is done.
    pub action: Action,
    /// Its number in metrics.
    pub number: RouteNumber,
}

/// A compiled [`checked::ErrorRoutes`].
#[derive(Debug)]
pub struct ErrorRoutes {
    /// The statuses that they are for; empty means all.
    pub statuses: Vec<u16>,
    /// In acting order; none means a small page.
    pub routes: Vec<Route>,
}

/// A compiled [`checked::Step`]: roots have become numbers of stores.
#[derive(Debug)]
#[expect(missing_docs, reason = "each variant is the step of that name")]
pub enum Action {
    Root(Root),
    Header(HeaderStep, Vec<Option<Regex>>),
    RequestHeader(Vec<HeaderOp>, Vec<Option<Regex>>),
    Rewrite(Template),
    ChangeUri(UriChange),
    Encode(Encode),
    EarlyHints(Box<EarlyHints>),
    /// Its number among the site's.
    Limit(u8),
    Priority(Priority),
    RateLimit(Arc<ClientRateLimiter>),
    Error {
        status: u16,
        message: Template,
    },
    BasicAuth(BasicAuth),
    /// Bytes that the body may have.
    RequestBody(u64),
    LogSkip,
    LogAppend(LogAppend),
    Tracing(Tracing),
    /// The logs of the site that have the request.
    LogName(Logs),
    Handle(Vec<Route>),
    HandlePath {
        prefix: String,
        routes: Vec<Route>,
    },
    /// This answers.
    Target(Target),
}

/// What answers a request.
#[derive(Debug)]
#[expect(missing_docs, reason = "each variant is the step of that name")]
pub enum Target {
    Redirect {
        to: Template,
        kind: RedirectKind,
    },
    Respond {
        /// `None`: 200, or that of the error.
        status: Option<u16>,
        body: Template,
        close: bool,
    },
    FileServer {
        settings: Arc<FileServer>,
        /// The same where nothing of the root is in memory: trees in memory leave out what the server itself writes.
        on_disk: Arc<FileServer>,
        root: Option<Root>,
    },
    Spa {
        settings: Spa,
        store: u32,
    },
    Backend(Backend),
}

/// What answers a request, but takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The application of this number.
    App(u32),
    /// The upstreams of the `reverse_proxy` of this number.
    Proxy(u32),
}

impl Route {
    /// Whether its answer may come from a root that is not in memory.
    pub(crate) fn may_need_disk(&self) -> bool {
        match &self.action {
            Action::Root(Root::Disk(_))
            | Action::Target(Target::FileServer { root: Some(Root::Disk(_)), .. }) => true,
            Action::Handle(routes) | Action::HandlePath { routes, .. } => {
                routes.iter().any(Route::may_need_disk)
            }
            _ => false,
        }
    }
}

impl ErrorRoutes {
    /// Whether they are for errors of this status.
    pub(crate) fn are_for(&self, status: u16) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&status)
    }
}

impl TlsListeners {
    /// Whether the connections of a listener are encrypted.
    pub(crate) fn is_encrypted(&self, listener: usize) -> bool {
        self.encrypted.get(listener).copied().unwrap_or(false)
    }
}

impl Site {
    /// The number of its TLS policy; 0 without TLS.
    pub(crate) fn policy_number(&self) -> u32 {
        self.tls.as_ref().map_or(0, |tls| tls.policy.number)
    }
}

impl Snapshot {
    /// The methods that requests for any path of any site may have.
    pub(crate) fn methods(&self) -> Methods {
        if self.sites.iter().any(|site| any_method(&site.routes)) { Methods::Any } else { Methods::Files }
    }

    /// Where a listener's requests are logged that reach no site.
    pub fn logs_at(&self, listener: usize) -> &[LogTarget] {
        let first = self.hosts.get(listener).and_then(HostTable::first);
        first.and_then(|number| self.sites.get(number)).map(|site| &*site.logs).unwrap_or_default()
    }

    /// Number of a listener's first site.
    pub(crate) fn first_site(&self, listener: usize) -> Option<usize> {
        self.hosts.get(listener)?.first()
    }

    /// Number of the site that answers `host` at a listener; `None` where nobody does.
    pub fn site_number(&self, listener: usize, host: Option<&[u8]>) -> Option<usize> {
        self.hosts.get(listener)?.find(host)
    }
}

/// Whether one of these routes answers more than GET and HEAD.
fn any_method(routes: &[Route]) -> bool {
    routes.iter().any(|route| match &route.action {
        Action::Handle(routes) | Action::HandlePath { routes, .. } => any_method(routes),
        Action::Target(target) => !matches!(target, Target::FileServer { .. } | Target::Spa { .. }),
        _ => false,
    })
}
