//! `reverse_proxy`: what an upstream sees, what its client gets, and what is tried again.

mod answers;
mod requests;
mod retries;
mod tunnels;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::proxy::{
    Balance, BalancePolicy, Proxy, ProxyAddress, ProxyPool, ProxyTransport, ProxyUpstream,
};
use onehop_config::checked::{Checked, Step};

use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::Program;

/// A server before these upstreams.
fn serve(upstreams: &[SocketAddr], change: impl Fn(&mut Proxy) + Send + Sync + 'static) -> TestServer {
    serve_wishing("", upstreams, change, Wishes::default())
}

/// The same before one program.
pub(crate) fn before(program: &Program, change: impl Fn(&mut Proxy) + Send + Sync + 'static) -> TestServer {
    serve(&[program.address], change)
}

/// The same with directives of the site.
fn serve_wishing(
    directives: &str,
    upstreams: &[SocketAddr],
    change: impl Fn(&mut Proxy) + Send + Sync + 'static,
    wishes: Wishes,
) -> TestServer {
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\t{directives}\n\trespond \"a reverse proxy\"\n}}\n"
    );
    let upstreams = upstreams.to_vec();
    let amend = move |checked: &mut Checked| {
        let mut proxy = settings(&upstreams);
        change(&mut proxy);
        let proxy = Arc::new(proxy);
        for route in checked.sites.iter_mut().flat_map(|site| &mut site.routes) {
            if matches!(&route.step, Step::Respond { body, .. } if body.as_text() == Some("a reverse proxy"))
            {
                route.step = Step::Proxy(Arc::clone(&proxy));
            }
        }
    };
    TestServer::start(application(), &text, Wishes { amend: Some(Arc::new(amend)), ..wishes })
}

/// What a directive without options means.
fn settings(upstreams: &[SocketAddr]) -> Proxy {
    let upstreams = upstreams.iter().map(|address| ProxyUpstream {
        label: address.to_string(),
        address: ProxyAddress::Tcp { host: address.ip().to_string(), port: address.port() },
    });
    Proxy {
        name: "test".to_owned(),
        upstreams: upstreams.collect(),
        transport: ProxyTransport::default(),
        pool: ProxyPool { min: 0, max: None },
        balance: Balance {
            policy: BalancePolicy::First,
            retries: None,
            try_duration: Duration::ZERO,
            try_interval: Duration::ZERO,
            retry_match: Vec::new(),
        },
        ..Proxy::default()
    }
}

/// How often requests were refused for this cause.
fn refused(server: &TestServer, cause: &str) -> u64 {
    let text = server.metrics();
    let label = format!("cause=\"{cause}\"");
    let lines = text.lines().filter(|line| line.contains(&label));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
