//! The state of one name, and its next step. This module does no I/O; time is an argument.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::attempt::{Failure, Found, Job, Outcome, Unsaved};
use super::on_demand::{NoPermission, Obtained, Permission, refused};
use super::{CertificateStatus, Event, Wanted};
use crate::issuer::{IssueError, Issuer, RenewalWindow};
use crate::limits::{
    LOCKED_RETRY, ON_DEMAND_WAITING_PER_NAME_MAX, RENEWAL_PAUSE_RANGE, RETRY_AFTER_MAX, WINDOW_RETRY,
    WINDOW_RETRY_RANGE,
};
use crate::loaded::Loaded;
use crate::schedule::{back_off, renew_at};

/// The state of one name.
pub(super) struct Entry {
    wanted: Wanted,
    /// Whether a handshake asked for the name; otherwise the configuration has it.
    pub(super) is_on_demand: bool,
    current: Option<Current>,
    /// Whether a task is under way. A name has one at a time.
    is_busy: bool,
    /// When its certificate is ordered next.
    due: SystemTime,
    failures: u32,
    last_error: Option<(String, SystemTime)>,
    /// Folders of issuers that asked for a pause (`Retry-After`), and when the pause ends.
    resting: Vec<(String, SystemTime)>,
    unsaved: Option<Unsaved>,
    /// Whether the next order needs no permission, or the permission was given.
    is_permitted: bool,
    waiters: Vec<oneshot::Sender<Obtained>>,
}

/// The certificate that is served.
struct Current {
    found: Found,
    window: Option<RenewalWindow>,
    /// When the issuer is asked for its window.
    window_due: SystemTime,
    /// The earliest time of its renewal.
    earliest: SystemTime,
    /// When it was revoked. It is renewed from then on.
    revoked_at: Option<SystemTime>,
}

/// Kinds of tasks. Each has its own bound on tasks at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkKind {
    /// Orders for names of the configuration, and renewals.
    Order,
    /// Orders for the first certificate of a name that handshakes ask for.
    OnDemand,
    /// Questions whether such a certificate may be obtained.
    Permission,
}

/// What a task does.
pub(super) enum Work {
    /// Asks for permission.
    Ask {
        /// What is asked.
        permission: Arc<dyn Permission>,
        /// For which name.
        name: String,
    },
    /// Orders.
    Order(Job),
    /// Asks for a renewal window.
    Window {
        /// The issuer that is asked.
        issuer: Arc<dyn Issuer>,
        /// For which name.
        name: String,
        /// For which certificate (PEM).
        chain: String,
    },
}

/// The consequences of a change of entries: whether to publish, events to report, handshakes to answer.
#[derive(Default)]
pub(super) struct Applied {
    pub(super) is_changed: bool,
    pub(super) events: Vec<Event>,
    pub(super) answers: Vec<(oneshot::Sender<Obtained>, Obtained)>,
}

impl Applied {
    pub(super) fn append(&mut self, mut other: Self) {
        self.is_changed |= other.is_changed;
        self.events.append(&mut other.events);
        self.answers.append(&mut other.answers);
    }
}

impl Work {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Order(job) => &job.wanted.name,
            Self::Window { name, .. } | Self::Ask { name, .. } => name,
        }
    }

    /// The issuers that this work may have presented challenges for.
    pub(super) fn issuers(&self) -> Vec<Arc<dyn Issuer>> {
        match self {
            Self::Order(job) => job.wanted.issuers.clone(),
            Self::Window { .. } | Self::Ask { .. } => Vec::new(),
        }
    }
}

impl Entry {
    pub(super) fn new(wanted: Wanted, is_on_demand: bool, now: SystemTime) -> Self {
        Self {
            is_permitted: wanted.permission.is_none(),
            wanted,
            is_on_demand,
            current: None,
            is_busy: false,
            due: now,
            failures: 0,
            last_error: None,
            resting: Vec::new(),
            unsaved: None,
            waiters: Vec::new(),
        }
    }

    /// The entry after a reload. The back-off stays, unless the issuers have changed. The certificate stays, too, until the
    /// new issuers have issued one.
    pub(super) fn with(mut self, wanted: Wanted, now: SystemTime) -> Self {
        let folders =
            |wanted: &Wanted| wanted.issuers.iter().map(|one| one.folder().to_owned()).collect::<Vec<_>>();
        if folders(&self.wanted) != folders(&wanted) {
            (self.failures, self.unsaved, self.due) = (0, None, now);
        }
        // The same issuers with other settings: an account or a challenge that failed may work now.
        let is_same = |(one, other): (&Arc<dyn Issuer>, &Arc<dyn Issuer>)| Arc::ptr_eq(one, other);
        if self.failures > 0 && !self.wanted.issuers.iter().zip(&wanted.issuers).all(is_same) {
            (self.failures, self.due) = (0, now);
        }
        self.is_on_demand = false;
        self.is_permitted = wanted.permission.is_none();
        self.wanted = wanted;
        if self.failures == 0 && self.is_of_wanted_issuer() {
            self.due = self.renewal();
        }
        self
    }

    /// Whether the certificate is from one of the issuers that are wanted now: a reload may have changed them.
    fn is_of_wanted_issuer(&self) -> bool {
        self.current.as_ref().is_some_and(|current| {
            self.wanted.issuers.iter().any(|issuer| issuer.folder() == current.found.folder)
        })
    }

    /// Whether it has a valid certificate from one of these issuers, so that none is loaded from the store.
    pub(super) fn serves(&self, wanted: &Wanted, now: SystemTime) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let is_theirs = wanted.issuers.iter().any(|issuer| issuer.folder() == current.found.folder);
            is_theirs && current.found.loaded.is_valid_at(now)
        })
    }

    pub(super) fn loaded(&self) -> Option<Arc<Loaded>> {
        self.current.as_ref().map(|current| Arc::clone(&current.found.loaded))
    }

    /// The certificate that is served, and its issuer, unless a reload has removed the issuer.
    pub(super) fn served(&self) -> Option<(Found, Option<Arc<dyn Issuer>>)> {
        let found = self.current.as_ref()?.found.clone();
        let issuer = self.wanted.issuers.iter().find(|issuer| issuer.folder() == found.folder);
        Some((found, issuer.map(Arc::clone)))
    }

    /// This certificate (PEM) was revoked: another one is due, whatever failed before.
    pub(super) fn revoked(&mut self, chain: &str, now: SystemTime) {
        if let Some(current) =
            self.current.as_mut().filter(|current| current.found.loaded.chain_pem() == chain)
        {
            current.revoked_at = Some(now);
            (self.failures, self.due) = (0, now);
        }
    }

    pub(super) fn status(&self) -> CertificateStatus {
        let found = self.current.as_ref().map(|current| &current.found);
        CertificateStatus {
            name: self.wanted.name.clone(),
            issuer: found.map(|found| found.folder.clone()),
            not_after: found.map(|found| found.loaded.not_after),
            next_renewal: self.due,
            last_error: self.last_error.clone(),
        }
    }

    /// Answers a handshake, at once or when the certificate is there. At most [`ON_DEMAND_WAITING_PER_NAME_MAX`] wait.
    pub(super) fn wait(&mut self, waiter: oneshot::Sender<Obtained>, now: SystemTime) {
        // Clients that are gone wait no more.
        self.waiters.retain(|waiter| !waiter.is_closed());
        match self.answer(now) {
            Some(answer) => drop(waiter.send(answer)),
            None if self.waiters.len() >= ON_DEMAND_WAITING_PER_NAME_MAX => {
                let name = &self.wanted.name;
                let reason =
                    format!("{ON_DEMAND_WAITING_PER_NAME_MAX} handshakes wait for the certificate of {name}");
                drop(waiter.send(Err(reason)));
            }
            None => self.waiters.push(waiter),
        }
    }

    /// The answer to a handshake, if it is known: the certificate, or the failure that is too recent to try again.
    fn answer(&self, now: SystemTime) -> Option<Obtained> {
        if let Some(loaded) = self.loaded().filter(|loaded| loaded.is_valid_at(now)) {
            return Some(Ok(loaded));
        }
        let is_recent = !self.is_busy && self.due > now;
        self.last_error.as_ref().filter(|_| is_recent).map(|(error, _)| Err(error.clone()))
    }

    /// Whether the entry can be removed without losing anything.
    pub(super) fn is_forgettable(&self, now: SystemTime) -> bool {
        let is_used = self.is_busy || !self.waiters.is_empty();
        let is_valid = self.loaded().is_some_and(|loaded| loaded.is_valid_at(now));
        self.is_on_demand && !is_used && !is_valid && self.due <= now
    }

    /// When work is due; `None` while a task is under way. A failed order for a handshake is repeated when the next handshake
    /// asks for the name.
    pub(super) fn next(&self) -> Option<SystemTime> {
        if self.is_busy {
            return None;
        }
        match &self.current {
            Some(current) => Some(self.due.min(current.window_due)),
            None => (!self.is_on_demand || !self.waiters.is_empty()).then_some(self.due),
        }
    }

    /// Which kind of work is due.
    pub(super) fn kind(&self, now: SystemTime) -> WorkKind {
        match &self.current {
            _ if self.due <= now && self.needs_permission() => WorkKind::Permission,
            None if self.is_on_demand => WorkKind::OnDemand,
            _ => WorkKind::Order,
        }
    }

    fn needs_permission(&self) -> bool {
        !self.is_permitted && self.unsaved.is_none()
    }

    /// Waits, because there are too many orders.
    pub(super) fn postpone(&mut self, until: SystemTime) {
        self.due = until;
    }

    /// Takes the work that is due.
    pub(super) fn start(&mut self, now: SystemTime) -> Option<Work> {
        if self.due <= now
            && self.needs_permission()
            && let Some(permission) = &self.wanted.permission
        {
            self.is_busy = true;
            let (permission, name) = (Arc::clone(permission), self.wanted.name.clone());
            return Some(Work::Ask { permission, name });
        }
        if self.due > now {
            let current = self.current.as_mut()?;
            let issuer = self.wanted.issuers.iter().find(|issuer| issuer.folder() == current.found.folder);
            let Some(issuer) = issuer else {
                current.window_due = now + WINDOW_RETRY;
                return None;
            };
            self.is_busy = true;
            return Some(Work::Window {
                issuer: Arc::clone(issuer),
                name: self.wanted.name.clone(),
                chain: current.found.loaded.chain_pem().to_owned(),
            });
        }
        self.is_busy = true;
        self.resting.retain(|(_, until)| *until > now);
        self.unsaved.take_if(|unsaved| unsaved.not_after <= now);
        Some(Work::Order(Job {
            wanted: self.wanted.clone(),
            previous: self.current.as_ref().map(|current| current.found.clone()),
            unsaved: self.unsaved.clone(),
            resting: self.resting.iter().map(|(folder, _)| folder.clone()).collect(),
        }))
    }

    /// The task that [`Entry::start`] began has ended.
    pub(super) fn finish(&mut self, outcome: Outcome, now: SystemTime) -> Applied {
        self.is_busy = false;
        self.apply(outcome, now)
    }

    pub(super) fn apply(&mut self, outcome: Outcome, now: SystemTime) -> Applied {
        match outcome {
            Outcome::Found(found) => self.replace(found, now, now),
            Outcome::Obtained(found, failures) => {
                let event = Event::Obtained {
                    name: self.wanted.name.clone(),
                    issuer: found.folder.clone(),
                    not_after: found.loaded.not_after,
                    is_renewal: self.current.is_some(),
                };
                let failed = failures.into_iter().map(|failure| self.failed(failure, Duration::ZERO));
                let events = failed.chain([event.clone()]).collect();
                let life = found.loaded.not_after.duration_since(now).unwrap_or_default();
                let (least, most) = RENEWAL_PAUSE_RANGE;
                Applied { events, ..self.replace(found, now, now + (life / 2).clamp(least, most)) }
            }
            Outcome::Locked => {
                self.due = now + LOCKED_RETRY;
                Applied::default()
            }
            Outcome::Failed(failures, unsaved) => self.fail(failures, unsaved, now),
            Outcome::Window(window) => {
                if let Some(current) = &mut self.current {
                    let (least, most) = WINDOW_RETRY_RANGE;
                    let again = window.map_or(WINDOW_RETRY, |window| window.look_again_in.clamp(least, most));
                    current.window_due = now + again;
                    // A window that cannot be fetched now leaves the last one valid.
                    current.window = window.or(current.window);
                }
                // A reload may have changed the issuers while the old one was asked: then an order is due at once.
                if self.failures == 0 && self.is_of_wanted_issuer() {
                    self.due = self.renewal();
                }
                Applied::default()
            }
            Outcome::Permission(Ok(())) => {
                self.is_permitted = true;
                Applied::default()
            }
            // It was asked before the configuration named it.
            Outcome::Permission(Err(_)) if self.wanted.permission.is_none() => Applied::default(),
            Outcome::Permission(Err(why)) => {
                let message = match why {
                    NoPermission::Refused => refused(&self.wanted.name),
                    NoPermission::Unanswered(reason) => reason,
                };
                let error = IssueError { message, retry_after: None };
                self.fail(vec![(String::new(), error)], None, now)
            }
        }
    }

    /// Whether the entry ends without permission: it has no valid certificate to serve.
    pub(super) fn ends_without_permission(&self, now: SystemTime) -> bool {
        self.wanted.permission.is_some() && !self.loaded().is_some_and(|loaded| loaded.is_valid_at(now))
    }

    /// Answers all handshakes that wait: there is no certificate.
    pub(super) fn refuse(self, reason: &str) -> Applied {
        let answers = self.waiters.into_iter().map(|waiter| (waiter, Err(reason.to_owned())));
        Applied { is_changed: self.current.is_some(), events: Vec::new(), answers: answers.collect() }
    }

    fn replace(&mut self, found: Found, now: SystemTime, earliest: SystemTime) -> Applied {
        let loaded = Arc::clone(&found.loaded);
        self.current = Some(Current { found, window: None, window_due: now, earliest, revoked_at: None });
        (self.failures, self.last_error, self.unsaved) = (0, None, None);
        // A renewal asks again.
        self.is_permitted = self.wanted.permission.is_none();
        // If a reload has changed the issuers during the order, the certificate is served until the new issuers have issued one.
        self.due = if self.is_of_wanted_issuer() { self.renewal() } else { now };
        let answers = self.waiters.drain(..).map(|waiter| (waiter, Ok(Arc::clone(&loaded)))).collect();
        Applied { is_changed: true, events: Vec::new(), answers }
    }

    fn fail(&mut self, failures: Vec<Failure>, unsaved: Option<Unsaved>, now: SystemTime) -> Applied {
        self.failures = self.failures.saturating_add(1);
        // An attempt that failed before storing, as at the lock, keeps the certificate for the next attempt.
        self.unsaved = unsaved.or(self.unsaved.take());
        for (folder, error) in &failures {
            if let Some(after) = error.retry_after {
                self.resting.push((folder.clone(), now + after.min(RETRY_AFTER_MAX)));
            }
        }
        // The pause of this issuer that is left.
        let rests = |issuer: &Arc<dyn Issuer>| {
            let of_it = self.resting.iter().filter(|(folder, _)| folder == issuer.folder());
            of_it.filter_map(|(_, until)| until.duration_since(now).ok()).max().unwrap_or_default()
        };
        let after = self.wanted.issuers.iter().map(rests).min();
        let next_try_in = back_off(self.failures, after);
        self.due = now + next_try_in;
        let reasons: Vec<_> = failures.iter().map(|(_, error)| error.message.as_str()).collect();
        let message = reasons.join("; ");
        let last = failures.len().saturating_sub(1);
        let events = failures
            .into_iter()
            .enumerate()
            .map(|(at, failure)| self.failed(failure, if at == last { next_try_in } else { Duration::ZERO }));
        let events = events.collect();
        let answers = self.waiters.drain(..).map(|waiter| (waiter, Err(message.clone()))).collect();
        self.last_error = Some((message, now));
        Applied { is_changed: false, events, answers }
    }

    fn failed(&self, (issuer, error): Failure, next_try_in: Duration) -> Event {
        Event::Failed { name: self.wanted.name.clone(), issuer, reason: error.message, next_try_in }
    }

    fn renewal(&self) -> SystemTime {
        self.current.as_ref().map_or(self.due, |current| {
            if let Some(revoked_at) = current.revoked_at {
                return revoked_at;
            }
            let loaded = &current.found.loaded;
            let ratio = self.wanted.renewal_ratio;
            renew_at(loaded.not_before, loaded.not_after, ratio, current.window, loaded.jitter())
                .max(current.earliest)
        })
    }
}
