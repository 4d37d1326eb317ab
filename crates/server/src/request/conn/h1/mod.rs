//! An HTTP/1 connection: requests in, answers out, one after the other.
//!
//! `send.rs` writes responses, `body.rs` drops bodies that no handler wants, `call.rs` lets a handler wait for an
//! application or an upstream.
//!
//! Idle it holds no buffer. Busy, it answers all that has arrived (bounded, so that one connection
//! cannot starve others) and writes the answers in one piece. A client that half-closes after a
//! complete request still gets its response; then the connection is closed.

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
use tokio::io::AsyncWrite;

use crate::limits::{
    ACTIVE_CONNECTION_GRACE, ACTIVE_WITHIN, CODEC_LIMITS, FRESH_CONNECTION_GRACE, LINGER_BYTES_MAX,
    PIPELINE_BATCH_MAX,
};
use crate::request::admission::{Acquired, Permits};
use crate::request::core::{Admission, Core, View};
use crate::request::disk::DiskRead;
use crate::request::{Routing, Served, Wait, find_site};
use onehop_connection::buffers::{ConnectionBuffers, Input};
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::WRITE_GATHER_BYTES_MAX;
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
    while let Some(mut buffers) = connection.wait_for_bytes().await {
        let ended = connection.serve_batch(&mut buffers).await;
        connection.core.connection.buffers.give_back(buffers);
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
    /// It is closed once the client has seen the response: bytes may be unread or still come, and closing
    /// over them would reset the connection and take the response back (RFC 9112 section 9.6).
    Linger,
}

/// What came of beginning to serve a request.
enum Begun<'s> {
    /// The response is complete.
    Served(Served),
    /// The rest of the exchange, for a request that waits.
    Waits(Pin<Box<dyn Future<Output = io::Result<Option<After>>> + 's>>),
}

/// A connection's buffers in pieces, while the routing of a request holds on to its head.
struct Busy<'d> {
    input: &'d mut Input,
    output: &'d mut Vec<u8>,
    head: &'d RequestHead,
    response: &'d mut Response,
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
        let buffers = poll_fn(|context| {
            let mut buffers = core.connection.buffers.take();
            match buffers.input.poll_fill(socket, context) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    *patience = Patience::Used;
                    Poll::Ready(Some(buffers))
                }
                Poll::Ready(_) => {
                    core.connection.buffers.give_back(buffers);
                    Poll::Ready(None)
                }
                Poll::Pending => {
                    core.connection.buffers.give_back(buffers);
                    if core.connection.is_stopping()
                        && !stays_through_stop(socket, deadline, patience, core.connection.timeouts().idle)
                    {
                        return Poll::Ready(None);
                    }
                    if deadline.poll_over(context) { Poll::Ready(None) } else { Poll::Pending }
                }
            }
        });
        let buffers = buffers.await;
        if buffers.is_none() {
            socket.notify_end();
        }
        buffers
    }

    /// Answers what has arrived, and reads on while a request is incomplete.
    async fn serve_batch(&mut self, buffers: &mut ConnectionBuffers) -> io::Result<After> {
        self.deadline.set(Waiting::Head, self.core.connection.timeouts().head);
        loop {
            let mut answered = 0;
            while answered < PIPELINE_BATCH_MAX && buffers.output.len() < WRITE_GATHER_BYTES_MAX {
                match self.codec.read_head(buffers.input.unread(), &mut buffers.head) {
                    Ok(None) => break,
                    Ok(Some(consumed)) => buffers.input.consume(consumed),
                    Err(refusal) => return self.refuse(buffers, HttpError::Malformed(refusal)).await,
                }
                if let Some(after) = self.exchange(buffers).await? {
                    write_both(&mut self.socket, &self.deadline, &buffers.output, &[]).await?;
                    buffers.output.clear();
                    return Ok(after);
                }
                answered += 1;
            }
            if !buffers.output.is_empty() {
                write_both(&mut self.socket, &self.deadline, &buffers.output, &[]).await?;
                buffers.output.clear();
            }
            // Old clients end a request with one line end too many (RFC 9112 section 2.2).
            buffers.input.drop_stray_line_end();
            if buffers.input.is_empty() {
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
            match self.read_more(&mut buffers.input).await? {
                More::Bytes => {}
                More::End => return self.refuse(buffers, HttpError::Malformed(Refusal::UnexpectedEnd)).await,
                More::Late => return self.refuse(buffers, HttpError::HeadTimeout).await,
            }
        }
    }

    /// One request, from its complete head to its response. `Some`: the connection ends afterwards.
    async fn exchange(&mut self, buffers: &mut ConnectionBuffers) -> io::Result<Option<After>> {
        let started = Instant::now();
        if self.core.connection.is_stopping() {
            self.codec.close_after_answer();
        }
        let view = self.core.view();
        let served = match self.begin(buffers, &view, started) {
            Begun::Served(served) => served,
            Begun::Waits(rest) => return rest.await,
        };
        let ConnectionBuffers { input, output, head, response } = buffers;
        // The handler has not read a body.
        if let Err(error) = self.drop_body(input, output, served.error).await? {
            return self.refuse(buffers, error).await.map(Some);
        }
        self.send(output, head, response, &view, served, started).await
    }

    /// Begins to serve a request. A request that waits gets a future of its own, so that only connections whose requests
    /// wait pay for its size; a request that is not admitted needs none.
    fn begin<'s>(
        &'s mut self,
        buffers: &'s mut ConnectionBuffers,
        view: &'s Rc<View>,
        started: Instant,
    ) -> Begun<'s> {
        let ConnectionBuffers { input, output, head, response } = buffers;
        response.clear();
        let snapshot = &view.snapshot;
        let challenges = &self.core.shared.challenges;
        let site = match find_site(snapshot, head, &self.origin, challenges, response) {
            Ok(site) => site,
            Err(served) => return Begun::Served(served),
        };
        let mut routing = Routing::new(snapshot, site, head, self.origin.clone(), started);
        let Some(wait) = routing.begin(response) else { return Begun::Served(routing.served()) };
        match Permits::acquire(routing.limiters(Some(&wait)), self.core.number, started) {
            Acquired::Rejected(error) => Begun::Served(routing.reject(error, response)),
            acquired => {
                let busy = Busy { input, output, head, response };
                Begun::Waits(match wait {
                    Wait::Disk(read) => {
                        Box::pin(self.read_disk(routing, read, acquired, busy, view, started))
                    }
                    Wait::Backend(backend) => {
                        Box::pin(self.call(routing, backend, acquired, busy, view, started))
                    }
                })
            }
        }
    }

    /// Serves a request that needs the disk. Each read waits for the limiters that the routes have named until then.
    async fn read_disk(
        &mut self,
        mut routing: Routing<'_>,
        mut read: Box<DiskRead>,
        mut acquired: Acquired<'_>,
        busy: Busy<'_>,
        view: &Rc<View>,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let Busy { input, output, head, response } = busy;
        let admitted = loop {
            let permits = match self.admit(acquired, input, output).await? {
                Ok(permits) => permits,
                Err(error) => break Err(error),
            };
            let wait = routing.resume(read.perform(response).await, response);
            // Behind what was read there may be more limiters.
            acquired = permits.extend(routing.limiters(wait.as_ref()));
            match wait {
                Some(Wait::Disk(next)) => read = next,
                Some(Wait::Backend(backend)) => {
                    let busy = Busy { input, output, head, response };
                    return self.call(routing, backend, acquired, busy, view, started).await;
                }
                None => break self.admit(acquired, input, output).await?,
            }
        };
        let (_permits, served) = match admitted {
            Ok(mut permits) => {
                permits.answered(response.status, false);
                // The disk is read until all of it is sent.
                (Some(permits), routing.served())
            }
            Err(error) => {
                let served = routing.reject(error, response);
                if error == HttpError::ClientGone {
                    self.record(head, response, view, served, 0, started.elapsed(), true);
                    return self.part(error);
                }
                (None, served)
            }
        };
        if let Err(error) = self.drop_body(input, output, served.error).await? {
            return self.refuse_with(input, output, response, error).await.map(Some);
        }
        self.send(output, head, response, view, served, started).await
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
        self.deadline.set(Waiting::Linger, self.core.connection.timeouts().linger);
        let Self { socket, deadline, .. } = self;
        // On an encrypted connection this waits until the client takes the last record.
        let is_shut_down = poll_fn(|context| match Pin::new(&mut *socket).poll_shutdown(context) {
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(false),
            polled => polled.map(|shut_down| shut_down.is_ok()),
        });
        if !is_shut_down.await {
            self.socket.reset_when_closed();
            return;
        }
        let mut buffers = self.core.connection.buffers.take();
        let mut read = 0;
        while read < LINGER_BYTES_MAX {
            match self.read_more(&mut buffers.input).await {
                Ok(More::Bytes) => {
                    read += buffers.input.unread().len();
                    buffers.input.clear();
                }
                Ok(More::End | More::Late) | Err(_) => break,
            }
        }
        self.core.connection.buffers.give_back(buffers);
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
