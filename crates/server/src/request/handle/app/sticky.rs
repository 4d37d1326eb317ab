//! `sticky`: which worker a request should go to, because others that belong together went there.
//!
//! Names seats and never workers, so that who replaces a worker is found by what its predecessor gave out. Reads
//! the client's bytes and decides nothing about places: that is [`super::pool`].

mod values;

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Instant;

use onehop_config::checked::Sticky;
use onehop_http1::Known;
use onehop_message::trusted_proxies::Trust;

use super::pool::{Seat, Wish};
use crate::limits::{STICKY_ANSWER_BYTES_MAX, STICKY_VALUE_BYTES_MAX, WORKERS_MAX};
use crate::request::context::RequestContext;
use values::Values;

/// How requests of one application stay together.
pub(crate) enum Stickiness {
    Cookie(Cookie),
    Query(Query),
    ClientAddress,
}

/// A cookie that the server gives out.
pub(crate) struct Cookie {
    name: String,
    /// What stands for each seat: hard to guess, and another for each application and process.
    values: Vec<String>,
}

/// A parameter that the application gives out, or the client.
pub(crate) struct Query {
    name: String,
    /// What an answer has before a value: `"sid":"`.
    before: Vec<u8>,
    /// Where values belong that the application has given out.
    known: Values,
}

/// What a request says about the worker that it should go to.
pub(crate) struct Said {
    pub(crate) wish: Wish,
    /// The answer may tell something that later requests come with.
    pub(crate) asks_answer: bool,
}

impl Said {
    /// Nothing, and nothing is to be learned.
    pub(crate) const NOTHING: Self = Self { wish: Wish::Any, asks_answer: false };
}

impl Stickiness {
    /// As the settings say; `app` is whose values these are.
    pub(crate) fn new(sticky: &Sticky, app: &str) -> Self {
        match sticky {
            Sticky::Cookie(name) => {
                let values = (0..WORKERS_MAX).map(|seat| secret_value(app, name, seat)).collect();
                Self::Cookie(Cookie { name: name.clone(), values })
            }
            Sticky::Query(name) => {
                let before = format!("\"{name}\":\"").into_bytes();
                Self::Query(Query { name: name.clone(), before, known: Values::default() })
            }
            Sticky::ClientAddress => Self::ClientAddress,
        }
    }

    /// What this request says, to an application with so many seats.
    pub(crate) fn read(&self, context: &RequestContext<'_>, trust: Trust<'_>, seats: usize) -> Said {
        if seats < 2 {
            return Said::NOTHING;
        }
        match self {
            Self::Cookie(cookie) => {
                let fields = context.request.head.get_all(Known::Cookie);
                let seat_of = |value: &[u8]| {
                    cookie.values.iter().take(seats).position(|known| known.as_bytes() == value)
                };
                let mut values = fields.flat_map(|field| cookie_values(field, &cookie.name));
                match values.find_map(seat_of) {
                    Some(seat) => Said { wish: Wish::Seat(Seat(seat)), asks_answer: false },
                    None => Said { wish: Wish::Any, asks_answer: true },
                }
            }
            Self::Query(query) => {
                match parameter(context.request.query.as_deref().unwrap_or_default(), &query.name) {
                    Some(value) => Said { wish: query.wish(&decoded(value), seats), asks_answer: false },
                    None => Said { wish: Wish::Any, asks_answer: true },
                }
            }
            Self::ClientAddress => {
                let wish = trust
                    .client(context.request.head, &context.request.origin)
                    .map(|client| Wish::Hash(hash(&network(client))));
                Said { wish: wish.unwrap_or(Wish::Any), asks_answer: false }
            }
        }
    }

    /// The value of the field `Set-Cookie` for an answer from this seat, where the request had no cookie that is of
    /// use.
    pub(crate) fn set_cookie(&self, seat: Seat, is_encrypted: bool) -> Option<Vec<u8>> {
        let Self::Cookie(cookie) = self else { return None };
        let value = cookie.values.get(seat.0)?;
        let secure = if is_encrypted { "; Secure" } else { "" };
        Some(format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}", cookie.name).into_bytes())
    }

    /// Remembers the value that an answer gives out in the beginning of its body.
    pub(crate) fn learn(&self, seat: Seat, body: &[u8], seats: usize) {
        let Self::Query(query) = self else { return };
        let beginning = body.get(..STICKY_ANSWER_BYTES_MAX).unwrap_or(body);
        let width = query.before.len();
        let found = beginning.windows(width).position(|window| window == query.before);
        let Some(value) = found.and_then(|at| beginning.get(at + width..)) else { return };
        let Some(end) = value.iter().position(|byte| *byte == b'"') else { return };
        let value = value.get(..end).unwrap_or_default();
        // An escape would have to be read as JSON; whoever gives out what has to come back in a URI has none.
        if !value.is_empty() && value.len() <= STICKY_VALUE_BYTES_MAX && !value.contains(&b'\\') {
            query.known.learn(keys(value), seat, seats, Instant::now());
        }
    }
}

impl Query {
    fn wish(&self, value: &[u8], seats: usize) -> Wish {
        let known = self.known.find(keys(value), Instant::now()).filter(|seat| seat.0 < seats);
        // What the client has chosen itself belongs to the same worker every time, too.
        known.map_or_else(|| Wish::Hash(hash(value)), Wish::Seat)
    }
}

/// The values of a cookie of this name in one `Cookie` field (RFC 6265 section 5.4).
fn cookie_values<'f>(field: &'f [u8], name: &str) -> impl Iterator<Item = &'f [u8]> {
    field
        .split(|byte| *byte == b';')
        .filter_map(move |pair| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The first value of this name in a query, as it stands there. An empty one is none.
fn parameter<'q>(query: &'q [u8], name: &str) -> Option<&'q [u8]> {
    let pairs = query.split(|byte| *byte == b'&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.find(|value| !value.is_empty())
}

/// Without escapes (RFC 3986 section 2.1; `+` as forms and URLSearchParams write a space), as an application reads it.
fn decoded(value: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !value.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return value.into();
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        let byte = after.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            u8::from_str_radix(digits, 16).ok()
        });
        let plain = if *first == b'+' { b' ' } else { *first };
        out.push(byte.unwrap_or(plain));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    out.into()
}

/// Whose address it is: of IPv6 a subscriber has 64 bits for himself, and changes them (RFC 8981).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Keyed: nobody can choose values that fall together.
fn hash(value: &(impl std::hash::Hash + ?Sized)) -> u64 {
    secrets()[0].hash_one(value)
}

/// What a value is remembered as: of one size, however long it is.
fn keys(value: &[u8]) -> [u64; 2] {
    secrets().each_ref().map(|secret| secret.hash_one(value))
}

/// 128 bits of a keyed hash (SipHash), in which nobody finds the seat or the value of another application.
fn secret_value(app: &str, name: &str, seat: usize) -> String {
    let [high, low] = secrets().each_ref().map(|secret| secret.hash_one((app, name, seat)));
    format!("{high:016x}{low:016x}")
}

/// Chosen anew by each process, and the same for all of its applications: a reload leaves cookies as they are.
fn secrets() -> &'static [RandomState; 2] {
    static SECRETS: OnceLock<[RandomState; 2]> = OnceLock::new();
    SECRETS.get_or_init(|| [RandomState::new(), RandomState::new()])
}

#[cfg(test)]
mod tests;
