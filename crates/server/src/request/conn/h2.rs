//! An HTTP/2 connection: each of its streams is an [`Exchange`] of its own.
//!
//! One task drives the connection: it moves frames, accepts requests and writes what was gathered. A request that waits for
//! nothing is served there; one that waits gets a task. Idle it holds h2's tables and buffers, some 20 KiB.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use onehop_connection::client_stream::ClientStream;
use onehop_connection::codec::Codec;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::READ_BUFFER_BYTES;
use onehop_connection::slow_clients::{Reservation, Resource};
use onehop_connection::socket::Socket;
use onehop_connection::write::write_both;
use onehop_http1::BodyLength;
use onehop_http2::frames::Flood;
use onehop_http2::limits as bounds;
use onehop_http2::outgoing::{Outgoing, Piece, Priority};
use onehop_http2::{Stream, StreamCodec, Transport};
use onehop_limits::client::network;
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use onehop_metrics::counters::Http2Failure;

use super::exchange::Exchange;
use crate::limits::{CODEC_LIMITS, LINGER_BYTES_MAX, LINGER_TIME_MAX, STREAMS_BATCH_MAX};
use tokio::io::{AsyncRead, ReadBuf};

use crate::request::core::{Admission, Core, View};

/// What a connection waits for while streams are open: its own end, of which a stop reminds it.
const WITHOUT_END: Duration = Duration::from_secs(u32::MAX as u64);

/// A request as h2 accepts it.
type Accepted = (http::Request<RecvStream>, SendResponse<Piece>);

/// What a connection's streams share.
struct Shared {
    core: Rc<Core>,
    origin: Origin,
    outgoing: Rc<Outgoing>,
    admission: RefCell<Admission>,
    /// Streams that are served.
    open: Cell<usize>,
    /// The connection ends now, whatever its streams do.
    is_ending: Cell<bool>,
    /// Bytes of windows that bodies have of their own.
    windows: Cell<u32>,
    deadline: Deadline,
}

/// A stream that is served; counted while it lives.
struct Open {
    shared: Rc<Shared>,
    /// The window that its body has of its own, within what slow clients may hold: a handler that reads nothing of it holds up
    /// no other body.
    window: Option<Reservation>,
}

impl Open {
    fn new(shared: &Rc<Shared>, has_body: bool) -> Self {
        if shared.open.replace(shared.open.get() + 1) == 0 {
            shared.deadline.set(Waiting::Idle, WITHOUT_END);
        }
        let connection = &shared.core.connection;
        let address = shared.origin.peer.map(|peer| network(Some(peer.ip())));
        let bytes = u64::from(bounds::STREAM_WINDOW_BYTES);
        let take = || {
            connection.slow_clients().take(Resource::Bytes, address, bytes, connection.client_buffers_max())
        };
        let window = if has_body { take() } else { None };
        if window.is_some() {
            shared.windows.set(shared.windows.get() + bounds::STREAM_WINDOW_BYTES);
        }
        Self { shared: Rc::clone(shared), window }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let shared = &self.shared;
        if self.window.is_some() {
            shared.windows.set(shared.windows.get() - bounds::STREAM_WINDOW_BYTES);
        }
        shared.open.set(shared.open.get() - 1);
        if shared.open.get() == 0 {
            shared.admission.borrow_mut().forget_streams();
        }
        if shared.open.get() == 0 && !shared.is_ending.get() {
            shared.deadline.set(Waiting::Idle, shared.core.connection.timeouts().idle);
        }
    }
}

/// Whether a connection may begin with the preface of HTTP/2: in clear text, where the client knows that it may. With TLS
/// it was negotiated.
pub(super) fn is_known_beforehand(exchange: &Exchange) -> bool {
    !exchange.origin.tls && exchange.core.view().snapshot.protocols.h2c
}

/// Serves a connection to its end. `early` was read of it already.
pub(crate) async fn serve(
    core: Rc<Core>,
    socket: Socket,
    origin: Origin,
    admission: Admission,
    early: Vec<u8>,
) {
    let deadline = core.connection.deadline();
    deadline.set(Waiting::Head, core.connection.timeouts().head);
    let shared = Rc::new(Shared {
        core,
        origin,
        outgoing: Rc::default(),
        admission: RefCell::new(admission),
        open: Cell::new(0),
        is_ending: Cell::new(false),
        windows: Cell::new(0),
        deadline,
    });
    let transport = Transport::new(socket, &early);
    drop(early);
    let mut handshake = Box::pin(builder().handshake::<_, Piece>(transport.clone()));
    let connection = poll_fn(|context| {
        let polled = handshake.as_mut().poll(context);
        let _ = transport.poll_drain(context);
        if polled.is_pending() && shared.deadline.poll_over(context) {
            return Poll::Ready(None);
        }
        polled.map(Result::ok)
    });
    if let Some(connection) = connection.await {
        shared.core.counters.http2_begun();
        drop(handshake);
        shared.deadline.set(Waiting::Idle, shared.core.connection.timeouts().idle);
        let view = shared.core.view();
        let closing = Closing::No;
        let mut driver = Driver {
            connection,
            transport,
            shared,
            closing,
            incomplete: None,
            view,
            batch: 0,
            written: None,
        };
        if poll_fn(|context| driver.poll(context)).await == Ended::Here {
            driver.linger().await;
        }
    }
}

fn builder() -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(bounds::STREAMS_MAX)
        .initial_window_size(bounds::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(bounds::CONNECTION_WINDOW_BYTES)
        .max_header_list_size(bounds::HEADER_LIST_BYTES_MAX)
        .header_table_size(bounds::HEADER_TABLE_BYTES)
        .max_pending_accept_reset_streams(bounds::UNSEEN_RESETS_MAX)
        .max_local_error_reset_streams(Some(bounds::PROVOKED_RESETS_MAX))
        .max_send_buffer_size(bounds::SEND_BUFFER_BYTES_MAX)
        .enable_connect_protocol();
    builder
}

/// How far the end of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// It may get further requests.
    No,
    /// The client knows that no further ones are served (RFC 9113 section 6.8).
    Announced,
    /// Nothing is waited for.
    Now,
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Nothing can be read or written any more, or the client takes nothing in its time.
    Broken,
    /// The protocol is over; the client may not have read all of it yet.
    Here,
}

/// What drives a connection.
struct Driver {
    connection: server::Connection<Transport<Socket>, Piece>,
    transport: Transport<Socket>,
    shared: Rc<Shared>,
    closing: Closing,
    /// The frame or field block of which a part is missing, and how long it may be.
    incomplete: Option<(u64, Deadline)>,
    /// The snapshot that was current when it was polled last.
    view: Rc<View>,
    /// Requests accepted before others get their turn.
    batch: usize,
    /// While no stream is open and responses are not written to their end: bytes that were written when the client's time was
    /// last set.
    written: Option<u64>,
}

impl Driver {
    /// Moves frames until there is nothing to do; ready at the connection's end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        self.batch = 0;
        loop {
            self.end_if_due(context);
            match self.connection.poll_accept(context) {
                Poll::Ready(Some(Ok(accepted))) => {
                    self.accept(accepted, context);
                    self.batch += 1;
                    if self.batch == STREAMS_BATCH_MAX {
                        context.waker().wake_by_ref();
                        break;
                    }
                }
                Poll::Ready(ended) => {
                    let is_broken = matches!(&ended, Some(Err(error)) if error.is_io());
                    if let Some(Err(error)) = ended {
                        self.count(&error);
                    }
                    let _ = self.transport.poll_drain(context);
                    return Poll::Ready(if is_broken { Ended::Broken } else { Ended::Here });
                }
                // What it read may be too much.
                Poll::Pending if self.transport.flood().is_some() && self.closing != Closing::Now => {}
                Poll::Pending => break,
            }
        }
        // What was read may have begun a frame.
        let before = self.closing;
        self.end_if_due(context);
        if self.closing != before {
            context.waker().wake_by_ref();
        }
        // A client that takes nothing of the reason gets no more time for it.
        if self.closing == Closing::Now && self.shared.deadline.poll_over(context) {
            return Poll::Ready(Ended::Broken);
        }
        match self.transport.poll_drain(context) {
            Poll::Ready(Err(_)) => Poll::Ready(Ended::Broken),
            _ => {
                self.set_write_time(context);
                Poll::Pending
            }
        }
    }

    /// Whether responses are not written to their end, and the bytes that were written in all.
    fn unwritten(&self) -> Option<u64> {
        let (written, is_waiting) = self.transport.progress();
        (is_waiting || self.shared.outgoing.is_given()).then_some(written)
    }

    /// Gives the client its time for what is left of responses whose streams are done: as long as it takes something, it has
    /// more.
    fn set_write_time(&mut self, context: &Context<'_>) {
        let shared = &self.shared;
        let unwritten = self.unwritten().filter(|_| shared.open.get() == 0 && self.closing != Closing::Now);
        if unwritten == self.written {
            return;
        }
        let timeouts = shared.core.connection.timeouts();
        match (unwritten, self.closing) {
            (Some(_), _) => shared.deadline.set_write(),
            // Streams were opened meanwhile, or the end began: both have set their own.
            (None, Closing::Now) => {}
            (None, _) if shared.open.get() > 0 => {}
            (None, Closing::No) => {
                shared.deadline.set(Waiting::Idle, timeouts.idle);
                // A stop or a reload meanwhile has woken idle connections only.
                context.waker().wake_by_ref();
            }
            (None, Closing::Announced) => shared.deadline.set(Waiting::Linger, timeouts.linger),
        }
        self.written = unwritten;
        let _ = shared.deadline.poll_over(context);
    }

    /// Begins the end of a connection whose time is over, whose client sends too much, or whose server stops.
    fn end_if_due(&mut self, context: &Context<'_>) {
        let shared = &self.shared;
        if self.closing == Closing::Now {
            return;
        }
        if let Some(flood) = self.transport.flood() {
            shared.core.counters.http2_failed(match flood {
                Flood::Resets => Http2Failure::Resets,
                Flood::Settings => Http2Failure::Settings,
                Flood::Overhead => Http2Failure::Overhead,
            });
            return self.end_now(Reason::ENHANCE_YOUR_CALM);
        }
        let is_over = shared.deadline.poll_over(context);
        let ends = is_over || shared.core.connection.is_stopping() || !self.is_still_right();
        if self.closing == Closing::No && ends {
            self.announce_end();
            // It is woken for the end of this time, too.
            let _ = self.shared.deadline.poll_over(context);
        } else if is_over {
            self.end_now(Reason::NO_ERROR);
        } else if self.is_late(context) {
            self.end_now(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Whether a frame or a field block has begun too long ago, as a head of HTTP/1 may.
    fn is_late(&mut self, context: &Context<'_>) -> bool {
        let Some(number) = self.transport.incomplete() else {
            self.incomplete = None;
            return false;
        };
        if self.incomplete.as_ref().is_none_or(|(known, _)| *known != number) {
            let connection = &self.shared.core.connection;
            let deadline = connection.deadline();
            deadline.set(Waiting::Head, connection.timeouts().head);
            self.incomplete = Some((number, deadline));
        }
        self.incomplete.as_ref().is_some_and(|(_, deadline)| deadline.poll_over(context))
    }

    /// Ends the connection with its streams.
    fn end_now(&mut self, reason: Reason) {
        self.connection.abrupt_shutdown(reason);
        self.closing = Closing::Now;
        self.shared.is_ending.set(true);
        self.shared.deadline.set(Waiting::Linger, self.shared.core.connection.timeouts().linger);
    }

    /// Reads, within bounds, until the client has closed: closing over what it has sent would take the reason away from it.
    async fn linger(&mut self) {
        let timeouts = self.shared.core.connection.timeouts();
        if self.closing != Closing::Now {
            self.shared.deadline.set(Waiting::Linger, timeouts.linger);
        }
        let (mut left, begun) = (LINGER_BYTES_MAX, Instant::now());
        let mut bytes = [0; READ_BUFFER_BYTES];
        poll_fn(|context| {
            while left > 0 && !self.shared.deadline.poll_over(context) {
                let mut buffer = ReadBuf::new(&mut bytes);
                let read =
                    self.transport.with_socket(|socket| Pin::new(socket).poll_read(context, &mut buffer));
                match (read, buffer.filled().len()) {
                    (Poll::Pending, _) => return Poll::Pending,
                    // One that still takes what the kernel holds opens windows, and has more time.
                    (Poll::Ready(Ok(())), count @ 1..) if begun.elapsed() < LINGER_TIME_MAX => {
                        left = left.saturating_sub(count);
                        self.shared.deadline.renew(Waiting::Linger, timeouts.linger);
                    }
                    (Poll::Ready(_), _) => break,
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Whether the listener still speaks as this connection does, and a site has the policy that it was negotiated under.
    fn is_still_right(&mut self) -> bool {
        let view = self.shared.core.view();
        if Rc::ptr_eq(&view, &self.view) {
            return true;
        }
        let (snapshot, origin) = (&view.snapshot, &self.shared.origin);
        let is_right = snapshot.tls.is_encrypted(origin.listener) == origin.tls
            && (!origin.tls || snapshot.sites.iter().any(|site| site.policy_number() == origin.policy));
        self.view = view;
        is_right
    }

    fn count(&self, error: &h2::Error) {
        // What the client says of us, or the network does, is no failure of ours.
        if self.closing == Closing::Now || error.is_io() || error.is_remote() {
            return;
        }
        self.shared.core.counters.http2_failed(match error.reason() {
            Some(Reason::ENHANCE_YOUR_CALM) => Http2Failure::Excess,
            _ => Http2Failure::Protocol,
        });
    }

    /// Gives the connection a window for all bodies that have their own.
    fn widen(&mut self) {
        let window = bounds::CONNECTION_WINDOW_BYTES + self.shared.windows.get();
        self.connection.set_target_window_size(window);
    }

    /// Lets the client know, in the two steps of RFC 9113 section 6.8, that no further requests are served.
    fn announce_end(&mut self) {
        self.connection.graceful_shutdown();
        self.closing = Closing::Announced;
        if self.shared.open.get() == 0 && self.unwritten().is_none() {
            self.shared.deadline.set(Waiting::Linger, self.shared.core.connection.timeouts().linger);
        }
    }

    /// Serves a request here as far as it does not wait.
    fn accept(&mut self, (request, mut response): Accepted, context: &mut Context<'_>) {
        // Doubled each time, so that not every request writes what all cores share.
        let counted = (self.shared.open.get() + 1).next_power_of_two();
        if !self.shared.admission.borrow_mut().count_streams(counted) {
            return response.send_reset(Reason::REFUSED_STREAM);
        }
        let has_body = !request.body().is_end_stream();
        let open = Open::new(&self.shared, has_body);
        if has_body {
            self.widen();
        }
        let mut serving = Box::pin(serve_stream(open, request, response));
        if serving.as_mut().poll(context).is_pending() {
            tokio::task::spawn_local(serving);
        }
    }
}

/// One request and its response.
async fn serve_stream(open: Open, request: http::Request<RecvStream>, response: SendResponse<Piece>) {
    let Shared { core, origin, outgoing, .. } = &*open.shared;
    let (parts, body) = request.into_parts();
    let priority = parts
        .headers
        .get("priority")
        .map_or_else(Priority::default, |value| Priority::read(value.as_bytes()));
    let stream = Stream::new(body, response, priority, Rc::clone(outgoing));
    let mut buffers = core.connection.buffers.take();
    let (codec, read) =
        StreamCodec::read(&parts, Rc::clone(&stream), &CODEC_LIMITS, &mut buffers.output, &mut buffers.head);
    drop(parts);
    let mut exchange = Exchange {
        core: Rc::clone(core),
        socket: ClientStream::Http2(Rc::clone(&stream)),
        origin: origin.clone(),
        codec: Codec::Http2(Box::new(codec)),
        deadline: core.connection.deadline(),
    };
    let ended = match read {
        Ok(()) => exchange.exchange(&mut buffers).await.map(|_| ()),
        Err(refusal) => exchange.refuse(&mut buffers, HttpError::Malformed(refusal)).await.map(|_| ()),
    };
    let Exchange { mut socket, codec, deadline, .. } = exchange;
    let ended = match ended {
        Ok(()) => write_both(&mut socket, &deadline, &buffers.output, &[]).await,
        broken => broken,
    };
    core.connection.buffers.give_back(buffers);
    let error = match ended {
        Ok(()) => {
            stream.finish();
            if lingers(&codec) {
                linger(&stream, &deadline, core.connection.timeouts().linger).await;
            }
            return;
        }
        Err(error) => error,
    };
    // h2 drops what it holds of a stream that is reset: first the driver gets its turn to write that.
    tokio::task::yield_now().await;
    // So that what was sent of it does not look whole.
    stream.reset(match error.kind() {
        std::io::ErrorKind::TimedOut => Reason::CANCEL,
        _ => Reason::INTERNAL_ERROR,
    });
}

/// Whether a request that was answered before its body was read may send the rest: the reset that asks its client to stop
/// (RFC 9113 section 8.1) takes the response away from some that are still sending. No longer than a stream's window, because
/// such clients wait for no window after the response. A client that waits for 100 sends nothing.
fn lingers(codec: &Codec) -> bool {
    let is_short =
        matches!(codec.request_body(), BodyLength::Known(length) if length <= LINGER_BYTES_MAX as u64);
    is_short && !codec.expects_continue()
}

/// Reads a body to its end, and drops it.
async fn linger(stream: &Stream, deadline: &Deadline, time: Duration) {
    deadline.set(Waiting::Linger, time);
    poll_fn(|context| {
        while !deadline.poll_over(context) {
            match stream.poll_discard(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}
