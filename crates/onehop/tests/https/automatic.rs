//! `auto_https`: names that get a certificate of the local authority, and plain requests that are redirected.

use std::net::TcpListener;

use onehop_testkit::tls::TlsClient;
use onehop_testkit::{Client, Folder, Onehop, Program, free_address, wait_for};

use crate::subject::{HELLO, Subject, get};

/// The usual ports of a server, free ones.
struct Ports {
    http: u16,
    https: u16,
}

impl Ports {
    fn free() -> Ports {
        Ports { http: free_address().port(), https: free_address().port() }
    }

    /// A server with these sites.
    fn start(&self, globals: &str, sites: &str) -> Subject {
        let folder = Folder::new();
        let Ports { http, https } = self;
        let data = folder.join("data");
        let text = format!(
            "{{\n\tadmin off\n\thttp_port {http}\n\thttps_port {https}\n\tdata_dir {}\n{globals}\n}}\n{sites}",
            data.display()
        );
        folder.write("Onehopfile", text);
        Subject { onehop: Onehop::start_in(folder.path()), folder }
    }
}

fn location(port: u16, host: &str, target: &str) -> (u16, Option<String>) {
    let mut client = Client::connect(&format!("127.0.0.1:{port}"));
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let response = client.read();
    (response.status, response.field("Location").map(str::to_owned))
}

#[test]
fn a_name_without_a_port_gets_a_certificate_of_the_local_authority() {
    let ports = Ports::free();
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    let bound = if has_ipv6 { "127.0.0.1 [::1]" } else { "127.0.0.1" };
    let site =
        format!("localhost, 127.0.0.1, [::1], app.internal {{\n\tbind {bound}\n\trespond \"{{host}}\"\n}}\n");
    let subject = ports.start("", &site);
    let client = TlsClient::new(subject.offer());
    let address = format!("127.0.0.1:{}", ports.https);
    for name in ["localhost", "127.0.0.1", "app.internal"] {
        let response = get(&client, &address, name, name).expect("an answer");
        assert_eq!((response.status, response.text()), (200, name));
    }
    if has_ipv6 {
        let response = get(&client, &format!("[::1]:{}", ports.https), "::1", "[::1]").expect("an answer");
        assert_eq!(response.status, 200, "{}", response.head);
    }
    let issuers = subject.onehop.process.wait_for_events("certificate_obtained", 4);
    assert!(issuers.iter().all(|event| event["issuer"] == "local"), "{issuers:?}");
}

#[test]
fn a_name_in_other_letters_or_with_its_final_dot_is_the_same_name() {
    let subject = Subject::start("https://App.Internal:0 {\n\tbind 127.0.0.1\n\trespond hello\n}\n");
    let client = TlsClient::new(subject.offer());
    for name in ["app.internal", "APP.internal"] {
        let response = get(&client, subject.address(), name, name).expect("an answer");
        assert_eq!(response.text(), "hello", "{name}");
    }
}

#[test]
fn a_plain_request_is_redirected_with_its_path_and_query() {
    let ports = Ports::free();
    let other = free_address().port();
    let sites = format!(
        "localhost {{\n\tbind 127.0.0.1\n\trespond one\n}}\n\
         https://other.internal:{other} {{\n\tbind 127.0.0.1\n\trespond two\n}}\n"
    );
    let _subject = ports.start("", &sites);
    // The usual port of this server stands for 443, as behind a router that forwards it.
    let expected = (308, Some("https://localhost/a/b?c=d&e=%20".to_owned()));
    assert_eq!(location(ports.http, "localhost", "/a/b?c=d&e=%20"), expected);
    let expected = (308, Some(format!("https://other.internal:{other}/?x")));
    assert_eq!(location(ports.http, "other.internal", "/?x"), expected);
    assert_eq!(location(ports.http, &format!("localhost:{}", ports.http), "/").0, 308);
    // As in Caddy: what nobody serves in plain is asked for with HTTPS.
    let expected = (308, Some("https://unknown.internal/".to_owned()));
    assert_eq!(location(ports.http, "unknown.internal", "/"), expected);
}

#[test]
fn a_plain_site_of_that_host_is_not_redirected() {
    let ports = Ports::free();
    let sites = "http://localhost {\n\tbind 127.0.0.1\n\trespond plain\n}\n\
                 localhost, app.internal {\n\tbind 127.0.0.1\n\trespond encrypted\n}\n";
    let subject = ports.start("", sites);
    let mut client = Client::connect(&format!("127.0.0.1:{}", ports.http));
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.read().text(), "plain");
    assert_eq!(location(ports.http, "app.internal", "/").0, 308);
    let client = TlsClient::new(subject.offer());
    let address = format!("127.0.0.1:{}", ports.https);
    assert_eq!(get(&client, &address, "localhost", "localhost").expect("an answer").text(), "encrypted");
}

#[test]
fn without_redirects_there_is_no_plain_listener() {
    let ports = Ports::free();
    let site = "localhost {\n\tbind 127.0.0.1\n\trespond hello\n}\n";
    let subject = ports.start("\tauto_https disable_redirects", site);
    let listening = subject.onehop.process.wait_for_events("listening", 1);
    assert_eq!(listening.len(), 1, "{listening:?}");
    assert_eq!(subject.address(), format!("127.0.0.1:{}", ports.https));
    assert!(Client::try_connect(&format!("127.0.0.1:{}", ports.http)).is_err());
}

#[test]
fn a_restart_shows_the_same_certificate() {
    let subject = Subject::start(HELLO);
    let chain = |subject: &Subject| {
        let client = TlsClient::new(subject.offer());
        client.connect(subject.address(), "localhost").expect("a connection").chain().to_vec()
    };
    let first = chain(&subject);
    let Subject { onehop, folder } = subject;
    drop(onehop);
    let subject = Subject { onehop: Onehop::start_in(folder.path()), folder };
    assert_eq!(chain(&subject), first);
}

#[test]
fn the_keys_in_the_store_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let subject = Subject::start(HELLO);
    for key in [
        "pki/authorities/local/root.key",
        "pki/authorities/local/intermediate.key",
        "certificates/local/localhost/localhost.key",
    ] {
        let file = subject.folder.join(&format!("data/tls/{key}"));
        let mode = file.metadata().unwrap_or_else(|error| panic!("{key}: {error}")).permissions().mode();
        assert_eq!(mode & 0o077, 0, "{key} has {mode:o}");
    }
}

#[test]
fn a_site_that_a_reload_adds_gets_its_certificate_before_its_first_client() {
    let subject = Subject::start(HELLO);
    let port = free_address().port();
    let more = format!("{HELLO}https://added.internal:{port} {{\n\tbind 127.0.0.1\n\trespond added\n}}\n");
    let text = crate::subject::onehopfile(subject.folder.path(), "", &more);
    subject.folder.write("Onehopfile", text);
    subject.reload();
    let client = TlsClient::new(subject.offer());
    let address = format!("127.0.0.1:{port}");
    wait_for("the new listener", || Client::try_connect(&address).ok());
    assert_eq!(
        get(&client, &address, "added.internal", "added.internal").expect("an answer").text(),
        "added"
    );
}

#[test]
fn validate_makes_no_authority_and_no_certificate() {
    let folder = Folder::new();
    folder.write("Onehopfile", crate::subject::onehopfile(folder.path(), "", HELLO));
    let validated = Program::new(["validate"]).inside(folder.path()).finish();
    assert_eq!(validated.code, Some(0), "{}", validated.stderr);
    assert!(!folder.join("data").exists());
}
