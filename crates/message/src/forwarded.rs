//! Writes the parts of a forwarded request's head that are the same for applications and upstreams: the target, and who
//! the client is.
//!
//! Decides about no field of the client's: that is [`crate::forwarding`].

use std::io::Write;
use std::net::IpAddr;

use onehop_http1::RequestHead;

use crate::forwarding;
use crate::origin::Origin;
use crate::path::RequestPath;
use crate::trusted_proxies::Trust;

/// The name, lower case.
pub const FORWARDED_FOR: &[u8] = b"x-forwarded-for";

/// Who the client is by its certificate (RFC 9440 section 2.2).
pub const CLIENT_CERTIFICATE: &[u8] = b"Client-Cert";

/// Writes the request-target.
pub fn write_target(path: &RequestPath<'_>, query: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(path.sent());
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// Whom a trusted proxy saw, and whom onehop sees: one line, since not everybody reads several as a list.
pub fn write_forwarded_for(head: &RequestHead, origin: &Origin, trust: Trust<'_>, out: &mut Vec<u8>) {
    let before = out.len();
    let separate = |out: &mut Vec<u8>| {
        let separator: &[u8] = if out.len() == before { b"X-Forwarded-For: " } else { b", " };
        out.extend_from_slice(separator);
    };
    if trust.keeps_fields() {
        for value in forwarding::forwarded(head, FORWARDED_FOR).filter(|value| !value.is_empty()) {
            separate(out);
            out.extend_from_slice(value);
        }
    }
    if let Some(peer) = origin.peer {
        separate(out);
        write_address(forwarding::canonical(peer).ip(), out);
    }
    if out.len() > before {
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the certificate of a client that was verified.
pub fn write_client_certificate(origin: &Origin, out: &mut Vec<u8>) {
    if let Some(client) = origin.verified_client() {
        write_line(out, CLIENT_CERTIFICATE, client.field_value.as_bytes());
    }
}

/// Writes an address as text. Those of IPv4 without the machinery of formatting, which takes as long as the rest of a
/// head.
fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    let IpAddr::V4(address) = address else {
        // Writing to memory does not fail.
        let _ = write!(out, "{address}");
        return;
    };
    for (number, octet) in address.octets().into_iter().enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let leading = digits.iter().take(2).take_while(|digit| **digit == 0).count();
        out.extend(digits.iter().skip(leading).map(|digit| b'0' + digit));
    }
}

/// Writes a field line.
pub fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_everybody_writes_them() {
        for text in ["0.0.0.0", "127.0.0.1", "10.20.30.200", "255.9.99.100", "2001:db8::1", "::"] {
            let mut out = Vec::new();
            write_address(text.parse().unwrap(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
