//! What the control plane has to say; the program decides how it is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onehop_files::store::{SkipReason, Skipped};
use onehop_files::tree::KeeperEvent;
use onehop_supervisor::AppEvent;

use crate::request::incidents::Incident;

/// Receives events, from any thread. Must never wait: a stop and a reload report events, too.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// Something that a person or a log wants to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Files of a root are being read: so many until now.
    Reading {
        /// The root.
        root: PathBuf,
        /// Files until now.
        files: usize,
        /// Files that are to be read.
        of_files: usize,
        /// Bytes until now.
        bytes: u64,
    },
    /// A root is in memory.
    Stored {
        /// The root.
        root: PathBuf,
        /// Files.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// How many of them stay on disk.
        on_disk: usize,
        /// They lie in the pack, and come to memory when they are asked for.
        packed: bool,
        /// How long it took.
        took: Duration,
    },
    /// All forms of a root are ready.
    Compressed {
        /// The root.
        root: PathBuf,
        /// Bytes of the compressed forms.
        compressed_bytes: u64,
        /// How long it took.
        took: Duration,
    },
    /// A load tool says that it begins to measure this server.
    LoadBegan,
    /// The same has ended.
    LoadEnded,
    /// A listener is bound.
    Listening {
        /// `http://127.0.0.1:8080`, or `unix//run/onehop.sock`.
        url: String,
        /// `127.0.0.1:8080`, as bound; the path for a Unix socket.
        address: String,
    },
    /// The admin endpoint is bound.
    AdminListening {
        /// Its address.
        address: String,
        /// The default address, where that is taken.
        instead_of: Option<String>,
    },
    /// Requests are answered from now on.
    Ready {
        /// Since the start of the process.
        took: Duration,
    },
    /// A changed tree was published.
    TreePublished {
        /// The root.
        root: PathBuf,
        /// Files that are new or changed.
        changed: usize,
        /// Files in all.
        files: usize,
    },
    /// A reload was published.
    Reloaded {
        /// Sites now.
        sites: usize,
    },
    /// A reload changed nothing; why.
    ReloadFailed {
        /// For a person.
        reason: String,
    },
    /// What happens to an application and its workers.
    App(AppEvent),
    /// An upstream has not answered as it should so many times in a row: it gets no more requests.
    UpstreamDown {
        /// As written.
        upstream: String,
        /// The sites that send requests there.
        sites: Vec<String>,
        /// For a person: what it did.
        reason: String,
    },
    /// An upstream that was down gets requests again.
    UpstreamUp {
        /// As written.
        upstream: String,
        /// The sites that send requests there.
        sites: Vec<String>,
        /// How long it was down.
        after: Duration,
    },
    /// Requests failed because of the response that they waited for: it was late, or was refused.
    ResponsesFailed(Incident),
    /// A stop has begun; so many requests are in flight.
    Stopping {
        /// Requests in flight.
        in_flight: u64,
    },
    /// Everything in flight was answered, or the grace period is over.
    Stopped {
        /// Connections that were cut off.
        cut_off: u64,
    },
    /// A certificate was obtained, or was not.
    Certificate(onehop_certificates::keeper::Event),
    /// Something is not as it should be, and the server goes on.
    Warning {
        /// For a person: place, cause, next step.
        message: String,
    },
}

/// What the keeper of a tree has to say, in the words of a person.
pub(super) fn tree_event(root: &Path, event: KeeperEvent) -> Event {
    let place = root.display();
    let warning = |message: String| Event::Warning { message };
    match event {
        KeeperEvent::Published { files, changed, .. } => {
            Event::TreePublished { root: root.to_path_buf(), changed, files }
        }
        KeeperEvent::Compressed { bytes, took } => {
            Event::Compressed { root: root.to_path_buf(), compressed_bytes: bytes, took }
        }
        KeeperEvent::CompressorMissing { reason } => warning(format!(
            "no process could be started to compress {place} ({reason}): the server does it itself, and keeps \
             more memory"
        )),
        KeeperEvent::CompressorLost { path, reason, goes_on } => {
            let rest = if goes_on { "" } else { ", and so is the rest of it until it changes" };
            warning(format!(
                "the process that compresses {place} was lost at {path} ({reason}): this file is served as it \
                 is{rest}"
            ))
        }
        KeeperEvent::HeldBack { missing } => warning(format!(
            "{place} has changed, but {} is missing: the former version is served until it is there",
            missing.join(", ")
        )),
        KeeperEvent::PublishedIncomplete { missing } => warning(format!(
            "{place} is served although {} is still missing: is the build complete?",
            missing.join(", ")
        )),
        KeeperEvent::Skipped(skipped) => warning(explain_skipped(root, &skipped)),
        KeeperEvent::RootVanished => {
            warning(format!("{place} is gone: what it held last is served until it is back"))
        }
        KeeperEvent::RootBack => warning(format!("{place} is back and is served again")),
        KeeperEvent::Overflow => warning(format!(
            "{place} changed faster than its changes were read: all of it is looked at again"
        )),
        KeeperEvent::Polling { reason } => warning(format!(
            "{place} cannot be watched ({reason}): it is looked at every two seconds instead"
        )),
        KeeperEvent::Failed { error } => {
            warning(format!("{place} could not be read ({error}): the former version is served"))
        }
    }
}

fn explain_skipped(root: &Path, skipped: &Skipped) -> String {
    let listed = skipped.listed.iter().map(|(path, reason)| {
        let why = match reason {
            SkipReason::LeavesRoot => "a link that leaves the root (`symlinks follow` allows it)",
            SkipReason::BrokenLink => "a link to nothing",
            SkipReason::LinkLoop => "a link to a folder that holds it",
            SkipReason::Special => "no file, but a socket, pipe or device",
            SkipReason::Unreadable => "not readable for this user",
        };
        format!("{}: {why}", path.display())
    });
    let listed: Vec<String> = listed.collect();
    let more = skipped.count.saturating_sub(listed.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("not served from {}: {}{more}", root.display(), listed.join("; "))
}
