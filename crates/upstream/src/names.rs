//! Resolves the names of peers: before the first request, and again when their time to live is over.
//!
//! One thread for the whole process, started with the first name; one task on it for each peer, which ends with the
//! peer. A resolution that fails changes no known address. Dials nothing and closes nothing: cores see new addresses when
//! they dial, and use up connections to old ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver, system_conf};
use tokio::sync::Notify;

use crate::limits::{
    NAME_HOSTS_PERIOD, NAME_QUERY_TIMEOUT, NAME_RETRY_MAX, NAME_SECOND_FAMILY_WAIT, NAME_TTL_MAX,
    NAME_TTL_MIN,
};
use crate::peer::{Endpoint, Peer};

/// Resolves names for as long as one of its clones lives.
#[derive(Clone, Default)]
pub struct Names(Arc<Handle>);

/// The clones' end of the inbox.
#[derive(Default)]
struct Handle(Arc<Inbox>);

#[derive(Default)]
struct Inbox {
    state: Mutex<State>,
    reported: Notify,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Nobody names anything any more.
    is_over: bool,
    new: Vec<Followed>,
}

struct Followed {
    peer: Weak<Peer>,
    question: Question,
}

/// What is asked, and whom.
#[derive(Clone)]
struct Question {
    host: String,
    port: u16,
    /// Empty: the system's.
    resolvers: Vec<SocketAddr>,
}

/// What came of one family of addresses.
enum Family {
    /// These, for so long.
    There(Vec<IpAddr>, Duration),
    /// There are none.
    None,
    /// Nobody answered.
    Failed(String),
}

impl Names {
    /// Publishes a peer's addresses from now on, if its place is a name. Waits for nothing.
    pub fn follow(&self, peer: &Arc<Peer>, resolvers: &[SocketAddr]) {
        let Endpoint::Name(host, port) = &peer.endpoint else { return };
        if let Some(addresses) = without_asking(host, *port) {
            peer.publish_addresses(addresses);
            return;
        }
        let question = Question { host: host.clone(), port: *port, resolvers: resolvers.to_vec() };
        let inbox = &self.0.0;
        let mut state = inbox.lock();
        state.new.push(Followed { peer: Arc::downgrade(peer), question });
        if !state.is_running {
            let inbox = Arc::clone(inbox);
            let started = std::thread::Builder::new().name("names".to_owned()).spawn(move || run(&inbox));
            match started {
                Ok(_) => state.is_running = true,
                Err(error) => peer.publish_failure(format!("no thread for resolving names: {error}")),
            }
        }
        drop(state);
        inbox.reported.notify_one();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.reported.notify_one();
    }
}

impl Inbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread.
fn run(inbox: &Inbox) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let mut state = inbox.lock();
            // The next name tries again.
            state.is_running = false;
            for peer in state.new.drain(..).filter_map(|followed| followed.peer.upgrade()) {
                peer.publish_failure(format!("no runtime for resolving names: {error}"));
            }
            return;
        }
    };
    runtime.block_on(async {
        loop {
            let new = {
                let mut state = inbox.lock();
                if state.is_over {
                    return;
                }
                std::mem::take(&mut state.new)
            };
            for followed in new {
                tokio::spawn(follow(followed));
            }
            inbox.reported.notified().await;
        }
    });
}

/// Resolves one name for as long as somebody holds its peer.
async fn follow(Followed { peer, question }: Followed) {
    let doubted = Arc::new(Notify::new());
    if let Some(peer) = peer.upgrade() {
        peer.follow_doubts(Arc::clone(&doubted));
    }
    let mut pause = NAME_TTL_MIN;
    loop {
        let asked = Instant::now();
        let Some(known) = peer.upgrade().map(|peer| peer.addresses()) else { return };
        let resolved = resolve(&question, &known).await;
        let Some(peer) = peer.upgrade().filter(|peer| !peer.is_withdrawn()) else { return };
        // Dials that failed by now have been answered.
        peer.take_doubt();
        let wait = match resolved {
            Ok((addresses, time)) => {
                peer.publish_addresses(addresses);
                pause = NAME_TTL_MIN;
                time.clamp(NAME_TTL_MIN, NAME_TTL_MAX)
            }
            Err(reason) => {
                peer.publish_failure(reason);
                pause = (pause * 2).min(NAME_RETRY_MAX);
                pause
            }
        };
        drop(peer);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // Failing dials by the thousand are one question in this time.
            () = async {
                tokio::time::sleep(NAME_TTL_MIN.saturating_sub(asked.elapsed())).await;
                doubted.notified().await;
            } => {}
        }
    }
}

/// What needs no question: plain addresses, and the machine itself (RFC 6761 section 6.3).
fn without_asking(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(vec![(address, port).into()]);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost"))
        .then(|| vec![(Ipv6Addr::LOCALHOST, port).into(), (Ipv4Addr::LOCALHOST, port).into()])
}

/// Where a name leads, and for how long. A family of which nothing can be learned keeps what is known of it.
async fn resolve(question: &Question, known: &[SocketAddr]) -> Result<(Vec<SocketAddr>, Duration), String> {
    let host = &question.host;
    let name = Name::from_utf8(host).map_err(|error| format!("{host} is no name: {error}"))?;
    let listed = in_hosts_file(&name);
    if !listed.is_empty() {
        return Ok((with_port(listed, question.port), NAME_HOSTS_PERIOD));
    }
    let resolver = resolver(&question.resolvers).map_err(|error| format!("{host}: {error}"))?;
    let (six, four) = both(ask(&resolver, &name, RecordType::AAAA), ask(&resolver, &name, RecordType::A), {
        // The first answer is waited for by requests; later ones are not, and may be complete.
        if known.is_empty() { NAME_SECOND_FAMILY_WAIT } else { NAME_QUERY_TIMEOUT * 2 }
    })
    .await;
    put_together(question, known, six, four)
}

/// What two answers mean for what was known. `None`: it did not come in time.
fn put_together(
    question: &Question,
    known: &[SocketAddr],
    six: Option<Family>,
    four: Option<Family>,
) -> Result<(Vec<SocketAddr>, Duration), String> {
    let host = &question.host;
    let (mut addresses, mut time, mut reason) = (Vec::new(), NAME_TTL_MAX, None);
    for (family, is_six) in [(six, true), (four, false)] {
        let known = known.iter().filter(|address| address.is_ipv6() == is_six);
        match family {
            Some(Family::There(found, until)) => {
                addresses.extend(with_port(found, question.port));
                time = time.min(until);
            }
            Some(Family::None) => {}
            Some(Family::Failed(why)) => {
                addresses.extend(known);
                time = NAME_TTL_MIN * 2;
                reason = Some(why);
            }
            // Asked again soon, without a request that waits.
            None => {
                addresses.extend(known);
                time = NAME_TTL_MIN;
            }
        }
    }
    match (addresses.is_empty(), reason) {
        (false, _) => Ok((addresses, time)),
        (true, Some(why)) => Err(format!("{host} was not resolved: {why}")),
        (true, None) => Err(format!("{host} has no addresses")),
    }
}

/// Both answers; of the second to come nothing, where it takes so much longer and the first has addresses
/// (RFC 8305 section 3).
async fn both(
    six: impl Future<Output = Family>,
    four: impl Future<Output = Family>,
    timeout: Duration,
) -> (Option<Family>, Option<Family>) {
    tokio::pin!(six, four);
    tokio::select! {
        six = &mut six => {
            let four = match six {
                Family::There(..) => tokio::time::timeout(timeout, four).await.ok(),
                Family::None | Family::Failed(_) => Some(four.await),
            };
            (Some(six), four)
        }
        four = &mut four => {
            let six = match four {
                Family::There(..) => tokio::time::timeout(timeout, six).await.ok(),
                Family::None | Family::Failed(_) => Some(six.await),
            };
            (six, Some(four))
        }
    }
}

async fn ask(resolver: &TokioResolver, name: &Name, family: RecordType) -> Family {
    match resolver.lookup(name.clone(), family).await {
        Ok(found) => {
            let addresses: Vec<_> =
                found.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
            let time = found.valid_until().saturating_duration_since(Instant::now());
            if addresses.is_empty() { Family::None } else { Family::There(addresses, time) }
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(_))) => Family::None,
        Err(error) => Family::Failed(error.to_string()),
    }
}

/// A resolver with what the system's files say now: they change while a server runs.
fn resolver(servers: &[SocketAddr]) -> Result<TokioResolver, String> {
    let system = system_conf::read_system_conf();
    let (mut config, mut options) = match system {
        Ok(system) => system,
        Err(_) if !servers.is_empty() => {
            (ResolverConfig::from_parts(None, Vec::new(), Vec::new()), ResolverOpts::default())
        }
        Err(error) => return Err(format!("/etc/resolv.conf cannot be used: {error}")),
    };
    if !servers.is_empty() {
        let (domain, search, _) = config.into_parts();
        config = ResolverConfig::from_parts(domain, search, servers.iter().map(name_server).collect());
    }
    options.timeout = options.timeout.min(NAME_QUERY_TIMEOUT);
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.with_options(options).build().map_err(|error| error.to_string())
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

fn in_hosts_file(name: &Name) -> Vec<IpAddr> {
    let Ok(hosts) = Hosts::from_system() else { return Vec::new() };
    let families = [RecordType::AAAA, RecordType::A];
    let found = families.into_iter().filter_map(|family| {
        let found = hosts.lookup_static_host(&Query::query(name.clone(), family))?;
        Some(found.answers().iter().filter_map(|record| record.data.ip_addr()).collect::<Vec<_>>())
    });
    found.flatten().collect()
}

fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    addresses.into_iter().map(|address| (address, port).into()).collect()
}

#[cfg(test)]
mod tests;
