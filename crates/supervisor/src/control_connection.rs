//! The supervisor's connection to a worker: frames out, frames in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;

use onehop_wire::{Blocked, Broken, ConnectionKind, Payload, Pong, Sender, Transport, decode, encode};
use onehop_workers::Windows;
use onehop_workers::limits::CONNECTION_SLOTS_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::limits::{LOADED_FILES_MAX, WORKER_BEGINS_PER_TURN};

/// Holds at most one frame and one read, and until it is ready the files that it has loaded.
pub(crate) struct ControlConnection {
    stream: UnixStream,
    input: Vec<u8>,
    loaded: Vec<PathBuf>,
}

/// What a worker sends.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Its runtime and version, `node 20.20.2`, and how requests reach it.
    Ready(String, Transport),
    /// Why not, for a person.
    Failed(String),
    Pong(Pong),
    /// Its event loop stood still.
    Blocked(Blocked),
    Drain,
    /// It has loaded files: [`ControlConnection::take_loaded`].
    Loaded,
    /// The connection is at its end.
    End,
}

impl ControlConnection {
    pub(crate) fn new(stream: StdUnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(stream)?, input: Vec::new(), loaded: Vec::new() })
    }

    /// The next frame, or what is wrong with it. May be cancelled and called again.
    pub(crate) async fn receive(&mut self) -> Result<Message, Broken> {
        loop {
            if let Some((frame, consumed)) = decode(&self.input, Sender::Worker, ConnectionKind::Control)? {
                let message = understand(frame.payload, &mut self.loaded);
                self.input.drain(..consumed);
                if let Some(message) = message {
                    return Ok(message);
                }
                continue;
            }
            self.input.reserve(READ_BYTES);
            // An error of a socket pair means what its end means.
            if !matches!(self.stream.read_buf(&mut self.input).await, Ok(1..)) {
                return Ok(Message::End);
            }
        }
    }

    /// The files that the worker has reported since the last call.
    pub(crate) fn take_loaded(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.loaded)
    }

    pub(crate) async fn hello(&mut self, cores: usize, windows: Windows, app: &str) {
        let server = concat!("onehop/", env!("CARGO_PKG_VERSION"));
        let hello = onehop_wire::Hello {
            version_min: onehop_wire::limits::VERSION,
            version_max: onehop_wire::limits::VERSION,
            connections: u16::try_from(cores).unwrap_or(u16::MAX),
            slots: CONNECTION_SLOTS_MAX,
            stream_window: windows.stream,
            connection_window: windows.connection,
            begins_per_turn: WORKER_BEGINS_PER_TURN,
            server: server.as_bytes(),
            application: app.as_bytes(),
        };
        self.send(|out| encode::hello(out, &hello)).await;
    }

    pub(crate) async fn ping(&mut self, token: u64) {
        self.send(|out| encode::ping(out, token)).await;
    }

    pub(crate) async fn drain(&mut self) {
        self.send(encode::drain).await;
    }

    pub(crate) async fn retire(&mut self) {
        self.send(encode::retire).await;
    }

    /// An error is not reported: the end of the worker is. Never waits: the few dozen frames in the life of a worker that does
    /// not read fit into any socket's buffer, and at most one PING is open.
    async fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        encode(&mut out);
        let _ = self.stream.write_all(&out).await;
    }
}

/// Bytes of one read; a PONG has 52.
const READ_BYTES: usize = 4 * 1024;

fn understand(payload: Payload<'_>, loaded: &mut Vec<PathBuf>) -> Option<Message> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match payload {
        Payload::Ready(ready) => {
            let runtime = format!("{} {}", text(ready.runtime), text(ready.runtime_version));
            Some(Message::Ready(runtime, ready.transport))
        }
        Payload::Failed(why) => Some(Message::Failed(text(why))),
        Payload::Pong(pong) => Some(Message::Pong(pong)),
        Payload::Blocked(blocked) => Some(Message::Blocked(blocked)),
        Payload::Drain => Some(Message::Drain),
        Payload::Loaded(paths) => {
            let paths = paths.split(|byte| *byte == 0).map(|path| PathBuf::from(OsStr::from_bytes(path)));
            let room = LOADED_FILES_MAX.saturating_sub(loaded.len()) + 1;
            loaded.extend(paths.filter(|path| path.is_absolute()).take(room));
            Some(Message::Loaded)
        }
        // The decoder lets no other kind pass from a worker on this connection.
        _ => None,
    }
}
