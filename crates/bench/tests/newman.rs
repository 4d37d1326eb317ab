//! What onehop sends of a collection is what Newman sends of it: `newman/sent.txt` was recorded from Newman by
//! `newman/record.mjs`. Fields that each of them sends of its own are left out there and here.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use onehop_bench::collection::{self, ReadOptions};
use onehop_load::plan::Timeouts;
use onehop_load::progress::Unobserved;

/// Takes so many requests over one connection, answers each with 200, and gives them as text.
fn recorder(requests: usize) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its number");
    let recorded = std::thread::spawn(move || {
        // The first connection only looks whether somebody is there.
        drop(listener.accept().expect("a connection"));
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
        let mut writer = stream;
        let mut sent = Vec::new();
        for _ in 0..requests {
            sent.push(one(&mut reader));
            writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("a client");
        }
        sent
    });
    (address, recorded)
}

/// A request as `record.mjs` writes it.
fn one(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut text = line.replace(" HTTP/1.1\r\n", "\n");
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a field");
        let Some((name, value)) =
            line.trim_end().split_once(": ").or_else(|| line.trim_end().split_once(':'))
        else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "host" | "connection" => {}
            _ => text.push_str(&format!("{name}: {value}\n")),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(&body));
    text.push('\n');
    if let Some(boundary) = text.split_once("boundary=").and_then(|(_, rest)| rest.split_whitespace().next())
    {
        text = text.replace(boundary, "BOUNDARY");
    }
    text.replace('\r', "\\r")
}

#[test]
fn what_is_sent_of_a_collection_is_what_newman_sends() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newman");
    let expected = std::fs::read_to_string(folder.join("sent.txt")).expect("what Newman sent");
    let expected: Vec<&str> = expected.split("---\n").collect();
    let (address, recorded) = recorder(expected.len());
    let variable = |name: &str, value: String| (name.to_owned(), value);
    let options = ReadOptions {
        variables: vec![
            variable("BASE", format!("http://{address}")),
            variable("PORT", address.port().to_string()),
            variable("TYPED", "typed".to_owned()),
        ],
        environment: Some(folder.join("an.postman_environment.json")),
    };
    let mut collection =
        collection::read(&folder.join("everything.postman_collection.json"), &options).expect("a collection");
    assert_eq!(collection.requests.len(), expected.len());
    collection::reach(&mut collection, &onehop_load::tls::Client::default(), Duration::from_secs(5))
        .expect("a server");
    let run = collection::run(&collection, 1, Timeouts::default(), &mut Unobserved);
    let sent = recorded.join().expect("all requests");
    for ((request, sent), expected) in collection.requests.iter().zip(&sent).zip(expected) {
        assert_eq!(sent, expected, "{}", request.name);
    }
    assert!(run.requests.iter().all(|request| request.passed == 1));
    assert_eq!(run.caveats, ["`parts`: `:none` has no value and is sent as it stands"]);
}
