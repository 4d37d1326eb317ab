//! What of an answer is compared: its status, its body, its fields.
//!
//! Pure: knows answers and no connection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;

use onehop_load::client::{BODY_BYTES_MAX, RequestError, Response};

/// Fields that are each server's own, or follow from the connection.
const IGNORED: [&str; 9] = [
    "date",
    "server",
    "via",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "proxy-connection",
];

/// Differences of one question that are told.
const DIFFERENCES_MAX: usize = 8;
/// Letters of a value that are shown.
const SHOWN_LETTERS: usize = 100;

/// An answer as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// A whole one.
    Response { status: u16, body: Body, fields: BTreeMap<String, String> },
    /// None, and why.
    Nothing(String),
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// As it is without a coding.
    Plain(Vec<u8>),
    /// It does not decode, or its coding is not known.
    Undecodable(String),
}

/// What can differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aspect {
    /// Whether there is an answer.
    Outcome,
    /// Its status.
    Status,
    /// Its body.
    Body,
    /// A field, by its name in small letters.
    Field(String),
}

/// What differs between two stacks.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Each with its words.
    pub(super) differing: Vec<(Aspect, String)>,
    /// What differs between answers of one stack, in both.
    pub(super) changing: Vec<Aspect>,
}

/// Compares the answers of two stacks to one question, each given several times.
pub(super) fn differences(seen: &[Vec<Seen>; 2], names: [&str; 2]) -> Found {
    let mut found = Found::default();
    let [left, right] = seen;
    let (Some(first), Some(second)) = (left.last(), right.last()) else { return found };
    for aspect in aspects(seen) {
        let changes =
            |side: &Vec<Seen>| side.windows(2).any(|pair| matches!(pair, [a, b] if a.differs(b, &aspect)));
        match (changes(left), changes(right)) {
            (true, true) => found.changing.push(aspect),
            (true, false) | (false, true) => {
                let (changing, steady) =
                    if changes(left) { (names[0], names[1]) } else { (names[1], names[0]) };
                let words = format!(
                    "{aspect} changes from one answer to the next with {changing}, not with {steady}"
                );
                found.differing.push((aspect, words));
            }
            (false, false) if first.differs(second, &aspect) => {
                let words = words(&aspect, [first, second], names);
                found.differing.push((aspect, words));
            }
            (false, false) => {}
        }
    }
    let more = found.differing.len().saturating_sub(DIFFERENCES_MAX);
    found.differing.truncate(DIFFERENCES_MAX);
    if more > 0
        && let Some((_, words)) = found.differing.last_mut()
    {
        words.push_str(&format!("; and {more} more"));
    }
    found
}

/// All that any of them has, in the order of their weight.
fn aspects(seen: &[Vec<Seen>; 2]) -> Vec<Aspect> {
    let mut aspects = vec![Aspect::Outcome, Aspect::Status, Aspect::Body];
    let fields = seen.iter().flatten().flat_map(Seen::names);
    aspects.extend(fields.map(|name| Aspect::Field(name.clone())));
    aspects.sort();
    aspects.dedup();
    aspects
}

impl Seen {
    /// What came of asking there.
    pub(super) fn new(response: Result<Response, RequestError>, address: SocketAddr) -> Seen {
        let response = match response {
            Ok(response) => response,
            Err(error) => return Seen::Nothing(error.to_string()),
        };
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &response.fields {
            let name = name.to_ascii_lowercase();
            // A 304 need not repeat what the client has (RFC 9110 section 15.4.5).
            let is_repeated = response.status == 304 && name == "last-modified";
            if IGNORED.contains(&name.as_str()) || is_repeated {
                continue;
            }
            let Some(value) = compared(&name, value, address) else { continue };
            fields.entry(name).and_modify(|known| *known = format!("{known}, {value}")).or_insert(value);
        }
        let coding = response.field("content-encoding").map(str::to_ascii_lowercase);
        Seen::Response { status: response.status, body: decode(response.body, coding.as_deref()), fields }
    }

    /// The same without its body and the type of it.
    pub(super) fn without_text(mut self) -> Seen {
        if let Seen::Response { body, fields, .. } = &mut self {
            *body = Body::Plain(Vec::new());
            fields.remove("content-type");
        }
        self
    }

    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Seen::Response { status, .. } => Some(*status),
            Seen::Nothing(_) => None,
        }
    }

    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Seen::Response { body: Body::Plain(bytes), .. } => bytes.len(),
            _ => 0,
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        let fields = match self {
            Seen::Response { fields, .. } => Some(fields),
            Seen::Nothing(_) => None,
        };
        fields.into_iter().flat_map(BTreeMap::keys)
    }

    fn field(&self, name: &str) -> Option<&str> {
        match self {
            Seen::Response { fields, .. } => fields.get(name).map(String::as_str),
            Seen::Nothing(_) => None,
        }
    }

    /// Without an answer there is nothing else to compare.
    fn differs(&self, other: &Seen, aspect: &Aspect) -> bool {
        match (self, other) {
            (Seen::Nothing(_), Seen::Nothing(_)) => false,
            (Seen::Nothing(_), _) | (_, Seen::Nothing(_)) => *aspect == Aspect::Outcome,
            (Seen::Response { body, .. }, Seen::Response { body: other_body, .. }) => match aspect {
                Aspect::Outcome => false,
                Aspect::Status => self.status() != other.status(),
                Aspect::Body => body != other_body,
                Aspect::Field(name) => self.field(name) != other.field(name),
            },
        }
    }
}

impl Aspect {
    /// Whether a difference in it means that figures would compare different things.
    pub(super) fn is_weighty(&self) -> bool {
        !matches!(self, Aspect::Field(_))
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aspect::Outcome => formatter.write_str("whether an answer comes"),
            Aspect::Status => formatter.write_str("the status"),
            Aspect::Body => formatter.write_str("the body"),
            Aspect::Field(name) => formatter.write_str(name),
        }
    }
}

/// Whether it is the page that nginx writes by itself, which says little but its name.
pub(super) fn is_own_error_page(response: &Response) -> bool {
    const MARK: &[u8] = b"<hr><center>nginx";
    response.status >= 400 && response.body.windows(MARK.len()).any(|part| part == MARK)
}

/// What of a field's value is compared.
fn compared(name: &str, value: &str, address: SocketAddr) -> Option<String> {
    Some(match name {
        // Files' are made of what the server likes (time and length, or the content).
        "etag" => "present".to_owned(),
        "set-cookie" => cookie(value),
        "location" => {
            let port = address.port();
            let mut value = value.to_owned();
            for host in ["localhost", "127.0.0.1", "[::1]"] {
                value = value.replace(&format!("//{host}:{port}"), "//HOST");
                if let Some(rest) = value.strip_prefix(&format!("http://{host}")) {
                    value = format!("http://HOST{rest}");
                }
            }
            value
        }
        "vary" => {
            let mut names: Vec<String> =
                value.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
            // Both say how a cache may keep an answer, and nothing of the answer: onehop names Accept where a navigation
            // gets another answer than a script.
            names.retain(|name| !matches!(name.as_str(), "" | "accept" | "accept-encoding"));
            names.sort();
            if names.is_empty() {
                return None;
            }
            names.join(", ")
        }
        // RFC 9110 section 8.3.1: type, subtype and charset do not depend on case.
        // Text is UTF-8 to nearly everybody whether an answer says so or not: it is no other content.
        "content-type" => {
            let value = value.to_ascii_lowercase().replace("; ", ";");
            let is_text = value.starts_with("text/") || value.starts_with("application/json");
            let charset = value.strip_suffix(";charset=utf-8").or(value.strip_suffix(";charset=\"utf-8\""));
            charset.filter(|_| is_text).unwrap_or(&value).to_owned()
        }
        _ => value.to_owned(),
    })
}

/// A cookie's name and attributes. Its value is new with each session, and so is the time at which it ends.
fn cookie(value: &str) -> String {
    let mut parts = value.split(';').map(str::trim);
    let name = parts.next().and_then(|pair| pair.split('=').next()).unwrap_or_default().trim().to_owned();
    // RFC 6265 section 5.2: names of attributes do not depend on case, and their order says nothing.
    let mut attributes: Vec<String> = parts
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once('=') {
            Some((name, _)) if name.trim().eq_ignore_ascii_case("expires") => "expires".to_owned(),
            Some((name, value)) => format!("{}={}", name.trim().to_ascii_lowercase(), value.trim()),
            None => part.to_ascii_lowercase(),
        })
        .collect();
    attributes.sort();
    std::iter::once(name).chain(attributes).collect::<Vec<_>>().join("; ")
}

/// The body without its coding.
fn decode(body: Vec<u8>, coding: Option<&str>) -> Body {
    // An answer to HEAD and a 304 name a coding and have no body.
    let coding = coding.filter(|coding| *coding != "identity" && !body.is_empty());
    let mut plain = Vec::new();
    let limit = BODY_BYTES_MAX as u64 + 1;
    let result = match coding {
        None => return Body::Plain(body),
        Some("gzip" | "x-gzip") => {
            flate2::read::MultiGzDecoder::new(&body[..]).take(limit).read_to_end(&mut plain)
        }
        Some("br") => brotli::Decompressor::new(&body[..], 4096).take(limit).read_to_end(&mut plain),
        Some(other) => return Body::Undecodable(format!("is coded in `{other}`, which was not asked for")),
    };
    match result {
        Ok(_) if plain.len() > BODY_BYTES_MAX => Body::Undecodable("is too long to be looked at".to_owned()),
        Ok(_) => Body::Plain(plain),
        Err(error) => Body::Undecodable(format!("does not decode: {error}")),
    }
}

fn words(aspect: &Aspect, seen: [&Seen; 2], names: [&str; 2]) -> String {
    let [first, second] = seen;
    let both = |left: Cow<'_, str>, right: Cow<'_, str>| {
        format!("{left} with {}, {right} with {}", names[0], names[1])
    };
    match aspect {
        Aspect::Outcome => {
            let outcome = |seen: &Seen| match seen {
                Seen::Nothing(why) => format!("no answer ({why})"),
                Seen::Response { status, .. } => format!("an answer ({status})"),
            };
            both(outcome(first).into(), outcome(second).into())
        }
        Aspect::Status => {
            let status = |seen: &Seen| seen.status().unwrap_or_default().to_string();
            format!("status: {}", both(status(first).into(), status(second).into()))
        }
        Aspect::Body => format!("body: {}", body_words(first, second, names)),
        Aspect::Field(name) => {
            let value = |seen: &Seen| match seen.field(name) {
                Some(value) => format!("`{}`", shown(value)),
                None => "not there".to_owned(),
            };
            format!("{name}: {}", both(value(first).into(), value(second).into()))
        }
    }
}

fn body_words(first: &Seen, second: &Seen, names: [&str; 2]) -> String {
    let body = |seen: &Seen| match seen {
        Seen::Response { body, .. } => body.clone(),
        Seen::Nothing(_) => Body::Plain(Vec::new()),
    };
    match (body(first), body(second)) {
        (Body::Plain(left), Body::Plain(right)) => {
            let alike = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            let (one, other, [name, other_name]) = (left.len(), right.len(), names);
            let excerpt = |bytes: &[u8]| {
                let from = alike.saturating_sub(8);
                let part = bytes.get(from..bytes.len().min(alike + 24)).unwrap_or_default();
                shown(&String::from_utf8_lossy(part).escape_debug().to_string())
            };
            format!(
                "{one} bytes with {name}, {other} with {other_name}, alike up to byte {alike}: `{}` and `{}`",
                excerpt(&left),
                excerpt(&right)
            )
        }
        (Body::Undecodable(why), _) => format!("{}: it {why}", names[0]),
        (_, Body::Undecodable(why)) => format!("{}: it {why}", names[1]),
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_LETTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
