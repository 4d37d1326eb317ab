//! One request and its answer on a connection to an upstream, between the two ways of a client.
//!
//! [`upload`] sends the head and the body, [`download`] takes the answer, whose body goes on its way by [`sending`] and
//! [`decode`], [`tunnel`] is what follows an upgrade. Both directions run at once, each as fast as the other side takes
//! it. What `app` and `reverse_proxy` see differently is the [`Lead`]'s. Never chooses, dials or keeps a connection,
//! and never sends a request twice: that is for whoever leads.

mod decode;
mod download;
mod sending;
pub(crate) mod tunnel;
mod upload;

use std::cell::Cell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onehop_config::checked::proxy::ProxyFlush;
use onehop_http1::{AnswerBody, Method, Refusal, ResponseHead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::Voice;
use onehop_message::response::Response;
use tokio::sync::Notify;

use crate::request::context::RequestContext;
use crate::request::core::Core;
use onehop_connection::Ended;
use onehop_connection::Slot;
use onehop_connection::{RequestBody, ResponseWriter, Sent};
use onehop_upstream::connection::{Buffers, Connection};
use tunnel::Bounds;

/// Who leads an exchange: what its kind of upstream is told, and what becomes of what it says.
pub(crate) trait Lead {
    /// Who answers.
    const VOICE: Voice;

    /// What it is called that went wrong at the upstream.
    fn fault(cause: Cause) -> HttpError;

    /// Writes the request's head to the connection's output.
    fn ask(
        &mut self,
        connection: &Connection,
        upload: &RequestBody<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), Refusal>;

    /// Whether the head that was written tells the upstream that the client waits to be asked for its body.
    fn tells_of_waiting(&self) -> bool {
        true
    }

    /// The final head is there, or that of an upgrade (`body` is `None` then): fills the answer's fields. An error
    /// ends the exchange.
    fn take_head(
        &mut self,
        head: &ResponseHead,
        body: Option<AnswerBody>,
        answer: &mut Response,
    ) -> Result<Turn, HttpError>;

    /// The beginning of the answer's body, as it came.
    fn see_body(&mut self, beginning: &[u8]);

    /// The exchange may go on for ever: an upgrade, a stream of events.
    fn let_go(&mut self);

    /// The place that the answer keeps on its way, where others may wait for one, and the client's address.
    fn kept(&self) -> (Option<Slot>, Option<IpAddr>);

    /// What bounds a tunnel.
    fn tunnel(&self) -> Bounds<'_>;
}

/// What went wrong at the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The connection ended.
    Died,
    /// It took too long.
    Late,
    /// What it sent is no answer.
    Refused(Refusal),
}

/// What becomes of an answer.
pub(crate) enum Turn {
    /// It is sent on.
    Pass(Passing),
    /// Its body is for nobody: whoever leads makes the answer.
    Instead,
}

/// How an answer is sent on.
#[derive(Clone, Copy)]
pub(crate) struct Passing {
    /// So many bytes of its body are taken before anything is sent.
    pub(crate) buffer: u64,
    /// Gzip is taken off its body.
    pub(crate) decode: bool,
    pub(crate) flush: ProxyFlush,
}

/// For how long the upstream is waited for; `None`: for ever.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Until the answer's head is there.
    pub(crate) head: Option<Duration>,
    /// From when on that time runs.
    pub(crate) head_from: HeadFrom,
    /// Between two pieces of the answer.
    pub(crate) read: Option<Duration>,
    /// Until it takes more of the request.
    pub(crate) write: Option<Duration>,
    /// Until a client that waits to be asked for its body is asked by us.
    pub(crate) asking: Option<Duration>,
}

/// From when on an answer's head is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadFrom {
    /// From what last came of the client: an upstream that does not even take the request is late, too.
    LastOfClient,
    /// From the whole request, however long that takes, as Caddy has it.
    WholeRequest,
}

/// What is asked, and over which connection.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) context: &'a RequestContext<'a>,
    pub(crate) connection: &'a Connection,
    /// As much of the request's body as was there at the beginning.
    pub(crate) opening: &'a [u8],
    /// That was all of it.
    pub(crate) is_complete: bool,
    pub(crate) patience: Patience,
}

/// The client's side of an exchange.
pub(crate) struct Way<'e, 'u, 'uc, 'd, 'dc> {
    pub(crate) upload: &'e mut RequestBody<'u, 'uc>,
    pub(crate) download: &'e mut ResponseWriter<'d, 'dc>,
    pub(crate) answer: &'e mut Response,
}

/// What came of an exchange.
pub(crate) struct Outcome {
    pub(crate) result: Result<Received, Broke>,
    /// The connection is ready for another request: give it back. Otherwise drop it, so that the upstream learns at
    /// once that nobody waits for the rest.
    pub(crate) is_reusable: bool,
}

/// What came of an answer.
pub(crate) enum Received {
    /// It is over.
    Ended(Ended),
    /// Whoever leads wanted it so ([`Turn::Instead`]).
    Instead,
}

/// Why an exchange came to nothing.
#[derive(Debug)]
pub(crate) enum Broke {
    /// The connection ended before anything of an answer came.
    Silently,
    HttpError(HttpError),
}

/// What came of an answer inside.
enum Taken {
    Received(Received),
    /// The head of an upgrade is out; a tunnel follows.
    Upgraded,
}

/// What the halves of one exchange tell each other, and what decides whether the connection is kept.
#[derive(Default)]
struct Signals {
    /// The body is asked for.
    continued: Notify,
    /// By us: the upstream has said nothing.
    is_unasked: Cell<bool>,
    /// No more of the request is going to be sent.
    is_sent: Cell<bool>,
    /// The body was not sent in the order that both sides can rely on.
    is_spoilt: Cell<bool>,
}

impl Broke {
    /// What it is called.
    pub(crate) fn fault<L: Lead>(self) -> HttpError {
        match self {
            Self::Silently => L::fault(Cause::Died),
            Self::HttpError(fault) => fault,
        }
    }
}

/// Sends a request on a connection and takes its answer. Where that breaks after its head, the client can only be
/// told by breaking, too: [`Ended::Broken`].
pub(crate) async fn run<L: Lead>(
    exchange: &mut Exchange<'_>,
    lead: &mut L,
    way: Way<'_, '_, '_, '_, '_>,
) -> Outcome {
    let upstreams = &exchange.core.upstreams;
    let mut buffers = upstreams.buffers.take();
    let signals = Signals::default();
    let Way { upload, download, answer } = way;
    let way = Way { upload, download: &mut *download, answer };
    let result = attempt(exchange, lead, &mut buffers, way, &signals).await;
    let unread = buffers.input.unread().len();
    upstreams.buffers.give_back(buffers);
    let is_reusable = result.is_ok() && !signals.is_spoilt.get() && exchange.connection.reuse(unread);
    let result = match result {
        Err(broke) if download.state() != Sent::Nothing => {
            Ok(Received::Ended(Ended::Broken(broke.fault::<L>())))
        }
        result => result,
    };
    Outcome { result, is_reusable }
}

async fn attempt<L: Lead>(
    exchange: &mut Exchange<'_>,
    lead: &mut L,
    buffers: &mut Buffers,
    way: Way<'_, '_, '_, '_, '_>,
    signals: &Signals,
) -> Result<Received, Broke> {
    let Way { upload, download, answer } = way;
    lead.ask(exchange.connection, upload, buffers).map_err(|_| Broke::HttpError(L::fault(Cause::Died)))?;
    let Buffers { input, output, head, .. } = buffers;
    let expects_continue = !exchange.is_complete && upload.expects_continue();
    if expects_continue && !lead.tells_of_waiting() {
        // An upstream that does not know of it does not ask.
        exchange.patience.asking = Some(Duration::ZERO);
    }
    let exchange = &*exchange;
    let taken = {
        let mut uploading = pin!(upload::send::<L>(upload, exchange, output, signals));
        let taking = download::Taking::new(exchange, input, head, signals, expects_continue);
        let mut downloading = pin!(download::receive(taking, lead, download, answer));
        poll_fn(|context| {
            // The request goes first; reading before would only be a call in vain.
            match uploading.as_mut().poll(context) {
                Poll::Ready(fault) => Poll::Ready(Err(Broke::HttpError(fault))),
                Poll::Pending => downloading.as_mut().poll(context),
            }
        })
        .await
    };
    match taken? {
        Taken::Received(received) => Ok(received),
        Taken::Upgraded => {
            let tunnel = tunnel::run(exchange.connection, input, upload, download, lead.tunnel());
            Box::pin(tunnel).await;
            Ok(Received::Ended(Ended::Tunnelled))
        }
    }
}

/// RFC 9110 section 9.2.2: whether it means the same twice as once. Of a method that is not known nothing is known.
pub(crate) fn is_idempotent(method: Method) -> bool {
    match method {
        Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options | Method::Trace => true,
        Method::Post | Method::Patch | Method::Connect | Method::Other => false,
    }
}

/// Ends after that time, where there is one. Costs nothing before it is polled.
async fn over(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}
