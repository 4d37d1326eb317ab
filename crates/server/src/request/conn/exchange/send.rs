//! Answers on their way out, and what is noted of them.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use onehop_http1::{AnswerHead, BodyLength, Method, Next, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::response::{Body, Disk, Piece, Response, Stored};
use onehop_message::trusted_proxies::Trust;
use onehop_metrics::Handler;
use onehop_metrics::access_log::{Entry, Logs};
use onehop_metrics::site::Delivery;

use super::retain::Outcome;
use super::{After, Exchange};
use crate::request::Served;
use crate::request::core::View;
use crate::request::route::Snapshot;
use onehop_connection::buffers::{ConnectionBuffers, Input};
use onehop_connection::limits::COPIED_BODY_BYTES_MAX;
use onehop_connection::write::{write_both, write_disk, write_shared};

impl Exchange {
    /// Sends a response that is there as a whole.
    pub(super) async fn send(
        &mut self,
        output: &mut Vec<u8>,
        head: &RequestHead,
        response: &mut Response,
        view: &Rc<View>,
        served: Served,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let body = std::mem::take(&mut response.body);
        let length = body_length(&body);
        // A stop that began while the request waited is announced as well.
        if response.close || self.core.connection.is_stopping() {
            self.codec.close_after_answer();
        }
        let codec = &mut self.codec;
        self.core.connection.with_date(|date| {
            let (fields, status) = (response.fields.lines(), response.status);
            let date = if response.fields.get("date").is_some() { &[][..] } else { date };
            codec.write_head(output, AnswerHead { status, fields, date, body: length, upgrade: false });
        });
        let sent = if codec.sends_body() { bytes_of(length) } else { 0 };
        let written = if sent > 0 { self.send_body(output, view, body).await } else { Ok(()) };
        self.record(head, response, view, served, sent, started.elapsed(), written.is_err());
        written?;
        Ok(match self.codec.finish(output, &[]) {
            Next::KeepAlive => None,
            Next::Close | Next::Tunnel => Some(After::Linger),
        })
    }

    /// Counts and logs a response, whether or not the client took all of it.
    #[expect(clippy::too_many_arguments, reason = "what a log line says is just so much")]
    pub(super) fn record(
        &self,
        head: &RequestHead,
        response: &Response,
        view: &View,
        served: Served,
        sent: u64,
        took: Duration,
        aborted: bool,
    ) {
        let site = served.site.and_then(|number| view.snapshot.sites.get(number));
        let is_shed = served.error.is_some_and(HttpError::is_shed);
        let delivery = if is_shed { Delivery::Rejected } else { served.delivery };
        let counters = self.core.site_counters(view, served.site);
        counters.record(served.at, head.method(), response.status, sent, took, delivery);
        if let Some(error) = served.error {
            self.core.counters.refused(error);
        }
        let outcome = Outcome { head, response, view, served: &served, sent, took, aborted };
        if self.is_retained(response.status, &served, took) {
            self.retain(&outcome);
        }
        if served.traced.is_some() {
            self.trace(&outcome);
        }
        if let (Some(visits), Some(site)) = (self.core.visits(), site)
            && visits.is_due()
        {
            let client = Trust::of(&view.snapshot.trusted_proxies, &self.origin).client(head, &self.origin);
            visits.count(&site.label, head, client, response.status);
        }
        let logs = site.map_or_else(|| view.snapshot.logs_at(self.origin.listener), |site| &*site.logs);
        let choice = served.log.as_deref();
        let chosen = choice.map_or(Logs::USUAL, |choice| choice.logs);
        let is_logged = !logs.is_empty() && chosen != Logs::NONE;
        if is_logged && (!is_shed || self.core.rejection_lines.takes()) {
            let origin = &self.origin;
            let upstream = served.upstream.as_ref().map(|member| &*member.name);
            let (reason, error) = (served.reason.as_deref(), served.error);
            let error_id = served.error_id.map(|id| id.letters());
            let id = served.timing.as_ref().map(|timing| timing.id);
            let appended = choice.map(|choice| choice.appended.as_slice()).unwrap_or_default();
            let entry = Entry {
                id,
                head: Some(head),
                origin,
                client: Trust::of(&view.snapshot.trusted_proxies, origin).client(head, origin),
                response,
                sent,
                took,
                upstream,
                reason,
                error,
                error_id,
                aborted,
                appended,
            };
            self.core.logs.add(logs, chosen, &entry);
        }
    }

    async fn send_body(&mut self, output: &mut Vec<u8>, view: &Rc<View>, body: Body) -> io::Result<()> {
        match body {
            Body::Empty | Body::Withheld(_) => Ok(()),
            Body::Bytes(bytes) => self.send_bytes(output, &bytes).await,
            Body::Stored(stored) => self.send_stored(output, view, stored).await,
            Body::Pieces(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Bytes(bytes) => self.send_bytes(output, &bytes).await?,
                        Piece::Stored(stored) => self.send_stored(output, view, stored).await?,
                        Piece::Disk(disk) => self.send_disk(output, disk).await?,
                    }
                }
                Ok(())
            }
            Body::Disk(disk) => self.send_disk(output, disk).await,
        }
    }

    /// Bytes of a store. A stream of HTTP/2 keeps them with their snapshot until they are written.
    async fn send_stored(&mut self, output: &mut Vec<u8>, view: &View, stored: Stored) -> io::Result<()> {
        let bytes = stored_bytes(&view.snapshot, &stored);
        if self.socket.http2().is_none() || bytes.len() <= COPIED_BODY_BYTES_MAX {
            return self.send_bytes(output, bytes).await;
        }
        self.codec.note_data_written_elsewhere(bytes.len() as u64);
        write_both(&mut self.socket, &self.deadline, output, &[]).await?;
        output.clear();
        let shared = Bytes::from_owner(InSnapshot { snapshot: Arc::clone(&view.snapshot), stored });
        write_shared(&mut self.socket, &self.deadline, shared).await
    }

    async fn send_disk(&mut self, output: &mut Vec<u8>, disk: Disk) -> io::Result<()> {
        write_both(&mut self.socket, &self.deadline, output, &[]).await?;
        output.clear();
        self.codec.note_data_written_elsewhere(disk.length);
        write_disk(&mut self.socket, &self.deadline, disk).await
    }

    /// A small body is copied behind its head; a large one goes out from where it lies.
    async fn send_bytes(&mut self, output: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= COPIED_BODY_BYTES_MAX {
            self.codec.write_data(output, bytes);
            return Ok(());
        }
        self.codec.note_data_written_elsewhere(bytes.len() as u64);
        write_both(&mut self.socket, &self.deadline, output, bytes).await?;
        output.clear();
        Ok(())
    }

    /// Answers what is no request, and ends the connection: where the next one would begin is unknown.
    pub(in crate::request::conn) async fn refuse(
        &mut self,
        buffers: &mut ConnectionBuffers,
        error: HttpError,
    ) -> io::Result<After> {
        let ConnectionBuffers { input, output, response, .. } = buffers;
        self.refuse_with(input, output, response, error).await
    }

    /// The same with a connection's buffers in pieces.
    pub(super) async fn refuse_with(
        &mut self,
        input: &mut Input,
        output: &mut Vec<u8>,
        response: &mut Response,
        error: HttpError,
    ) -> io::Result<After> {
        response.clear();
        error_response::fill(error, response);
        self.codec.close_after_answer();
        let body = std::mem::take(&mut response.body);
        let codec = &mut self.codec;
        self.core.connection.with_date(|date| {
            let (status, fields) = (response.status, response.fields.lines());
            let body = body_length(&body);
            codec.write_head(output, AnswerHead { status, fields, date, body, upgrade: false });
        });
        if let Body::Bytes(text) = &body
            && codec.sends_body()
        {
            codec.write_data(output, text);
        }
        self.record_refusal(response, error, bytes_of(body_length(&body)));
        write_both(&mut self.socket, &self.deadline, output, &[]).await?;
        output.clear();
        input.clear();
        Ok(After::Linger)
    }

    fn record_refusal(&self, response: &Response, error: HttpError, sent: u64) {
        let took = Duration::ZERO;
        self.core.counters.refused(error);
        self.core.other.record(
            Handler::None.into(),
            Method::Other,
            response.status,
            sent,
            took,
            Delivery::Whole,
        );
        let view = self.core.view();
        let origin = &self.origin;
        let entry = Entry {
            id: None,
            head: None,
            origin,
            client: origin.peer.map(|peer| peer.ip().to_canonical()),
            response,
            sent,
            took,
            upstream: None,
            reason: None,
            error: Some(error),
            error_id: None,
            aborted: false,
            appended: &[],
        };
        self.core.logs.add(view.snapshot.logs_at(origin.listener), Logs::USUAL, &entry);
    }
}

fn body_length(body: &Body) -> BodyLength {
    match body {
        Body::Empty => BodyLength::None,
        Body::Withheld(None) => BodyLength::Chunked,
        Body::Withheld(Some(length)) => BodyLength::Known(*length),
        Body::Bytes(bytes) => BodyLength::Known(bytes.len() as u64),
        Body::Stored(stored) => BodyLength::Known(stored.range.len() as u64),
        Body::Pieces(pieces) => {
            let lengths = pieces.iter().map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.len() as u64,
                Piece::Stored(stored) => stored.range.len() as u64,
                Piece::Disk(disk) => disk.length,
            });
            BodyLength::Known(lengths.sum())
        }
        Body::Disk(disk) => BodyLength::Known(disk.length),
    }
}

fn bytes_of(length: BodyLength) -> u64 {
    match length {
        BodyLength::Known(bytes) => bytes,
        BodyLength::None | BodyLength::Chunked => 0,
    }
}

/// Bytes of a store, and the snapshot that holds it.
struct InSnapshot {
    snapshot: Arc<Snapshot>,
    stored: Stored,
}

impl AsRef<[u8]> for InSnapshot {
    fn as_ref(&self) -> &[u8] {
        stored_bytes(&self.snapshot, &self.stored)
    }
}

/// Bytes of a store; the numbers come from the same snapshot, so they are there.
fn stored_bytes<'v>(snapshot: &'v Snapshot, stored: &Stored) -> &'v [u8] {
    let store = snapshot.stores.get(stored.store as usize);
    let form = store.and_then(|store| store.file(stored.file)).and_then(|file| file.form(stored.encoding));
    form.and_then(|form| form.bytes.get(stored.range.clone())).unwrap_or_default()
}
