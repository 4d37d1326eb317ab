//! Applications that close the client's connection instead of answering: it ends as it does without a server in
//! front.

use crate::harness::TestServer;
use crate::observed::logged;
use crate::workers::serve;

const CAUSE: &str = "onehop_refused_total{cause=\"hung_up\",status=\"444\"}";

/// Sends a request and tells what comes until the connection's end, and whether that is a clean one.
fn ask(server: &TestServer, request: &str) -> (String, bool) {
    let mut client = server.connect();
    client.send(request);
    let (bytes, is_clean) = client.rest();
    (String::from_utf8_lossy(&bytes).into_owned(), is_clean)
}

fn nothing() -> (String, bool) {
    (String::new(), true)
}

#[test]
fn a_client_that_is_hung_up_on_gets_no_byte_and_the_worker_serves_on() {
    let server = serve("hangs_up", "");
    assert_eq!(ask(&server, "GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), nothing());
    assert_eq!(ask(&server, "HEAD /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), nothing());
    assert_eq!(ask(&server, "GET /api/x HTTP/1.0\r\nHost: localhost\r\n\r\n"), nothing());
    assert_eq!(server.metric(CAUSE), 3, "{}", server.metrics());
    assert_eq!(server.connect().get("/api/answer").status, 200);
    let begun = "onehop_requests_total{site=\"http://localhost:0\",handler=\"app\"";
    assert_eq!(server.metric(begun), 4, "{}", server.metrics());
    // It was asked once: what was begun is not begun again elsewhere.
    assert_eq!(server.running().api().status().apps[0].workers[0].requests, 4);
}

#[test]
fn an_upgrade_may_be_hung_up_on_too() {
    let server = serve("hangs_up", "");
    let request =
        "GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst";
    assert_eq!(ask(&server, request), nothing());
}

#[test]
fn a_client_whose_body_still_comes_is_hung_up_on() {
    let server = serve("hangs_up", "");
    let request = "POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nsome of it";
    assert_eq!(ask(&server, request), nothing());
    let request =
        "POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_eq!(ask(&server, request), nothing());
    let request =
        "POST /api/asks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(ask(&server, request), ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), true));
}

#[test]
fn what_was_answered_before_reaches_the_client_and_what_was_asked_after_is_not_served() {
    let server = serve("hangs_up", "");
    let answered = "GET /api/answer HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let hung_up = "GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut client = server.connect();
    client.send(format!("{answered}{hung_up}{answered}"));
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.rest(), (Vec::new(), true));
}

#[test]
fn an_answer_whose_head_is_out_breaks_off() {
    let server = serve("hangs_up", "");
    let mut client = server.connect();
    client.send("GET /api/head HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.try_head().unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("Content-Length: 100"), "{head}");
    assert_eq!(client.rest(), (b"half of".to_vec(), true));
    // HTTP/1.0 knows a body's end from the connection's; a length says it too.
    let mut client = server.connect();
    client.send("GET /api/head HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert!(!client.rest().1, "a reset");
    assert_eq!(server.metric(CAUSE), 2, "{}", server.metrics());
}

#[test]
fn it_is_logged_as_a_client_that_got_nothing_and_is_no_error() {
    let server = serve("hangs_up", "}\n\tlog {\n\t\toutput file ./access.log");
    assert_eq!(ask(&server, "GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), nothing());
    let line = logged(&server, 1).remove(0);
    for part in ["\"level\":\"info\"", "\"status\":444", "\"size\":0", "hung_up"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}
