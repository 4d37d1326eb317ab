//! What an application sees of an exchange in HTTP, and what becomes of its answer.

use std::net::IpAddr;

use onehop_config::checked::AppRun;
use onehop_config::checked::proxy::ProxyFlush;
use onehop_http1::{AnswerBody, Refusal, ResponseHead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind, Voice};
use onehop_message::response::Response;

use super::super::file::Wanted;
use super::super::{Call, Place};
use super::ask;
use crate::request::context::RequestContext;
use crate::request::exchange::tunnel::Bounds;
use crate::request::exchange::{Cause, Lead, Passing, Turn};
use onehop_connection::RequestBody;
use onehop_connection::Slot;
use onehop_upstream::connection::{Buffers, Connection};
use onehop_workers::WorkerIndex;

/// One request to a program, over however many connections.
pub(super) struct Program<'a> {
    call: &'a Call<'a>,
    context: &'a RequestContext<'a>,
    /// Given back early by what may go on for ever.
    place: Option<Place<'a>>,
    /// Who answers.
    index: WorkerIndex,
    /// The file that the program wants sent.
    pub(super) wanted: Option<Wanted>,
}

impl<'a> Program<'a> {
    pub(super) fn new(call: &'a Call<'a>, context: &'a RequestContext<'a>, place: Place<'a>) -> Self {
        let index = place.worker.index;
        Self { call, context, place: Some(place), index, wanted: None }
    }
}

impl Lead for Program<'_> {
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
        connection: &Connection,
        upload: &RequestBody<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), Refusal> {
        ask::write(self.context, self.call.trust, connection, upload, buffers)
    }

    fn take_head(
        &mut self,
        head: &ResponseHead,
        body: Option<AnswerBody>,
        answer: &mut Response,
    ) -> Result<Turn, HttpError> {
        let kind = match body {
            None => Kind::Upgrade,
            Some(AnswerBody::Chunked) => Kind::Chunked,
            Some(_) => Kind::Plain,
        };
        forwarding::fill(head, &mut answer.fields, kind, Self::VOICE);
        if kind != Kind::Upgrade {
            self.wanted = Wanted::by_field(answer, self.call.pool);
        }
        Ok(match self.wanted {
            Some(_) => Turn::Instead,
            None => Turn::Pass(Passing { buffer: 0, decode: false, flush: ProxyFlush::AsItComes }),
        })
    }

    fn see_body(&mut self, beginning: &[u8]) {
        self.call.learn(self.index, beginning);
    }

    fn let_go(&mut self) {
        // The program has room for others meanwhile.
        self.place = None;
    }

    fn kept(&self) -> (Option<Slot>, Option<IpAddr>) {
        let kept = self.place.as_ref().map(|place| Slot::busy(place.pool.clone()));
        (kept, self.call.trust.client(self.context.request.head, &self.context.request.origin))
    }

    fn tunnel(&self) -> Bounds<'_> {
        Bounds {
            patience: self.call.core.connection.timeouts().body_progress,
            is_told: matches!(self.call.pool.app.run, AppRun::Handler { .. }),
            end: None,
        }
    }
}
