//! Tests only: small real servers and programs.

use std::time::{Duration, Instant};

use super::Start;
use super::server::Server;
use crate::plan::{Expect, Protocol, Request, Timeouts};
use crate::url::{Address, Url};

/// Long enough for a busy machine.
pub(crate) const TIMEOUTS: Duration = Duration::from_secs(20);

/// A small HTTP server; `/burn` has six threads one after the other use 60 ms of a core each and answers with the
/// process's CPU time in microseconds.
pub(crate) const NODE_SERVER: &str = r#"
const { Worker } = require("node:worker_threads");
// CPU time, not time: on a busy machine they work for longer.
const burn = "const begun = process.cpuUsage(); let used; do used = process.cpuUsage(begun); while (used.user + used.system < 60000);";
require("node:http").createServer(async (request, response) => {
  if (request.url === "/burn") {
    const before = process.cpuUsage();
    for (let round = 0; round < 6; round += 1)
      await new Promise((ended) => new Worker(burn, { eval: true }).on("exit", ended));
    const used = process.cpuUsage(before);
    return response.end(String(used.user + used.system));
  }
  if (request.url === "/missing") response.statusCode = 503;
  response.end("hello");
}).listen(Number(process.env.AT ?? process.env.PORT), "127.0.0.1");
"#;

pub(crate) fn start_of(words: &[&str]) -> Start {
    Start {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        environment: Vec::new(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: TIMEOUTS,
    }
}

pub(crate) fn started(words: &[&str]) -> Server {
    Server::start(&start_of(words), &[]).unwrap()
}

pub(crate) fn request(path: &str, port: u16) -> Request {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    Request {
        name: path.to_owned(),
        url: Url::parse(&format!("http://{address}{path}")).unwrap(),
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    }
}

pub(crate) fn response_of(path: &str, port: u16) -> String {
    let request = request(path, port);
    let response =
        crate::Client::new(request.address.clone()).request(&request, Timeouts::default()).unwrap();
    String::from_utf8(response.body).unwrap()
}

/// Waits for a state.
pub(crate) fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(begun.elapsed() < TIMEOUTS, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
