//! TLS handshakes: from a TCP connection to an encrypted one, under the policy of the site that the client names.
//!
//! A handshake has a deadline, and a core has so many at a time: a flood of them costs its own connections, not those that
//! are there. What fails is counted by cause; the client gets the alert of RFC 8446 section 6.2 that says why.

use std::future::poll_fn;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use onehop_certificates::keeper::Obtaining;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::limits::READ_BUFFER_BYTES;
use onehop_connection::tls_stream::{self, HandshakeError, TlsStream};
use onehop_message::tls_session::TlsSession;
use onehop_metrics::counters::HandshakeFailure;
use onehop_tls::{Chain, ChainTable, Policy, certificate};
use rustls::server::{Accepted, Acceptor, ClientHello};
use rustls::{HandshakeKind, ServerConfig};
use tokio::net::TcpStream;

use crate::limits::{HANDSHAKE_DEADLINE, HANDSHAKES_MAX, ON_DEMAND_DEADLINE};
use crate::request::core::Core;
use crate::request::route::{SiteTls, Snapshot};

/// A fatal `unrecognized_name` (RFC 6066 section 3), in the record that every version reads (RFC 8446 section 5.1).
const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];
/// What a client is told that speaks HTTP on a port of HTTPS, as nginx and Go's server do.
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 46\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS: use an https:// URL.\r\n";
/// The protocol of issuers that verify a name (RFC 8737 section 4).
const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";
/// A fatal `unexpected_message` (RFC 8446 section 5): nothing but a handshake comes first.
const UNEXPECTED_MESSAGE: &[u8] = &[21, 3, 3, 0, 2, 2, 10];
/// The first bytes of TLS records (RFC 8446 section 5.1, RFC 6520 section 3). No method of HTTP begins so.
const RECORDS: RangeInclusive<u8> = 20..=24;
/// That of a record with an alert.
const ALERT: u8 = 21;
/// That of a record with a handshake message.
const HANDSHAKE: u8 = 22;

/// A handshake on its way; counted while it lives.
struct Counted<'c>(&'c Core);

impl<'c> Counted<'c> {
    fn new(core: &'c Core) -> Option<Self> {
        let count = core.handshakes.get();
        (count < HANDSHAKES_MAX).then(|| {
            core.handshakes.set(count + 1);
            Self(core)
        })
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.handshakes.set(self.0.handshakes.get().saturating_sub(1));
    }
}

/// Completes the handshake of a connection; also the number of the policy under which it was negotiated, and what that was.
/// `None`: it failed, was counted, and the connection is over.
pub(crate) async fn handshake(
    core: &Rc<Core>,
    stream: TcpStream,
    listener: usize,
) -> Option<(TlsStream, u32, TlsSession)> {
    let Some(_counted) = Counted::new(core) else {
        core.counters.handshake_failed(HandshakeFailure::TooMany);
        // Nothing of it stays in the kernel either.
        let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO));
        return None;
    };
    let deadline = core.connection.deadline();
    deadline.set(Waiting::Head, HANDSHAKE_DEADLINE);
    match negotiate(core, stream, listener, &deadline).await {
        Ok((mut stream, policy)) => {
            core.counters.handshake_done(stream.session().handshake_kind() == Some(HandshakeKind::Resumed));
            // An issuer that verifies a name has seen what it wants, and asks for nothing (RFC 8737 section 4).
            let Some(policy) = policy else {
                // With TLS 1.2 our last message waits to be sent.
                stream.notify_end();
                return None;
            };
            let session = policy.session(stream.session());
            Some((stream, policy.number, session))
        }
        Err(failure) => {
            core.counters.handshake_failed(failure);
            None
        }
    }
}

async fn negotiate(
    core: &Rc<Core>,
    mut stream: TcpStream,
    listener: usize,
    deadline: &Deadline,
) -> Result<(TlsStream, Option<Policy>), HandshakeFailure> {
    let refusal = match first_byte(&stream, deadline).await? {
        HANDSHAKE => None,
        // A client that has already failed expects no response.
        ALERT => Some((&[][..], HandshakeFailure::Protocol)),
        first if RECORDS.contains(&first) => Some((UNEXPECTED_MESSAGE, HandshakeFailure::Protocol)),
        _ => Some((PLAIN_HTTP, HandshakeFailure::NotTls)),
    };
    if let Some((response, failure)) = refusal {
        let _ = stream.try_write(response);
        // With unread bytes a close is a reset, which may take the response back (RFC 9112 section 9.6).
        let _ = stream.try_read(&mut [0; READ_BUFFER_BYTES]);
        return Err(failure);
    }
    let mut acceptor = Acceptor::default();
    let accepted = poll_fn(|context| match tls_stream::poll_hello(&mut acceptor, &mut stream, context) {
        Poll::Pending if deadline.poll_over(context) => Poll::Ready(Err(HandshakeFailure::Timeout)),
        polled => polled.map_err(|error| cause(&error)),
    });
    let accepted = accepted.await?;
    let mut chosen = choose(core, &stream, listener, &accepted, true);
    if let Some(Choice::Wait(obtaining)) = chosen {
        wait(obtaining, deadline).await?;
        chosen = choose(core, &stream, listener, &accepted, false);
    }
    let Some(Choice::Config(policy, config)) = chosen else {
        let _ = stream.try_write(UNRECOGNIZED_NAME);
        return Err(HandshakeFailure::NoCertificate);
    };
    let session = match accepted.into_connection(config) {
        Ok(session) => session,
        Err((error, mut alert)) => {
            let mut bytes = Vec::new();
            let _ = alert.write_all(&mut bytes);
            let _ = stream.try_write(&bytes);
            return Err(cause(&HandshakeError::Tls(error)));
        }
    };
    let mut stream = TlsStream::new(stream, session);
    poll_fn(|context| match stream.poll_handshake(context) {
        Poll::Pending if deadline.poll_over(context) => Poll::Ready(Err(HandshakeFailure::Timeout)),
        polled => polled.map_err(|error| cause(&error)),
    })
    .await?;
    Ok((stream, policy))
}

/// Looks at the first byte without taking it.
async fn first_byte(stream: &TcpStream, deadline: &Deadline) -> Result<u8, HandshakeFailure> {
    let mut byte = [0];
    poll_fn(|context| {
        let mut buffer = tokio::io::ReadBuf::new(&mut byte);
        match stream.poll_peek(context, &mut buffer) {
            Poll::Pending if deadline.poll_over(context) => Poll::Ready(Err(HandshakeFailure::Timeout)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(1..)) => Poll::Ready(Ok(())),
            Poll::Ready(_) => Poll::Ready(Err(HandshakeFailure::Gone)),
        }
    })
    .await?;
    let [byte] = byte;
    Ok(byte)
}

/// How a handshake continues.
enum Choice {
    /// Under this policy and with this certificate. Without a policy it is an issuer's, which verifies a name.
    Config(Option<Policy>, Arc<ServerConfig>),
    /// When a certificate was obtained, or was not.
    Wait(Obtaining),
}

/// Waits for a certificate. Whether there is one is seen by the next choice.
async fn wait(mut obtaining: Obtaining, deadline: &Deadline) -> Result<(), HandshakeFailure> {
    deadline.set(Waiting::Head, ON_DEMAND_DEADLINE);
    poll_fn(|context| match Pin::new(&mut obtaining).poll(context) {
        Poll::Pending if deadline.poll_over(context) => Poll::Ready(Err(HandshakeFailure::Timeout)),
        polled => polled.map(|_| Ok(())),
    })
    .await?;
    deadline.set(Waiting::Head, HANDSHAKE_DEADLINE);
    Ok(())
}

/// The policy and the certificate for what a client asks for; `None` where no site has that name, or no certificate. One is
/// obtained where the site says so and `obtains`.
fn choose(
    core: &Rc<Core>,
    stream: &TcpStream,
    listener: usize,
    accepted: &Accepted,
    obtains: bool,
) -> Option<Choice> {
    let hello = accepted.client_hello();
    if hello.alpn().is_some_and(|mut names| names.any(|name| name == CHALLENGE_PROTOCOL)) {
        let certificate = core.shared.challenges.tls_alpn_01(hello.server_name()?)?;
        return Some(Choice::Config(None, onehop_tls::policy::challenge(&Chain::new(certificate))?));
    }
    let view = core.view();
    let snapshot = &view.snapshot;
    let tls = &snapshot.tls;
    // Without a name the client means the address that it connected to, or what the configuration says (as in Caddy).
    let meant = match hello.server_name() {
        Some(name) => name.to_ascii_lowercase(),
        None => match &tls.default_name {
            Some(name) => name.clone(),
            None => local_address(stream)?.to_string(),
        },
    };
    let name = meant.strip_suffix('.').unwrap_or(&meant);
    // As a Host has it: an IPv6 address in brackets (RFC 3986 section 3.2.2).
    let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    let of_name = snapshot.site_number(listener, Some(host.as_bytes()));
    // A client without a name cannot say which site it means; its request will.
    let number =
        of_name.or_else(|| hello.server_name().is_none().then(|| snapshot.first_site(listener)).flatten());
    let site = snapshot.sites.get(number?)?.tls.as_ref()?;
    let found = chain_for(name, site, snapshot, &core.shared.chains(), &hello);
    if found.is_none()
        && obtains
        && let Some(obtaining) = site.on_demand.as_ref().and_then(|on_demand| on_demand.obtain(name))
    {
        return Some(Choice::Wait(obtaining));
    }
    let chain = found.or_else(|| best(&all_of(site), &hello)).or_else(|| {
        let other = tls.fallback_name.as_deref()?;
        chain_for(other, site, snapshot, &core.shared.chains(), &hello)
    })?;
    Some(Choice::Config(Some(site.policy.clone()), site.policy.with_chain(&chain, &hello)))
}

/// The certificate for a name: one of the site's files, one that was obtained, one of another site's files.
fn chain_for(
    name: &str,
    site: &SiteTls,
    snapshot: &Snapshot,
    obtained: &ChainTable,
    hello: &ClientHello<'_>,
) -> Option<Chain> {
    let of_files = |site: &SiteTls| {
        let files = site.files.iter().filter(|file| file.loaded.matches_name(name));
        files.map(|file| file.chain.clone()).collect::<Vec<Chain>>()
    };
    let own = || best(&of_files(site), hello);
    let managed = || best(obtained.find(name), hello);
    let found = if site.prefers_managed { managed().or_else(own) } else { own().or_else(managed) };
    found.or_else(|| {
        snapshot.sites.iter().flat_map(|site| &site.tls).find_map(|other| best(&of_files(other), hello))
    })
}

fn all_of(site: &SiteTls) -> Vec<Chain> {
    site.files.iter().map(|file| file.chain.clone()).collect()
}

fn best(chains: &[Chain], hello: &ClientHello<'_>) -> Option<Chain> {
    certificate::choose(chains, hello).cloned()
}

fn local_address(stream: &TcpStream) -> Option<IpAddr> {
    stream.local_addr().ok().map(|address| address.ip().to_canonical())
}

fn cause(error: &HandshakeError) -> HandshakeFailure {
    match error {
        HandshakeError::Io(_) => HandshakeFailure::Gone,
        HandshakeError::Tls(error) => match error {
            rustls::Error::AlertReceived(_) => HandshakeFailure::RefusedByClient,
            rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_) => {
                HandshakeFailure::ClientCertificate
            }
            rustls::Error::PeerIncompatible(_) => HandshakeFailure::Incompatible,
            _ => HandshakeFailure::Protocol,
        },
    }
}
