//! One health check: connects, sends one request, judges the response, closes.
//!
//! Bounded in bytes; its time is bounded by the caller. Keeps nothing.

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;

use onehop_config::checked::proxy::{ActiveHealth, StatusTest};
use onehop_http1::{AnswerRead, AskHead, BodyLength, BodyRead, Refusal};

use super::HealthCheck;
use crate::ConnectError;
use crate::codec::Codec;
use crate::connection::Buffers;
use crate::dial;
use crate::limits::HEALTH_CHECK_BODY_BYTES_MAX;
use crate::link::Link;
use crate::peer::Endpoint;
use onehop_connection::buffer_pool::Reusable as _;

/// Redirects that are followed for one check, as Go's client does.
const REDIRECTS_MAX: usize = 10;

/// What is asked: at first what is configured, then what redirects say.
struct Request<'a> {
    settings: &'a ActiveHealth,
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    host: Cow<'a, str>,
    body: &'a str,
}

/// What came of one request.
enum Verdict {
    Judged(Result<(), String>),
    Redirected { status: u16, location: String },
}

/// Whether the upstream is well; the error is why not, for a person. A redirect that is followed leads to the same
/// upstream, whatever host it names, as in Caddy: nobody else answers for it.
pub(super) async fn probe(check: &HealthCheck) -> Result<(), String> {
    let mut request = Request::new(check);
    for _ in 0..=REDIRECTS_MAX {
        match once(check, &request).await? {
            Verdict::Judged(judged) => return judged,
            Verdict::Redirected { status, location } => request.follow(status, &location),
        }
    }
    Err(format!("it redirected more than {REDIRECTS_MAX} times"))
}

async fn once(check: &HealthCheck, request: &Request<'_>) -> Result<Verdict, String> {
    let dialled = dial::dial_uncounted(&check.peer).await;
    let connection = dialled.map_err(|none| match none {
        ConnectError::Refused(error) => format!("no connection: {error}"),
        ConnectError::Timeout => format!("no connection within {:?}", check.peer.settings.dial_timeout),
        ConnectError::Name(reason) => format!("its name leads nowhere: {reason}"),
        ConnectError::Tls(reason) => format!("no TLS: {reason}"),
        ConnectError::Http2(reason) => format!("no HTTP/2: {reason}"),
        // Those of the pool, which this is none of.
        ConnectError::QueueFull | ConnectError::QueueTimeout => "no connection".to_owned(),
    })?;
    let settings = &check.settings;
    let output = request.written(&mut connection.codec())?;
    connection.write(&output, &[]).await.map_err(broke)?;

    let mut buffers = Buffers::new();
    loop {
        let read = connection.codec().read_head(buffers.input.unread(), &mut buffers.head);
        match read.map_err(broken)? {
            Some(AnswerRead::Informational { consumed }) => buffers.input.consume(consumed),
            Some(AnswerRead::Final { consumed } | AnswerRead::Tunnel { consumed }) => {
                buffers.input.consume(consumed);
                break;
            }
            None => {
                if fill(&connection, &mut buffers).await? == 0 {
                    return Err("it closed the connection without an answer".to_owned());
                }
            }
        }
    }
    let head = &buffers.head;
    let status = head.status();
    if settings.follow_redirects
        && matches!(status, 301 | 302 | 303 | 307 | 308)
        && let Some(location) = head.find("location")
    {
        let location = String::from_utf8_lossy(location).into_owned();
        return Ok(Verdict::Redirected { status, location });
    }
    if !settings.status.fits(status) {
        let wanted = expected(settings.status);
        return Ok(Verdict::Judged(Err(format!("it answered {status} instead of {wanted}"))));
    }
    let Some(expression) = &check.body else { return Ok(Verdict::Judged(Ok(()))) };
    let body = body(&connection, &mut buffers).await?;
    let is_right = expression.is_match(&String::from_utf8_lossy(&body));
    let wrong = || format!("its body does not match `{}`", expression.as_str());
    Ok(Verdict::Judged(if is_right { Ok(()) } else { Err(wrong()) }))
}

impl<'a> Request<'a> {
    fn new(check: &'a HealthCheck) -> Self {
        let settings = &check.settings;
        let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
        let host = match settings.fields.iter().find(is_host) {
            Some((_, host)) => Cow::Borrowed(host.as_str()),
            None => Cow::Owned(match &check.peer.endpoint {
                Endpoint::Address(address) => address.to_string(),
                Endpoint::Name(name, port) => format!("{name}:{port}"),
                Endpoint::Unix(..) => "localhost".to_owned(),
            }),
        };
        let (method, target) = (Cow::Borrowed(&*settings.method), Cow::Borrowed(&*settings.uri));
        Self { settings, method, target, host, body: &settings.request_body }
    }

    /// RFC 9110 section 15.4: only 307 and 308 keep the method and the body.
    fn follow(&mut self, status: u16, location: &str) {
        let location = location.split('#').next().unwrap_or_default();
        let starts =
            |with: &&str| location.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
        let target = match ["https://", "http://", "//"].iter().find(|with| starts(with)) {
            Some(before) => {
                let rest = location.get(before.len()..).unwrap_or_default();
                let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                self.host = Cow::Owned(host.to_owned());
                if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
            }
            None if location.starts_with('/') => location.to_owned(),
            None if location.is_empty() => self.target.clone().into_owned(),
            None => {
                let path = self.target.split('?').next().unwrap_or_default();
                let kept = if location.starts_with('?') {
                    Some(path.len())
                } else {
                    path.rfind('/').map(|at| at + 1)
                };
                format!("{}{location}", kept.and_then(|kept| path.get(..kept)).unwrap_or("/"))
            }
        };
        self.target = Cow::Owned(target);
        if !matches!(status, 307 | 308) {
            self.body = "";
            if self.method != "HEAD" {
                self.method = Cow::Borrowed("GET");
            }
        }
    }

    fn written(&self, codec: &mut Codec<'_>) -> Result<Vec<u8>, String> {
        let mut output = Vec::new();
        let body = match self.body.len() {
            0 => BodyLength::None,
            length => BodyLength::Known(length as u64),
        };
        let (fields, target) = (self.fields(), self.target.as_bytes());
        let ask = AskHead {
            method: self.method.as_bytes(),
            target,
            fields: &fields,
            body,
            upgrade: false,
            trailers: false,
        };
        let written = codec.write_request_head(&mut output, ask);
        written.map_err(|refusal| format!("it cannot be asked for {}: {refusal:?}", self.target))?;
        if !self.body.is_empty() {
            codec.write_data(&mut output, self.body.as_bytes());
        }
        codec.finish(&mut output, &[]);
        Ok(output)
    }

    /// Without those that are about the connection or its framing.
    fn fields(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        // What a redirect names comes from the upstream.
        let is_line = |value: &str| !value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 127);
        let mut push = |name: &str, value: &str| {
            if is_line(value) {
                for part in [name, ": ", value, "\r\n"] {
                    lines.extend_from_slice(part.as_bytes());
                }
            }
        };
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        push("Host", &self.host);
        if !self.settings.fields.iter().any(|(name, _)| is(name, "user-agent")) {
            push("User-Agent", "onehop-health");
        }
        for (name, value) in &self.settings.fields {
            let ours = ["host", "connection", "keep-alive", "content-length", "transfer-encoding", "expect"];
            if !ours.iter().any(|ours| is(name, ours)) {
                push(name, value);
            }
        }
        lines
    }
}

/// The beginning of the answer's body.
async fn body(connection: &Link, buffers: &mut Buffers) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while body.len() < HEALTH_CHECK_BODY_BYTES_MAX {
        let input = &mut buffers.input;
        let read = connection.codec().read_body(input.unread());
        match read.map_err(broken)? {
            BodyRead::Data { at, consumed } => {
                body.extend_from_slice(input.unread().get(at).unwrap_or_default());
                input.consume(consumed);
            }
            BodyRead::End { .. } => break,
            BodyRead::NeedMore => {
                if fill(connection, buffers).await? == 0 {
                    connection.codec().read_eof(buffers.input.unread().len()).map_err(broken)?;
                    break;
                }
            }
        }
    }
    body.truncate(HEALTH_CHECK_BODY_BYTES_MAX);
    Ok(body)
}

/// Reads once; 0 is the end.
async fn fill(connection: &Link, buffers: &mut Buffers) -> Result<usize, String> {
    poll_fn(|context| connection.poll_fill(&mut buffers.input, context)).await.map_err(broke)
}

fn broke(error: io::Error) -> String {
    format!("the connection broke: {error}")
}

fn broken(refusal: Refusal) -> String {
    format!("its answer is broken: {refusal:?}")
}

fn expected(status: StatusTest) -> String {
    match status {
        StatusTest::Exactly(status) => status.to_string(),
        StatusTest::Class(class) => format!("{class}xx"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings() -> ActiveHealth {
        ActiveHealth {
            uri: "/health".to_owned(),
            port: None,
            target: None,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            status: StatusTest::Class(2),
            follow_redirects: false,
            body: None,
            passes: 2,
            fails: 2,
            fields: Vec::new(),
            method: "GET".to_owned(),
            request_body: String::new(),
        }
    }

    /// Host and target after a redirect.
    fn followed(settings: &ActiveHealth, host: &str, location: &str) -> (String, String) {
        let (method, target) = (Cow::Borrowed(&*settings.method), Cow::Borrowed(&*settings.uri));
        let mut request = Request { settings, method, target, host: Cow::Borrowed(host), body: "" };
        request.follow(302, location);
        (request.host.into_owned(), request.target.into_owned())
    }

    #[test]
    fn redirects_are_relative_to_what_was_asked() {
        let settings = ActiveHealth { uri: "/a/b?c=d".to_owned(), ..settings() };
        for (location, host, target) in [
            ("/x", "h:1", "/x"),
            ("x?y#z", "h:1", "/a/x?y"),
            ("?y", "h:1", "/a/b?y"),
            ("", "h:1", "/a/b?c=d"),
            ("http://o:2", "o:2", "/"),
            ("HTTPS://o/x", "o", "/x"),
            ("//o?x", "o", "/?x"),
        ] {
            assert_eq!(
                followed(&settings, "h:1", location),
                (host.to_owned(), target.to_owned()),
                "{location}"
            );
        }
    }
}
