//! Bytes over encrypted connections: long responses, slow and sudden clients, tunnels, and the end of a connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use onehop_testkit::tls::{End, Offer, TLS12, TLS13, TlsClient, TlsConnection};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, wait_for};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use rustix::process::Signal;

use crate::subject::{HELLO, Subject};

const MIB: usize = 1024 * 1024;

fn files(globals: &str, mebibytes: usize) -> (Subject, Vec<u8>) {
    // No two places look alike: a part that is lost or doubled shows.
    let content: Vec<u8> =
        (0..mebibytes * MIB / 8).flat_map(|number| (number as u64).to_le_bytes()).collect();
    let folder = Folder::new();
    folder.write("files/large.bin", &content);
    let site = "https://localhost:0 {\n\tbind 127.0.0.1\n\troot files\n\tfile_server\n}\n";
    (Subject::start_in(folder, globals, site), content)
}

fn connection(subject: &Subject) -> TlsConnection {
    TlsClient::new(subject.offer()).connect(subject.address(), "localhost").expect("a connection")
}

fn request(connection: &mut TlsConnection, path: &str, fields: &str) {
    let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    connection.write_all(text.as_bytes()).expect("sent");
}

fn a_download_arrives_whole(globals: &str, on_disk: u64) {
    let (subject, content) = files(globals, 50);
    let stored = subject.onehop.process.wait_for_event("stored");
    assert_eq!(stored["on_disk"].as_u64(), Some(on_disk), "{stored}");
    for versions in [TLS13, TLS12] {
        let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
        let mut client = client.client(subject.address(), "localhost").expect("a connection");
        let response = client.get("/large.bin");
        assert!(response.status == 200 && response.body == content, "{} bytes", response.body.len());
        let response = client.ask("GET", "/large.bin", "Range: bytes=1000000-2999999\r\n");
        assert!(response.status == 206 && response.body == content[1_000_000..3_000_000]);
    }
}

#[test]
fn a_large_download_from_memory_arrives_whole() {
    a_download_arrives_whole("", 0);
}

#[test]
fn a_large_download_from_disk_arrives_whole() {
    a_download_arrives_whole("\tmemory 64MiB files 1MiB", 1);
}

/// Memory of its own that the process has resident.
fn resident_bytes(subject: &Subject) -> usize {
    let status = format!("/proc/{}/status", subject.onehop.process.pid());
    let text = std::fs::read_to_string(status).expect("its status");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its resident size");
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

/// A client with a small window that has asked and taken the first bytes of the answer.
fn slow_reader(subject: &Subject, client: &TlsClient) -> TlsConnection {
    let address: std::net::SocketAddr = subject.address().parse().expect("an address");
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("its buffer");
    connect(&socket, &address).expect("connected");
    let mut connection = client.begin(TcpStream::from(socket), "localhost").expect("a connection");
    request(&mut connection, "/large.bin", "");
    let mut begin = [0; 12];
    connection.read_exact(&mut begin).expect("an answer begins");
    assert_eq!(&begin, b"HTTP/1.1 200");
    connection
}

#[test]
fn a_slow_reader_holds_little_memory() {
    let (subject, content) = files("\tthreads 2", 50);
    subject.connect().get("/large.bin");
    let client = TlsClient::new(subject.offer());
    let before = resident_bytes(&subject);
    let mut slow: Vec<TlsConnection> = (0..100).map(|_| slow_reader(&subject, &client)).collect();
    // Others are served meanwhile, which shows that the server has nothing left to do for the slow ones.
    assert!(subject.connect().get("/large.bin").body == content);
    let grown = resident_bytes(&subject).saturating_sub(before);
    assert!(grown <= 100 * 128 * 1024, "{} KiB for 100 slow readers", grown / 1024);
    // One that goes on gets everything.
    let mut last = slow.pop().expect("a slow reader");
    let mut rest = vec![0; content.len() - MIB];
    last.read_exact(&mut rest).expect("the response goes on");
}

#[test]
fn clients_that_cut_off_a_download_do_nothing_to_others() {
    let (subject, content) = files("\tthreads 1", 8);
    let client = TlsClient::new(subject.offer());
    let mut patient = slow_reader(&subject, &client);
    for number in 0..30 {
        let cut_off = slow_reader(&subject, &client);
        if number % 2 == 0 {
            Client::over_tls(cut_off, "localhost").reset();
        }
    }
    assert!(subject.connect().get("/large.bin").body == content);
    let mut rest = vec![0; content.len() - MIB];
    patient.read_exact(&mut rest).expect("the response goes on");
}

#[test]
fn the_last_response_is_followed_by_close_notify() {
    let subject = Subject::start(HELLO);
    for versions in [TLS13, TLS12] {
        for (fields, what) in [("Connection: close\r\n", "close"), ("Content-Length: x\r\n", "a bad request")]
        {
            let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
            let mut connection = client.connect(subject.address(), "localhost").expect("a connection");
            request(&mut connection, "/", fields);
            let (bytes, end) = connection.read_to_its_end();
            assert!(bytes.starts_with(b"HTTP/1.1 "), "{what}: {}", String::from_utf8_lossy(&bytes));
            assert_eq!(end, End::CloseNotify, "{what} with {versions:?}");
        }
    }
}

#[test]
fn a_client_that_ends_its_sending_still_gets_the_answer() {
    let (subject, content) = files("", 4);
    for with_fin in [false, true] {
        for versions in [TLS13, TLS12] {
            let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
            let mut connection = client.connect(subject.address(), "localhost").expect("a connection");
            request(&mut connection, "/large.bin", "");
            connection.close_notify().expect("sent");
            if with_fin {
                connection.socket().shutdown(std::net::Shutdown::Write).expect("shut down");
            }
            let (bytes, end) = connection.read_to_its_end();
            assert!(bytes.ends_with(&content), "{} bytes, FIN: {with_fin}, {versions:?}", bytes.len());
            assert_eq!(end, End::CloseNotify, "FIN: {with_fin}, {versions:?}");
        }
    }
}

#[test]
fn a_tunnel_echoes() {
    let upstream = Upstream::start(|connection| {
        if let Some(request) = connection.request() {
            assert!(request.field("Upgrade").is_some());
            connection.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            );
            connection.echo();
        }
    });
    let site =
        format!("https://localhost:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {}\n}}\n", upstream.address());
    let subject = Subject::start(&site);
    let mut client = subject.connect();
    let answer = client.ask("GET", "/tunnel", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_eq!(answer.status, 101, "{}", answer.head);
    for length in [1, 100, 20_000, 100_000] {
        let sent: Vec<u8> = (0..length).map(|number: u32| number.to_le_bytes()[0]).collect();
        client.send(&sent);
        let mut came = Vec::new();
        while came.len() < sent.len() {
            came.extend(client.read_some().expect("the tunnel is open"));
        }
        assert!(came == sent, "{length} bytes");
    }
    client.end_of_sending();
    assert!(client.read_to_end().is_empty());
    wait_for("the upstream's end", || (upstream.open() == 0).then_some(()));
}

#[test]
fn an_upload_arrives_whole() {
    let upstream = Upstream::answering(|request| {
        let text = request.body.len().to_string();
        let sum: u64 = request.body.iter().map(|byte| u64::from(*byte)).sum();
        let text = format!("{text} {sum}");
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
    });
    let site =
        format!("https://localhost:0 {{\n\tbind 127.0.0.1\n\treverse_proxy {}\n}}\n", upstream.address());
    let subject = Subject::start(&site);
    let body: Vec<u8> = (0..5 * MIB).map(|number| (number % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let mut client = subject.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert_eq!(client.read().text(), format!("{} {sum}", body.len()));
}

#[test]
fn a_graceful_stop_finishes_what_is_in_flight() {
    let (mut subject, content) = files("\tgrace_period 20s", 8);
    let client = TlsClient::new(subject.offer());
    let mut slow = slow_reader(&subject, &client);
    let mut idle = connection(&subject);
    request(&mut idle, "/nothing", "");
    subject.onehop.process.signal(Signal::TERM);
    subject.onehop.process.wait_for_event("stopping");
    // A connection that rests is closed at once, properly.
    assert_eq!(idle.read_to_its_end().1, End::CloseNotify);
    let (rest, end) = slow.read_to_its_end();
    assert!(rest.ends_with(&content), "{} bytes", rest.len());
    assert_eq!(end, End::CloseNotify);
    let status = subject.onehop.process.wait().expect("it ends");
    assert!(status.success(), "{status}");
}
