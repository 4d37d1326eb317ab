//! Certificates as an operator sees them: what is listed, what fails and why, whose root is trusted, what is taken over
//! from Caddy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use onehop_testkit::{Finished, Folder, Onehop, Program, TIMEOUT, wait_for};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

const DAY: Duration = Duration::from_secs(86_400);

/// A command in the folder of a server, whose data directory is below it.
fn onehop(folder: &Folder, words: &[&str]) -> Finished {
    Program::new(words).inside(folder.path()).control_in(folder.path()).finish()
}

/// A folder whose Onehopfile has these global options and these sites.
fn folder(global: &str, sites: &str) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Onehopfile",
        format!(
            "{{\n\tadmin 127.0.0.1:0\n\tauto_https disable_redirects\n\tdata_dir ./data\n{global}}}\n{sites}"
        ),
    );
    folder
}

fn site(name: &str, body: &str) -> String {
    format!("https://{name}:0 {{\n\tbind 127.0.0.1\n{body}\trespond hello\n}}\n")
}

/// The body of a response over TLS, from a client that trusts this root alone.
fn get(address: &str, name: &str, root: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(root.as_bytes()).expect("a certificate");
    roots.add(root).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let settings = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let settings = settings.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let host = name.to_str().into_owned();
    let connection = ClientConnection::new(Arc::new(settings), name).expect("settings");
    let tcp = TcpStream::connect(address).expect("connected");
    tcp.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut stream = StreamOwned::new(connection, tcp);
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut response = String::new();
    stream.read_to_string(&mut response).map_err(|error| error.to_string())?;
    Ok(response.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned())
}

/// Replaces what differs from run to run.
fn redacted(certificates: &str) -> String {
    let mut value: Value = serde_json::from_str(certificates).expect("JSON");
    for certificate in value["certificates"].as_array_mut().expect("a list") {
        for field in ["expires_at", "seconds_left", "renews_in_seconds", "failed_seconds_ago", "file"] {
            if !certificate[field].is_null() {
                certificate[field] = format!("[{field}]").into();
            }
        }
    }
    serde_json::to_string_pretty(&value).expect("JSON")
}

/// A port at which nobody listens: it was free a moment ago.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// An authority and a certificate that it has issued, valid from yesterday for 90 days.
struct Issued {
    root: String,
    root_key: String,
    chain: String,
    key: String,
}

fn issued(name: &str) -> Issued {
    let valid = |mut params: CertificateParams| {
        params.not_before = (SystemTime::now() - DAY).into();
        params.not_after = (SystemTime::now() + 89 * DAY).into();
        params
    };
    let mut of_root = valid(CertificateParams::default());
    of_root.distinguished_name.push(DnType::CommonName, "An authority of the test");
    of_root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_key = KeyPair::generate().expect("a key");
    let root_pem = root_key.serialize_pem();
    let root = CertifiedIssuer::self_signed(of_root, root_key).expect("a root");
    let key = KeyPair::generate().expect("a key");
    let leaf = valid(CertificateParams::new([name.to_owned()]).expect("a name"));
    let leaf = leaf.signed_by(&key, &root).expect("a certificate");
    Issued { root: root.pem(), root_key: root_pem, chain: leaf.pem(), key: key.serialize_pem() }
}

#[test]
fn every_help_teaches_with_an_example() {
    for command in ["certs", "certs revoke", "certs import", "trust", "untrust"] {
        let help = Program::new(command.split(' ').chain(["--help"])).finish();
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains("Examples:\n"), "{command}: {}", help.stdout);
        insta::assert_snapshot!(format!("help_{}", command.replace(' ', "_")), help.stdout);
    }
}

#[test]
fn a_certificate_of_the_local_authority_is_listed_and_its_root_verifies_the_chain() {
    let folder = folder("", &site("localhost", ""));
    let server = Onehop::start_in(folder.path());
    let listed = onehop(&folder, &["certs"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.starts_with("1 certificate\n\nNAME "), "{}", listed.stdout);
    assert!(listed.stdout.contains("localhost  valid  local "), "{}", listed.stdout);
    insta::assert_snapshot!("certs_json", redacted(&onehop(&folder, &["certs", "--json"]).stdout));
    let status = onehop(&folder, &["status"]).stdout;
    assert!(status.contains("certified  1 certificate\n"), "{status}");

    for (name, expected) in [
        ("localhost", "nothing was changed\nthe issuer `local` cannot revoke certificates: remove"),
        (
            "other.example",
            "nothing was changed\nonehop has obtained no certificate for other.example: `onehop certs` lists",
        ),
    ] {
        let refused = onehop(&folder, &["certs", "revoke", name]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert_eq!(onehop(&folder, &["certs", "revoke", "a b/c"]).code, Some(2));

    let printed = onehop(&folder, &["trust", "--print"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    assert_eq!(get(&server.address, "localhost", &printed.stdout).as_deref(), Ok("hello"));
    let stranger = issued("localhost").root;
    assert!(get(&server.address, "localhost", &stranger).is_err());

    let metrics = server.metrics();
    assert!(metrics.contains("\nonehop_certificates_failing 0\n"), "{metrics}");
    let end = metrics.split("onehop_certificate_expiry_timestamp_seconds{name=\"localhost\"} ").nth(1);
    let end: u64 = end.and_then(|rest| rest.lines().next()?.parse().ok()).expect("a time");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    assert!((now..now + DAY.as_secs()).contains(&end), "{end}");
}

#[test]
fn a_root_that_is_printed_before_the_first_start_is_the_servers() {
    let folder = folder("", &site("localhost", ""));
    let root = onehop(&folder, &["trust", "--print"]).stdout;
    for named in [["--file", "Onehopfile"], ["--data-dir", "data"], ["--storage", "data/tls"]] {
        assert_eq!(onehop(&folder, &["trust", "--print", named[0], named[1]]).stdout, root, "{named:?}");
    }
    let server = Onehop::start_in(folder.path());
    assert_eq!(get(&server.address, "localhost", &root).as_deref(), Ok("hello"));
}

#[test]
fn trust_without_root_names_the_line_to_type() {
    let folder = folder("", &site("localhost", ""));
    let uid = "1000123";
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::fs::create_dir(folder.join("data")).expect("a folder");
        std::os::unix::fs::chown(folder.join("data"), Some(1_000_123), Some(1_000_123)).expect("root may");
    }
    let ask = |words: &[&str]| {
        let program = Program::new(words).inside(folder.path());
        match is_root {
            true => program.through(&["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"]).finish(),
            false => program.finish(),
        }
    };
    if !std::path::Path::new("/usr/sbin/update-ca-certificates").exists()
        || ask(&["--version"]).code != Some(0)
    {
        eprintln!("skipped: needs Debian's ca-certificates, and a program that other users may execute");
        return;
    }
    let nothing = ask(&["untrust"]);
    assert!(nothing.stderr.starts_with("error: there is no local authority in "), "{}", nothing.stderr);
    for command in ["trust", "untrust"] {
        let refused = ask(&[command]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        let line = format!("onehop {command} --storage {}\n", folder.join("data/tls").display());
        assert!(refused.stderr.starts_with("error: only root may change "), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("\n  run: sudo ") && refused.stderr.ends_with(&line),
            "{}",
            refused.stderr
        );
    }
    assert!(folder.join("data/tls/pki/authorities/local/root.crt").exists());
}

#[test]
fn what_is_imported_from_caddy_is_served_without_an_order() {
    let port = closed_port();
    let issuer = format!("127.0.0.1-{port}-dir");
    let global = format!("\tacme_ca https://127.0.0.1:{port}/dir\n");
    let folder = folder(&global, &site("a.example", ""));
    let (issued, authority) = (issued("a.example"), issued("other.example"));
    let base = format!("caddy/certificates/{issuer}/a.example");
    std::fs::create_dir_all(folder.join(&base)).expect("a folder");
    std::fs::create_dir_all(folder.join(&format!("caddy/certificates/{issuer}/b.example")))
        .expect("a folder");
    std::fs::create_dir_all(folder.join("caddy/pki/authorities/local")).expect("a folder");
    for (path, content) in [
        (format!("{base}/a.example.crt"), issued.chain.as_str()),
        (format!("{base}/a.example.key"), &issued.key),
        (format!("{base}/a.example.json"), "{\"sans\":[\"a.example\"]}"),
        (format!("caddy/certificates/{issuer}/b.example/b.example.crt"), &issued.chain),
        ("caddy/pki/authorities/local/root.crt".to_owned(), &authority.root),
        ("caddy/pki/authorities/local/root.key".to_owned(), &authority.root_key),
    ] {
        folder.write(&path, content);
    }
    let imported = onehop(&folder, &["certs", "import", "caddy"]);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let shown = imported.stdout.replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!("import", shown.replace(&port.to_string(), "PORT"));
    let again = onehop(&folder, &["certs", "import", "caddy", "--storage", "data/tls"]);
    assert!(again.stdout.starts_with("copied 0 certificates, 0 accounts from caddy to "), "{}", again.stdout);
    assert!(again.stdout.contains("the store has it, or a newer one"), "{}", again.stdout);
    let nothing = onehop(&folder, &["certs", "import", "data"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("is no storage folder of Caddy's"), "{}", nothing.stderr);

    assert_eq!(onehop(&folder, &["trust", "--print"]).stdout, authority.root);
    let server = Onehop::start_in(folder.path());
    assert_eq!(get(&server.address, "a.example", &issued.root).as_deref(), Ok("hello"));
    let listed = onehop(&folder, &["certs"]).stdout;
    assert!(listed.starts_with("1 certificate\n") && listed.contains("a.example  valid "), "{listed}");
    assert!(!server.process.stderr().contains("certificate_failed"), "{}", server.process.stderr());
}

#[test]
fn an_issuer_that_cannot_be_reached_is_shown_with_the_reason_and_the_next_step() {
    let port = closed_port();
    let global = format!("\tacme_ca https://127.0.0.1:{port}/dir\n");
    let own = issued("own.example");
    // It needs no port that an issuer knows.
    let proved = "\ttls {\n\t\tdns exec /bin/true\n\t}\n";
    let sites =
        site("a.example", proved) + &site("localhost", "") + &site("own.example", "\ttls cert.pem key.pem\n");
    let folder = folder(&global, &sites);
    folder.write("cert.pem", &own.chain);
    folder.write("key.pem", &own.key);
    let server = Onehop::start_in(folder.path());
    let listed = wait_for("a failed order", || {
        let listed = onehop(&folder, &["certs"]).stdout;
        listed.starts_with("3 certificates, 1 with a problem\n").then_some(listed)
    });
    let reason = format!("the ACME server https://127.0.0.1:{port}/dir must be reachable from here");
    assert!(listed.contains("\na.example, failed ") && listed.contains(", next attempt in "), "{listed}");
    assert!(listed.contains(&reason), "{listed}");
    let file = folder.join("cert.pem").display().to_string();
    let line = listed.lines().find(|line| line.ends_with(&file)).expect("the file");
    assert!(line.starts_with("own.example  valid    An authority of the test "), "{line}");
    assert!(line.contains(" 88 d 23 h "), "{line}");

    let status = onehop(&folder, &["status"]).stdout;
    assert!(status.contains("certified  3 certificates, 1 with a problem: see below"), "{status}");
    assert!(status.contains("\na.example, failed ") && status.contains(&reason), "{status}");
    assert!(server.metrics().contains("\nonehop_certificates_failing 1\n"), "{}", server.metrics());
    let json = redacted(&onehop(&folder, &["certs", "--json"]).stdout);
    insta::assert_snapshot!("failing_json", without_detail(&json, port));
}

/// The error of the connection is the system's, and depends on it.
fn without_detail(json: &str, port: u16) -> String {
    let mut value: Value = serde_json::from_str(json).expect("JSON");
    let failing = &mut value["certificates"][0]["reason"];
    let reason = failing.as_str().expect("a reason");
    assert!(reason.starts_with("no certificate for a.example: "), "{reason}");
    *failing = format!("[…]; {}", reason.rsplit("; ").next().unwrap_or_default()).into();
    serde_json::to_string_pretty(&value).expect("JSON").replace(&port.to_string(), "PORT")
}

#[test]
fn certs_without_a_server_says_how_to_start_one() {
    let folder = Folder::new();
    let session = Folder::new();
    let program = Program::new(["certs"]).inside(folder.path()).with_env("XDG_RUNTIME_DIR", session.path());
    let finished = program.with_env("ONEHOP_CONTROL", Path::new("/nonexistent/onehop.sock")).finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.starts_with("error: no onehop listens at "), "{}", finished.stderr);
}
