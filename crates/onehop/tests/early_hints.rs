//! `early_hints` of the real program: who gets which hints, and when, over HTTP/2 and HTTP/1.1.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use onehop_testkit::http2::{Http2, Response};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Onehop, TIMEOUT};

const NAVIGATION: (&str, &str) = ("sec-fetch-mode", "navigate");
const STYLE: &str = "</app.css>; rel=preload; as=style";

/// A server with these directives, in front of an upstream that answers with the lines that `x-say` names.
fn before_an_upstream(directives: &str) -> (Onehop, Upstream) {
    let upstream = Upstream::answering(|request| {
        let lines = request.field("x-say").unwrap_or_default().replace('|', "\r\n");
        let lines = if lines.is_empty() { lines } else { lines + "\r\n" };
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 4\r\n\r\npage").into_bytes()
    });
    (serving(directives, &upstream), upstream)
}

fn serving(directives: &str, upstream: &Upstream) -> Onehop {
    Onehop::start(&format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\t{directives}\n\trespond /made made\n\treverse_proxy {}\n}}\n",
        upstream.address()
    ))
}

fn connect(onehop: &Onehop) -> Http2 {
    let mut client = Http2::connect(&onehop.address);
    client.authority = "localhost".to_owned();
    client
}

/// The links that came before the response.
fn links(response: &Response) -> Vec<&str> {
    for (status, fields) in &response.interim {
        assert!(*status == 103 && fields.iter().all(|(name, _)| name == "link"), "{status} {fields:?}");
    }
    let fields = response.interim.iter().flat_map(|(_, fields)| fields);
    fields.map(|(_, value)| value.as_str()).collect()
}

/// A navigation whose response has these lines; what came before it.
fn hinted(client: &mut Http2, path: &str, lines: &str) -> Vec<String> {
    let response = client.ask("GET", path, &[NAVIGATION, ("x-say", lines)]);
    assert_eq!((response.status, response.text()), (200, "page"));
    links(&response).into_iter().map(str::to_owned).collect()
}

/// An upstream that says when a request came, and answers it when it is told to.
fn waiting() -> (Upstream, Receiver<()>, Sender<()>) {
    let (came, comes) = channel();
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let upstream = Upstream::answering(move |_| {
        let _ = came.send(());
        let _ = may_go.lock().expect("one request").recv_timeout(TIMEOUT);
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage".to_vec()
    });
    (upstream, comes, go)
}

#[test]
fn a_navigation_gets_hints_while_the_upstream_works() {
    let (upstream, comes, go) = waiting();
    let onehop = serving(
        &format!("early_hints {{\n\t\tlink {STYLE}\n\t\tlink </b.js>; rel=preload; as=script\n\t}}"),
        &upstream,
    );
    let mut client = connect(&onehop);
    let stream = client.request("GET", "/", &[NAVIGATION], true);
    let response = client.wait_on(stream, "an interim response", |response| !response.interim.is_empty());
    assert_eq!(links(&response), [STYLE, "</b.js>; rel=preload; as=script"]);
    assert_eq!(response.status, 0);
    comes.recv_timeout(TIMEOUT).expect("the upstream has the request");
    assert_eq!(client.seen(stream).status, 0);
    go.send(()).expect("the upstream waits");
    let response = client.answer(stream);
    assert_eq!((response.status, response.text(), response.interim.len()), (200, "page", 1));
}

#[test]
fn hints_do_not_wait_for_the_limit_that_their_request_waits_for() {
    let (upstream, comes, go) = waiting();
    let directives = format!("limit in_flight 1 queue 8 wait 60s\n\tearly_hints {{\n\t\tlink {STYLE}\n\t}}");
    let onehop = serving(&directives, &upstream);
    let mut client = connect(&onehop);
    let first = client.request("GET", "/first", &[], true);
    comes.recv_timeout(TIMEOUT).expect("the upstream has the first request");
    let second = client.request("GET", "/second", &[NAVIGATION], true);
    let response = client.wait_on(second, "an interim response", |response| !response.interim.is_empty());
    assert_eq!(links(&response), [STYLE]);
    assert_eq!(upstream.requests(), 1);
    go.send(()).and_then(|()| go.send(())).expect("the upstream waits");
    assert_eq!((client.answer(first).status, client.answer(second).status), (200, 200));
}

#[test]
fn only_navigations_over_http2_that_call_a_backend_get_hints() {
    let (onehop, _upstream) = before_an_upstream(&format!("early_hints {{\n\t\tlink {STYLE}\n\t}}"));
    let mut client = connect(&onehop);
    for (method, path, fields) in [
        ("GET", "/", &[][..]),
        ("GET", "/", &[("sec-fetch-mode", "cors")]),
        ("GET", "/", &[("sec-fetch-mode", "no-cors")]),
        ("HEAD", "/", &[NAVIGATION]),
        ("POST", "/", &[NAVIGATION]),
        ("GET", "/made", &[NAVIGATION]),
    ] {
        let response = client.ask(method, path, fields);
        assert_eq!((response.status, response.interim.len()), (200, 0), "{method} {path} {fields:?}");
    }
    assert_eq!(hinted(&mut client, "/", ""), [STYLE]);
    let mut old = onehop.connect();
    old.send("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Mode: navigate\r\n\r\n");
    let response = old.read();
    assert_eq!((response.status, response.text()), (200, "page"));
}

#[test]
fn every_directive_that_matches_sends_its_links_and_no_link_is_sent_twice() {
    let directives = format!(
        "early_hints {{\n\t\tlink {STYLE}\n\t}}\n\tearly_hints /shop/* {{\n\t\tlink {STYLE}\n\t\tlink </cart.js>; rel=preload; as=script\n\t}}"
    );
    let (onehop, _upstream) = before_an_upstream(&directives);
    let mut client = connect(&onehop);
    assert_eq!(hinted(&mut client, "/", ""), [STYLE]);
    assert_eq!(hinted(&mut client, "/shop/1", ""), [STYLE, "</cart.js>; rel=preload; as=script"]);
}

#[test]
fn what_a_response_names_is_sent_before_the_next_one_and_forgotten_with_it() {
    let (onehop, _upstream) = before_an_upstream("early_hints learn");
    let mut client = connect(&onehop);
    let old = "Link: </old.css>; rel=preload; as=style, </next>; rel=next";
    let new = "Link: </new.css>; rel=preload; as=style; nonce=abc";
    assert_eq!(hinted(&mut client, "/", old), [""; 0]);
    assert_eq!(hinted(&mut client, "/other", old), [""; 0]);
    assert_eq!(hinted(&mut client, "/", new), ["</old.css>; rel=preload; as=style"]);
    assert_eq!(hinted(&mut client, "/", ""), ["</new.css>; rel=preload; as=style"]);
    assert_eq!(hinted(&mut client, "/", ""), [""; 0]);
    // Another connection, perhaps on another core.
    assert_eq!(hinted(&mut connect(&onehop), "/other", old), ["</old.css>; rel=preload; as=style"]);
}

#[test]
fn what_a_client_with_cookies_got_is_sent_to_nobody() {
    let (onehop, _upstream) = before_an_upstream("early_hints learn");
    let mut client = connect(&onehop);
    let lines = "Link: </secret.css>; rel=preload; as=style";
    let fields = [NAVIGATION, ("cookie", "session=1"), ("x-say", lines)];
    assert_eq!(client.ask("GET", "/", &fields).field("link"), Some("</secret.css>; rel=preload; as=style"));
    assert_eq!(hinted(&mut client, "/", ""), [""; 0]);
}

#[test]
fn hints_of_an_upstream_pass_beside_those_of_the_configuration() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 103 Early Hints\r\nLink: </theirs.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
            .to_vec()
    });
    let onehop = serving(&format!("early_hints {{\n\t\tlink {STYLE}\n\t}}"), &upstream);
    assert_eq!(hinted(&mut connect(&onehop), "/", ""), [STYLE, "</theirs.css>; rel=preload"]);
}

#[test]
fn an_error_page_of_an_upstream_gets_no_hints() {
    let (upstream, errors) = (
        Upstream::nobody(),
        Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage".to_vec()),
    );
    let onehop = Onehop::start(&format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\tearly_hints {{\n\t\tlink {STYLE}\n\t}}\n\troot .\n\tfile_server /missing\n\treverse_proxy /down {upstream}\n\t\
         handle_errors {{\n\t\treverse_proxy {}\n\t}}\n}}\n",
        errors.address()
    ));
    let mut client = connect(&onehop);
    let missing = client.ask("GET", "/missing", &[NAVIGATION]);
    assert_eq!((missing.text(), missing.interim.len()), ("page", 0));
    // Here the first one was asked before it was known to fail.
    let down = client.ask("GET", "/down", &[NAVIGATION]);
    assert_eq!((down.text(), down.interim.len()), ("page", 1));
}
