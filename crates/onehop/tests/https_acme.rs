//! Certificates from an ACME server, from the Onehopfile to the client. `ONEHOP_PEBBLE` names a folder with the programs
//! `pebble` and `pebble-challtestsrv`; without it each test says that it is skipped.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use onehop_certificates::loaded::Loaded;
use onehop_testkit::pebble::{EXTERNAL_KEY, Options, Pebble};
use onehop_testkit::tls::{
    Authority, CertificateDer, Identity, KeyKind, Offer, TlsClient, Validity, certificates_in,
};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, Onehop, Program, free_address, wait_at_most};
use rustix::process::Signal;
use serde_json::Value;

/// Orders take several round trips and a validation, on a machine that may be busy.
const ORDER_TIME: Duration = Duration::from_secs(60);

/// A Pebble that validates at the ports of a server, and the server's folder.
struct Deployment {
    pebble: Pebble,
    http: u16,
    https: u16,
    folder: Folder,
}

impl Deployment {
    fn new(options: Options) -> Option<Deployment> {
        let (http, https) = (free_address().port(), free_address().port());
        let pebble = Pebble::start(Options { http_port: http, tls_port: https, ..options })?;
        Some(Deployment { pebble, http, https, folder: Folder::new() })
    }

    /// Writes an Onehopfile with a site of each name.
    fn write(&self, names: &[&str], globals: &str) {
        let data = self.folder.join("data");
        let (directory, root) = (self.pebble.directory(), self.pebble.root_file());
        let mut text = format!(
            "{{\n\tadmin off\n\tdata_dir {}\n\tacme_ca {directory}\n\tacme_ca_root {}\n\thttp_port {}\n\
             \thttps_port {}\n{globals}\n}}\n",
            data.display(),
            root.display(),
            self.http,
            self.https,
        );
        for name in names {
            let _ = writeln!(text, "{name} {{\n\tbind 127.0.0.1\n\trespond hello\n}}");
        }
        self.folder.write("Onehopfile", text);
    }

    /// Adds directives to every site.
    fn add(&self, directives: &str) {
        let file = self.folder.join("Onehopfile");
        let text = fs::read_to_string(&file).expect("the Onehopfile");
        fs::write(file, text.replace("\trespond", &format!("\t{directives}\n\trespond"))).expect("written");
    }

    fn start(&self) -> Onehop {
        let folder = self.folder.path();
        Program::new(["run", "--log", "json"]).inside(folder).control_in(folder).serve()
    }

    /// The certificate that a client is shown, whoever it is of; `None` where there is none.
    fn chain(&self, name: &str) -> Option<Vec<CertificateDer<'static>>> {
        // Pebble makes its issuers when it starts: whoever signed what is in the store is trusted.
        self.chain_below(certificates_in(&self.stored(name, "crt")?).last()?, name)
    }

    /// The same of clients that trust this issuer.
    fn chain_below(
        &self,
        issuer: &CertificateDer<'static>,
        name: &str,
    ) -> Option<Vec<CertificateDer<'static>>> {
        let stored = certificates_in(&self.stored(name, "crt")?);
        let client = TlsClient::new(Offer::trusting(std::slice::from_ref(issuer)));
        let address = format!("127.0.0.1:{}", self.https);
        let mut client = client.connect(&address, name).map(|connection| {
            let chain = connection.chain().to_vec();
            (chain, onehop_testkit::Client::over_tls(connection, name))
        });
        let (chain, client) = client.as_mut().ok()?;
        assert_eq!(client.get("/").text(), "hello");
        assert!(*chain == stored, "the stored certificate is shown");
        Some(chain.clone())
    }

    /// The file of a name in the store of certificates.
    fn stored(&self, name: &str, ending: &str) -> Option<PathBuf> {
        let issuers = std::fs::read_dir(self.folder.join("data/tls/certificates")).ok()?;
        let files = issuers
            .filter_map(|issuer| Some(issuer.ok()?.path().join(name).join(format!("{name}.{ending}"))));
        files.into_iter().find(|file| file.is_file())
    }

    fn wait_for_chain(&self, name: &str) -> Vec<CertificateDer<'static>> {
        wait_at_most(ORDER_TIME, &format!("a certificate for {name}"), || self.chain(name))
    }

    /// Replaces the certificate in the store.
    fn replace_stored(&self, name: &str, other: &Identity) {
        for (ending, pem) in [("crt", &other.chain_pem), ("key", &other.key_pem)] {
            fs::write(self.stored(name, ending).expect("stored"), pem).expect("written");
        }
    }

    /// The serial number of the certificate in the store.
    fn serial(&self, name: &str) -> String {
        let [chain, key] = ["crt", "key"].map(|ending| self.stored(name, ending).expect("stored"));
        Loaded::from_files(&chain, &key).expect("a certificate").serial
    }

    /// Orders that Pebble has taken; not those that it has refused.
    fn orders(&self) -> usize {
        self.pebble.log().matches("Added order ").count()
    }
}

const NAME: &str = "acme.example.com";

fn wait_for_event(onehop: &Onehop, name: &str) -> Value {
    wait_at_most(ORDER_TIME, name, || {
        onehop.process.events().into_iter().find(|event| event["event"] == name)
    })
}

#[test]
fn three_lines_get_a_certificate_and_a_restart_orders_none() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "");
    let onehop = deployment.start();
    let chain = deployment.wait_for_chain(NAME);
    assert_eq!(deployment.orders(), 1, "{}", deployment.pebble.log());
    let event = onehop.process.wait_for_event("certificate_obtained");
    assert_eq!(event["name"], NAME);
    drop(onehop);

    let _onehop = deployment.start();
    assert!(deployment.wait_for_chain(NAME) == chain);
    assert_eq!(deployment.orders(), 1, "a stored certificate is used");
}

#[test]
fn a_plain_site_has_https_after_a_reload_without_its_scheme() {
    // The last step of docs/guide/small-vps.md.
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[&format!("http://{NAME}")], "");
    let _onehop = deployment.start();
    let stream = TcpStream::connect(("127.0.0.1", deployment.http)).expect("a connection");
    let mut client = onehop_testkit::Client::over(stream, NAME).expect("a client");
    assert_eq!(client.get("/").text(), "hello");
    deployment.write(&[NAME], "");
    let folder = deployment.folder.path();
    let reloaded = Program::new(["reload"]).inside(folder).control_in(folder).finish();
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
    deployment.wait_for_chain(NAME);
}

#[test]
fn each_kind_of_challenge_is_answered_by_the_server_itself() {
    // One is left in each round.
    for disabled in ["disable_http_challenge", "disable_tlsalpn_challenge"] {
        let Some(deployment) = Deployment::new(Options::default()) else { return };
        deployment.write(&[NAME], "");
        let text = std::fs::read_to_string(deployment.folder.join("Onehopfile")).expect("the Onehopfile");
        let tls = format!(
            "tls {{\n\t\tissuer acme {{\n\t\t\tdir {}\n\t\t\t{disabled}\n\t\t}}\n\t}}\n\trespond",
            deployment.pebble.directory()
        );
        deployment.folder.write("Onehopfile", text.replace("respond", &tls));
        let _onehop = deployment.start();
        deployment.wait_for_chain(NAME);
    }
}

#[test]
fn a_certificate_on_demand_is_there_for_the_first_request() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    let ask = Upstream::answering(|request| {
        let status = if request.head.contains("?domain=acme.example.com ") { "204 Yes" } else { "403 No" };
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    });
    deployment.write(
        &["https://"],
        &format!("\ton_demand_tls {{\n\t\tpermission http http://{}\n\t}}", ask.address()),
    );
    deployment.add("tls {\n\t\ton_demand\n\t}");
    let _onehop = deployment.start();
    // It knows the issuer only afterwards; the server does not mind.
    let client = TlsClient::new(Offer::trusting(std::slice::from_ref(&deployment.pebble.root)));
    let address = format!("127.0.0.1:{}", deployment.https);
    assert!(client.connect(&address, "other.example.com").is_err());
    assert_eq!(deployment.orders(), 0, "{}", deployment.pebble.log());
    assert!(client.connect(&address, NAME).is_err(), "another root is trusted");
    deployment.chain(NAME).expect("a certificate since the first handshake");
    assert_eq!(deployment.orders(), 1, "{}", deployment.pebble.log());
}

/// A restart after the certificate in the store was replaced by an older one.
fn renewed(validity: Validity, is_renewal: bool) {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "");
    let onehop = deployment.start();
    let first = deployment.wait_for_chain(NAME);
    drop(onehop);
    let old = Authority::new("of before").issue_as(&[NAME], KeyKind::Ecdsa, validity);
    deployment.replace_stored(NAME, &old);

    let onehop = deployment.start();
    let event = wait_for_event(&onehop, "certificate_obtained");
    assert_eq!((&event["name"], &event["is_renewal"]), (&NAME.into(), &is_renewal.into()), "{event}");
    let new = deployment.wait_for_chain(NAME);
    assert!(new != first && new != old.chain);
    assert_eq!(deployment.orders(), 2, "{}", deployment.pebble.log());
}

#[test]
fn a_certificate_that_ends_soon_is_renewed() {
    renewed(Validity::Ending, true);
}

#[test]
fn a_certificate_that_ended_while_the_machine_was_off_is_replaced() {
    renewed(Validity::Expired, false);
}

#[test]
fn a_server_that_is_killed_while_an_order_is_under_way_gets_it_after_its_restart() {
    let options = Options { validation_seconds: Some("2"), ..Options::default() };
    let Some(deployment) = Deployment::new(options) else { return };
    deployment.write(&[NAME], "");
    for number in 1..=2 {
        let onehop = deployment.start();
        wait_at_most(ORDER_TIME, "an order", || (deployment.orders() >= number).then_some(()));
        // Dropped, it is killed.
        drop(onehop);
    }
    let _onehop = deployment.start();
    deployment.wait_for_chain(NAME);
}

#[test]
fn a_name_that_fails_keeps_no_other_from_being_served() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&["www.blocked.example", NAME], "");
    let onehop = deployment.start();
    deployment.wait_for_chain(NAME);
    let event = wait_for_event(&onehop, "certificate_failed");
    assert_eq!(event["name"], "www.blocked.example");
    assert!(event["reason"].as_str().expect("text").contains("This issuer does not issue"), "{event}");
}

#[test]
fn a_challenge_is_not_tried_where_nothing_listens_for_it() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "\tauto_https disable_redirects");
    let onehop = deployment.start();
    deployment.wait_for_chain(NAME);
    assert_eq!(deployment.orders(), 1, "http-01 failed first: {}", deployment.pebble.log());
    drop(onehop);

    let Some(deployment) = Deployment::new(Options::default()) else { return };
    let elsewhere = format!("{NAME}:{}", free_address().port());
    deployment.write(&[&elsewhere], "\tauto_https disable_redirects");
    let onehop = deployment.start();
    let event = onehop.process.wait_for_event("certificate_failed");
    let reason = event["reason"].as_str().expect("text");
    assert!(
        reason.contains(&format!("for http-01 a site has to listen on port {}", deployment.http)),
        "{reason}"
    );
    assert!(
        reason.contains(&format!("for tls-alpn-01 a site has to listen on port {}", deployment.https)),
        "{reason}"
    );
    assert_eq!(deployment.orders(), 0);
}

#[test]
fn an_account_of_caddys_is_used() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "\temail me@a.example");
    let onehop = deployment.start();
    deployment.wait_for_chain(NAME);
    drop(onehop);
    // The same account as Caddy would keep it; everything else is gone.
    let folder = deployment.folder.join("data/tls/acme");
    let issuer = fs::read_dir(&folder).expect("accounts").next().expect("one").expect("one").path();
    let user = issuer.join("users/me@a.example");
    let ours = fs::read_to_string(user.join("credentials.json")).expect("an account");
    let ours: serde_json::Value = serde_json::from_str(&ours).expect("JSON");
    let key = ours["key_pkcs8"].as_str().expect("a key").replace('-', "+").replace('_', "/");
    let padding = "=".repeat(key.len().wrapping_neg() % 4);
    fs::write(
        user.join("me.key"),
        format!("-----BEGIN PRIVATE KEY-----\n{key}{padding}\n-----END PRIVATE KEY-----\n"),
    )
    .expect("written");
    fs::write(user.join("me.json"), format!("{{\"location\": {}}}", ours["id"])).expect("written");
    fs::remove_file(user.join("credentials.json")).expect("removed");
    fs::remove_dir_all(deployment.folder.join("data/tls/certificates")).expect("removed");

    let _onehop = deployment.start();
    deployment.wait_for_chain(NAME);
    assert_eq!(deployment.orders(), 2);
    let log = deployment.pebble.log();
    assert!(!log.contains("There are now 2 accounts"), "{log}");
}

#[test]
fn a_dns_record_is_removed_when_the_server_ends_during_an_order_and_after_a_kill_by_the_next_order() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    let (hook, calls) = (deployment.folder.join("hook"), deployment.folder.join("calls"));
    deployment.folder.write("hook", format!("#!/bin/sh\necho \"$1 $2 $3\" >> {}\n", calls.display()));
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("permissions");
    deployment.write(&[NAME], "");
    deployment.add(&format!("tls {{\n\t\tdns exec {}\n\t\tpropagation_delay 10m\n\t}}", hook.display()));
    let called = || {
        let text = fs::read_to_string(&calls).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let wait_for_calls = |count| {
        wait_at_most(ORDER_TIME, "calls of the hook", || Some(called()).filter(|calls| calls.len() >= count))
    };
    let removed = |call: &str| {
        assert!(call.starts_with(&format!("present _acme-challenge.{NAME} ")), "{call}");
        call.replace("present", "remove")
    };
    let mut onehop = deployment.start();
    wait_for_calls(1);
    onehop.process.signal(Signal::TERM);
    assert!(onehop.process.wait().is_some());
    let calls = called();
    assert_eq!(calls[1..], [removed(&calls[0])]);

    let onehop = deployment.start();
    wait_for_calls(3);
    // Dropped, it is killed.
    drop(onehop);
    let _onehop = deployment.start();
    let calls = wait_for_calls(5);
    assert_eq!((&calls[3], calls.len()), (&removed(&calls[2]), 5), "{calls:?}");
    assert!(calls[4] != calls[2] && calls[4].starts_with("present "), "{calls:?}");
}

#[test]
fn a_revoked_certificate_is_replaced() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "");
    let onehop = deployment.start();
    let first = deployment.wait_for_chain(NAME);
    let serial = deployment.serial(NAME);
    assert_eq!(deployment.pebble.certificate_status(&serial)["Status"], "Valid");
    let folder = deployment.folder.path();
    let revoke = Program::new(["certs", "revoke", NAME, "--reason", "superseded"]);
    let revoked = revoke.inside(folder).control_in(folder).finish();
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let expected =
        format!("revoked the certificate for {NAME} at 127.0.0.1-{}-dir\n", deployment.pebble.acme.port());
    assert!(revoked.stdout.starts_with(&expected), "{}", revoked.stdout);
    let status = deployment.pebble.certificate_status(&serial);
    assert_eq!((&status["Status"], &status["Reason"]), (&"Revoked".into(), &4.into()), "{status}");
    let event = wait_for_event(&onehop, "certificate_revoked");
    assert_eq!(event["name"], NAME);

    let obtained = onehop.process.wait_for_events("certificate_obtained", 2);
    assert_eq!(obtained[1]["is_renewal"], true);
    assert!(deployment.wait_for_chain(NAME) != first);
    assert_eq!(deployment.pebble.certificate_status(&deployment.serial(NAME))["Status"], "Valid");
    assert_eq!(deployment.orders(), 2, "{}", deployment.pebble.log());
}

#[test]
fn the_next_issuer_is_asked_with_its_external_account_where_the_first_cannot_be_reached() {
    let options = Options { wants_external_account: true, ..Options::default() };
    let Some(deployment) = Deployment::new(options) else { return };
    deployment.write(&[NAME], "");
    let (nobody, pebble) = (free_address(), &deployment.pebble);
    deployment.add(&format!(
        "tls {{\n\t\tissuer acme https://{nobody}/dir\n\t\tissuer acme {} {{\n\t\t\teab kid {EXTERNAL_KEY}\n\
         \t\t\ttrusted_roots {}\n\t\t}}\n\t}}",
        pebble.directory(),
        pebble.root_file().display()
    ));
    let onehop = deployment.start();
    let obtained = wait_for_event(&onehop, "certificate_obtained");
    assert_eq!(obtained["issuer"], format!("127.0.0.1-{}-dir", pebble.acme.port()));
    let failed = wait_for_event(&onehop, "certificate_failed");
    assert_eq!(
        (&failed["issuer"], &failed["next_try_ms"]),
        (&format!("127.0.0.1-{}-dir", nobody.port()).into(), &0.0.into())
    );
    deployment.wait_for_chain(NAME);
    assert_eq!(deployment.orders(), 1, "{}", pebble.log());
}

#[test]
fn a_renewal_that_cannot_be_written_leaves_the_old_certificate_as_it_is() {
    let Some(deployment) = Deployment::new(Options::default()) else { return };
    deployment.write(&[NAME], "");
    let onehop = deployment.start();
    deployment.wait_for_chain(NAME);
    drop(onehop);
    let authority = Authority::new("of before");
    let old = authority.issue_as(&[NAME], KeyKind::Ecdsa, Validity::Ending);
    deployment.replace_stored(NAME, &old);

    // No file may have a byte: writes fail as on a full disk.
    let full = "trap '' XFSZ && ulimit -S -f 0 && exec \"$0\" \"$@\"";
    let folder = deployment.folder.path();
    let program = Program::new(["run", "--log", "json"]).inside(folder).control_in(folder);
    let onehop = program.through(&["/bin/sh", "-c", full]).serve();
    let failed = wait_for_event(&onehop, "certificate_failed");
    let reason = failed["reason"].as_str().expect("text");
    for expected in
        ["cannot be stored, which is tried again: cannot write /", ".tmp: ", "; raise the limit on the size"]
    {
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(failed["next_try_ms"], 60_000.0);
    assert_eq!(deployment.chain_below(&authority.root, NAME), Some(old.chain), "the old one is served");
    assert_eq!(deployment.orders(), 2, "{}", deployment.pebble.log());
    let chain = deployment.stored(NAME, "crt").expect("stored");
    let mut files: Vec<_> = fs::read_dir(chain.parent().expect("a folder"))
        .expect("files")
        .flatten()
        .map(|file| file.file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["crt", "json", "key"].map(|ending| OsString::from(format!("{NAME}.{ending}"))));
}

const KEY: &str = "c2VjcmV0IG9mIHRoZSB0ZXN0cyBhbG9uZSwgMzIgYnl0ZXM=";

/// BIND with the zone `example.com`, which [`KEY`] may update. Ends with the value.
struct Named {
    address: SocketAddr,
    folder: Folder,
    process: Child,
}

impl Named {
    /// `None` where it is not installed.
    fn start() -> Option<Named> {
        let program = ["/usr/sbin/named", "/usr/bin/named"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            // The test harness hides what `println!` writes in a test that passes.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: there is no named\n");
            return None;
        };
        let (folder, address) = (Folder::new(), free_address());
        let (path, port) = (folder.path().display(), address.port());
        folder.write(
            "zone",
            "$TTL 60\n@ IN SOA ns root 1 60 60 60 60\n@ IN NS ns\nns IN A 127.0.0.1\n* IN A 127.0.0.1\n",
        );
        let settings = format!(
            "options {{ directory \"{path}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             pid-file none; session-keyfile \"{path}/session\"; recursion no; dnssec-validation no; }};\n\
             controls {{ }};\n\
             key \"acme\" {{ algorithm hmac-sha256; secret \"{KEY}\"; }};\n\
             zone \"example.com\" {{ type primary; file \"{path}/zone\"; allow-update {{ key \"acme\"; }}; }};\n"
        );
        folder.write("named.conf", settings);
        let log = fs::File::create(folder.join("log")).expect("a log");
        let mut command = Command::new(program);
        command.arg("-g").arg("-c").arg(folder.join("named.conf")).stderr(log);
        let mut named = Named { address, process: command.spawn().expect("named"), folder };
        wait_at_most(ORDER_TIME, "named to listen", || {
            let ended = named.process.try_wait().expect("a child");
            assert!(ended.is_none(), "{}", named.log());
            TcpStream::connect(address).ok()
        });
        Some(named)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_wildcard_is_proved_by_updates_of_its_zone() {
    let Some(named) = Named::start() else { return };
    let options = Options { dns_server: Some(named.address), ..Options::default() };
    let Some(deployment) = Deployment::new(options) else { return };
    deployment.write(&["*.example.com"], "");
    deployment.add(&format!(
        "tls {{\n\t\tdns rfc2136 {{\n\t\t\tkey_name acme\n\t\t\tkey {KEY}\n\t\t\tserver {0}\n\t\t}}\n\t\tresolvers {0}\n\t}}",
        named.address
    ));
    let onehop = deployment.start();
    let obtained = wait_at_most(ORDER_TIME, "a certificate", || {
        let failed = onehop.process.events().into_iter().find(|event| event["event"] == "certificate_failed");
        assert!(failed.is_none(), "{failed:?}\n{}", named.log());
        onehop.process.events().into_iter().find(|event| event["event"] == "certificate_obtained")
    });
    assert_eq!(obtained["name"], "*.example.com");
    let stored = certificates_in(&deployment.stored("wildcard_.example.com", "crt").expect("stored"));
    let client = TlsClient::new(Offer::trusting(&stored[stored.len() - 1..]));
    let address = format!("127.0.0.1:{}", deployment.https);
    assert!(client.connect(&address, "any.example.com").expect("a connection").chain() == stored);
    let log = named.log();
    assert!(log.contains("adding an RR at '_acme-challenge.example.com' TXT"), "{log}");
    assert!(log.contains("deleting an RR at _acme-challenge.example.com TXT"), "{log}");
}
