//! One attempt to obtain a certificate: the lock, the store, then the issuers in order. Does not change the keeper's state.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::on_demand::{NoPermission, Permission};
use super::{Wanted, poll_now};
use crate::Clock;
use crate::issuer::{CertificateOrder, IssueError, Issuer, Pem, RenewalWindow};
use crate::limits::{ORDER_TIME_MAX, PERMISSION_TIME_MAX, WINDOW_TIME_MAX};
use crate::loaded::Loaded;
use crate::store::{Lock, Storage, load_certificate, lock_briefly, save_certificate};

/// A certificate and the folder of its issuer.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) folder: String,
    pub(super) loaded: Arc<Loaded>,
}

/// A certificate that was issued and could not be stored yet. It is not ordered again: issuers bound orders.
#[derive(Clone)]
pub(super) struct Unsaved {
    pub(super) folder: String,
    pub(super) pem: Pem,
    pub(super) not_after: SystemTime,
}

/// An issuer's folder and why it failed.
pub(super) type Failure = (String, IssueError);

/// What is to be attempted.
pub(super) struct Job {
    pub(super) wanted: Wanted,
    pub(super) previous: Option<Found>,
    pub(super) unsaved: Option<Unsaved>,
    /// Folders of issuers that asked for a pause.
    pub(super) resting: Vec<String>,
}

/// How a task ended.
pub(super) enum Outcome {
    /// The store has a certificate: from before, or from another process.
    Found(Found),
    /// A new certificate, after these failures of issuers that were asked before.
    Obtained(Found, Vec<Failure>),
    /// Another process orders it.
    Locked,
    /// No certificate.
    Failed(Vec<Failure>, Option<Unsaved>),
    /// The issuer's renewal window.
    Window(Option<RenewalWindow>),
    /// Whether the certificate may be obtained.
    Permission(Result<(), NoPermission>),
}

impl Outcome {
    /// The task panicked: a bug of ours, or of an issuer.
    pub(super) fn panicked() -> Self {
        let message =
            "an internal error ended the order: please report it with the log's lines before this one";
        Self::failed(String::new(), message.to_owned())
    }

    fn failed(folder: String, message: String) -> Self {
        Self::Failed(vec![(folder, IssueError { message, retry_after: None })], None)
    }
}

/// The valid certificate in the store that expires last, of all issuers of the name. A certificate that cannot be read counts
/// as absent; the reason is reported when the next one is stored.
pub(super) fn load_best(storage: &dyn Storage, wanted: &Wanted, now: SystemTime) -> Option<Found> {
    let load = |issuer: &Arc<dyn Issuer>| {
        let folder = issuer.folder().to_owned();
        let loaded = load_certificate(storage, &folder, &wanted.name).ok().flatten();
        loaded
            .filter(|loaded| loaded.is_valid_at(now))
            .map(|loaded| Found { folder, loaded: Arc::new(loaded) })
    };
    wanted.issuers.iter().filter_map(load).max_by_key(|found| found.loaded.not_after)
}

/// One attempt, under the store's lock on the name, so that other processes order nothing meanwhile.
pub(super) async fn attempt(storage: &dyn Storage, clock: &Clock, job: Job) -> Outcome {
    match storage.try_lock(&lock_name(&job.wanted)) {
        Ok(Some(lock)) => locked_attempt(storage, clock(), job, lock).await,
        Ok(None) => Outcome::Locked,
        Err(error) => Outcome::failed(String::new(), error.to_string()),
    }
}

/// One attempt with issuers that never wait; `None` if one does.
pub(super) fn attempt_briefly(storage: &dyn Storage, wanted: &Wanted, now: SystemTime) -> Option<Outcome> {
    let job = Job { wanted: wanted.clone(), previous: None, unsaved: None, resting: Vec::new() };
    match lock_briefly(storage, &lock_name(wanted)) {
        Ok(lock) => poll_now(locked_attempt(storage, now, job, lock)),
        Err(error) => Some(Outcome::failed(String::new(), error.to_string())),
    }
}

fn lock_name(wanted: &Wanted) -> String {
    format!("issue_cert_{}", wanted.name)
}

async fn locked_attempt(storage: &dyn Storage, now: SystemTime, job: Job, _lock: Lock) -> Outcome {
    // Another process may have been faster.
    if let Some(found) = load_best(storage, &job.wanted, now) {
        let is_newer = |previous: &Found| found.loaded.not_after > previous.loaded.not_after;
        if job.previous.as_ref().is_none_or(is_newer) {
            return Outcome::Found(found);
        }
    }
    if let Some(unsaved) = job.unsaved {
        return save(storage, &job.wanted, unsaved.folder, unsaved.pem, Vec::new());
    }
    let mut failures = Vec::new();
    for issuer in
        job.wanted.issuers.iter().filter(|issuer| !job.resting.iter().any(|folder| folder == issuer.folder()))
    {
        let folder = issuer.folder().to_owned();
        let replaced = job.previous.as_ref().filter(|previous| previous.folder == folder);
        let order = CertificateOrder {
            name: job.wanted.name.clone(),
            key_type: job.wanted.key_type,
            replaces: replaced.map(|previous| previous.loaded.chain_pem().to_owned()),
        };
        match within(ORDER_TIME_MAX, issuer.issue(&order)).await {
            Ok(pem) => return save(storage, &job.wanted, folder, pem, failures),
            Err(error) => failures.push((folder, error)),
        }
    }
    if failures.is_empty() {
        let message = "no issuer can be asked for it: name one with `tls`".to_owned();
        return Outcome::failed(String::new(), message);
    }
    Outcome::Failed(failures, None)
}

/// Verifies and stores what was issued, after these failures of other issuers.
fn save(
    storage: &dyn Storage,
    wanted: &Wanted,
    folder: String,
    pem: Pem,
    mut failures: Vec<Failure>,
) -> Outcome {
    let place = format!("the answer of {folder}");
    let loaded = Loaded::from_pem((pem.chain.as_bytes(), &place), (pem.key.as_bytes(), &place));
    let (message, unsaved) = match loaded {
        Err(error) => (error.to_string(), None),
        Ok(loaded) if !loaded.matches_name(&wanted.name) => {
            let names = loaded.names.join(", ");
            (format!("{place} is a certificate for other names ({names}): report this to the issuer"), None)
        }
        Ok(loaded) => match save_certificate(storage, &folder, &wanted.name, &pem) {
            Ok(()) => return Outcome::Obtained(Found { folder, loaded: Arc::new(loaded) }, failures),
            Err(error) => {
                let unsaved = Unsaved { folder: folder.clone(), pem, not_after: loaded.not_after };
                let message = format!(
                    "the certificate was issued, but cannot be stored, which is tried again: {error}"
                );
                (message, Some(unsaved))
            }
        },
    };
    failures.push((folder, IssueError { message, retry_after: None }));
    Outcome::Failed(failures, unsaved)
}

/// Asks an issuer for the renewal window of a certificate. If that fails, the certificate's lifetime decides.
pub(super) async fn fetch_window(issuer: &dyn Issuer, chain: &str) -> Outcome {
    Outcome::Window(within(WINDOW_TIME_MAX, issuer.renewal_window(chain)).await.unwrap_or(None))
}

/// Asks whether a certificate may be obtained for a name that a handshake asked for.
pub(super) async fn ask(permission: &dyn Permission, name: &str) -> Outcome {
    let answer = tokio::time::timeout(PERMISSION_TIME_MAX, permission.allows(name)).await;
    let answer = answer.unwrap_or_else(|_| {
        let seconds = PERMISSION_TIME_MAX.as_secs();
        Err(format!("the `ask` endpoint did not answer within {seconds} s: check the program behind it"))
    });
    Outcome::Permission(match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(NoPermission::Refused),
        Err(reason) => Err(NoPermission::Unanswered(reason)),
    })
}

/// Polls once before a timer is made: the local authority is ready at once, on threads without a runtime too.
pub(super) async fn within<T>(
    bound: Duration,
    mut issuing: crate::issuer::Issuing<'_, T>,
) -> Result<T, IssueError> {
    let at_once =
        std::future::poll_fn(|context| std::task::Poll::Ready(issuing.as_mut().poll(context))).await;
    if let std::task::Poll::Ready(result) = at_once {
        return result;
    }
    tokio::time::timeout(bound, issuing).await.unwrap_or_else(|_| {
        let message = format!("the issuer did not answer within {} seconds", bound.as_secs());
        Err(IssueError { message, retry_after: None })
    })
}
