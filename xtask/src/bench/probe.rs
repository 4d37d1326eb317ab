//! One request, one answer, on a connection of its own: to see that an arm answers as it should
//! before it is measured.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Outcome;

/// A server that takes longer for one small file has hung.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// An answer, whole.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// Status code.
    pub(crate) status: u16,
    /// Status line and header fields, with the empty line.
    pub(crate) head: String,
    /// Content as sent.
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Asks with GET and the given header lines. The connection is kept as far as the server sees.
pub(crate) fn get(address: SocketAddr, path: &str, fields: &[(&str, String)]) -> Outcome<Response> {
    ask(address, "GET", path, fields, None)
}

/// Asks with any method, and with a body where there is one.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, String)],
    body: Option<&[u8]>,
) -> Outcome<Response> {
    ask_on(&mut connect(address)?, method, path, fields, body)
}

/// A connection for one question after the other.
pub(crate) fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_DEADLINE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The same on a connection that is open.
pub(crate) fn ask_on(
    stream: &mut TcpStream,
    method: &str,
    path: &str,
    fields: &[(&str, String)],
    body: Option<&[u8]>,
) -> Outcome<Response> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", stream.peer_addr()?);
    for (name, value) in fields {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes())?;
    stream.write_all(body.unwrap_or_default())?;
    answer_from(stream, path)
}

/// Reads one answer.
fn answer_from(stream: &mut TcpStream, path: &str) -> Outcome<Response> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(answer) = whole(&bytes) {
            return Ok(answer);
        }
        if count == 0 {
            return Err(format!("{path}: the answer broke off after {} bytes", bytes.len()).into());
        }
    }
}

/// The answer in these bytes, once it is complete.
fn whole(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let mut answer = Response { status, head, body: Vec::new() };
    let length = match answer.field("content-length") {
        _ if status == 304 || status == 204 => 0,
        Some(length) => length.parse().ok()?,
        None => {
            answer.body = content_of_chunks(&bytes[end..])?;
            return Some(answer);
        }
    };
    answer.body = bytes.get(end..end + length)?.to_vec();
    Some(answer)
}

/// The content of a chunked body, once its last chunk is there. Good enough to compare, not to judge.
fn content_of_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let line = bytes.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).ok()?.trim(), 16).ok()?;
        let chunk = bytes.get(line + 2..)?;
        content.extend_from_slice(chunk.get(..size)?);
        bytes = chunk.get(size + 2..)?;
        if size == 0 {
            return Some(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_content_is_there() {
        let bytes = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nabc";
        assert!(whole(&bytes[..bytes.len() - 1]).is_none());
        let answer = whole(bytes).unwrap();
        assert_eq!(
            (answer.status, answer.field("etag"), answer.body.as_slice()),
            (200, Some("\"a\""), &b"abc"[..])
        );
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        assert!(whole(&chunked[..chunked.len() - 1]).is_none());
        assert_eq!(whole(chunked).unwrap().body, b"abcd");
        assert!(whole(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 788\r\n\r\n").is_some());
    }
}
