//! A program's answer on its way to the client.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use onehop_http1::{AnswerBody, AnswerRead, BodyLength, BodyRead, Known, Method, Refusal, ResponseHead};

use super::super::file::{self, Wanted};
use super::super::head::{self, Kind};
use super::super::pool::Seat;
use super::super::{Call, Place};
use super::{Broke, Signals};
use crate::limits::{COMPRESSED_ON_THE_SPOT_BYTES_MAX, READ_BUFFER_BYTES, UPSTREAM_READ_BYTES};
use crate::request::answer::{Answer, Body, Fields};
use crate::request::conn::desk::Input;
use crate::request::conn::exchange::Download;
use crate::request::handle::Ended;
use crate::request::rescue::Fault;
use crate::request::trip::Trip;
use crate::request::upstream::connection::Connection;

/// What came of an answer.
pub(super) enum Received {
    /// It is over.
    Ended(Ended),
    /// The head of an upgrade is out; a tunnel follows.
    Upgraded,
}

/// Where an answer comes from, and what is done to it.
pub(super) struct Taking<'a> {
    pub(super) trip: &'a Trip<'a>,
    pub(super) call: &'a Call<'a>,
    /// Who answers.
    pub(super) seat: Seat,
    pub(super) connection: &'a Connection,
    pub(super) input: &'a mut Input,
    pub(super) head: &'a mut ResponseHead,
    pub(super) signals: &'a Signals,
}

/// Takes the answer and sends it on. Ends with a whole answer that was not sent, with one that was, or with
/// a reason.
pub(super) async fn receive(
    mut taking: Taking<'_>,
    download: &mut Download<'_, '_>,
    answer: &mut Answer,
    place: &mut Option<Place<'_>>,
) -> Result<Received, Broke> {
    let is_upgrade = taking.take_heads(download).await?;
    taking.connection.note_keep_alive(taking.head);
    answer.clear();
    answer.status = taking.head.status();
    if is_upgrade {
        fill(taking.head, &mut answer.fields, Kind::Upgrade);
        taking.trip.finish(answer);
        *place = None;
        download.head(answer, BodyLength::None);
        download.flush().await.map_err(gone)?;
        return Ok(Received::Upgraded);
    }
    let body = taking.connection.codec().answer_body();
    fill(
        taking.head,
        &mut answer.fields,
        if body == AnswerBody::Chunked { Kind::Chunked } else { Kind::Plain },
    );
    let ended = taking.take_answer(body, download, answer, place).await;
    Ok(Received::Ended(ended?))
}

impl Taking<'_> {
    /// Reads up to the final head, passing informational ones on; `true` where another protocol follows.
    async fn take_heads(&mut self, download: &mut Download<'_, '_>) -> Result<bool, Broke> {
        let mut is_silent = true;
        download.expect_handler_within(self.call.pool.app.timeout);
        loop {
            let read = self.connection.codec().read_head(self.input.unread(), self.head);
            match read.map_err(broken)? {
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
                    self.inform(download).await?;
                    download.expect_handler_within(self.call.pool.app.timeout);
                }
                None => {
                    let came = self.wait_for_head(download).await?;
                    match came {
                        Ok(count) if count > 0 => is_silent = false,
                        // Closed or reset.
                        _ if is_silent => return Err(Broke::Silently),
                        _ => return Err(Broke::Fault(Fault::WorkerDied)),
                    }
                }
            }
        }
    }

    async fn wait_for_head(&mut self, download: &Download<'_, '_>) -> Result<io::Result<usize>, Fault> {
        poll_fn(|context| match self.connection.poll_fill(self.input, context) {
            Poll::Ready(came) => Poll::Ready(Ok(came)),
            Poll::Pending if download.poll_late(context) => Poll::Ready(Err(Fault::WorkerTimeout)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Passes an informational answer on.
    async fn inform(&self, download: &mut Download<'_, '_>) -> Result<(), Fault> {
        let status = self.head.status();
        if status == 100 {
            self.signals.continued.notify_one();
            return download.send_continue().await.map_err(gone);
        }
        let mut fields = Fields::default();
        fill(self.head, &mut fields, Kind::Plain);
        download.informational(status, fields.lines()).await.map_err(gone)
    }

    async fn take_answer(
        &mut self,
        body: AnswerBody,
        download: &mut Download<'_, '_>,
        answer: &mut Answer,
        place: &mut Option<Place<'_>>,
    ) -> Result<Ended, Fault> {
        if let Some(wanted) = Wanted::by_field(answer, self.call.pool) {
            // A body beside the file's name is for nobody; with more of it than is there, the connection
            // ends.
            while self.take_ready(&mut Vec::new())? == Ready::Some {}
            file::open(self.trip, self.call.pool, wanted, answer).await?;
            self.trip.finish(answer);
            return Ok(Ended::Complete);
        }
        let mut opening = Vec::new();
        let length = match body {
            AnswerBody::None => {
                answer.body = self.no_body();
                self.trip.finish(answer);
                return Ok(Ended::Complete);
            }
            AnswerBody::Known(length) => {
                if self.may_be_encoded(length) && self.take_whole(length, &mut opening).await? {
                    self.call.learn(self.seat, &opening);
                    answer.body = Body::Bytes(opening);
                    self.trip.finish(answer);
                    return Ok(Ended::Complete);
                }
                BodyLength::Known(length)
            }
            AnswerBody::Chunked | AnswerBody::UntilClose => BodyLength::Chunked,
        };
        download.encode(self.trip, answer, length);
        self.trip.finish(answer);
        if answer.is_event_stream() {
            // It may go on for ever; the program has room for others meanwhile.
            *place = None;
        }
        download.head(answer, length);
        let is_first = opening.is_empty();
        self.call.learn(self.seat, &opening);
        download.data(&opening).await.map_err(gone)?;
        drop(opening);
        self.pass_on(download, is_first).await
    }

    /// What is said of a body that does not come (RFC 9110 section 8.6).
    fn no_body(&self) -> Body {
        let is_withheld = self.trip.head.method() == Method::Head || self.head.status() == 304;
        if !is_withheld {
            return Body::Empty;
        }
        let length = self.head.get(Known::ContentLength);
        Body::Withheld(length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok()))
    }

    fn may_be_encoded(&self, length: u64) -> bool {
        self.trip.encode.is_some() && length <= COMPRESSED_ON_THE_SPOT_BYTES_MAX as u64
    }

    /// Appends the body as far as it is there, without waiting; `true` where that is all of it.
    async fn take_whole(&mut self, length: u64, into: &mut Vec<u8>) -> Result<bool, Fault> {
        // At most COMPRESSED_ON_THE_SPOT_BYTES_MAX.
        into.reserve_exact(usize::try_from(length).unwrap_or(0));
        loop {
            match self.take_ready(into)? {
                Ready::Some => {}
                Ready::End => return Ok(true),
                Ready::Nothing => match self.fill_now().await {
                    Some(came) => self.check_end(came)?,
                    None => return Ok(false),
                },
            }
        }
    }

    /// Sends the body on, piece by piece, to its end. `is_first`: nothing of it was looked at yet.
    async fn pass_on(&mut self, download: &mut Download<'_, '_>, mut is_first: bool) -> Result<Ended, Fault> {
        loop {
            let read = self.connection.codec().read_body(self.input.unread());
            match read.map_err(broken)? {
                BodyRead::Data { at, consumed } => {
                    let data = self.input.unread().get(at).unwrap_or_default();
                    if std::mem::take(&mut is_first) {
                        self.call.learn(self.seat, data);
                    }
                    download.data(data).await.map_err(gone)?;
                    self.input.consume(consumed);
                }
                BodyRead::End { consumed } => {
                    self.input.consume(consumed);
                    let codec = self.connection.codec();
                    let mut trailers = Vec::new();
                    head::passed_on_trailers(codec.trailers(), |line| trailers.extend_from_slice(line));
                    download.whole(&trailers);
                    return Ok(Ended::Sent);
                }
                BodyRead::NeedMore => {
                    let came = match self.fill_now().await {
                        Some(came) => came,
                        None => {
                            // What there is must not wait for what comes.
                            download.flush().await.map_err(gone)?;
                            poll_fn(|context| self.connection.poll_fill(self.input, context)).await
                        }
                    };
                    self.check_end(came)?;
                }
            }
        }
    }

    /// The next piece of the body that is in the buffer.
    fn take_ready(&mut self, into: &mut Vec<u8>) -> Result<Ready, Fault> {
        let read = self.connection.codec().read_body(self.input.unread());
        Ok(match read.map_err(broken)? {
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
            Poll::Ready(match self.connection.poll_fill(self.input, context) {
                Poll::Ready(came) => Some(came),
                Poll::Pending => None,
            })
        })
        .await
    }

    /// What it means that so many bytes came.
    fn check_end(&mut self, came: io::Result<usize>) -> Result<(), Fault> {
        let count = match came {
            // A reset cuts an answer off even where an end would end it.
            Err(_) => return Err(Fault::WorkerDied),
            Ok(count) => count,
        };
        if count == 0 {
            let end = self.connection.codec().read_eof(self.input.unread().len());
            return end.map_err(|_| Fault::WorkerDied);
        }
        if count >= READ_BUFFER_BYTES {
            // There is more than the usual buffer holds.
            self.input.widen(UPSTREAM_READ_BYTES);
        }
        Ok(())
    }
}

/// What of a body is in the buffer.
#[derive(PartialEq, Eq)]
enum Ready {
    Some,
    Nothing,
    End,
}

/// The fields that are passed on: without those about the connection and those that `Connection` names
/// (RFC 9110 section 7.6.1), in the program's own spelling.
fn fill(head: &ResponseHead, fields: &mut Fields, kind: Kind) {
    let members = || {
        let values = head.get_all(Known::Connection).flat_map(|value| value.split(|byte| *byte == b','));
        values.map(<[u8]>::trim_ascii)
    };
    let is_usual = |member: &[u8]| {
        [&b"close"[..], b"keep-alive", b"upgrade"].iter().any(|usual| member.eq_ignore_ascii_case(usual))
    };
    let names_others = members().any(|member| !is_usual(member));
    for (name, value) in head.fields() {
        let is_trailer = kind == Kind::Chunked && name.eq_ignore_ascii_case(b"trailer");
        let is_named = || names_others && members().any(|member| member.eq_ignore_ascii_case(name));
        // Named `head` is the answer's own here.
        let is_dropped = !is_trailer && super::super::head::is_dropped(name, kind == Kind::Upgrade);
        if !is_dropped && !is_named() {
            fields.add_bytes(name, value);
        }
    }
}

impl From<Fault> for Broke {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn broken(refusal: Refusal) -> Fault {
    Fault::AnswerRefused(refusal)
}

fn gone(error: io::Error) -> Fault {
    if error.kind() == io::ErrorKind::TimedOut { Fault::ClientStalled } else { Fault::ClientGone }
}
