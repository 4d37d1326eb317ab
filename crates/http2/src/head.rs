//! Heads: requests in the form of HTTP/1.1, responses as the `http` crate has them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use onehop_http1::Refusal;

/// Fields that belong to a connection of HTTP/1 and must not be sent (RFC 9113 section 8.2.2).
const CONNECTION_FIELDS: [&str; 6] =
    ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/// What is asked for by an extended CONNECT (RFC 8441): the protocol that HTTP/1.1 upgrades to.
pub fn upgrade_of(parts: &Parts) -> Option<&str> {
    parts.extensions.get::<Protocol>().map(Protocol::as_str)
}

/// Appends the head of a request in the form of HTTP/1.1.
///
/// # Errors
/// What cannot be said in that form.
pub fn write_request(parts: &Parts, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let upgrade = upgrade_of(parts);
    let method = if upgrade.is_some() { &Method::GET } else { &parts.method };
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let has_host = parts.headers.contains_key(HOST);
    match (authority, parts.uri.path_and_query()) {
        (Some(authority), None) => out.extend_from_slice(authority),
        (_, None) => return Err(Refusal::BadTarget),
        (authority, Some(path)) => {
            // Both name a host: the reader compares them (RFC 9113 section 8.3.1).
            if path == "*"
                && has_host
                && authority.is_some_and(|authority| !is_host(&parts.headers, authority))
            {
                return Err(Refusal::HostDisagrees);
            }
            if let Some(authority) = authority.filter(|_| has_host && path != "*") {
                let scheme = parts.uri.scheme_str().unwrap_or("http");
                [scheme.as_bytes(), b"://", authority].iter().for_each(|piece| out.extend_from_slice(piece));
            }
            out.extend_from_slice(path.as_str().as_bytes());
        }
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority.filter(|_| !has_host) {
        write_line(out, b"host", authority);
    }
    if let Some(protocol) = upgrade {
        if protocol != "websocket" {
            return Err(Refusal::BadTarget);
        }
        out.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n");
        if !parts.headers.contains_key("sec-websocket-key") {
            // RFC 6455 section 4.1; RFC 8441 section 5 has none, and the answer to it stays here.
            let key = STANDARD.encode(fastrand::u128(..).to_be_bytes());
            write_line(out, b"sec-websocket-key", key.as_bytes());
        }
    }
    for (name, value) in &parts.headers {
        let value = value.as_bytes();
        // RFC 9113 section 8.2.1: HTTP/1 would read the value without it.
        if value.first().or(value.last()).is_some_and(|byte| matches!(byte, b' ' | b'\t'))
            || matches!(value.last(), Some(b' ' | b'\t'))
        {
            return Err(Refusal::BadFieldValue);
        }
        if name != COOKIE {
            write_line(out, name.as_str().as_bytes(), value);
        }
    }
    write_cookies(&parts.headers, out);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn is_host(fields: &HeaderMap, authority: &[u8]) -> bool {
    fields.get_all(HOST).iter().all(|host| host.as_bytes().eq_ignore_ascii_case(authority))
}

/// RFC 9113 section 8.2.3: the pieces of a cookie are one field for others.
fn write_cookies(fields: &HeaderMap, out: &mut Vec<u8>) {
    let mut before: &[u8] = b"cookie: ";
    for cookie in fields.get_all(COOKIE) {
        out.extend_from_slice(before);
        out.extend_from_slice(cookie.as_bytes());
        before = b"; ";
    }
    if before == b"; " {
        out.extend_from_slice(b"\r\n");
    }
}

fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    [name, b": ", value, b"\r\n"].iter().for_each(|piece| out.extend_from_slice(piece));
}

/// The fields of whole lines, without those that belong to a connection. One allocation for all values.
pub fn fields_of(lines: &[u8]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    add_lines(&Bytes::copy_from_slice(lines), &mut fields);
    fields
}

fn add_lines(lines: &Bytes, fields: &mut HeaderMap) {
    let mut at = 0;
    while let Some(rest) = lines.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or_default();
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at_checked(colon).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if let Ok(name) = HeaderName::from_bytes(name)
            && !CONNECTION_FIELDS.contains(&name.as_str())
            && let Ok(value) = HeaderValue::from_maybe_shared(lines.slice_ref(value))
        {
            fields.append(name, value);
        }
        at += length;
    }
}

/// The head of a response from whole field lines.
pub fn response(status: u16, date: &[u8], lines: &[u8], length: Option<u64>) -> http::Response<()> {
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut shared = Vec::with_capacity(date.len() + lines.len());
    shared.extend_from_slice(date);
    shared.extend_from_slice(lines);
    let fields = response.headers_mut();
    fields.reserve(8);
    add_lines(&Bytes::from(shared), fields);
    if let Some(length) = length {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Appends fields as whole lines.
pub fn write_fields(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        write_line(out, name.as_str().as_bytes(), value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: http::request::Builder) -> Result<String, Refusal> {
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let mut out = Vec::new();
        write_request(&parts, &mut out).map(|()| String::from_utf8(out).expect("text"))
    }

    fn get(uri: &str) -> http::request::Builder {
        http::Request::builder().uri(uri)
    }

    #[test]
    fn a_request_has_the_form_of_http_1() {
        let request = get("https://a.test/x?y=1").header("accept", "*/*").header("cookie", "a=1");
        let written = text(request.header("x", "1").header("cookie", "b=2")).expect("a request");
        assert_eq!(
            written,
            "GET /x?y=1 HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\nx: 1\r\ncookie: a=1; b=2\r\n\r\n"
        );
    }

    #[test]
    fn two_names_of_a_host_are_left_to_the_reader() {
        let written = text(get("https://a.test/x").header("host", "b.test")).expect("a request");
        assert_eq!(written, "GET https://a.test/x HTTP/1.1\r\nhost: b.test\r\n\r\n");
    }

    #[test]
    fn an_extended_connect_is_an_upgrade() {
        let mut request = get("https://a.test/chat").method("CONNECT").body(()).expect("a request");
        request.extensions_mut().insert(Protocol::from_static("websocket"));
        let (parts, ()) = request.into_parts();
        let mut out = Vec::new();
        write_request(&parts, &mut out).expect("a request");
        let written = String::from_utf8(out).expect("text");
        let start = "GET /chat HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-key: ";
        assert!(written.starts_with(start), "{written}");
    }

    #[test]
    fn white_space_around_a_value_is_refused() {
        for value in [" x", "x ", "\tx"] {
            assert_eq!(text(get("http://a/").header("x", value)), Err(Refusal::BadFieldValue), "{value:?}");
        }
    }

    #[test]
    fn a_response_has_no_fields_of_a_connection() {
        let lines =
            b"Content-Type: a\r\nConnection: x\r\nTransfer-Encoding: chunked\r\nX-Two: 1\r\nx-two:2\r\n";
        let response = response(200, b"Date: now\r\n", lines, Some(3));
        let mut out = Vec::new();
        write_fields(response.headers(), &mut out);
        let written = String::from_utf8(out).expect("text");
        assert_eq!(written, "date: now\r\ncontent-type: a\r\nx-two: 1\r\nx-two: 2\r\ncontent-length: 3\r\n");
    }
}
