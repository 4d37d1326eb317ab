//! The way to a client whose answer is compressed.

use std::sync::Arc;

use onehop_config::checked::Encoding;
use onehop_http1::{Limits, RequestHead};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::*;
use crate::limits::Timeouts;
use crate::request::core::Shared;
use crate::request::handle::encode::CoderRoom;
use crate::request::per_address::PerAddress;
use crate::request::route::Snapshot;

fn core() -> Rc<Core> {
    let snapshot = Snapshot {
        per_address: PerAddress::default(),
        hosts: Vec::new(),
        sites: Vec::new(),
        stores: Vec::new(),
        apps: Vec::new(),
        proxies: Vec::new(),
    };
    let shared = Arc::new(Shared::new(Arc::new(snapshot), 1, 1, Timeouts::default()));
    Rc::new(Core::new(0, shared, Arc::default(), Arc::default()))
}

/// What came of an answer of these bytes, compressed by a zstd that was promised ten of them, and what its client got.
async fn answer_in_zstd(bytes: &[u8]) -> (Result<(), HttpError>, Sent, Vec<u8>) {
    let core = core();
    let (stream, mut client) = UnixStream::pair().unwrap();
    let mut socket = Socket::Unix(stream);
    let mut codec = ServerCodec::new(Limits::default());
    codec.read_head(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", &mut RequestHead::new()).unwrap();
    let deadline = core.connection.deadline();
    let line = Line {
        core: &core,
        socket: RefCell::new(&mut socket),
        codec: RefCell::new(&mut codec),
        deadline: &deadline,
        handler_time: Cell::new(Duration::MAX),
        is_answering: Cell::new(false),
        is_event_stream: Cell::new(false),
        permits: RefCell::new(Permits::none()),
        streaming: RefCell::default(),
        buffered: RefCell::default(),
        address: Cell::new(None),
    };
    let mut output = Vec::new();
    let mut download = Download::new(&line, &mut output);
    let room = Arc::new(CoderRoom::default());
    download.coder = Coder::new(Encoding::Zstd, Some(10), &room).map(Box::new);
    download.is_encoded = true;
    let mut answer = Response::default();
    answer.clear();
    download.head(&answer, BodyLength::Known(10));
    let ended = match download.data(bytes).await.map_err(gone) {
        Ok(()) => download.whole(b""),
        Err(fault) => Err(fault),
    };
    let state = download.state();
    download.flush().await.unwrap();
    drop(line);
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
    let (ended, state, got) = answer_in_zstd(b"ten bytes!").await;
    assert_eq!((ended, state), (Ok(()), Sent::Whole));
    assert!(got.ends_with(b"\r\n0\r\n\r\n"), "{}", got.escape_ascii());
    // A compressor that gets fewer bytes, or more, than it was promised fails: at the end, or on the way.
    for bytes in [&b"nine byte"[..], b"eleven byte"] {
        let (ended, state, got) = answer_in_zstd(bytes).await;
        assert_eq!((ended, state), (Err(HttpError::EncodingFailed), Sent::Head), "{}", bytes.escape_ascii());
        assert!(
            got.starts_with(b"HTTP/1.1 200 OK") && !got.ends_with(b"0\r\n\r\n"),
            "{}",
            got.escape_ascii()
        );
    }
}
