//! Failures of responses that are reported as events.

use std::time::Duration;

use onehop_server::Event;
use onehop_server::request::incidents::{Incident, Origin};

use crate::harness::TestServer;
use crate::programs::program::Program;
use crate::{programs, proxy, workers};

/// The request is answered with this status, and an event names where it failed and why.
fn check(server: &TestServer, path: &str, status: u16, origin: &Origin, reason: &str) {
    let mut client = server.connect();
    assert_eq!(client.get(path).status, status, "{reason}");
    let incident = server.wait_for(|event| match event {
        Event::ResponsesFailed(incident) => Some(incident.clone()),
        _ => None,
    });
    let Incident { origin: from, status: reported, reason: why, requests, .. } = incident;
    assert_eq!((&from, reported, requests), (origin, status, 1), "{reason}");
    assert!(why.contains(reason), "{why}");
}

/// It takes a request and never answers.
fn silent() -> Program {
    Program::start(|talk, _| {
        talk.bytes(1);
        false
    })
}

/// It answers with a header of this many fields and bytes.
fn oversized(fields: usize, bytes: usize) -> Program {
    Program::start(move |talk, _| {
        let value = "v".repeat(bytes / fields);
        let fields: String = (0..fields).map(|number| format!("X-{number}: {value}\r\n")).collect();
        talk.say(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok"))
    })
}

#[test]
fn a_504_of_an_upstream_or_an_application_is_reported() {
    let program = silent();
    let upstream = Origin::Upstream(program.address.to_string());
    let server = proxy::before(&program, |proxy| {
        proxy.transport.response_header_timeout = Some(Duration::from_millis(50));
    });
    check(&server, "/", 504, &upstream, "`response_header_timeout`");
    let server = programs::serve_with(program.address, "timeout 50ms", "");
    check(&server, "/", 504, &Origin::App(program.address.to_string()), "`timeout`");
    let server = workers::serve("never", "timeout 50ms");
    // An application is called as the folder that it is in.
    let name = server.folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    check(&server, "/api/x", 504, &Origin::App(name), "`timeout`");
}

#[test]
fn an_oversized_response_header_is_reported() {
    for (program, reason) in
        [(oversized(10, 80 * 1024), "header is too large"), (oversized(300, 3_000), "too many fields")]
    {
        let server = proxy::before(&program, |_| {});
        check(&server, "/", 502, &Origin::Upstream(program.address.to_string()), reason);
        let server = programs::serve_with(program.address, "", "");
        check(&server, "/", 502, &Origin::App(program.address.to_string()), reason);
    }
    let program = oversized(10, 4 * 1024);
    let server = proxy::before(&program, |proxy| proxy.transport.max_response_header = Some(1024));
    check(&server, "/", 502, &Origin::Upstream(program.address.to_string()), "`max_response_header`");
}
