//! Reloads that change certificates while clients come and ask.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onehop_testkit::tls::{Authority, Offer, TlsClient};
use onehop_testkit::{Folder, wait_for};

use crate::subject::{Subject, get};

const NAME: &str = "changing.example.test";

#[test]
fn reloads_that_change_the_certificate_fail_no_handshake_and_no_request() {
    let authority = Authority::new("changing");
    let folder = Folder::new();
    authority.issue(&[NAME]).write(folder.path(), "site");
    let site =
        format!("https://{NAME}:0 {{\n\tbind 127.0.0.1\n\ttls site.crt site.key\n\trespond hello\n}}\n");
    let subject = Subject::start_in(folder, "\tthreads 2", &site);
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
            for round in 0..20 {
                let identity = authority.issue(&[NAME]);
                identity.write(subject.folder.path(), "site");
                subject.reload();
                let connection =
                    TlsClient::new(offer.clone()).connect(subject.address(), NAME).expect("a connection");
                assert!(connection.chain() == identity.chain, "an old certificate after reload {round}");
                let before = answered.load(Ordering::Relaxed);
                wait_for("requests", || (answered.load(Ordering::Relaxed) > before).then_some(()));
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = changed {
            std::panic::resume_unwind(panic);
        }
    });
    for (cause, count) in [("no_certificate", 0), ("protocol", 0), ("client_gone", 0), ("incompatible", 0)] {
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
