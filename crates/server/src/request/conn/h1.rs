//! An HTTP/1 connection: requests in, responses out, one after the other.
//!
//! Idle it holds no buffer. Busy, it answers all that has arrived (bounded, so that one connection
//! cannot starve others) and writes the answers in one piece. A client that half-closes after a
//! complete request still gets its response; then the connection is closed.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onehop_connection::buffers::{ConnectionBuffers, Input};
use onehop_connection::client_stream::ClientStream;
use onehop_connection::codec::Codec;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::WRITE_GATHER_BYTES_MAX;
use onehop_connection::socket::Socket;
use onehop_connection::write::write_both;
use onehop_http1::{Refusal, ServerCodec};
use onehop_http2::frames::PREFACE;
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use tokio::io::AsyncWrite;

use super::exchange::{After, Exchange, More};
use super::h2;
use crate::limits::{
    ACTIVE_CONNECTION_GRACE, ACTIVE_WITHIN, CODEC_LIMITS, FRESH_CONNECTION_GRACE, LINGER_BYTES_MAX,
    PIPELINE_BATCH_MAX,
};
use crate::request::core::{Admission, Core};

/// Serves a connection to its end. One that begins with the preface of HTTP/2 is served so (RFC 9113 section 3.3).
pub(crate) async fn serve(core: Rc<Core>, socket: Socket, origin: Origin, admission: Admission) {
    let deadline = core.connection.deadline();
    let codec = Codec::Http1(ServerCodec::new(CODEC_LIMITS));
    let socket = ClientStream::Socket(socket);
    let mut connection = Connection {
        exchange: Exchange { core, socket, origin, codec, deadline },
        stop_grace: StopGrace::Fresh,
    };
    let mut may_be_http2 = h2::is_known_beforehand(&connection.exchange);
    while let Some(mut buffers) = connection.wait_for_bytes().await {
        let preface = match std::mem::take(&mut may_be_http2) {
            true => connection.read_preface(&mut buffers.input).await,
            false => Preface::Other,
        };
        if preface == Preface::Whole {
            let early = buffers.input.unread().to_vec();
            let Exchange { core, socket, origin, .. } = connection.exchange;
            core.connection.buffers.give_back(buffers);
            let ClientStream::Socket(socket) = socket else { return };
            return Box::pin(h2::serve(core, socket, origin, admission, early)).await;
        }
        let ended = match preface {
            Preface::Late => connection.exchange.refuse(&mut buffers, HttpError::HeadTimeout).await,
            _ => connection.serve_batch(&mut buffers).await,
        };
        connection.exchange.core.connection.buffers.give_back(buffers);
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
                    connection.exchange.socket.reset_when_closed();
                }
                break;
            }
        }
    }
    drop(admission);
}

struct Connection {
    exchange: Exchange,
    stop_grace: StopGrace,
}

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preface {
    /// The preface of HTTP/2.
    Whole,
    /// Something else.
    Other,
    /// A part of it, for as long as a head may take.
    Late,
}

/// What a stop owes a connection that waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopGrace {
    /// It has not sent anything: its client connected before it could know of the stop.
    Fresh,
    /// A stop has begun and it has a moment left.
    Counting,
    /// It has sent something before.
    Used,
}

impl Connection {
    /// Waits, without a buffer, for the next request to begin. `None`: the connection is over.
    async fn wait_for_bytes(&mut self) -> Option<Box<ConnectionBuffers>> {
        self.exchange.deadline.set(Waiting::Idle, self.exchange.core.connection.timeouts().idle);
        let Self { exchange: Exchange { core, socket, deadline, .. }, stop_grace } = self;
        let buffers = poll_fn(|context| {
            let mut buffers = core.connection.buffers.take();
            match buffers.input.poll_fill(socket, context) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    *stop_grace = StopGrace::Used;
                    Poll::Ready(Some(buffers))
                }
                Poll::Ready(_) => {
                    core.connection.buffers.give_back(buffers);
                    Poll::Ready(None)
                }
                Poll::Pending => {
                    core.connection.buffers.give_back(buffers);
                    if core.connection.is_stopping()
                        && !stays_through_stop(socket, deadline, stop_grace, core.connection.timeouts().idle)
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

    /// Looks whether the first bytes are the preface of HTTP/2. Where they may become it, more of them are read.
    async fn read_preface(&mut self, input: &mut Input) -> Preface {
        self.exchange.deadline.set(Waiting::Head, self.exchange.core.connection.timeouts().head);
        // A method of HTTP/1 may begin with a P, too.
        while input.unread().len() < PREFACE.len() && PREFACE.starts_with(input.unread()) {
            match self.exchange.read_more(input).await {
                Ok(More::Bytes) => {}
                Ok(More::Late) => return Preface::Late,
                // A head that is not whole: the codec says so.
                Ok(More::End) | Err(_) => return Preface::Other,
            }
        }
        if input.unread().starts_with(PREFACE) { Preface::Whole } else { Preface::Other }
    }

    /// Answers what has arrived, and reads on while a request is incomplete.
    async fn serve_batch(&mut self, buffers: &mut ConnectionBuffers) -> io::Result<After> {
        self.exchange.deadline.set(Waiting::Head, self.exchange.core.connection.timeouts().head);
        loop {
            let mut answered = 0;
            while answered < PIPELINE_BATCH_MAX && buffers.output.len() < WRITE_GATHER_BYTES_MAX {
                match self.exchange.codec.read_head(buffers.input.unread(), &mut buffers.head) {
                    Ok(None) => break,
                    Ok(Some(consumed)) => buffers.input.consume(consumed),
                    Err(refusal) => {
                        return self.exchange.refuse(buffers, HttpError::Malformed(refusal)).await;
                    }
                }
                if let Some(after) = self.exchange.exchange(buffers).await? {
                    write_both(&mut self.exchange.socket, &self.exchange.deadline, &buffers.output, &[])
                        .await?;
                    buffers.output.clear();
                    return Ok(after);
                }
                answered += 1;
            }
            if !buffers.output.is_empty() {
                write_both(&mut self.exchange.socket, &self.exchange.deadline, &buffers.output, &[]).await?;
                buffers.output.clear();
            }
            // Old clients end a request with one line end too many (RFC 9112 section 2.2).
            buffers.input.drop_stray_line_end();
            if buffers.input.is_empty() {
                return Ok(After::Idle);
            }
            if answered > 0 {
                // Whatever is left begins a new head, and others get their turn first.
                self.exchange.deadline.set(Waiting::Head, self.exchange.core.connection.timeouts().head);
                if answered == PIPELINE_BATCH_MAX {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            match self.exchange.read_more(&mut buffers.input).await? {
                More::Bytes => {}
                More::End => {
                    return self.exchange.refuse(buffers, HttpError::Malformed(Refusal::UnexpectedEnd)).await;
                }
                More::Late => return self.exchange.refuse(buffers, HttpError::HeadTimeout).await,
            }
        }
    }

    /// Says that nothing more comes and reads, within bounds, until the client has closed.
    async fn linger(&mut self) {
        self.exchange.deadline.set(Waiting::Linger, self.exchange.core.connection.timeouts().linger);
        let Exchange { socket, deadline, .. } = &mut self.exchange;
        // On an encrypted connection this waits until the client takes the last record.
        let is_shut_down = poll_fn(|context| match Pin::new(&mut *socket).poll_shutdown(context) {
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(false),
            polled => polled.map(|shut_down| shut_down.is_ok()),
        });
        if !is_shut_down.await {
            self.exchange.socket.reset_when_closed();
            return;
        }
        let mut buffers = self.exchange.core.connection.buffers.take();
        let mut read = 0;
        while read < LINGER_BYTES_MAX {
            match self.exchange.read_more(&mut buffers.input).await {
                Ok(More::Bytes) => {
                    read += buffers.input.unread().len();
                    buffers.input.clear();
                }
                Ok(More::End | More::Late) | Err(_) => break,
            }
        }
        self.exchange.core.connection.buffers.give_back(buffers);
    }
}

/// Whether a waiting connection stays although the server stops. `idle` is how long it might wait otherwise.
fn stays_through_stop(
    socket: &ClientStream,
    deadline: &Deadline,
    stop_grace: &mut StopGrace,
    idle: Duration,
) -> bool {
    let grace = match *stop_grace {
        StopGrace::Fresh => Some(FRESH_CONNECTION_GRACE),
        StopGrace::Used => {
            let waited = deadline.left().map(|(_, left)| idle.saturating_sub(left));
            waited.is_some_and(|waited| waited < ACTIVE_WITHIN).then_some(ACTIVE_CONNECTION_GRACE)
        }
        StopGrace::Counting => None,
    };
    if let Some(grace) = grace {
        *stop_grace = StopGrace::Counting;
        deadline.set(Waiting::Idle, grace);
    }
    // A request that the kernel already has was sent in time: its event is to come.
    *stop_grace == StopGrace::Counting || socket.has_unread()
}
