//! The buffers of a connection while it is busy. An idle connection holds none.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use onehop_http1::RequestHead;
use onehop_message::response::Response;
use tokio::io::{AsyncRead, ReadBuf};

use crate::buffer_pool::Reusable;
use crate::client_stream::ClientStream;
use crate::limits::{INPUT_BYTES_MAX, READ_BUFFER_BYTES};

/// The buffers of one busy connection.
pub struct ConnectionBuffers {
    /// Bytes from the client that are not yet parsed.
    pub input: Input,
    /// Responses that wait to be written.
    pub output: Vec<u8>,
    /// The head of the request that is being served.
    pub head: RequestHead,
    /// Its response, where that is made as a whole.
    pub response: Response,
}

/// Bytes from a socket that are not yet parsed.
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Reusable for ConnectionBuffers {
    fn new() -> Self {
        Self {
            input: Input::new(),
            output: Vec::with_capacity(READ_BUFFER_BYTES),
            head: RequestHead::new(),
            response: Response::default(),
        }
    }

    fn bytes_held(&self) -> usize {
        self.input.bytes_held() + self.output.capacity() + self.head.bytes_held()
    }

    fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.response.clear();
    }
}

impl Default for Input {
    fn default() -> Self {
        Self::new()
    }
}

impl Input {
    /// An empty buffer.
    pub fn new() -> Self {
        Self { bytes: vec![0; READ_BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Bytes of memory that the buffer holds.
    pub fn bytes_held(&self) -> usize {
        self.bytes.len()
    }

    /// Grows the buffer to at least this many bytes.
    pub fn widen(&mut self, bytes: usize) {
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
    }

    /// Bytes for which there is room besides those that are not yet consumed.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.unread().len()
    }

    /// The bytes that are not yet consumed.
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether all bytes are consumed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Consumes bytes that were parsed.
    pub fn consume(&mut self, bytes: usize) {
        self.start = self.end.min(self.start + bytes);
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Drops a line end if the buffer holds nothing else.
    pub fn drop_stray_line_end(&mut self) {
        if self.unread() == b"\r\n" {
            self.clear();
        }
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Reads once from the client's socket and appends; 0 is the end of the stream.
    pub fn poll_fill(
        &mut self,
        socket: &mut ClientStream,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        self.poll_fill_from(socket, context)
    }

    /// Reads once from any stream and appends; 0 is the end of the stream.
    pub fn poll_fill_from(
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
        } else if self.bytes.len() < INPUT_BYTES_MAX {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}
