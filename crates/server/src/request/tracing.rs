//! `tracing`: the request is a span of its trace, and what becomes of it is exported.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use onehop_config::checked::{TraceExport, Tracing};
use onehop_http1::RequestHead;
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_message::trace_context::{self, SpanContext, TRACEPARENT};
use onehop_traces::Span;
use onehop_traces::span::Value;

use super::Served;

/// A request that is a span.
#[derive(Debug)]
pub struct Traced {
    context: SpanContext,
    /// The span's name.
    name: Vec<u8>,
    export: Arc<TraceExport>,
}

impl Traced {
    /// Begins a span with this name, else the method's. A `traceparent` that came twice names two callers, and is malformed.
    pub(crate) fn begin(tracing: &Tracing, head: &RequestHead, name: Option<Vec<u8>>) -> Self {
        let mut fields = head.find_all(TRACEPARENT);
        let parent = fields.next().filter(|_| fields.next().is_none()).and_then(trace_context::read);
        let sampler = tracing.sampler;
        let is_sampled = |of_caller: Option<bool>, part: u64| match of_caller {
            Some(decided) if sampler.follows_parent => decided,
            _ => part < sampler.of_2_to_56,
        };
        let context = SpanContext::begin(parent, (fastrand::u128(..), fastrand::u64(..)), is_sampled);
        let name = name.unwrap_or_else(|| head.method_bytes().to_vec());
        Self { context, name, export: Arc::clone(&tracing.export) }
    }

    /// Its place in the trace.
    pub(crate) fn context(&self) -> &SpanContext {
        &self.context
    }

    /// The trace, as 32 hexadecimal digits.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.context.trace_id)
    }
}

/// What is known of a request when it is over.
pub(crate) struct Outcome<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) origin: &'a Origin,
    pub(crate) response: &'a Response,
    pub(crate) site: &'a str,
    pub(crate) sent: u64,
    pub(crate) took: Duration,
}

impl Served {
    /// The span to be exported, and where it goes. Names of attributes are those of OpenTelemetry's semantic conventions for HTTP
    /// servers (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>). No query and no field but `User-Agent`: they may
    /// hold secrets.
    pub(crate) fn span(&self, outcome: &Outcome<'_>) -> Option<(Span, &Arc<TraceExport>)> {
        let traced = self.traced.as_deref().filter(|traced| traced.context.is_sampled())?;
        let Outcome { head, origin, response, site, sent, took } = *outcome;
        let mut attributes = vec![
            ("http.request.method", Value::text(head.method_bytes())),
            ("url.scheme", Value::text(origin.scheme().as_bytes())),
            ("url.path", Value::text(head.path())),
            ("http.response.status_code", Value::Number(response.status.into())),
            ("http.response.body.size", Value::Number(sent)),
            ("network.protocol.version", Value::text(head.version().number().as_bytes())),
            ("onehop.site", Value::text(site.as_bytes())),
            ("onehop.handler", Value::text(self.handler.name().as_bytes())),
        ];
        let texts = [("server.address", head.host()), ("user_agent.original", head.find("user-agent"))];
        attributes.extend(texts.into_iter().filter_map(|(name, value)| Some((name, Value::text(value?)))));
        if let Some(peer) = origin.peer {
            attributes.push(("network.peer.address", Value::Text(peer.ip().to_canonical().to_string())));
        }
        if let Some(upstream) = &self.upstream {
            attributes.push(("onehop.upstream", Value::text(upstream.name.as_bytes())));
        }
        if let Some(timing) = self.timing.as_deref() {
            let times = [
                ("onehop.queue_ms", timing.queue.get()),
                ("onehop.connect_ms", timing.connect.get()),
                ("onehop.first_byte_ms", timing.first_byte.get()),
            ];
            attributes.extend(times.map(|(name, time)| (name, Value::milliseconds(time))));
        }
        let has_failed = response.status >= 500;
        if let Some(error) = self.error {
            attributes.push(("error.type", Value::text(error.name().as_bytes())));
        } else if has_failed {
            attributes.push(("error.type", Value::Text(response.status.to_string())));
        }
        let name = String::from_utf8_lossy(&traced.name).into_owned();
        let start = SystemTime::now().checked_sub(took).unwrap_or(SystemTime::UNIX_EPOCH);
        let span = Span { context: traced.context.clone(), name, start, took, attributes, has_failed };
        Some((span, &traced.export))
    }
}
