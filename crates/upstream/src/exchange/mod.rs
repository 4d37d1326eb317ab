//! One request and its response on a connection to an upstream.
//!
//! `request` sends the head and the body, `response` receives the response, whose body `response_body` passes on, [`tunnel`]
//! is what follows an upgrade. Both directions run at once, each as fast as the other side takes it. Where programs and the upstreams of `reverse_proxy` differ, the [`Delegate`] decides. Never chooses, dials or keeps a
//! connection, and never sends a request twice: that is for the caller.

mod request;
mod response;
mod response_body;
pub mod tunnel;

use std::cell::Cell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use onehop_config::checked::proxy::ProxyFlush;
use onehop_connection::{Ended, RequestBody, ResponseEdits, ResponseWriter, Sent, Slot};
use onehop_http1::{AnswerBody, Method, Refusal, ResponseHead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::Voice;
use onehop_message::request::Request;
use onehop_message::response::Response;
use tokio::sync::Notify;

use crate::connection::Buffers;
use crate::link::Link;
use crate::pool::Pools;
use tunnel::Bounds;

/// What a caller decides of an exchange: what the upstream is sent, and what becomes of what it sends.
pub trait Delegate {
    /// Who responses.
    const VOICE: Voice;

    /// What it is called that went wrong at the upstream.
    fn fault(cause: Cause) -> HttpError;

    /// Writes the request's head to the connection's output.
    fn ask(
        &mut self,
        connection: &Link,
        request_body: &RequestBody<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), Refusal>;

    /// Whether the head that was written tells the upstream that the client waits to be asked for its body.
    fn announces_continue(&self) -> bool {
        true
    }

    /// The final head is there, or that of an upgrade (`body` is `None` then): fills the response's fields. An error
    /// ends the exchange.
    fn take_head(
        &mut self,
        head: &ResponseHead,
        body: Option<AnswerBody>,
        response: &mut Response,
    ) -> Result<Turn, HttpError>;

    /// The beginning of the response's body, as it came.
    fn see_body(&mut self, beginning: &[u8]);

    /// The exchange may go on for ever: an upgrade, a stream of events.
    fn let_go(&mut self);

    /// The place that the response keeps on its client, where others may wait for one, and the client's address.
    fn kept(&self) -> (Option<Slot>, Option<IpAddr>);

    /// What bounds a tunnel.
    fn tunnel(&self) -> Bounds<'_>;
}

/// What went wrong at the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The connection ended.
    Died,
    /// It took too long.
    Late,
    /// What it sent is no response.
    Refused(Refusal),
}

/// What becomes of an response.
pub enum Turn {
    /// It is sent on.
    Pass(Passing),
    /// Its body is for nobody: whoever leads makes the response.
    Instead,
}

/// How an response is sent on.
#[derive(Clone, Copy)]
pub struct Passing {
    /// So many bytes of its body are taken before anything is sent.
    pub buffer: u64,
    /// When bytes of its body are written.
    pub flush: ProxyFlush,
}

/// For how long the upstream is waited for; `None`: for ever.
#[derive(Clone, Copy)]
pub struct Timeouts {
    /// Until the response's head is there.
    pub head: Option<Duration>,
    /// From when on that time runs.
    pub head_from: HeadFrom,
    /// Between two pieces of the response.
    pub read: Option<Duration>,
    /// Until it takes more of the request.
    pub write: Option<Duration>,
    /// Until a client that waits to be asked for its body is asked by us.
    pub asking: Option<Duration>,
}

/// From when on an response's head is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFrom {
    /// From what last came of the client: an upstream that does not even take the request is late, too.
    LastOfClient,
    /// From the whole request, however long that takes, as Caddy has it.
    WholeRequest,
}

/// What is asked, and over which connection.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// This core's connections to upstreams.
    pub pools: &'a Pools,
    /// The request.
    pub request: &'a Request<'a>,
    /// What the routes do to the response.
    pub edits: &'a dyn ResponseEdits,
    /// Is given to the exchange alone.
    pub connection: &'a Link,
    /// As much of the request's body as was there at the beginning.
    pub opening: &'a [u8],
    /// That was all of it.
    pub is_complete: bool,
    /// For how long the upstream is waited for.
    pub timeouts: Timeouts,
}

/// The client's side of an exchange.
pub struct ClientSide<'e, 'u, 'uc, 'd, 'dc> {
    /// The request's body.
    pub request_body: &'e mut RequestBody<'u, 'uc>,
    /// The way back to the client.
    pub writer: &'e mut ResponseWriter<'d, 'dc>,
    /// The response's head; its body too where that is complete.
    pub response: &'e mut Response,
}

/// What came of an exchange.
pub struct Outcome {
    /// The response, or why there is none.
    pub result: Result<Received, Broke>,
    /// The connection is ready for another request: give it back. Otherwise drop it, so that the upstream learns at
    /// once that nobody waits for the rest.
    pub is_reusable: bool,
    /// Of the request's body no more was taken than was there at the beginning.
    pub has_whole_body: bool,
}

/// What came of an response.
pub enum Received {
    /// It is over.
    Ended(Ended),
    /// Whoever leads wanted it so ([`Turn::Instead`]).
    Instead,
}

/// Why an exchange came to nothing.
#[derive(Debug)]
pub enum Broke {
    /// The connection ended before anything of an response came.
    Silently,
    /// The upstream has said that it did not begin the request: it may be sent again, whatever it is.
    Refused,
    /// Anything else.
    HttpError(HttpError),
}

/// What came of an response inside.
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
    /// More of the body was taken than was there at the beginning.
    is_body_taken: Cell<bool>,
    /// The body was not sent in the order that both sides can rely on.
    is_spoilt: Cell<bool>,
}

impl Broke {
    /// What it is called.
    pub fn fault<L: Delegate>(self) -> HttpError {
        match self {
            Self::Silently | Self::Refused => L::fault(Cause::Died),
            Self::HttpError(fault) => fault,
        }
    }
}

/// Sends a request on a connection and takes its response. Where that breaks after its head, the client can only be
/// told by breaking, too: [`Ended::Broken`].
pub async fn run<L: Delegate>(
    exchange: &mut Exchange<'_>,
    delegate: &mut L,
    client: ClientSide<'_, '_, '_, '_, '_>,
) -> Outcome {
    let pools = exchange.pools;
    let mut buffers = pools.buffers.take();
    let signals = Signals::default();
    let ClientSide { request_body, writer, response } = client;
    let client = ClientSide { request_body, writer: &mut *writer, response };
    let result = attempt(exchange, delegate, &mut buffers, client, &signals).await;
    let unread = buffers.input.unread().len();
    pools.buffers.give_back(buffers);
    let is_reusable = result.is_ok() && !signals.is_spoilt.get() && exchange.connection.reuse(unread);
    let result = match result {
        Err(broke) if writer.state() != Sent::Nothing => {
            Ok(Received::Ended(Ended::Broken(broke.fault::<L>())))
        }
        result => result,
    };
    Outcome { result, is_reusable, has_whole_body: !signals.is_body_taken.get() }
}

async fn attempt<L: Delegate>(
    exchange: &mut Exchange<'_>,
    delegate: &mut L,
    buffers: &mut Buffers,
    client: ClientSide<'_, '_, '_, '_, '_>,
    signals: &Signals,
) -> Result<Received, Broke> {
    let ClientSide { request_body, writer, response } = client;
    delegate
        .ask(exchange.connection, request_body, buffers)
        .map_err(|_| Broke::HttpError(L::fault(Cause::Died)))?;
    let Buffers { input, output, head, .. } = buffers;
    let expects_continue = !exchange.is_complete && request_body.expects_continue();
    if expects_continue && !delegate.announces_continue() {
        // An upstream that does not know of it does not ask.
        exchange.timeouts.asking = Some(Duration::ZERO);
    }
    let exchange = &*exchange;
    let taken = {
        let mut uploading = pin!(request::send::<L>(request_body, exchange, output, signals));
        let taking = response::Taking::new(exchange, input, head, signals, expects_continue);
        let mut downloading = pin!(response::receive(taking, delegate, writer, response));
        poll_fn(|context| {
            // The request goes first; reading before would only be a call in vain. Once it is sent, so is looking whether
            // the client is still there when the response has come.
            let is_sent = signals.is_sent.get();
            if is_sent && let Poll::Ready(taken) = downloading.as_mut().poll(context) {
                return Poll::Ready(taken);
            }
            match uploading.as_mut().poll(context) {
                Poll::Ready(fault) => Poll::Ready(Err(Broke::HttpError(fault))),
                Poll::Pending if is_sent => Poll::Pending,
                Poll::Pending => downloading.as_mut().poll(context),
            }
        })
        .await
    };
    match taken? {
        Taken::Received(received) => Ok(received),
        Taken::Upgraded => {
            let tunnel = tunnel::run(exchange.connection, input, request_body, writer, delegate.tunnel());
            Box::pin(tunnel).await;
            Ok(Received::Ended(Ended::Tunnelled))
        }
    }
}

/// RFC 9110 section 9.2.2: whether it means the same twice as once. Of a method that is not known nothing is known.
pub fn is_idempotent(method: Method) -> bool {
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
