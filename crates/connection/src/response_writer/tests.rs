//! The path to a client whose response is compressed.

use std::rc::Rc;
use std::sync::Arc;

use onehop_config::checked::Encoding;
use onehop_http1::{Limits, RequestHead, ServerCodec};

use crate::codec::Codec;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::*;
use crate::client_stream::ClientStream;
use crate::compressor::CompressorMemory;
use crate::core::{Core, Shared};
use crate::exchange_io::{Extent, Permits};
use crate::limits::Timeouts;
use crate::socket::Socket;

struct NoPermits;

impl Permits for NoPermits {
    fn holds_any(&self) -> bool {
        false
    }
    fn pause(&self) {}
    fn resume(&self) {}
    fn response_started(&self, _: u16, _: Extent) {}
}

/// Sends a response of these bytes, compressed by a zstd that was promised ten of them. Returns how that ended, and what the
/// client received.
async fn respond_in_zstd(bytes: &[u8]) -> (Result<(), HttpError>, Sent, Vec<u8>) {
    let core = Rc::new(Core::new(0, Arc::new(Shared::new(1, 1, Timeouts::default()))));
    let (stream, mut client) = UnixStream::pair().unwrap();
    let mut socket = ClientStream::Socket(Socket::Unix(stream));
    let mut codec = Codec::Http1(ServerCodec::new(Limits::default()));
    codec.read_head(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", &mut RequestHead::new()).unwrap();
    let deadline = core.deadline();
    let io = ExchangeIo::new(&core, &mut socket, &mut codec, &deadline, &NoPermits);
    let mut output = Vec::new();
    let mut writer = ResponseWriter::new(&io, &mut output);
    let memory = Arc::new(CompressorMemory::default());
    writer.compressor = Compressor::new(Encoding::Zstd, Some(10), &memory).map(Box::new);
    writer.is_encoded = true;
    let mut response = Response::default();
    response.clear();
    writer.head(&response, BodyLength::Known(10));
    let ended = match writer.data(bytes).await.map_err(gone) {
        Ok(()) => writer.whole(b""),
        Err(error) => Err(error),
    };
    let state = writer.state();
    writer.flush().await.unwrap();
    drop(io);
    if state == Sent::Whole {
        codec.finish(&mut output, b"");
    }
    let mut got = Vec::new();
    drop(socket);
    client.read_to_end(&mut got).await.unwrap();
    got.extend(output);
    (ended, state, got)
}

#[tokio::test]
async fn a_body_whose_compressor_fails_has_no_end() {
    let (ended, state, got) = respond_in_zstd(b"ten bytes!").await;
    assert_eq!((ended, state), (Ok(()), Sent::Whole));
    assert!(got.ends_with(b"\r\n0\r\n\r\n"), "{}", got.escape_ascii());
    // A compressor that gets fewer bytes, or more, than it was promised fails: at the end, or on the way.
    for bytes in [&b"nine byte"[..], b"eleven byte"] {
        let (ended, state, got) = respond_in_zstd(bytes).await;
        assert_eq!((ended, state), (Err(HttpError::EncodingFailed), Sent::Head), "{}", bytes.escape_ascii());
        assert!(
            got.starts_with(b"HTTP/1.1 200 OK") && !got.ends_with(b"0\r\n\r\n"),
            "{}",
            got.escape_ascii()
        );
    }
}
