//! Heads of requests to servers, as the `http` crate has them, and of their responses, in the form of HTTP/1.1.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version};
use onehop_http1::{AskHead, BodyLength, Refusal, reason};

use crate::head::{fields_of, write_fields};

/// What a server adds to the key of a WebSocket (RFC 6455 section 1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Of a request for a WebSocket these are HTTP/1's (RFC 8441 section 5).
const WEBSOCKET_KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
/// An authority where the request names no host.
const NO_HOST: &str = "localhost";

/// The key of a request for a WebSocket; `None` for other upgrades, which a proxy may ignore (RFC 9110 section 7.8).
pub(super) fn websocket_key(lines: &[u8]) -> Option<Vec<u8>> {
    let fields = all_fields(lines);
    let is_websocket = fields.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(b"upgrade") && value.eq_ignore_ascii_case(b"websocket")
    });
    let key = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"sec-websocket-key"));
    is_websocket.then(|| key.map(|(_, value)| value.to_vec()).unwrap_or_default())
}

fn all_fields(lines: &[u8]) -> Vec<(&[u8], &[u8])> {
    let lines = lines.split(|byte| *byte == b'\n');
    let fields = lines.filter_map(|line| {
        let (name, value) = line.split_at_checked(line.iter().position(|byte| *byte == b':')?)?;
        Some((name, value.get(1..)?.trim_ascii()))
    });
    fields.collect()
}

/// What the client of a WebSocket expects for its key (RFC 6455 section 4.2.2).
pub(super) fn websocket_accept(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WEBSOCKET_GUID].concat()))
}

/// The head of a request.
///
/// # Errors
/// What HTTP/2 has no form for.
pub(super) fn request(
    ask: &AskHead<'_>,
    is_encrypted: bool,
    is_websocket: bool,
) -> Result<Request<()>, Refusal> {
    let mut fields = fields_of(ask.fields);
    let host = fields.remove(HOST);
    let host = host.as_ref().map(HeaderValue::as_bytes).filter(|host| !host.is_empty());
    let authority = Authority::try_from(host.unwrap_or(NO_HOST.as_bytes())).map_err(|_| Refusal::BadHost)?;
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(if is_encrypted { Scheme::HTTPS } else { Scheme::HTTP });
    uri.authority = Some(authority);
    uri.path_and_query = Some(path(ask.target).ok_or(Refusal::BadTarget)?);
    if let BodyLength::Known(length) = ask.body {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if ask.trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    let mut request = Request::new(());
    if is_websocket {
        fields.remove(WEBSOCKET_KEY);
        *request.method_mut() = Method::CONNECT;
        request.extensions_mut().insert(Protocol::from_static("websocket"));
    } else {
        *request.method_mut() = Method::from_bytes(ask.method).map_err(|_| Refusal::BadMethod)?;
    }
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = Uri::from_parts(uri).map_err(|_| Refusal::BadTarget)?;
    *request.headers_mut() = fields;
    Ok(request)
}

/// The path and query of a target. Bytes that `http` does not take in one, and HTTP/1 does, are sent percent-encoded.
fn path(target: &[u8]) -> Option<PathAndQuery> {
    if let Ok(path) = PathAndQuery::try_from(target) {
        return Some(path);
    }
    let mut encoded = Vec::with_capacity(target.len() + 16);
    for byte in target {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%[]".contains(byte);
        if is_plain {
            encoded.push(*byte);
        } else {
            encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    PathAndQuery::from_maybe_shared(Bytes::from(encoded)).ok()
}

/// The head of a response in the form of HTTP/1.1. `accept`: it opens a WebSocket, for which HTTP/1.1 has 101.
pub(super) fn response_text(response: &Response<()>, accept: Option<&str>) -> Vec<u8> {
    let status = if accept.is_some() { 101 } else { response.status().as_u16() };
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(format!("HTTP/1.1 {status} ").as_bytes());
    text.extend_from_slice(reason(status).unwrap_or_default().as_bytes());
    text.extend_from_slice(b"\r\n");
    write_fields(response.headers(), &mut text);
    if let Some(accept) = accept {
        text.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ");
        text.extend_from_slice(accept.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask<'a>(target: &'a [u8], fields: &'a [u8]) -> AskHead<'a> {
        AskHead { method: b"GET", target, fields, body: BodyLength::None, upgrade: false, trailers: true }
    }

    #[test]
    fn a_request_has_its_host_as_authority_and_no_fields_of_a_connection() {
        let fields = b"Host: a.test:81\r\nX-One: 1\r\nConnection: close\r\nTE: gzip\r\n";
        let request = request(&ask(b"/x?y", fields), false, false).expect("a request");
        assert_eq!(request.uri().to_string(), "http://a.test:81/x?y");
        let mut lines = Vec::new();
        write_fields(request.headers(), &mut lines);
        assert_eq!(String::from_utf8(lines).expect("text"), "x-one: 1\r\nte: trailers\r\n");
    }

    #[test]
    fn a_target_that_only_http_1_has_is_percent_encoded() {
        for (target, path) in [
            (&b"/a%20b?c=d"[..], "/a%20b?c=d"),
            (b"/<a>", "/%3Ca%3E"),
            (b"/a\\b`c", "/a%5Cb%60c"),
            (b"*", "*"),
            (b"/a?b=<c>", "/a?b=%3Cc%3E"),
        ] {
            let request = request(&ask(target, b"Host: a\r\n"), true, false).expect("a request");
            assert_eq!(request.uri().path_and_query().map(PathAndQuery::as_str), Some(path));
        }
    }

    #[test]
    fn the_accept_of_a_websocket_is_that_of_the_rfc() {
        assert_eq!(websocket_accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
