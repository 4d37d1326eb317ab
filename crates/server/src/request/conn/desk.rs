//! What a connection needs while it is busy, and gives back while it is idle.
//!
//! An idle connection holds no buffer at all.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use onehop_http1::RequestHead;
use onehop_message::response::Response;
use tokio::io::{AsyncRead, ReadBuf};

use super::socket::Socket;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, READ_BUFFER_BYTES};
use crate::request::reserve::Reusable;

/// The buffers of one busy connection.
pub(crate) struct Desk {
    pub(crate) input: Input,
    /// Answers that wait to be written.
    pub(crate) output: Vec<u8>,
    pub(crate) head: RequestHead,
    pub(crate) answer: Response,
}

/// Bytes from a socket that are not yet understood.
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Reusable for Desk {
    fn new() -> Self {
        Self {
            input: Input::new(),
            output: Vec::with_capacity(READ_BUFFER_BYTES),
            head: RequestHead::new(),
            answer: Response::default(),
        }
    }

    fn bytes_held(&self) -> usize {
        self.input.bytes_held() + self.output.capacity() + self.head.bytes_held()
    }

    fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.answer.clear();
    }
}

impl Input {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; READ_BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Bytes of memory that are held.
    pub(crate) fn bytes_held(&self) -> usize {
        self.bytes.len()
    }

    /// Makes room for at least so many bytes in one read.
    pub(crate) fn widen(&mut self, bytes: usize) {
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
    }

    /// Bytes for which there is room besides what has come and is not yet consumed.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - self.unread().len()
    }

    /// What has come and is not yet consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether everything was consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// These bytes are understood.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = self.end.min(self.start + bytes);
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Drops a line end that is all there is.
    pub(crate) fn drop_stray_line_end(&mut self) {
        if self.unread() == b"\r\n" {
            self.clear();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Reads once behind what is there; 0 is the end of the stream.
    pub(crate) fn poll_fill(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        self.poll_fill_from(socket, context)
    }

    /// The same of any stream.
    pub(crate) fn poll_fill_from(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        self.make_room();
        let mut buffer = ReadBuf::new(self.bytes.get_mut(self.end..).unwrap_or_default());
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        let filled = buffer.filled().len();
        self.end += filled;
        Poll::Ready(Ok(filled))
    }

    fn make_room(&mut self) {
        if self.end < self.bytes.len() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else if self.bytes.len() < ANSWER_HEAD_BYTES_MAX * 2 {
            // A head, of a request or of an answer, longer than the codec's bound is refused before this bound is reached.
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}
