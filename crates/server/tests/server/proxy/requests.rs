//! What an upstream gets.

use std::time::Duration;

use onehop_config::checked::{HeaderOp, Network, Template};
use onehop_server::limits::Timeouts;

use super::before;
use crate::harness::{TestServer, Wishes, application, nowhere};
use crate::programs::program::{Program, field};

fn echo() -> Program {
    Program::start(|talk, head| {
        let Some(body) = talk.body(head) else { return false };
        talk.answer(body)
    })
}

/// The head that an upstream gets of these lines.
fn passed_on(lines: &str, change: impl Fn(&mut super::Proxy) + Send + Sync + 'static) -> String {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = before(&program, change);
    let mut client = server.connect();
    client.send(format!("{lines}\r\n\r\n"));
    assert_eq!(client.answer().text(), "hello");
    program.heads().remove(0)
}

fn set(name: &str, value: &str) -> HeaderOp {
    HeaderOp::Set { name: name.to_owned(), value: Template::text(value) }
}

#[test]
fn fields_are_passed_on_as_they_came_without_those_of_the_connection() {
    let head = passed_on(
        "GET /a/../b?c=%20&d HTTP/1.1\r\nhost: localhost\r\nX-One:1\r\nx-TWO:  2  \r\nKeep-Alive: timeout=5\r\n\
         X-Three:\t3\r\nX-Empty:\r\nConnection: keep-alive, X-Four\r\nX-Four: 4\r\nTE: gzip, trailers\r\n\
         Proxy-Authorization: secret\r\nProxy-Connection: close\r\nUpgrade: websocket\r\nTrailer: X-After\r\n\
         Via: 1.0 before\r\nX-Last: \u{e4}\u{f6}",
        |_| {},
    );
    assert_eq!(
        head,
        "GET /b?c=%20&d HTTP/1.1\r\nHost: localhost\r\nX-One:1\r\nx-TWO: 2\r\nX-Three:\t3\r\nX-Empty:\r\n\
         Via: 1.0 before\r\nX-Last: \u{e4}\u{f6}\r\nX-Forwarded-For: 127.0.0.1\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost\r\nVia: 1.1 onehop\r\nTE: trailers\r\nConnection: TE"
    );
}

#[test]
fn the_target_decides_where_it_goes_and_the_host_field_follows_it() {
    let head = passed_on("GET http://localhost/x?y HTTP/1.1\r\nHost: localhost", |_| {});
    assert!(head.starts_with("GET /x?y HTTP/1.1\r\nHost: localhost\r\n"), "{head}");
}

#[test]
fn a_client_that_names_no_host_asks_for_that_of_the_upstream() {
    for change in ["", "header_up -*"] {
        let program = Program::start(|talk, _| talk.answer("hello"));
        let address = program.address;
        let text =
            format!("http://:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {address} {{\n\t\t{change}\n\t}}\n}}\n");
        let server = TestServer::start(application(), &text, Wishes::default());
        let mut client = server.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.answer().text(), "hello");
        let head = program.heads().remove(0);
        assert_eq!(field(&head, "Host"), Some(&*address.to_string()), "{head}");
        assert_eq!(field(&head, "X-Forwarded-Host"), None, "{head}");
    }
}

#[test]
fn nobody_names_our_fields_away_or_spells_them_otherwise() {
    let lines = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: X-Forwarded-For, X-Forwarded-Proto, Via, Host\r\n\
        X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: 6.6.6.6\r\nX.Forwarded.For: 6.6.6.6\r\n\
        Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\nX_Any: 6.6.6.6\r\nX-Kept: yes";
    for is_trusted in [false, true] {
        let head = passed_on(lines, move |proxy| {
            if is_trusted {
                proxy.trusted_proxies = vec![Network::new("127.0.0.0".parse().unwrap(), 8).unwrap()];
            }
        });
        // What a trusted proxy says is not named away: its client could have written that Connection.
        let list = if is_trusted { "6.6.6.6, 127.0.0.1" } else { "127.0.0.1" };
        assert_eq!(field(&head, "X-Forwarded-For"), Some(list), "{head}");
        assert_eq!(field(&head, "X-Forwarded-Proto"), Some("http"), "{head}");
        assert_eq!(field(&head, "X-Kept"), Some("yes"), "{head}");
        assert!(head.contains("Host: localhost") && head.contains("Via: 1.1 onehop"), "{head}");
        assert_eq!(head.contains("6.6.6.6"), is_trusted, "{head}");
        assert!(!head.contains('_') && !head.contains("X.F"), "{head}");
    }
}

#[test]
fn what_a_trusted_proxy_says_is_kept_and_its_own_address_added() {
    let head = passed_on(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 192.0.2.2\r\n\
         X-Forwarded-Proto: gopher\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n\
         X-Real-IP: 192.0.2.4",
        |proxy| proxy.trusted_proxies = vec![Network::new("127.0.0.1".parse().unwrap(), 32).unwrap()],
    );
    for (name, value) in [
        ("X-Forwarded-For", "192.0.2.1, 192.0.2.2, 127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "shop.example"),
        ("X-Real-IP", "192.0.2.4"),
    ] {
        assert_eq!(field(&head, name), Some(value), "{head}");
        assert_eq!(head.to_lowercase().matches(&name.to_lowercase()).count(), 1, "{head}");
    }
}

#[test]
fn header_up_has_the_last_word_and_there_is_one_host() {
    let head = passed_on("GET / HTTP/1.1\r\nHost: localhost\r\nX-Gone: 1\r\nX-Kept: 2", |proxy| {
        proxy.request_fields = vec![
            set("Host", "inner.example"),
            set("X-Forwarded-For", "nobody"),
            HeaderOp::Add { name: "X-Kept".to_owned(), value: Template::text("3") },
            HeaderOp::Add { name: "Host".to_owned(), value: Template::text("second.example") },
            HeaderOp::Delete { name: "x-gone".to_owned() },
            HeaderOp::Replace {
                name: "via".to_owned(),
                find: "1.1".to_owned(),
                replace: Template::text("9"),
            },
            set("Content-Length", "17"),
            set("Transfer-Encoding", "chunked"),
            set("Connection", "close"),
        ];
    });
    assert_eq!(
        head,
        "GET / HTTP/1.1\r\nHost: inner.example\r\nX-Kept: 2\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Host: localhost\r\nVia: 9 onehop\r\nX-Forwarded-For: nobody\r\nX-Kept: 3"
    );
    let head = passed_on("GET / HTTP/1.1\r\nHost: localhost", |proxy| {
        proxy.request_fields = vec![HeaderOp::Delete { name: "*".to_owned() }];
    });
    assert_eq!(head, "GET / HTTP/1.1\r\nHost: localhost");
}

#[test]
fn header_up_and_down_know_the_upstream() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let address = program.address;
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {address} {{\n\t\theader_up Host {{upstream_hostport}}\n\t\t\
         header_up X-Port {{http.reverse_proxy.upstream.port}}\n\t\theader_down X-Host {{http.reverse_proxy.upstream.host}}\n\t}}\n}}\n"
    );
    let server = TestServer::start(application(), &text, Wishes::default());
    assert_eq!(server.connect().get("/").field("X-Host"), Some("127.0.0.1"));
    let head = program.heads().remove(0);
    assert_eq!(field(&head, "Host"), Some(&*address.to_string()));
    assert_eq!(field(&head, "X-Port"), Some(&*address.port().to_string()));
    assert_eq!(field(&head, "X-Forwarded-Host"), Some("localhost"));
}

#[test]
fn an_upstream_behind_tls_is_asked_by_its_own_name() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    // In the clear on this port, so that the head can be read.
    let (address, port) = (program.address, program.address.port());
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {address} {{\n\t\ttransport http {{\n\t\t\ttls\n\t\t\t\
         tls_except_ports {port}\n\t\t}}\n\t}}\n}}\n"
    );
    let server = TestServer::start(application(), &text, Wishes::default());
    assert_eq!(server.connect().get("/").text(), "hello");
    let head = program.heads().remove(0);
    assert_eq!(field(&head, "Host"), Some(&*address.to_string()));
    assert_eq!(field(&head, "X-Forwarded-Host"), Some("localhost"));
}

#[test]
fn bodies_are_framed_anew_in_both_ways() {
    let program = echo();
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().text(), "hello");
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n");
    while program.heads().len() < 2 {
        std::thread::yield_now();
    }
    client.send("2\r\nlo\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "hello");
    let heads = program.heads();
    assert_eq!(field(&heads[0], "Content-Length"), Some("5"));
    assert_eq!(field(&heads[1], "Transfer-Encoding"), Some("chunked"));
}

#[test]
fn a_large_body_passes_both_ways_whole() {
    let program = echo();
    let server = before(&program, |_| {});
    let body = vec![b'x'; 5 << 20];
    let mut client = server.connect();
    client.send(format!("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert!(client.answer().body == body);
    client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("{:x}\r\n", body.len())).send(&body).send("\r\n0\r\n\r\n");
    assert!(client.answer().body == body);
}

/// An upstream that takes so long over half a mebibyte of a body.
fn unhurried(pause: Duration) -> Program {
    Program::start(move |talk, head| {
        let length: usize = field(head, "Content-Length").unwrap().parse().unwrap();
        for taken in (0..length).step_by(512 << 10) {
            talk.bytes((512 << 10).min(length - taken)).unwrap();
            std::thread::sleep(pause);
        }
        talk.answer("all of it")
    })
}

#[test]
fn an_upstream_that_takes_a_held_body_slowly_is_not_late_as_long_as_it_takes() {
    // Four seconds in all. What the kernels hold between the two is taken in half a second, so that an upstream that has
    // taken nothing for as long as the timeout has stopped, also on a busy machine.
    let program = unhurried(Duration::from_millis(40));
    let length = 48 << 20;
    let server = before(&program, move |proxy| {
        proxy.request_buffer_bytes = length;
        proxy.transport.write_timeout = Some(Duration::from_millis(1_500));
    });
    let mut client = server.connect();
    client.send(format!("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
    client.send(vec![b'x'; usize::try_from(length).unwrap()]);
    assert_eq!(client.answer().text(), "all of it");
}

#[test]
fn the_time_for_an_answers_head_begins_when_the_whole_request_is_out() {
    let program = unhurried(Duration::from_millis(20));
    let length = 48 << 20;
    for buffer in [0, length] {
        let server = before(&program, move |proxy| {
            proxy.request_buffer_bytes = buffer;
            proxy.transport.response_header_timeout = Some(Duration::from_secs(1));
        });
        let mut client = server.connect();
        client.send(format!("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
        let body = vec![b'x'; usize::try_from(length).unwrap()];
        client.send(&body[1..]);
        // A client that pauses, too, is nothing that the upstream is late with.
        std::thread::sleep(Duration::from_millis(1600));
        client.send("x");
        assert_eq!(client.answer().text(), "all of it");
    }
}

#[test]
fn trailers_pass_without_those_that_say_who_the_client_is() {
    let program = Program::start(|talk, _| {
        let (body, trailers) = talk.chunks().unwrap();
        talk.answer([&body[..], b"|", trailers.as_bytes()].concat())
    });
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\
         X-Sum: 7\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
    );
    assert_eq!(client.answer().text(), "hi|X-Sum: 7\n");
}

#[test]
fn a_body_that_is_buffered_goes_with_its_length_and_a_longer_one_as_it_came() {
    let program = echo();
    let server = before(&program, |proxy| proxy.request_buffer_bytes = 4096);
    for (bytes, expected) in [(4096, Some("4096")), (9000, None)] {
        let mut client = server.connect();
        client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        let body = "x".repeat(bytes);
        for piece in body.as_bytes().chunks(1000) {
            client.send(format!("{:x}\r\n", piece.len())).send(piece).send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.answer().text(), body);
        let head = program.heads().pop().unwrap();
        assert_eq!(field(&head, "Content-Length"), expected, "{head}");
    }
    // Who waits to be asked is asked by us.
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert!(client.try_head().unwrap().starts_with("HTTP/1.1 100"));
    client.send("ok");
    assert_eq!(client.answer().text(), "ok");
    assert_eq!(field(&program.heads().pop().unwrap(), "Expect"), None);
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked_by_the_upstream() {
    let program = Program::start(|talk, head| {
        if head.starts_with("POST /no") {
            return talk.say("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
        }
        assert!(!talk.has_unread(), "nothing comes before it is asked for");
        talk.say("HTTP/1.1 100 Continue\r\n\r\n");
        let body = talk.body(head).unwrap();
        talk.answer(body)
    });
    let server = before(&program, |_| {});
    let expecting = |path: &str| {
        let mut client = server.connect();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        ));
        client
    };
    let mut client = expecting("/yes");
    assert!(client.try_head().unwrap().starts_with("HTTP/1.1 100"));
    client.send("hello");
    assert_eq!(client.answer().text(), "hello");
    assert_eq!(expecting("/no").answer().status, 417);
    let heads = program.heads();
    assert!(heads.iter().all(|head| field(head, "Expect") == Some("100-continue")), "{heads:?}");
    // Nobody can tell whether that upstream waits for a body.
    program.wait_for_ends(1);
}

#[test]
fn an_upstream_that_never_asks_gets_the_body_after_a_time() {
    let program = Program::start(|talk, head| {
        let body = talk.body(head).unwrap();
        talk.answer(body)
    });
    // A time of its own where none is written; and what bounds the head bounds no client's waiting.
    for (ends, time) in [(1, Some(Duration::from_millis(50))), (2, None)] {
        let server = before(&program, move |proxy| {
            proxy.transport.expect_continue_timeout = time;
            proxy.transport.response_header_timeout = Some(Duration::from_millis(250));
        });
        let mut client = server.connect();
        client
            .send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assert!(client.try_head().unwrap().starts_with("HTTP/1.1 100"));
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
        program.wait_for_ends(ends);
    }
}

#[test]
fn who_does_not_know_that_the_client_waits_need_not_ask_and_no_connection_upgrades_without_its_protocol() {
    let program = echo();
    let deleted = |name: &str| HeaderOp::Delete { name: name.to_owned() };
    for name in ["expect", "*"] {
        let server = before(&program, move |proxy| {
            proxy.request_fields = vec![deleted(name)];
            proxy.transport.expect_continue_timeout = Some(Duration::from_secs(3600));
        });
        let mut client = server.connect();
        client
            .send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assert!(client.try_head().unwrap().starts_with("HTTP/1.1 100"));
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
        let head = program.heads().pop().unwrap();
        assert_eq!(field(&head, "Expect"), None, "{head}");
    }
    for name in ["upgrade", "*"] {
        let lines = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket";
        let head = passed_on(lines, move |proxy| proxy.request_fields = vec![deleted(name)]);
        assert!(!head.to_lowercase().contains("upgrade"), "{head}");
    }
}

#[test]
fn a_running_answer_waits_for_no_more_of_the_request() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
        let Some((body, _)) = talk.chunks() else { return false };
        talk.say(format!("{:x}\r\n{}\r\n0\r\n\r\n", body.len(), String::from_utf8_lossy(&body)))
    });
    let timeouts = Timeouts { body_progress: Duration::from_millis(250), ..Timeouts::default() };
    let wishes = Wishes { timeouts, ..Wishes::default() };
    let server = super::serve_wishing("", &[program.address], |_| {}, wishes);
    let begin = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n";
    let mut client = server.connect();
    client.send(begin);
    assert!(client.try_head().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(client.bytes(7), b"2\r\nhi\r\n");
    // Nobody has ended it meanwhile.
    client.stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let early = std::io::Read::read(&mut client.stream, &mut [0; 64]);
    assert!(early.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "{early:?}");
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.send("2\r\nlo\r\n0\r\n\r\n");
    assert_eq!(client.bytes(15), b"5\r\nhello\r\n0\r\n\r\n");
}

/// To ask for gzip where the client does not, as Caddy does, would compress and decode on one machine for nobody.
#[test]
fn an_upstream_is_asked_for_the_codings_that_the_client_accepts() {
    for (lines, expected) in [
        ("GET / HTTP/1.1\r\nHost: localhost", None),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br", Some("br")),
    ] {
        let head = passed_on(lines, |_| {});
        assert_eq!(field(&head, "Accept-Encoding"), expected, "{head}");
    }
}

#[test]
fn http2_in_the_clear_is_not_passed_on() {
    let head = passed_on(
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        |_| {},
    );
    assert!(!head.to_lowercase().contains("upgrade") && !head.contains("HTTP2"), "{head}");
}

#[test]
fn an_upstream_is_named_in_the_log() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let dead = nowhere();
    for (address, expected) in [(program.address, 200), (dead, 502)] {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("access.log");
        let wishes = crate::harness::Wishes::default();
        let log = format!("log {{\n\t\toutput file {}\n\t}}", file.display());
        let server = super::serve_wishing(&log, &[address], |_| {}, wishes);
        assert_eq!(server.connect().get("/").status, expected);
        server.stop();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("\"upstream\":\"{address}\"")), "{text}");
        let why = "\"refused\":\"upstream_unreachable\",\"detail\":\"Connection refused";
        assert_eq!(text.contains(why), expected == 502, "{text}");
    }
}

/// RFC 9110 section 10.1.4: `TE` is about one connection, and `Connection` says so.
#[test]
fn te_goes_out_with_the_connection_option_of_its_name() {
    for (lines, te, connection) in [
        ("TE: trailers", Some("trailers"), Some("TE")),
        ("TE: gzip;q=0.5, Trailers\r\nConnection: TE", Some("trailers"), Some("TE")),
        ("TE: gzip", None, None),
        ("Connection: TE", None, None),
        (
            "TE: trailers\r\nConnection: Upgrade, TE\r\nUpgrade: websocket",
            Some("trailers"),
            Some("upgrade, TE"),
        ),
    ] {
        let head = passed_on(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}"), |_| {});
        assert_eq!((field(&head, "TE"), field(&head, "Connection")), (te, connection), "{lines}\n{head}");
        let program = Program::start(|talk, _| talk.answer("hello"));
        let server = crate::programs::serve_with(program.address, "", "");
        let mut client = server.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n"));
        assert_eq!(client.answer().text(), "hello");
        let head = program.heads().remove(0);
        assert_eq!((field(&head, "TE"), field(&head, "Connection")), (te, connection), "{lines}\n{head}");
    }
}

/// RFC 9110 section 7.6.2.
#[test]
fn max_forwards_counts_down_for_options_and_trace_alone() {
    for (method, value, passed) in [
        ("OPTIONS", "10", "9"),
        ("OPTIONS", "1", "0"),
        ("TRACE", "003", "2"),
        ("TRACE", "99999999999999999999999", "18446744073709551614"),
        // No number, so nothing to count.
        ("OPTIONS", "-1", "-1"),
        ("OPTIONS", "", ""),
        ("GET", "0", "0"),
        ("POST", "1", "1"),
    ] {
        let head = passed_on(
            &format!("{method} / HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: {value}\r\nX-Last: 1"),
            |_| {},
        );
        assert_eq!(field(&head, "Max-Forwards"), Some(passed), "{method} {value}\n{head}");
        assert_eq!(head.to_lowercase().matches("max-forwards").count(), 1, "{head}");
        assert_eq!(field(&head, "X-Last"), Some("1"), "{head}");
    }
}

/// RFC 9110 section 7.6.2: the proxy is then the final recipient.
#[test]
fn max_forwards_of_zero_is_answered_by_the_proxy_itself() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = before(&program, |_| {});
    let mut client = server.connect();
    for (method, status) in [("OPTIONS", 204), ("TRACE", 405)] {
        client.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n"));
        let answer = client.answer();
        let allow = answer.field("Allow");
        assert_eq!(
            (answer.status, allow),
            (status, Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")),
            "{method}"
        );
    }
    assert_eq!(client.get("/").text(), "hello");
    assert_eq!(program.heads().len(), 1, "the upstream saw the last request only");
}

#[test]
fn field_names_with_an_underscore_or_a_dot_are_dropped_unless_the_file_lets_them_pass() {
    let lines = "X_Any: 1\r\nx.any: 2\r\nX-Kept: 3\r\nX_Forwarded_For: 6.6.6.6\r\nX-Real_IP: 6.6.6.6";
    for (option, expected) in [
        ("", [None, None, Some("3")]),
        ("ambiguous_headers drop", [None, None, Some("3")]),
        ("ambiguous_headers pass", [Some("1"), Some("2"), Some("3")]),
    ] {
        let program = Program::start(|talk, _| talk.answer("hello"));
        let text = format!(
            "http://localhost:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {} {{\n\t\t{option}\n\t}}\n}}\n",
            program.address
        );
        let server = TestServer::start(application(), &text, Wishes::default());
        let mut client = server.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n"));
        assert_eq!(client.answer().text(), "hello");
        let head = program.heads().remove(0);
        let found = ["X_Any", "x.any", "X-Kept"].map(|name| field(&head, name));
        assert_eq!(found, expected, "{option}\n{head}");
        // What says who the client is keeps out in every spelling.
        assert!(!head.contains("6.6.6.6"), "{option}\n{head}");
    }
}
