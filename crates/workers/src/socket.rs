//! Our end of a worker connection: a Unix socket that wakes its core only for what comes.
//!
//! tokio's own type waits for both directions at once, and a Unix socket becomes writable each time the other end reads
//! (unix_write_space in Linux): the core would be woken for every request that a worker takes, before the response. So
//! only reading is registered with the reactor, and writing while the kernel's buffer is full.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A connected socket.
pub(crate) struct Socket {
    reading: AsyncFd<UnixStream>,
    /// The same socket, while there is no room to write.
    writing: Option<AsyncFd<UnixStream>>,
}

impl Socket {
    /// Takes a socket over.
    ///
    /// # Errors
    /// What the kernel says against waiting for it.
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { reading: registered(socket, Interest::READABLE)?, writing: None })
    }

    /// Reads what there is; 0 bytes are the end.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.reading.poll_read_ready(context))?;
            let Ok(result) = guard.try_io(|socket| socket.get_ref().read(buffer)) else { continue };
            if matches!(result, Ok(count @ 1..) if count < buffer.len()) {
                // There is no more, and the reactor reports what comes then (epoll(7), edge-triggered).
                guard.clear_ready();
            }
            return Poll::Ready(result);
        }
    }

    /// Writes as much as there is room for.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let Some(writing) = &self.writing else {
                match self.reading.get_ref().write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let again = self.reading.get_ref().try_clone()?;
                        self.writing = Some(registered(again, Interest::WRITABLE)?);
                        continue;
                    }
                    result => return Poll::Ready(result),
                }
            };
            let mut guard = ready!(writing.poll_write_ready(context))?;
            if let Ok(result) = guard.try_io(|socket| socket.get_ref().write(bytes)) {
                return Poll::Ready(result);
            }
        }
    }

    /// All is written: room for more is no news.
    pub(crate) fn wrote_all(&mut self) {
        self.writing = None;
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; that of a UnixStream stays until it is dropped"
)]
fn registered(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    fn pair() -> (Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Socket::new(ours).unwrap(), theirs)
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_worker_that_reads_wakes_nobody() {
        let (mut socket, mut worker) = pair();
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let mut buffer = [0; 16];
        assert!(socket.poll_read(&mut context, &mut buffer).is_pending());
        poll_fn(|context| socket.poll_write(context, b"request")).await.unwrap();
        worker.read_exact(&mut [0; 7]).unwrap();
        // What the reactor has to say of the first socket it says before this.
        let (later, mut news) = pair();
        news.write_all(b"now").unwrap();
        poll_fn(|context| later.poll_read(context, &mut [0; 8])).await.unwrap();
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        worker.write_all(b"response").unwrap();
        assert_eq!(poll_fn(|context| socket.poll_read(context, &mut buffer)).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_full_socket_is_written_once_there_is_room() {
        let (mut socket, mut worker) = pair();
        let mut sent = 0;
        while let Poll::Ready(count) =
            poll_fn(|context| Poll::Ready(socket.poll_write(context, &[1; 64 * 1024]))).await
        {
            sent += count.unwrap();
        }
        assert!(socket.writing.is_some());
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            worker.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        sent += poll_fn(|context| socket.poll_write(context, b"more")).await.unwrap();
        socket.wrote_all();
        sent += poll_fn(|context| socket.poll_write(context, b"still more")).await.unwrap();
        drop(socket);
        assert_eq!(reader.join().unwrap(), sent);
    }

    #[tokio::test]
    async fn the_end_is_read_after_what_came_before_it() {
        let (socket, mut worker) = pair();
        worker.write_all(b"last").unwrap();
        drop(worker);
        let mut buffer = [0; 16];
        assert_eq!(poll_fn(|context| socket.poll_read(context, &mut buffer)).await.unwrap(), 4);
        assert_eq!(poll_fn(|context| socket.poll_read(context, &mut buffer)).await.unwrap(), 0);
    }
}
