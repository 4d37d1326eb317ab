//! One request and its response, whatever version of HTTP they came in.
//!
//! `send.rs` writes responses, `body.rs` drops bodies that no handler wants, `call.rs` lets a handler wait for an
//! application or an upstream, `arrival.rs` for the body before that; `responding.rs` counts responses that it sends piece by
//! piece, `retain.rs` keeps requests that were slow or failed.

mod arrival;
mod body;
mod call;
mod responding;
mod retain;
mod send;
mod trace;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use onehop_connection::buffers::{ConnectionBuffers, Input};
use onehop_connection::client_stream::ClientStream;
use onehop_connection::codec::Codec;
use onehop_connection::deadline::Deadline;
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use onehop_message::response::Response;

use crate::request::admission::{Acquired, Permits};
use crate::request::blocking::BlockingWork;
use crate::request::core::{Core, View};
use crate::request::route::Backend;
use crate::request::timing::Timing;
use crate::request::{Routing, Served, Wait, find_site};

/// What serves requests: a connection of HTTP/1, or one stream of HTTP/2.
pub(super) struct Exchange {
    pub(super) core: Rc<Core>,
    pub(super) socket: ClientStream,
    pub(super) origin: Origin,
    pub(super) codec: Codec,
    pub(super) deadline: Deadline,
}

/// What becomes of a connection when its input is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It waits for the next request.
    Idle,
    /// It is closed once the client has seen the response: bytes may be unread or still come, and closing
    /// over them would reset the connection and take the response back (RFC 9112 section 9.6).
    Linger,
}

/// What came of beginning to serve a request.
enum Begun<'s> {
    /// The response is complete.
    Served(Served),
    /// The rest of the exchange, for a request that waits.
    Waits(Pin<Box<dyn Future<Output = io::Result<Option<After>>> + 's>>),
}

/// A connection's buffers in pieces, while the routing of a request holds on to its head.
struct Busy<'d> {
    input: &'d mut Input,
    output: &'d mut Vec<u8>,
    head: &'d RequestHead,
    response: &'d mut Response,
}

/// What came of waiting for more input.
pub(super) enum More {
    Bytes,
    End,
    Late,
}

impl Exchange {
    /// One request, from its complete head to its response. `Some`: the connection ends afterwards.
    pub(super) async fn exchange(&mut self, buffers: &mut ConnectionBuffers) -> io::Result<Option<After>> {
        let started = Instant::now();
        if self.core.connection.is_stopping() {
            self.codec.close_after_answer();
        }
        let view = self.core.view();
        let served = match self.begin(buffers, &view, started) {
            Begun::Served(served) => served,
            Begun::Waits(rest) => return rest.await,
        };
        let ConnectionBuffers { input, output, head, response } = buffers;
        // The handler has not read a body.
        if let Err(error) = self.drop_body(input, output, served.error).await? {
            return self.refuse(buffers, error).await.map(Some);
        }
        self.send(output, head, response, &view, served, started).await
    }

    /// Begins to serve a request. A request that waits gets a future of its own, so that only connections whose requests
    /// wait pay for its size; a request that is not admitted needs none.
    fn begin<'s>(
        &'s mut self,
        buffers: &'s mut ConnectionBuffers,
        view: &'s Rc<View>,
        started: Instant,
    ) -> Begun<'s> {
        let ConnectionBuffers { input, output, head, response } = buffers;
        response.clear();
        let snapshot = &view.snapshot;
        let challenges = &self.core.shared.challenges;
        let site = match find_site(snapshot, head, &self.origin, challenges, response) {
            Ok(site) => site,
            Err(error) => return Begun::Served(Served::before_a_site(error)),
        };
        let mut routing = Routing::new(snapshot, site, head, self.origin.clone(), started);
        let Some(wait) = routing.begin(response) else { return Begun::Served(routing.served()) };
        let id = self.core.connection.next_request_id();
        let timing = routing.context.timing.get_or_insert_with(|| Timing::new(id, started));
        if let Wait::Backend(Backend::App(number)) = &wait {
            timing.app.set(Some(*number));
        }
        match Permits::acquire(routing.limiters(Some(&wait)), self.core.number, started) {
            Acquired::Rejected(error, limit) => {
                note(&routing, |timing| timing.met_limit(limit));
                Begun::Served(routing.reject(error, response))
            }
            acquired => {
                let busy = Busy { input, output, head, response };
                Begun::Waits(match wait {
                    Wait::Blocking(read) => {
                        Box::pin(self.await_blocking(routing, read, acquired, busy, view, started))
                    }
                    Wait::Backend(backend) => {
                        Box::pin(self.call(routing, backend, acquired, busy, view, started))
                    }
                })
            }
        }
    }

    /// Serves a request that needs the disk. Each read waits for the limiters that the routes have named until then.
    async fn await_blocking(
        &mut self,
        mut routing: Routing<'_>,
        mut read: Box<BlockingWork>,
        mut acquired: Acquired<'_>,
        busy: Busy<'_>,
        view: &Rc<View>,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let Busy { input, output, head, response } = busy;
        let admitted = loop {
            note(&routing, |timing| timing.met_limit(acquired.limit()));
            let permits = match self.admit(acquired, input, output).await? {
                Ok(permits) => permits,
                Err(error) => break Err(error),
            };
            note(&routing, |timing| timing.handed_over(None));
            let is_password = matches!(*read, BlockingWork::Password(_));
            let read_result = read.perform(response).await;
            note(&routing, if is_password { Timing::password_checked } else { Timing::disk_read });
            let wait = routing.resume(read_result, response);
            // Behind what was read there may be more limiters.
            acquired = permits.extend(routing.limiters(wait.as_ref()));
            match wait {
                Some(Wait::Blocking(next)) => read = next,
                Some(Wait::Backend(backend)) => {
                    let busy = Busy { input, output, head, response };
                    return self.call(routing, backend, acquired, busy, view, started).await;
                }
                None => break self.admit(acquired, input, output).await?,
            }
        };
        note(&routing, |timing| timing.answered(Instant::now()));
        let (_permits, served) = match admitted {
            Ok(mut permits) => {
                permits.answered(response.status, false);
                // The disk is read until all of it is sent.
                (Some(permits), routing.served())
            }
            Err(error) => {
                let served = routing.reject(error, response);
                if error == HttpError::ClientGone {
                    self.record(head, response, view, served, 0, started.elapsed(), true);
                    return self.part(error);
                }
                (None, served)
            }
        };
        if let Err(error) = self.drop_body(input, output, served.error).await? {
            return self.refuse_with(input, output, response, error).await.map(Some);
        }
        self.send(output, head, response, view, served, started).await
    }

    pub(super) async fn read_more(&mut self, input: &mut Input) -> io::Result<More> {
        let Self { socket, deadline, .. } = self;
        poll_fn(|context| match input.poll_fill(socket, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(More::End)),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(More::Bytes)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(Ok(More::Late)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

/// Notes where the time of a request went.
fn note(routing: &Routing<'_>, what: impl FnOnce(&Timing)) {
    if let Some(timing) = &routing.context.timing {
        what(timing);
    }
}
