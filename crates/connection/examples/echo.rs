//! An HTTP/1.1 server that sends each request's body back, piece by piece, as it comes:
//! `cargo run -p onehop-connection --example echo`, then `curl --data-binary @FILE http://127.0.0.1:8080/`.
//!
//! Shows the crate alone: one core, its ticks, connections with deadlines, a request body and a response writer. A client that
//! pauses within its body for longer than the timeout, or that takes nothing of the response, is disconnected.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use onehop_connection::buffers::ConnectionBuffers;
use onehop_connection::client_stream::ClientStream;
use onehop_connection::codec::Codec;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::{DEADLINE_TICK, Timeouts, UPLOAD_PIECE_BYTES_MAX};
use onehop_connection::response_writer::gone;
use onehop_connection::socket::Socket;
use onehop_connection::write::write_both;
use onehop_connection::{Core, ExchangeIo, Extent, Permits, RequestBody, ResponseWriter, Shared};
use onehop_http1::{BodyLength, Limits, Next, ServerCodec};
use onehop_message::error::HttpError;
use tokio::task::LocalSet;

/// Nothing limits this server.
struct Unlimited;

impl Permits for Unlimited {
    fn holds_any(&self) -> bool {
        false
    }

    fn pause(&self) {}

    fn resume(&self) {}

    fn response_started(&self, _: u16, _: Extent) {}
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let core = Rc::new(Core::new(0, Arc::new(Shared::new(1, 1_000, Timeouts::default()))));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let serve = async {
        let mut ticks = tokio::time::interval(DEADLINE_TICK);
        loop {
            tokio::select! {
                _ = ticks.tick() => core.tick(),
                accepted = listener.accept() => {
                    let socket = ClientStream::Socket(Socket::Tcp(accepted?.0));
                    tokio::task::spawn_local(connection(Rc::clone(&core), socket));
                }
            }
        }
    };
    LocalSet::new().run_until(serve).await
}

/// Serves one connection to its end.
async fn connection(core: Rc<Core>, mut socket: ClientStream) {
    let deadline = core.deadline();
    let mut codec = Codec::Http1(ServerCodec::new(Limits::default()));
    let mut buffers = core.buffers.take();
    while read_head(&core, &mut socket, &mut codec, &deadline, &mut buffers).await
        && echo(&core, &mut socket, &mut codec, &deadline, &mut buffers).await.is_ok_and(|next| next)
    {}
    core.buffers.give_back(buffers);
}

/// Reads the head of a request. `false`: the connection is over.
async fn read_head(
    core: &Core,
    socket: &mut ClientStream,
    codec: &mut Codec,
    deadline: &Deadline,
    buffers: &mut ConnectionBuffers,
) -> bool {
    deadline.set(Waiting::Head, core.timeouts().idle);
    loop {
        match codec.read_head(buffers.input.unread(), &mut buffers.head) {
            Ok(Some(consumed)) => {
                buffers.input.consume(consumed);
                deadline.clear();
                return true;
            }
            Ok(None) => {}
            Err(_) => return false,
        }
        let came = std::future::poll_fn(|context| {
            let polled = buffers.input.poll_fill(socket, context);
            if polled.is_pending() && deadline.poll_over(context) {
                return std::task::Poll::Ready(Ok(0));
            }
            polled
        });
        if !matches!(came.await, Ok(1..)) {
            return false;
        }
    }
}

/// Sends the request's body back. `true`: the connection may be used again.
async fn echo(
    core: &Rc<Core>,
    socket: &mut ClientStream,
    codec: &mut Codec,
    deadline: &Deadline,
    buffers: &mut ConnectionBuffers,
) -> Result<bool, HttpError> {
    let ConnectionBuffers { input, output, response, .. } = buffers;
    response.clear();
    let io = ExchangeIo::new(core, socket, codec, deadline, &Unlimited);
    let mut body = RequestBody::new(&io, input);
    let mut writer = ResponseWriter::new(&io, output);
    if body.expects_continue() {
        writer.send_continue().await.map_err(gone)?;
    }
    let length = match body.length() {
        BodyLength::None => BodyLength::Known(0),
        length => length,
    };
    writer.head(response, length);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let is_end = body.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await?;
        writer.data(&piece).await.map_err(gone)?;
        if is_end {
            break;
        }
        writer.flush().await.map_err(gone)?;
    }
    writer.whole(&[])?;
    let (trailers, _) = writer.into_parts();
    let next = codec.finish(output, &trailers);
    write_both(socket, deadline, output, &[]).await.map_err(gone)?;
    output.clear();
    Ok(next == Next::KeepAlive)
}
