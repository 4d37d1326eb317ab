//! Request bodies that no handler wants: read and dropped within bounds, so that the connection can be kept.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use onehop_http1::{BodyLength, BodyRead, Refusal};
use onehop_message::error::HttpError;

use super::{Exchange, More};
use crate::limits::DRAINED_BODY_BYTES_MAX;
use onehop_connection::buffers::Input;
use onehop_connection::deadline::Waiting;
use onehop_connection::write::write_both;

impl Exchange {
    /// Reads a request body that no handler wants, within bounds, so that the connection can be kept.
    /// A client that waits for `100 Continue` is not asked for a body; its connection is closed. Where there is too
    /// much to do (`error`), a body is not waited for.
    pub(super) async fn drop_body(
        &mut self,
        input: &mut Input,
        output: &mut Vec<u8>,
        error: Option<HttpError>,
    ) -> io::Result<Result<(), HttpError>> {
        if self.codec.body_is_read() {
            return Ok(Ok(()));
        }
        match self.codec.request_body() {
            BodyLength::None => return Ok(Ok(())),
            BodyLength::Known(length) if length > DRAINED_BODY_BYTES_MAX => {
                self.codec.close_after_answer();
                return Ok(Ok(()));
            }
            BodyLength::Known(_) | BodyLength::Chunked if self.codec.expects_continue() => {
                self.codec.close_after_answer();
                return Ok(Ok(()));
            }
            BodyLength::Known(_) | BodyLength::Chunked if error.is_some_and(HttpError::is_shed) => {
                if self.drop_ready_body(input).await.is_err() {
                    // The response is there already; what follows of the body cannot be read.
                    self.codec.close_after_answer();
                }
                return Ok(Ok(()));
            }
            BodyLength::Known(_) | BodyLength::Chunked => {}
        }
        // Answers to earlier requests must not wait for this body.
        write_both(&mut self.socket, &self.deadline, output, &[]).await?;
        output.clear();
        // The whole time, not the longest pause: no handler wants these bytes.
        let mut dropped = 0u64;
        self.deadline.set(Waiting::Body, self.core.connection.timeouts().body_progress);
        loop {
            match self.codec.read_body(input.unread()) {
                Err(refusal) => return Ok(Err(HttpError::Malformed(refusal))),
                Ok(BodyRead::End { consumed }) => {
                    input.consume(consumed);
                    return Ok(Ok(()));
                }
                Ok(BodyRead::Data { at, consumed }) => {
                    dropped += at.len() as u64;
                    input.consume(consumed);
                    if dropped > DRAINED_BODY_BYTES_MAX {
                        self.codec.close_after_answer();
                        return Ok(Ok(()));
                    }
                    continue;
                }
                Ok(BodyRead::NeedMore) => {}
            }
            match self.read_more(input).await? {
                More::Bytes => {}
                More::End => return Ok(Err(HttpError::Malformed(Refusal::UnexpectedEnd))),
                More::Late => return Ok(Err(HttpError::BodyTimeout)),
            }
        }
    }

    /// Reads what has come already of a body that no handler wants, within the same bounds. The response is there
    /// and must not wait: where the body is not at its end, the connection ends after it.
    pub(super) async fn drop_ready_body(&mut self, input: &mut Input) -> Result<(), HttpError> {
        let mut dropped = 0u64;
        while dropped <= DRAINED_BODY_BYTES_MAX {
            match self.codec.read_body(input.unread()).map_err(HttpError::Malformed)? {
                BodyRead::End { consumed } => {
                    input.consume(consumed);
                    return Ok(());
                }
                BodyRead::Data { at, consumed } => {
                    dropped += at.len() as u64;
                    input.consume(consumed);
                }
                BodyRead::NeedMore => {
                    let socket = &mut self.socket;
                    let came = poll_fn(|context| Poll::Ready(input.poll_fill(socket, context))).await;
                    // Gone or not: writing the response tells.
                    if !matches!(came, Poll::Ready(Ok(1..))) {
                        break;
                    }
                }
            }
        }
        self.codec.close_after_answer();
        Ok(())
    }
}
