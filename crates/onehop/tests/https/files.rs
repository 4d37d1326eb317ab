//! Certificates from files.

use std::fmt::Write as _;

use onehop_testkit::tls::{Authority, ECDSA_ONLY, KeyKind, Offer, RSA_ONLY, TLS12, TlsClient, Validity};
use onehop_testkit::{Finished, Folder, Program};

use crate::subject::{Subject, get, onehopfile};

fn site(name: &str, tls: &str) -> String {
    format!("https://{name}:0 {{\n\tbind 127.0.0.1\n\ttls {tls}\n\trespond \"{{host}}\"\n}}\n")
}

#[test]
fn a_certificate_from_files_is_shown_and_nothing_is_obtained() {
    let authority = Authority::new("files");
    let identity = authority.issue(&["files.example.test"]);
    let folder = Folder::new();
    identity.write(folder.path(), "site");
    let subject = Subject::start_in(folder, "", &site("files.example.test", "site.crt site.key"));
    let client = TlsClient::new(Offer::trusting(&[authority.root]));
    let connection = client.connect(subject.address(), "files.example.test").expect("a connection");
    assert_eq!(connection.chain(), identity.chain);
    assert!(!subject.folder.join("data/tls/certificates").exists());
}

#[test]
fn a_client_gets_the_certificate_whose_signatures_it_can_verify() {
    let authority = Authority::new("both");
    let name = "both.example.test";
    let folder = Folder::new();
    let kinds = [KeyKind::Rsa, KeyKind::Ecdsa];
    let [rsa, ecdsa] = kinds.map(|kind| authority.issue_as(&[name], kind, Validity::Now));
    for (file, identity) in [("load/a-rsa.pem", &rsa), ("load/b-ecdsa.pem", &ecdsa)] {
        folder.write(file, format!("{}{}", identity.chain_pem, identity.key_pem));
    }
    let subject = Subject::start_in(folder, "", &site(name, "{\n\t\tload ./load\n\t}"));
    let usual = Offer::trusting(&[authority.root]);
    let only = |signatures: &[_]| Offer { signatures: signatures.to_vec(), ..usual.clone() };
    let old = |offer: Offer| Offer { versions: TLS12.to_vec(), ..offer };
    // A client of TLS 1.2 may verify ECDSA in chains, and have no cipher suite with it (RFC 5246 section 7.4.1.4.1).
    let suites = Offer { suites: Some("ECDHE_RSA"), ..old(usual.clone()) };
    for (what, offer, expected) in [
        ("the usual client", usual.clone(), &ecdsa),
        ("ECDSA alone", only(ECDSA_ONLY), &ecdsa),
        ("RSA alone", only(RSA_ONLY), &rsa),
        ("the usual client of TLS 1.2", old(usual.clone()), &ecdsa),
        ("RSA alone with TLS 1.2", old(only(RSA_ONLY)), &rsa),
        ("RSA suites of TLS 1.2 alone", suites, &rsa),
    ] {
        let connected = TlsClient::new(offer).connect(subject.address(), name);
        let connection = connected.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(connection.chain() == expected.chain, "{what} got the other one");
    }
}

#[test]
fn of_several_files_a_client_gets_the_one_for_its_name() {
    let authority = Authority::new("several");
    let folder = Folder::new();
    let names = ["one.example.test", "two.example.test"];
    let identities = names.map(|name| authority.issue(&[name]));
    for (name, identity) in names.iter().zip(&identities) {
        folder.write(&format!("load/{name}.pem"), format!("{}{}", identity.chain_pem, identity.key_pem));
    }
    let both = "https://one.example.test:0, https://two.example.test:0 {\n\tbind 127.0.0.1\n\ttls {\n\t\tload ./load\n\t}\n\trespond hello\n}\n";
    let subject = Subject::start_in(folder, "", both);
    let client = TlsClient::new(Offer::trusting(&[authority.root]));
    for (name, identity) in names.iter().zip(&identities) {
        let connection = client.connect(subject.address(), name).expect("a connection");
        assert!(connection.chain() == identity.chain, "{name} got the other one");
    }
}

#[test]
fn a_wildcard_certificate_is_shown_for_each_name_below() {
    let authority = Authority::new("wildcard");
    let folder = Folder::new();
    authority.issue(&["*.example.test"]).write(folder.path(), "wild");
    let subject = Subject::start_in(folder, "", &site("*.example.test", "wild.crt wild.key"));
    let client = TlsClient::new(Offer::trusting(&[authority.root]));
    for name in ["a.example.test", "b.example.test"] {
        assert_eq!(get(&client, subject.address(), name, name).expect("an answer").text(), name);
    }
    assert!(client.connect(subject.address(), "a.b.example.test").is_err());
}

#[test]
fn wrong_files_are_errors_at_the_start_that_name_them() {
    let authority = Authority::new("wrong");
    let folder = Folder::new();
    authority.issue(&["one.example.test"]).write(folder.path(), "one");
    authority.issue(&["two.example.test"]).write(folder.path(), "two");
    folder.write("empty.pem", "");
    let check = |tls: &str, expected: &[&str]| {
        folder.write("Onehopfile", onehopfile(folder.path(), "", &site("one.example.test", tls)));
        let finish = |words: &[&str]| -> Finished {
            Program::new(words).inside(folder.path()).control_in(folder.path()).finish()
        };
        let mut wrong = String::new();
        for words in [["run"].as_slice(), &["validate"]] {
            let finished = finish(words);
            let said = finished.stderr;
            let is_named = expected.iter().all(|text| said.contains(text));
            if finished.code == Some(0) || !is_named {
                let _ = writeln!(wrong, "{words:?} of `tls {tls}` ended with {:?}:\n{said}", finished.code);
            }
        }
        assert!(wrong.is_empty(), "{wrong}wanted {expected:?}");
    };
    check("one.key one.crt", &["one.key", "are the two files swapped?"]);
    check("one.crt two.key", &["one.crt", "two.key"]);
    check("gone.crt one.key", &["gone.crt", "relative paths start at"]);
    check("one.crt gone.key", &["gone.key"]);
    check("empty.pem one.key", &["empty.pem"]);
    check("one.crt empty.pem", &["empty.pem"]);
}

#[test]
fn a_certificate_that_has_expired_is_a_warning() {
    let authority = Authority::new("expired");
    let folder = Folder::new();
    let name = "old.example.test";
    authority.issue_as(&[name], KeyKind::Ecdsa, Validity::Expired).write(folder.path(), "old");
    let subject = Subject::start_in(folder, "", &site(name, "old.crt old.key"));
    let warning = subject.onehop.process.wait_for_event("warning");
    assert!(
        warning["message"].as_str().expect("text").contains("the certificate for old.example.test expired"),
        "{warning}"
    );
    let error = TlsClient::new(Offer::trusting(&[authority.root])).connect(subject.address(), name);
    let error = error.err().expect("an error").to_string();
    assert!(error.contains("expired"), "{error}");
    subject.wait_for_failures("refused_by_client", 1);
}
