//! From a tree of lines to checked settings. Knows what words mean; sees text only through
//! `syntax`, and the world only through [`Source`].
//!
//! `captures` checks placeholders `{re.…}`, `global` reads the options block, `history` one of them, `address` what a site's address means, `automatic` which certificate a site gets, `listen` puts sites on
//! listeners, `listener_wrappers` reads what happens to a connection first, `matcher` reads conditions, `template` and `placeholder` text with placeholders,
//! `route_order` puts routes into acting order, `servers` reads settings of all listeners, `value` reads numbers and the like.

mod address;
mod automatic;
mod captures;
mod certificates;
mod conditions;
pub(crate) mod file_match;
mod global;
mod history;
mod listen;
mod listener_wrappers;
pub(crate) mod matcher;
mod metrics;
pub(crate) mod otlp;
pub(crate) mod path_pattern;
mod placeholder;
pub(crate) mod route_order;
mod server_log;
mod servers;
mod sites;
mod sort;
pub(crate) mod template;
pub(crate) mod value;

use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

use crate::checked::{Network, Part, Protocols, ProxyProtocol, ServerLog, Template};
use crate::directives::{KnownApps, KnownLimits};
use crate::problem::{Location, Problem, Problems};
use crate::source::{FileKind, Source};
use crate::syntax::Token;

use captures::KnownExpressions;

pub(crate) use address::{Address, Endpoint, host_pattern};
pub(crate) use certificates::Certificates;
pub(crate) use global::outlines as option_outlines;
pub(crate) use sites::check;

/// What a text is read with: the source of files and variables, and whether the text belongs to `handle_errors`.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    source: &'a dyn Source,
    /// Within `handle_errors`, where placeholders of the error have a meaning.
    pub(crate) is_of_error: bool,
}

impl<'a> Deref for Reading<'a> {
    type Target = dyn Source + 'a;

    fn deref(&self) -> &Self::Target {
        self.source
    }
}

/// What checking needs to know besides the line at hand.
pub(crate) struct Context<'a> {
    pub(crate) source: Reading<'a>,
    pub(crate) kind: FileKind,
    /// Where relative paths start, absolute.
    pub(crate) base: PathBuf,
    /// The configuration's own files, absolute: no file server shows them.
    pub(crate) hidden: Vec<String>,
    pub(crate) problems: &'a mut Problems,
    /// The applications so far.
    pub(crate) apps: KnownApps,
    /// The bounds so far.
    pub(crate) limits: KnownLimits,
    /// The expressions of the site so far.
    expressions: KnownExpressions,
    /// Where relative paths of what is written start, absolute.
    pub(crate) written_below: PathBuf,
    /// Trusted proxies of every site, from the global block.
    pub(crate) trusted_proxies: Vec<Network>,
    /// Which versions of HTTP are spoken, from the global block.
    pub(crate) protocols: Protocols,
    /// `proxy_protocol` of the global block.
    proxy_protocol: Option<ProxyProtocol>,
    /// The place of a `proxy_protocol` that would be read inside of TLS.
    header_inside_tls: Option<Location>,
    /// `data_dir` of the global block, absolute.
    pub(crate) data_directory: Option<PathBuf>,
    /// Settings of certificates in the global block.
    pub(crate) certificates: Certificates,
    /// `log_credentials` of the global block.
    pub(crate) log_credentials: bool,
    /// `log` of the global block: where access logs go that do not say it themselves.
    pub(crate) server_log: Option<ServerLog>,
    /// The names that `log_name` of this site has called.
    pub(crate) log_names: Vec<Token>,
    /// Whether the global block has an option of a name.
    pub(crate) is_global_option: fn(&str) -> bool,
    /// Groups of mutually exclusive routes so far.
    groups: u32,
    /// Whether the warning about what Caddy would serve was given.
    warned_of_caddy: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        source: &'a dyn Source,
        kind: FileKind,
        base: PathBuf,
        problems: &'a mut Problems,
    ) -> Self {
        Self {
            source: Reading { source, is_of_error: false },
            kind,
            written_below: base.clone(),
            base,
            hidden: Vec::new(),
            problems,
            apps: KnownApps::default(),
            limits: KnownLimits::default(),
            expressions: KnownExpressions::default(),
            trusted_proxies: Vec::new(),
            protocols: Protocols::default(),
            proxy_protocol: None,
            header_inside_tls: None,
            data_directory: None,
            certificates: Certificates::default(),
            log_credentials: false,
            server_log: None,
            log_names: Vec::new(),
            is_global_option: |_| false,
            groups: 0,
            warned_of_caddy: false,
        }
    }

    /// The value, or nothing and the problem kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Box<Problem>>) -> Option<T> {
        self.problems.keep(result)
    }

    pub(crate) fn next_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    /// True once per load, and only for a Caddyfile.
    pub(crate) fn must_warn_of_caddy(&mut self) -> bool {
        self.kind == FileKind::Caddyfile && !std::mem::replace(&mut self.warned_of_caddy, true)
    }

    /// A path as the file means it: absolute, without `.` and `..`.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        absolute(&self.base, Path::new(path))
    }

    /// The same for what is written: logs, sockets.
    pub(crate) fn absolute_to_write(&self, path: &str) -> PathBuf {
        absolute(&self.written_below, Path::new(path))
    }

    /// The same for a path with placeholders. One that begins with a placeholder is left alone:
    /// whether it is absolute shows only with a request.
    pub(crate) fn absolute_template(&self, mut path: Template) -> Template {
        if let Some(text) = path.as_text() {
            return Template::text(self.absolute(text).to_string_lossy());
        }
        if let Some(Part::Text(first)) = path.parts.first_mut()
            && !first.starts_with('/')
        {
            let relative = first.strip_prefix("./").unwrap_or(first);
            *first = format!("{}/{relative}", self.base.to_string_lossy().trim_end_matches('/'));
        }
        path
    }
}

/// Joins and resolves `.` and `..` by the words alone.
pub(crate) fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => {
                resolved.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    resolved
}
