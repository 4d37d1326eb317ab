//! One request at a time over HTTP/2.
//!
//! Owns one kept connection. Sends before it waits: what the server needs to go on is out before its bytes are read.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::HeaderMap;

use super::stream::{Stream, Wait};
use super::{BODY_BYTES_MAX, READ_BYTES, RequestError, Response};
use crate::http2::{self, Ended, Exchange, Http2, Http2Request};
use crate::tls::Tls;
use crate::url::Address;

/// A connection whose SETTINGS came.
#[derive(Debug)]
pub(super) struct Http2Connection {
    stream: Stream,
    http2: Http2,
    pub(super) tls: Option<Tls>,
    /// Bytes that came, heads and framing included.
    bytes_read: u64,
    /// Why it is of no more use.
    over: Option<String>,
}

impl Http2Connection {
    /// Connects and waits for the server's SETTINGS (RFC 9113 section 3.4), without which it speaks no HTTP/2.
    pub(super) fn open(
        address: &Address,
        tls: Option<&Tls>,
        wait: &Wait<'_>,
    ) -> Result<Http2Connection, RequestError> {
        let stream = Stream::open(address, tls, wait)?;
        let http2 = Http2::begin().map_err(|error| RequestError::Http2(error.to_string()))?;
        let mut connection = Http2Connection { stream, http2, tls: tls.cloned(), bytes_read: 0, over: None };
        while connection.http2.streams_allowed() == 0 {
            connection.turn(wait)?;
            if let Some(why) = connection.over.take() {
                return Err(RequestError::Http2(why));
            }
        }
        Ok(connection)
    }

    /// The connection beneath.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether it takes one more request.
    pub(super) fn is_usable(&mut self) -> bool {
        self.over.is_none() && self.http2.goaway().is_none()
    }

    /// Sends one request and waits for its whole response.
    pub(super) fn request(
        &mut self,
        request: &Http2Request,
        begun: Instant,
        wait: &Wait<'_>,
    ) -> Result<Response, RequestError> {
        let read_before = self.bytes_read;
        let mut exchange = self.http2.request(request).map_err(|_| RequestError::Closed)?;
        let mut body = Vec::new();
        let mut first_byte = None;
        let status = loop {
            let mut take = |piece: &[u8]| body.extend_from_slice(piece);
            match exchange.poll(&mut Context::from_waker(Waker::noop()), &mut take) {
                Poll::Ready(outcome) => break outcome,
                Poll::Pending if self.over.is_some() => {
                    break Err(Ended::Lost { has_head: exchange.has_head() });
                }
                Poll::Pending => {}
            }
            if body.len() > BODY_BYTES_MAX {
                return Err(RequestError::TooLong);
            }
            self.turn(wait)?;
            if self.bytes_read > read_before {
                first_byte.get_or_insert_with(|| begun.elapsed());
            }
        };
        let bytes_read = self.bytes_read - read_before;
        let status = status.map_err(|ended| failure(&ended, bytes_read))?;
        Ok(response(status, &exchange, body, bytes_read, begun, first_byte))
    }

    /// Sends what is to be sent; where that is nothing, waits for more and processes it.
    fn turn(&mut self, wait: &Wait<'_>) -> Result<(), RequestError> {
        if self.process(wait)? || self.over.is_some() {
            return Ok(());
        }
        let mut buffer = vec![0; READ_BYTES];
        let count = self.stream.read(&mut buffer, wait)?;
        self.bytes_read += count as u64;
        match count {
            0 => self.http2.end(),
            _ => self.http2.receive(|bytes| bytes.extend_from_slice(buffer.get(..count).unwrap_or_default())),
        }
        self.process(wait).map(drop)
    }

    /// Processes what came and sends what is to be sent. Whether there was anything.
    fn process(&mut self, wait: &Wait<'_>) -> Result<bool, RequestError> {
        let mut has_sent = false;
        loop {
            if let Poll::Ready(outcome) = self.http2.poll(&mut Context::from_waker(Waker::noop())) {
                let why = outcome.err().map(|error| http2::explain(&error));
                self.over = Some(why.unwrap_or_else(|| "the server ended the connection".to_owned()));
            }
            let bytes = self.http2.send(|bytes| (bytes.len(), bytes.to_vec()));
            if bytes.is_empty() {
                return Ok(has_sent);
            }
            has_sent = true;
            self.stream.write(&bytes, wait)?;
        }
    }
}

fn failure(ended: &Ended, bytes: u64) -> RequestError {
    match ended {
        Ended::Reset(code) => RequestError::Http2(format!(
            "the server reset the stream with {}",
            http2::code_name((*code).into())
        )),
        Ended::GoAway(code) if *code == h2::Reason::NO_ERROR => RequestError::Closed,
        Ended::GoAway(code) => RequestError::Http2(format!(
            "the server ended the connection with GOAWAY, {}",
            http2::code_name((*code).into())
        )),
        Ended::Truncated | Ended::Lost { has_head: true } => RequestError::Truncated { bytes },
        Ended::Lost { has_head: false } => RequestError::Closed,
        Ended::Malformed => RequestError::Http2("what came is no valid HTTP/2".to_owned()),
    }
}

fn response(
    status: u16,
    exchange: &Exchange,
    body: Vec<u8>,
    bytes_read: u64,
    begun: Instant,
    first_byte: Option<std::time::Duration>,
) -> Response {
    let took = begun.elapsed();
    Response {
        status,
        fields: fields(exchange.fields()),
        body,
        took,
        first_byte: first_byte.unwrap_or(took),
        bytes_read,
        connected: false,
    }
}

fn fields(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    fields.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}
