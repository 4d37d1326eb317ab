//! Writing with a deadline on progress.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::AsyncWrite;

use super::deadline::Deadline;
use super::socket::Socket;
use crate::limits::DISK_READ_BYTES;
use crate::request::answer::Disk;

/// Writes `first` and then `second`, in as few calls as the socket allows. A client that takes nothing
/// for [`crate::limits::WRITE_PROGRESS_DEADLINE`] is given up.
pub(crate) async fn write_both(
    socket: &mut Socket,
    deadline: &Deadline,
    first: &[u8],
    second: &[u8],
) -> io::Result<()> {
    let total = first.len() + second.len();
    let mut written = 0;
    let mut waiting = false;
    let mut has_waited = false;
    while written < total {
        let count = poll_fn(|context| {
            let head = first.get(written..).unwrap_or_default();
            let body = second.get(written.saturating_sub(first.len())..).unwrap_or_default();
            let stream = Pin::new(&mut *socket);
            let polled = match (head.is_empty(), body.is_empty()) {
                (false, true) => stream.poll_write(context, head),
                (true, _) => stream.poll_write(context, body),
                (false, false) => {
                    stream.poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(body)])
                }
            };
            if polled.is_pending() {
                if !std::mem::replace(&mut waiting, true) {
                    deadline.set_write();
                }
                if deadline.poll_over(context) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            polled
        })
        .await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        written += count;
        has_waited |= std::mem::take(&mut waiting);
    }
    if has_waited {
        deadline.clear();
    }
    Ok(())
}

/// Streams bytes of a file, read on a thread that may wait for the disk.
#[expect(
    clippy::disallowed_methods,
    reason = "files that are not in memory are what a core's few blocking threads are for"
)]
pub(crate) async fn write_disk(socket: &mut Socket, deadline: &Deadline, disk: Disk) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let Disk { file, mut offset, mut length } = disk;
    let file = Arc::new(file);
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
        write_both(socket, deadline, filled.get(..count).unwrap_or_default(), &[]).await?;
        buffer = filled;
        offset += count as u64;
        length -= count as u64;
    }
    Ok(())
}
