//! `on_demand`: certificates that clients ask for, here of the local authority. Those of an ACME server are in
//! `https_acme.rs`.

use onehop_testkit::tls::{TlsClient, alert_of};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, free_address};
use rustls::AlertDescription;

use crate::subject::{Subject, get};

/// A program that permits `permitted.internal` alone.
fn endpoint() -> Upstream {
    Upstream::answering(|request| {
        let is_permitted = request.head.starts_with("GET /ask?key=1&domain=permitted.internal HTTP/1.1\r\n");
        let status = if is_permitted { "200 OK" } else { "404 Not Found" };
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

/// A server with a site of its own name, whose certificate it has at once, and one for any name.
fn subject(folder: Folder, ask: &str) -> Subject {
    let port = free_address().port();
    let sites = format!(
        "https://localhost:{port} {{\n\tbind 127.0.0.1\n\trespond own\n}}\n\
         https://:{port} {{\n\tbind 127.0.0.1\n\ttls internal {{\n\t\ton_demand\n\t}}\n\trespond any\n}}\n"
    );
    Subject::start_in(folder, &format!("\ton_demand_tls {{\n\t\task {ask}\n\t}}"), &sites)
}

fn alert(subject: &Subject, client: &TlsClient, name: &str) -> Option<AlertDescription> {
    alert_of(&get(client, subject.address(), name, name).expect_err("no certificate"))
}

#[test]
fn the_first_client_gets_the_certificate_of_a_permitted_name_and_others_are_refused() {
    let endpoint = endpoint();
    let subject = subject(Folder::new(), &format!("http://{}/ask?key=1", endpoint.address()));
    let client = TlsClient::new(subject.offer());
    for _ in 0..2 {
        let response = get(&client, subject.address(), "permitted.internal", "permitted.internal");
        assert_eq!(response.expect("an answer").text(), "any");
        assert_eq!(alert(&subject, &client, "refused.internal"), Some(AlertDescription::UnrecognisedName));
    }
    assert_eq!(endpoint.requests(), 2, "each name is asked for once");
    let own = get(&client, subject.address(), "localhost", "localhost").expect("an answer");
    assert_eq!((own.text(), endpoint.requests()), ("own", 2));
}

#[test]
fn a_program_that_is_not_there_permits_nothing_and_takes_away_nothing() {
    let folder = Folder::new();
    let (text, subject) = {
        let endpoint = endpoint();
        let subject = subject(folder, &format!("http://{}/ask?key=1", endpoint.address()));
        let client = TlsClient::new(subject.offer());
        get(&client, subject.address(), "permitted.internal", "permitted.internal").expect("an answer");
        (std::fs::read_to_string(subject.folder.join("Onehopfile")).expect("the Onehopfile"), subject)
    };
    // The program has ended. After a reload, names are looked up again.
    subject.folder.write("Onehopfile", text.replace("respond any", "respond again"));
    subject.reload();
    let client = TlsClient::new(subject.offer());
    let known = get(&client, subject.address(), "permitted.internal", "permitted.internal");
    assert_eq!(known.expect("an answer").text(), "again");
    assert_eq!(alert(&subject, &client, "new.internal"), Some(AlertDescription::UnrecognisedName));
    let event = subject.onehop.process.wait_for_event("certificate_failed");
    let reason = event["reason"].as_str().expect("text");
    assert!(reason.contains("start the program behind `ask`"), "{reason}");
}
