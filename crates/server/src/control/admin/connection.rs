//! One connection to an endpoint: requests in, answers out, every step under a deadline.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use onehop_http1::{
    AnswerHead, BodyLength, BodyRead, Limits, Method, Next, Refusal, RequestHead, ServerCodec,
};
use onehop_metrics::exposition::{self, TextFormat};
use onehop_metrics::families::Families;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::operation::{self, Endpoint, Operation, Refused, Request};
use super::{Api, page};
use crate::control::Live;
use crate::limits::{
    ADMIN_READ_BYTES, ADMIN_REQUEST_BYTES_MAX, HEADER_FIELDS_MAX, LIVE_INTERVAL, LIVE_LISTENERS_MAX,
    TARGET_BYTES_MAX,
};
use onehop_connection::limits::{
    BODY_PROGRESS_DEADLINE, HEAD_DEADLINE, IDLE_DEADLINE, WRITE_PROGRESS_DEADLINE,
};

/// Why a request is not there.
const NOT_RETAINED: &str = "no request with this id is kept: of each minute only the slowest are, for a quarter of an hour, and \
    the last ones that failed; `onehop why` lists them";

const JSON: &str = "application/json";
/// One JSON object a line.
pub(super) const JSON_LINES: &str = "application/x-ndjson";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What a client names that wants OpenMetrics.
const OPEN_METRICS_TYPE: &[u8] = b"application/openmetrics-text";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const EVENT_STREAM: &str = "text/event-stream";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers until the client or a fault ends it. A broken connection is nobody's concern but the client's.
pub(super) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    endpoint: Endpoint,
    api: Arc<dyn Api>,
    token: Arc<str>,
) {
    let mut connection =
        Connection { stream, input: Vec::new(), codec: ServerCodec::new(limits()), head: RequestHead::new() };
    let _ = connection.run(endpoint, &api, &token).await;
}

/// A place for each client of `/live`, of both listeners.
static LISTENERS: Semaphore = Semaphore::const_new(LIVE_LISTENERS_MAX);

pub(super) struct Connection<S> {
    pub(super) stream: S,
    /// Bytes that were read and not yet used, at most [`ADMIN_REQUEST_BYTES_MAX`] and one read.
    input: Vec<u8>,
    pub(super) codec: ServerCodec,
    head: RequestHead,
}

/// An answer that is ready.
pub(super) struct Reply {
    status: u16,
    content_type: &'static str,
    /// Whole lines besides the usual ones.
    fields: &'static str,
    body: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(&mut self, endpoint: Endpoint, api: &Arc<dyn Api>, token: &Arc<str>) -> io::Result<()> {
        loop {
            let asked = match self.read_request().await? {
                Ok(true) => operation::read(endpoint, &self.request(), token),
                Ok(false) => return Ok(()),
                Err(refusal) => {
                    let reply = Reply::error(refusal.status(), refusal.name());
                    self.write(&reply).await?;
                    return self.stream.shutdown().await;
                }
            };
            if asked == (Operation::Logs { follows: true }) && self.head.method() == Method::Get {
                return self.follow(api).await;
            }
            if asked == Operation::Live
                && let Ok(_place) = LISTENERS.try_acquire()
            {
                return self.show_live(api).await;
            }
            let stops = asked == Operation::Stop;
            let reply = carry_out(asked, self.metrics_format(), api, token).await;
            let next = self.write(&reply).await?;
            if stops {
                // Only once the answer is out: the process may end at any moment after this.
                call(api, |api| api.stop()).await;
            }
            if next != Next::KeepAlive {
                return self.stream.shutdown().await;
            }
        }
    }

    /// OpenMetrics where the client names it, as Prometheus does before its own format.
    fn metrics_format(&self) -> TextFormat {
        let names_it = self.head.find_all("accept").any(|value| {
            let mut types = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii_start);
            types.any(|kind| kind.starts_with(OPEN_METRICS_TYPE))
        });
        if names_it { TextFormat::OpenMetrics } else { TextFormat::Prometheus }
    }

    /// What decides about the request that was read.
    fn request(&self) -> Request<'_> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Request {
            method: self.head.method_bytes(),
            path: self.head.path(),
            query: self.head.query(),
            host: self.head.host(),
            origin: self.head.find("origin"),
            token: self.head.find("onehop-token"),
            now: now.as_secs(),
        }
    }

    /// Sends what happens until the client has left.
    async fn show_live(&mut self, api: &Arc<dyn Api>) -> io::Result<()> {
        let mut out = Vec::new();
        self.write_head(&mut out, 200, EVENT_STREAM, "", BodyLength::Chunked);
        if !self.codec.sends_body() {
            self.codec.finish(&mut out, b"");
            self.send(&out).await?;
            return self.stream.shutdown().await;
        }
        let mut live = Live::default();
        loop {
            let looked = call(api, move |api| (api.live(&mut live), live)).await;
            let Some((event, next)) = looked else { return self.stream.shutdown().await };
            live = next;
            if let Some(event) = event {
                self.codec.write_data(&mut out, format!("data: {event}\n\n").as_bytes());
            }
            self.send(&out).await?;
            out.clear();
            let mut byte = [0; 1];
            tokio::select! {
                () = sleep(LIVE_INTERVAL) => {}
                // It has left, or says something while it listens.
                _ = self.stream.read(&mut byte) => return Ok(()),
            }
        }
    }

    fn write_head(
        &mut self,
        out: &mut Vec<u8>,
        status: u16,
        content_type: &str,
        more: &str,
        body: BodyLength,
    ) {
        // Nothing here may be kept by a cache or taken for another type.
        let fields = format!(
            "Content-Type: {content_type}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{more}"
        );
        let date = format!("Date: {}\r\n", httpdate::fmt_http_date(SystemTime::now()));
        let head =
            AnswerHead { status, fields: fields.as_bytes(), date: date.as_bytes(), body, upgrade: false };
        self.codec.write_head(out, head);
    }

    /// Reads a head and throws its body away; `false` where the client is gone. No request to an endpoint has
    /// a body that means anything.
    async fn read_request(&mut self) -> io::Result<Result<bool, Refusal>> {
        // Between requests a client may be silent for longer than within one.
        if self.input.is_empty() && !self.read_more(IDLE_DEADLINE).await? {
            return Ok(Ok(false));
        }
        let head = async {
            loop {
                match self.codec.read_head(&self.input, &mut self.head) {
                    Ok(Some(consumed)) => {
                        self.input.drain(..consumed.min(self.input.len()));
                        return Ok::<_, io::Error>(Ok(true));
                    }
                    Ok(None) => {}
                    Err(refusal) => return Ok(Err(refusal)),
                }
                if !self.read_more(HEAD_DEADLINE).await? {
                    return Ok(Ok(false));
                }
            }
        };
        // From the first byte of a head to its last, however the bytes trickle.
        match timeout(HEAD_DEADLINE, head).await.map_err(|_| io::ErrorKind::TimedOut)?? {
            Ok(true) => self.skip_body().await,
            other => Ok(other),
        }
    }

    async fn skip_body(&mut self) -> io::Result<Result<bool, Refusal>> {
        let mut interim = Vec::new();
        self.codec.write_continue(&mut interim);
        if !interim.is_empty() {
            self.send(&interim).await?;
        }
        let mut skipped = 0;
        while !self.codec.body_is_read() {
            let consumed = match self.codec.read_body(&self.input) {
                Ok(BodyRead::NeedMore) => {
                    if !self.read_more(BODY_PROGRESS_DEADLINE).await? {
                        return Ok(Ok(false));
                    }
                    continue;
                }
                Ok(BodyRead::Data { consumed, .. } | BodyRead::End { consumed }) => consumed,
                Err(refusal) => return Ok(Err(refusal)),
            };
            self.input.drain(..consumed.min(self.input.len()));
            skipped += consumed;
            if skipped > ADMIN_REQUEST_BYTES_MAX {
                // The codec closes after the answer, since the body is not read.
                break;
            }
        }
        Ok(Ok(true))
    }

    /// Whether there was more.
    async fn read_more(&mut self, deadline: Duration) -> io::Result<bool> {
        if self.input.len() > ADMIN_REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.input.reserve(ADMIN_READ_BYTES);
        let read = timeout(deadline, self.stream.read_buf(&mut self.input)).await;
        Ok(read.map_err(|_| io::ErrorKind::TimedOut)?? > 0)
    }

    pub(super) async fn write(&mut self, reply: &Reply) -> io::Result<Next> {
        let mut out = Vec::with_capacity(reply.body.len() + 512);
        let body = BodyLength::Known(reply.body.len() as u64);
        self.write_head(&mut out, reply.status, reply.content_type, reply.fields, body);
        if self.codec.sends_body() {
            self.codec.write_data(&mut out, &reply.body);
        }
        let next = self.codec.finish(&mut out, b"");
        self.send(&out).await?;
        Ok(next)
    }

    /// Each piece that the client takes renews the deadline.
    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = timeout(WRITE_PROGRESS_DEADLINE, self.stream.write(bytes)).await;
            let written = written.map_err(|_| io::ErrorKind::TimedOut)??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Reply {
    fn json(status: u16, value: &impl serde::Serialize) -> Self {
        // Only a map with keys that are no strings could fail; there is none.
        let body = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
        Reply { status, content_type: JSON, fields: "", body }
    }

    fn metrics(families: &Families, format: TextFormat) -> Self {
        let content_type = match format {
            TextFormat::Prometheus => PROMETHEUS,
            TextFormat::OpenMetrics => OPEN_METRICS,
        };
        Reply { status: 200, content_type, fields: "", body: exposition::text(families, format).into() }
    }

    pub(super) fn error(status: u16, reason: &str) -> Self {
        Self::json(status, &json!({ "error": reason }))
    }

    fn refusal(refused: Refused) -> Self {
        match refused {
            Refused::NotFound => Self::error(404, "there is no such path here; see docs/control-api.md"),
            Refused::Method(wanted) => Reply {
                fields: if wanted == "POST" { "Allow: POST\r\n" } else { "Allow: GET, HEAD\r\n" },
                ..Self::error(405, &format!("this path wants {wanted}"))
            },
            Refused::Host => Self::error(
                421,
                "only localhost and the address itself are answered here, so that no web page can read it under a name \
                 of its own; ask by address",
            ),
            Refused::Origin => Self::error(403, "a page of another origin changes nothing here"),
            Refused::Token => Self::error(
                403,
                "a page changes something only with the token of the URL that `onehop dashboard` prints; open it again",
            ),
            Refused::Query => Self::error(
                400,
                "`from` and `to` are seconds since 1970, `from` before `to`; `site` is a label of /status",
            ),
        }
    }

    fn lost() -> Self {
        Self::error(500, "the call ended in a panic; the log has it")
    }
}

async fn carry_out(asked: Operation, format: TextFormat, api: &Arc<dyn Api>, token: &str) -> Reply {
    match asked {
        Operation::Health => Reply { status: 200, content_type: TEXT, fields: "", body: b"ok\n".to_vec() },
        Operation::Metrics => match call(api, |api| api.metrics()).await {
            Some(families) => Reply::metrics(&families, format),
            None => Reply::lost(),
        },
        Operation::Status => match call(api, |api| api.status()).await {
            Some(status) => Reply::json(200, &status),
            None => Reply::lost(),
        },
        Operation::Slow => match call(api, |api| api.slow()).await {
            Some(requests) => Reply::json(200, &json!({ "requests": requests })),
            None => Reply::lost(),
        },
        Operation::Frequent { site } => match call(api, move |api| api.frequent(&site)).await {
            Some(frequent) => Reply::json(200, &frequent),
            None => Reply::lost(),
        },
        Operation::Why { id } => match call(api, move |api| api.why(&id)).await {
            Some(Some(request)) => Reply::json(200, &request),
            Some(None) => Reply::error(404, NOT_RETAINED),
            None => Reply::lost(),
        },
        Operation::Certificates => match call(api, |api| api.certificates()).await {
            Some(certificates) => Reply::json(200, &certificates),
            None => Reply::lost(),
        },
        Operation::Revoke { name, reason } => match call(api, move |api| api.revoke(&name, reason)).await {
            Some(Ok(revoked)) => Reply::json(200, &revoked),
            Some(Err(reason)) => Reply::error(422, &reason),
            None => Reply::lost(),
        },
        // Lines of a HEAD request are left out by the codec.
        Operation::Logs { .. } => {
            let body = api.recent().read(0).text;
            Reply { status: 200, content_type: JSON_LINES, fields: "", body: body.into_bytes() }
        }
        Operation::Reload(restart) => match call(api, move |api| api.reload(restart)).await {
            Some(Ok(summary)) => Reply::json(200, &summary),
            Some(Err(reason)) => Reply::error(422, &reason),
            None => Reply::lost(),
        },
        Operation::Workers { app, wanted } => match call(api, move |api| api.workers(&app, wanted)).await {
            Some(Ok(status)) => Reply::json(200, &status),
            Some(Err(reason)) => Reply::error(422, &reason),
            None => Reply::lost(),
        },
        Operation::Roll(app) => match call(api, move |api| api.roll(&app)).await {
            Some(Ok(status)) => Reply::json(200, &status),
            Some(Err(reason)) => Reply::error(422, &reason),
            None => Reply::lost(),
        },
        Operation::Look(view) => match call(api, move |api| api.history(&view)).await {
            Some(Some(json)) => Reply { status: 200, content_type: JSON, fields: "", body: json.into() },
            Some(None) => Reply::error(
                404,
                "there is no such site, or the history is off (`history` in the global block)",
            ),
            None => Reply::lost(),
        },
        Operation::Live => Reply::error(503, "too many listen already"),
        Operation::Token => Reply::json(200, &json!({ "token": token })),
        Operation::Page(asset) => Reply {
            status: 200,
            content_type: asset.content_type,
            fields: page::FIELDS,
            body: asset.body.to_vec(),
        },
        Operation::PageMoved => {
            Reply { fields: "Location: /dashboard/\r\n", ..Reply::error(308, "it is at /dashboard/") }
        }
        Operation::Mark { begins } => match call(api, move |api| api.mark_load(begins)).await {
            Some(()) => Reply::json(200, &json!({ "marked": true })),
            None => Reply::lost(),
        },
        Operation::Stop => Reply::json(202, &json!({ "stopping": true })),
        Operation::Refused(refused) => Reply::refusal(refused),
    }
}

/// Off the runtime's thread, since a reload may read a large tree. `None` where the call panicked.
#[expect(clippy::disallowed_methods, reason = "the control plane's own thread, not a core's")]
async fn call<T: Send + 'static>(
    api: &Arc<dyn Api>,
    what: impl FnOnce(&dyn Api) -> T + Send + 'static,
) -> Option<T> {
    let api = Arc::clone(api);
    tokio::task::spawn_blocking(move || what(&*api)).await.ok()
}

fn limits() -> Limits {
    Limits {
        head_bytes: ADMIN_REQUEST_BYTES_MAX,
        target_bytes: TARGET_BYTES_MAX,
        fields: HEADER_FIELDS_MAX,
        ..Limits::default()
    }
}
