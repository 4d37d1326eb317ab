//! Why a request fails, whose fault that is, and which status the client gets.
//!
//! Every failure of a request is an [`HttpError`], those that the codec reports included. Metrics and logs name it by
//! [`HttpError::name`]; [`crate::error_response`] makes the response.

use onehop_http1::Refusal;
use rustix::io::Errno;

use crate::methods::Methods;

/// Who caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSource {
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
pub enum HttpError {
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
    /// The client has not proved who it is (RFC 9110 section 15.5.2).
    Unauthorized,
    /// The body is larger than `request_body` allows (RFC 9110 section 15.5.14).
    BodyTooLarge,
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
        cause: LimitCause,
        /// As configured.
        status: u16,
        /// Seconds after which asking again makes sense.
        retry_after: u32,
    },
}

/// Whether the system refused because something of ours is used up, so that it says nothing about a file or an upstream.
pub fn is_exhaustion(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// Why a limit rejected a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCause {
    /// As many are in flight as may be, and nobody may wait.
    InFlight,
    /// As many are in flight and as many wait as may.
    QueueFull,
    /// It waited for as long as one may.
    WaitedOut,
    /// It waited in a queue that stands, where the newest come first.
    QueueAge,
    /// It waited, and one of a higher priority took its place in a queue that was full.
    Outranked,
    /// The application's event loop is late.
    Lag,
}

impl LimitCause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::InFlight, Self::QueueFull, Self::WaitedOut, Self::QueueAge, Self::Outranked, Self::Lag];

    /// The `cause` label of what counts refusals by limit.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::QueueFull => "queue_full",
            Self::WaitedOut => "wait",
            Self::QueueAge => "queue_age",
            Self::Outranked => "outranked",
            Self::Lag => "lag",
        }
    }

    /// The same among all reasons for which a request was not answered.
    pub fn error_name(self) -> &'static str {
        match self {
            Self::InFlight => "limit_in_flight",
            Self::QueueFull => "limit_queue_full",
            Self::WaitedOut => "limit_wait",
            Self::QueueAge => "limit_queue_age",
            Self::Outranked => "limit_outranked",
            Self::Lag => "limit_lag",
        }
    }
}

impl HttpError {
    /// Whether there is nobody to whom an answer could be sent.
    pub fn leaves_nobody(self) -> bool {
        matches!(self, HttpError::ClientGone | HttpError::ClientStalled | HttpError::HungUp)
    }

    /// Whether a site's error routes may answer it. What is no request is answered with the check that refused it; as
    /// in Caddy, a precondition that fails and a range beyond the end are answers of the file's handler, and no errors.
    pub fn may_be_handled(self) -> bool {
        let is_an_answer = matches!(
            self,
            HttpError::Malformed(_) | HttpError::PreconditionFailed | HttpError::RangeNotSatisfiable { .. }
        );
        !is_an_answer && !self.leaves_nobody()
    }

    /// The status that a client gets.
    pub fn status(self) -> u16 {
        match self {
            HttpError::Malformed(refusal) => refusal.status(),
            // RFC 9110 section 15.5.20
            HttpError::UnknownHost => 421,
            HttpError::NotFound | HttpError::MissingAsset => 404,
            HttpError::Forbidden => 403,
            HttpError::BadPath => 400,
            HttpError::MethodNotAllowed(_) => 405,
            HttpError::NotImplemented => 501,
            HttpError::PreconditionFailed => 412,
            HttpError::RangeNotSatisfiable { .. } => 416,
            HttpError::HeadTimeout | HttpError::BodyTimeout => 408,
            HttpError::Unauthorized => 401,
            HttpError::BodyTooLarge => 413,
            HttpError::TooManyConnections => 503,
            // RFC 6585 section 4
            HttpError::RateLimited { .. } => 429,
            HttpError::Configured(status) | HttpError::Shed { status, .. } => status,
            HttpError::HungUp => 444,
            HttpError::ClientGone | HttpError::ClientStalled => 499,
            HttpError::AppFailing { .. }
            | HttpError::AppQueueFull { .. }
            | HttpError::AppQueueTimeout { .. }
            | HttpError::UpstreamNone
            | HttpError::UpstreamQueueFull
            | HttpError::UpstreamQueueTimeout
            | HttpError::NoDescriptors
            | HttpError::WorkerRefused => 503,
            HttpError::WorkerDied
            | HttpError::WorkerBroken
            | HttpError::AnswerRefused(_)
            | HttpError::UpstreamUnreachable
            | HttpError::UpstreamTls
            | HttpError::UpstreamDied
            | HttpError::UpstreamBroken(_) => 502,
            HttpError::WorkerTimeout | HttpError::UpstreamDialTimeout | HttpError::UpstreamTimeout => 504,
            HttpError::FileUnreadable
            | HttpError::HandlerFailed
            | HttpError::FilesNotConfigured
            | HttpError::EncodingFailed => 500,
        }
    }

    /// Who caused it.
    pub fn source(self) -> ErrorSource {
        match self {
            HttpError::TooManyConnections
            | HttpError::EncodingFailed
            | HttpError::FileUnreadable
            | HttpError::NoDescriptors
            | HttpError::FilesNotConfigured
            | HttpError::Shed { .. } => ErrorSource::Us,
            HttpError::AppFailing { .. }
            | HttpError::AppQueueFull { .. }
            | HttpError::AppQueueTimeout { .. }
            | HttpError::WorkerDied
            | HttpError::WorkerRefused
            | HttpError::WorkerBroken
            | HttpError::AnswerRefused(_)
            | HttpError::WorkerTimeout
            | HttpError::HandlerFailed => ErrorSource::Worker,
            HttpError::UpstreamNone
            | HttpError::UpstreamUnreachable
            | HttpError::UpstreamDialTimeout
            | HttpError::UpstreamTls
            | HttpError::UpstreamQueueFull
            | HttpError::UpstreamQueueTimeout
            | HttpError::UpstreamTimeout
            | HttpError::UpstreamDied
            | HttpError::UpstreamBroken(_) => ErrorSource::Upstream,
            // `HungUp` among them: nothing failed, the application did not want that client.
            _ => ErrorSource::Client,
        }
    }

    /// Whether it came of too much at once, so that fewer at a time would have been answered.
    pub fn is_of_overload(self) -> bool {
        matches!(
            self,
            HttpError::AppQueueFull { .. }
                | HttpError::AppQueueTimeout { .. }
                | HttpError::WorkerTimeout
                | HttpError::UpstreamDialTimeout
                | HttpError::UpstreamQueueFull
                | HttpError::UpstreamQueueTimeout
                | HttpError::UpstreamTimeout
        )
    }

    /// Whether it was refused because there is too much of it, before anybody was asked: such refusals come in floods.
    pub fn is_shed(self) -> bool {
        matches!(self, HttpError::Shed { .. } | HttpError::RateLimited { .. })
    }

    /// The `cause` label in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            HttpError::Malformed(refusal) => refusal.name(),
            HttpError::UnknownHost => "unknown_host",
            HttpError::NotFound => "not_found",
            HttpError::MissingAsset => "missing_asset",
            HttpError::Forbidden => "forbidden",
            HttpError::BadPath => "bad_path",
            HttpError::MethodNotAllowed(_) => "method_not_allowed",
            HttpError::NotImplemented => "not_implemented",
            HttpError::PreconditionFailed => "precondition_failed",
            HttpError::RangeNotSatisfiable { .. } => "range_not_satisfiable",
            HttpError::HeadTimeout => "head_timeout",
            HttpError::BodyTimeout => "body_timeout",
            HttpError::Unauthorized => "unauthorized",
            HttpError::BodyTooLarge => "body_too_large",
            HttpError::TooManyConnections => "too_many_connections",
            HttpError::RateLimited { .. } => "rate_limited",
            HttpError::Configured(_) => "configured",
            HttpError::EncodingFailed => "encoding_failed",
            HttpError::FileUnreadable => "file_unreadable",
            HttpError::NoDescriptors => "no_descriptors",
            HttpError::ClientGone => "client_gone",
            HttpError::ClientStalled => "client_stalled",
            HttpError::AppFailing { .. } => "app_failing",
            HttpError::AppQueueFull { .. } => "app_queue_full",
            HttpError::AppQueueTimeout { .. } => "app_queue_timeout",
            HttpError::WorkerDied => "worker_died",
            HttpError::WorkerRefused => "worker_refused",
            HttpError::WorkerBroken | HttpError::AnswerRefused(_) => "worker_broken",
            HttpError::WorkerTimeout => "worker_timeout",
            HttpError::HandlerFailed => "handler_failed",
            HttpError::HungUp => "hung_up",
            HttpError::UpstreamNone => "upstream_none",
            HttpError::UpstreamUnreachable => "upstream_unreachable",
            HttpError::UpstreamDialTimeout => "upstream_dial_timeout",
            HttpError::UpstreamTls => "upstream_tls",
            HttpError::UpstreamQueueFull => "upstream_queue_full",
            HttpError::UpstreamQueueTimeout => "upstream_queue_timeout",
            HttpError::UpstreamTimeout => "upstream_timeout",
            HttpError::UpstreamDied => "upstream_died",
            HttpError::UpstreamBroken(_) => "upstream_broken",
            HttpError::FilesNotConfigured => "files_not_configured",
            HttpError::Shed { cause, .. } => cause.error_name(),
        }
    }

    /// What exactly was wrong, where the name does not say it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            HttpError::AnswerRefused(refusal) | HttpError::UpstreamBroken(refusal) => Some(refusal.name()),
            _ => None,
        }
    }
}
