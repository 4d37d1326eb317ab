//! Certificates of clients: the modes, and that nothing else leads into a protected site.

use std::io;
use std::sync::Arc;

use onehop_testkit::tls::{
    AlertDescription, Authority, Identity, KeyKind, Offer, OneStore, TLS12, TLS13, TlsClient, Validity,
    alert_of,
};
use onehop_testkit::{Client, Folder, Response, free_address};

use crate::subject::{Subject, get};

/// The authority of clients in a folder with `clients.pem`, and who comes.
struct Clients {
    good: Identity,
    foreign: Identity,
    expired: Identity,
    folder: Folder,
}

impl Clients {
    fn new() -> Clients {
        let (ours, theirs) = (Authority::new("clients"), Authority::new("strangers"));
        let folder = Folder::new();
        folder.write("clients.pem", &ours.root_pem);
        Clients {
            good: ours.issue(&["client.internal"]),
            foreign: theirs.issue(&["client.internal"]),
            expired: ours.issue_as(&["client.internal"], KeyKind::Ecdsa, Validity::Expired),
            folder,
        }
    }
}

fn protected(name: &str, mode: &str) -> String {
    let pool = if mode.contains("verify") { "trust_pool file clients.pem" } else { "" };
    format!(
        "https://{name}:0 {{\n\tbind 127.0.0.1\n\ttls {{\n\t\tissuer internal\n\t\tclient_auth {{\n\t\t\tmode {mode}\n\
         \t\t\t{pool}\n\t\t}}\n\t}}\n\trespond secret\n}}\n"
    )
}

/// What a client that shows this gets.
fn visit(subject: &Subject, offer: Offer, identity: Option<&Identity>) -> io::Result<Response> {
    let client = TlsClient::new(Offer { identity: identity.cloned(), ..offer });
    get(&client, subject.address(), "localhost", "localhost")
}

/// A mode, and whether it lets in a good, a foreign, an expired and no certificate.
fn check(mode: &str, expected: [bool; 4]) {
    let clients = Clients::new();
    let (good, foreign, expired) = (clients.good, clients.foreign, clients.expired);
    let subject = Subject::start_in(clients.folder, "", &protected("localhost", mode));
    let mut refused = 0;
    for versions in [TLS13, TLS12] {
        let shown =
            [("good", Some(&good)), ("foreign", Some(&foreign)), ("expired", Some(&expired)), ("no", None)];
        for ((what, identity), is_let_in) in shown.into_iter().zip(expected) {
            let offer = Offer { versions: versions.to_vec(), ..subject.offer() };
            match visit(&subject, offer, identity) {
                Ok(response) => {
                    assert!(is_let_in, "{mode}: {what} certificate is let in with {versions:?}");
                    assert_eq!(response.text(), "secret");
                }
                Err(error) => {
                    assert!(!is_let_in, "{mode}: {what} certificate with {versions:?}: {error}");
                    refused += 1;
                    // Why, in the words of RFC 8446 section 6.2.
                    let alert = alert_of(&error).unwrap_or_else(|| panic!("{mode}, {what}: {error}"));
                    let expected: &[AlertDescription] = match what {
                        "no" => &[AlertDescription::CertificateRequired, AlertDescription::HandshakeFailure],
                        "expired" => &[AlertDescription::CertificateExpired],
                        _ => &[AlertDescription::UnknownCA],
                    };
                    assert!(expected.contains(&alert), "{mode}, {what}: {alert:?}");
                }
            }
        }
    }
    subject.wait_for_failures("client_certificate", refused);
}

#[test]
fn a_certificate_that_is_requested_is_not_looked_at() {
    check("request", [true, true, true, true]);
}

#[test]
fn a_certificate_that_is_required_is_not_looked_at_either() {
    check("require", [true, true, true, false]);
}

#[test]
fn a_certificate_that_is_given_is_verified() {
    check("verify_if_given", [true, false, false, true]);
}

#[test]
fn a_certificate_that_is_required_and_verified_has_to_be_good() {
    check("require_and_verify", [true, false, false, false]);
}

#[test]
fn a_named_certificate_of_a_client_is_needed_in_every_mode() {
    let Clients { good, foreign, folder, .. } = Clients::new();
    folder.write("good.pem", &good.chain_pem);
    let modes = [
        ("request", "a.internal"),
        ("require", "b.internal"),
        ("verify_if_given", "c.internal"),
        ("require_and_verify", "d.internal"),
    ];
    let site = |(mode, host)| {
        format!(
            "https://{host}:0 {{\n\tbind 127.0.0.1\n\ttls {{\n\t\tissuer internal\n\t\tclient_auth {{\n\t\t\tmode {mode}\n\
             \t\t\ttrust_pool file clients.pem\n\t\t\tverifier leaf file good.pem\n\t\t}}\n\t}}\n\trespond secret\n}}\n"
        )
    };
    let subject = Subject::start_in(folder, "", &modes.map(site).concat());
    for (mode, host) in modes {
        for (identity, is_let_in) in [(Some(&good), true), (Some(&foreign), false), (None, false)] {
            let client = TlsClient::new(Offer { identity: identity.cloned(), ..subject.offer() });
            let outcome = get(&client, subject.address(), host, host);
            assert_eq!(outcome.is_ok(), is_let_in, "{mode}: {outcome:?}");
        }
    }
}

/// Two sites on one port, one of which needs a certificate.
fn open_and_protected() -> (Subject, Identity) {
    let clients = Clients::new();
    let open = "https://open.internal:0 {\n\tbind 127.0.0.1\n\trespond open\n}\n";
    let sites = format!("{open}{}", protected("closed.internal", "require_and_verify"));
    (Subject::start_in(clients.folder, "", &sites), clients.good)
}

#[test]
fn a_ticket_of_an_open_site_does_not_lead_into_a_protected_one() {
    let (subject, _) = open_and_protected();
    for versions in [TLS13, TLS12] {
        // Sessions are looked up by the name that the client means: here both are one.
        let store = Arc::new(OneStore::default());
        let client = TlsClient::new(Offer {
            versions: versions.to_vec(),
            sessions: Some(store.clone()),
            ..subject.offer()
        });
        let open = get(&client, subject.address(), "open.internal", "open.internal").expect("an answer");
        assert_eq!(open.text(), "open");
        let again = client.connect(subject.address(), "open.internal").expect("a connection");
        assert!(again.is_resumed(), "with {versions:?}");
        drop(again);
        get(&client, subject.address(), "open.internal", "open.internal").expect("another ticket");
        let closed = get(&client, subject.address(), "closed.internal", "closed.internal");
        assert!(alert_of(&closed.expect_err("refused")).is_some(), "with {versions:?}");
    }
}

#[test]
fn a_protected_site_is_not_asked_over_a_connection_of_an_open_one() {
    let (subject, good) = open_and_protected();
    let address = subject.address();
    for identity in [None, Some(good)] {
        let client = TlsClient::new(Offer { identity, ..subject.offer() });
        let response = get(&client, address, "open.internal", "closed.internal").expect("an answer");
        assert_eq!(response.status, 421, "{}", response.text());
        assert!(!response.text().contains("secret"));
        // The request that belongs there is answered.
        let response = get(&client, address, "open.internal", "open.internal").expect("an answer");
        assert_eq!(response.text(), "open");
    }
}

#[test]
fn an_open_site_is_not_asked_over_a_connection_of_a_protected_one() {
    let (subject, good) = open_and_protected();
    let client = TlsClient::new(Offer { identity: Some(good), ..subject.offer() });
    let response = get(&client, subject.address(), "closed.internal", "open.internal").expect("an answer");
    assert_eq!(response.status, 421, "{}", response.text());
    let response = get(&client, subject.address(), "closed.internal", "closed.internal").expect("an answer");
    assert_eq!(response.text(), "secret");
}

#[test]
fn a_kept_connection_goes_on_being_checked_after_a_reload() {
    let (subject, _) = open_and_protected();
    let client = TlsClient::new(subject.offer());
    let mut kept = client.client(subject.address(), "open.internal").expect("a connection");
    assert_eq!(kept.get("/").text(), "open");
    // The open site now needs a certificate, which the kept connection has not shown.
    let sites = protected("open.internal", "require_and_verify");
    let text = crate::subject::onehopfile(subject.folder.path(), "", &sites);
    subject.folder.write("Onehopfile", text);
    subject.reload();
    kept.send("GET / HTTP/1.1\r\nHost: open.internal\r\n\r\n");
    let response = kept.read();
    assert_eq!(response.status, 421, "{}", response.text());
}

#[test]
fn a_plain_connection_that_a_reload_finds_open_gets_nothing_of_an_encrypted_site() {
    let (address, folder) = (free_address(), Folder::new());
    let open =
        format!("http://closed.internal:{} {{\n\tbind 127.0.0.1\n\trespond open\n}}\n", address.port());
    let subject = Subject::start_in(folder, "", &open);
    let mut kept = Client::connect(subject.address());
    let ask = "GET / HTTP/1.1\r\nHost: closed.internal\r\n\r\n";
    kept.send(ask);
    assert_eq!(kept.read().text(), "open");
    Authority::new("clients").issue(&["a client"]).write(subject.folder.path(), "ca");
    let closed = format!(
        "https://closed.internal:{} {{\n\tbind 127.0.0.1\n\ttls internal {{\n\t\tclient_auth {{\n\t\t\ttrust_pool file ca.crt\n\t\t}}\n\t}}\n\trespond secret\n}}\n",
        address.port()
    );
    subject.folder.write("Onehopfile", crate::subject::onehopfile(subject.folder.path(), "", &closed));
    subject.reload();
    kept.send(ask);
    let response = kept.read();
    assert_eq!(response.status, 421, "{}", response.text());
}
