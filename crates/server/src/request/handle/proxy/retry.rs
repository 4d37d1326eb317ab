//! Whether a request is tried once more, and when: `lb_retries`, `lb_try_duration`, `lb_try_interval`,
//! `lb_retry_match`, as Caddy counts them.
//!
//! What may have been acted on is never sent again, unless the configuration says that such requests may be. That a
//! kept connection turned out to be dead is no attempt, and [`super::forward`]'s business.

use std::time::{Duration, Instant};

use onehop_config::checked::proxy::Balance;
use onehop_http1::Method;
use onehop_message::error::HttpError;

use super::Call;
use crate::limits::PROXY_TRY_PAUSE_MIN;
use crate::request::context::RequestContext;
use crate::request::handle::try_files::Lookups;
use crate::request::route;
use onehop_connection::{RequestBody, ResponseWriter, Sent};

/// Why an attempt came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing of the request has left.
    Unsent(HttpError),
    /// The upstream may have begun it.
    Begun(HttpError),
    /// Another upstream would change nothing.
    Final(HttpError),
}

/// The attempts that were made for one request.
pub(super) struct Attempts<'a> {
    balance: &'a Balance,
    started: Instant,
    /// Failures until now.
    failures: u32,
    /// Members that have failed, each once.
    tried: Vec<usize>,
    last: Option<Failed>,
}

impl Failed {
    pub(super) fn fault(self) -> HttpError {
        match self {
            Self::Unsent(fault) | Self::Begun(fault) | Self::Final(fault) => fault,
        }
    }
}

impl<'a> Attempts<'a> {
    pub(super) fn new(balance: &'a Balance, started: Instant) -> Self {
        Self { balance, started, failures: 0, tried: Vec::new(), last: None }
    }

    /// Who has failed.
    pub(super) fn tried(&self) -> &[usize] {
        &self.tried
    }

    /// How the last attempt failed.
    pub(super) fn last(&self) -> Option<Failed> {
        self.last
    }

    /// An attempt at a member failed.
    pub(super) fn note(&mut self, member: usize, failed: Failed) -> Failed {
        if !self.tried.contains(&member) {
            self.tried.push(member);
        }
        self.last = Some(failed);
        failed
    }

    /// Whether there may be another attempt after one that failed so.
    pub(super) fn may_go_on(
        &mut self,
        failed: Failed,
        call: &Call<'_>,
        context: &mut RequestContext<'_>,
        writer: &ResponseWriter<'_, '_>,
    ) -> bool {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        let (retries, time) = (self.retries(), self.balance.try_duration);
        let has_room = match retries {
            None => !time.is_zero(),
            Some(most) => failures < most,
        };
        let has_time = time.is_zero() || self.started.elapsed() < time;
        has_room && has_time && writer.state() == Sent::Nothing && self.may_be_repeated(failed, call, context)
    }

    /// Waits for the next attempt.
    pub(super) async fn pause(&self, request_body: &mut RequestBody<'_, '_>) -> Result<(), HttpError> {
        let pause = match self.retries() {
            None => self.balance.try_interval.max(PROXY_TRY_PAUSE_MIN),
            Some(_) => self.balance.try_interval,
        };
        if pause == Duration::ZERO {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(pause) => Ok(()),
            () = request_body.gone() => Err(HttpError::ClientGone),
        }
    }

    /// As in Caddy none is no number.
    fn retries(&self) -> Option<u32> {
        self.balance.retries.filter(|retries| *retries > 0)
    }

    fn may_be_repeated(&self, failed: Failed, call: &Call<'_>, context: &mut RequestContext<'_>) -> bool {
        match failed {
            Failed::Unsent(_) => true,
            Failed::Final(_) => false,
            // A body that has gone out in part is not there any more.
            Failed::Begun(_) if !call.opening.is_complete => false,
            Failed::Begun(_) if self.balance.retry_match.is_empty() => {
                context.request.head.method() == Method::Get
            }
            Failed::Begun(_) => {
                let mut matchers = self.balance.retry_match.iter();
                // A matcher that needs the disk fits nothing here.
                matchers
                    .any(|matcher| route::matches(matcher, context, &mut Lookups::default()).unwrap_or(false))
            }
        }
    }
}
