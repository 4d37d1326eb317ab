//! The client's side of the control socket (docs/control-api.md).
//!
//! One request, one answer, `Connection: close`. Knows nothing about what the answers mean.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

/// How long an answer may take. A reload of a large tree takes its time; a server that is dead does not
/// keep its socket open.
pub(crate) const ANSWER_DEADLINE: Duration = Duration::from_secs(300);

/// Bytes of an answer; a status page of a thousand sites is a tenth of it.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
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

/// Sends one request and reads the answer, which may take that long.
pub(crate) fn ask_within(
    deadline: Duration,
    socket: &Path,
    method: &str,
    path: &str,
) -> Result<Answer, ClientError> {
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
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(failed)?;
    parse(&answer)
        .ok_or_else(|| ClientError::Failed("what answers there is no onehop, or it was cut off".into()))
}

/// Process id of the server that listens on a socket, if there is one that is trusted.
pub(crate) fn listener_pid(socket: &Path) -> Option<i32> {
    Some(connect(socket).ok()?.1.pid.as_raw_nonzero().get())
}

/// Connects to a server of this user or of root; root may ask the server of any user. The kernel keeps the
/// credentials of the process that called listen(), so a hung server is seen, too.
fn connect(socket: &Path) -> std::io::Result<(UnixStream, UCred)> {
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

fn parse(answer: &[u8]) -> Option<Answer> {
    let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = (answer.get(..head_end)?, answer.get(head_end + 4..)?);
    let head = std::str::from_utf8(head).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).ok()? };
    Some(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_status_and_its_json() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"sites\":1}").expect("an answer");
        assert_eq!((answer.status, answer.body), (200, serde_json::json!({"sites": 1})));
    }

    #[test]
    fn something_else_on_the_socket_is_no_answer() {
        for bytes in [&b""[..], b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{\"cut", b"HTTP/1.1 \r\n\r\n"]
        {
            assert!(parse(bytes).is_none(), "{bytes:?}");
        }
    }
}
