//! Writing with a deadline on progress.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use onehop_message::response::Disk;
use tokio::io::AsyncWrite;

use crate::client_stream::ClientStream;
use crate::deadline::Deadline;
use crate::limits::DISK_READ_BYTES;

/// One write of two pieces, which may take several calls.
#[derive(Default)]
pub struct Writing {
    written: usize,
    is_waiting: bool,
    has_waited: bool,
    /// Without a deadline.
    is_unbounded: bool,
}

impl Writing {
    /// A write without a deadline: for protocols that have their own idea of silence.
    pub fn unbounded() -> Self {
        Self { is_unbounded: true, ..Self::default() }
    }

    /// Writes `first` and then `second`, in as few calls as the socket allows. Ends with an error if the client takes nothing
    /// for [`crate::limits::WRITE_PROGRESS_DEADLINE`]. The pieces must be the same each time.
    pub fn poll(
        &mut self,
        socket: &mut ClientStream,
        deadline: &Deadline,
        context: &mut Context<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Poll<io::Result<()>> {
        while self.written < first.len() + second.len() {
            let head = first.get(self.written..).unwrap_or_default();
            let body = second.get(self.written.saturating_sub(first.len())..).unwrap_or_default();
            let stream = Pin::new(&mut *socket);
            let polled = match (head.is_empty(), body.is_empty()) {
                (false, true) => stream.poll_write(context, head),
                (true, _) => stream.poll_write(context, body),
                (false, false) => {
                    stream.poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(body)])
                }
            };
            let count = ready!(self.within_deadline(polled, deadline, context))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
        }
        // An encrypted connection takes bytes before the kernel does.
        let polled = Pin::new(&mut *socket).poll_flush(context);
        ready!(self.within_deadline(polled, deadline, context))?;
        if self.has_waited {
            deadline.clear();
        }
        Poll::Ready(Ok(()))
    }

    /// Starts the deadline where the socket takes nothing, and ends with an error once it is over.
    fn within_deadline<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        deadline: &Deadline,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.has_waited |= std::mem::take(&mut self.is_waiting);
        } else if !self.is_unbounded {
            if !std::mem::replace(&mut self.is_waiting, true) {
                deadline.set_write();
            }
            if deadline.poll_over(context) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }

    /// Bytes that the socket has taken.
    pub fn written(&self) -> usize {
        self.written
    }
}

/// Writes bytes that a stream of HTTP/2 need not copy; see [`Writing::poll`].
pub async fn write_shared(
    socket: &mut ClientStream,
    deadline: &Deadline,
    mut bytes: Bytes,
) -> io::Result<()> {
    let mut writing = Writing::default();
    while !bytes.is_empty() {
        let written = poll_fn(|context| {
            let polled = socket.poll_write_shared(context, &bytes);
            writing.within_deadline(polled, deadline, context)
        });
        match written.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => bytes.advance(count),
        }
    }
    write_both(socket, deadline, &[], &[]).await
}

/// Writes `first` and then `second`; see [`Writing::poll`].
pub async fn write_both(
    socket: &mut ClientStream,
    deadline: &Deadline,
    first: &[u8],
    second: &[u8],
) -> io::Result<()> {
    let mut writing = Writing::default();
    poll_fn(|context| writing.poll(socket, deadline, context, first, second)).await
}

/// Writes what the socket takes without waiting; returns how many bytes that were.
async fn write_ready(socket: &mut ClientStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    poll_fn(|context| {
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut *socket).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(written))
    })
    .await
}

/// Waits until the socket takes more, within [`crate::limits::WRITE_PROGRESS_DEADLINE`].
async fn writable(socket: &mut ClientStream, deadline: &Deadline) -> io::Result<()> {
    deadline.set_write();
    let is_writable = poll_fn(|context| {
        let polled = socket.poll_writable(context);
        if polled.is_pending() && deadline.poll_over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    });
    is_writable.await?;
    deadline.clear();
    Ok(())
}

/// Streams bytes of a file, read on a thread that may wait for the disk. Holds no buffer while it waits for the client:
/// what the client did not take is read again, from the kernel's cache. So thousands of slow clients hold none.
#[expect(
    clippy::disallowed_methods,
    reason = "files that are not in memory are what a core's few blocking threads are for"
)]
pub async fn write_disk(socket: &mut ClientStream, deadline: &Deadline, disk: Disk) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let Disk { file, mut offset, mut length } = disk;
    let mut buffer = Vec::new();
    while length > 0 {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(DISK_READ_BYTES);
        let source = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || {
            buffer.resize(wanted, 0);
            source.read_at(&mut buffer, offset).map(|count| (buffer, count))
        });
        let (filled, count) = read.await.map_err(io::Error::other)??;
        if count == 0 {
            // The file became shorter than its head promised: only a cut connection says so.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let written = write_ready(socket, filled.get(..count).unwrap_or_default()).await?;
        offset += written as u64;
        length -= written as u64;
        if written == count {
            buffer = filled;
        } else {
            drop(filled);
            buffer = Vec::new();
            writable(socket, deadline).await?;
        }
    }
    write_both(socket, deadline, &[], &[]).await
}
