//! Checks passwords against their bcrypt hashes, on one thread for the whole process.
//!
//! A hash is made to be slow: a tenth of a second to a second for each guess. So a flood of guesses takes one core at most. A user and
//! password that were right are not checked again: a keyed digest of user, password and hash is remembered.

use std::collections::HashSet;
use std::fmt;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use onehop_message::error::HttpError;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::{PASSWORD_CHECK_DEADLINE, PASSWORD_CHECKS_WAITING_MAX, PASSWORDS_REMEMBERED_MAX};

/// The process has one, whatever it serves.
static PASSWORDS: LazyLock<Passwords> = LazyLock::new(Passwords::new);

type Digest = [u8; 32];

/// What is known, and the way to the thread that finds out the rest.
struct Passwords {
    /// `None`: the system has no random numbers, and nothing is remembered.
    key: Option<hmac::Key>,
    right: Mutex<HashSet<Digest>>,
    /// `None`: the thread could not be started, and every check fails with 503.
    jobs: Option<SyncSender<Job>>,
}

struct Job {
    password: Vec<u8>,
    hash: Arc<str>,
    digest: Option<Digest>,
    reply: oneshot::Sender<bool>,
}

/// A password that was said to be a user's.
pub(crate) struct PasswordCheck {
    user: String,
    password: Vec<u8>,
    hash: Arc<str>,
    digest: Option<Digest>,
    /// The hash is that of the user.
    is_users: bool,
}

impl PasswordCheck {
    /// Compares with a hash; one that is not the user's (`is_users`) takes as long, and never fits.
    pub(crate) fn new(user: String, password: Vec<u8>, hash: Arc<str>, is_users: bool) -> Self {
        let digest = PASSWORDS.key.as_ref().map(|key| digest(key, &user, &password, &hash));
        Self { user, password, hash, digest, is_users }
    }

    /// Whether it was right before.
    pub(crate) fn is_known_to_be_right(&self) -> bool {
        self.is_users && self.digest.is_some_and(|digest| PASSWORDS.right().contains(&digest))
    }

    pub(crate) fn into_user(self) -> String {
        self.user
    }

    /// The user, if the password is right.
    pub(crate) async fn perform(self) -> Result<String, HttpError> {
        let Self { user, password, hash, digest, is_users } = self;
        // With the hash of another user nothing is remembered.
        let digest = digest.filter(|_| is_users);
        let (reply, replied) = oneshot::channel();
        let jobs = PASSWORDS.jobs.as_ref().ok_or(HttpError::Configured(UNAVAILABLE))?;
        let job = Job { password, hash, digest, reply };
        jobs.try_send(job).map_err(|_| HttpError::Configured(UNAVAILABLE))?;
        match timeout(PASSWORD_CHECK_DEADLINE, replied).await {
            Ok(Ok(true)) if is_users => Ok(user),
            Ok(_) => Err(HttpError::Unauthorized),
            Err(_) => Err(HttpError::Configured(UNAVAILABLE)),
        }
    }
}

/// Too many passwords wait to be checked (RFC 9110 section 15.6.4).
const UNAVAILABLE: u16 = 503;

/// Passwords are secrets.
impl fmt::Debug for PasswordCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PasswordCheck").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Passwords {
    fn new() -> Self {
        let (send, jobs) = mpsc::sync_channel::<Job>(PASSWORD_CHECKS_WAITING_MAX);
        let thread = thread::Builder::new().name("passwords".into()).spawn(move || {
            jobs.iter().for_each(|job| PASSWORDS.check(&job.password, &job.hash, job.digest, job.reply));
        });
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok();
        Self { key, right: Mutex::default(), jobs: thread.is_ok().then_some(send) }
    }

    fn check(&self, password: &[u8], hash: &str, digest: Option<Digest>, reply: oneshot::Sender<bool>) {
        // Its request has ended.
        if reply.is_closed() {
            return;
        }
        // A page asks for much at once, each with the same password.
        let is_known = digest.is_some_and(|digest| self.right().contains(&digest));
        let is_right = is_known || bcrypt::verify(password, hash).unwrap_or(false);
        if let Some(digest) = digest.filter(|_| is_right && !is_known) {
            let mut right = self.right();
            if right.len() >= PASSWORDS_REMEMBERED_MAX {
                right.clear();
            }
            right.insert(digest);
        }
        // Nobody waits any more.
        let _ = reply.send(is_right);
    }

    fn right(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each part with its length before it, so that no two have the same bytes.
fn digest(key: &hmac::Key, user: &str, password: &[u8], hash: &str) -> Digest {
    let mut context = hmac::Context::with_key(key);
    for part in [user.as_bytes(), password, hash.as_bytes()] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(context.sign().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user: &str, password: &str, hash: &Arc<str>, is_users: bool) -> PasswordCheck {
        PasswordCheck::new(user.to_owned(), password.as_bytes().to_vec(), Arc::clone(hash), is_users)
    }

    #[tokio::test]
    async fn what_was_right_is_remembered_of_that_user_alone_and_what_was_wrong_is_not() {
        let hash: Arc<str> = bcrypt::hash("secret", 4).expect("a hash").into();
        assert!(!check("bob", "secret", &hash, true).is_known_to_be_right());
        assert_eq!(check("bob", "secret", &hash, true).perform().await, Ok("bob".to_owned()));
        assert!(check("bob", "secret", &hash, true).is_known_to_be_right());
        assert!(!check("ann", "secret", &hash, true).is_known_to_be_right());
        assert!(!check("bob", "secret", &hash, false).is_known_to_be_right());
        for (password, is_users) in [("other", true), ("secret", false)] {
            let found = check("eve", password, &hash, is_users).perform().await;
            assert_eq!(found, Err(HttpError::Unauthorized), "{password}");
            assert!(!check("eve", password, &hash, is_users).is_known_to_be_right());
        }
        let other: Arc<str> = bcrypt::hash("secret", 4).expect("a hash").into();
        assert!(!check("bob", "secret", &other, true).is_known_to_be_right(), "after a new password");
    }
}
