//! One call of an application: what its parts share, and the slot that it takes at a worker.
//!
//! A slot is taken for work, never for waiting on a client. Writes nothing to the client or a worker.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use onehop_connection::{Core, RequestBody, ResponseEdits, ResponseWriter, Sent, Slot};
use onehop_http1::{BodyLength, Method};
use onehop_message::error::HttpError;
use onehop_message::request::Request;
use onehop_message::response::Response;
use onehop_message::trusted_proxies::Trust;
use onehop_wire::limits::INLINE_BODY_BYTES_MAX;

use crate::affinity::{Affinity, RequestAffinity};
use crate::limits::APP_RETRY_AFTER_SECONDS;
use crate::pool::{Choice, Grant, Pool};
use crate::worker::{Worker, WorkerId, WorkerIndex};

/// What all parts of one call share.
pub struct Call<'a> {
    /// The request, as the routes have made it.
    pub request: &'a Request<'a>,
    /// The request's id, the same for every worker that gets it.
    pub id: u64,
    /// What the routes do to its response.
    pub edits: &'a dyn ResponseEdits,
    /// The application.
    pub pool: &'a Arc<Pool>,
    /// The core that serves the client's connection.
    pub core: &'a Rc<Core>,
    /// As much of the request's body as had arrived at the start.
    pub opening: Vec<u8>,
    /// That was all of it.
    pub is_complete: bool,
    /// Trailers follow it.
    pub(crate) has_trailers: bool,
    /// How far its peer is trusted.
    pub trust: Trust<'a>,
    /// Which worker it should go to.
    affinity: RequestAffinity,
    /// The worker that did not start it. It has few requests because it refuses them, so others are tried first.
    refused_by: Cell<Option<WorkerId>>,
    /// The cookie that leads back to the worker that it has a slot at.
    cookie: Cell<Option<Vec<u8>>>,
}

/// A slot at a worker, freed when this is dropped.
pub struct HeldSlot<'a> {
    pool: &'a Arc<Pool>,
    /// The worker.
    pub worker: Arc<Worker>,
}

/// The worker that a request should go to.
pub fn affinity(request: &Request<'_>, pool: &Pool) -> Affinity {
    let trust = Trust::of(&pool.app.trusted_proxies, &request.origin);
    request_affinity(request, trust, pool).affinity
}

fn request_affinity(request: &Request<'_>, trust: Trust<'_>, pool: &Pool) -> RequestAffinity {
    let policy = pool.affinity.as_ref();
    policy.map_or(RequestAffinity::ANY, |policy| policy.of(request, trust, pool.worker_count()))
}

impl<'a> Call<'a> {
    /// Starts a call: takes what has arrived of the body.
    pub fn start(
        request: &'a Request<'a>,
        id: u64,
        edits: &'a dyn ResponseEdits,
        pool: &'a Arc<Pool>,
        core: &'a Rc<Core>,
        body: &mut RequestBody<'_, '_>,
    ) -> Result<Self, HttpError> {
        let trust = Trust::of(&pool.app.trusted_proxies, &request.origin);
        let mut call = Self {
            request,
            id,
            edits,
            pool,
            core,
            opening: Vec::new(),
            is_complete: true,
            has_trailers: false,
            trust,
            affinity: request_affinity(request, trust, pool),
            refused_by: Cell::new(None),
            cookie: Cell::new(None),
        };
        if body.length() != BodyLength::None {
            // A client that waits for 100 has sent none of its body.
            call.is_complete =
                !body.expects_continue() && body.take_ready(&mut call.opening, INLINE_BODY_BYTES_MAX)?;
            call.has_trailers = call.is_complete && body.has_trailers();
        }
        Ok(call)
    }

    /// Waits for a slot at a worker.
    pub async fn take_slot(
        &self,
        body: &mut RequestBody<'_, '_>,
        writer: &ResponseWriter<'_, '_>,
    ) -> Result<HeldSlot<'a>, HttpError> {
        let affinity = self.affinity.affinity;
        // Requests that are bound to a worker take no turn: those that are not must spread.
        let turn = if affinity == Affinity::Any { self.core.next_turn() } else { 0 };
        let (waiting, ticket) = match self.pool.choose(turn, self.refused_by.get(), affinity) {
            Choice::Now(worker) => return Ok(self.hold(worker)),
            Choice::QueueFull => {
                return Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS });
            }
            Choice::Failing(retry_after) => return Err(HttpError::AppFailing { retry_after }),
            Choice::Later(waiting, ticket) => (waiting, ticket),
        };
        writer.expect_handler_within(self.pool.app.queue_wait);
        let late = poll_fn(|context| if writer.poll_late(context) { Poll::Ready(()) } else { Poll::Pending });
        tokio::select! {
            biased;
            grant = waiting => {
                let worker = grant.ok().and_then(Grant::into_worker);
                worker.map(|worker| self.hold(worker)).ok_or_else(|| match self.pool.failing() {
                    Some(retry_after) => HttpError::AppFailing { retry_after },
                    // It had to make room.
                    None => HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS },
                })
            }
            () = body.gone_or(|| self.pool.half_closed(ticket)) => Err(HttpError::ClientGone),
            () = late => Err(HttpError::AppQueueTimeout { retry_after: APP_RETRY_AFTER_SECONDS }),
        }
    }

    fn hold(&self, worker: Arc<Worker>) -> HeldSlot<'a> {
        worker.start();
        let policy = self.pool.affinity.as_ref().filter(|_| self.affinity.is_unassigned);
        self.cookie.set(policy.and_then(|policy| {
            policy.set_cookie(worker.index, self.trust.is_encrypted(&self.request.head, &self.request.origin))
        }));
        HeldSlot { pool: self.pool, worker }
    }

    /// Notes that a worker did not start the request.
    pub fn refused_by(&self, worker: WorkerId) {
        self.refused_by.set(Some(worker));
    }

    /// Whether the request may be given to another worker after this error.
    pub fn may_go_elsewhere(&self, error: HttpError, writer: &ResponseWriter<'_, '_>) -> bool {
        let nothing_is_lost = self.is_complete && writer.state() == Sent::Nothing;
        let is_safe =
            matches!(self.request.head.method(), Method::Get | Method::Head) && self.opening.is_empty();
        nothing_is_lost
            && match error {
                HttpError::WorkerRefused => true,
                HttpError::WorkerDied => self.pool.app.retry && is_safe,
                _ => false,
            }
    }

    /// Looks at the beginning of a response's body for a value that later requests come with.
    pub fn learn(&self, index: WorkerIndex, body: &[u8]) {
        if let Some(policy) = self.pool.affinity.as_ref().filter(|_| self.affinity.is_unassigned) {
            policy.learn(index, body, self.pool.worker_count());
        }
    }

    /// Adds the cookie that leads back to the worker, once.
    pub fn add_cookie(&self, response: &mut Response) {
        if let Some(cookie) = self.cookie.take() {
            response.fields.add("Set-Cookie", &cookie);
        }
    }

    /// Changes a response's head: the cookie that leads back to the worker, and the edits of the routes.
    pub(crate) fn finish(&self, response: &mut Response) {
        self.add_cookie(response);
        self.edits.finish(response);
    }

    /// The client's address, as far as trusted proxies tell it.
    pub fn client(&self) -> Option<std::net::IpAddr> {
        self.trust.client(&self.request.head, &self.request.origin)
    }
}

impl HeldSlot<'_> {
    /// The slot for a response that others can have while its client is slow.
    pub(crate) fn yielding(&self) -> Slot {
        Slot::at_worker(self.pool.clone(), self.worker.clone())
    }

    /// The slot for a response that is busy until its client has taken it.
    pub fn busy(&self) -> Slot {
        Slot::busy(self.pool.clone())
    }
}

impl Drop for HeldSlot<'_> {
    fn drop(&mut self) {
        self.pool.give_back(&self.worker);
    }
}
