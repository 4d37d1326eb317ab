//! Counters and logs.

use std::time::{Duration, Instant};

use crate::harness::{TestServer, Wishes, application, serve_application};

#[test]
fn requests_are_counted_by_site_handler_method_and_class_over_all_cores() {
    let server = serve_application(Wishes { threads: 4, ..Wishes::default() });
    for _ in 0..10 {
        let mut client = server.connect();
        client.get("/");
        client.get("/missing.js");
    }
    let site = "onehop_requests_total{site=\"http://localhost:0\",handler=\"spa\",route=\"*\"";
    assert_eq!(server.metric(&format!("{site},method=\"GET\",class=\"2xx\"")), 10);
    assert_eq!(server.metric(&format!("{site},method=\"GET\",class=\"4xx\"")), 10);
    assert_eq!(server.metric("onehop_refused_total{cause=\"missing_asset\",status=\"404\"}"), 10);
    let durations =
        "onehop_request_duration_seconds_count{site=\"http://localhost:0\",handler=\"spa\",route=\"*\"}";
    assert_eq!(server.metric(durations), 20);
}

#[test]
fn routes_are_counted_by_their_matchers_and_an_error_by_that_of_the_route_that_failed() {
    let text = "http://localhost:0 {
\thandle_path /api/* {
\t\thandle /users/* {
\t\t\trespond users
\t\t}
\t\trespond api
\t}
\t@static path *.css *.js
\tfile_server @static
\trespond /old gone 410
\thandle_errors {
\t\trespond sorry
\t}
}
";
    let server = TestServer::start(application(), text, Wishes::default());
    let mut client = server.connect();
    for path in ["/api/users/1", "/api/users/2", "/api/other", "/missing.css", "/old", "/nothing"] {
        client.get(path);
    }
    let counted = |handler: &str, route: &str, class: &str| {
        let labels = format!("handler=\"{handler}\",route=\"{route}\",method=\"GET\",class=\"{class}\"");
        server.metric(&format!("onehop_requests_total{{site=\"http://localhost:0\",{labels}}}"))
    };
    assert_eq!(counted("respond", "/api/users/*", "2xx"), 2);
    assert_eq!(counted("respond", "/api/*", "2xx"), 1);
    assert_eq!(counted("file_server", "*.css *.js", "4xx"), 1);
    assert_eq!(counted("respond", "/old", "4xx"), 1);
    assert_eq!(counted("none", "none", "2xx"), 1);
}

#[test]
fn hosts_that_clients_invent_create_no_series() {
    let server = serve_application(Wishes::default());
    let ask = |number: usize| {
        let mut client = server.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: invented-{number}.test\r\n\r\n"));
        client.answer();
    };
    ask(0);
    let before = server.metrics().lines().count();
    (1..50).for_each(ask);
    assert_eq!(server.metrics().lines().count(), before);
}

#[test]
fn a_request_is_one_json_line_without_its_secrets() {
    let text = "http://localhost:0 {\n\tlog {\n\t\toutput file ./access.log\n\t}\n\trespond hello\n}\n";
    let server = TestServer::start(application(), text, Wishes::default());
    let mut client = server.connect();
    client.send(
        "GET /a?b='c'&d=%22 HTTP/1.1\r\nHost: localhost\r\nCookie: session=secret\r\nX: 1\r\nX: 2\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let line = logged(&server, 1).remove(0);
    assert!(!line.contains("secret"), "{line}");
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["status"], 200);
    assert_eq!(json["size"], 5);
    assert_eq!(json["request"]["uri"], "/a?b='c'&d=%22");
    assert_eq!(json["request"]["headers"]["Cookie"][0], "REDACTED");
    assert_eq!(json["request"]["headers"]["X"], serde_json::json!(["1", "2"]));
}

#[test]
fn refusals_are_logged_with_their_cause_also_those_of_the_codec() {
    let text = "http://localhost:0 {\n\tlog {\n\t\toutput file ./logs/access.log\n\t}\n\tfile_server\n}\n";
    let server = TestServer::start(application(), text, Wishes::default());
    server.connect().get("/missing");
    server.connect().send("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n").answer();
    server.connect().send("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n").answer();
    let lines = logged_in(&server, "logs/access.log", 3);
    let refused = |line: &String| {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        (json["status"].as_u64().unwrap(), json["refused"].as_str().unwrap().to_owned())
    };
    let refused: Vec<_> = lines.iter().map(refused).collect();
    let expected = [(404, "not_found"), (421, "unknown_host"), (400, "bad_content_length")];
    assert_eq!(refused, expected.map(|(status, cause)| (status, cause.to_owned())));
}

/// The first lines of `access.log`, once there are so many.
pub(crate) fn logged(server: &TestServer, count: usize) -> Vec<String> {
    logged_in(server, "access.log", count)
}

/// The first lines of an access log, once there are so many.
fn logged_in(server: &TestServer, name: &str, count: usize) -> Vec<String> {
    let path = server.folder.path().join(name);
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.ends_with('\n') && text.lines().count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "only this came: {text}");
        std::thread::yield_now();
    }
}
