//! An HTTP/1 connection: requests in, answers out, one after the other.
//!
//! Idle it holds no buffer. Busy, it answers all that has arrived (bounded, so that one connection
//! cannot starve others) and writes the answers in one piece. A client that half-closes after a
//! complete request still gets its answer; then the connection is closed.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use onehop_http1::{AnswerHead, BodyLength, BodyRead, Limits, Next, Refusal, ServerCodec};
use tokio::io::AsyncWriteExt;

use super::deadline::{Deadline, Waiting};
use super::desk::Desk;
use super::socket::Socket;
use super::write::{write_both, write_disk};
use crate::limits::{
    CHUNK_LINE_BYTES_MAX, COPIED_BODY_BYTES_MAX, DRAINED_BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADER_FIELDS_MAX,
    LINGER_BYTES_MAX, PIPELINE_BATCH_MAX, TARGET_BYTES_MAX, TRAILER_BYTES_MAX, WRITE_GATHER_BYTES_MAX,
};
use crate::observe::access_log::Exchange;
use crate::request::answer::{Body, Piece, Stored};
use crate::request::core::{Admission, Core, View};
use crate::request::origin::Origin;
use crate::request::rescue::{self, Fault};
use crate::request::trip::Handler;
use crate::request::{Served, serve_request};

const CODEC_LIMITS: Limits = Limits {
    head_bytes: HEAD_BYTES_MAX,
    target_bytes: TARGET_BYTES_MAX,
    fields: HEADER_FIELDS_MAX,
    chunk_line_bytes: CHUNK_LINE_BYTES_MAX,
    trailer_bytes: TRAILER_BYTES_MAX,
};

/// Serves a connection to its end.
pub(crate) async fn serve(core: Rc<Core>, socket: Socket, origin: Origin, admission: Admission) {
    let deadline = Deadline::new(&core);
    let mut connection = Connection { codec: ServerCodec::new(CODEC_LIMITS), core, socket, origin, deadline };
    while let Some(mut desk) = connection.wait_for_bytes().await {
        let ended = connection.serve_batch(&mut desk).await;
        connection.core.desks.give_back(desk);
        match ended {
            Ok(After::Idle) => {}
            Ok(After::Close) => break,
            Ok(After::Linger) => {
                connection.linger().await;
                break;
            }
            Err(error) => {
                // The client is gone or takes nothing: there is nobody to tell, and what it does not
                // take must not stay in the kernel's buffers.
                if error.kind() == io::ErrorKind::TimedOut {
                    connection.socket.reset_when_closed();
                }
                break;
            }
        }
    }
    drop(admission);
}

struct Connection {
    core: Rc<Core>,
    socket: Socket,
    origin: Origin,
    codec: ServerCodec,
    deadline: Deadline,
}

/// What becomes of a connection when its input is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It waits for the next request.
    Idle,
    /// It is closed; everything that came was read.
    Close,
    /// It is closed once the client has seen the answer: bytes may be unread, and closing over them
    /// would reset the connection and take the answer back (RFC 9112 section 9.6).
    Linger,
}

/// What came of waiting for more input.
enum More {
    Bytes,
    End,
    Late,
}

impl Connection {
    /// Waits, without a buffer, for the next request to begin. `None`: the connection is over.
    async fn wait_for_bytes(&mut self) -> Option<Box<Desk>> {
        self.deadline.set(Waiting::Idle, self.core.shared.timeouts.idle);
        let Self { core, socket, deadline, .. } = self;
        poll_fn(|context| {
            let mut desk = core.desks.lease();
            match desk.input.poll_fill(socket, context) {
                Poll::Ready(Ok(count)) if count > 0 => Poll::Ready(Some(desk)),
                Poll::Ready(_) => {
                    core.desks.give_back(desk);
                    Poll::Ready(None)
                }
                Poll::Pending => {
                    core.desks.give_back(desk);
                    let over = deadline.poll_over(context);
                    // A request that the kernel already has was sent in time: its event is to come.
                    let leave = core.shared.is_stopping() && !socket.has_unread();
                    if over || leave { Poll::Ready(None) } else { Poll::Pending }
                }
            }
        })
        .await
    }

    /// Answers what has arrived, and reads on while a request is incomplete.
    async fn serve_batch(&mut self, desk: &mut Desk) -> io::Result<After> {
        self.deadline.set(Waiting::Head, self.core.shared.timeouts.head);
        loop {
            let mut answered = 0;
            while answered < PIPELINE_BATCH_MAX && desk.output.len() < WRITE_GATHER_BYTES_MAX {
                match self.codec.read_head(desk.input.unread(), &mut desk.head) {
                    Ok(None) => break,
                    Ok(Some(consumed)) => desk.input.consume(consumed),
                    Err(refusal) => return self.refuse(desk, Fault::Malformed(refusal)).await,
                }
                if let Some(after) = self.exchange(desk).await? {
                    write_both(&mut self.socket, &self.deadline, &desk.output, &[]).await?;
                    desk.output.clear();
                    return Ok(after);
                }
                answered += 1;
            }
            if !desk.output.is_empty() {
                write_both(&mut self.socket, &self.deadline, &desk.output, &[]).await?;
                desk.output.clear();
            }
            if desk.input.is_empty() {
                return Ok(After::Idle);
            }
            if answered > 0 {
                // Whatever is left begins a new head, and others get their turn first.
                self.deadline.set(Waiting::Head, self.core.shared.timeouts.head);
                if answered == PIPELINE_BATCH_MAX {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            match self.read_more(desk).await? {
                More::Bytes => {}
                More::End => return self.refuse(desk, Fault::Malformed(Refusal::UnexpectedEnd)).await,
                More::Late => return self.refuse(desk, Fault::HeadTimeout).await,
            }
        }
    }

    /// One request, from its complete head to its answer. `Some`: the connection ends afterwards.
    async fn exchange(&mut self, desk: &mut Desk) -> io::Result<Option<After>> {
        let started = Instant::now();
        if let Err(fault) = self.drop_body(desk).await? {
            return self.refuse(desk, fault).await.map(Some);
        }
        if self.core.shared.is_stopping() {
            self.codec.close_after_answer();
        }
        let view = self.core.view();
        let Desk { head, answer, .. } = desk;
        answer.clear();
        let served = serve_request(&view.snapshot, head, self.origin, answer);
        let served = match served {
            Ok(served) => served,
            Err(again) => again.on_blocking_thread(&view.snapshot, head, self.origin, answer).await,
        };
        self.send(desk, &view, served, started).await
    }

    async fn send(
        &mut self,
        desk: &mut Desk,
        view: &Rc<View>,
        served: Served,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let body = std::mem::take(&mut desk.answer.body);
        let length = body_length(&body);
        if desk.answer.close {
            self.codec.close_after_answer();
        }
        let (codec, output, answer) = (&mut self.codec, &mut desk.output, &desk.answer);
        self.core.with_date(|date| {
            let fields = answer.fields.lines();
            let status = answer.status;
            codec.write_head(output, AnswerHead { status, fields, date, body: length, upgrade: false });
        });
        let sent = if codec.sends_body() { bytes_of(length) } else { 0 };
        if sent > 0 {
            self.send_body(&mut desk.output, view, body).await?;
        }
        let next = self.codec.finish(&mut desk.output, &[]);
        let took = started.elapsed();
        let site = served.site.and_then(|number| view.snapshot.sites.get(number));
        let counters = site.and_then(|site| site.counters.get(self.core.number)).unwrap_or(&self.core.other);
        counters.answered(served.handler, desk.answer.status, sent, took);
        if let Some(fault) = served.fault {
            self.core.counters.refused(fault);
        }
        let logs = site.map_or_else(|| view.snapshot.logs_at(self.origin.listener), |site| &*site.logs);
        if !logs.is_empty() {
            let (head, origin, answer) = (Some(&desk.head), &self.origin, &desk.answer);
            let exchange = Exchange { head, origin, answer, sent, took, fault: served.fault };
            self.core.logs.add(&self.core.counters, logs, &exchange);
        }
        Ok(match next {
            Next::KeepAlive => None,
            Next::Close if desk.input.is_empty() && self.codec.body_is_read() => Some(After::Close),
            Next::Close | Next::Tunnel => Some(After::Linger),
        })
    }

    async fn send_body(&mut self, output: &mut Vec<u8>, view: &Rc<View>, body: Body) -> io::Result<()> {
        match body {
            Body::Empty => Ok(()),
            Body::Bytes(bytes) => self.send_bytes(output, &bytes).await,
            Body::Stored(stored) => self.send_bytes(output, stored_bytes(view, &stored)).await,
            Body::Pieces(pieces) => {
                for piece in &pieces {
                    let bytes = match piece {
                        Piece::Bytes(bytes) => bytes,
                        Piece::Stored(stored) => stored_bytes(view, stored),
                    };
                    self.send_bytes(output, bytes).await?;
                }
                Ok(())
            }
            Body::Disk(disk) => {
                write_both(&mut self.socket, &self.deadline, output, &[]).await?;
                output.clear();
                self.codec.note_data_written_elsewhere(disk.length);
                write_disk(&mut self.socket, &self.deadline, disk).await
            }
        }
    }

    /// A small body is copied behind its head; a large one goes out from where it lies.
    async fn send_bytes(&mut self, output: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= COPIED_BODY_BYTES_MAX {
            self.codec.write_data(output, bytes);
            return Ok(());
        }
        self.codec.note_data_written_elsewhere(bytes.len() as u64);
        write_both(&mut self.socket, &self.deadline, output, bytes).await?;
        output.clear();
        Ok(())
    }

    /// Reads a request body that no handler wants, within bounds, so that the connection can be kept.
    /// A client that waits for `100 Continue` is not asked for a body; its connection is closed.
    async fn drop_body(&mut self, desk: &mut Desk) -> io::Result<Result<(), Fault>> {
        match self.codec.request_body() {
            BodyLength::None => return Ok(Ok(())),
            BodyLength::Known(length) if length > DRAINED_BODY_BYTES_MAX => {
                self.codec.close_after_answer();
                return Ok(Ok(()));
            }
            BodyLength::Known(_) | BodyLength::Chunked if self.codec.expects_continue() => {
                self.codec.close_after_answer();
                return Ok(Ok(()));
            }
            BodyLength::Known(_) | BodyLength::Chunked => {}
        }
        // Answers to earlier requests must not wait for this body.
        write_both(&mut self.socket, &self.deadline, &desk.output, &[]).await?;
        desk.output.clear();
        let mut dropped = 0u64;
        self.deadline.set(Waiting::Body, self.core.shared.timeouts.body_progress);
        loop {
            match self.codec.read_body(desk.input.unread()) {
                Err(refusal) => return Ok(Err(Fault::Malformed(refusal))),
                Ok(BodyRead::End { consumed }) => {
                    desk.input.consume(consumed);
                    return Ok(Ok(()));
                }
                Ok(BodyRead::Data { at, consumed }) => {
                    dropped += at.len() as u64;
                    desk.input.consume(consumed);
                    if dropped > DRAINED_BODY_BYTES_MAX {
                        self.codec.close_after_answer();
                        return Ok(Ok(()));
                    }
                    continue;
                }
                Ok(BodyRead::NeedMore) => {}
            }
            match self.read_more(desk).await? {
                More::Bytes => self.deadline.set(Waiting::Body, self.core.shared.timeouts.body_progress),
                More::End => return Ok(Err(Fault::Malformed(Refusal::UnexpectedEnd))),
                More::Late => return Ok(Err(Fault::BodyTimeout)),
            }
        }
    }

    async fn read_more(&mut self, desk: &mut Desk) -> io::Result<More> {
        let Self { socket, deadline, .. } = self;
        poll_fn(|context| match desk.input.poll_fill(socket, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(More::End)),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(More::Bytes)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(Ok(More::Late)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Answers what is no request, and ends the connection: where the next one would begin is unknown.
    async fn refuse(&mut self, desk: &mut Desk, fault: Fault) -> io::Result<After> {
        desk.answer.clear();
        rescue::rescue(fault, &mut desk.answer);
        self.codec.close_after_answer();
        let body = std::mem::take(&mut desk.answer.body);
        let (codec, output, answer) = (&mut self.codec, &mut desk.output, &desk.answer);
        self.core.with_date(|date| {
            let (status, fields) = (answer.status, answer.fields.lines());
            let body = body_length(&body);
            codec.write_head(output, AnswerHead { status, fields, date, body, upgrade: false });
        });
        if let Body::Bytes(text) = &body
            && codec.sends_body()
        {
            codec.write_data(output, text);
        }
        self.record_refusal(desk, fault, bytes_of(body_length(&body)));
        write_both(&mut self.socket, &self.deadline, &desk.output, &[]).await?;
        desk.output.clear();
        desk.input.clear();
        Ok(After::Linger)
    }

    fn record_refusal(&self, desk: &Desk, fault: Fault, sent: u64) {
        let took = Duration::ZERO;
        self.core.counters.refused(fault);
        self.core.other.answered(Handler::None, desk.answer.status, sent, took);
        let view = self.core.view();
        let (origin, answer) = (&self.origin, &desk.answer);
        let exchange = Exchange { head: None, origin, answer, sent, took, fault: Some(fault) };
        self.core.logs.add(&self.core.counters, view.snapshot.logs_at(origin.listener), &exchange);
    }

    /// Says that nothing more comes and reads, within bounds, until the client has closed.
    async fn linger(&mut self) {
        if self.socket.shutdown().await.is_err() {
            return;
        }
        self.deadline.set(Waiting::Linger, self.core.shared.timeouts.linger);
        let mut desk = self.core.desks.lease();
        let mut read = 0;
        while read < LINGER_BYTES_MAX {
            match self.read_more(&mut desk).await {
                Ok(More::Bytes) => {
                    read += desk.input.unread().len();
                    desk.input.clear();
                }
                Ok(More::End | More::Late) | Err(_) => break,
            }
        }
        self.core.desks.give_back(desk);
    }
}

fn body_length(body: &Body) -> BodyLength {
    match body {
        Body::Empty => BodyLength::None,
        Body::Bytes(bytes) => BodyLength::Known(bytes.len() as u64),
        Body::Stored(stored) => BodyLength::Known(stored.range.len() as u64),
        Body::Pieces(pieces) => {
            let lengths = pieces.iter().map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.len(),
                Piece::Stored(stored) => stored.range.len(),
            });
            BodyLength::Known(lengths.sum::<usize>() as u64)
        }
        Body::Disk(disk) => BodyLength::Known(disk.length),
    }
}

fn bytes_of(length: BodyLength) -> u64 {
    match length {
        BodyLength::Known(bytes) => bytes,
        BodyLength::None | BodyLength::Chunked => 0,
    }
}

/// Bytes of a store; the numbers come from the same view, so they are there.
fn stored_bytes<'v>(view: &'v View, stored: &Stored) -> &'v [u8] {
    let store = view.snapshot.stores.get(stored.store as usize);
    let form = store.and_then(|store| store.file(stored.file)).and_then(|file| file.form(stored.encoding));
    form.and_then(|form| form.bytes.get(stored.range.clone())).unwrap_or_default()
}
