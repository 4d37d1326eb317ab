//! The response of a request as handlers write it: informational heads, the head, the body piece by piece, trailers.
//!
//! Handlers do not see the protocol version. Compresses a body on its way where the routes and the client allow it, and
//! gathers small pieces. While the client takes nothing, [`crate::slow_reader`] yields the slot that the response keeps.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use onehop_http1::{AnswerHead, BodyLength};
use onehop_limits::client::network;
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use tokio::io::AsyncWrite;

use crate::compressor::{self, Compressor, StreamCoding};
use crate::deadline::{Deadline, Waiting};
use crate::edits::ResponseEdits;
use crate::exchange_io::{ExchangeIo, Extent};
use crate::limits::{RESPONSE_BUFFER_BYTES_MAX, WRITE_GATHER_BYTES_MAX};
use crate::slot::Slot;
use crate::slow_clients::{Reservation, Resource};
use crate::slow_reader::SlowReader;
use crate::write::Writing;

/// The way to the client.
pub struct ResponseWriter<'l, 'c> {
    io: &'l ExchangeIo<'c>,
    output: &'l mut Vec<u8>,
    state: Sent,
    trailers: Vec<u8>,
    /// The body is encoded on its way, or would be if there were one.
    is_encoded: bool,
    /// Compresses it.
    compressor: Option<Box<Compressor>>,
    /// The compressor holds bytes that were handed to it.
    is_compressing: bool,
    /// Bytes of the body that were handed over.
    pub sent: u64,
    /// The slot that the response keeps, where others may wait for one.
    slot: Option<Slot>,
    /// Counts the bytes of it that wait for the client in `output`, so that it can leave that slot.
    spooled: Option<Reservation>,
    /// Its client is slow, and it may keep that slot all the same.
    slow: Option<Reservation>,
    /// When its client counts as slow.
    slow_at: Option<Deadline>,
}

/// How a call of a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The response is complete in memory; nothing was sent.
    Complete,
    /// The response was sent; its trailer lines follow.
    Sent,
    /// The response broke off after its head.
    Broken(HttpError),
    /// The connection was a tunnel, and the tunnel is over.
    Tunnelled,
}

/// How far a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// No final head was sent to the client.
    Nothing,
    /// The head is out, the body is not at its end.
    Head,
    /// The whole response.
    Whole,
    /// The head of an upgrade: what follows is another protocol.
    Upgrade,
}

impl<'l, 'c> ResponseWriter<'l, 'c> {
    /// Writes the response to the request whose exchange this is, behind what `output` holds.
    pub fn new(io: &'l ExchangeIo<'c>, output: &'l mut Vec<u8>) -> Self {
        Self {
            io,
            output,
            state: Sent::Nothing,
            trailers: Vec::new(),
            is_encoded: false,
            compressor: None,
            is_compressing: false,
            sent: 0,
            slot: None,
            spooled: None,
            slow: None,
            slow_at: None,
        }
    }

    /// Keeps this slot until the response is over. It goes piece by piece to a client with this address.
    pub fn keep_slot(&mut self, slot: Option<Slot>, address: Option<IpAddr>) {
        self.slot = slot;
        self.io.address.set(address.map(|address| network(Some(address))));
    }

    /// How far the response is.
    pub fn state(&self) -> Sent {
        self.state
    }

    /// Waits for the handler, at most this long; see [`ResponseWriter::poll_late`].
    pub fn expect_handler_within(&self, time: Duration) {
        self.io.handler_time.set(time);
        self.io.deadline.set(Waiting::Handler, time);
    }

    /// Whether the handler is late.
    pub fn poll_late(&self, context: &mut Context<'_>) -> bool {
        self.io.deadline.poll_over(context)
    }

    /// Sends 100 Continue: the client may send its body.
    pub async fn send_continue(&mut self) -> io::Result<()> {
        self.io.codec.borrow_mut().write_continue(self.output);
        self.flush_before_head().await
    }

    /// Sends an informational head, 102 to 199 except 101, with whole field lines.
    pub async fn informational(&mut self, status: u16, fields: &[u8]) -> io::Result<()> {
        self.io.codec.borrow_mut().write_informational(self.output, status, fields);
        self.flush_before_head().await
    }

    /// Compresses the body that follows where `edits` allow it and the client accepts it. To be called before
    /// [`ResponseEdits::finish`].
    pub fn encode(&mut self, edits: &dyn ResponseEdits, response: &mut Response, length: BodyLength) {
        let length = match length {
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked => None,
            BodyLength::None => return,
        };
        match edits.encode(response, length, self.io.core.compressor_memory()) {
            StreamCoding::Identity => {}
            StreamCoding::Announced => self.is_encoded = true,
            StreamCoding::Compressed(compressor) => {
                self.is_encoded = true;
                self.compressor = Some(compressor);
            }
        }
    }

    /// Writes the response's head; ignores its body. Whether the body is server-sent events.
    pub fn head(&mut self, response: &Response, length: BodyLength) -> bool {
        let mut codec = self.io.codec.borrow_mut();
        let upgrade = response.status == 101;
        // The response may be complete before the whole request body has arrived. The rest of the body could then not be
        // distinguished from a next request, and the client should know before it sends one.
        let may_end_early = !codec.body_is_read() && !upgrade;
        if response.close || may_end_early || self.io.core.is_stopping() {
            codec.close_after_answer();
        }
        let is_event_stream = response.is_event_stream();
        let extent = match length {
            _ if upgrade || is_event_stream => Extent::Stream,
            BodyLength::Chunked => Extent::Unknown,
            BodyLength::Known(_) | BodyLength::None => Extent::Known,
        };
        let length = if self.is_encoded { BodyLength::Chunked } else { length };
        let has_date = response.fields.get("date").is_some();
        self.io.deadline.clear();
        self.io.core.with_date(|date| {
            let date = if has_date { &[][..] } else { date };
            let (status, fields) = (response.status, response.fields.lines());
            codec.write_head(self.output, AnswerHead { status, fields, date, body: length, upgrade });
        });
        self.io.is_event_stream.set(is_event_stream);
        self.io.streaming.take();
        self.io.permits.response_started(response.status, extent);
        self.state = if upgrade { Sent::Upgrade } else { Sent::Head };
        self.io.is_responding.set(true);
        is_event_stream
    }

    /// Sends bytes of the body. Gathers them, and writes them when they are many: copying a piece once more
    /// costs a tenth of a system call of its own. Waits until the client has taken what is written.
    pub async fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.state == Sent::Upgrade {
            self.sent += bytes.len() as u64;
            return self.write(bytes).await;
        }
        let Some(compressor) = &mut self.compressor else { return self.gather(bytes).await };
        let compressed = compressor.push(bytes)?;
        self.is_compressing = true;
        self.gather(&compressed).await
    }

    /// Sends bytes that are known to belong to the body, as its head has announced it: a piece that
    /// is half of a gathered write is written without copying it.
    pub async fn proven_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_short = bytes.len() < WRITE_GATHER_BYTES_MAX / 2;
        if is_short || self.compressor.is_some() || self.state == Sent::Upgrade {
            return self.data(bytes).await;
        }
        self.sent += bytes.len() as u64;
        self.io.codec.borrow_mut().write_data_frame(self.output, bytes.len() as u64);
        self.write(bytes).await?;
        self.io.codec.borrow_mut().write_data_frame_end(self.output);
        Ok(())
    }

    async fn gather(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        if self.output.len() + bytes.len() > WRITE_GATHER_BYTES_MAX {
            self.write(&[]).await?;
        }
        self.io.codec.borrow_mut().write_data(self.output, bytes);
        Ok(())
    }

    /// Ends the body with these trailer lines; the connection writes its end. After an error the body must be cut
    /// off: its end is missing.
    pub fn whole(&mut self, trailers: &[u8]) -> Result<(), HttpError> {
        if let Some(compressor) = self.compressor.take() {
            let rest = compressor.finish().map_err(gone)?;
            self.sent += rest.len() as u64;
            self.io.codec.borrow_mut().write_data(self.output, &rest);
        }
        self.trailers.extend_from_slice(trailers);
        self.state = Sent::Whole;
        Ok(())
    }

    /// Closes the sending side, in a tunnel; the client's own direction stays open.
    pub async fn finish_sending(&mut self) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut **self.io.socket.borrow_mut()).poll_shutdown(context)).await
    }

    /// The lines that [`ResponseWriter::whole`] was given, and the reservation of the bytes that the client has not taken.
    pub fn into_parts(self) -> (Vec<u8>, Option<Reservation>) {
        (self.trailers, self.spooled)
    }

    /// Ends when the server stops; for responses that would last for ever.
    pub fn stopping(&self) -> impl Future<Output = ()> + use<'c> {
        let core = self.io.core;
        let deadline = core.deadline();
        async move {
            // A stop wakes what waits for a next request.
            deadline.set(Waiting::Idle, Duration::from_secs(u64::from(u32::MAX)));
            poll_fn(|context| {
                let over = deadline.poll_over(context);
                if over || core.is_stopping() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    /// Ends so long after the server begins to stop that a worker, which is notified then, has closed its tunnels.
    pub fn shutdown_grace_over(&self) -> impl Future<Output = ()> + use<'c> {
        let (core, stopping) = (self.io.core, self.stopping());
        async move {
            stopping.await;
            tokio::time::sleep(core.shutdown_grace()).await;
        }
    }

    /// Writes what was gathered.
    pub async fn flush(&mut self) -> io::Result<()> {
        if self.is_compressing
            && let Some(compressor) = &mut self.compressor
        {
            self.is_compressing = false;
            let compressed = compressor.flush()?;
            self.gather(&compressed).await?;
        }
        if self.output.is_empty() { Ok(()) } else { self.write(&[]).await }
    }

    /// Whether bytes wait for the client while the handler need not.
    pub fn is_spooling(&self) -> bool {
        self.spooled.is_some() && !self.output.is_empty()
    }

    /// Writes what was gathered, and then `bytes`. If the response keeps a slot that it cannot yield, what the client does
    /// not take without waiting stays in `output`, within a bound.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let keeps_slot = self.slot.as_ref().is_some_and(|slot| !slot.can_yield());
        if !keeps_slot || self.state != Sent::Head {
            return self.write_all(bytes).await;
        }
        let rest = self.write_now(bytes).await?;
        if rest.is_empty() && self.output.is_empty() {
            return Ok(());
        }
        if self.may_spool(self.output.len() + rest.len()) {
            self.output.extend_from_slice(rest);
            return Ok(());
        }
        self.write_all(rest).await
    }

    /// Writes what the socket takes without waiting; returns what is left of `bytes`.
    async fn write_now<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        let Self { io, output, .. } = self;
        let gathered = output.len();
        let mut piece = Piece { output, writing: Writing::default() };
        let polled = poll_fn(|context| {
            let mut socket = io.socket.borrow_mut();
            Poll::Ready(piece.writing.poll(&mut socket, io.deadline, context, piece.output, bytes))
        })
        .await;
        if let Poll::Ready(written) = polled {
            return written.map(|()| &[][..]);
        }
        Ok(bytes.get(piece.writing.written().saturating_sub(gathered)..).unwrap_or_default())
    }

    fn may_spool(&mut self, bytes: usize) -> bool {
        if bytes > RESPONSE_BUFFER_BYTES_MAX {
            return false;
        }
        let (bytes, most) = (bytes as u64, self.io.core.client_buffers_max());
        if let Some(spooled) = &mut self.spooled {
            let more = bytes.saturating_sub(spooled.amount());
            return more == 0 || spooled.grow(more, most);
        }
        let (slow, address) = (self.io.core.slow_clients(), self.io.address.get());
        self.spooled = slow.take(Resource::Bytes, address, bytes, most);
        self.spooled.is_some()
    }

    /// Writes what waits for the client.
    pub async fn drain(&mut self) -> io::Result<()> {
        self.write_all(&[]).await
    }

    /// Writes what was gathered, and then `bytes`, and waits until the client has taken them.
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { io, output, state, slot, slow, slow_at, .. } = self;
        // A tunnel holds one buffer, however long its client pauses.
        let writing = if *state == Sent::Upgrade { Writing::unbounded() } else { Writing::default() };
        let mut piece = Piece { output, writing };
        let mut waiting = SlowReader::new(io, slot.as_ref(), slow, slow_at);
        let is_tunnel = *state == Sent::Upgrade;
        let mut waits_since = None;
        let written = poll_fn(|context| {
            let mut socket = io.socket.borrow_mut();
            let polled = piece.writing.poll(&mut socket, io.deadline, context, piece.output, bytes);
            if polled.is_pending() {
                waits_since.get_or_insert_with(Instant::now);
                if !is_tunnel && waiting.poll_too_slow(context) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            polled
        })
        .await;
        if let Some(since) = waits_since {
            io.write_wait.set(io.write_wait.get() + since.elapsed());
        }
        written
    }

    /// Writes what precedes the final head. The handler's time does not run while the client takes it.
    async fn flush_before_head(&mut self) -> io::Result<()> {
        let left = self.io.deadline.left();
        self.flush().await?;
        if let Some((Waiting::Handler, left)) = left {
            self.io.deadline.set(Waiting::Handler, left);
        }
        Ok(())
    }
}

/// What it means for the request that the rest of its response cannot be sent.
pub fn gone(error: io::Error) -> HttpError {
    match error.kind() {
        compressor::FAILURE => HttpError::EncodingFailed,
        io::ErrorKind::TimedOut => HttpError::ClientStalled,
        _ => HttpError::ClientGone,
    }
}

/// What is being written. However that ends, also if the writing future is dropped, nothing is written twice.
struct Piece<'o> {
    output: &'o mut Vec<u8>,
    writing: Writing,
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        let written = self.writing.written().min(self.output.len());
        self.output.drain(..written);
    }
}

#[cfg(test)]
mod tests;
