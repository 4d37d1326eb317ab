//! The sizes of records, as they stand on the wire.

use std::io::Write;

use onehop_testkit::Folder;
use onehop_testkit::tls::{Offer, Record, TLS12, TLS13, TlsClient};

use crate::subject::Subject;

/// What fits into one TCP segment of an Ethernet, with some room.
const SHORT: usize = 1_400;
/// The longest record: 16 KiB, and what encryption adds (RFC 8446 section 5.2).
const LONGEST: usize = 16 * 1024 + 256;

/// The records of the response to one request.
fn records(connection: &mut onehop_testkit::tls::TlsConnection, path: &str, length: usize) -> Vec<Record> {
    use std::io::Read;
    let before = connection.records().len();
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).expect("sent");
    let (mut all, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let count = connection.read(&mut buffer).expect("a response");
        all.extend_from_slice(&buffer[..count]);
        let head = all.windows(4).position(|window| window == b"\r\n\r\n");
        if head.is_some_and(|head| all.len() >= head + 4 + length) {
            return connection.records()[before..].to_vec();
        }
    }
}

#[test]
fn a_response_begins_with_records_of_one_segment_and_continues_with_long_ones() {
    let folder = Folder::new();
    let size = 1024 * 1024;
    folder.write("files/large.bin", vec![7; size]);
    let site = "https://localhost:0 {\n\tbind 127.0.0.1\n\troot files\n\tfile_server\n}\n";
    let subject = Subject::start_in(folder, "", site);
    for versions in [TLS13, TLS12] {
        let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
        let mut connection = client.connect(subject.address(), "localhost").expect("a connection");
        // The second response begins anew.
        for _ in 0..2 {
            let found = records(&mut connection, "/large.bin", size);
            let lengths: Vec<usize> = found.iter().map(|record| record.length).collect();
            assert!(found.iter().all(|record| record.kind == 23), "{found:?}");
            assert!(lengths.iter().take(4).all(|length| *length <= SHORT), "{versions:?}: {lengths:?}");
            assert!(lengths.iter().all(|length| *length <= LONGEST), "{versions:?}: {lengths:?}");
            let long = lengths.iter().filter(|length| **length > 16_000).count();
            assert!(long >= size / 20_000, "{long} long records of {}: {lengths:?}", lengths.len());
        }
    }
}
