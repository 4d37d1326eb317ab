//! The worker's answer on its way to the client.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use onehop_http1::BodyLength;
use onehop_http1::Method;
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind};
use onehop_message::response::Response;
use onehop_wire::limits::FREE_BODY_BYTES;
use onehop_wire::{self as wire, Payload, ResetCode};
use tokio::sync::Notify;

use super::head;
use super::{Call, Place, whole};
use crate::request::context::RequestContext;
use onehop_connection::Ended;
use onehop_connection::response_writer::gone;
use onehop_connection::{ResponseWriter, Sent};
use onehop_workers::WorkerIndex;
use onehop_workers::stream::{Stream, next_frame};

/// What came of an answer.
pub(super) enum Received {
    /// It is over.
    Ended(Ended),
    /// The head of an upgrade is out; a tunnel follows.
    Upgraded,
}

/// The state of one answer.
struct Receiving<'a, 't, 'h, 'l, 'c> {
    call: &'a Call<'a>,
    context: &'a mut RequestContext<'t>,
    stream: &'a Stream,
    download: &'a mut ResponseWriter<'l, 'c>,
    answer: &'h mut Response,
    continued: &'a Notify,
    /// Given back early by answers that may go on for ever.
    place: Option<Place<'a>>,
    /// Who answers.
    index: WorkerIndex,
    /// Nothing of the body has come yet.
    is_first: bool,
    /// What the body still owes, where its length is known.
    owed: Option<u64>,
    /// The answer has no body, whatever the worker sends.
    is_bodiless: bool,
    /// The last bytes of a file wait for the worker's word that the answer is at its end. A client that has all
    /// of its bytes may leave, and the application would hear of one that had gone too early.
    holds_last: bool,
    /// Ends an answer that would go on for ever, some time after the server began to stop.
    farewell: Option<Pin<Box<dyn Future<Output = ()> + 'c>>>,
}

/// What came of waiting for an answer's frames.
enum Came {
    Frames,
    /// The server stops, and the answer would go on for ever.
    Farewell,
}

/// Takes the answer's frames and sends what they say. Ends with a whole answer that was not sent, with one
/// that was, or with a fault.
pub(super) async fn receive(
    call: &Call<'_>,
    context: &mut RequestContext<'_>,
    stream: &Stream,
    download: &mut ResponseWriter<'_, '_>,
    answer: &mut Response,
    continued: &Notify,
    place: Place<'_>,
) -> Result<Received, HttpError> {
    download.expect_handler_within(call.pool.app.timeout);
    let index = place.worker.index;
    let mut receiving = Receiving {
        call,
        context,
        stream,
        download,
        answer,
        continued,
        place: Some(place),
        index,
        is_first: true,
        owed: None,
        is_bodiless: false,
        holds_last: false,
        farewell: None,
    };
    let mut frames = Vec::new();
    loop {
        if let Came::Farewell = receiving.wait(&mut frames).await? {
            receiving.download.whole(&[])?;
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
            receiving.download.flush().await.map_err(gone)?;
        }
    }
}

impl Receiving<'_, '_, '_, '_, '_> {
    async fn wait(&mut self, frames: &mut Vec<u8>) -> Result<Came, HttpError> {
        poll_fn(|context| {
            if let Poll::Ready(ready) = self.stream.poll_frames(frames, context) {
                return Poll::Ready(ready.map(|()| Came::Frames).map_err(|_| HttpError::WorkerDied));
            }
            if let Some(farewell) = &mut self.farewell
                && farewell.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(Came::Farewell));
            }
            if self.download.state() == Sent::Nothing && self.download.poll_late(context) {
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
                self.download.whole(lines.lines())?;
                Ok(Some(self.over()))
            }
            Payload::Informational(informational) if informational.status == 100 => {
                self.download.send_continue().await.map_err(gone)?;
                self.continued.notify_one();
                Ok(None)
            }
            Payload::Informational(informational) => {
                let lines = head::plain_lines(informational.head).map_err(|_| HttpError::WorkerBroken)?;
                let sent = self.download.informational(informational.status, lines.lines()).await;
                sent.map_err(gone)?;
                Ok(None)
            }
            Payload::File(file) => {
                self.answer.clear();
                head::read_answer(file.head, &mut self.answer.fields, Kind::Plain)
                    .map_err(|_| HttpError::WorkerBroken)?;
                let wanted = super::file::Wanted {
                    status: file.status,
                    offset: file.offset,
                    length: file.length,
                    path: file.path.to_vec(),
                };
                super::file::open(self.context, self.call.pool, wanted, self.answer).await?;
                self.context.finish(self.answer);
                Ok(Some(Received::Ended(Ended::Complete)))
            }
            Payload::FilePart(part) => {
                let sent = self.pass_on_file(&part).await?;
                self.holds_last = self.owed == Some(0);
                if !self.holds_last {
                    self.download.flush().await.map_err(gone)?;
                }
                self.stream.file_sent(sent);
                Ok(None)
            }
            Payload::Reset(ResetCode::Refused) => Err(HttpError::WorkerRefused),
            Payload::Reset(ResetCode::HangUp) => Err(HttpError::HungUp),
            Payload::Reset(_) => Err(HttpError::HandlerFailed),
            // The lane lets nothing else through.
            _ => Err(HttpError::WorkerBroken),
        }
    }

    async fn take_head(
        &mut self,
        response: wire::Response<'_>,
        end: bool,
    ) -> Result<Option<Received>, HttpError> {
        let answer = &mut *self.answer;
        answer.clear();
        answer.status = response.status;
        let is_upgrade = response.status == 101;
        let kind = match response.length {
            _ if is_upgrade => Kind::Upgrade,
            None if !end => Kind::Chunked,
            _ => Kind::Plain,
        };
        let field_length = head::read_answer(response.head, &mut answer.fields, kind)
            .map_err(|_| HttpError::WorkerBroken)?;
        if is_upgrade {
            return self.upgrade().await;
        }
        let is_head = self.context.request.head.method() == Method::Head;
        let is_withheld = is_head || response.status == 304;
        self.is_bodiless = is_withheld || response.status == 204;
        let length = response.length.or(field_length.filter(|_| is_withheld));
        if end && response.body.is_empty() && !self.is_bodiless && length.is_some_and(|length| length > 0) {
            return Err(HttpError::WorkerBroken);
        }
        if end {
            // What is short is not counted.
            self.call.learn(self.index, response.body);
            let counted = if response.body.len() <= FREE_BODY_BYTES { 0 } else { response.body.len() };
            if let Some(wanted) = super::file::Wanted::by_field(answer, self.call.pool) {
                self.stream.consumed(counted);
                super::file::open(self.context, self.call.pool, wanted, answer).await?;
            } else {
                whole(answer, response.body, length, is_withheld);
                self.stream.consumed(counted);
            }
            self.context.finish(answer);
            return Ok(Some(Received::Ended(Ended::Complete)));
        }
        let body = length.map_or(BodyLength::Chunked, BodyLength::Known);
        self.download.encode(self.context, answer, body);
        self.context.finish(answer);
        if answer.is_event_stream() {
            // It may go on for ever; the worker has room for others meanwhile.
            self.place = None;
            self.farewell = Some(Box::pin(self.download.shutdown_grace_over()));
        }
        let kept = self.place.as_ref().map(|place| place.slot());
        self.download
            .keep_slot(kept, self.call.trust.client(self.context.request.head, &self.context.request.origin));
        self.owed = length;
        // Whoever waits to be asked for its body has its final answer: what it sends now is sent on.
        self.continued.notify_one();
        self.download.head(answer, body);
        self.pass_on(response.body).await?;
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
        self.download.whole(&[])?;
        Ok(Some(self.over()))
    }

    /// Sends bytes of the body and lets the worker send as many more.
    async fn pass_on(&mut self, data: &[u8]) -> Result<(), HttpError> {
        if !self.is_bodiless && !data.is_empty() {
            if std::mem::take(&mut self.is_first) {
                self.call.learn(self.index, data);
            }
            if let Some(owed) = &mut self.owed {
                // More than was promised would be read as the next answer.
                *owed = owed.checked_sub(data.len() as u64).ok_or(HttpError::WorkerBroken)?;
            }
            self.download.data(data).await.map_err(gone)?;
        }
        self.stream.consumed(data.len());
        Ok(())
    }

    /// Sends bytes of a file as those of the body. Fewer than were asked for where the file does not have them,
    /// none where it is not found: the worker, which has it open, sends the rest itself.
    async fn pass_on_file(&mut self, part: &wire::FilePart<'_>) -> Result<u64, HttpError> {
        if self.owed.is_some_and(|owed| owed < part.length) {
            return Err(HttpError::WorkerBroken);
        }
        if self.is_bodiless {
            return Ok(0);
        }
        let Some(mut source) = super::file::part(self.call.pool, part).await else { return Ok(0) };
        let mut sent = 0;
        while let Some(bytes) = source.next().await {
            self.download.data(bytes).await.map_err(gone)?;
            sent += bytes.len() as u64;
        }
        self.owed = self.owed.map(|owed| owed.saturating_sub(sent));
        Ok(sent)
    }

    async fn upgrade(&mut self) -> Result<Option<Received>, HttpError> {
        // RFC 9110 section 15.2.2: only what was asked for.
        if !forwarding::asks_for_upgrade(self.context.request.head)
            || self.answer.fields.get("upgrade").is_none()
        {
            return Err(HttpError::WorkerBroken);
        }
        self.context.finish(self.answer);
        self.place = None;
        self.download.head(self.answer, BodyLength::None);
        self.download.flush().await.map_err(gone)?;
        Ok(Some(Received::Upgraded))
    }

    /// Whether less came than was promised.
    fn owes(&self) -> bool {
        self.owed.is_some_and(|owed| owed > 0) && !self.is_bodiless
    }

    fn over(&self) -> Received {
        Received::Ended(Ended::Sent)
    }
}
