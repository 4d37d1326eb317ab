//! A request whose handler waits for others: the connection is lent to it piece by piece.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use onehop_http1::{Next, Version};

use super::super::desk::Input;
use super::super::exchange::{Download, Line, Upload};
use super::super::write::write_both;
use super::{After, Busy, Connection};
use crate::request::admit::{Asked, Later, Pass};
use crate::request::answer::{Answer, Body};
use crate::request::core::{Core, View};
use crate::request::handle::{Ended, app, proxy};
use crate::request::rescue::{self, Fault};
use crate::request::trip::{Callee, Trip};
use crate::request::{Call, Served};

impl Connection {
    /// Calls an application or an upstream, once the request is let in, and sends what it answers. `Some`: the
    /// connection ends afterwards.
    pub(super) async fn call(
        &mut self,
        call: Call<'_>,
        asked: Asked<'_>,
        busy: Busy<'_>,
        view: &Rc<View>,
        started: Instant,
    ) -> io::Result<Option<After>> {
        let Busy { input, output, head, answer } = busy;
        // Answers to earlier requests must not wait for this one.
        self.flush(output).await?;
        let Call { site, mut trip, callee } = call;
        let (ended, sent, trailers) = {
            let line = self.line();
            let mut upload = Upload::new(&line, input);
            let mut download = Download::new(&line, output);
            let ended = match let_in(asked, &mut upload).await {
                Ok(pass) => {
                    line.pass.replace(pass);
                    ask(callee, &mut trip, view, line.core, &mut upload, &mut download, answer).await
                }
                Err(fault) => Err(fault),
            };
            line.pass.borrow_mut().ended(ended, answer.status);
            (ended, download.sent, download.into_trailers())
        };
        self.deadline.clear();
        let (upstream, reason) = (trip.upstream.take(), trip.reason.take());
        let mut served =
            Served { site: Some(site), handler: trip.handler, upstream, reason, fault: ended.err() };
        match ended {
            Ok(Ended::Complete) => {}
            Ok(Ended::Sent) => {
                self.record(head, answer, view, served, sent, started.elapsed(), false);
                return Ok(match self.codec.finish(output, &trailers) {
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
            Err(fault @ (Fault::ClientGone | Fault::ClientStalled | Fault::HungUp)) => {
                rescue::rescue(fault, answer);
                self.record(head, answer, view, served, 0, started.elapsed(), true);
                return self.part(fault);
            }
            Err(fault) => {
                rescue::rescue(fault, answer);
                trip.amend_error(answer);
            }
        }
        drop(trip);
        if let Err(fault) = self.drop_ready_body(input).await {
            // Its answer is there already; what follows of the body cannot be read.
            served.fault = served.fault.or(Some(fault));
        }
        if matches!(answer.body, Body::Disk(_)) {
            self.flush(output).await?;
        }
        self.send(output, head, answer, view, served, started).await
    }

    /// Waits until a request is let in that calls nobody.
    pub(super) async fn let_in<'g>(
        &mut self,
        later: Later<'g>,
        input: &mut Input,
        output: &mut Vec<u8>,
    ) -> io::Result<Result<Pass<'g>, Fault>> {
        // Answers to earlier requests must not wait for this one.
        self.flush(output).await?;
        let line = self.line();
        Ok(let_in(Asked::Later(later), &mut Upload::new(&line, input)).await)
    }

    /// The connection as those see it who wait for others.
    fn line(&mut self) -> Line<'_> {
        Line {
            core: &self.core,
            socket: RefCell::new(&mut self.socket),
            codec: RefCell::new(&mut self.codec),
            deadline: &self.deadline,
            handler_time: Cell::new(Duration::MAX),
            is_answering: Cell::new(false),
            pass: RefCell::new(Pass::nowhere()),
        }
    }

    async fn flush(&mut self, output: &mut Vec<u8>) -> io::Result<()> {
        if !output.is_empty() {
            write_both(&mut self.socket, &self.deadline, output, &[]).await?;
            output.clear();
        }
        Ok(())
    }

    /// Sends what there is of an answer that goes no further, so that it looks cut off.
    async fn break_off(&mut self, output: &[u8], version: Version, fault: Fault) -> io::Error {
        if fault == Fault::ClientStalled {
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
    pub(super) fn part(&self, fault: Fault) -> io::Result<Option<After>> {
        match fault {
            // Its body may still be coming, and a reset would take earlier answers away.
            Fault::HungUp => return Ok(Some(After::Linger)),
            Fault::ClientStalled => self.socket.reset_when_closed(),
            _ => {}
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

/// Waits until a request is let in. A client that closes its side meanwhile has gone, as while an application is waited
/// for.
async fn let_in<'g>(asked: Asked<'g>, upload: &mut Upload<'_, '_>) -> Result<Pass<'g>, Fault> {
    match asked {
        Asked::In(pass) => Ok(pass),
        Asked::Later(later) => later.over(pin!(upload.gone())).await,
        Asked::Shed(fault) => Err(fault),
    }
}

/// Hands a request to whoever answers it.
async fn ask(
    callee: Callee,
    trip: &mut Trip<'_>,
    view: &View,
    core: &Rc<Core>,
    upload: &mut Upload<'_, '_>,
    download: &mut Download<'_, '_>,
    answer: &mut Answer,
) -> Result<Ended, Fault> {
    let snapshot = &view.snapshot;
    match callee {
        Callee::App(number) => match snapshot.apps.get(number as usize) {
            Some(pool) => app::call(trip, pool, core, upload, download, answer).await,
            None => Err(Fault::AppFailing { retry_after: 1 }),
        },
        Callee::Proxy(number) => match snapshot.proxies.get(number as usize) {
            Some(proxy) => proxy::call(trip, proxy, core, upload, download, answer).await,
            None => Err(Fault::UpstreamNone),
        },
    }
}
