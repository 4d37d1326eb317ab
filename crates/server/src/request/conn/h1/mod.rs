//! An HTTP/1 connection: requests in, answers out, one after the other.
//!
//! `send.rs` writes answers, `body.rs` drops bodies that nobody wants, `call.rs` lets a handler wait for
//! others.
//!
//! Idle it holds no buffer. Busy, it answers all that has arrived (bounded, so that one connection
//! cannot starve others) and writes the answers in one piece. A client that half-closes after a
//! complete request still gets its answer; then the connection is closed.

mod body;
mod call;
mod send;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use onehop_http1::{Refusal, RequestHead, ServerCodec};
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use tokio::io::AsyncWriteExt;

use crate::limits::{
    ACTIVE_CONNECTION_GRACE, ACTIVE_WITHIN, CODEC_LIMITS, FRESH_CONNECTION_GRACE, LINGER_BYTES_MAX,
    PIPELINE_BATCH_MAX, WRITE_GATHER_BYTES_MAX,
};
use crate::request::admission::{Acquired, Permits};
use crate::request::core::{Admission, Core, View};
use crate::request::{NeedsDisk, Outcome, Served, serve_request};
use onehop_connection::buffers::{ConnectionBuffers, Input};
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::socket::Socket;
use onehop_connection::write::write_both;

/// Serves a connection to its end.
pub(crate) async fn serve(core: Rc<Core>, socket: Socket, origin: Origin, admission: Admission) {
    let deadline = core.connection.deadline();
    let mut connection = Connection {
        codec: ServerCodec::new(CODEC_LIMITS),
        core,
        socket,
        origin,
        deadline,
        patience: Patience::Fresh,
    };
    while let Some(mut desk) = connection.wait_for_bytes().await {
        let ended = connection.serve_batch(&mut desk).await;
        connection.core.connection.buffers.give_back(desk);
        match ended {
            Ok(After::Idle) => {}
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
    patience: Patience,
}

/// What a stop owes a connection that waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It has not sent anything: its client connected before it could know of the stop.
    Fresh,
    /// A stop has begun and it has a moment left.
    Counting,
    /// It has sent something before.
    Used,
}

/// What becomes of a connection when its input is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It waits for the next request.
    Idle,
    /// It is closed once the client has seen the answer: bytes may be unread or still come, and closing
    /// over them would reset the connection and take the answer back (RFC 9112 section 9.6).
    Linger,
}

/// What came of beginning to serve a request.
enum Begun<'s, 'v> {
    Served(Served),
    NeedsDisk(NeedsDisk, Acquired<'v>),
    Called(Pin<Box<dyn Future<Output = io::Result<Option<After>>> + 's>>),
}

/// A desk in pieces, while a request's way holds on to its head.
struct Busy<'d> {
    input: &'d mut Input,
    output: &'d mut Vec<u8>,
    head: &'d RequestHead,
    answer: &'d mut Response,
}

/// What came of waiting for more input.
enum More {
    Bytes,
    End,
    Late,
}

impl Connection {
    /// Waits, without a buffer, for the next request to begin. `None`: the connection is over.
    async fn wait_for_bytes(&mut self) -> Option<Box<ConnectionBuffers>> {
        self.deadline.set(Waiting::Idle, self.core.connection.timeouts().idle);
        let Self { core, socket, deadline, patience, .. } = self;
        poll_fn(|context| {
            let mut desk = core.connection.buffers.take();
            match desk.input.poll_fill(socket, context) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    *patience = Patience::Used;
                    Poll::Ready(Some(desk))
                }
                Poll::Ready(_) => {
                    core.connection.buffers.give_back(desk);
                    Poll::Ready(None)
                }
                Poll::Pending => {
                    core.connection.buffers.give_back(desk);
                    if core.connection.is_stopping()
                        && !stays_through_stop(socket, deadline, patience, core.connection.timeouts().idle)
                    {
                        return Poll::Ready(None);
                    }
                    if deadline.poll_over(context) { Poll::Ready(None) } else { Poll::Pending }
                }
            }
        })
        .await
    }

    /// Answers what has arrived, and reads on while a request is incomplete.
    async fn serve_batch(&mut self, desk: &mut ConnectionBuffers) -> io::Result<After> {
        self.deadline.set(Waiting::Head, self.core.connection.timeouts().head);
        loop {
            let mut answered = 0;
            while answered < PIPELINE_BATCH_MAX && desk.output.len() < WRITE_GATHER_BYTES_MAX {
                match self.codec.read_head(desk.input.unread(), &mut desk.head) {
                    Ok(None) => break,
                    Ok(Some(consumed)) => desk.input.consume(consumed),
                    Err(refusal) => return self.refuse(desk, HttpError::Malformed(refusal)).await,
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
            // Old clients end a request with one line end too many (RFC 9112 section 2.2).
            desk.input.drop_stray_line_end();
            if desk.input.is_empty() {
                return Ok(After::Idle);
            }
            if answered > 0 {
                // Whatever is left begins a new head, and others get their turn first.
                self.deadline.set(Waiting::Head, self.core.connection.timeouts().head);
                if answered == PIPELINE_BATCH_MAX {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            match self.read_more(&mut desk.input).await? {
                More::Bytes => {}
                More::End => return self.refuse(desk, HttpError::Malformed(Refusal::UnexpectedEnd)).await,
                More::Late => return self.refuse(desk, HttpError::HeadTimeout).await,
            }
        }
    }

    /// One request, from its complete head to its answer. `Some`: the connection ends afterwards.
    async fn exchange(&mut self, desk: &mut ConnectionBuffers) -> io::Result<Option<After>> {
        let started = Instant::now();
        if self.core.connection.is_stopping() {
            self.codec.close_after_answer();
        }
        let view = self.core.view();
        let begun = match self.begin(desk, &view, started) {
            Begun::Served(served) => Ok(served),
            Begun::NeedsDisk(again, acquired) => Err((again, acquired)),
            Begun::Called(call) => return call.await,
        };
        let served = match begun {
            Ok(served) => served,
            // Seldom, and large.
            Err((again, acquired)) => {
                return Box::pin(self.on_disk(desk, &view, again, acquired, started)).await;
            }
        };
        let ConnectionBuffers { input, output, head, response: answer } = desk;
        // Whoever has answered has not read a body.
        if let Err(fault) = self.drop_body(input, output, served.fault).await? {
            return self.refuse(desk, fault).await.map(Some);
        }
        self.send(output, head, answer, &view, served, started).await
    }

    /// One that needs the disk.
    async fn on_disk(
        &mut self,
        desk: &mut ConnectionBuffers,
        view: &Rc<View>,
        again: NeedsDisk,
        acquired: Acquired<'_>,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let ConnectionBuffers { input, output, head, response: answer } = desk;
        let made = match self.admit(acquired, input, output).await? {
            Ok(permits) => match again.on_blocking_thread(&view.snapshot, head, self.origin, answer).await {
                Ok((served, whole)) => {
                    // Behind what it looked for on disk there may be more limiters.
                    let further = permits.extend(whole.limiters(&view.snapshot));
                    self.admit(further, input, output).await?.map(|permits| (permits, served))
                }
                Err(needs_call) => {
                    // Seldom: what the way looks for on disk is looked for once more. The body is the application's.
                    let call = needs_call.call(&view.snapshot, head, self.origin);
                    let acquired = permits.extend(call.limiters());
                    let busy = Busy { input, output, head, answer };
                    return self.call(call, acquired, busy, view, started).await;
                }
            },
            Err(fault) => Err(fault),
        };
        let (_pass, served) = match made {
            Ok((mut permits, served)) => {
                permits.answered(answer.status, false);
                // The disk is read until all of it is sent.
                (Some(permits), served)
            }
            Err(fault) => {
                answer.clear();
                let served = again.shed(&view.snapshot, head, self.origin, fault, answer);
                if fault == HttpError::ClientGone {
                    self.record(head, answer, view, served, 0, started.elapsed(), true);
                    return self.part(fault);
                }
                (None, served)
            }
        };
        if let Err(fault) = self.drop_body(input, output, served.fault).await? {
            return self.refuse(desk, fault).await.map(Some);
        }
        self.send(output, head, answer, view, served, started).await
    }

    /// Begins to serve a request. What waits for others is a future of its own, so that only connections
    /// that wait for others pay for its size; what is not let in needs none.
    fn begin<'s, 'v: 's>(
        &'s mut self,
        desk: &'s mut ConnectionBuffers,
        view: &'v Rc<View>,
        started: Instant,
    ) -> Begun<'s, 'v> {
        let ConnectionBuffers { input, output, head, response: answer } = desk;
        answer.clear();
        let core = self.core.number;
        match serve_request(&view.snapshot, head, self.origin, started, answer) {
            Outcome::Served(served) => Begun::Served(served),
            Outcome::NeedsDisk(again) => {
                match Permits::acquire(again.limiters(&view.snapshot), core, started) {
                    Acquired::Rejected(fault) => {
                        Begun::Served(again.shed(&view.snapshot, head, self.origin, fault, answer))
                    }
                    acquired => Begun::NeedsDisk(again, acquired),
                }
            }
            Outcome::Call(call) => match Permits::acquire(call.limiters(), core, started) {
                Acquired::Rejected(fault) => Begun::Served(call.shed(fault, answer)),
                acquired => {
                    let busy = Busy { input, output, head, answer };
                    Begun::Called(Box::pin(self.call(call, acquired, busy, view, started)))
                }
            },
        }
    }

    async fn read_more(&mut self, input: &mut Input) -> io::Result<More> {
        let Self { socket, deadline, .. } = self;
        poll_fn(|context| match input.poll_fill(socket, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(More::End)),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(More::Bytes)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(Ok(More::Late)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Says that nothing more comes and reads, within bounds, until the client has closed.
    async fn linger(&mut self) {
        if self.socket.shutdown().await.is_err() {
            return;
        }
        self.deadline.set(Waiting::Linger, self.core.connection.timeouts().linger);
        let mut desk = self.core.connection.buffers.take();
        let mut read = 0;
        while read < LINGER_BYTES_MAX {
            match self.read_more(&mut desk.input).await {
                Ok(More::Bytes) => {
                    read += desk.input.unread().len();
                    desk.input.clear();
                }
                Ok(More::End | More::Late) | Err(_) => break,
            }
        }
        self.core.connection.buffers.give_back(desk);
    }
}

/// Whether a waiting connection stays although the server stops. `idle` is how long it might wait otherwise.
fn stays_through_stop(socket: &Socket, deadline: &Deadline, patience: &mut Patience, idle: Duration) -> bool {
    let grace = match *patience {
        Patience::Fresh => Some(FRESH_CONNECTION_GRACE),
        Patience::Used => {
            let waited = deadline.left().map(|(_, left)| idle.saturating_sub(left));
            waited.is_some_and(|waited| waited < ACTIVE_WITHIN).then_some(ACTIVE_CONNECTION_GRACE)
        }
        Patience::Counting => None,
    };
    if let Some(grace) = grace {
        *patience = Patience::Counting;
        deadline.set(Waiting::Idle, grace);
    }
    // A request that the kernel already has was sent in time: its event is to come.
    *patience == Patience::Counting || socket.has_unread()
}
