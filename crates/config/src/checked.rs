//! The checked settings: what an Onehopfile means once it has been read, resolved and found sound.
//!
//! Only these types travel to the server. They hold no text that still needs interpreting: every
//! default is spelled out, every path is absolute, every route stands in the order in which it acts.
//! They must never grow a reference to the file's syntax (that is `syntax/`).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use app::{
    App, AppAddress, AppData, AppEnvironment, AppProtocol, AppResources, AppRun, Recycle, Sticky, WorkerCount,
};
pub use expression::{CaptureGroup, Expression, compile as compile_expression};
use limit::{Limit, Priority, RateLimit};
pub use log::{
    AccessLog, FieldAction, FieldRule, LogAppend, LogField, LogFilter, LogFormat, LogOutput, LogRoll,
    LogSampling, LogTemplate, LogTemplatePart, LogTime, NetAddress, NetOutput, ServerLog, ServerLogFormat,
    UnknownField, ValueAction, ValueRule,
};
pub use network::Network;
pub use otlp::OtlpExport;
pub use own_files::{CERTIFICATES_FOLDER, HISTORY_FOLDER, ROTATED_LOG_TIME};
pub use proxy_protocol::{HeaderPolicy, ProxyProtocol};
use tls::{AutoHttps, GlobalTls, SiteTls, TlsValue};
pub use tracing::{EVERY_TRACE, Sampler, Tracing};
pub use uri::{QueryChange, UriChange};

use crate::limits::{HISTORY_BYTES, HISTORY_KEEP};

mod app;
mod expression;
pub mod limit;
mod log;
mod network;
mod otlp;
mod own_files;
pub mod proxy;
mod proxy_protocol;
pub mod request_fields;
pub mod tls;
mod tracing;
mod uri;

/// A whole configuration, ready to be built into a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Settings of the process.
    pub global: Global,
    /// What to listen on, and which sites answer there.
    pub listeners: Vec<Listener>,
    /// Every site, in the order of the file.
    pub sites: Vec<Site>,
}

/// Settings of the process, from the global block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// Where metrics and the status page are served. Loopback unless the file says otherwise.
    pub admin: Admin,
    /// Bound on the bytes that all stores together may hold in memory: what `memory` says of files, else all of it.
    pub memory_bytes: u64,
    /// `memory`: bound on the sum of what stores, connections and queues may take; `None` where it is not written.
    pub memory: Option<u64>,
    /// Connections that one client address may have at a time.
    pub connections_per_address: Option<u32>,
    /// `servers { protocols }`: which versions of HTTP are spoken.
    pub protocols: Protocols,
    /// `servers { trusted_proxies }`: trusted proxies of every site.
    pub trusted_proxies: Vec<Network>,
    /// `servers { listener_wrappers { proxy_protocol } }`: which peers may send a client's address.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// How many requests of all sites may be in flight.
    pub limit: Option<Arc<Limit>>,
    /// Core threads; `None` takes what the machine allows this process.
    pub threads: Option<NonZeroUsize>,
    /// How long a stop waits for requests in flight.
    pub grace_period: Duration,
    /// What `auto_https` says.
    pub auto_https: AutoHttps,
    /// What holds for TLS on every listener.
    pub tls: GlobalTls,
    /// The port that `http://` means.
    pub http_port: u16,
    /// The port that `https://` means.
    pub https_port: u16,
    /// `data_dir`: where everything lies that must survive an upgrade, absolute; `None`: the default of the system.
    pub data_directory: Option<PathBuf>,
    /// How much of the history is kept; `None` keeps none.
    pub history: Option<History>,
    /// `metrics { otlp }`: where metrics are exported to.
    pub metrics_export: Option<Arc<OtlpExport>>,
    /// `log`: where the server's own messages go; `None`: as the command line says.
    pub log: Option<ServerLog>,
}

/// `history` of the global block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// How long.
    pub keep: Duration,
    /// How many bytes at most.
    pub bytes: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { keep: HISTORY_KEEP, bytes: HISTORY_BYTES }
    }
}

/// The versions of HTTP that are spoken besides HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocols {
    /// HTTP/2 over TLS, where the client wants it.
    pub h2: bool,
    /// HTTP/2 in clear text, where the client knows beforehand (RFC 9113 section 3.3).
    pub h2c: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Self { h2: true, h2c: true }
    }
}

/// The admin endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admin {
    /// No admin endpoint over TCP. The control socket stays.
    Off,
    /// Served here.
    Address(SocketAddr),
    /// Nothing is configured: served here, or at the next free port behind it.
    Default(SocketAddr),
}

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Where.
    pub address: ListenAddress,
    /// Whether the sites here are reached through TLS.
    pub tls: bool,
    /// Indices into [`Checked::sites`].
    pub sites: Vec<usize>,
}

/// A place to listen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// A TCP port; `None` is every interface, IPv4 and IPv6.
    Tcp {
        /// The interface's address.
        host: Option<IpAddr>,
        /// The port; 0 lets the system choose.
        port: u16,
    },
    /// A Unix stream socket.
    Unix {
        /// Its path.
        path: PathBuf,
        /// Its permission bits, `None` for 0200 as Caddy has it.
        mode: Option<u32>,
    },
}

/// One site: some hosts and what answers there.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// The first address as written; the `site` label in metrics and logs.
    pub label: String,
    /// The hosts that it answers; empty means any host.
    pub hosts: Vec<HostPattern>,
    /// Its routes, in the order in which they act.
    pub routes: Vec<Route>,
    /// What is done where a request has failed, in the order in which they act: of those that name its status, each until one
    /// answers.
    pub errors: Vec<ErrorRoutes>,
    /// Its access logs; none means that requests are not logged.
    pub logs: Vec<AccessLog>,
    /// How it is encrypted on listeners with TLS.
    pub tls: Option<Arc<SiteTls>>,
}

/// One `handle_errors`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorRoutes {
    /// The statuses for which it acts, in ascending order; empty means all.
    pub statuses: Vec<u16>,
    /// Its routes, in the order in which they act. None means a small page.
    pub routes: Vec<Route>,
}

/// A host that a site or a matcher answers, lower case, without port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// Labels of which some are `*`, each standing for exactly one label (`*.example.com`).
    Wildcard(Vec<Option<String>>),
}

/// A step and the condition under which it is taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// `None` matches every request.
    pub matcher: Option<Matcher>,
    /// Of the routes of one group, only the first that matches is taken (`handle`, `rewrite`, `root` …).
    pub group: Option<u32>,
    /// What is done.
    pub step: Step,
    /// Line of the directive in its file, from 1; 0 where none wrote it.
    pub line: u32,
}

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Matcher {
    /// All of these.
    pub all: Vec<Condition>,
}

/// One condition on a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The path fits one of these.
    Path(Vec<PathPattern>),
    /// The method is one of these (exact case, RFC 9110 section 9.1).
    Method(Vec<String>),
    /// The host is one of these.
    Host(Vec<HostPattern>),
    /// A header field has, or lacks, a value.
    Header {
        /// Field name, lower case.
        name: String,
        /// What its value must look like.
        value: HeaderTest,
    },
    /// The values of a header field, of which one fits the expression.
    HeaderRegexp {
        /// Field name, lower case.
        name: String,
        /// What one of its values has to fit somewhere.
        expression: Arc<Expression>,
    },
    /// The path, decoded, fits the expression somewhere.
    PathRegexp(Arc<Expression>),
    /// The address of the connection's other end is in one of these networks.
    RemoteIp(Vec<Network>),
    /// The client's address, as trusted proxies name it, is in one of these networks.
    ClientIp(Vec<Network>),
    /// The request came in one of these ways.
    Protocol(Vec<ProtocolTest>),
    /// The query has these parameters.
    Query(Vec<QueryTest>),
    /// A file of this list exists below the root; the first becomes `{file_match.relative}`.
    File(FileMatch),
    /// None of these matches.
    Not(Vec<Matcher>),
}

/// A test on the values of one header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderTest {
    /// The field is present, with any value.
    Present,
    /// The field is absent.
    Absent,
    /// One of its values equals one of these, `*` at either end standing for anything.
    Like(Vec<String>),
}

/// A way in which a request may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolTest {
    /// `http`: not over TLS.
    Http,
    /// `https`: over TLS.
    Https,
    /// `grpc`: its `Content-Type` begins with `application/grpc`.
    Grpc,
    /// `http/1.1`, `http/1+` and so on: from this version on; only this one, unless `or_later`.
    Version {
        /// As two digits: 10, 11, 20, 30.
        number: u8,
        /// `http/2+`
        or_later: bool,
    },
}

/// A parameter of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTest {
    /// Its name, decoded; empty where the query has to be empty.
    pub name: String,
    /// One of its values is one of these; empty means any.
    pub values: Vec<String>,
}

/// A `try_files` list.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMatch {
    /// Root to look below; `None` takes the root that applies to the request.
    pub root: Option<Template>,
    /// Candidates; one that ends in `/` must be a directory.
    pub candidates: Vec<Template>,
    /// What to answer when none exists (`=404`).
    pub otherwise_status: Option<u16>,
    /// Which of those that exist is taken.
    pub policy: TryPolicy,
}

/// Which existing candidate of `try_files` is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryPolicy {
    /// The first of the list.
    FirstExist,
    /// The first; the last is taken even where it does not exist.
    FirstExistFallback,
    /// The smallest file.
    SmallestSize,
    /// The largest file.
    LargestSize,
    /// The file that changed last.
    MostRecentlyModified,
}

/// A path pattern as Caddy's `path` matcher has it, lower case, compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// `*`: every path.
    Any,
    /// The whole path.
    Exact(String),
    /// `/foo*`
    Prefix(String),
    /// `*.ext`
    Suffix(String),
    /// `*middle*`
    Contains(String),
    /// A star elsewhere: a shell pattern in which a star does not cross a slash.
    Glob(String),
    /// The pattern has an escape (`%2f`): compared with the path as sent.
    Escaped(String),
}

/// As it is written in a file, but for the case of letters.
impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(path) | Self::Glob(path) | Self::Escaped(path) => f.write_str(path),
            Self::Prefix(start) => write!(f, "{start}*"),
            Self::Suffix(end) => write!(f, "*{end}"),
            Self::Contains(middle) => write!(f, "*{middle}*"),
        }
    }
}

/// One thing that is done with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `root`: where files are looked for from here on.
    Root(Template),
    /// `header`: changes to the answer's fields.
    Header(HeaderStep),
    /// `request_header`: changes to the request's fields from here on, in order.
    RequestHeader(Vec<HeaderOp>),
    /// `redir`
    Redirect {
        /// The Location.
        to: Template,
        /// How.
        kind: RedirectKind,
    },
    /// `rewrite`: the URI (path, query or both) from here on.
    Rewrite(Template),
    /// `uri`: the URI with a part changed from here on.
    ChangeUri(UriChange),
    /// `encode`: compress the answer where the client and the answer allow it.
    Encode(Encode),
    /// `early_hints`: what a client can load while it waits for the response.
    EarlyHints(EarlyHints),
    /// `handle`: its routes; where none of them answers, what stands after it.
    Handle(Vec<Route>),
    /// `handle_path`: as `handle`, with the matched prefix taken off the path.
    HandlePath {
        /// The prefix, without its star.
        prefix: String,
        /// Inside.
        routes: Vec<Route>,
    },
    /// `limit`: a concurrency limit that the request passes before an application or upstream answers it.
    Limit(Arc<Limit>),
    /// `limit priority`: what the request is to the bounds that it passes; the last one counts.
    Priority(Priority),
    /// One zone of a `rate_limit`: refuses requests above the rate.
    RateLimit(Arc<RateLimit>),
    /// `tracing`: the request is a span of its trace.
    Tracing(Tracing),
    /// `error`: the request fails.
    Error {
        /// From 400 on.
        status: u16,
        /// `{err.message}`
        message: Template,
    },
    /// `basic_auth`: only who knows a password passes.
    BasicAuth(Arc<BasicAuth>),
    /// `request_body { max_size }`: bytes that the request's body may have.
    RequestBody(u64),
    /// `log_skip`: the request is not logged.
    LogSkip,
    /// `log_append`: a field for the request's line.
    LogAppend(LogAppend),
    /// `log_name`: only the site's logs of these names have the request.
    LogName(Vec<String>),
    /// `respond`
    Respond {
        /// Status; `None` where it is not written: 200, within `handle_errors` that of the error.
        status: Option<u16>,
        /// Body.
        body: Template,
        /// Close the connection afterwards.
        close: bool,
    },
    /// `file_server`
    FileServer(FileServer),
    /// `spa`
    Spa(Spa),
    /// `app`
    App(Arc<App>),
    /// `reverse_proxy`
    Proxy(Arc<proxy::Proxy>),
}

/// How `redir` redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// A status with a Location.
    Status(u16),
    /// A small HTML page that redirects.
    Html,
}

/// Changes to header fields.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderStep {
    /// In order.
    pub ops: Vec<HeaderOp>,
    /// Applied when the answer is written, instead of before the handler runs.
    pub deferred: bool,
}

/// `basic_auth`: users and their passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct BasicAuth {
    /// What a browser may show.
    pub realm: String,
    /// Names, and the bcrypt hashes of their passwords.
    pub accounts: Vec<(String, Arc<str>)>,
}

/// Hashes are worth guessing at.
impl std::fmt::Debug for BasicAuth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.accounts.iter().map(|(name, _)| name.as_str()).collect();
        formatter.debug_struct("BasicAuth").field("realm", &self.realm).field("accounts", &names).finish()
    }
}

/// One change to the header fields of an answer or of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderOp {
    /// Replace every value by this one.
    Set {
        /// Field name as written.
        name: String,
        /// New value.
        value: Template,
    },
    /// Add a value beside those that are there.
    Add {
        /// Field name as written.
        name: String,
        /// Added value.
        value: Template,
    },
    /// Set only where the field is absent (`?Name`).
    Default {
        /// Field name as written.
        name: String,
        /// Value.
        value: Template,
    },
    /// Remove the field; a name that ends (or begins) in `*` removes every field so named.
    Delete {
        /// Field name, lower case.
        name: String,
    },
    /// Replace within values by a regular expression.
    Replace {
        /// Field name, lower case.
        name: String,
        /// Regular expression, known to compile.
        find: String,
        /// Replacement; `$1` inserts a group.
        replace: Template,
    },
}

/// `encode`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encode {
    /// In order of preference where the client has none.
    pub encodings: Vec<Encoding>,
    /// Smaller bodies are left as they are, in bytes.
    pub minimum_length: u64,
    /// Media types that are compressed (`text/*`, `application/json*`), lower case.
    pub types: Vec<String>,
}

/// `early_hints`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyHints {
    /// Values of `Link` fields that are sent each time.
    pub links: Vec<String>,
    /// Those of earlier responses are sent, too.
    pub learn: bool,
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// RFC 1952
    Gzip,
    /// RFC 7932
    Brotli,
    /// RFC 8878, window of at most 8 MiB (RFC 9659)
    Zstd,
}

/// `file_server`
#[derive(Debug, Clone, PartialEq)]
pub struct FileServer {
    /// Root of its own; `None` takes the one that applies to the request.
    pub root: Option<Template>,
    /// Names and patterns that are treated as absent; absolute where they hold a slash.
    pub hide: Vec<String>,
    /// Index files, in order.
    pub index: Vec<String>,
    /// Sidecar files to look for, in order.
    pub precompressed: Vec<Encoding>,
    /// Directory pages.
    pub browse: bool,
    /// Status to answer with instead of 200.
    pub status: Option<u16>,
    /// What is not found goes on to the next step instead of being a 404.
    pub pass_through: bool,
    /// Redirect to the path with (directory) or without (file) a slash at its end.
    pub canonical_uris: bool,
    /// Files and folders whose name begins with a dot are served too.
    pub dotfiles: bool,
    /// Symbolic links that leave the root are followed.
    pub follow_outside: bool,
    /// Builds before the latest one whose hashed assets are still served.
    pub keep_releases: usize,
}

/// `spa`
#[derive(Debug, Clone, PartialEq)]
pub struct Spa {
    /// The built application, absolute.
    pub root: PathBuf,
    /// The page that answers navigations, relative to the root.
    pub index: String,
    /// Paths that are immutable besides those that are detected.
    pub immutable: Vec<PathPattern>,
    /// Files and folders whose name begins with a dot are served too.
    pub dotfiles: bool,
    /// Symbolic links that leave the root are followed.
    pub follow_outside: bool,
    /// Builds before the latest one whose hashed assets are still served.
    pub keep_releases: usize,
}

/// Text with placeholders, split at check time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order; adjacent texts are joined.
    pub parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Text(String),
    /// Filled in for each request.
    Value(Placeholder),
}

/// What a placeholder stands for. Names in the doc comments are the long and the short forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    /// `{http.request.method}`, `{method}`
    Method,
    /// `{http.request.uri}`, `{uri}`: path and query as they are now
    Uri,
    /// `{http.request.uri.path}`, `{path}`: unescaped
    Path,
    /// `{http.request.uri.path.dir}`, `{dir}`
    PathDir,
    /// `{http.request.uri.path.file}`, `{file}`
    PathFile,
    /// `{http.request.uri.path.file.base}`, `{file.base}`
    PathFileBase,
    /// `{http.request.uri.path.file.ext}`, `{file.ext}`
    PathFileExt,
    /// `{http.request.uri.path.N}`, `{path.N}`: a segment, from 0
    PathSegment(usize),
    /// `{http.request.uri.query}`, `{query}`
    Query,
    /// `{?query}` (`{http.request.uri.prefixed_query}`): with its question mark, or empty
    PrefixedQuery,
    /// `{http.auth.user.id}`: who `basic_auth` let in.
    AuthUser,
    /// `{http.request.uri.query.*}`, `{query.*}`
    QueryValue(String),
    /// `{http.request.orig_uri}`, `{orig_uri}`
    OriginalUri,
    /// `{http.request.orig_uri.path}`
    OriginalPath,
    /// `{http.request.orig_uri.query}`
    OriginalQuery,
    /// `{http.request.host}`, `{host}`
    Host,
    /// `{http.request.hostport}`, `{hostport}`
    HostPort,
    /// `{http.request.port}`, `{port}`
    Port,
    /// `{http.request.host.labels.N}`, `{labels.N}`: from the right, from 0
    HostLabel(usize),
    /// `{http.request.scheme}`, `{scheme}`
    Scheme,
    /// `{http.request.proto}`
    Protocol,
    /// `{http.request.remote}`, `{remote}`
    Remote,
    /// `{http.request.remote.host}`, `{remote_host}`
    RemoteHost,
    /// `{http.vars.client_ip}`, `{client_ip}`: whom the `trusted_proxies` of `servers` name, else the connection's
    ClientIp,
    /// `{http.request.remote.port}`, `{remote_port}`
    RemotePort,
    /// `{http.request.header.*}`, `{header.*}`; name in lower case
    Header(String),
    /// `{http.request.cookie.*}`, `{cookie.*}`
    Cookie(String),
    /// `{http.request.tls.*}`: what TLS negotiated; nothing without TLS
    Tls(TlsValue),
    /// `{http.regexp.NAME.GROUP}`, `{re.NAME.GROUP}`, `{re.GROUP}`: what an expression has captured
    Capture {
        /// The name of the expression; `None` is the last one that has the group.
        expression: Option<String>,
        /// Which group.
        group: CaptureGroup,
    },
    /// `{http.vars.root}`: the root that applies
    Root,
    /// `{http.matchers.file.relative}`, `{file_match.relative}`
    FileMatchRelative,
    /// `{time.now.unix}`
    TimeUnix,
    /// `{http.request.uuid}`: a random id
    Uuid,
    /// `{http.vars.trace_id}`: the trace that `tracing` has the request in; empty without it
    TraceId,
    /// `{http.vars.span_id}`: the request's span in it
    SpanId,
    /// `{http.reverse_proxy.upstream.hostport}`, `{upstream_hostport}`: where the request goes. This and the two that
    /// follow stand in `header_up` and `header_down` alone.
    UpstreamHostPort,
    /// `{http.reverse_proxy.upstream.host}`
    UpstreamHost,
    /// `{http.reverse_proxy.upstream.port}`
    UpstreamPort,
    /// `{http.error.status_code}`, `{err.status_code}`. This and the two that follow stand in `handle_errors` alone.
    ErrorStatus,
    /// `{http.error.message}`, `{err.message}`
    ErrorMessage,
    /// `{http.error.status_text}`, `{err.status_text}`: its words (RFC 9110 section 15)
    ErrorStatusText,
    /// `{http.error.id}`, `{err.id}`: what the log calls this error, too
    ErrorId,
}

impl Checked {
    /// Visits every step of every site, those inside of others too, in the order in which they act. What is done with
    /// errors comes behind the rest of its site.
    pub fn each_step<'a>(&'a self, mut visit: impl FnMut(&'a Step)) {
        for site in &self.sites {
            each_step_of(&site.routes, &mut visit);
            for errors in &site.errors {
                each_step_of(&errors.routes, &mut visit);
            }
        }
    }

    /// Every `reverse_proxy` once, in the order in which they act. Equal ones are one.
    pub fn proxies(&self) -> Vec<&Arc<proxy::Proxy>> {
        let mut proxies: Vec<&Arc<proxy::Proxy>> = Vec::new();
        self.each_step(|step| match step {
            Step::Proxy(proxy) if !proxies.contains(&proxy) => proxies.push(proxy),
            _ => {}
        });
        proxies
    }

    /// Every application once, in the order in which they act.
    pub fn apps(&self) -> Vec<&Arc<App>> {
        let mut apps: Vec<&Arc<App>> = Vec::new();
        self.each_step(|step| match step {
            Step::App(app) if !apps.contains(&app) => apps.push(app),
            _ => {}
        });
        apps
    }
}

fn each_step_of<'a>(routes: &'a [Route], visit: &mut impl FnMut(&'a Step)) {
    for route in routes {
        visit(&route.step);
        if let Step::Handle(inner) | Step::HandlePath { routes: inner, .. } = &route.step {
            each_step_of(inner, visit);
        }
    }
}

impl Template {
    /// The text, where the template has no placeholder.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// A template without placeholders.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::default() } else { Self { parts: vec![Part::Text(text)] } }
    }
}
