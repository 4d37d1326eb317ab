//! Sessions that returning clients resume.

use onehop_testkit::tls::{Offer, TLS12, TLS13, TlsClient};

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
