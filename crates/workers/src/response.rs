//! Receives the worker's response and sends it to the client.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use onehop_connection::response_writer::gone;
use onehop_connection::{Ended, ResponseWriter, Sent};
use onehop_http1::{BodyLength, Method};
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind};
use onehop_message::response::{Body, Response};
use onehop_wire::limits::FREE_BODY_BYTES;
use onehop_wire::{self as wire, Payload, ResetCode};
use tokio::sync::Notify;

use crate::call::{Call, HeldSlot};
use crate::file::{self, NamedFile};
use crate::head;
use crate::stream::{Stream, next_frame};
use crate::worker::WorkerIndex;

/// How a response ended.
pub(crate) enum Received {
    /// The exchange is over.
    Ended(Ended),
    /// The head of an upgrade is out; a tunnel follows.
    Upgraded,
}

/// The state of one response.
struct Receiving<'a, 'h, 'l, 'c> {
    call: &'a Call<'a>,
    stream: &'a Stream,
    writer: &'a mut ResponseWriter<'l, 'c>,
    response: &'h mut Response,
    continued: &'a Notify,
    /// Freed early by responses that may last for ever.
    slot: Option<HeldSlot<'a>>,
    /// The worker that responds.
    index: WorkerIndex,
    /// Nothing of the body has come yet.
    is_first: bool,
    /// Bytes of the body that are still to come, where its length is known.
    owed: Option<u64>,
    /// The response has no body, whatever the worker sends.
    is_bodiless: bool,
    /// The last bytes of a file wait for the frame that ends the response. A client that has all of its bytes may leave,
    /// and the application would see a client that left too early.
    holds_last: bool,
    /// Ends a response that would last for ever, some time after the server begins to stop.
    shutdown_grace: Option<Pin<Box<dyn Future<Output = ()> + 'c>>>,
}

/// How waiting for a response's frames ended.
enum Arrived {
    Frames,
    /// The server stops, and the response would last for ever.
    ShutdownGraceOver,
}

/// Receives the response's frames and sends what they carry. Ends with a whole response that was not sent, with one that
/// was, or with an error.
pub(crate) async fn receive(
    call: &Call<'_>,
    stream: &Stream,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
    continued: &Notify,
    slot: HeldSlot<'_>,
) -> Result<Received, HttpError> {
    writer.expect_handler_within(call.pool.app.timeout);
    let index = slot.worker.index;
    let mut receiving = Receiving {
        call,
        stream,
        writer,
        response,
        continued,
        slot: Some(slot),
        index,
        is_first: true,
        owed: None,
        is_bodiless: false,
        holds_last: false,
        shutdown_grace: None,
    };
    let mut frames = Vec::new();
    loop {
        if let Arrived::ShutdownGraceOver = receiving.wait(&mut frames).await? {
            receiving.writer.whole(&[])?;
            return Ok(receiving.over());
        }
        let mut rest = &frames[..];
        while let Some((frame, used)) = next_frame(rest) {
            if let Some(received) = receiving.take(frame).await? {
                if matches!(received, Received::Upgraded) {
                    stream.unread(rest.get(used..).unwrap_or_default());
                }
                stream.return_buffer(frames);
                return Ok(received);
            }
            rest = rest.get(used..).unwrap_or_default();
        }
        if !receiving.holds_last {
            receiving.writer.flush().await.map_err(gone)?;
        }
    }
}

impl Receiving<'_, '_, '_, '_> {
    async fn wait(&mut self, frames: &mut Vec<u8>) -> Result<Arrived, HttpError> {
        poll_fn(|context| {
            if let Poll::Ready(ready) = self.stream.poll_frames(frames, context) {
                return Poll::Ready(ready.map(|()| Arrived::Frames).map_err(|_| HttpError::WorkerDied));
            }
            if let Some(shutdown_grace) = &mut self.shutdown_grace
                && shutdown_grace.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(Arrived::ShutdownGraceOver));
            }
            if self.writer.state() == Sent::Nothing && self.writer.poll_late(context) {
                return Poll::Ready(Err(HttpError::WorkerTimeout));
            }
            Poll::Pending
        })
        .await
    }

    /// One frame; `Some` where it was the last one of interest.
    async fn take(&mut self, frame: wire::Frame<'_>) -> Result<Option<Received>, HttpError> {
        self.holds_last = false;
        match frame.payload {
            Payload::Response(response) => self.take_head(response, frame.end).await,
            Payload::Data(data) => self.take_data(data, frame.end).await,
            Payload::Trailers(_) if self.owes() => Err(HttpError::WorkerBroken),
            Payload::Trailers(block) => {
                let lines = head::plain_lines(block).map_err(|_| HttpError::WorkerBroken)?;
                self.writer.whole(lines.lines())?;
                Ok(Some(self.over()))
            }
            Payload::Informational(informational) if informational.status == 100 => {
                self.writer.send_continue().await.map_err(gone)?;
                self.continued.notify_one();
                Ok(None)
            }
            Payload::Informational(informational) => {
                let lines = head::plain_lines(informational.head).map_err(|_| HttpError::WorkerBroken)?;
                let sent = self.writer.informational(informational.status, lines.lines()).await;
                sent.map_err(gone)?;
                Ok(None)
            }
            Payload::File(file) => {
                self.response.clear();
                head::read_response(file.head, &mut self.response.fields, Kind::Plain)
                    .map_err(|_| HttpError::WorkerBroken)?;
                let named = NamedFile {
                    status: file.status,
                    offset: file.offset,
                    length: file.length,
                    path: file.path.to_vec(),
                };
                file::open(self.call.request, self.call.pool, named, self.response).await?;
                self.call.finish(self.response);
                Ok(Some(Received::Ended(Ended::Complete)))
            }
            Payload::FilePart(part) => {
                let sent = self.pass_on_file(&part).await?;
                self.holds_last = self.owed == Some(0);
                if !self.holds_last {
                    self.writer.flush().await.map_err(gone)?;
                }
                self.stream.file_sent(sent);
                Ok(None)
            }
            Payload::Reset(ResetCode::Refused) => Err(HttpError::WorkerRefused),
            Payload::Reset(ResetCode::HangUp) => Err(HttpError::HungUp),
            Payload::Reset(_) => Err(HttpError::HandlerFailed),
            // The connection lets nothing else through.
            _ => Err(HttpError::WorkerBroken),
        }
    }

    async fn take_head(
        &mut self,
        frame: wire::Response<'_>,
        end: bool,
    ) -> Result<Option<Received>, HttpError> {
        let response = &mut *self.response;
        response.clear();
        response.status = frame.status;
        let is_upgrade = frame.status == 101;
        let kind = match frame.length {
            _ if is_upgrade => Kind::Upgrade,
            None if !end => Kind::Chunked,
            _ => Kind::Plain,
        };
        let field_length = head::read_response(frame.head, &mut response.fields, kind)
            .map_err(|_| HttpError::WorkerBroken)?;
        if is_upgrade {
            return self.upgrade().await;
        }
        let is_head = self.call.request.head.method() == Method::Head;
        let is_withheld = is_head || frame.status == 304;
        self.is_bodiless = is_withheld || frame.status == 204;
        let length = frame.length.or(field_length.filter(|_| is_withheld));
        if end && frame.body.is_empty() && !self.is_bodiless && length.is_some_and(|length| length > 0) {
            return Err(HttpError::WorkerBroken);
        }
        if end {
            // What is short is not counted.
            self.call.learn(self.index, frame.body);
            let counted = if frame.body.len() <= FREE_BODY_BYTES { 0 } else { frame.body.len() };
            if let Some(named) = NamedFile::by_field(response, self.call.pool) {
                self.stream.consumed(counted);
                file::open(self.call.request, self.call.pool, named, response).await?;
            } else {
                whole(response, frame.body, length, is_withheld);
                self.stream.consumed(counted);
            }
            self.call.finish(response);
            return Ok(Some(Received::Ended(Ended::Complete)));
        }
        let body = length.map_or(BodyLength::Chunked, BodyLength::Known);
        self.writer.encode(self.call.edits, response, body);
        self.call.finish(response);
        if response.is_event_stream() {
            // It may last for ever; others can have its slot meanwhile.
            self.slot = None;
            self.shutdown_grace = Some(Box::pin(self.writer.shutdown_grace_over()));
        }
        let slot = self.slot.as_ref().map(HeldSlot::yielding);
        self.writer.keep_slot(slot, self.call.client());
        self.owed = length;
        // A client that waits for 100 has its final response: a body that it sends now is passed on.
        self.continued.notify_one();
        self.writer.head(response, body);
        self.pass_on(frame.body).await?;
        Ok(None)
    }

    async fn take_data(&mut self, data: &[u8], end: bool) -> Result<Option<Received>, HttpError> {
        self.pass_on(data).await?;
        if !end {
            return Ok(None);
        }
        if self.owes() {
            return Err(HttpError::WorkerBroken);
        }
        self.writer.whole(&[])?;
        Ok(Some(self.over()))
    }

    /// Sends bytes of the body and lets the worker send as many more.
    async fn pass_on(&mut self, data: &[u8]) -> Result<(), HttpError> {
        if !self.is_bodiless && !data.is_empty() {
            if std::mem::take(&mut self.is_first) {
                self.call.learn(self.index, data);
            }
            if let Some(owed) = &mut self.owed {
                // More than the head declares would be read as the next response.
                *owed = owed.checked_sub(data.len() as u64).ok_or(HttpError::WorkerBroken)?;
            }
            self.writer.data(data).await.map_err(gone)?;
        }
        self.stream.consumed(data.len());
        Ok(())
    }

    /// Sends bytes of a file as those of the body. Fewer than the worker requests where the file does not have them, none
    /// where it is not found: the worker, which has it open, sends the rest itself.
    async fn pass_on_file(&mut self, part: &wire::FilePart<'_>) -> Result<u64, HttpError> {
        if self.owed.is_some_and(|owed| owed < part.length) {
            return Err(HttpError::WorkerBroken);
        }
        if self.is_bodiless {
            return Ok(0);
        }
        let Some(mut source) = file::part(self.call.pool, part).await else { return Ok(0) };
        let mut sent = 0;
        while let Some(bytes) = source.next().await {
            self.writer.data(bytes).await.map_err(gone)?;
            sent += bytes.len() as u64;
        }
        self.owed = self.owed.map(|owed| owed.saturating_sub(sent));
        Ok(sent)
    }

    async fn upgrade(&mut self) -> Result<Option<Received>, HttpError> {
        // RFC 9110 section 15.2.2: only to a protocol that the client requests.
        if !forwarding::asks_for_upgrade(&self.call.request.head)
            || self.response.fields.get("upgrade").is_none()
        {
            return Err(HttpError::WorkerBroken);
        }
        self.call.finish(self.response);
        self.slot = None;
        self.writer.head(self.response, BodyLength::None);
        self.writer.flush().await.map_err(gone)?;
        Ok(Some(Received::Upgraded))
    }

    /// Whether less of the body came than the head declares.
    fn owes(&self) -> bool {
        self.owed.is_some_and(|owed| owed > 0) && !self.is_bodiless
    }

    fn over(&self) -> Received {
        Received::Ended(Ended::Sent)
    }
}

/// Completes a response whose body came with its head.
fn whole(response: &mut Response, body: &[u8], length: Option<u64>, is_withheld: bool) {
    response.body = match (body.is_empty(), is_withheld) {
        (_, true) => Body::Withheld(length.or(Some(body.len() as u64).filter(|length| *length > 0))),
        (true, false) => Body::Empty,
        (false, false) => Body::Bytes(body.to_vec()),
    };
}
