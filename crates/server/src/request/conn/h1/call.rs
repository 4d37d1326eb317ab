//! A request whose handler waits for others: the connection is lent to it piece by piece.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use onehop_http1::{Next, Version};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::response::{Body, Response};

use super::super::arrival;
use super::{After, Busy, Connection};
use crate::request::admission::{Acquired, Permits, SharedPermits};
use crate::request::context::{Callee, RequestContext};
use crate::request::core::{Core, View};
use crate::request::error_route::{self, Led};
use crate::request::handle::{app, proxy};
use crate::request::incidents::Origin;
use crate::request::{Call, NeedsDisk, Served, limiters};
use onehop_connection::buffers::Input;
use onehop_connection::slow_clients::Reservation;
use onehop_connection::write::write_both;
use onehop_connection::{Ended, ExchangeIo, RequestBody, ResponseWriter};

/// How asking ended.
struct Asked {
    /// An error leaves nobody to whom anything could be sent.
    ended: Result<Ended, HttpError>,
    /// Bytes of the answer's body.
    sent: u64,
    /// The lines behind it.
    trailers: Vec<u8>,
    /// What of the answer waits for its client.
    spooled: Option<Reservation>,
}

/// A desk's pieces besides the head, which the trip holds.
struct Ends<'d> {
    input: &'d mut Input,
    output: &'d mut Vec<u8>,
    answer: &'d mut Response,
}

impl Connection {
    /// Calls an application or an upstream, once the request is admitted, and sends what it answers. `Some`: the
    /// connection ends afterwards.
    pub(super) async fn call(
        &mut self,
        call: Call<'_>,
        acquired: Acquired<'_>,
        busy: Busy<'_>,
        view: &Rc<View>,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let Busy { input, output, head, answer } = busy;
        // Answers to earlier requests must not wait for this one.
        self.flush(output).await?;
        let Call { site, mut context, callee } = call;
        let Asked { ended, sent, trailers, spooled } = self
            .ask_in_turn(site, callee, &mut context, view, acquired, Ends { input, output, answer })
            .await;
        self.deadline.clear();
        let mut served = Served::by(site, &mut context);
        drop(context);
        match ended {
            Ok(Ended::Complete) => {}
            Ok(Ended::Sent) => {
                self.record(head, answer, view, served, sent, started.elapsed(), false);
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
                self.record(head, answer, view, served, sent, started.elapsed(), false);
                return Ok(Some(After::Linger));
            }
            Ok(Ended::Broken(fault)) => {
                served.fault = Some(fault);
                self.record(head, answer, view, served, sent, started.elapsed(), true);
                return Err(self.break_off(output, head.version(), fault).await);
            }
            Err(fault) => {
                error_response::fill(fault, answer);
                served.fault = Some(fault);
                self.record(head, answer, view, served, 0, started.elapsed(), true);
                return self.part(fault);
            }
        }
        if let Err(fault) = self.drop_ready_body(input).await {
            // Its answer is there already; what follows of the body cannot be read.
            served.fault = served.fault.or(Some(fault));
        }
        if matches!(answer.body, Body::Disk(_)) {
            self.flush(output).await?;
        }
        self.send(output, head, answer, view, served, started).await
    }

    /// Waits until a request is admitted that calls nobody.
    pub(super) async fn admit<'g>(
        &mut self,
        acquired: Acquired<'g>,
        input: &mut Input,
        output: &mut Vec<u8>,
    ) -> io::Result<Result<Permits<'g>, HttpError>> {
        let queued = match acquired {
            Acquired::Admitted(permits) => return Ok(Ok(permits)),
            Acquired::Rejected(fault) => return Ok(Err(fault)),
            Acquired::Queued(queued) => queued,
        };
        // Answers to earlier requests must not wait for this one.
        self.flush(output).await?;
        let none = SharedPermits::none();
        let io = self.exchange_io(&none);
        Ok(self::admit(Acquired::Queued(queued), &mut RequestBody::new(&io, input)).await)
    }

    /// Asks whom the routes have named, once the request is admitted. Where that fails, the error routes may name somebody
    /// else for its page, whose own error is the end.
    async fn ask_in_turn(
        &mut self,
        site: usize,
        mut callee: Callee,
        context: &mut RequestContext<'_>,
        view: &View,
        acquired: Acquired<'_>,
        ends: Ends<'_>,
    ) -> Asked {
        let Ends { input, output, answer } = ends;
        let core = Rc::clone(&self.core);
        let shared = SharedPermits::none();
        let io = self.exchange_io(&shared);
        let held = &shared.0;
        let mut upload = RequestBody::new(&io, input);
        let arrived = arrival::arrive(acquired, callee, context, &view.snapshot, &io, &mut upload).await;
        let acquired = arrived.unwrap_or_else(Acquired::Rejected);
        let mut refused = match admit(acquired, &mut upload).await {
            Ok(mut permits) => {
                if !upload.has_arrived() {
                    permits.forget_time();
                }
                held.replace(permits);
                None
            }
            Err(fault) => Some(fault),
        };
        loop {
            let mut download = ResponseWriter::new(&io, output);
            let mut ended = match refused.take() {
                Some(fault) => Err(fault),
                None => ask(callee, context, view, &core, &mut upload, &mut download, answer).await,
            };
            held.borrow_mut().ended(ended, answer.status);
            if let Err(fault) = ended
                && !fault.leaves_nobody()
            {
                if let Some(other) = fail(context, site, fault, view, &upload, answer).await {
                    // It has left whom it asked first.
                    drop(held.replace(Permits::none()));
                    let limiters = limiters(site, context, other);
                    if let Acquired::Admitted(permits) =
                        Permits::acquire(limiters, core.number, Instant::now())
                    {
                        held.replace(permits);
                        callee = other;
                        continue;
                    }
                    // Nobody waits for a page.
                    error_route::give_up(context, answer);
                }
                ended = Ok(Ended::Complete);
            }
            let sent = download.sent;
            let (trailers, spooled) = download.into_parts();
            break Asked { ended, sent, trailers, spooled };
        }
    }

    /// The connection as handlers use it.
    fn exchange_io<'c>(&'c mut self, permits: &'c SharedPermits<'_>) -> ExchangeIo<'c> {
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

    /// Sends what there is of an answer that goes no further, so that it looks cut off.
    async fn break_off(&mut self, output: &[u8], version: Version, fault: HttpError) -> io::Error {
        if fault == HttpError::ClientStalled {
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

    /// Leaves a client to which nothing more is said. One that has had its time to take an answer gets no more of
    /// it, and nobody keeps what it did not take.
    pub(super) fn part(&self, fault: HttpError) -> io::Result<Option<After>> {
        match fault {
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
        Acquired::Rejected(fault) => Err(fault),
    }
}

/// Fills the answer to a call that has failed, or names who is asked for its page instead.
async fn fail<'a>(
    context: &mut RequestContext<'a>,
    site: usize,
    fault: HttpError,
    view: &View,
    upload: &RequestBody<'_, '_>,
    answer: &mut Response,
) -> Option<Callee> {
    let Some(routes) = context.snapshot.sites.get(site) else {
        error_response::fill(fault, answer);
        return None;
    };
    if fault.is_shed() {
        error_route::take_at_once(context, routes, fault, answer);
        return None;
    }
    let callee = match error_route::take(context, routes, fault, answer) {
        Led::Answered => return None,
        Led::Call(callee) => callee,
        Led::NeedsDisk => {
            let again = NeedsDisk::of(site, context, Some(fault));
            match again
                .on_blocking_thread(&view.snapshot, context.request.head, context.request.origin, answer)
                .await
            {
                Ok((served, _)) => {
                    if let Some(failure) = &mut context.failure {
                        // What its page calls it.
                        failure.id = served.error_id;
                    }
                    return None;
                }
                Err(needs_call) => {
                    // Seldom: what the way looks for on disk is looked for once more.
                    let call =
                        needs_call.call(context.snapshot, context.request.head, context.request.origin);
                    let failure = context.failure.take();
                    *context = RequestContext { failure, ..call.context };
                    call.callee
                }
            }
        }
    };
    // A body of which a part is gone is no longer the request's.
    if upload.is_whole() {
        return Some(callee);
    }
    error_route::give_up(context, answer);
    None
}

/// Hands a request to whoever answers it.
async fn ask(
    callee: Callee,
    context: &mut RequestContext<'_>,
    view: &View,
    core: &Rc<Core>,
    upload: &mut RequestBody<'_, '_>,
    download: &mut ResponseWriter<'_, '_>,
    answer: &mut Response,
) -> Result<Ended, HttpError> {
    let snapshot = &view.snapshot;
    match callee {
        Callee::App(number) => match snapshot.apps.get(number as usize) {
            Some(pool) => {
                let ended = app::call(context, pool, core, upload, download, answer).await;
                if let Err(fault) = ended {
                    core.shared.incidents.note(fault, || Origin::App(pool.app.name.clone()));
                }
                ended
            }
            None => Err(HttpError::AppFailing { retry_after: 1 }),
        },
        Callee::Proxy(number) => match snapshot.proxies.get(number as usize) {
            Some(proxy) => {
                let ended = proxy::call(context, proxy, core, upload, download, answer).await;
                if let (Err(fault), Some(member)) = (ended, &context.upstream) {
                    core.shared.incidents.note(fault, || Origin::Upstream(member.name.to_string()));
                }
                ended
            }
            None => Err(HttpError::UpstreamNone),
        },
    }
}
