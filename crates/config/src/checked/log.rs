//! Access logs: where their lines go, what these look like, and which requests have one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Template;

/// One access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// What `log_name` calls it; none where it has no name of its own.
    pub name: Option<String>,
    /// Where its lines go.
    pub output: LogOutput,
    /// What its lines look like.
    pub format: LogFormat,
    /// When a file is rotated; `None` where it never is.
    pub roll: Option<LogRoll>,
    /// Only for these hosts; empty means all of the site.
    pub hosts: Vec<String>,
    /// `no_hostname`: only for requests that `log_name` sends here.
    pub only_named: bool,
    /// `level ERROR`: only for requests that failed on the server's side.
    pub only_errors: bool,
    /// `log_credentials`: the values of cookies and credentials are written.
    pub credentials: bool,
    /// Which lines are left out where there are many; `None` writes all.
    pub sampling: Option<LogSampling>,
}

/// `log` of the global block: where the server's own messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLog {
    /// Where they go, and access logs that do not say it themselves.
    pub output: LogOutput,
    /// When a file is rotated; `None` where it never is.
    pub roll: Option<LogRoll>,
    /// What they look like; `None`: as the command line says.
    pub format: Option<ServerLogFormat>,
    /// `level ERROR`: only failures.
    pub only_errors: bool,
}

/// What the server's own messages look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLogFormat {
    /// Lines for people.
    Console,
    /// A JSON object a line.
    Json,
}

/// What a line of an access log looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object, shaped like Caddy's.
    Json(LogTime),
    /// Apache's Common Log Format.
    Common,
    /// The same with `Referer` and `User-Agent`.
    Combined,
    /// A JSON object of which some fields are changed or left out.
    Filter(Arc<LogFilter>),
    /// A text with fields of the JSON object in it.
    Transform(Arc<LogTemplate>),
}

impl Default for LogFormat {
    fn default() -> Self {
        Self::Json(LogTime::default())
    }
}

/// How a line writes its time; always in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogTime {
    /// `1767225600.123456`: seconds since 1970.
    #[default]
    UnixSeconds,
    /// `1767225600123.456`: milliseconds since 1970.
    UnixMilliseconds,
    /// `1767225600123456000`: nanoseconds since 1970.
    UnixNanoseconds,
    /// `2026-01-01T00:00:00.123Z`
    Iso8601,
    /// `2026-01-01T00:00:00Z` (RFC 3339)
    Rfc3339,
    /// `2026-01-01T00:00:00.123456Z` (RFC 3339)
    Rfc3339Fraction,
    /// `2026/01/01 00:00:00`
    Wall,
    /// `2026/01/01 00:00:00.123`
    WallMilliseconds,
    /// `01/Jan/2026:00:00:00 +0000`
    CommonLog,
}

/// `format filter`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter {
    /// How the time is written.
    pub time: LogTime,
    /// Each for another field.
    pub rules: Vec<FieldRule>,
}

/// What is done with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRule {
    /// The field.
    pub field: LogField,
    /// What is done.
    pub action: FieldAction,
}

/// What is done with the value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldAction {
    /// It is left out.
    Delete,
    /// It has another name.
    Rename(String),
    /// It has another value.
    Replace(String),
    /// Of addresses only so many leading bits are written.
    IpMask {
        /// Bits of IPv4, at most 32.
        ipv4: u8,
        /// Bits of IPv6, at most 128.
        ipv6: u8,
    },
    /// Parameters of a query are changed.
    Query(Vec<ValueRule>),
    /// Cookies are changed.
    Cookie(Vec<ValueRule>),
    /// What a regular expression finds is replaced.
    Regexp {
        /// The expression, known to compile.
        find: String,
        /// The replacement; `$1` is the text of the first group.
        replace: String,
    },
    /// It is replaced by the first four bytes of its SHA-256, in hexadecimal digits.
    Hash,
}

/// What is done with one parameter or cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRule {
    /// Its name.
    pub name: String,
    /// What is done.
    pub action: ValueAction,
}

/// What is done with the value of a parameter or a cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueAction {
    /// It is left out.
    Delete,
    /// It has another value.
    Replace(String),
    /// It is replaced by the first four bytes of its SHA-256, in hexadecimal digits.
    Hash,
}

/// `format transform`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTemplate {
    /// In order.
    pub parts: Vec<LogTemplatePart>,
    /// What is written for a field without a value.
    pub empty: String,
    /// How the time is written.
    pub time: LogTime,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTemplatePart {
    /// As it is.
    Text(String),
    /// The first of these fields that has a value; of a field with several values the one of this number, or all as JSON.
    Value(Vec<(LogField, Option<usize>)>),
}

/// A field of a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the field of that name")]
pub enum LogField {
    Level,
    Time,
    Logger,
    Message,
    Request,
    RemoteIp,
    RemotePort,
    ClientIp,
    Protocol,
    Method,
    Host,
    Uri,
    RequestHeaders,
    /// By name, in lower case.
    RequestHeader(String),
    Duration,
    Size,
    Status,
    RequestId,
    Upstream,
    Refused,
    Detail,
    ErrorId,
    Aborted,
    ResponseHeaders,
    /// By name, in lower case.
    ResponseHeader(String),
    /// One of `log_append`, or of Caddy's that onehop does not write.
    Appended(String),
    /// What Caddy writes of TLS, and onehop does not.
    Tls,
}

impl LogField {
    /// Fields with a fixed name, as `format filter` and `format transform` write it.
    pub const NAMED: [(&'static str, Self); 23] = [
        ("level", Self::Level),
        ("ts", Self::Time),
        ("logger", Self::Logger),
        ("msg", Self::Message),
        ("request", Self::Request),
        ("request>remote_ip", Self::RemoteIp),
        ("request>remote_port", Self::RemotePort),
        ("request>client_ip", Self::ClientIp),
        ("request>proto", Self::Protocol),
        ("request>method", Self::Method),
        ("request>host", Self::Host),
        ("request>uri", Self::Uri),
        ("request>headers", Self::RequestHeaders),
        ("duration", Self::Duration),
        ("size", Self::Size),
        ("status", Self::Status),
        ("request_id", Self::RequestId),
        ("upstream", Self::Upstream),
        ("refused", Self::Refused),
        ("detail", Self::Detail),
        ("err_id", Self::ErrorId),
        ("aborted", Self::Aborted),
        ("resp_headers", Self::ResponseHeaders),
    ];

    /// The field that a path means; `None` where there is no such field within an object.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        if let Some((_, field)) = Self::NAMED.iter().find(|(name, _)| *name == path) {
            return Some(field.clone());
        }
        if path == "request>tls" || path.starts_with("request>tls>") {
            return Some(Self::Tls);
        }
        let header = |name: &str| Some(name.to_ascii_lowercase()).filter(|name| !name.is_empty());
        match path.split_once('>') {
            None if path.is_empty() => None,
            None => Some(Self::Appended(path.to_owned())),
            Some(("resp_headers", name)) => header(name).map(Self::ResponseHeader),
            Some(("request", rest)) => {
                rest.strip_prefix("headers>").and_then(header).map(Self::RequestHeader)
            }
            Some(_) => None,
        }
    }
}

/// What a template says of a field that does not exist: the whole key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField(pub String);

impl LogTemplate {
    /// Reads a template: `{request>method} {status}`. A field's name may be followed by others that stand in for it
    /// (`{request>headers>X-Id>[0]:request>uri}`). A brace behind a backslash, and one that is never closed, are text.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn read(template: &str) -> Result<Vec<LogTemplatePart>, UnknownField> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '\\']) {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            let escaped = from.strip_prefix('\\');
            if let Some(brace) = escaped.and_then(|rest| rest.get(..1)).filter(|next| "{}".contains(next)) {
                text.push_str(brace);
                rest = from.get(2..).unwrap_or_default();
                continue;
            }
            let Some(close) = from.find('}').filter(|_| escaped.is_none()) else {
                text.push_str(from.get(..1).unwrap_or_default());
                rest = from.get(1..).unwrap_or_default();
                continue;
            };
            let key = from.get(1..close).unwrap_or_default();
            if !text.is_empty() {
                parts.push(LogTemplatePart::Text(std::mem::take(&mut text)));
            }
            let fields = key.split(':').map(field_and_index).collect::<Option<Vec<_>>>();
            parts.push(LogTemplatePart::Value(fields.ok_or_else(|| UnknownField(key.to_owned()))?));
            rest = from.get(close + 1..).unwrap_or_default();
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(LogTemplatePart::Text(text));
        }
        Ok(parts)
    }
}

/// `request>headers>Referer>[0]`
fn field_and_index(key: &str) -> Option<(LogField, Option<usize>)> {
    let (path, index) = match key.rsplit_once(">[") {
        Some((path, index)) => (path, Some(index.strip_suffix(']')?.parse().ok()?)),
        None => (key, None),
    };
    let field = LogField::of(path)?;
    let has_values =
        matches!(field, LogField::RequestHeader(_) | LogField::ResponseHeader(_) | LogField::Tls);
    // The request as a whole is an object of objects.
    let is_text = field != LogField::Request && (index.is_none() || has_values);
    is_text.then_some((field, index))
}

/// Which lines are left out where there are many, counted by each core for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSampling {
    /// The time in which lines are counted.
    pub interval: Duration,
    /// All of the first so many are written.
    pub first: u64,
    /// Then each one of so many; 0: none.
    pub thereafter: u64,
}

/// Rotation of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRoll {
    /// Bytes that a file may have.
    pub size: u64,
    /// Rotated files that are kept.
    pub keep: usize,
    /// How long they are kept.
    pub keep_for: Duration,
    /// They are compressed with gzip.
    pub compress: bool,
}

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to this file, absolute.
    File(PathBuf),
    /// Nowhere.
    Discard,
    /// Over a socket.
    Net(NetOutput),
}

/// A receiver of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetOutput {
    /// Where.
    pub address: NetAddress,
    /// As messages of syslog (RFC 5424), not as plain lines.
    pub is_syslog: bool,
    /// How long a connection may take.
    pub dial_timeout: Duration,
    /// The server starts also where the receiver is not there.
    pub soft_start: bool,
}

/// Where a receiver of lines is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetAddress {
    /// `host:port`; a stream.
    Tcp(String),
    /// `host:port`; a line is a datagram.
    Udp(String),
    /// A Unix stream socket.
    Unix(PathBuf),
    /// A Unix datagram socket, such as `/dev/log`.
    UnixDatagram(PathBuf),
}

impl LogOutput {
    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".to_owned(),
            Self::Stderr => "stderr".to_owned(),
            Self::Discard => "discard".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Net(net) => match &net.address {
                NetAddress::Tcp(address) => format!("tcp/{address}"),
                NetAddress::Udp(address) => format!("udp/{address}"),
                NetAddress::Unix(path) => format!("unix/{}", path.display()),
                NetAddress::UnixDatagram(path) => format!("unixgram/{}", path.display()),
            },
        }
    }
}

/// `log_append`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAppend {
    /// The name of the field.
    pub key: String,
    /// Its value.
    pub value: Template,
    /// The value is that of the request as it comes to the directive, not as it is in the end.
    pub early: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_text_and_fields() {
        use LogTemplatePart::{Text, Value};
        let field = |field, index| Value(vec![(field, index)]);
        for (template, parts) in [
            ("", vec![]),
            ("a", vec![Text("a".into())]),
            ("{status}", vec![field(LogField::Status, None)]),
            (
                "a{request>uri}b{request>headers>User-Agent>[0]}",
                vec![
                    Text("a".into()),
                    field(LogField::Uri, None),
                    Text("b".into()),
                    field(LogField::RequestHeader("user-agent".into()), Some(0)),
                ],
            ),
            ("{a:ts}", vec![Value(vec![(LogField::Appended("a".into()), None), (LogField::Time, None)])]),
            (r"\{status\} {", vec![Text("{status} {".into())]),
            (r"\\n", vec![Text(r"\\n".into())]),
        ] {
            assert_eq!(LogTemplate::read(template), Ok(parts), "{template}");
        }
    }

    #[test]
    fn a_field_that_does_not_exist_is_named() {
        for key in
            ["", "request>x", "status:", "status>[0]", "resp_headers>", "request>headers>A>[x]", "request"]
        {
            let read = LogTemplate::read(&format!("a {{{key}}} b"));
            assert_eq!(read, Err(UnknownField(key.to_owned())), "{key}");
        }
    }
}
