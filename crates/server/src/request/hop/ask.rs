//! The parts of a request's head that everybody writes the same way.
//!
//! The URI as the routes have made it; who the client is, as this server sees it. Writes lines and decides about no
//! field of the client's: that is [`super::fields`].

use std::io::Write;

use super::fields;
use super::trust::Trust;
use crate::request::trip::Trip;

/// The name, lower case.
pub(crate) const FORWARDED_FOR: &[u8] = b"x-forwarded-for";

/// Writes the request-target.
pub(crate) fn write_target(trip: &Trip<'_>, out: &mut Vec<u8>) {
    // What the routes have left of a path may begin anywhere; a target may not (RFC 9112 section 3.2).
    if !trip.path.starts_with(b"/") && *trip.path != b"*"[..] {
        out.push(b'/');
    }
    out.extend_from_slice(&trip.path);
    if let Some(query) = trip.query.as_deref() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// Whom a trusted proxy saw, and whom onehop sees: one line, since not everybody reads several as a list.
pub(crate) fn write_forwarded_for(trip: &Trip<'_>, trust: Trust<'_>, out: &mut Vec<u8>) {
    let before = out.len();
    let separate = |out: &mut Vec<u8>| {
        let separator: &[u8] = if out.len() == before { b"X-Forwarded-For: " } else { b", " };
        out.extend_from_slice(separator);
    };
    if trust.keeps_fields() {
        for value in fields::forwarded(trip.head, FORWARDED_FOR).filter(|value| !value.is_empty()) {
            separate(out);
            out.extend_from_slice(value);
        }
    }
    if let Some(peer) = trip.origin.peer {
        separate(out);
        // Writing to memory does not fail.
        let _ = write!(out, "{}", fields::canonical(peer).ip());
    }
    if out.len() > before {
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes a field line.
pub(crate) fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
