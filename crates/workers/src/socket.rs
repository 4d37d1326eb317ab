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
    /// None after the reactor has refused to wait for it, which ends the connection.
    registered: Option<AsyncFd<UnixStream>>,
    /// The kernel's buffer is full: the reactor waits for both directions.
    is_full: bool,
}

impl Socket {
    /// Takes a socket over.
    ///
    /// # Errors
    /// What the kernel says against waiting for it.
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { registered: Some(register(socket, Interest::READABLE)?), is_full: false })
    }

    /// Reads what there is; 0 bytes are the end.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let registered = self.registered.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        loop {
            let mut guard = ready!(registered.poll_read_ready(context))?;
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
            let registered = self.registered.as_ref().ok_or(io::ErrorKind::NotConnected)?;
            if self.is_full {
                let mut guard = ready!(registered.poll_write_ready(context))?;
                if let Ok(result) = guard.try_io(|socket| socket.get_ref().write(bytes)) {
                    return Poll::Ready(result);
                }
            } else {
                match registered.get_ref().write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.wait_for_room(true, context)?;
                    }
                    result => return Poll::Ready(result),
                }
            }
        }
    }

    /// All is written: room for more is no news.
    ///
    /// # Errors
    /// What the kernel says against waiting for reading alone.
    pub(crate) fn wrote_all(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.wait_for_room(false, context)
    }

    /// Registers the socket anew, without another descriptor: a server that has none left keeps its workers.
    fn wait_for_room(&mut self, is_full: bool, context: &Context<'_>) -> io::Result<()> {
        if self.is_full == is_full {
            return Ok(());
        }
        let interest = if is_full { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let socket = self.registered.take().ok_or(io::ErrorKind::NotConnected)?.into_inner();
        self.registered = Some(register(socket, interest)?);
        self.is_full = is_full;
        // The new registration knows of no reader.
        context.waker().wake_by_ref();
        Ok(())
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; that of a UnixStream stays until it is dropped"
)]
fn register(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
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

    /// Fills the kernel's buffer; gives the bytes that it took.
    async fn fill(socket: &mut Socket) -> usize {
        let mut sent = 0;
        while let Poll::Ready(count) =
            poll_fn(|context| Poll::Ready(socket.poll_write(context, &[1; 64 * 1024]))).await
        {
            sent += count.unwrap();
        }
        assert!(socket.is_full);
        sent
    }

    #[tokio::test]
    async fn a_full_socket_is_written_once_there_is_room() {
        let (mut socket, mut worker) = pair();
        let mut sent = fill(&mut socket).await;
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            worker.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        sent += poll_fn(|context| socket.poll_write(context, b"more")).await.unwrap();
        poll_fn(|context| Poll::Ready(socket.wrote_all(context))).await.unwrap();
        assert!(!socket.is_full);
        sent += poll_fn(|context| socket.poll_write(context, b"still more")).await.unwrap();
        drop(socket);
        assert_eq!(reader.join().unwrap(), sent);
    }

    #[tokio::test]
    async fn what_comes_while_a_socket_is_full_and_after_that_is_read() {
        let (mut socket, mut worker) = pair();
        // As a connection's task does: it waits for bytes, then writes, and waits for both.
        let (tell, full) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            full.recv().unwrap();
            worker.write_all(b"one").unwrap();
            full.recv().unwrap();
            let mut taken = vec![0; full.recv().unwrap()];
            worker.read_exact(&mut taken).unwrap();
            full.recv().unwrap();
            worker.write_all(b"two").unwrap();
        });
        let mut sent = 0;
        let mut buffer = [0; 16];
        let count = poll_fn(|context| {
            if let Poll::Ready(count) = socket.poll_read(context, &mut buffer) {
                return Poll::Ready(count.unwrap());
            }
            let was_full = socket.is_full;
            while let Poll::Ready(count) = socket.poll_write(context, &[1; 64 * 1024]) {
                sent += count.unwrap();
            }
            if !was_full {
                tell.send(0).unwrap();
            }
            Poll::Pending
        })
        .await;
        assert_eq!(&buffer[..count], b"one");
        tell.send(0).unwrap();
        tell.send(sent).unwrap();
        poll_fn(|context| socket.poll_write(context, b"!")).await.unwrap();
        let mut is_over = false;
        let count = poll_fn(|context| {
            if let Poll::Ready(count) = socket.poll_read(context, &mut buffer) {
                return Poll::Ready(count.unwrap());
            }
            socket.wrote_all(context).unwrap();
            if !std::mem::replace(&mut is_over, true) {
                tell.send(0).unwrap();
            }
            Poll::Pending
        })
        .await;
        assert_eq!(&buffer[..count], b"two");
        worker.join().unwrap();
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
