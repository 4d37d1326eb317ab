//! What an application sees of an exchange in HTTP, and what becomes of its response.

use std::net::IpAddr;

use onehop_config::checked::AppRun;
use onehop_config::checked::proxy::ProxyFlush;
use onehop_http1::{AnswerBody, Refusal, ResponseHead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind, Voice};
use onehop_message::response::Response;

use super::request_head;
use crate::WorkerIndex;
use crate::call::{Call, HeldSlot};
use crate::file::NamedFile;
use onehop_connection::{RequestBody, Slot};
use onehop_upstream::Link;
use onehop_upstream::connection::Buffers;
use onehop_upstream::exchange::tunnel::Bounds;
use onehop_upstream::exchange::{Cause, Delegate, Passing, Turn};

/// One request to a program, over however many connections.
pub(super) struct Program<'a> {
    call: &'a Call<'a>,
    /// Freed early by responses that may last for ever.
    slot: Option<HeldSlot<'a>>,
    /// The worker that responds.
    index: WorkerIndex,
    /// The file that the program wants sent.
    pub(super) wanted: Option<NamedFile>,
}

impl<'a> Program<'a> {
    pub(super) fn new(call: &'a Call<'a>, slot: HeldSlot<'a>) -> Self {
        let index = slot.worker.index;
        Self { call, slot: Some(slot), index, wanted: None }
    }
}

impl Delegate for Program<'_> {
    const VOICE: Voice = Voice::App;

    fn fault(cause: Cause) -> HttpError {
        match cause {
            Cause::Died => HttpError::WorkerDied,
            Cause::Late => HttpError::WorkerTimeout,
            Cause::Refused(refusal) => HttpError::AnswerRefused(refusal),
        }
    }

    fn ask(
        &mut self,
        connection: &Link,
        request_body: &RequestBody<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), Refusal> {
        request_head::write(self.call.request, self.call.trust, connection, request_body, buffers)
    }

    fn take_head(
        &mut self,
        head: &ResponseHead,
        body: Option<AnswerBody>,
        response: &mut Response,
    ) -> Result<Turn, HttpError> {
        let kind = match body {
            None => Kind::Upgrade,
            Some(AnswerBody::Chunked) => Kind::Chunked,
            Some(_) => Kind::Plain,
        };
        forwarding::fill(head, &mut response.fields, kind, Self::VOICE);
        self.call.add_cookie(response);
        if kind != Kind::Upgrade {
            self.wanted = NamedFile::by_field(response, self.call.pool);
        }
        Ok(match self.wanted {
            Some(_) => Turn::Instead,
            None => Turn::Pass(Passing { buffer: 0, flush: ProxyFlush::AsItComes }),
        })
    }

    fn see_body(&mut self, beginning: &[u8]) {
        self.call.learn(self.index, beginning);
    }

    fn let_go(&mut self) {
        // Others can have its slot meanwhile.
        self.slot = None;
    }

    fn kept(&self) -> (Option<Slot>, Option<IpAddr>) {
        (self.slot.as_ref().map(HeldSlot::busy), self.call.client())
    }

    fn tunnel(&self) -> Bounds<'_> {
        Bounds {
            half_closed: self.call.core.timeouts().body_progress,
            knows_of_stops: matches!(self.call.pool.app.run, AppRun::Handler { .. }),
            end: None,
        }
    }
}
