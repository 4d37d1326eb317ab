//! Certificates on demand: how a handshake on a core asks the keeper, and limits on requests for unknown names.
//!
//! A core never waits and takes no lock: it sends the name through a bounded channel. The keeper looks into its table and
//! the store, asks for permission, and orders; [`UnknownNames`] limits how often. This module does no I/O; time is an argument.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{Keeper, Wanted};
use crate::limits::{
    ASKED_PER_MINUTE_MAX, ON_DEMAND_ORDERS_PER_MINUTE_MAX, ON_DEMAND_WAITING_MAX, REFUSAL_TIME,
    UNANSWERED_TIME,
};
use crate::loaded::Loaded;

/// The certificate, or why there is none.
pub(super) type Obtained = Result<Arc<Loaded>, String>;

/// A future of [`Permission`].
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// Decides whether a certificate may be obtained for a name that a client asks for.
pub trait Permission: Send + Sync {
    /// Whether a certificate may be obtained for this name.
    ///
    /// # Errors
    /// Why there is no answer and what to do, for a person.
    fn allows<'a>(&'a self, name: &'a str) -> Asking<'a>;
}

/// Obtains certificates for the handshakes of one site. Cheap to clone.
#[derive(Clone)]
pub struct OnDemand {
    /// The issuers, the key and the permission. Its name is not used.
    wanted: Wanted,
    requests: mpsc::Sender<Request>,
    /// Bounds the handshakes that wait.
    room: Arc<Semaphore>,
}

/// A future that a handshake waits for: the certificate, or why there is none.
pub struct Obtaining {
    answer: oneshot::Receiver<Obtained>,
    _room: OwnedSemaphorePermit,
}

/// A name that a handshake asks for.
pub(super) struct Request {
    pub(super) wanted: Wanted,
    pub(super) answer: oneshot::Sender<Obtained>,
}

/// What the keeper needs to make [`OnDemand`].
pub(super) struct Requests {
    sender: mpsc::Sender<Request>,
    room: Arc<Semaphore>,
}

impl Requests {
    pub(super) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(ON_DEMAND_WAITING_MAX);
        (Self { sender, room: Arc::new(Semaphore::new(ON_DEMAND_WAITING_MAX)) }, receiver)
    }
}

impl Keeper {
    /// Returns what obtains certificates for the handshakes of one site. The site's issuers and its permission are in
    /// `wanted`; the name in it is not used.
    ///
    /// Handshakes that ask for the same name share one certificate: the keeper takes it from memory, else from the store,
    /// else it orders one. It renews the certificate until [`Keeper::set`] is called next. If [`Keeper::set`] is called, or the
    /// keeper is dropped, while a handshake waits, the handshake gets an error.
    pub fn on_demand(&self, wanted: Wanted) -> OnDemand {
        let Requests { sender, room } = &self.requests;
        OnDemand { wanted, requests: sender.clone(), room: Arc::clone(room) }
    }
}

impl OnDemand {
    /// Asks for a certificate without waiting. `None` if [`ON_DEMAND_WAITING_MAX`] handshakes wait already.
    pub fn obtain(&self, name: &str) -> Option<Obtaining> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let (sender, answer) = oneshot::channel();
        let wanted = Wanted { name: name.to_owned(), ..self.wanted.clone() };
        self.requests.try_send(Request { wanted, answer: sender }).ok()?;
        Some(Obtaining { answer, _room: room })
    }
}

impl Future for Obtaining {
    type Output = Obtained;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Obtained> {
        Pin::new(&mut self.answer).poll(context).map(|answer| {
            answer.unwrap_or_else(|_| Err("the configuration changed meanwhile: ask again".to_owned()))
        })
    }
}

/// Why there is no permission.
pub(super) enum NoPermission {
    /// The endpoint refuses.
    Refused,
    /// It gave no answer, for this reason.
    Unanswered(String),
}

/// Counts requests for unknown names, and remembers recent refusals. The rate limit also bounds its size.
pub(super) struct UnknownNames {
    names: Rate,
    orders: Rate,
    /// By name: the reason, and when the refusal ends.
    refused: HashMap<String, (String, SystemTime)>,
    /// Limits reports of failures of the endpoint to one in a minute.
    reports: Rate,
}

impl Default for UnknownNames {
    fn default() -> Self {
        Self {
            names: Rate::per_minute(ASKED_PER_MINUTE_MAX),
            orders: Rate::per_minute(ON_DEMAND_ORDERS_PER_MINUTE_MAX),
            refused: HashMap::new(),
            reports: Rate::per_minute(1),
        }
    }
}

impl UnknownNames {
    /// The reason for which a name was refused, if the refusal still holds.
    pub(super) fn refusal(&self, name: &str, now: SystemTime) -> Option<String> {
        let (reason, until) = self.refused.get(name)?;
        // If the clock was set back, the refusal ends all the same.
        let is_recent = *until > now && *until <= now + REFUSAL_TIME;
        is_recent.then(|| reason.clone())
    }

    /// Counts a request for an unknown name; `false` if there were too many in the last minute.
    pub(super) fn count_name(&mut self, now: SystemTime) -> bool {
        self.names.take(now).is_ok()
    }

    /// Counts an order. The error is when the next order is allowed.
    pub(super) fn count_order(&mut self, now: SystemTime) -> Result<(), SystemTime> {
        self.orders.take(now)
    }

    /// Remembers a refusal: its reason, and whether to report it.
    pub(super) fn refuse(&mut self, name: &str, why: NoPermission, now: SystemTime) -> (String, bool) {
        let (reason, time, is_reported) = match why {
            NoPermission::Refused => (refused(name), REFUSAL_TIME, false),
            NoPermission::Unanswered(reason) => (reason, UNANSWERED_TIME, self.reports.take(now).is_ok()),
        };
        self.refused.retain(|_, (_, until)| *until > now);
        self.refused.insert(name.to_owned(), (reason.clone(), now + time));
        (reason, is_reported)
    }
}

/// The reason of a refusal.
pub(super) fn refused(name: &str) -> String {
    format!("`ask` does not permit a certificate for {name}: let the endpoint answer 200 for it")
}

/// A limit on events in any 60 seconds.
struct Rate {
    most: usize,
    times: VecDeque<SystemTime>,
}

impl Rate {
    const WINDOW: Duration = Duration::from_secs(60);

    fn per_minute(most: usize) -> Self {
        Self { most, times: VecDeque::new() }
    }

    /// Counts an event. The error is when the next event is allowed.
    fn take(&mut self, now: SystemTime) -> Result<(), SystemTime> {
        // Times in the future are from before the clock was set back.
        self.times.retain(|time| *time <= now && *time + Self::WINDOW > now);
        match self.times.front() {
            Some(first) if self.times.len() >= self.most => Err(*first + Self::WINDOW),
            _ => {
                self.times.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + Duration::from_millis(milliseconds)
    }

    #[test]
    fn ten_thousand_unknown_names_in_a_minute_stay_within_the_bound() {
        let mut unknown = UnknownNames::default();
        let mut counted = 0;
        for number in 0..10_000 {
            let (name, now) = (format!("{number}.example"), at(6 * number));
            if unknown.count_name(now) {
                counted += 1;
                unknown.refuse(&name, NoPermission::Refused, now);
                assert!(unknown.refusal(&name, now + REFUSAL_TIME / 2).is_some());
            }
            assert!(unknown.refused.len() <= ASKED_PER_MINUTE_MAX);
        }
        assert_eq!(counted, ASKED_PER_MINUTE_MAX);
        // A minute later, names are asked for again, and no refusal is left.
        assert!(unknown.count_name(at(120_001)));
        assert!(unknown.refusal("0.example", at(120_001)).is_none());
        // Names are asked for even if the clock was set back.
        assert!(unknown.count_name(at(0)));
    }

    #[test]
    fn orders_wait_for_the_minute_to_pass() {
        let mut unknown = UnknownNames::default();
        for _ in 0..ON_DEMAND_ORDERS_PER_MINUTE_MAX {
            unknown.count_order(at(500)).unwrap();
        }
        assert_eq!(unknown.count_order(at(900)), Err(at(60_500)));
        assert_eq!(unknown.count_order(at(60_500)), Ok(()));
    }

    #[test]
    fn an_endpoint_that_does_not_answer_is_reported_once_a_minute_and_asked_again_soon() {
        let mut unknown = UnknownNames::default();
        let mut refuse = |name, now| unknown.refuse(name, NoPermission::Unanswered("down".to_owned()), now);
        assert_eq!(refuse("a.example", at(0)), ("down".to_owned(), true));
        assert_eq!(refuse("b.example", at(0)), ("down".to_owned(), false));
        assert_eq!(refuse("b.example", at(60_000)), ("down".to_owned(), true));
        let again = at(60_000) + UNANSWERED_TIME;
        assert!(unknown.refusal("b.example", again - Duration::from_millis(1)).is_some());
        assert!(unknown.refusal("b.example", again).is_none());
    }
}
