//! The client's side of the control socket (docs/control-api.md).
//!
//! One request, one response, `Connection: close`. Knows nothing about what the responses mean.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

/// How long an response may take. A reload of a large tree takes its time; a server that is dead does not
/// keep its socket open.
pub(crate) const RESPONSE_DEADLINE: Duration = Duration::from_secs(300);

/// Bytes of an response; a status page of a thousand sites is a tenth of it.
const RESPONSE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    /// The JSON body; null where there was none.
    pub(crate) body: Value,
}

/// Why nothing came back.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// No socket, or one that nobody listens on.
    NobodyThere,
    /// In words.
    Failed(String),
}

/// Sends one request and reads the response, which may take that long.
pub(crate) fn ask_within(
    deadline: Duration,
    socket: &Path,
    method: &str,
    path: &str,
) -> Result<Response, ClientError> {
    let failed = |error: std::io::Error| ClientError::Failed(error.to_string());
    let (mut stream, _) = connect(socket).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NobodyThere,
        _ => failed(error),
    })?;
    stream.set_read_timeout(Some(deadline)).map_err(failed)?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut response = Vec::new();
    stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut response).map_err(failed)?;
    parse(&response)
        .ok_or_else(|| ClientError::Failed("what answers there is no onehop, or it was cut off".into()))
}

/// Asks for lines, and hands on each as it comes, until the server ends or `each` has enough. Without a deadline it waits for
/// the next one for ever.
pub(crate) fn lines(
    socket: &Path,
    path: &str,
    deadline: Option<Duration>,
    mut each: impl FnMut(&str) -> bool,
) -> Result<(), ClientError> {
    let failed = |error: std::io::Error| ClientError::Failed(error.to_string());
    let (mut stream, _) = connect(socket).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NobodyThere,
        _ => failed(error),
    })?;
    stream.set_read_timeout(deadline).map_err(failed)?;
    // In HTTP/1.0 a body ends with its connection.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).map_err(failed)?;
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next().transpose().map_err(failed)?.unwrap_or_default();
    let is_head = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| !line.is_empty());
    lines.by_ref().take_while(is_head).for_each(drop);
    if status.split(' ').nth(1) != Some("200") {
        let body = lines.next().transpose().map_err(failed)?.unwrap_or_default();
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        let reason = Some(text(&body, "error")).filter(|reason| !reason.is_empty());
        return Err(ClientError::Failed(reason.unwrap_or("the server has no logs to show").to_owned()));
    }
    for line in lines {
        if !each(&line.map_err(failed)?) {
            break;
        }
    }
    Ok(())
}

/// Process id of the server that listens on a socket, if there is one that is trusted.
pub(crate) fn listener_pid(socket: &Path) -> Option<i32> {
    Some(connect(socket).ok()?.1.pid.as_raw_nonzero().get())
}

/// Connects to a server of this user or of root; root may ask the server of any user. The kernel keeps the
/// credentials of the process that called listen(), so a hung server is seen, too.
pub(crate) fn connect(socket: &Path) -> std::io::Result<(UnixStream, UCred)> {
    let stream = UnixStream::connect(socket)?;
    let peer = socket_peercred(&stream)?;
    let own = rustix::process::geteuid();
    if peer.uid == own || peer.uid.is_root() || own.is_root() {
        return Ok((stream, peer));
    }
    let (pid, uid) = (peer.pid.as_raw_nonzero(), peer.uid.as_raw());
    let reason = format!("process {pid} of user {uid} listens there, which is neither this user nor root");
    Err(std::io::Error::new(ErrorKind::PermissionDenied, reason))
}

/// A process that is watched until it ends.
pub(crate) struct Process {
    handle: OwnedFd,
}

impl Process {
    /// The process that listens on a socket. The handle stands for that very process, even if its
    /// number is given away again.
    pub(crate) fn behind(socket: &Path) -> Option<Process> {
        let pid = Pid::from_raw(listener_pid(socket)?)?;
        Some(Process { handle: pidfd_open(pid, PidfdFlags::empty()).ok()? })
    }

    /// Whether it ended within this time.
    pub(crate) fn wait_for_end(&self, wait: Duration) -> bool {
        let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
        let timeout = Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        matches!(poll(&mut handles, Some(&timeout)), Ok(1..))
    }
}

fn parse(response: &[u8]) -> Option<Response> {
    let head_end = response.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = (response.get(..head_end)?, response.get(head_end + 4..)?);
    let head = std::str::from_utf8(head).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
    Some(Response { status, body })
}

/// A text of a response; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A number of a response; 0 where there is none.
pub(crate) fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

/// A list of a response; empty where there is none.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_its_status_and_its_json() {
        let response =
            parse(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"sites\":1}").expect("an response");
        assert_eq!((response.status, response.body), (200, serde_json::json!({"sites": 1})));
    }

    #[test]
    fn something_else_on_the_socket_is_no_response() {
        for bytes in [&b""[..], b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{\"cut", b"HTTP/1.1 \r\n\r\n"]
        {
            assert!(parse(bytes).is_none(), "{bytes:?}");
        }
    }
}
