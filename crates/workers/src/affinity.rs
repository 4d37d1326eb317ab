//! Which worker a request should go to, because others that belong together went there (`sticky`).
//!
//! Names workers by their index, so that the replacement of a worker is found by what its predecessor gave out. Reads
//! the client's bytes and takes no slots: that is [`crate::pool`].

mod values;

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Instant;

use onehop_config::checked::Sticky;
use onehop_limits::client::network;
use onehop_message::cookies;
use onehop_message::request::Request;
use onehop_message::trusted_proxies::Trust;
use onehop_message::uri::decode_query;

use crate::limits::{STICKY_ANSWER_BYTES_MAX, STICKY_VALUE_BYTES_MAX, WORKERS_MAX};
use crate::worker::WorkerIndex;
use values::Values;

/// Which worker a request should go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// The worker with the fewest requests.
    Any,
    /// The worker with this index.
    Worker(WorkerIndex),
    /// Always the same worker for the same number.
    Hash(u64),
}

/// What a request says about the worker that it should go to.
#[derive(Debug, Clone, Copy)]
pub struct RequestAffinity {
    /// The worker.
    pub affinity: Affinity,
    /// It has no value yet that names a worker: the response may give one out.
    pub is_unassigned: bool,
}

/// How requests of one application stay together.
pub enum AffinityPolicy {
    /// By a cookie that the server gives out.
    Cookie(Cookie),
    /// By a parameter of the query.
    Query(Query),
    /// By the client's network.
    ClientAddress,
}

/// A cookie that the server gives out.
pub struct Cookie {
    name: String,
    /// The value of each worker index: hard to guess, and another for each application and process.
    values: Vec<String>,
}

/// A parameter that the application gives out, or the client.
pub struct Query {
    name: String,
    /// What a response has before a value: `"sid":"`.
    before: Vec<u8>,
    /// The workers of the values that the application has given out.
    known: Values,
}

impl RequestAffinity {
    /// Any worker, and nothing is to be learned from the response.
    pub const ANY: Self = Self { affinity: Affinity::Any, is_unassigned: false };

    /// Any worker, until the response gives out a value.
    const UNASSIGNED: Self = Self { affinity: Affinity::Any, is_unassigned: true };

    fn assigned(affinity: Affinity) -> Self {
        Self { affinity, is_unassigned: false }
    }
}

impl AffinityPolicy {
    /// Makes the policy of the application `app`.
    pub fn new(sticky: &Sticky, app: &str) -> Self {
        match sticky {
            Sticky::Cookie(name) => {
                let values = (0..WORKERS_MAX).map(|index| secret_value(app, name, index)).collect();
                Self::Cookie(Cookie { name: name.clone(), values })
            }
            Sticky::Query(name) => {
                let before = format!("\"{name}\":\"").into_bytes();
                Self::Query(Query { name: name.clone(), before, known: Values::default() })
            }
            Sticky::ClientAddress => Self::ClientAddress,
        }
    }

    /// What this request says to an application with so many workers.
    pub fn of(&self, request: &Request<'_>, trust: Trust<'_>, worker_count: usize) -> RequestAffinity {
        if worker_count < 2 {
            return RequestAffinity::ANY;
        }
        match self {
            Self::Cookie(cookie) => {
                let index_of = |value: &[u8]| {
                    cookie.values.iter().take(worker_count).position(|known| known.as_bytes() == value)
                };
                match cookies::values(&request.head, &cookie.name).find_map(index_of) {
                    Some(index) => RequestAffinity::assigned(Affinity::Worker(WorkerIndex(index))),
                    None => RequestAffinity::UNASSIGNED,
                }
            }
            Self::Query(query) => {
                match parameter(request.query.as_deref().unwrap_or_default(), &query.name) {
                    Some(value) => {
                        RequestAffinity::assigned(query.affinity(&decode_query(value), worker_count))
                    }
                    None => RequestAffinity::UNASSIGNED,
                }
            }
            Self::ClientAddress => {
                let client = trust.client(&request.head, &request.origin);
                client.map_or(RequestAffinity::ANY, |client| {
                    RequestAffinity::assigned(Affinity::Hash(hash(&network(Some(client)))))
                })
            }
        }
    }

    /// The value of the field `Set-Cookie` for a response of this worker to a request that was not assigned.
    pub fn set_cookie(&self, index: WorkerIndex, is_encrypted: bool) -> Option<Vec<u8>> {
        let Self::Cookie(cookie) = self else { return None };
        let value = cookie.values.get(index.0)?;
        let secure = if is_encrypted { "; Secure" } else { "" };
        Some(format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}", cookie.name).into_bytes())
    }

    /// Remembers the value that a response gives out in the beginning of its body.
    pub fn learn(&self, index: WorkerIndex, body: &[u8], worker_count: usize) {
        let Self::Query(query) = self else { return };
        let beginning = body.get(..STICKY_ANSWER_BYTES_MAX).unwrap_or(body);
        let width = query.before.len();
        let found = beginning.windows(width).position(|window| window == query.before);
        let Some(value) = found.and_then(|at| beginning.get(at + width..)) else { return };
        let Some(end) = value.iter().position(|byte| *byte == b'"') else { return };
        let value = value.get(..end).unwrap_or_default();
        // An escape would have to be read as JSON; a value that has to come back in a URI has none.
        if !value.is_empty() && value.len() <= STICKY_VALUE_BYTES_MAX && !value.contains(&b'\\') {
            query.known.learn(keys(value), index, worker_count, Instant::now());
        }
    }
}

impl Query {
    fn affinity(&self, value: &[u8], worker_count: usize) -> Affinity {
        let known = self.known.find(keys(value), Instant::now()).filter(|index| index.0 < worker_count);
        // A value that the client has chosen itself belongs to the same worker every time, too.
        known.map_or_else(|| Affinity::Hash(hash(value)), Affinity::Worker)
    }
}

/// The first value of this name in a query, with its escapes. An empty one is none.
fn parameter<'q>(query: &'q [u8], name: &str) -> Option<&'q [u8]> {
    let pairs = query.split(|byte| *byte == b'&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.find(|value| !value.is_empty())
}

/// Keyed: no client can choose values that collide.
fn hash(value: &(impl std::hash::Hash + ?Sized)) -> u64 {
    secrets()[0].hash_one(value)
}

/// The key of a remembered value: of one size, however long the value is.
fn keys(value: &[u8]) -> [u64; 2] {
    secrets().each_ref().map(|secret| secret.hash_one(value))
}

/// 128 bits of a keyed hash (SipHash), which reveals neither the index nor the value of another application.
fn secret_value(app: &str, name: &str, index: usize) -> String {
    let [high, low] = secrets().each_ref().map(|secret| secret.hash_one((app, name, index)));
    format!("{high:016x}{low:016x}")
}

/// Chosen anew by each process, and the same for all of its applications: a reload leaves cookies as they are.
fn secrets() -> &'static [RandomState; 2] {
    static SECRETS: OnceLock<[RandomState; 2]> = OnceLock::new();
    SECRETS.get_or_init(|| [RandomState::new(), RandomState::new()])
}

/// Rendezvous hashing (Thaler and Ravishankar, 1998): the member with the highest score gets the request, so that a
/// member that comes or goes moves only its own.
pub(crate) fn rendezvous(hash: u64, member: usize) -> u64 {
    // The finalizer of SplitMix64, over both numbers.
    let mut mixed = hash ^ (member as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
