//! Sessions that returning clients resume.

use onehop_testkit::tls::{AlertDescription, Offer, TLS12, TLS13, TlsClient, alert_of};

use crate::subject::{HELLO, Subject, onehopfile};

const RESUMED: &str = "onehop_tls_handshakes_total{kind=\"resumed\"}";
const FULL: &str = "onehop_tls_handshakes_total{kind=\"full\"}";

/// Whether a connection on which one request was answered resumed a session.
fn visit(client: &TlsClient, subject: &Subject) -> bool {
    let connection = client.connect(subject.address(), "localhost").expect("a connection");
    let is_resumed = connection.is_resumed();
    let mut client = onehop_testkit::Client::over_tls(connection, "localhost");
    // Tickets of TLS 1.3 come with or before the first response.
    assert_eq!(client.get("/").status, 200);
    is_resumed
}

#[test]
fn returning_clients_resume_on_any_core_and_after_a_reload() {
    let subject = Subject::with_globals("\tthreads 4", HELLO);
    let (mut resumed, mut full) = (0, 0);
    for versions in [TLS13, TLS12] {
        let client = TlsClient::new(Offer { versions: versions.to_vec(), ..subject.offer() });
        assert!(!visit(&client, &subject));
        let count = (0..100).filter(|_| visit(&client, &subject)).count();
        assert!(count >= 95, "{count} of 100 were resumed with {versions:?}");
        let sites = HELLO.replace("respond hello", "respond \"hello again\"");
        subject.folder.write("Onehopfile", onehopfile(subject.folder.path(), "\tthreads 4", &sites));
        subject.reload();
        assert!(visit(&client, &subject), "after a reload with {versions:?}");
        resumed += count as u64 + 1;
        full += 101 - count as u64;
    }
    assert_eq!((subject.counter(RESUMED), subject.counter(FULL)), (resumed, full));
}

#[test]
fn a_ticket_of_one_process_is_nothing_to_the_next() {
    let subject = Subject::start(HELLO);
    let client = TlsClient::new(subject.offer());
    visit(&client, &subject);
    let Subject { onehop, folder } = subject;
    drop(onehop);
    let subject = Subject { onehop: onehop_testkit::Onehop::start_in(folder.path()), folder };
    assert!(!visit(&client, &subject));
    assert!(visit(&client, &subject));
}

/// A site with these options of `tls`.
fn site_with(options: &str) -> String {
    format!(
        "https://localhost:0 {{\n\tbind 127.0.0.1\n\ttls internal {{\n{options}\n\t}}\n\trespond hello\n}}\n"
    )
}

/// A visit to a site with the first options, a reload with the second ones, and the attempt to come back.
fn come_back(before: &str, after: &str) -> (Subject, TlsClient, std::io::Result<bool>) {
    let subject = Subject::start(&site_with(before));
    let client = TlsClient::new(Offer { versions: TLS13.to_vec(), ..subject.offer() });
    assert!(!visit(&client, &subject));
    let sites = site_with(after);
    subject.folder.write("Onehopfile", onehopfile(subject.folder.path(), "", &sites));
    subject.reload();
    let connected = client.connect(subject.address(), "localhost").map(|connection| connection.is_resumed());
    (subject, client, connected)
}

const SHA384: &str = "ciphers TLS_AES_256_GCM_SHA384";
const P384: &str = "curves secp384r1";

#[test]
fn a_reload_that_changes_ciphers_or_curves_costs_returning_clients_no_handshake() {
    // A ticket of a suite with another hash is ignored; a retry (HelloRetryRequest) keeps a ticket with the same hash.
    for (before, after, is_resumed) in [(SHA384, "", false), (P384, "", true)] {
        let (.., connected) = come_back(before, after);
        assert_eq!(connected.expect("a handshake"), is_resumed, "{before}");
    }
}

/// rustls 0.23.46 as server demands a ticket in the second ClientHello where the first had one (its pull request 3259). RFC 8446
/// section 4.1.4 has clients leave out tickets whose hash is not that of the chosen suite, and then none may be left, as
/// with rustls itself as client. docs/https.md says so; where this test fails, rustls has changed, and that text goes.
#[test]
fn rustls_refuses_clients_that_withdraw_their_ticket_in_a_retry() {
    let both = format!("{SHA384}\n{P384}");
    let (subject, client, refused) = come_back(&both, "");
    let error = refused.expect_err("a refusal");
    assert_eq!(alert_of(&error), Some(AlertDescription::MissingExtension), "{error}");
    // Each of the two tickets is tried once.
    assert!(client.connect(subject.address(), "localhost").is_err());
    assert!(!visit(&client, &subject));
    subject.wait_for_failures("protocol", 2);
}
