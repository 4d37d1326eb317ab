//! `app`: calls an application's handlers in its worker processes.
//!
//! A request gets a slot at a worker, goes out on this core's connection to it ([`Stream`], [`head`]) while its body follows ([`upload`]), and its answer comes back ([`download`]). A request that
//! was handed over counts as begun: it is given to another worker only where the first one said that it
//! had not begun it, or where the configuration allows that for requests that change nothing. Programs that
//! speak HTTP instead are called by [`program`]. Pool, worker connections and affinity are `onehop_workers`;
//! whether a proxy in front is believed is `onehop_message::trusted_proxies`.

mod download;
mod failure_page;
mod file;
mod head;
mod program;
mod tunnel;
mod upload;

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use onehop_http1::{BodyLength, Method};
use onehop_message::error::HttpError;
use onehop_message::response::{Body, Response};
use onehop_message::trusted_proxies::Trust;
use onehop_wire::limits::{FREE_BODY_BYTES, INLINE_BODY_BYTES_MAX};
use onehop_wire::{self as wire, ResetCode};
use onehop_workers::affinity::RequestAffinity;
use onehop_workers::connection::WorkerConnection;
use onehop_workers::pool::{Choice, Grant};
use onehop_workers::stream::Stream;
use onehop_workers::{Affinity, Pool, Transport, Worker, WorkerId, WorkerIndex};

use crate::limits::{APP_ATTEMPTS_MAX, APP_RETRY_AFTER_SECONDS};
use crate::request::context::RequestContext;
use crate::request::core::Core;
use onehop_connection::Ended;
use onehop_connection::{RequestBody, ResponseWriter, Sent, Slot};

/// What all parts of one call have in common.
struct Call<'a> {
    pool: &'a Arc<Pool>,
    core: &'a Rc<Core>,
    /// As much of the request's body as was there at the beginning.
    opening: Vec<u8>,
    /// That was all of it.
    is_complete: bool,
    /// Fields follow it.
    has_trailers: bool,
    /// Who did not begin it. It has few requests because it refuses them, so others are asked first.
    refused_by: Cell<Option<WorkerId>>,
    /// Which worker it should be.
    affinity: RequestAffinity,
    /// How far its peer is believed.
    trust: Trust<'a>,
}

/// A place at a worker, given back when this is dropped.
struct Place<'a> {
    pool: &'a Arc<Pool>,
    worker: Arc<Worker>,
}

impl<'a> Place<'a> {
    /// What a response keeps that others can have while its client is slow.
    fn slot(&self) -> Slot {
        Slot::at_worker(self.pool.clone(), self.worker.clone())
    }

    fn new(pool: &'a Arc<Pool>, worker: Arc<Worker>) -> Self {
        worker.start();
        Self { pool, worker }
    }
}

/// The worker to which this request is led.
pub(crate) fn affinity(context: &RequestContext<'_>, pool: &Pool) -> Affinity {
    let trust = Trust::of(&pool.app.trusted_proxies, &context.request.origin);
    pool.affinity
        .as_ref()
        .map_or(Affinity::Any, |sticky| sticky.of(&context.request, trust, pool.worker_count()).affinity)
}

/// Calls the application. An error means that nothing final was sent.
pub(crate) async fn call(
    context: &mut RequestContext<'_>,
    pool: &Arc<Pool>,
    core: &Rc<Core>,
    upload: &mut RequestBody<'_, '_>,
    download: &mut ResponseWriter<'_, '_>,
    answer: &mut Response,
) -> Result<Ended, HttpError> {
    if let Some(failure) = &**pool.failure()
        && failure_page::is_navigation(context.request.head)
    {
        failure_page::fill(&pool.app.name, failure, answer);
        return Ok(Ended::Complete);
    }
    let trust = Trust::of(&pool.app.trusted_proxies, &context.request.origin);
    let affinity = pool
        .affinity
        .as_ref()
        .map_or(RequestAffinity::ANY, |sticky| sticky.of(&context.request, trust, pool.worker_count()));
    let refused_by = Cell::new(None);
    let (opening, is_complete, has_trailers) = (Vec::new(), true, false);
    let mut call = Call { pool, core, opening, is_complete, has_trailers, refused_by, affinity, trust };
    if upload.length() != BodyLength::None {
        // A client that waits to be asked for its body has sent none.
        call.is_complete =
            !upload.expects_continue() && upload.take_ready(&mut call.opening, INLINE_BODY_BYTES_MAX)?;
        call.has_trailers = call.is_complete && upload.has_trailers();
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        let place = call.place(upload, download).await?;
        context.own_cookie = call.cookie(context, &place);
        if matches!(place.worker.transport, Transport::Http { .. }) {
            let id = place.worker.id;
            let ended = program::exchange(&call, context, place, upload, download, answer).await;
            match ended {
                Ok(ended) => return Ok(ended),
                // Nothing of the request has left.
                Err(program::Failed::Unreachable) if attempts < APP_ATTEMPTS_MAX => {
                    // It has few requests because it takes none; that it has ended is known soon.
                    call.refused_by.set(Some(id));
                    continue;
                }
                Err(program::Failed::Unreachable) => return Err(HttpError::WorkerDied),
                Err(program::Failed::HttpError(fault))
                    if attempts < APP_ATTEMPTS_MAX && call.may_go_elsewhere(context, fault, download) =>
                {
                    answer.clear();
                    continue;
                }
                Err(program::Failed::HttpError(fault)) => return Err(fault),
            }
        }
        let Some(connection) = core.workers.find(place.worker.id) else {
            // Its loss is known here and not yet everywhere. The request was handed to nobody, so this is no
            // attempt; each such worker is met once.
            pool.withdraw(place.worker.id);
            attempts -= 1;
            continue;
        };
        let ended = call.attempt(context, place, &connection, upload, download, answer).await;
        match ended {
            Err(fault) if attempts < APP_ATTEMPTS_MAX && call.may_go_elsewhere(context, fault, download) => {
                answer.clear();
            }
            ended => return ended,
        }
    }
}

impl Call<'_> {
    /// Whether a request may be given to another worker.
    fn may_go_elsewhere(
        &self,
        context: &RequestContext<'_>,
        fault: HttpError,
        download: &ResponseWriter<'_, '_>,
    ) -> bool {
        let nothing_is_lost = self.is_complete && download.state() == Sent::Nothing;
        let is_safe =
            matches!(context.request.head.method(), Method::Get | Method::Head) && self.opening.is_empty();
        nothing_is_lost
            && match fault {
                HttpError::WorkerRefused => true,
                HttpError::WorkerDied => self.pool.app.retry && is_safe,
                _ => false,
            }
    }

    /// The cookie that leads back to this worker, where the request has none.
    fn cookie(&self, context: &RequestContext<'_>, place: &Place<'_>) -> Option<Vec<u8>> {
        let sticky = self.pool.affinity.as_ref().filter(|_| self.affinity.is_unassigned)?;
        sticky.set_cookie(
            place.worker.index,
            self.trust.is_encrypted(context.request.head, &context.request.origin),
        )
    }

    /// Looks at the beginning of an answer's body for what later requests will come with.
    fn learn(&self, index: WorkerIndex, body: &[u8]) {
        if let Some(sticky) = self.pool.affinity.as_ref().filter(|_| self.affinity.is_unassigned) {
            sticky.learn(index, body, self.pool.worker_count());
        }
    }

    /// Waits for a place at a worker.
    async fn place(
        &self,
        upload: &mut RequestBody<'_, '_>,
        download: &ResponseWriter<'_, '_>,
    ) -> Result<Place<'_>, HttpError> {
        // Requests that know where they go take nobody's turn: those that begin something must spread.
        let turn = if self.affinity.affinity == Affinity::Any { self.core.connection.next_turn() } else { 0 };
        let (waiting, ticket) = match self.pool.choose(turn, self.refused_by.get(), self.affinity.affinity) {
            Choice::Now(worker) => return Ok(Place::new(self.pool, worker)),
            Choice::QueueFull => {
                return Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS });
            }
            Choice::Failing(retry_after) => return Err(HttpError::AppFailing { retry_after }),
            Choice::Later(waiting, ticket) => (waiting, ticket),
        };
        download.expect_handler_within(self.pool.app.queue_wait);
        let late =
            poll_fn(|context| if download.poll_late(context) { Poll::Ready(()) } else { Poll::Pending });
        tokio::select! {
            biased;
            grant = waiting => {
                let worker = grant.ok().and_then(Grant::into_worker);
                worker.map(|worker| Place::new(self.pool, worker)).ok_or_else(|| match self.pool.failing() {
                    Some(retry_after) => HttpError::AppFailing { retry_after },
                    // It had to make room.
                    None => HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS },
                })
            }
            () = upload.gone_or(|| self.pool.half_closed(ticket)) => Err(HttpError::ClientGone),
            () = late => Err(HttpError::AppQueueTimeout { retry_after: APP_RETRY_AFTER_SECONDS }),
        }
    }

    /// Hands a request to a worker and takes its answer.
    async fn attempt(
        &self,
        context: &mut RequestContext<'_>,
        place: Place<'_>,
        connection: &Rc<WorkerConnection>,
        upload: &mut RequestBody<'_, '_>,
        download: &mut ResponseWriter<'_, '_>,
        answer: &mut Response,
    ) -> Result<Ended, HttpError> {
        let id = place.worker.id;
        let Some(stream) = Stream::open(connection) else {
            return Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS });
        };
        let sent = self.open(context, &stream, upload)?;
        let rest = upload::Rest {
            piece: self.opening.get(sent..).unwrap_or_default(),
            is_last: self.is_complete,
            is_sent: self.is_complete && sent == self.opening.len() && !self.has_trailers,
        };
        let continued = tokio::sync::Notify::new();
        let ended = {
            let uploading = upload::send(upload, &stream, rest, &continued);
            let downloading = download::receive(self, context, &stream, download, answer, &continued, place);
            tokio::select! {
                biased;
                ended = downloading => ended,
                fault = uploading => Err(fault),
            }
        };
        match ended {
            Ok(download::Received::Ended(ended)) => Ok(ended),
            Ok(download::Received::Upgraded) => {
                let patience = self.core.connection.timeouts().body_progress;
                tunnel::run(&stream, upload, download, patience).await;
                Ok(Ended::Tunnelled)
            }
            Err(fault) => {
                stream.reason.set(match fault {
                    HttpError::WorkerTimeout => ResetCode::Timeout,
                    HttpError::WorkerBroken => ResetCode::Broken,
                    _ => ResetCode::ClientGone,
                });
                if fault == HttpError::WorkerRefused {
                    // It has few requests because it refuses them: nobody else should be sent there.
                    self.refused_by.set(Some(id));
                    self.pool.withdraw(id);
                }
                // After the head an error can only be a break.
                if download.state() == Sent::Nothing { Err(fault) } else { Ok(Ended::Broken(fault)) }
            }
        }
    }

    /// Sends the request's head, and of the body that is there what credit allows: so many bytes.
    fn open(
        &self,
        context: &RequestContext<'_>,
        stream: &Stream,
        upload: &RequestBody<'_, '_>,
    ) -> Result<usize, HttpError> {
        let parts = head::parts(
            context,
            upload.length(),
            upload.expects_continue(),
            self.core.connection.next_request_id(),
        );
        let length = self.opening.len();
        let is_free = self.is_complete && length <= FREE_BODY_BYTES && !self.has_trailers;
        let room = if is_free { length } else { stream.take_room(length) };
        let now = self.opening.get(..room).unwrap_or_default();
        let end = self.is_complete && room == length && !self.has_trailers;
        let written = stream.write(end, |out, slot, generation| {
            let write = |writer: &mut wire::HeadWriter<'_>| head::write_request(context, self.trust, writer);
            wire::encode::request(out, slot, generation, end, &parts, write, now).or_else(|broken| {
                // Only routes that make a head very long get here. The slot's generation is spent, so the worker
                // has to see it: a request that is over at once.
                let nothing = |_: &mut wire::HeadWriter<'_>| {};
                wire::encode::request(out, slot, generation, true, &parts, nothing, &[])?;
                wire::encode::reset(out, slot, generation, ResetCode::ClientGone);
                Err(broken)
            })
        });
        written.map_err(|_| HttpError::Malformed(onehop_http1::Refusal::HeadTooLarge)).map(|()| room)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pool.give_back(&self.worker);
    }
}

/// An answer whose body is there as a whole.
fn whole(answer: &mut Response, body: &[u8], length: Option<u64>, is_withheld: bool) {
    answer.body = match (body.is_empty(), is_withheld) {
        (_, true) => Body::Withheld(length.or(Some(body.len() as u64).filter(|length| *length > 0))),
        (true, false) => Body::Empty,
        (false, false) => Body::Bytes(body.to_vec()),
    };
}
