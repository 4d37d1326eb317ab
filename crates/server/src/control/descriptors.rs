//! Open descriptors (RLIMIT_NOFILE): how many the process may have, what the configuration needs besides connections, and
//! how many connections that leaves.
//!
//! Never opens anything. Without room for [`CONNECTIONS_MIN`] connections the server does not start: it would refuse
//! most of a browser's.

use std::fmt::Write;

use onehop_config::checked::{App, AppProtocol, AppRun, Checked, ListenAddress, Listener};

use super::memory::log_outputs;
use crate::limits::{CONNECTIONS_MAX, CONNECTIONS_MIN};
use crate::request::route::store_specs;

/// Descriptors of one core besides its listeners: its event loop, what wakes it, and what signals come by.
const DESCRIPTORS_OF_CORE: usize = 5;

/// With a lower limit on descriptors there is a warning. 1,024 is the usual soft limit, and a busy site soon has as many
/// connections.
const DESCRIPTORS_WARNED_BELOW: usize = 1_024;

/// Descriptors of the process besides its cores, connections and workers: standard streams, signals, the event loops of
/// the control plane, its sockets. 19 were open with each of them.
const DESCRIPTORS_OF_PROCESS: usize = 20;

/// This part of the limit on descriptors is kept free for files that a reload reads, and for connections to the control
/// socket.
const DESCRIPTORS_SPARE_PART: usize = 16;

/// So many of those at least: reading a file below a folder takes two, a question to the control socket one.
const DESCRIPTORS_SPARE_MIN: usize = 4;

/// And so many at most: all reading threads and connections to the control socket together take fewer.
const DESCRIPTORS_SPARE_MAX: usize = 64;

/// What a configuration needs besides connections, line by line.
pub(super) struct Needs {
    parts: Vec<(usize, String)>,
    /// Some connections need a second descriptor: that of an upstream, a program, or a file that a handler names.
    calls_upstreams: bool,
}

/// Raises the soft limit, which is what programs with select(2) need, to the hard one. Where that is refused, the soft
/// one bounds connections.
pub(super) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The number of descriptors that the process may have open.
pub(super) fn limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// A warning for a person where a limit leaves room for few connections.
pub(super) fn warning(limit: usize, connections: usize) -> Option<String> {
    (limit < DESCRIPTORS_WARNED_BELOW).then(|| {
        format!(
            "this process may have {limit} open files, which leaves room for {connections} connections: allow \
             {DESCRIPTORS_WARNED_BELOW} or more ({HOW})"
        )
    })
}

const HOW: &str = "`ulimit -n` in a shell, LimitNOFILE= in a systemd unit, `--ulimit nofile=` of a container";

impl Needs {
    /// Adds up what a configuration needs on so many cores.
    pub(super) fn of(checked: &Checked, cores: usize) -> Self {
        let mut parts = vec![(DESCRIPTORS_OF_PROCESS, "the server itself".to_owned())];
        let unix = |listener: &&Listener| matches!(listener.address, ListenAddress::Unix { .. });
        let unix = checked.listeners.iter().filter(unix).count();
        let listeners = checked.listeners.len() - unix;
        let noun = if cores == 1 { "core" } else { "cores" };
        parts.push((
            (listeners + DESCRIPTORS_OF_CORE) * cores + unix,
            format!("{cores} {noun}, listening at {} addresses", listeners + unix),
        ));
        let apps = checked.apps();
        let workers = apps.iter().map(|app| onehop_supervisor::descriptors(app, cores)).sum();
        parts.push((workers, "workers, while others replace them".to_owned()));
        let floors =
            checked.proxies().iter().map(|proxy| proxy.upstreams.len() * proxy.pool.min as usize).sum();
        parts.push((floors, "connections to upstreams that are kept open".to_owned()));
        let watched = store_specs(checked).len() + log_outputs(checked);
        parts.push((watched, "folders that are watched, and access logs".to_owned()));
        let calls_upstreams =
            !checked.proxies().is_empty() || apps.iter().any(|app| speaks_http(app) || app.files.is_some());
        Self { parts, calls_upstreams }
    }

    /// The number of connections that a limit leaves; the error shows the sum. `needs_disk`: answers may come from files
    /// on disk, for which a connection needs a second descriptor.
    pub(super) fn connections(&self, limit: usize, needs_disk: bool) -> Result<usize, String> {
        let each = if self.calls_upstreams || needs_disk { 2 } else { 1 };
        let left = self.left(limit) / each;
        if left < CONNECTIONS_MIN { Err(self.explain(limit, each)) } else { Ok(left.min(CONNECTIONS_MAX)) }
    }

    fn left(&self, limit: usize) -> usize {
        let taken: usize = self.parts.iter().map(|(count, _)| count).sum();
        limit.saturating_sub(taken + spare(limit))
    }

    fn explain(&self, limit: usize, each: usize) -> String {
        let connections = CONNECTIONS_MIN * each;
        let mut enough = limit;
        while self.left(enough) < connections {
            enough += connections - self.left(enough);
        }
        let mut text =
            format!("this process may have {limit} open files, and the configuration needs more:\n");
        let mut line = |count: usize, what: &str| {
            if count > 0 {
                let _ = writeln!(text, "  {count:>5}  {what}");
            }
        };
        self.parts.iter().for_each(|(count, what)| line(*count, what));
        line(spare(enough), "files that are read at a reload, and `onehop status`");
        let second = if each == 1 { "" } else { ", each with a second one for its upstream or file" };
        line(connections, &format!("{CONNECTIONS_MIN} connections, at least{second}"));
        line(enough, "together");
        let _ = write!(text, "allow {enough} or more ({HOW}), or lower `threads` or `workers`");
        text
    }
}

/// Descriptors that are opened now and then.
fn spare(limit: usize) -> usize {
    (limit / DESCRIPTORS_SPARE_PART).clamp(DESCRIPTORS_SPARE_MIN, DESCRIPTORS_SPARE_MAX)
}

/// Whether requests to an application each need a connection to one of its processes.
fn speaks_http(app: &App) -> bool {
    !matches!(app.run, AppRun::Handler { .. }) || app.protocol == AppProtocol::Http
}
