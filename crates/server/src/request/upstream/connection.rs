//! One connection to an upstream: its socket, and the codec that knows whether it may be used again.
//!
//! Both halves may be polled by one task in turn, so a request's body can go while its answer comes.
//! Holds no buffer; those are leased for the time of one exchange. Never sends anything by itself.

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use onehop_config::checked::AppAddress;
use onehop_http1::{ClientCodec, Known, ResponseHead};
use rustix::fs::{FileType, lstat};
use tokio::io::AsyncWrite;
use tokio::net::{TcpStream, UnixStream};

use crate::limits::{CODEC_LIMITS, UPSTREAM_BACKLOG_PAUSE};
use crate::request::conn::desk::Input;
use crate::request::conn::socket::Socket;

/// A connection. Dropped, it is closed.
pub(crate) struct Connection {
    socket: RefCell<Socket>,
    codec: RefCell<ClientCodec>,
    /// It has carried a request before this one.
    is_used: Cell<bool>,
    /// A write has begun and is not at its end, or will never be: whoever wrote may have been dropped.
    is_writing: Cell<bool>,
    /// How long the upstream keeps it without a request, where it said so.
    kept_for: Cell<Option<Duration>>,
}

/// What one exchange needs besides its connection.
pub(crate) struct Buffers {
    /// Bytes of the upstream that are not yet understood.
    pub(crate) input: Input,
    /// Bytes of the request that wait to be written.
    pub(crate) output: Vec<u8>,
    /// For putting lines together.
    pub(crate) scratch: Vec<u8>,
    /// The answer's head.
    pub(crate) head: ResponseHead,
}

impl Connection {
    /// A new connection. Waits as long as the upstream's kernel lets it: the deadline is the caller's. `uid` as
    /// for [`connect_unix`].
    pub(crate) async fn dial(address: &AppAddress, uid: Option<u32>) -> io::Result<Self> {
        let socket = match address {
            AppAddress::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                // A head and the first piece of its body are one write already.
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            AppAddress::Unix(path) => loop {
                match connect_unix(path, uid).await {
                    // The listener's backlog is full. Unlike TCP's the kernel does not wait by itself.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::time::sleep(UPSTREAM_BACKLOG_PAUSE).await;
                    }
                    connected => break Socket::Unix(connected?),
                }
            },
        };
        Ok(Self {
            socket: RefCell::new(socket),
            codec: RefCell::new(ClientCodec::new(CODEC_LIMITS)),
            is_used: Cell::new(false),
            is_writing: Cell::new(false),
            kept_for: Cell::new(None),
        })
    }

    /// Whether it has carried a request before: then the upstream may have closed it meanwhile.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// The codec, for the time of one call.
    pub(crate) fn codec(&self) -> RefMut<'_, ClientCodec> {
        self.codec.borrow_mut()
    }

    /// How long the upstream says that it keeps the connection.
    pub(crate) fn kept_for(&self) -> Option<Duration> {
        self.kept_for.get()
    }

    /// Notes what an answer's head says about the connection (`Keep-Alive: timeout=5`).
    pub(crate) fn note_keep_alive(&self, head: &ResponseHead) {
        if let Some(time) = head.get(Known::KeepAlive).and_then(timeout) {
            self.kept_for.set(Some(time));
        }
    }

    /// Makes it ready for another request; `false` where it is of no more use. `unread` bytes of the
    /// upstream were not understood.
    pub(crate) fn reuse(&self, unread: usize) -> bool {
        self.is_used.set(true);
        // The codec knows what was to be sent, and only the socket what was. With bytes missing the upstream
        // would take the next request for the rest of this one.
        self.codec.borrow_mut().reuse(unread) && !self.is_writing.get()
    }

    /// Whether the upstream has said nothing, not even that it closes, while nothing was asked. Asks the
    /// kernel.
    pub(crate) fn is_silent(&self) -> bool {
        self.socket.borrow().is_silent()
    }

    /// The same, but asks the kernel only where the event loop has heard of something.
    pub(crate) fn seems_silent(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let polled = match &*self.socket.borrow() {
            Socket::Tcp(stream) => stream.poll_read_ready(&mut context),
            Socket::Unix(stream) => stream.poll_read_ready(&mut context),
        };
        polled.is_pending() || self.is_silent()
    }

    /// Reads once; 0 is the end.
    pub(crate) fn poll_fill(&self, input: &mut Input, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        input.poll_fill(&mut self.socket.borrow_mut(), context)
    }

    /// Writes `first` and then `second`. Without a deadline: an upstream that takes nothing does not
    /// answer either, and for that there is one.
    pub(crate) async fn write(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut written = 0;
        self.is_writing.set(true);
        poll_fn(|context| {
            let mut socket = self.socket.borrow_mut();
            while written < first.len() + second.len() {
                let head = first.get(written..).unwrap_or_default();
                let body = second.get(written.saturating_sub(first.len())..).unwrap_or_default();
                let stream = Pin::new(&mut *socket);
                let count = match (head.is_empty(), body.is_empty()) {
                    (false, true) => ready!(stream.poll_write(context, head))?,
                    (true, _) => ready!(stream.poll_write(context, body))?,
                    (false, false) => {
                        let pieces = [IoSlice::new(head), IoSlice::new(body)];
                        ready!(stream.poll_write_vectored(context, &pieces))?
                    }
                };
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                written += count;
            }
            self.is_writing.set(false);
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Says that nothing more is sent; the upstream may go on.
    pub(crate) async fn finish_sending(&self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut *self.socket.borrow_mut()).poll_shutdown(context)).await
    }
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { input: Input::new(), output: Vec::new(), scratch: Vec::new(), head: ResponseHead::new() }
    }

    /// Forgets everything but the memory.
    pub(super) fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.scratch.clear();
        self.head.clear();
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes_held(&self) -> usize {
        let lines = self.output.capacity() + self.scratch.capacity();
        self.input.bytes_held() + lines + self.head.bytes_held()
    }
}

/// Connects to a Unix socket; where a user is given, only to one that lies at the path itself and that a process
/// of this user listens on.
pub(crate) async fn connect_unix(path: &Path, uid: Option<u32>) -> io::Result<UnixStream> {
    let Some(uid) = uid else { return UnixStream::connect(path).await };
    let refused = |what: String| {
        let what = format!("{} {what}, which is not connected to", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    };
    // So that nobody else's listener sees as much as a connection; what counts is asked afterwards.
    if FileType::from_raw_mode(lstat(path)?.st_mode) != FileType::Socket {
        return refused("is no socket but a link or a file".to_owned());
    }
    let stream = UnixStream::connect(path).await?;
    // Who called listen(2), however the path came to lead there (SO_PEERCRED, unix(7)).
    let listener = stream.peer_cred()?.uid();
    if listener != uid {
        return refused(format!("belongs to a process of user {listener} instead of {uid}"));
    }
    Ok(stream)
}

/// The `timeout` parameter of a Keep-Alive field, in seconds; the shortest where there are several.
fn timeout(value: &[u8]) -> Option<Duration> {
    let times = value.split(|byte| *byte == b',').filter_map(|parameter| {
        let (name, seconds) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        is_timeout.then(|| seconds.trim().parse().ok().map(Duration::from_secs))?
    });
    times.min()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use onehop_http1::{AskHead, BodyLength, BodyRead};

    use super::*;

    #[tokio::test]
    async fn a_connection_whose_request_was_never_written_whole_is_not_used_again() {
        for written_whole in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("upstream.sock");
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let connection = Connection::dial(&AppAddress::Unix(path), None).await.unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            // More than the kernel takes while nobody reads.
            let body = vec![b'x'; 4 << 20];
            let mut output = Vec::new();
            let length = BodyLength::Known(body.len() as u64);
            let (fields, target) = (&b"Host: a\r\n"[..], &b"/"[..]);
            let ask = AskHead { method: b"POST", target, fields, body: length, upgrade: false };
            connection.codec().write_request_head(&mut output, ask).unwrap();
            connection.codec().write_data(&mut output, &body);
            connection.codec().finish(&mut output, &[]);
            {
                let mut writing = std::pin::pin!(connection.write(&output, &[]));
                let mut context = Context::from_waker(Waker::noop());
                assert!(writing.as_mut().poll(&mut context).is_pending());
                if written_whole {
                    let (mut reader, mut read) = (peer.try_clone().unwrap(), vec![0; output.len()]);
                    let reading = std::thread::spawn(move || reader.read_exact(&mut read));
                    writing.await.unwrap();
                    reading.join().unwrap().unwrap();
                }
            }
            peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            let (mut input, mut head) = (Input::new(), ResponseHead::new());
            poll_fn(|context| connection.poll_fill(&mut input, context)).await.unwrap();
            connection.codec().read_head(input.unread(), &mut head).unwrap().unwrap();
            assert!(matches!(connection.codec().read_body(&[]), Ok(BodyRead::End { consumed: 0 })));
            assert_eq!(connection.reuse(0), written_whole);
        }
    }

    #[tokio::test]
    async fn only_a_socket_on_which_the_right_user_listens_is_connected_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, link) = (folder.path().join("app.sock"), folder.path().join("link.sock"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        std::os::unix::fs::symlink(&socket, &link).expect("linked");
        let own = rustix::process::geteuid().as_raw();
        let failed = async |path, uid| connect_unix(path, uid).await.err().map(|error| error.to_string());
        assert_eq!(failed(&socket, Some(own)).await, None);
        assert_eq!(failed(&link, None).await, None);
        let other = failed(&socket, Some(own + 1)).await.expect("refused");
        assert!(other.contains(&format!("a process of user {own} instead of {}", own + 1)), "{other}");
        listener.set_nonblocking(true).expect("set");
        while listener.accept().is_ok() {}
        let linked = failed(&link, Some(own)).await.expect("refused");
        assert!(linked.contains("is no socket but a link"), "{linked}");
        assert!(listener.accept().is_err(), "not even connected to");
    }

    #[test]
    fn a_keep_alive_field_says_how_long() {
        let rows: [(&[u8], Option<u64>); 8] = [
            (b"timeout=5", Some(5)),
            (b"max=100, Timeout = 5", Some(5)),
            (b"timeout=9, timeout=3", Some(3)),
            (b"timeout=18446744073709551615", Some(u64::MAX)),
            (b"timeout=18446744073709551616", None),
            (b"timeout", None),
            (b"timeout=-1,=,", None),
            (b"\xff=5", None),
        ];
        for (value, seconds) in rows {
            assert_eq!(timeout(value), seconds.map(Duration::from_secs), "{}", value.escape_ascii());
        }
    }
}
