//! A request whose handler waits for others: the connection is lent to it piece by piece.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use onehop_http1::{Next, Version};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::response::{Body, Response};
use onehop_metrics::site::Delivery;

use super::arrival;
use super::responding::Responding;
use super::{After, Busy, Exchange};
use crate::request::admission::{Acquired, Permits, SharedPermits};
use crate::request::context::RequestContext;
use crate::request::core::{Core, View};
use crate::request::early_hints;
use crate::request::handle::proxy::Proxy;
use crate::request::handle::{app, proxy};
use crate::request::incidents::Origin;
use crate::request::route::Backend;
use crate::request::{Routing, Wait};
use onehop_connection::buffers::Input;
use onehop_connection::slow_clients::Reservation;
use onehop_connection::write::write_both;
use onehop_connection::{Ended, ExchangeIo, RequestBody, ResponseWriter};

/// Their status (RFC 8297 section 2).
const EARLY_HINTS: u16 = 103;

/// How asking ended.
struct CallEnd {
    /// An error: there is no client left to which anything could be sent.
    ended: Result<Ended, HttpError>,
    /// Bytes of the response's body.
    sent: u64,
    /// The lines behind it.
    trailers: Vec<u8>,
    /// The part of the response that waits for its client.
    spooled: Option<Reservation>,
    /// How the response is delivered.
    delivery: Delivery,
}

/// A connection's buffers besides the head, which the routing holds.
struct Ends<'d> {
    input: &'d mut Input,
    output: &'d mut Vec<u8>,
    response: &'d mut Response,
}

impl Exchange {
    /// Calls an application or an upstream, once the request is admitted, and sends what it answers. `Some`: the
    /// connection ends afterwards.
    #[expect(clippy::manual_async_fn, reason = "an async fn would copy its arguments, of which one is large")]
    pub(super) fn call(
        &mut self,
        mut routing: Routing<'_>,
        backend: Backend,
        acquired: Acquired<'_>,
        busy: Busy<'_>,
        view: &Rc<View>,
        started: Instant,
    ) -> impl Future<Output = io::Result<Option<After>>> {
        async move {
            let Busy { input, output, head, response } = busy;
            if let Some(hints) = early_hints::fields(&routing.context) {
                // Before anything is waited for: that is the time to be used.
                self.codec.write_informational(output, EARLY_HINTS, hints.lines());
            }
            // Answers to earlier requests must not wait for this one.
            self.flush(output).await?;
            let CallEnd { ended, sent, trailers, spooled, delivery } = self
                .ask_in_turn(&mut routing, backend, view, acquired, Ends { input, output, response })
                .await;
            self.deadline.clear();
            let mut served = routing.served();
            if served.delivery == Delivery::Whole || delivery == Delivery::Stream {
                served.delivery = delivery;
            }
            match ended {
                Ok(Ended::Complete) => {}
                Ok(Ended::Sent) => {
                    self.record(head, response, view, served, sent, started.elapsed(), false);
                    let next = self.codec.finish(output, &trailers);
                    if spooled.is_some() {
                        // It counts until the client has taken it.
                        self.flush(output).await?;
                    }
                    return Ok(match next {
                        Next::KeepAlive => None,
                        Next::Close | Next::Tunnel => Some(After::Linger),
                    });
                }
                Ok(Ended::Tunnelled) => {
                    self.record(head, response, view, served, sent, started.elapsed(), false);
                    return Ok(Some(After::Linger));
                }
                Ok(Ended::Broken(error)) => {
                    served.error = Some(error);
                    self.record(head, response, view, served, sent, started.elapsed(), true);
                    return Err(self.break_off(output, head.version(), error).await);
                }
                Err(error) => {
                    error_response::fill(error, response);
                    served.error = Some(error);
                    self.record(head, response, view, served, 0, started.elapsed(), true);
                    return self.part(error);
                }
            }
            if let Err(error) = self.drop_ready_body(input).await {
                // The response is there already; what follows of the body cannot be read.
                served.error = served.error.or(Some(error));
            }
            if matches!(response.body, Body::Disk(_)) {
                self.flush(output).await?;
            }
            self.send(output, head, response, view, served, started).await
        }
    }

    /// Waits until a request is admitted that calls no backend.
    pub(super) async fn admit<'g>(
        &mut self,
        acquired: Acquired<'g>,
        input: &mut Input,
        output: &mut Vec<u8>,
    ) -> io::Result<Result<Permits<'g>, HttpError>> {
        let queued = match acquired {
            Acquired::Admitted(permits) => return Ok(Ok(permits)),
            Acquired::Rejected(error, _) => return Ok(Err(error)),
            Acquired::Queued(queued) => queued,
        };
        // Answers to earlier requests must not wait for this one.
        self.flush(output).await?;
        let none = SharedPermits::none();
        let io = self.exchange_io(&none);
        Ok(self::admit(Acquired::Queued(queued), &mut RequestBody::new(&io, input)).await)
    }

    /// Calls the backend that the routes have named, once the request is admitted. Where that fails, the error routes may
    /// name another one for the error page, whose own error is the end.
    async fn ask_in_turn(
        &mut self,
        routing: &mut Routing<'_>,
        mut backend: Backend,
        view: &View,
        acquired: Acquired<'_>,
        ends: Ends<'_>,
    ) -> CallEnd {
        let Ends { input, output, response } = ends;
        let core = Rc::clone(&self.core);
        let counters = core.site_counters(view, Some(routing.number));
        let responding = Responding::new(counters, routing.context.at, routing.context.request.received);
        let io = self.exchange_io(&responding);
        let held = &responding.permits.0;
        let mut upload = RequestBody::new(&io, input);
        let context = &routing.context;
        let waits_for_body = !upload.has_arrived();
        let arrived = arrival::arrive(acquired, backend, context, &view.snapshot, &io, &mut upload).await;
        let acquired = arrived.unwrap_or_else(|error| Acquired::Rejected(error, None));
        super::note(routing, |timing| timing.arrived(waits_for_body, acquired.limit()));
        let is_small_enough = context.body_bytes_max.map_or(Ok(()), |bytes| upload.limit(bytes));
        let mut refused =
            match admit(acquired, &mut upload).await.and_then(|permits| is_small_enough.map(|()| permits)) {
                Ok(mut permits) => {
                    if !upload.has_arrived() {
                        permits.forget_time();
                    }
                    held.replace(permits);
                    None
                }
                Err(error) => Some(error),
            };
        loop {
            let mut download = ResponseWriter::new(&io, output);
            let mut ended = match refused.take() {
                Some(error) => Err(error),
                None => {
                    let context = &mut routing.context;
                    ask(backend, context, view, &core, &mut upload, &mut download, response).await
                }
            };
            held.borrow_mut().ended(ended, response.status);
            super::note(routing, |timing| timing.came(responding.started(), io.write_wait()));
            if let Err(error) = ended
                && !error.leaves_nobody()
            {
                if let Some(other) = fail(routing, error, &upload, response).await {
                    // It has left the first one.
                    drop(held.replace(Permits::none()));
                    let limiters = routing.limiters(Some(&Wait::Backend(other)));
                    if let Acquired::Admitted(permits) =
                        Permits::acquire(limiters, core.number, Instant::now())
                    {
                        held.replace(permits);
                        backend = other;
                        continue;
                    }
                    // An error page is not waited for.
                    routing.answer_plainly(response);
                }
                ended = Ok(Ended::Complete);
            }
            let sent = download.sent;
            let (trailers, spooled) = download.into_parts();
            break CallEnd { ended, sent, trailers, spooled, delivery: responding.delivery() };
        }
    }

    /// The connection as handlers use it.
    fn exchange_io<'c>(&'c mut self, permits: &'c dyn onehop_connection::Permits) -> ExchangeIo<'c> {
        let Self { core, socket, codec, deadline, .. } = self;
        ExchangeIo::new(&core.connection, socket, codec, deadline, permits)
    }

    async fn flush(&mut self, output: &mut Vec<u8>) -> io::Result<()> {
        if !output.is_empty() {
            write_both(&mut self.socket, &self.deadline, output, &[]).await?;
            output.clear();
        }
        Ok(())
    }

    /// Sends what there is of a response that breaks off, so that it looks cut off.
    async fn break_off(&mut self, output: &[u8], version: Version, error: HttpError) -> io::Error {
        if error == HttpError::ClientStalled {
            self.socket.reset_when_closed();
            return io::ErrorKind::ConnectionAborted.into();
        }
        let flushed = write_both(&mut self.socket, &self.deadline, output, &[]).await;
        // Where only the connection's end ends the body, a plain end would make it look whole.
        if version == Version::Http10 || flushed.is_err() {
            self.socket.reset_when_closed();
        }
        io::ErrorKind::ConnectionAborted.into()
    }

    /// Leaves a client to which nothing more is said. One that has had its time to take a response gets no more of
    /// it, and the kernel keeps nothing of what it did not take.
    pub(super) fn part(&self, error: HttpError) -> io::Result<Option<After>> {
        match error {
            // Its body may still be coming, and a reset would take earlier answers away.
            HttpError::HungUp => return Ok(Some(After::Linger)),
            HttpError::ClientStalled => self.socket.reset_when_closed(),
            _ => {}
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

/// Waits until a request is admitted. One whose client has closed its sending side is the first to be refused.
async fn admit<'g>(
    acquired: Acquired<'g>,
    upload: &mut RequestBody<'_, '_>,
) -> Result<Permits<'g>, HttpError> {
    match acquired {
        Acquired::Admitted(permits) => Ok(permits),
        Acquired::Queued(queued) => {
            queued.over(async |position| upload.gone_or(|| position.half_closed()).await).await
        }
        Acquired::Rejected(error, _) => Err(error),
    }
}

/// Makes the response to a call that has failed, or names the backend that makes its error page.
async fn fail(
    routing: &mut Routing<'_>,
    error: HttpError,
    upload: &RequestBody<'_, '_>,
    response: &mut Response,
) -> Option<Backend> {
    if error.is_shed() {
        routing.fail_at_once(error, response);
        return None;
    }
    let mut wait = routing.fail(error, response)?;
    let backend = loop {
        match wait {
            Wait::Blocking(read) => wait = routing.resume(read.perform(response).await, response)?,
            Wait::Backend(backend) => break backend,
        }
    };
    // A body of which a part is gone is no longer the request's.
    if upload.is_whole() {
        return Some(backend);
    }
    routing.answer_plainly(response);
    None
}

/// Hands a request over to an application or an upstream.
async fn ask(
    backend: Backend,
    context: &mut RequestContext<'_>,
    view: &View,
    core: &Rc<Core>,
    upload: &mut RequestBody<'_, '_>,
    download: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Ended, HttpError> {
    let snapshot = &view.snapshot;
    match backend {
        Backend::App(number) => match snapshot.apps.get(number as usize) {
            Some(pool) => {
                let ended = app::call(context, pool, core, upload, download, response).await;
                if let Err(error) = ended {
                    core.shared.incidents.note(error, || Origin::App(pool.app.name.clone()));
                }
                ended
            }
            None => Err(HttpError::AppFailing { retry_after: 1 }),
        },
        Backend::Proxy(number) => match snapshot.proxies.get(number as usize) {
            Some(proxy) => {
                // One that says the same is the same.
                let is_loaded = |proxy: &Arc<Proxy>| {
                    let view = core.view();
                    let is_same =
                        |other: &Arc<Proxy>| Arc::ptr_eq(other, proxy) || *other.settings == *proxy.settings;
                    view.snapshot.proxies.iter().any(is_same)
                };
                let pools = &core.upstreams;
                let ended = proxy::call(context, proxy, pools, &is_loaded, upload, download, response).await;
                if let Err(error) = ended {
                    core.shared.incidents.note(error, || match &context.upstream {
                        Some(member) if error != HttpError::UpstreamNone => {
                            Origin::Upstream(member.name.to_string())
                        }
                        _ => Origin::Upstream(proxy.settings.name.clone()),
                    });
                }
                ended
            }
            None => Err(HttpError::UpstreamNone),
        },
    }
}
