//! WebSockets over extended CONNECT (RFC 8441), octet by octet. With real libraries they are in tests/e2e/http2.test.mjs.

use onehop_testkit::http2::{Frame, Http2, code, setting};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, wait_for};

use crate::subject::{AUTHORITY, Subject, clear, encrypted};

/// A node:http application that answers an upgrade by hand, as libraries do, and echoes octets.
const NODE: &str = r#"
const http = require("node:http");
const { createHash } = require("node:crypto");
const server = http.createServer((request, response) => response.end(request.url === "/pid" ? `${process.pid}` : "plain"));
server.on("upgrade", (request, socket) => {
  if (request.url === "/no") return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  const key = request.headers["sec-websocket-key"];
  const accept = createHash("sha1").update(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n`);
  socket.pipe(socket);
});
server.listen(process.env.PORT ?? 0);
"#;

fn echoing() -> Upstream {
    Upstream::start(|connection| {
        let Some(request) = connection.request() else { return };
        if request.target() == "/no" {
            connection.answer("403 Forbidden", "", "no");
            return;
        }
        let is_handshake = request.method() == "GET"
            && request.lists("Connection", "Upgrade")
            && request.field("Upgrade") == Some("websocket")
            && request.field("Sec-WebSocket-Version") == Some("13")
            && request.field("Sec-WebSocket-Key").is_some_and(|key| key.len() == 24);
        if is_handshake {
            connection.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
            );
            connection.echo();
        } else {
            connection.answer("400 Bad Request", "", &request.head);
        }
    })
}

fn application() -> Subject {
    let folder = Folder::with(&[("server.cjs", NODE)]);
    let subject = Subject::start_in(folder, "", &clear("\tapp ./server.cjs"));
    subject.onehop.process.wait_for_event("app_ready");
    subject
}

/// Opens a tunnel for a path.
fn open(client: &mut Http2, path: &str) -> u32 {
    client.ping();
    assert_eq!(client.settings.get(&setting::ENABLE_CONNECT_PROTOCOL), Some(&1));
    client.open(
        &[
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", client.scheme()),
            (":authority", AUTHORITY),
            (":path", path),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "chat"),
            ("origin", "http://localhost"),
        ],
        false,
    )
}

/// Opens a tunnel and checks that octets come back.
fn octets_come_back(client: &mut Http2) {
    let stream = open(client, "/socket");
    let head = client.wait_on(stream, "a head", |answer| answer.status != 0);
    assert_eq!((head.status, head.is_over()), (200, false), "{head:?}");
    assert_eq!(head.field("sec-websocket-protocol"), Some("chat"), "{head:?}");
    assert_eq!(head.field("sec-websocket-accept"), None, "RFC 8441 section 5: {head:?}");
    let mut expected = Vec::new();
    for length in [1, 100, 20_000, 200_000] {
        let sent: Vec<u8> = (0..length).map(|number: u32| number.to_le_bytes()[0]).collect();
        assert!(client.upload(stream, &sent, false));
        expected.extend(sent);
        client.wait_on(stream, "an echo", |answer| answer.body.len() == expected.len());
    }
    assert!(client.seen(stream).body == expected);
    client.upload(stream, b"the end", true);
    let answer = client.answer(stream);
    assert!(answer.is_whole && answer.body.ends_with(b"the end"), "{:?}", answer.reset);
}

#[test]
fn a_websocket_to_a_node_application_echoes() {
    let subject = application();
    let mut client = subject.connect();
    octets_come_back(&mut client);
    assert_eq!(client.get("/").text(), "plain");
    octets_come_back(&mut client);
}

#[test]
fn five_hundred_websockets_survive_a_reload_that_leaves_their_application_as_it_is() {
    let site = |text| clear(&format!("\thandle /text {{\n\t\trespond {text}\n\t}}\n\tapp ./server.cjs"));
    let folder = Folder::with(&[("server.cjs", NODE)]);
    let subject = Subject::start_in(folder, "", &site("old"));
    subject.onehop.process.wait_for_event("app_ready");
    let mut clients: Vec<(Http2, Vec<u32>)> = (0..5)
        .map(|_| {
            let mut client = subject.connect();
            let streams: Vec<u32> = (0..100).map(|_| open(&mut client, "/socket")).collect();
            for stream in &streams {
                client.wait_on(*stream, "a head", |answer| answer.status == 200);
            }
            (client, streams)
        })
        .collect();
    let mut echo = |text: &str| {
        for (number, (client, streams)) in clients.iter_mut().enumerate() {
            let said = |stream: u32| format!("{number} {stream} {text}").into_bytes();
            for stream in &*streams {
                assert!(client.upload(*stream, &said(*stream), false));
            }
            for stream in &*streams {
                client.wait_on(*stream, "an echo", |answer| answer.body.ends_with(&said(*stream)));
            }
            assert!(client.goaways.is_empty(), "{:?}", client.goaways);
        }
    };
    echo("before");
    let mut other = subject.connect();
    let process = other.get("/pid").body;
    assert_eq!(other.get("/text").text(), "old");
    subject.reload("", &site("new"));
    assert_eq!(other.get("/text").text(), "new");
    echo("after");
    assert_eq!(other.get("/pid").body, process);
}

#[test]
fn a_websocket_through_reverse_proxy_echoes() {
    let upstream = echoing();
    let directives = format!("\treverse_proxy {}", upstream.address());
    octets_come_back(&mut Subject::start(&directives).connect());
    let subject = Subject::start_in(Folder::new(), "", &encrypted(&directives));
    octets_come_back(&mut subject.connect_tls("localhost"));
    wait_for("the upstream's connections to end", || (upstream.used_and_open() == 0).then_some(()));
}

#[test]
fn a_websocket_that_is_refused_gets_the_status() {
    let upstream = echoing();
    let proxy = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    for subject in [application(), proxy] {
        let mut client = subject.connect();
        let stream = open(&mut client, "/no");
        let answer = client.wait_on(stream, "a head", |answer| answer.status != 0);
        assert_eq!(answer.status, 403, "{answer:?}");
    }
}

#[test]
fn a_websocket_where_there_is_none_is_refused() {
    let subject = Subject::start("\trespond hello");
    let mut client = subject.connect();
    let stream = open(&mut client, "/");
    let answer = client.answer(stream);
    assert!(answer.reset.is_some() || answer.status >= 400, "{answer:?}");
    assert_eq!(client.get("/").text(), "hello");
}

#[test]
fn another_protocol_than_websocket_is_refused() {
    let upstream = echoing();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    for protocol in ["connect-udp", "", "web socket"] {
        let stream = client.open(
            &[
                (":method", "CONNECT"),
                (":protocol", protocol),
                (":scheme", "http"),
                (":authority", AUTHORITY),
                (":path", "/socket"),
            ],
            false,
        );
        let answer = client.wait_on(stream, "a refusal", |answer| answer.status != 0 || answer.is_over());
        assert!(answer.reset.is_some() || answer.status >= 400, "{protocol:?}: {answer:?}");
    }
    client.ping();
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn a_tunnel_that_is_reset_ends_its_other_side_and_no_other_tunnel() {
    let upstream = echoing();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let (one, two) = (open(&mut client, "/one"), open(&mut client, "/two"));
    for stream in [one, two] {
        client.wait_on(stream, "a head", |answer| answer.status == 200);
    }
    assert_eq!(upstream.used_and_open(), 2);
    client.send(&Frame::reset(one, code::CANCEL));
    wait_for("the end of one", || (upstream.used_and_open() == 1).then_some(()));
    client.upload(two, b"still there", false);
    client.wait_on(two, "an echo", |answer| answer.body == b"still there");
}

#[test]
fn guards_hold_for_tunnels() {
    let upstream = echoing();
    let subject = Subject::start(&format!(
        "\thandle /admin/* {{\n\t\trespond blocked 403\n\t}}\n\thandle {{\n\t\treverse_proxy {}\n\t}}",
        upstream.address()
    ));
    let mut client = subject.connect();
    for path in ["/admin/x", "/x/../admin/x", "/%61dmin/x", "//admin/x", "/x/..\\admin/x"] {
        let stream = open(&mut client, path);
        let answer = client.wait_on(stream, "a refusal", |answer| answer.status != 0 || answer.is_over());
        assert!(answer.reset.is_some() || [400, 403].contains(&answer.status), "{path}: {answer:?}");
    }
    assert_eq!(upstream.requests(), 0);
}
