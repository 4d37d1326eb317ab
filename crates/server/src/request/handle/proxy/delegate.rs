//! What `reverse_proxy` sees of an exchange, and what becomes of the response.

use std::net::IpAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use onehop_http1::{AnswerBody, Known, Refusal, ResponseHead, Version};
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind, Voice};
use onehop_message::response::Response;

use super::Call;
use super::request_head;
use crate::limits::PROXY_ROUTE_LOOK_PERIOD;
use crate::request::context::RequestContext;
use crate::request::handle::header;
use onehop_connection::RequestBody;
use onehop_connection::Slot;
use onehop_upstream::Link;
use onehop_upstream::connection::Buffers;
use onehop_upstream::exchange::tunnel::Bounds;
use onehop_upstream::exchange::{Cause, Delegate, Passing, Turn};
use onehop_upstream::member::Member;

/// One request to one upstream, over however many connections.
pub(super) struct Forwarding<'a> {
    call: &'a Call<'a>,
    context: &'a RequestContext<'a>,
    member: &'a Member,
    started: Instant,
    /// The head that was written says that the client waits to be asked for its body.
    announces_continue: bool,
}

impl<'a> Forwarding<'a> {
    pub(super) fn new(
        call: &'a Call<'a>,
        context: &'a RequestContext<'a>,
        member: &'a Member,
        started: Instant,
    ) -> Self {
        Self { call, context, member, started, announces_continue: false }
    }

    /// RFC 9110 section 7.8: only to a protocol that was asked for.
    fn is_asked_for(&self, head: &ResponseHead) -> bool {
        let protocols = |values: Vec<&[u8]>| {
            let members = values.into_iter().flat_map(|value| value.split(|byte| *byte == b','));
            members.map(|protocol| protocol.trim_ascii().to_ascii_lowercase()).collect::<Vec<_>>()
        };
        let asked = protocols(self.context.request.head.get_all(Known::Upgrade).collect());
        protocols(head.get_all(Known::Upgrade).collect()).iter().all(|protocol| asked.contains(protocol))
    }

    fn fill(&self, head: &ResponseHead, body: AnswerBody, response: &mut Response) {
        let kind = if body == AnswerBody::Chunked { Kind::Chunked } else { Kind::Plain };
        forwarding::fill(head, &mut response.fields, kind, Self::VOICE);
        let proxy = self.call.proxy;
        let [_, expressions] = &proxy.expressions;
        header::change(&proxy.settings.answer_fields, expressions, self.context, &mut response.fields);
        // RFC 9110 section 7.6.3. Instead of a Server field: that is the upstream's.
        let via: &[u8] = match head.version() {
            Version::Http10 => b"Via: 1.0",
            Version::Http11 => b"Via: 1.1",
            Version::Http2 => b"Via: 2.0",
        };
        response.fields.add_parts(via, b" onehop");
    }

    /// Ends when `stream_timeout` is over, or `stream_close_delay` after the route is gone.
    fn end(&self) -> Option<Pin<Box<dyn Future<Output = ()> + '_>>> {
        let settings = &self.call.proxy.settings;
        let (timeout, delay) = (settings.stream_timeout, settings.stream_close_delay);
        if timeout.is_none() && delay.is_none() {
            return None;
        }
        Some(Box::pin(async move {
            tokio::select! {
                () = tokio::time::sleep(timeout.unwrap_or_default()), if timeout.is_some() => {}
                () = self.route_gone(delay.unwrap_or_default()), if delay.is_some() => {}
            }
        }))
    }

    /// Ends so long after a reload has taken the directive away. One that says the same is the same.
    async fn route_gone(&self, delay: Duration) {
        while (self.call.is_loaded)(self.call.proxy) {
            tokio::time::sleep(PROXY_ROUTE_LOOK_PERIOD).await;
        }
        tokio::time::sleep(delay).await;
    }
}

impl Delegate for Forwarding<'_> {
    const VOICE: Voice = Voice::Upstream;

    fn fault(cause: Cause) -> HttpError {
        match cause {
            Cause::Died => HttpError::UpstreamDied,
            Cause::Late => HttpError::UpstreamTimeout,
            Cause::Refused(refusal) => HttpError::UpstreamBroken(refusal),
        }
    }

    fn ask(
        &mut self,
        connection: &Link,
        request_body: &RequestBody<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), Refusal> {
        self.announces_continue =
            request_head::write(self.call, self.context, connection, request_body, buffers)?;
        Ok(())
    }

    fn announces_continue(&self) -> bool {
        self.announces_continue
    }

    fn take_head(
        &mut self,
        head: &ResponseHead,
        body: Option<AnswerBody>,
        response: &mut Response,
    ) -> Result<Turn, HttpError> {
        let settings = &self.call.proxy.settings;
        let most = settings.transport.max_response_header;
        if most.is_some_and(|most| head.raw_fields().len() as u64 > most) {
            return Err(HttpError::UpstreamBroken(Refusal::HeadTooLarge));
        }
        self.member.answered(head.status(), self.started, &settings.passive_health);
        let mut passing = Passing { buffer: 0, flush: settings.flush };
        match body {
            None if !self.is_asked_for(head) => {
                return Err(HttpError::UpstreamBroken(Refusal::UnexpectedAnswer));
            }
            None => forwarding::fill(head, &mut response.fields, Kind::Upgrade, Self::VOICE),
            Some(body) => {
                passing.buffer = settings.answer_buffer_bytes;
                self.fill(head, body, response);
            }
        }
        Ok(Turn::Pass(passing))
    }

    fn see_body(&mut self, _: &[u8]) {}

    fn let_go(&mut self) {
        // It counts among its upstream's requests for as long as it lasts.
    }

    fn kept(&self) -> (Option<Slot>, Option<IpAddr>) {
        let peer = &self.member.peer;
        let kept = peer.settings.connections_max.map(|_| Slot::busy(peer.clone()));
        (kept, self.call.trust.client(&self.context.request.head, &self.context.request.origin))
    }

    fn tunnel(&self) -> Bounds<'_> {
        Bounds {
            half_closed: self.call.pools.core().timeouts().body_progress,
            knows_of_stops: false,
            end: self.end(),
        }
    }
}
