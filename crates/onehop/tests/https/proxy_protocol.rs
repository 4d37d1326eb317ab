//! The PROXY protocol: a load balancer in front says whose a connection is, in clear text, before TLS and over a Unix socket.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use onehop_testkit::tls::TlsClient;
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, free_address};

use crate::subject::Subject;

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";
/// The same in version 2, with an addition that says nothing here (its type is NOOP).
const BINARY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x07\xc6\x33\x64\x01\x12\x67\x01\xbb\x04\0\x01\0";
/// A health check of the load balancer itself.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A plain site that tells a client its address, under these options of `proxy_protocol`.
fn start(options: &str, globals: &str) -> Subject {
    let site = "http://localhost:0 {\n\tbind 127.0.0.1\n\trespond \"<{remote_host} {remote_port}>\"\n}\n";
    let globals = format!(
        "{globals}\n\tservers {{\n\t\tlistener_wrappers {{\n\t\t\tproxy_protocol {{\n{options}\n\t\t\t}}\n\t\t\ttls\n\t\t}}\n\t}}"
    );
    Subject::with_globals(&globals, site)
}

fn connect(subject: &Subject) -> TcpStream {
    TcpStream::connect(subject.address()).expect("a connection")
}

fn over(stream: TcpStream) -> Client {
    Client::over(stream, "localhost").expect("a client")
}

/// The answer to a client that begins with this; `None` where the connection ends without a word.
fn answer_to(subject: &Subject, header: &[u8]) -> Option<String> {
    let mut stream = connect(subject);
    // The connection may be over already.
    let _ = stream.write_all(&[header, ASK].concat());
    over(stream).try_read_for("GET").ok().map(|response| response.text().to_owned())
}

fn wait_for_refusals(subject: &Subject, cause: &str, count: u64) {
    let series = format!("onehop_proxy_protocol_refusals_total{{cause=\"{cause}\"}}");
    onehop_testkit::wait_for(&series, || (subject.counter(&series) == count).then_some(()));
}

const CLIENT: &str = "<192.0.2.7 4711>";

#[test]
fn a_peer_that_is_allowed_says_whose_the_connection_is() {
    let subject = start("allow 127.0.0.1", "");
    for header in [LINE, BINARY] {
        assert_eq!(answer_to(&subject, header).as_deref(), Some(CLIENT));
    }
    // Its own connections, and clients that come to it directly.
    for header in [LOCAL, b"PROXY UNKNOWN\r\n", b""] {
        let answer = answer_to(&subject, header).expect("an answer");
        assert!(answer.starts_with("<127.0.0.1 ") && !answer.contains("4711"), "{answer}");
    }
}

#[test]
fn the_policy_says_what_becomes_of_other_peers() {
    // With a header, without one: the address in the answer, or no answer.
    for (options, with, without) in [
        ("", Some("<127"), Some("<127")),
        ("fallback_policy ignore", Some("<127"), Some("<127")),
        ("fallback_policy USE", Some(CLIENT), Some("<127")),
        ("fallback_policy require", Some(CLIENT), None),
        ("fallback_policy reject", None, Some("<127")),
        ("deny 127.0.0.0/8\nallow 127.0.0.1", None, Some("<127")),
        ("deny 192.0.2.0/24\nallow 10.0.0.0/8\nallow private_ranges", Some(CLIENT), Some("<127")),
    ] {
        let subject = start(options, "");
        for (header, expected) in [(LINE, with), (b"", without)] {
            let answer = answer_to(&subject, header);
            let is_expected = match (&answer, expected) {
                (Some(answer), Some(expected)) => answer.starts_with(expected),
                (None, None) => true,
                _ => false,
            };
            assert!(is_expected, "{options}: {answer:?} instead of {expected:?}");
        }
        if without.is_none() {
            wait_for_refusals(&subject, "missing", 1);
        }
        if with.is_none() {
            wait_for_refusals(&subject, "rejected", 1);
        }
    }
}

#[test]
fn a_header_that_nobody_looks_for_is_a_malformed_request() {
    let subject = start("fallback_policy skip", "");
    let mut client = over(connect(&subject));
    client.send([LINE, ASK].concat());
    assert_eq!(client.read().status, 400);
}

#[test]
fn a_header_that_has_two_readings_ends_the_connection() {
    let subject = start("allow 127.0.0.1", "");
    for (number, header) in (1..).zip([
        &b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\n"[..],
        b"PROXY TCP4 192.0.2.07 198.51.100.1 4711 443\r\n",
        b"PROXY / HTTP/1.1\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\x12\x67\x01\xbb",
    ]) {
        assert_eq!(answer_to(&subject, header), None, "{}", header.escape_ascii());
        wait_for_refusals(&subject, "malformed", number);
    }
    // Two of them: the second one is no request.
    let mut client = over(connect(&subject));
    client.send([LINE, LINE, ASK].concat());
    assert_eq!(client.read().status, 400);
}

#[test]
fn a_header_may_come_in_pieces_and_has_to_be_whole() {
    let subject = start("allow 127.0.0.1", "");
    let mut stream = connect(&subject);
    stream.set_nodelay(true).expect("an option");
    for byte in BINARY {
        stream.write_all(&[*byte]).expect("sent");
    }
    let mut client = over(stream);
    client.send(ASK);
    assert_eq!(client.read().text(), CLIENT);
    let mut cut_off = connect(&subject);
    cut_off.write_all(&LINE[..9]).expect("sent");
    cut_off.shutdown(Shutdown::Write).expect("an end");
    wait_for_refusals(&subject, "malformed", 1);
    // A request is no header as soon as its first letters are there.
    let mut client = over(connect(&subject));
    client.send("PRO");
    client.send("PFIND / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_ne!(client.read().status, 400);
}

#[test]
fn what_stops_within_its_header_ends_in_time_and_a_connection_in_reserve_stays() {
    let subject = start("allow 127.0.0.1\ntimeout 1ms", "");
    let mut client = over(connect(&subject));
    let mut stopped = connect(&subject);
    stopped.write_all(b"PROXY").expect("sent");
    wait_for_refusals(&subject, "timeout", 1);
    client.send(ASK);
    assert!(client.read().text().starts_with("<127.0.0.1 "));
}

#[test]
fn connections_are_counted_for_the_client_and_not_for_its_load_balancer() {
    let subject = start("allow 127.0.0.1", "\tconnections_per_address 2");
    let hold = |header: &str| {
        let mut client = over(connect(&subject));
        let _ = client.try_send([header.as_bytes(), ASK].concat());
        client.try_read_for("GET").ok().map(|_| client)
    };
    let other = LINE.to_vec();
    let mut clients = Vec::new();
    for number in 1..4 {
        let header = format!("PROXY TCP4 192.0.2.{number} 198.51.100.1 4711 443\r\n");
        clients.extend([hold(&header).expect("the first"), hold(&header).expect("the second")]);
        assert!(hold(&header).is_none(), "a third connection of {header}");
    }
    assert_eq!(answer_to(&subject, &other).as_deref(), Some(CLIENT));
}

#[test]
fn the_header_stands_before_tls_and_names_the_client_everywhere() {
    let (folder, port) = (Folder::new(), free_address().port());
    let upstream = Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec());
    let log = folder.join("access.log");
    let site = format!(
        "https://localhost:{port} {{\n\tbind 127.0.0.1\n\tlog {{\n\t\toutput file {}\n\t}}\n\ttls internal\n\treverse_proxy {}\n}}\n",
        log.display(),
        upstream.address()
    );
    let globals = "\tservers {\n\t\tlistener_wrappers {\n\t\t\tproxy_protocol {\n\t\t\t\tallow 127.0.0.1\n\t\t\t}\n\t\t\ttls\n\t\t}\n\t}";
    let subject = Subject::start_in(folder, globals, &site);
    for header in [LINE, BINARY] {
        let mut stream = connect(&subject);
        stream.write_all(header).expect("sent");
        let tls = TlsClient::new(subject.offer()).connect_over(stream, "localhost").expect("a handshake");
        assert_eq!(Client::over_tls(tls, "localhost").get("/").text(), "ok");
    }
    // Where there is none, the handshake begins at once.
    assert_eq!(subject.connect().get("/").text(), "ok");
    let seen: Vec<String> =
        upstream.seen().iter().flat_map(|seen| seen.all("X-Forwarded-For")).map(str::to_owned).collect();
    assert_eq!(seen, ["192.0.2.7", "192.0.2.7", "127.0.0.1"]);
    onehop_testkit::wait_for("lines in the log", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.matches("\"remote_ip\":\"192.0.2.7\",\"remote_port\":\"4711\"").count() == 2).then_some(())
    });
}

#[test]
fn who_comes_through_a_unix_socket_is_believed() {
    let folder = Folder::new();
    let path = folder.join("site.sock");
    let site = format!(
        "http://localhost {{\n\tbind unix/{}|0600\n\trespond \"<{{remote_host}} {{remote_port}}>\"\n}}\n",
        path.display()
    );
    let globals = "\tservers {\n\t\tlistener_wrappers {\n\t\t\tproxy_protocol {\n\t\t\t\tfallback_policy reject\n\t\t\t}\n\t\t}\n\t}";
    // A listener of TCP beside it, whose address the harness waits for.
    let tcp = "http://localhost:0 {\n\tbind 127.0.0.1\n\trespond tcp\n}\n";
    let _subject = Subject::start_in(folder, globals, &format!("{tcp}{site}"));
    for (header, expected) in [(LINE, CLIENT), (BINARY, CLIENT), (LOCAL, "< >"), (b"", "< >")] {
        let mut stream = UnixStream::connect(&path).expect("a connection");
        stream.write_all(&[header, ASK].concat()).expect("sent");
        let mut answer = String::new();
        stream.shutdown(Shutdown::Write).expect("an end");
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        assert!(answer.ends_with(expected), "{answer}");
    }
}

/// HAProxy, which tells a server whose its connections are. Ends with the value.
struct Haproxy(Child);

impl Haproxy {
    /// Listens at `front`.
    fn start(folder: &Folder, front: SocketAddr, server: &str, option: &str) -> Haproxy {
        let settings = format!(
            "global\n\tmaxconn 16\ndefaults\n\tmode tcp\n\ttimeout connect 10s\n\ttimeout client 10s\n\
             \ttimeout server 10s\nlisten front\n\tbind {front}\n\tserver onehop {server} {option}\n"
        );
        folder.write(option, settings);
        let mut command = Command::new("/usr/sbin/haproxy");
        command.args(["-db", "-q", "-f"]).arg(folder.join(option));
        let mut haproxy = Haproxy(command.spawn().expect("haproxy"));
        onehop_testkit::wait_for("haproxy to listen", || {
            assert!(haproxy.0.try_wait().expect("a child").is_none(), "haproxy ended");
            TcpStream::connect(front).ok()
        });
        haproxy
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs HAProxy: cargo xtask suites --ci runs it"]
fn haproxy_is_understood_in_both_versions() {
    let (folder, subject) = (Folder::new(), start("allow 127.0.0.1", ""));
    for option in ["send-proxy", "send-proxy-v2"] {
        let front = free_address();
        let _haproxy = Haproxy::start(&folder, front, subject.address(), option);
        let stream = TcpStream::connect(front).expect("a connection");
        let own = stream.local_addr().expect("an address").port();
        let mut client = over(stream);
        client.send(ASK);
        assert_eq!(client.read().text(), format!("<127.0.0.1 {own}>"), "{option}");
    }
}
