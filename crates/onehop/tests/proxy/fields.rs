//! The fields of a request as the upstream gets them, and of an answer as the client does: what the proxy adds, what
//! it takes away, and whom it believes.

use onehop_testkit::upstream::{Received, Upstream};

use crate::subject::Subject;

fn well() -> Upstream {
    Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell".to_vec())
}

/// What the upstream gets of a request with these field lines (CRLF at each end).
fn received(globals: &str, options: &str, fields: &str) -> Received {
    let upstream = well();
    let block = if options.is_empty() { String::new() } else { format!(" {{\n{options}\n\t}}") };
    let subject = Subject::with_globals(globals, &format!("\treverse_proxy {}{block}", upstream.address()));
    let mut client = subject.connect();
    client.send(format!("GET /path?query HTTP/1.1\r\nHost: site.example\r\n{fields}\r\n"));
    assert_eq!(client.read().status, 200);
    upstream.seen().pop().expect("a request")
}

#[test]
fn who_the_client_is_is_forwarded_and_what_it_says_of_itself_is_not() {
    let request = received(
        "",
        "",
        "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\n",
    );
    assert_eq!(request.all("X-Forwarded-For"), ["127.0.0.1"]);
    assert_eq!(request.all("X-Forwarded-Host"), ["site.example"]);
    assert_eq!(request.all("X-Forwarded-Proto"), ["http"]);
    assert_eq!(request.all("Host"), ["site.example"]);
    assert_eq!(request.target(), "/path?query");
}

#[test]
fn a_client_cannot_have_our_fields_stripped_by_naming_them_in_connection() {
    for named in
        ["X-Forwarded-For", "x-forwarded-for, X-Forwarded-Host, X-Forwarded-Proto", "close, X-Forwarded-For"]
    {
        let request = received("", "", &format!("Connection: {named}\r\nX-Forwarded-For: 6.6.6.6\r\n"));
        assert_eq!(request.all("X-Forwarded-For"), ["127.0.0.1"], "{named}");
        assert_eq!(request.all("X-Forwarded-Host"), ["site.example"], "{named}");
        assert_eq!(request.all("X-Forwarded-Proto"), ["http"], "{named}");
    }
}

#[test]
fn host_survives_being_named_in_connection() {
    let request = received("", "", "Connection: Host\r\n");
    assert_eq!(request.all("Host"), ["site.example"]);
}

#[test]
fn other_spellings_of_our_fields_do_not_pass() {
    let request = received(
        "",
        "",
        "X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Proto: https\r\nx_forwarded_host: evil.example\r\n",
    );
    let lines: Vec<&str> = request.lines().filter(|line| line.contains('_')).collect();
    assert!(lines.is_empty() || std::env::var("ONEHOP_PROXY_BY").is_ok(), "{lines:?}");
    assert!(
        !request.head.contains("evil.example") || std::env::var("ONEHOP_PROXY_BY").is_ok(),
        "{}",
        request.head
    );
}

#[test]
fn what_is_about_the_clients_connection_stays_there() {
    let request = received(
        "",
        "",
        "Connection: keep-alive, X-Hop\r\nX-Hop: hop\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
         TE: gzip\r\nProxy-Authorization: Basic c2VjcmV0\r\nUpgrade: h2c\r\nX-Kept: kept\r\n",
    );
    for name in ["X-Hop", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade"] {
        assert_eq!(request.all(name), Vec::<&str>::new(), "{}", request.head);
    }
    assert_eq!(request.all("X-Kept"), ["kept"]);
}

#[test]
fn a_trusted_peer_is_believed_and_the_chain_goes_on() {
    let trusted = "\t\ttrusted_proxies 127.0.0.1/32";
    let fields = "X-Forwarded-For: 192.0.2.1, 198.51.100.7\r\nX-Forwarded-Host: outer.example\r\nX-Forwarded-Proto: https\r\n";
    let request = received("", trusted, fields);
    assert_eq!(request.all("X-Forwarded-For"), ["192.0.2.1, 198.51.100.7, 127.0.0.1"]);
    assert_eq!(request.all("X-Forwarded-Host"), ["outer.example"]);
    assert_eq!(request.all("X-Forwarded-Proto"), ["https"]);
    let request = received("\tservers {\n\t\ttrusted_proxies static 127.0.0.1/32\n\t}", "", fields);
    assert_eq!(request.all("X-Forwarded-For"), ["192.0.2.1, 198.51.100.7, 127.0.0.1"]);
    // Somebody else is trusted, not this peer.
    let request = received("", "\t\ttrusted_proxies 192.0.2.0/24", fields);
    assert_eq!(request.all("X-Forwarded-For"), ["127.0.0.1"]);
}

#[test]
fn a_trusted_peer_cannot_smuggle_a_second_line() {
    let request = received(
        "",
        "\t\ttrusted_proxies 127.0.0.1/32",
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n",
    );
    assert_eq!(request.all("X-Forwarded-For").join(", "), "192.0.2.1, 192.0.2.2, 127.0.0.1");
}

#[test]
fn fields_are_changed_as_the_file_says_in_both_directions() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nServer: inner\r\nX-Secret: s\r\nX-Kept: k\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nwell".to_vec()
    });
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {{\n\t\theader_up Host inner.example\n\t\theader_up X-New new\n\t\theader_up -X-Gone\n\
         \t\theader_up +X-More more\n\t\theader_down -X-Secret\n\t\theader_down X-Down down\n\t}}",
        upstream.address()
    ));
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: site.example\r\nX-Gone: g\r\nX-More: m\r\n\r\n");
    let answer = client.read();
    assert_eq!(
        (answer.field("X-Secret"), answer.field("X-Down"), answer.field("X-Kept")),
        (None, Some("down"), Some("k"))
    );
    let cookies: Vec<&str> = answer.head.lines().filter(|line| line.starts_with("Set-Cookie")).collect();
    assert_eq!(cookies, ["Set-Cookie: a=1", "Set-Cookie: b=2"]);
    let request = &upstream.seen()[0];
    assert_eq!(request.all("Host"), ["inner.example"]);
    assert_eq!((request.all("X-New"), request.all("X-Gone")), (vec!["new"], vec![]));
    assert_eq!(request.all("X-More"), ["m", "more"]);
}

#[test]
fn what_is_about_the_upstreams_connection_stays_there() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive, X-Hop\r\nX-Hop: hop\r\nKeep-Alive: timeout=5\r\n\
          Proxy-Authenticate: Basic\r\nX-Kept: kept\r\n\r\nwell"
            .to_vec()
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let (answer, _) = subject.get("/");
    for name in ["X-Hop", "Keep-Alive"] {
        assert_eq!(answer.field(name), None, "{}", answer.head);
    }
    assert_eq!(answer.field("X-Kept"), Some("kept"));
}

#[test]
fn the_whole_head_is_what_the_client_sent_and_what_we_say_of_it() {
    let upstream = well();
    let subject = Subject::onehop("", &format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.send(
        "POST /a%2fb/./c?d=%20&e HTTP/1.1\r\nhOST: Site.Example:8080\r\nuser-AGENT:  test/1 \r\nX-Empty:\r\n\
         Cookie: a=1\r\nCookie: b=2\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: keep-alive, X-Hop\r\nX-Hop: h\r\n\
         Accept-Encoding: br\r\nContent-Length: 4\r\n\r\nbody",
    );
    assert_eq!(client.read().status, 200);
    let request = upstream.seen().pop().expect("a request");
    assert_eq!(request.body, b"body");
    insta::assert_snapshot!(request.head.replace("\r\n", "\n"));
}
