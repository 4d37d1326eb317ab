//! Starting a server for a side-by-side run, and where it listens.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use onehop_load::measure::{self, Server, Start, StartError};
use onehop_load::plan::{Expect, Protocol, Request, Timeouts};
use onehop_load::progress::Observer;
use onehop_load::url::{Address, Endpoint, Url};

/// How often a wait for a server looks whether it is interrupted, and where the server listens.
const READY_STRETCH: Duration = Duration::from_secs(1);

/// Why a start came to nothing.
pub(super) enum Failed {
    Start(StartError),
    Interrupted,
}

/// Starts it and waits for its first answer. Some programs that are told `localhost` listen at ::1 alone: then that is
/// where it is asked, and the address is given back.
pub(super) fn begin(
    start: &Start,
    request: &Request,
    cores: &[usize],
    observer: &mut dyn Observer,
) -> Result<(Server, IpAddr), Failed> {
    let server = Server::start(start, cores)?;
    let mut request = request.clone();
    let begun = Instant::now();
    let timeouts = Timeouts { connect: Duration::from_secs(1), response: start.ready_within };
    loop {
        let left = start.ready_within.saturating_sub(begun.elapsed());
        let (next_look, is_elsewhere) = (Cell::new(Instant::now() + READY_STRETCH), Cell::new(false));
        // A first answer that takes long is not asked for a second time: only another place to ask at ends the wait.
        let is_over = || {
            if ip_of(&request.address).is_ipv4() && Instant::now() >= next_look.get() {
                next_look.set(Instant::now() + READY_STRETCH);
                is_elsewhere.set(is_at_ipv6_alone(&server));
            }
            is_elsewhere.get() || observer.is_interrupted()
        };
        if measure::wait_until_ready_unless(&server, &request, timeouts, left, &is_over)?.is_some() {
            return Ok((server, ip_of(&request.address)));
        }
        if observer.is_interrupted() {
            server.stop_hurried_by(&|| true);
            return Err(Failed::Interrupted);
        }
        request.address = Address::Tcp((Ipv6Addr::LOCALHOST, server.port()).into());
    }
}

/// Whether it listens on its port, and at ::1 only.
fn is_at_ipv6_alone(server: &Server) -> bool {
    let listening = server.tree().listening();
    let mut here = listening.iter().filter(|address| address.port() == server.port()).peekable();
    here.peek().is_some() && here.all(|address| address.ip() == IpAddr::V6(Ipv6Addr::LOCALHOST))
}

fn ip_of(address: &Address) -> IpAddr {
    match address {
        Address::Tcp(address) => address.ip(),
        Address::Unix(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
    }
}

/// A request to an application of which nothing is known but its port.
pub(super) fn anything(port: u16, path: &str) -> Request {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Request {
        name: path.to_owned(),
        url: Url {
            scheme: onehop_load::url::Scheme::Http,
            endpoint: Endpoint::Tcp { host: address.ip().to_string(), port },
            authority: format!("localhost:{port}"),
            path: path.to_owned(),
        },
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Any,
    }
}

impl From<StartError> for Failed {
    fn from(error: StartError) -> Failed {
        Failed::Start(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_at_the_other_loopback_address_is_found() {
        let Some(python) = ["/usr/bin/python3"].into_iter().find(|path| std::path::Path::new(path).exists())
        else {
            return;
        };
        let source = "import http.server,os;H=http.server.SimpleHTTPRequestHandler;S=http.server.HTTPServer;\
            S.address_family=10;S(('::1',int(os.environ['PORT'])),H).serve_forever()";
        let folder = tempfile::tempdir().unwrap();
        let start = Start {
            words: [python, "-c", source].map(str::to_owned).to_vec(),
            environment: Vec::new(),
            directory: Some(folder.path().to_owned()),
            port: Some(crate::stacks::ports::free(&[]).unwrap()),
            behind: Vec::new(),
            ready_within: Duration::from_secs(20),
        };
        let request = anything(start.port.unwrap(), "/");
        let Ok((server, ip)) = begin(&start, &request, &[], &mut onehop_load::progress::Unobserved) else {
            panic!("it does not answer");
        };
        assert_eq!(ip, IpAddr::V6(Ipv6Addr::LOCALHOST));
        drop(server);
    }
}
