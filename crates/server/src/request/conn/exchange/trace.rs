//! Exports the span of a traced request.

use std::borrow::Cow;
use std::time::SystemTime;

use onehop_message::error::HttpError;
use onehop_metrics::counters::OTHER;
use onehop_metrics::site::{Delivery, Exemplar};
use onehop_otlp::Span;
use onehop_otlp::span::Value;

use super::Exchange;
use super::retain::Outcome;
use crate::request::tracing::Traced;

impl Exchange {
    /// Exports the request's span, if it has one that is sampled, and shows its id among the metrics.
    pub(super) fn trace(&self, outcome: &Outcome<'_>) {
        let Some((context, traced)) = &outcome.served.traced else { return };
        let Some(traces) = self.core.shared.traces().filter(|_| context.is_sampled()) else { return };
        let Outcome { response, view, served, took, .. } = *outcome;
        // Only what counts among the durations is an example of them.
        let is_usual = matches!(served.delivery, Delivery::Whole | Delivery::Pieces { .. });
        if is_usual && !served.error.is_some_and(HttpError::is_shed) {
            let (trace_id, span_id) = (context.trace_id, context.span_id);
            let exemplar = Exemplar { trace_id, span_id, took, at: SystemTime::now() };
            self.core.site_counters(view, served.site).exemplify(served.at, exemplar);
        }
        let span = Span {
            context: (**context).clone(),
            name: String::from_utf8_lossy(&traced.name).into_owned(),
            start: SystemTime::now().checked_sub(took).unwrap_or(SystemTime::UNIX_EPOCH),
            took,
            attributes: self.attributes(outcome, traced),
            has_failed: response.status >= 500,
        };
        traces.add(span, &traced.export);
    }

    /// Names are those of OpenTelemetry's semantic conventions for HTTP servers
    /// (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>). No query and no field but `User-Agent`: they may hold
    /// secrets.
    fn attributes(&self, outcome: &Outcome<'_>, traced: &Traced) -> Vec<(Cow<'static, str>, Value)> {
        let Outcome { head, response, view, served, sent, .. } = *outcome;
        let site =
            served.site.and_then(|number| view.snapshot.sites.get(number)).map_or(OTHER, |site| &*site.label);
        let route = self.core.site_counters(view, served.site).route_names().name(served.at.route);
        let mut attributes = vec![
            ("http.request.method", Value::text(head.method_bytes())),
            ("url.scheme", Value::text(self.origin.scheme().as_bytes())),
            ("url.path", Value::text(head.path())),
            ("http.response.status_code", Value::Number(response.status.into())),
            ("http.response.body.size", Value::Number(sent)),
            ("network.protocol.version", Value::text(head.version().number().as_bytes())),
            ("http.route", Value::text(route.as_bytes())),
            ("onehop.site", Value::text(site.as_bytes())),
            ("onehop.handler", Value::text(served.at.handler.name().as_bytes())),
        ];
        let status = (response.status >= 500).then(|| response.status.to_string());
        let error = served.error.map(|error| error.name().to_owned()).or(status);
        let peer = self.origin.peer.map(|peer| peer.ip().to_canonical().to_string());
        for (name, text) in [
            ("server.address", head.host()),
            ("user_agent.original", head.find("user-agent")),
            ("network.peer.address", peer.as_deref().map(str::as_bytes)),
            ("onehop.upstream", served.upstream.as_ref().map(|member| member.name.as_bytes())),
            ("error.type", error.as_deref().map(str::as_bytes)),
        ] {
            attributes.extend(text.map(|text| (name, Value::text(text))));
        }
        if let Some(timing) = served.timing.as_deref() {
            let times = [
                ("onehop.queue_ms", timing.queue.get()),
                ("onehop.connect_ms", timing.connect.get()),
                ("onehop.first_byte_ms", timing.first_byte.get()),
            ];
            attributes.extend(times.map(|(name, time)| (name, Value::milliseconds(time))));
        }
        let own = traced.attributes.iter().map(|(name, value)| (name.clone().into(), Value::text(value)));
        let attributes = attributes.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
        attributes.chain(own).collect()
    }
}
