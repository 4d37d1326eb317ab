//! An upstream's response on its way to the client.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use onehop_http1::{AnswerBody, AnswerRead, BodyLength, BodyRead, Known, Method, Refusal, ResponseHead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::{self, Kind};
use onehop_message::response::{Body, Fields, Response};

use super::response_body::Sending;
use super::{Broke, Cause, Delegate, Exchange, HeadFrom, Passing, Received, Signals, Taken, Turn, over};
use crate::limits::READ_BYTES_MAX;
use onehop_connection::Ended;
use onehop_connection::ResponseWriter;
use onehop_connection::buffers::Input;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::{COMPRESSED_ON_THE_SPOT_BYTES_MAX, READ_BUFFER_BYTES};
use onehop_connection::response_writer::gone;

/// Where an response comes from.
pub(super) struct Taking<'a> {
    exchange: &'a Exchange<'a>,
    input: &'a mut Input,
    head: &'a mut ResponseHead,
    signals: &'a Signals,
    /// The client waits to be asked for its body.
    expects_continue: bool,
    /// For pauses within the body.
    reading: Option<Deadline>,
}

/// What came of waiting for a head.
enum Came {
    Bytes(io::Result<usize>),
    /// The upstream has not asked for the body in time.
    Unasked,
}

/// What of a body is in the buffer.
#[derive(PartialEq, Eq)]
enum Ready {
    Some,
    Nothing,
    End,
}

/// Takes the response and sends it on. Ends with a whole response that was not sent, with one that was, or with
/// a reason.
pub(super) async fn receive<L: Delegate>(
    mut taking: Taking<'_>,
    delegate: &mut L,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Taken, Broke> {
    let is_upgrade = taking.take_heads::<L>(writer).await?;
    taking.exchange.connection.note_keep_alive(taking.head);
    response.clear();
    response.status = taking.head.status();
    if is_upgrade {
        delegate.take_head(taking.head, None, response)?;
        taking.exchange.edits.finish(response);
        delegate.let_go();
        writer.head(response, BodyLength::None);
        writer.flush().await.map_err(gone)?;
        return Ok(Taken::Upgraded);
    }
    let body = taking.exchange.connection.codec().answer_body();
    let received = match delegate.take_head(taking.head, Some(body), response)? {
        Turn::Instead => {
            // A body that nobody wants is read as far as it is there; with more of it the connection ends.
            while taking.take_ready::<L>(&mut Vec::new())? == Ready::Some {}
            Received::Instead
        }
        Turn::Pass(passing) => {
            Received::Ended(taking.take_answer(delegate, body, passing, writer, response).await?)
        }
    };
    Ok(Taken::Received(received))
}

impl<'a> Taking<'a> {
    pub(super) fn new(
        exchange: &'a Exchange<'a>,
        input: &'a mut Input,
        head: &'a mut ResponseHead,
        signals: &'a Signals,
        expects_continue: bool,
    ) -> Self {
        Self { exchange, input, head, signals, expects_continue, reading: None }
    }

    /// Reads up to the final head, passing informational ones on; `true` where another protocol follows.
    async fn take_heads<L: Delegate>(&mut self, writer: &mut ResponseWriter<'_, '_>) -> Result<bool, Broke> {
        let mut is_silent = true;
        let asking = self.exchange.timeouts.asking.filter(|_| self.expects_continue);
        // Few wait for that, and a timer is large.
        let mut unasked = asking.map(|time| Box::pin(over(Some(time))));
        let mut may_ask = unasked.is_some();
        writer.expect_handler_within(self.head_timeout());
        loop {
            let read = self.exchange.connection.codec().read_head(self.input.unread(), self.head);
            match read.map_err(broken::<L>)? {
                Some(AnswerRead::Final { consumed }) => {
                    self.input.consume(consumed);
                    return Ok(false);
                }
                Some(AnswerRead::Tunnel { consumed }) => {
                    self.input.consume(consumed);
                    return Ok(true);
                }
                Some(AnswerRead::Informational { consumed }) => {
                    self.input.consume(consumed);
                    is_silent = false;
                    may_ask &= self.head.status() != 100;
                    Box::pin(self.inform::<L>(writer)).await?;
                    writer.expect_handler_within(self.head_timeout());
                }
                None => {
                    let wait = self.wait_for_head::<L>(writer);
                    let came = tokio::select! {
                        biased;
                        came = wait => Came::Bytes(came?),
                        () = async { if let Some(unasked) = &mut unasked { unasked.await } }, if may_ask => Came::Unasked,
                    };
                    match came {
                        Came::Unasked => {
                            may_ask = false;
                            self.signals.is_unasked.set(true);
                            self.signals.continued.notify_one();
                            writer.send_continue().await.map_err(gone)?;
                            writer.expect_handler_within(self.head_timeout());
                        }
                        Came::Bytes(Ok(count)) if count > 0 => is_silent = false,
                        // Closed or reset.
                        Came::Bytes(_) if is_silent => return Err(self.silent_end::<L>()),
                        Came::Bytes(_) => return Err(Broke::HttpError(L::fault(Cause::Died))),
                    }
                }
            }
        }
    }

    /// What it means that nothing of a response came.
    fn silent_end<L: Delegate>(&self) -> Broke {
        let connection = self.exchange.connection;
        if connection.is_refused() {
            Broke::Refused
        } else if connection.is_reset() {
            Broke::HttpError(L::fault(Cause::Died))
        } else {
            Broke::Silently
        }
    }

    /// For how long the head is waited for from now on. [`super::request`] sets it where the request ends meanwhile.
    fn head_timeout(&self) -> Duration {
        let timeouts = self.exchange.timeouts;
        let runs = timeouts.head_from == HeadFrom::LastOfClient || self.signals.is_sent.get();
        timeouts.head.filter(|_| runs).unwrap_or(Duration::MAX)
    }

    async fn wait_for_head<L: Delegate>(
        &mut self,
        writer: &ResponseWriter<'_, '_>,
    ) -> Result<io::Result<usize>, HttpError> {
        poll_fn(|context| match self.exchange.connection.poll_fill(self.input, context) {
            Poll::Ready(came) => Poll::Ready(Ok(came)),
            Poll::Pending if writer.poll_late(context) => Poll::Ready(Err(L::fault(Cause::Late))),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Passes an informational response on.
    async fn inform<L: Delegate>(&self, writer: &mut ResponseWriter<'_, '_>) -> Result<(), HttpError> {
        let status = self.head.status();
        if status == 100 {
            self.signals.continued.notify_one();
            return writer.send_continue().await.map_err(gone);
        }
        let mut passed_on = Fields::default();
        forwarding::fill(self.head, &mut passed_on, Kind::Plain, L::VOICE);
        writer.informational(status, passed_on.lines()).await.map_err(gone)
    }

    async fn take_answer<L: Delegate>(
        &mut self,
        delegate: &mut L,
        body: AnswerBody,
        passing: Passing,
        writer: &mut ResponseWriter<'_, '_>,
        response: &mut Response,
    ) -> Result<Ended, HttpError> {
        let edits = self.exchange.edits;
        let mut opening = Vec::new();
        let mut is_whole = false;
        match body {
            AnswerBody::None => {
                response.body = self.no_body();
                edits.finish(response);
                return Ok(Ended::Complete);
            }
            AnswerBody::Known(length) if passing.buffer == 0 => {
                is_whole = self.may_be_encoded(length) && self.take_whole::<L>(length, &mut opening).await?;
            }
            _ if passing.buffer > 0 && !response.is_event_stream() => {
                is_whole = self.gather::<L>(passing.buffer, &mut opening).await?;
            }
            _ => {}
        }
        if is_whole && self.trailers().is_empty() {
            delegate.see_body(&opening);
            response.body = Body::Bytes(opening);
            edits.finish(response);
            return Ok(Ended::Complete);
        }
        let length = match body {
            AnswerBody::Known(length) => BodyLength::Known(length),
            _ => BodyLength::Chunked,
        };
        writer.encode(edits, response, length);
        edits.finish(response);
        let is_event_stream = writer.head(response, length);
        if is_event_stream {
            // Others have their turn meanwhile.
            delegate.let_go();
        } else {
            let (kept, address) = delegate.kept();
            writer.keep_slot(kept, address);
        }
        let has_end = !is_event_stream && length != BodyLength::Chunked;
        let mut sending = Sending::new(passing.flush, has_end);
        self.make_room_for(body);
        let is_first = opening.is_empty();
        if !is_first {
            delegate.see_body(&opening);
            sending.send(writer, &opening).await?;
            drop(opening);
        }
        if is_whole {
            return self.end(writer);
        }
        self.pass_on(delegate, writer, &mut sending, is_first).await
    }

    /// What is said of a body that does not come (RFC 9110 section 8.6).
    fn no_body(&self) -> Body {
        let is_withheld = self.exchange.request.head.method() == Method::Head || self.head.status() == 304;
        if !is_withheld {
            return Body::Empty;
        }
        let length = self.head.get(Known::ContentLength);
        Body::Withheld(length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok()))
    }

    /// A body that is known to be long is read in large pieces from its beginning on.
    fn make_room_for(&mut self, body: AnswerBody) {
        if let AnswerBody::Known(length) = body
            && length > READ_BUFFER_BYTES as u64
        {
            self.input.widen(usize::try_from(length).unwrap_or(usize::MAX).min(READ_BYTES_MAX));
        }
    }

    fn may_be_encoded(&self, length: u64) -> bool {
        self.exchange.edits.compresses() && length <= COMPRESSED_ON_THE_SPOT_BYTES_MAX as u64
    }

    /// Appends the body as far as it is there, without waiting; `true` where that is all of it.
    async fn take_whole<L: Delegate>(&mut self, length: u64, into: &mut Vec<u8>) -> Result<bool, HttpError> {
        // At most COMPRESSED_ON_THE_SPOT_BYTES_MAX.
        into.reserve_exact(usize::try_from(length).unwrap_or(0));
        loop {
            match self.take_ready::<L>(into)? {
                Ready::Some => {}
                Ready::End => return Ok(true),
                Ready::Nothing => match self.fill_now().await {
                    Some(came) => self.check_end::<L>(came)?,
                    None => return Ok(false),
                },
            }
        }
    }

    /// Waits for the body and appends it, up to `most` bytes and what one read brings; `true` where that is all of it.
    async fn gather<L: Delegate>(&mut self, most: u64, into: &mut Vec<u8>) -> Result<bool, HttpError> {
        while (into.len() as u64) < most {
            match self.take_ready::<L>(into)? {
                Ready::Some => {}
                Ready::End => return Ok(true),
                Ready::Nothing => {
                    let came = self.fill::<L>().await?;
                    self.check_end::<L>(came)?;
                }
            }
        }
        Ok(false)
    }

    /// Sends the body on, piece by piece, to its end. `is_first`: nothing of it was looked at yet.
    async fn pass_on<L: Delegate>(
        &mut self,
        delegate: &mut L,
        writer: &mut ResponseWriter<'_, '_>,
        sending: &mut Sending,
        mut is_first: bool,
    ) -> Result<Ended, HttpError> {
        loop {
            let read = self.exchange.connection.codec().read_body(self.input.unread());
            match read.map_err(broken::<L>)? {
                BodyRead::Data { at, consumed } => {
                    let data = self.input.unread().get(at).unwrap_or_default();
                    if std::mem::take(&mut is_first) {
                        delegate.see_body(data);
                    }
                    sending.send(writer, data).await?;
                    self.input.consume(consumed);
                }
                BodyRead::End { consumed } => {
                    self.input.consume(consumed);
                    return self.end(writer);
                }
                BodyRead::NeedMore => {
                    let came = match self.fill_now().await {
                        Some(came) => came,
                        None => self.flush_and_fill::<L>(writer, sending).await?,
                    };
                    self.check_end::<L>(came)?;
                }
            }
        }
    }

    /// The body is at its end: trailers follow.
    fn end(&self, writer: &mut ResponseWriter<'_, '_>) -> Result<Ended, HttpError> {
        writer.whole(&self.trailers())?;
        Ok(Ended::Sent)
    }

    /// Trailer lines that are passed on.
    fn trailers(&self) -> Vec<u8> {
        let codec = self.exchange.connection.codec();
        let mut trailers = Vec::new();
        forwarding::passed_on_trailers(codec.trailers(), |line| trailers.extend_from_slice(line));
        trailers
    }

    /// Waits for more. What was gathered does not wait with it, or only so long as it may.
    async fn flush_and_fill<L: Delegate>(
        &mut self,
        writer: &mut ResponseWriter<'_, '_>,
        sending: &mut Sending,
    ) -> Result<io::Result<usize>, HttpError> {
        if let Some(due) = sending.take_due() {
            tokio::select! {
                biased;
                came = self.fill::<L>() => {
                    sending.keep_due(due);
                    return came;
                }
                () = tokio::time::sleep_until(due) => {}
            }
        }
        writer.flush().await.map_err(gone)?;
        if writer.is_spooling() {
            tokio::select! {
                biased;
                came = self.fill::<L>() => return came,
                drained = writer.drain() => drained.map_err(gone)?,
            }
        }
        self.fill::<L>().await
    }

    /// The next piece of the body that is in the buffer.
    fn take_ready<L: Delegate>(&mut self, into: &mut Vec<u8>) -> Result<Ready, HttpError> {
        let read = self.exchange.connection.codec().read_body(self.input.unread());
        Ok(match read.map_err(broken::<L>)? {
            BodyRead::Data { at, consumed } => {
                into.extend_from_slice(self.input.unread().get(at).unwrap_or_default());
                self.input.consume(consumed);
                Ready::Some
            }
            BodyRead::End { consumed } => {
                self.input.consume(consumed);
                Ready::End
            }
            BodyRead::NeedMore => Ready::Nothing,
        })
    }

    /// Reads once what has come already.
    async fn fill_now(&mut self) -> Option<io::Result<usize>> {
        poll_fn(|context| {
            Poll::Ready(match self.exchange.connection.poll_fill(self.input, context) {
                Poll::Ready(came) => Some(came),
                Poll::Pending => None,
            })
        })
        .await
    }

    /// Reads once, as long as that may take.
    async fn fill<L: Delegate>(&mut self) -> Result<io::Result<usize>, HttpError> {
        let Self { exchange, input, reading, .. } = self;
        let deadline = exchange.timeouts.read.map(|time| {
            let deadline = reading.get_or_insert_with(|| exchange.pools.core.deadline());
            deadline.set(Waiting::Handler, time);
            deadline
        });
        let came = poll_fn(|context| {
            let polled = exchange.connection.poll_fill(input, context);
            let is_late = || deadline.as_ref().is_some_and(|deadline| deadline.poll_over(context));
            match polled {
                Poll::Ready(came) => Poll::Ready(Ok(came)),
                Poll::Pending if is_late() => Poll::Ready(Err(L::fault(Cause::Late))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        if let Some(deadline) = deadline {
            deadline.clear();
        }
        came
    }

    /// What it means that so many bytes came.
    fn check_end<L: Delegate>(&mut self, came: io::Result<usize>) -> Result<(), HttpError> {
        let count = match came {
            // A reset cuts an response off even where an end would end it.
            Err(_) => return Err(L::fault(Cause::Died)),
            Ok(count) => count,
        };
        if count == 0 {
            let end = self.exchange.connection.codec().read_eof(self.input.unread().len());
            return end.map_err(|_| L::fault(Cause::Died));
        }
        if count >= READ_BUFFER_BYTES {
            // There is more than the usual buffer holds.
            self.input.widen(READ_BYTES_MAX);
        }
        Ok(())
    }
}

impl From<HttpError> for Broke {
    fn from(fault: HttpError) -> Self {
        Self::HttpError(fault)
    }
}

fn broken<L: Delegate>(refusal: Refusal) -> HttpError {
    L::fault(Cause::Refused(refusal))
}
