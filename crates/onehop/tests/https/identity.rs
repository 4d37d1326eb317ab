//! Who the client is by its certificate: in placeholders, and in a field that no client can write. One test needs Node.js.

use onehop_testkit::tls::{Authority, Identity, Offer, TLS12, TLS13, TlsClient};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, free_address};

use crate::subject::Subject;

/// What a client sends that would like to be somebody else.
const FORGED: &str = "Client-Cert: :Zm9yZ2Vk:\r\nclient_cert: :Zm9yZ2Vk:\r\nClient-Cert-Chain: :Zm9yZ2Vk:\r\n\
    CLIENT.CERT.CHAIN: :Zm9yZ2Vk:\r\nConnection: keep-alive, Client-Cert\r\n";

/// A site with certificates of clients in this mode.
fn site(mode: &str, directives: &str) -> String {
    let pool = if mode.contains("verify") { "\n\t\t\ttrust_pool file clients.pem" } else { "" };
    format!(
        "https://localhost:0 {{\n\tbind 127.0.0.1\n\ttls internal {{\n\t\tclient_auth {{\n\t\t\tmode {mode}{pool}\n\
         \t\t}}\n\t}}\n{directives}\n}}\n"
    )
}

fn folder_and_client() -> (Folder, Identity) {
    let (authority, folder) = (Authority::new("clients"), Folder::new());
    folder.write("clients.pem", &authority.root_pem);
    (folder, authority.issue(&["client.internal", "192.0.2.7"]))
}

fn connect(subject: &Subject, identity: Option<&Identity>) -> Client {
    let client = TlsClient::new(Offer { identity: identity.cloned(), ..subject.offer() });
    client.client(subject.address(), "localhost").expect("a connection")
}

/// The certificate as RFC 9440 has it.
fn field_of(identity: &Identity) -> String {
    let base64: String = identity.chain_pem.lines().filter(|line| !line.starts_with("-----")).collect();
    format!(":{base64}:")
}

fn echo() -> Upstream {
    Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())
}

/// The values of every field that could be taken for one about a certificate.
fn identities(head: &str) -> Vec<(String, String)> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let fields =
        fields.filter(|(name, _)| name.to_ascii_lowercase().replace(['_', '.'], "-").contains("cert"));
    fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

#[test]
fn placeholders_say_what_was_negotiated_and_who_the_client_is() {
    let (folder, identity) = folder_and_client();
    let names = [
        "tls_version",
        "tls_cipher",
        "http.request.tls.resumed",
        "http.request.tls.server_name",
        "tls_client_subject",
        "tls_client_issuer",
        "http.request.tls.client.san.dns_names.0",
        "http.request.tls.client.san.ips",
        "http.request.tls.client.san.emails.0",
    ];
    let line: Vec<String> = names.iter().map(|name| format!("{{{name}}}")).collect();
    let directives = format!(
        "\trespond /all \"{}\"\n\trespond /der \"{{tls_client_certificate_der_base64}}\"\n\
         \trespond /pem \"{{tls_client_certificate_pem}}\"\n\trespond /numbers \"{{tls_client_serial}} {{tls_client_fingerprint}}\"",
        line.join("|")
    );
    let subject = Subject::start_in(folder, "", &site("require_and_verify", &directives));
    for (versions, version, cipher) in [
        (TLS13, "tls1.3", "TLS_AES_128_GCM_SHA256"),
        (TLS12, "tls1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ] {
        let offer =
            Offer { identity: Some(identity.clone()), versions: versions.to_vec(), ..subject.offer() };
        let client = TlsClient::new(offer);
        for resumed in ["false", "true"] {
            let mut connection = client.client(subject.address(), "localhost").expect("a connection");
            let expected = format!(
                "{version}|{cipher}|{resumed}|localhost|CN=rcgen self signed cert|CN=clients|client.internal|[192.0.2.7]|"
            );
            assert_eq!(connection.get("/all").text(), expected);
            assert_eq!(format!(":{}:", connection.get("/der").text()), field_of(&identity));
            assert_eq!(connection.get("/pem").text(), identity.chain_pem.replace("\r\n", "\n"));
            let numbers = connection.get("/numbers").text().to_owned();
            let (serial, fingerprint) = numbers.split_once(' ').expect("two values");
            assert!(!serial.is_empty() && serial.bytes().all(|digit| digit.is_ascii_digit()), "{serial}");
            assert_eq!(fingerprint.len(), 64);
        }
    }
}

#[test]
fn placeholders_of_a_client_without_a_certificate_are_empty() {
    let (folder, _) = folder_and_client();
    let respond =
        "\trespond \"<{tls_client_subject}{tls_client_fingerprint}{http.request.tls.client.san.uris}>\"";
    let address = free_address();
    let plain = format!("http://{address} {{\n\trespond \"<{{tls_version}}{{tls_client_subject}}>\"\n}}\n");
    let subject = Subject::start_in(folder, "", &format!("{}{plain}", site("verify_if_given", respond)));
    assert_eq!(connect(&subject, None).get("/").text(), "<>");
    assert_eq!(Client::connect(&address.to_string()).get("/").text(), "<>");
}

#[test]
fn upstreams_and_programs_get_the_certificate_and_nothing_that_a_client_claims() {
    let (folder, identity) = folder_and_client();
    let (upstream, program) = (echo(), echo());
    let directives = format!(
        "\thandle /proxied {{\n\t\treverse_proxy {} {{\n\t\t\tambiguous_headers pass\n\t\t}}\n\t}}\n\
         \thandle {{\n\t\tapp {{\n\t\t\tsupervise off {}\n\t\t}}\n\t}}",
        upstream.address(),
        program.address()
    );
    let subject = Subject::start_in(folder, "", &site("verify_if_given", &directives));
    let expected = [("Client-Cert".to_owned(), field_of(&identity))];
    for (who, expected) in [(Some(&identity), &expected[..]), (None, &[])] {
        let mut client = connect(&subject, who);
        for (path, seen) in [("/proxied", &upstream), ("/program", &program)] {
            for fields in ["", FORGED] {
                assert_eq!(client.ask("GET", path, fields).text(), "ok");
                let seen = seen.seen();
                let head = &seen.last().expect("a request").head;
                assert_eq!(identities(head), expected, "{path}: {head}");
            }
        }
    }
}

#[test]
fn a_certificate_that_nobody_has_verified_is_passed_on_to_nobody() {
    let (folder, identity) = folder_and_client();
    let upstream = echo();
    let directives = format!(
        "\thandle /subject {{\n\t\trespond {{tls_client_subject}}\n\t}}\n\thandle {{\n\t\treverse_proxy {}\n\t}}",
        upstream.address()
    );
    let subject = Subject::start_in(folder, "", &site("require", &directives));
    let mut client = connect(&subject, Some(&identity));
    assert_eq!(client.get("/subject").text(), "CN=rcgen self signed cert");
    client.ask("GET", "/", FORGED);
    assert_eq!(identities(&upstream.seen()[0].head), []);
}

#[test]
fn a_trusted_proxy_may_pass_a_certificate_on_where_it_shows_none_itself() {
    let (folder, identity) = folder_and_client();
    let upstream = echo();
    let directives = format!("\treverse_proxy {}", upstream.address());
    let globals = "\tservers {\n\t\ttrusted_proxies static 127.0.0.1\n\t}";
    let address = free_address();
    let plain = format!("http://localhost:{} {{\n\tbind 127.0.0.1\n{directives}\n}}\n", address.port());
    let sites = format!("{}{plain}", site("verify_if_given", &directives));
    let subject = Subject::start_in(folder, globals, &sites);
    let sent = [
        ("Client-Cert".to_owned(), ":YQ==:".to_owned()),
        ("Client-Cert-Chain".to_owned(), ":Yg==:".to_owned()),
    ];
    let fields = "Client-Cert: :YQ==:\r\nClient-Cert-Chain: :Yg==:\r\nclient_cert: :Zg==:\r\n\
        Connection: keep-alive, Client-Cert\r\n";
    let own = [("Client-Cert".to_owned(), field_of(&identity))];
    let plain = Client::connect(&address.to_string());
    for (mut client, expected) in
        [(plain, &sent[..]), (connect(&subject, None), &sent), (connect(&subject, Some(&identity)), &own)]
    {
        client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        assert_eq!(client.read().text(), "ok");
        let seen = upstream.seen();
        assert_eq!(identities(&seen.last().expect("a request").head), expected);
    }
}

#[test]
fn a_handler_gets_the_certificate() {
    let (folder, identity) = folder_and_client();
    folder.write(
        "server.mjs",
        "export default { fetch: (request) => new Response(`${request.headers.get('client-cert')} \
         ${[...request.headers.keys()].filter((name) => name.includes('cert'))}`) };\n",
    );
    let subject = Subject::start_in(folder, "", &site("verify_if_given", "\tapp ./server.mjs"));
    subject.onehop.process.wait_for_event("app_ready");
    let response = connect(&subject, Some(&identity)).ask("GET", "/", FORGED);
    assert_eq!(response.text(), format!("{} client-cert", field_of(&identity)));
    assert_eq!(connect(&subject, None).ask("GET", "/", FORGED).text(), "null ");
}
