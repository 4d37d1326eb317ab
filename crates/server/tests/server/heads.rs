//! Heads and trailers of applications' workers: what one side says is what the other reads, byte for byte.

use crate::client::Client;
use crate::workers::serve;

/// Everything that comes until the connection is closed.
fn all(client: &mut Client) -> Vec<u8> {
    client.rest().0
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn trailers_of_a_request_reach_the_worker_however_they_arrive() {
    let server = serve("trailers_back", "");
    let head =
        "POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: Checksum\r\n\r\n";
    let end = "0\r\nChecksum: abc\r\nX-Forwarded-For: 6.6.6.6\r\nx-oDD: 1\r\n\r\n";
    let trailers = "Checksum:abc\nx-oDD:1\n";
    let mut client = server.connect();
    // Whole before it is called.
    for size in [4, 20_000] {
        let body = "b".repeat(size);
        client.send(format!("{head}{size:x}\r\n{body}\r\n{end}"));
        assert_eq!(client.answer().text(), format!("{size}|{trailers}"), "{size} bytes");
    }
    client.send(format!("{head}{end}"));
    assert_eq!(client.answer().text(), format!("0|{trailers}"));
    client.send(format!("{head}4\r\nbody\r\n0\r\nForwarded: for=6.6.6.6\r\n\r\n"));
    assert_eq!(client.answer().text(), "4|none");
    // Piece by piece, more than the worker is granted at once.
    let piece = "c".repeat(1 << 20);
    client.send(head);
    client.send(format!("{:x}\r\n", piece.len())).send(&piece).send("\r\n").send(end);
    assert_eq!(client.answer().text(), format!("{}|{trailers}", piece.len()));
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "0|none");
}

#[test]
fn trailers_of_an_answer_and_what_announces_them_reach_the_client() {
    let server = serve("announced_trailers", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let bytes = all(&mut client);
    assert!(contains(&bytes, b"\r\nTrailer: Checksum, X-Odd\r\n"));
    assert!(bytes.ends_with(b"4\r\nbody\r\n0\r\nChecksum: abc\r\nx-oDD: caf\xe9\r\n\r\n"), "{bytes:?}");
    // HTTP/1.0 has no place for them.
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert!(all(&mut client).ends_with(b"\r\n\r\nbody"));
}

#[test]
fn a_long_head_with_odd_names_passes_as_it_is() {
    let server = serve("odd_head", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let bytes = all(&mut client);
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
    let mut expected =
        b"x-oDD-!#$%&'*+.^_`|~: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nsEt-cOOkie: c=3\r\n".to_vec();
    expected.extend(b"X-Latin: caf\xe9 \x80\xff\r\nX-Empty: \r\nX-Tab: a\tb\r\ncontent-type: text/plain\r\n");
    expected.extend(b"ETag: W/\"x\"\r\n");
    for number in 0..150 {
        expected.extend(format!("X-Fill-{number}: {}\r\n", "v".repeat(400)).bytes());
    }
    assert!(expected.len() > 60_000);
    assert!(contains(&bytes, &expected));
    assert!(bytes.ends_with(b"\r\n\r\nbody"));
    let many = serve("many_fields", "").connect().get("/api/x");
    assert_eq!(many.head.lines().filter(|line| line.starts_with("Set-Cookie: c")).count(), 200);
}

#[test]
fn every_informational_answer_reaches_the_client_before_the_final_one() {
    let server = serve("informs", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 102);
    let hints = client.answer();
    assert_eq!(hints.status, 103);
    assert!(
        hints.head.contains("Link: </a.css>; rel=preload\r\nLink: </b.css>; rel=preload"),
        "{}",
        hints.head
    );
    assert_eq!(client.answer().text(), "final");
}

#[test]
fn an_upgrade_has_the_applications_own_fields() {
    let server = serve("upgrades", "");
    let mut client = server.connect();
    client.send(
        "GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\nfirst ",
    );
    let head = client.try_head().unwrap();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols"), "{head}");
    for line in ["Upgrade: echo", "X-Own: yes", "Set-Cookie: a=b", "Set-Cookie: c=d"] {
        assert_eq!(head.lines().filter(|found| *found == line).count(), 1, "{line} in {head}");
    }
    assert!(head.to_ascii_lowercase().contains("connection: upgrade"), "{head}");
    client.send("second");
    assert_eq!(client.bytes(12), b"FIRST SECOND");
}

#[test]
fn what_is_about_the_connection_reaches_the_worker_as_facts() {
    let server = serve("facts", "");
    let mut client = server.connect();
    let mut ask = |fields: &str| {
        client.send(format!("GET /api/x HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        let text = client.answer().text();
        let (facts, head) = text.split_once('\n').unwrap();
        (facts.parse::<u8>().unwrap() & 15, head.to_owned())
    };
    let (facts, head) = ask("Connection: Upgrade, X-Hop\r\nUpgrade: websocket\r\nX-Hop: 1\r\nX-Kept: 1\r\n");
    assert_eq!(facts, 4);
    assert!(head.contains("X-Kept:1"), "{head}");
    let names: Vec<u8> = head.bytes().filter(|byte| *byte >= 0x80).collect();
    assert!(!head.contains("X-Hop") && !head.to_ascii_lowercase().contains("connection"), "{head} {names:?}");
    let (facts, head) = ask("Upgrade: websocket\r\n");
    assert_eq!((facts, head.contains("websocket")), (0, false), "not named by Connection");
    let mut client = server.connect();
    client
        .send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let text = client.answer().text();
    assert!(text.starts_with("2\n") && !text.to_ascii_lowercase().contains("expect"), "{text}");
}
