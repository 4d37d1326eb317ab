//! `onehop dashboard`: a port of this machine behind which the control socket is, for a browser.
//!
//! A browser cannot open a Unix socket. This passes on what the page asks, one request a connection, and what makes that
//! safe is checked here, before the control socket: the host and the origin are this very port, and changes have the token.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use onehop_http1::{Limits, RequestHead, ServerCodec};

use super::control;
use crate::arguments::Dashboard;
use crate::control_client::{self, text};
use crate::failure::Failure;

/// Requests at a time; a browser has six connections to a host.
const CONNECTIONS_MAX: usize = 32;

/// How long a browser may take for a head, and to take a piece of an answer.
const BROWSER_DEADLINE: Duration = Duration::from_secs(60);

/// How long a browser may take to start, until the file with the address goes.
const BROWSER_START: Duration = Duration::from_secs(30);

/// Bytes of an answer that are passed on at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// What the page asks for: nothing that the admin endpoint does not show as well. Other users of this machine reach the port,
/// and not the control socket.
const SHOWN: [&[u8]; 8] =
    [b"/dashboard", b"/status", b"/certificates", b"/history", b"/events", b"/live", b"/slow", b"/frequent"];

/// What the page may change.
const CHANGES: [&[u8]; 3] = [b"/reload", b"/restart/", b"/workers/"];

/// The control socket, and what a request has to have.
struct Door {
    socket: PathBuf,
    token: String,
    port: u16,
}

/// Why a request is not passed on.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    status: &'static str,
    reason: &'static str,
}

pub(crate) fn dashboard(arguments: &Dashboard) -> Result<(), Failure> {
    let socket = control::socket(&arguments.target)?;
    let answer = control::ask_about_at(&socket, "/token")?;
    let token = text(&answer.body, "token").to_owned();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).map_err(|error| {
        Failure::failed(format!(
            "cannot listen on 127.0.0.1:{} ({error}): name another port with --port",
            arguments.port
        ))
    })?;
    let port = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?.port();
    let url = format!("http://127.0.0.1:{port}/dashboard/#token={token}");
    super::standard_output::print(&format!("{url}\nCtrl-C ends it\n"));
    if !arguments.no_open {
        open_browser(url);
    }
    let door = Arc::new(Door { socket, token, port });
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (door, open) = (Arc::clone(&door), Arc::clone(&open));
        thread::spawn(move || {
            // A browser that has closed the connection needs no answer.
            let _ = door.pass_on(stream);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Where there is no browser the address is printed anyway.
fn open_browser(url: String) {
    thread::spawn(move || -> io::Result<()> {
        // The address has the token, and everybody may read command lines: the browser gets it from a file of this user's.
        let mut page = tempfile::Builder::new().prefix("onehop-dashboard-").suffix(".html").tempfile()?;
        write!(page, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
        let mut command = Command::new("xdg-open");
        command.arg(page.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        // A browser that starts reads it later.
        thread::sleep(BROWSER_START);
        page.close()
    });
}

impl Door {
    /// Answers one request.
    fn pass_on(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(BROWSER_DEADLINE))?;
        stream.set_write_timeout(Some(BROWSER_DEADLINE))?;
        let Some(head) = read_head(&mut stream)? else { return Ok(()) };
        match self.check(&head) {
            Ok(()) => match self.answer(&head) {
                Ok(answer) => copy(answer, &mut stream),
                Err(error) => refuse(&mut stream, "502 Bad Gateway", &format!("no onehop answers: {error}")),
            },
            Err(refused) => refuse(&mut stream, refused.status, refused.reason),
        }
    }

    /// A web page of a stranger can send requests here, and let a name of its own point here.
    fn check(&self, head: &RequestHead) -> Result<(), Refused> {
        let own = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let is_own = |host: &[u8]| own.iter().any(|own| own.as_bytes() == host);
        if !head.host().is_some_and(is_own) {
            return Err(Refused {
                status: "421 Misdirected Request",
                reason: "ask by the address that was printed",
            });
        }
        let origin = head.find("origin");
        if origin.is_some_and(|origin| !origin.strip_prefix(b"http://").is_some_and(is_own)) {
            return Err(Refused { status: "403 Forbidden", reason: "a page of another origin asks" });
        }
        match head.method_bytes() {
            b"GET" | b"HEAD" if SHOWN.iter().any(|shown| head.path().starts_with(shown)) => Ok(()),
            b"POST" if !CHANGES.iter().any(|change| head.path().starts_with(change)) => {
                Err(Refused { status: "404 Not Found", reason: "the dashboard does not change that" })
            }
            b"POST" if head.find("onehop-token") == Some(self.token.as_bytes()) => Ok(()),
            b"POST" => Err(Refused {
                status: "403 Forbidden",
                reason: "the token of the printed address is missing",
            }),
            _ => Err(Refused { status: "404 Not Found", reason: "there is no such thing here" }),
        }
    }

    /// The control socket's answer, from its head on.
    fn answer(&self, head: &RequestHead) -> io::Result<impl Read> {
        let (mut upstream, _) = control_client::connect(&self.socket)?;
        let mut request = head.method_bytes().to_vec();
        request.push(b' ');
        request.extend_from_slice(head.target());
        request
            .extend_from_slice(b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n");
        if head.method_bytes() == b"POST" {
            request.extend_from_slice(format!("Origin: http://127.0.0.1:{}\r\n", self.port).as_bytes());
            request.extend_from_slice(format!("Onehop-Token: {}\r\n", self.token).as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        upstream.set_read_timeout(Some(control_client::RESPONSE_DEADLINE))?;
        upstream.write_all(&request)?;
        Ok(upstream)
    }
}

/// The head of a request; none where there is none that can be read. A body means nothing here.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<RequestHead>> {
    let limits = Limits { head_bytes: HEAD_BYTES_MAX, ..Limits::default() };
    let (mut codec, mut head, mut input) = (ServerCodec::new(limits), RequestHead::new(), Vec::new());
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece)?;
        input.extend_from_slice(piece.get(..read).unwrap_or_default());
        match codec.read_head(&input, &mut head) {
            Ok(Some(_)) => return Ok(Some(head)),
            Ok(None) if read > 0 => {}
            _ => return Ok(None),
        }
    }
}

/// Passes on each piece as it comes: `/live` has no end.
fn copy(mut answer: impl Read, stream: &mut TcpStream) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = answer.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(piece.get(..read).unwrap_or_default())?;
    }
}

fn refuse(stream: &mut TcpStream, status: &str, reason: &str) -> io::Result<()> {
    let body = serde_json::json!({ "error": reason }).to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, expected: Option<&str>) {
        let mut head = RequestHead::new();
        let request = request.replace('|', "\r\n") + "\r\n\r\n";
        ServerCodec::new(Limits::default())
            .read_head(request.as_bytes(), &mut head)
            .expect("a head")
            .expect("whole");
        let door = Door { socket: PathBuf::from("/none"), token: "abc".to_owned(), port: 4000 };
        let refused = door.check(&head).err();
        assert_eq!(refused.map(|refused| &refused.status[..3]), expected, "{request}");
    }

    #[test]
    fn a_strangers_page_gets_and_changes_nothing() {
        const OWN: &str = "Host: 127.0.0.1:4000";
        for path in ["/status", "/dashboard/", "/live", "/history?site=x"] {
            check(&format!("GET {path} HTTP/1.1|{OWN}"), None);
            check(&format!("GET {path} HTTP/1.1|Host: localhost:4000|Origin: http://localhost:4000"), None);
            check(&format!("GET {path} HTTP/1.1|Host: rebound.example:4000"), Some("421"));
            check(&format!("GET {path} HTTP/1.1|Host: 127.0.0.1:4001"), Some("421"));
            check(&format!("GET {path} HTTP/1.1|{OWN}|Origin: http://attacker.example"), Some("403"));
        }
        for path in ["/token", "/logs", "/logs/follow", "/workers/api"] {
            check(&format!("GET {path} HTTP/1.1|{OWN}"), Some("404"));
        }
        let own = format!("{OWN}|Origin: http://127.0.0.1:4000|Content-Length: 0");
        for path in ["/reload", "/restart/api", "/workers/api/3"] {
            check(&format!("POST {path} HTTP/1.1|{own}|Onehop-Token: abc"), None);
            check(&format!("POST {path} HTTP/1.1|{own}|Onehop-Token: abd"), Some("403"));
            check(&format!("POST {path} HTTP/1.1|{own}"), Some("403"));
            check(&format!("POST {path} HTTP/1.1|{OWN}|Origin: null|Onehop-Token: abc"), Some("403"));
        }
        for path in ["/stop", "/certificates/a/revoke/superseded", "/marks/load/begin"] {
            check(&format!("POST {path} HTTP/1.1|{own}|Onehop-Token: abc"), Some("404"));
        }
        check(&format!("DELETE /reload HTTP/1.1|{OWN}"), Some("404"));
    }
}
