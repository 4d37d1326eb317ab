//! Reloads that change certificates while clients come and ask.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onehop_testkit::tls::{Authority, Offer, TlsClient};
use onehop_testkit::{Folder, wait_for};

use crate::subject::{Subject, get, onehopfile};

const NAME: &str = "changing.example.test";

/// A site with a certificate from files: its second name and what it negotiates are another one in each round.
fn site_of(round: usize) -> String {
    let policy = ["", "protocols tls1.3", "curves x25519 secp256r1"];
    let policy = policy[round % policy.len()];
    format!(
        "https://{NAME}:0, https://{}:0 {{\n\tbind 127.0.0.1\n\ttls site.crt site.key {{\n\t\t{policy}\n\t}}\n\trespond hello\n}}\n",
        name_of(round)
    )
}

fn name_of(round: usize) -> String {
    format!("round-{round}.example.test")
}

#[test]
fn reloads_that_change_certificates_names_and_policies_fail_no_handshake_and_no_request() {
    let authority = Authority::new("changing");
    let folder = Folder::new();
    authority.issue(&[NAME, &name_of(0)]).write(folder.path(), "site");
    let subject = Subject::start_in(folder, "\tthreads 2", &site_of(0));
    let offer = Offer::trusting(std::slice::from_ref(&authority.root));
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (subject, offer, is_over, answered) = (&subject, &offer, &is_over, &answered);
            scope.spawn(move || {
                let returning = TlsClient::new(offer.clone());
                let mut kept = returning.client(subject.address(), NAME).expect("a connection");
                while !is_over.load(Ordering::Relaxed) {
                    // New clients, returning ones, and connections that are kept all the time.
                    let fresh;
                    let client = if number % 2 == 0 {
                        &returning
                    } else {
                        fresh = TlsClient::new(offer.clone());
                        &fresh
                    };
                    let response =
                        get(client, subject.address(), NAME, NAME).expect("a handshake and an answer");
                    assert_eq!(response.text(), "hello");
                    assert_eq!(kept.get("/").text(), "hello");
                    answered.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=20 {
                let identity = authority.issue(&[NAME, &name_of(round)]);
                identity.write(subject.folder.path(), "site");
                let text = onehopfile(subject.folder.path(), "\tthreads 2", &site_of(round));
                subject.folder.write("Onehopfile", text);
                subject.reload();
                let client = TlsClient::new(offer.clone());
                for name in [NAME, &name_of(round)] {
                    let connection = client.connect(subject.address(), name).expect("a connection");
                    assert!(connection.chain() == identity.chain, "an old certificate after reload {round}");
                }
                assert!(client.connect(subject.address(), &name_of(round - 1)).is_err(), "an old name");
                let before = answered.load(Ordering::Relaxed);
                wait_for("requests", || (answered.load(Ordering::Relaxed) > before).then_some(()));
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = changed {
            std::panic::resume_unwind(panic);
        }
    });
    // The names that are gone.
    for (cause, count) in [("no_certificate", 20), ("protocol", 0), ("client_gone", 0), ("incompatible", 0)] {
        subject.wait_for_failures(cause, count);
    }
}

#[test]
fn a_reload_with_a_broken_certificate_changes_nothing() {
    let authority = Authority::new("broken");
    let folder = Folder::new();
    let identity = authority.issue(&[NAME]);
    identity.write(folder.path(), "site");
    let site =
        format!("https://{NAME}:0 {{\n\tbind 127.0.0.1\n\ttls site.crt site.key\n\trespond hello\n}}\n");
    let subject = Subject::start_in(folder, "", &site);
    // The new certificate with the old key, as between the two writes of whoever renews it.
    subject.folder.write("site.crt", &authority.issue(&[NAME]).chain_pem);
    let path = subject.folder.path();
    let reloaded = onehop_testkit::Program::new(["reload"]).inside(path).control_in(path).finish();
    assert_eq!(reloaded.code, Some(1));
    assert!(
        reloaded.stderr.contains("site.crt") && reloaded.stderr.contains("site.key"),
        "{}",
        reloaded.stderr
    );
    let client = TlsClient::new(Offer::trusting(&[authority.root]));
    let connection = client.connect(subject.address(), NAME).expect("a connection");
    assert!(connection.chain() == identity.chain);
}
