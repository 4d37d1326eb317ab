//! One request and its response on a stream.
//!
//! Owns what has come of the response. Never takes a part of a response for the whole.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Error, Reason, RecvStream, SendStream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

/// A stream, as long as it is open. Dropped before its end, it is reset with CANCEL.
pub(crate) struct Exchange {
    /// Until the head is there.
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    /// The request's body, which may still be on its way.
    upload: Option<SendStream<Bytes>>,
    status: u16,
    fields: HeaderMap,
    /// Bytes of the body that came.
    received: u64,
}

/// Why there is no whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server reset the stream (RFC 9113 section 5.4.2).
    Reset(Reason),
    /// The server sent GOAWAY and did not process the request (RFC 9113 section 6.8).
    GoAway(Reason),
    /// The body is not as long as its Content-Length says.
    Truncated,
    /// What came is not HTTP/2.
    Malformed,
    /// The connection ended; whether a part of the response had come.
    Lost {
        /// Its head was there.
        has_head: bool,
    },
}

impl Exchange {
    pub(super) fn new(response: ResponseFuture, upload: Option<SendStream<Bytes>>) -> Exchange {
        Exchange {
            response: Some(response),
            body: None,
            upload,
            status: 0,
            fields: HeaderMap::new(),
            received: 0,
        }
    }

    /// The response's fields, once it is whole.
    pub(crate) fn fields(&self) -> &HeaderMap {
        &self.fields
    }

    /// Whether the head of the response is there.
    pub(crate) fn has_head(&self) -> bool {
        self.response.is_none()
    }

    /// Takes what came; ready with the status once the response is whole. `take` is handed each piece of the body.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<u16, Ended>> {
        let outcome = ready!(self.poll_whole(context, take));
        Poll::Ready(match outcome {
            Ok(()) => Ok(self.status),
            Err(error) if self.is_whole_without_the_request(&error) => Ok(self.status),
            Err(error) => Err(self.ended(&error)),
        })
    }

    fn poll_whole(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<(), Error>> {
        if let Some(response) = &mut self.response {
            let (head, body) = ready!(Pin::new(response).poll(context))?.into_parts();
            self.status = head.status.as_u16();
            self.fields = head.headers;
            self.response = None;
            self.body = Some(body);
        }
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        while let Some(piece) = ready!(body.poll_data(context)) {
            let piece = piece?;
            self.received += piece.len() as u64;
            take(&piece);
            // The server may send as many again.
            body.flow_control().release_capacity(piece.len())?;
        }
        ready!(body.poll_trailers(context))?;
        Poll::Ready(Ok(()))
    }

    fn declared(&self) -> Option<u64> {
        self.fields.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// A server that needs no more of a request's body resets the stream with NO_ERROR behind its whole response (RFC
    /// 9113 section 8.1).
    fn is_whole_without_the_request(&self, error: &Error) -> bool {
        let is_asked_to_stop =
            error.is_reset() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR);
        is_asked_to_stop && self.upload.is_some() && self.has_head() && self.declared() == Some(self.received)
    }

    fn ended(&self, error: &Error) -> Ended {
        match error.reason() {
            Some(reason) if error.is_remote() && error.is_reset() => Ended::Reset(reason),
            Some(reason) if error.is_remote() && error.is_go_away() => Ended::GoAway(reason),
            _ if error.is_io() => Ended::Lost { has_head: self.has_head() },
            _ if error.is_reset() && self.declared().is_some_and(|declared| declared > self.received) => {
                Ended::Truncated
            }
            _ => Ended::Malformed,
        }
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Exchange").field("status", &self.status).finish_non_exhaustive()
    }
}
