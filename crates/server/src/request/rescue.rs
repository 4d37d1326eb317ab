//! The one place where an error becomes a status.
//!
//! Every refusal of the server, also the codec's own, passes through here, says who is at fault and
//! is counted under its name. Nothing internal ever reaches a body.

use onehop_http1::Refusal;
use rustix::io::Errno;

use super::admit::refusal::{self, Cause};
use super::answer::{Answer, Body};
use super::methods::Methods;

/// Who caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtFault {
    /// What the client sent or asked for.
    Client,
    /// The application.
    Worker,
    /// The upstream of a `reverse_proxy`.
    Upstream,
    /// The server or its files.
    Us,
}

/// Why a request is not answered by its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are not a request that may be answered.
    Malformed(Refusal),
    /// No site answers that host.
    UnknownHost,
    /// Nothing stands at that path.
    NotFound,
    /// Nothing stands at that path, and nothing may remember that: an asset of a build that is gone
    /// or not there yet. 404 with `Cache-Control: no-store`.
    MissingAsset,
    /// Something stands there that is not served: a dotfile, a link that leaves the root.
    Forbidden,
    /// The path cannot name a file: escaped slash, NUL, backslash, a way out of the root.
    BadPath,
    /// Another method than these.
    MethodNotAllowed(Methods),
    /// A method that nothing here knows (RFC 9110 section 15.6.2).
    NotImplemented,
    /// A precondition failed (RFC 9110 section 13).
    PreconditionFailed,
    /// No byte of the range exists (RFC 9110 section 15.5.17); the length that is there.
    RangeNotSatisfiable {
        /// Bytes of the file.
        length: u64,
    },
    /// The head took too long.
    HeadTimeout,
    /// The body made no progress.
    BodyTimeout,
    /// More connections than the process may have.
    TooManyConnections,
    /// The client has asked more often than `rate_limit` lets it.
    RateLimited {
        /// Seconds after which it is let in again.
        retry_after: u32,
    },
    /// A status that the configuration asks for (`try_files … =404`).
    Configured(u16),
    /// A compressor failed in the middle of a body, which can only be cut off.
    EncodingFailed,
    /// A file that is in the store's index could not be read.
    FileUnreadable,
    /// The process has all descriptors that it may have, or the kernel has no memory for one more.
    NoDescriptors,
    /// The client has gone, or closed its side, before there was an answer. Nobody sees this one's status;
    /// logs know it as nginx's 499.
    ClientGone,
    /// The client took nothing of its answer for too long. Nobody sees its status either.
    ClientStalled,
    /// The application does not run.
    AppFailing {
        /// Seconds after which asking again makes sense.
        retry_after: u32,
    },
    /// As many requests wait for the application as may.
    AppQueueFull {
        /// Seconds after which asking again makes sense.
        retry_after: u32,
    },
    /// The request waited too long for the application to have room.
    AppQueueTimeout {
        /// Seconds after which asking again makes sense.
        retry_after: u32,
    },
    /// The worker died, or its connection did, after it was handed the request.
    WorkerDied,
    /// The worker handed the request back without having begun it.
    WorkerRefused,
    /// What the worker sent is no answer to this request.
    WorkerBroken,
    /// What a program sent is no HTTP answer: the check that refused it.
    AnswerRefused(Refusal),
    /// The worker did not answer in time.
    WorkerTimeout,
    /// The handler failed and its runtime said so.
    HandlerFailed,
    /// The application closed the client's connection instead of answering. Nobody sees its status; logs know it as
    /// nginx's 444.
    HungUp,
    /// No upstream may be asked: all are bad, or as busy as they may be.
    UpstreamNone,
    /// No connection to the upstream could be made, or its name leads nowhere.
    UpstreamUnreachable,
    /// No connection to the upstream could be made in time.
    UpstreamDialTimeout,
    /// The upstream's TLS handshake failed, or it is not who it should be.
    UpstreamTls,
    /// As many requests wait for a connection to the upstream as may.
    UpstreamQueueFull,
    /// No connection to the upstream became free in time.
    UpstreamQueueTimeout,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The connection ended before the answer did.
    UpstreamDied,
    /// What the upstream sent is no HTTP answer: the check that refused it.
    UpstreamBroken(Refusal),
    /// The application names a file and no folder for such files is configured.
    FilesNotConfigured,
    /// A `limit` did not let it in.
    Shed {
        /// Why.
        cause: Cause,
        /// As configured.
        status: u16,
        /// Seconds after which asking again makes sense.
        retry_after: u32,
    },
}

/// Whether the system refused because something of ours is used up, so that it says nothing about a file or an upstream.
pub(crate) fn is_exhaustion(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// Turns a fault into its answer. What was on the answer before is gone.
pub fn rescue(fault: Fault, answer: &mut Answer) {
    answer.clear();
    answer.status = fault.status();
    match fault {
        // The sender of broken bytes is told which check failed; that is public knowledge.
        Fault::Malformed(refusal) => {
            let text = format!("{} ({})\n", refusal.name().replace('_', " "), refusal.section());
            answer.fields.add("Content-Type", b"text/plain; charset=utf-8");
            answer.body = Body::Bytes(text.into_bytes());
            answer.close = true;
        }
        Fault::MissingAsset => answer.fields.add("Cache-Control", b"no-store"),
        Fault::MethodNotAllowed(methods) => answer.fields.add("Allow", methods.allow()),
        // RFC 9110 section 15.5.17: say how long it is.
        Fault::RangeNotSatisfiable { length } => {
            answer.fields.add("Content-Range", format!("bytes */{length}").as_bytes());
        }
        Fault::HeadTimeout | Fault::BodyTimeout | Fault::TooManyConnections => answer.close = true,
        Fault::RateLimited { retry_after }
        | Fault::AppFailing { retry_after }
        | Fault::AppQueueFull { retry_after }
        | Fault::AppQueueTimeout { retry_after } => {
            answer.fields.add("Retry-After", retry_after.to_string().as_bytes());
        }
        Fault::WorkerRefused | Fault::NoDescriptors => answer.fields.add("Retry-After", b"1"),
        Fault::Shed { retry_after, .. } => refusal::fill(answer, retry_after),
        Fault::UnknownHost
        | Fault::NotFound
        | Fault::Forbidden
        | Fault::BadPath
        | Fault::PreconditionFailed
        | Fault::NotImplemented
        | Fault::EncodingFailed
        | Fault::Configured(_)
        | Fault::FileUnreadable
        | Fault::ClientGone
        | Fault::ClientStalled
        | Fault::WorkerDied
        | Fault::WorkerBroken
        | Fault::AnswerRefused(_)
        | Fault::WorkerTimeout
        | Fault::HandlerFailed
        | Fault::HungUp
        | Fault::UpstreamNone
        | Fault::UpstreamUnreachable
        | Fault::UpstreamDialTimeout
        | Fault::UpstreamTls
        | Fault::UpstreamQueueFull
        | Fault::UpstreamQueueTimeout
        | Fault::UpstreamTimeout
        | Fault::UpstreamDied
        | Fault::UpstreamBroken(_)
        | Fault::FilesNotConfigured => {}
    }
}

/// Lays onto an answer whatever page what it has to say of a fault besides its status: when to ask again, which methods
/// there are, that nobody is to remember it.
pub(super) fn mark(fault: Fault, answer: &mut Answer) {
    let mut plain = Answer::default();
    rescue(fault, &mut plain);
    for (name, value) in plain.fields.iter() {
        // Who is sent elsewhere would wait before he goes there (RFC 9110 section 10.2.3).
        let is_of_redirection = matches!(answer.status, 300..=303 | 305..=399);
        if let Ok(name) = std::str::from_utf8(name)
            && !(is_of_redirection && name.eq_ignore_ascii_case("retry-after"))
        {
            answer.fields.set(name, value);
        }
    }
    answer.close |= plain.close;
}

impl Fault {
    /// Whether there is nobody to whom an answer could be sent.
    pub(crate) fn leaves_nobody(self) -> bool {
        matches!(self, Fault::ClientGone | Fault::ClientStalled | Fault::HungUp)
    }

    /// Whether a site's error routes may answer it. What is no request is answered with the check that refused it; as
    /// in Caddy, a precondition that fails and a range beyond the end are answers of the file's handler, and no errors.
    pub(crate) fn may_be_handled(self) -> bool {
        let is_an_answer = matches!(
            self,
            Fault::Malformed(_) | Fault::PreconditionFailed | Fault::RangeNotSatisfiable { .. }
        );
        !is_an_answer && !self.leaves_nobody()
    }

    /// The status that a client gets.
    pub fn status(self) -> u16 {
        match self {
            Fault::Malformed(refusal) => refusal.status(),
            // RFC 9110 section 15.5.20
            Fault::UnknownHost => 421,
            Fault::NotFound | Fault::MissingAsset => 404,
            Fault::Forbidden => 403,
            Fault::BadPath => 400,
            Fault::MethodNotAllowed(_) => 405,
            Fault::NotImplemented => 501,
            Fault::PreconditionFailed => 412,
            Fault::RangeNotSatisfiable { .. } => 416,
            Fault::HeadTimeout | Fault::BodyTimeout => 408,
            Fault::TooManyConnections => 503,
            // RFC 6585 section 4
            Fault::RateLimited { .. } => 429,
            Fault::Configured(status) | Fault::Shed { status, .. } => status,
            Fault::HungUp => 444,
            Fault::ClientGone | Fault::ClientStalled => 499,
            Fault::AppFailing { .. }
            | Fault::AppQueueFull { .. }
            | Fault::AppQueueTimeout { .. }
            | Fault::UpstreamNone
            | Fault::UpstreamQueueFull
            | Fault::UpstreamQueueTimeout
            | Fault::NoDescriptors
            | Fault::WorkerRefused => 503,
            Fault::WorkerDied
            | Fault::WorkerBroken
            | Fault::AnswerRefused(_)
            | Fault::UpstreamUnreachable
            | Fault::UpstreamTls
            | Fault::UpstreamDied
            | Fault::UpstreamBroken(_) => 502,
            Fault::WorkerTimeout | Fault::UpstreamDialTimeout | Fault::UpstreamTimeout => 504,
            Fault::FileUnreadable
            | Fault::HandlerFailed
            | Fault::FilesNotConfigured
            | Fault::EncodingFailed => 500,
        }
    }

    /// Who caused it.
    pub fn at_fault(self) -> AtFault {
        match self {
            Fault::TooManyConnections
            | Fault::EncodingFailed
            | Fault::FileUnreadable
            | Fault::NoDescriptors
            | Fault::FilesNotConfigured
            | Fault::Shed { .. } => AtFault::Us,
            Fault::AppFailing { .. }
            | Fault::AppQueueFull { .. }
            | Fault::AppQueueTimeout { .. }
            | Fault::WorkerDied
            | Fault::WorkerRefused
            | Fault::WorkerBroken
            | Fault::AnswerRefused(_)
            | Fault::WorkerTimeout
            | Fault::HandlerFailed => AtFault::Worker,
            Fault::UpstreamNone
            | Fault::UpstreamUnreachable
            | Fault::UpstreamDialTimeout
            | Fault::UpstreamTls
            | Fault::UpstreamQueueFull
            | Fault::UpstreamQueueTimeout
            | Fault::UpstreamTimeout
            | Fault::UpstreamDied
            | Fault::UpstreamBroken(_) => AtFault::Upstream,
            // `HungUp` among them: nothing failed, the application did not want that client.
            _ => AtFault::Client,
        }
    }

    /// Whether it came of too much at once, so that fewer at a time would have been answered.
    pub(crate) fn is_of_overload(self) -> bool {
        matches!(
            self,
            Fault::AppQueueFull { .. }
                | Fault::AppQueueTimeout { .. }
                | Fault::WorkerTimeout
                | Fault::UpstreamDialTimeout
                | Fault::UpstreamQueueFull
                | Fault::UpstreamQueueTimeout
                | Fault::UpstreamTimeout
        )
    }

    /// Whether it was refused because there is too much of it, before anybody was asked: such refusals come in floods.
    pub(crate) fn is_shed(self) -> bool {
        matches!(self, Fault::Shed { .. } | Fault::RateLimited { .. })
    }

    /// The `cause` label in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Malformed(refusal) => refusal.name(),
            Fault::UnknownHost => "unknown_host",
            Fault::NotFound => "not_found",
            Fault::MissingAsset => "missing_asset",
            Fault::Forbidden => "forbidden",
            Fault::BadPath => "bad_path",
            Fault::MethodNotAllowed(_) => "method_not_allowed",
            Fault::NotImplemented => "not_implemented",
            Fault::PreconditionFailed => "precondition_failed",
            Fault::RangeNotSatisfiable { .. } => "range_not_satisfiable",
            Fault::HeadTimeout => "head_timeout",
            Fault::BodyTimeout => "body_timeout",
            Fault::TooManyConnections => "too_many_connections",
            Fault::RateLimited { .. } => "rate_limited",
            Fault::Configured(_) => "configured",
            Fault::EncodingFailed => "encoding_failed",
            Fault::FileUnreadable => "file_unreadable",
            Fault::NoDescriptors => "no_descriptors",
            Fault::ClientGone => "client_gone",
            Fault::ClientStalled => "client_stalled",
            Fault::AppFailing { .. } => "app_failing",
            Fault::AppQueueFull { .. } => "app_queue_full",
            Fault::AppQueueTimeout { .. } => "app_queue_timeout",
            Fault::WorkerDied => "worker_died",
            Fault::WorkerRefused => "worker_refused",
            Fault::WorkerBroken | Fault::AnswerRefused(_) => "worker_broken",
            Fault::WorkerTimeout => "worker_timeout",
            Fault::HandlerFailed => "handler_failed",
            Fault::HungUp => "hung_up",
            Fault::UpstreamNone => "upstream_none",
            Fault::UpstreamUnreachable => "upstream_unreachable",
            Fault::UpstreamDialTimeout => "upstream_dial_timeout",
            Fault::UpstreamTls => "upstream_tls",
            Fault::UpstreamQueueFull => "upstream_queue_full",
            Fault::UpstreamQueueTimeout => "upstream_queue_timeout",
            Fault::UpstreamTimeout => "upstream_timeout",
            Fault::UpstreamDied => "upstream_died",
            Fault::UpstreamBroken(_) => "upstream_broken",
            Fault::FilesNotConfigured => "files_not_configured",
            Fault::Shed { cause, .. } => cause.fault_name(),
        }
    }

    /// What exactly was wrong, where the name does not say it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Fault::AnswerRefused(refusal) | Fault::UpstreamBroken(refusal) => Some(refusal.name()),
            _ => None,
        }
    }
}
