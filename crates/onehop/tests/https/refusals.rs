//! Connections that are refused, with the reason on the wire and in the counters, and those that never become any.

use std::io::Write;
use std::net::TcpStream;

use onehop_testkit::tls::{AlertDescription, Offer, TLS12, TLS13, TlsClient, alert_of};
use onehop_testkit::{Client, wait_for};

use crate::subject::{HELLO, Subject, get};

#[test]
fn a_client_without_a_common_version_gets_the_alert_protocol_version() {
    let new = HELLO.replace("respond", "tls {\n\t\tissuer internal\n\t\tprotocols tls1.3\n\t}\n\trespond");
    let old = new.replace("protocols tls1.3", "protocols tls1.2 tls1.2");
    for (site, versions, others) in [(new, TLS12, TLS13), (old, TLS13, TLS12)] {
        let subject = Subject::start(&site);
        let client =
            |versions: &[_]| TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
        let error = client(versions).connect(subject.address(), "localhost").err().expect("refused");
        assert_eq!(alert_of(&error), Some(AlertDescription::ProtocolVersion), "{error}");
        assert!(get(&client(others), subject.address(), "localhost", "localhost").is_ok());
        subject.wait_for_failures("incompatible", 1);
    }
}

#[test]
fn an_unknown_name_gets_the_alert_unrecognized_name() {
    let subject = Subject::start(HELLO);
    for versions in [TLS13, TLS12] {
        let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
        let error = client.connect(subject.address(), "unknown.example").err().expect("refused");
        assert_eq!(alert_of(&error), Some(AlertDescription::UnrecognisedName), "{error}");
    }
    subject.wait_for_failures("no_certificate", 2);
}

#[test]
fn a_client_that_offers_no_known_protocol_gets_an_alert_and_one_that_offers_none_is_served() {
    let subject = Subject::start(HELLO);
    let offering = |protocols: &[&'static str]| {
        let client = TlsClient::new(Offer { protocols: protocols.to_vec(), ..subject.offer() });
        client.connect(subject.address(), "localhost")
    };
    assert_eq!(offering(&["http/1.1", "h2"]).expect("a connection").protocol(), Some(&b"h2"[..]));
    assert_eq!(offering(&["h3", "http/1.1"]).expect("a connection").protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(offering(&[]).expect("a connection").protocol(), None);
    let error = offering(&["h3"]).err().expect("refused");
    assert_eq!(alert_of(&error), Some(AlertDescription::NoApplicationProtocol), "{error}");
}

#[test]
fn plain_http_on_the_port_is_answered_with_a_text() {
    let subject = Subject::start(HELLO);
    let mut client = Client::connect(subject.address());
    let response = client.get("/");
    assert_eq!(response.status, 400);
    assert!(response.text().contains("https://"), "{}", response.text());
    assert!(client.read_to_end().is_empty());
    subject.wait_for_failures("not_tls", 1);
}

#[test]
fn what_is_no_handshake_is_counted_as_what_it_is() {
    let subject = Subject::start(HELLO);
    // A record of the right type whose message is cut short.
    let mut client = Client::connect(subject.address());
    client.send([22, 3, 1, 0, 5, 1, 0, 0, 1, 7]);
    let alert = client.read_to_end();
    assert_eq!(alert.first(), Some(&21), "an alert: {alert:?}");
    subject.wait_for_failures("protocol", 1);
    // Gone in the middle.
    let mut stream = TcpStream::connect(subject.address()).expect("connected");
    stream.write_all(&[22, 3, 1]).expect("sent");
    drop(stream);
    subject.wait_for_failures("client_gone", 1);
    // A client that does not trust the authority.
    let foreign = onehop_testkit::tls::Authority::new("another");
    let client = TlsClient::new(Offer::trusting(&[foreign.root]));
    client.connect(subject.address(), "localhost").err().expect("not trusted");
    subject.wait_for_failures("refused_by_client", 1);
    assert!(subject.connect().get("/").status == 200);
}

#[test]
fn connections_that_stop_in_the_middle_of_a_handshake_keep_nobody_from_being_served() {
    let subject = Subject::with_globals("\tthreads 2", HELLO);
    let client = TlsClient::new(subject.offer());
    let connect = || TcpStream::connect(subject.address()).expect("connected");
    let begun: Vec<_> = (0..200)
        .map(|number| {
            let stream = connect();
            let mut connection =
                client.begin(stream.try_clone().expect("a descriptor"), "localhost").expect("one");
            match number % 4 {
                // Nothing at all, a part of a record, a whole first message, and the record header alone.
                0 => {}
                1 => (&stream).write_all(&[22, 3, 1, 2, 0, 1]).expect("sent"),
                2 => connection.send_waiting().expect("sent"),
                _ => (&stream).write_all(&[22, 3, 1, 2, 0]).expect("sent"),
            }
            connection
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(
            get(&client, subject.address(), "localhost", "localhost").expect("an answer").text(),
            "hello"
        );
    }
    // All are over by the deadline, by no doing of theirs.
    subject.wait_for_failures("timeout", 200);
    let open = "onehop_connections_open";
    wait_for("no open connection", || (subject.counter(open) == 0).then_some(()));
    drop(begun);
    assert_eq!(subject.connect().get("/").text(), "hello");
}
