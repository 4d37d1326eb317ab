//! `onehop bench` over HTTPS, the real program, against onehop with a certificate of its local authority.

use std::path::PathBuf;

use onehop_testkit::{Finished, Folder, Onehop, Program};
use serde_json::Value;

/// A site with a certificate of the local authority.
struct Site {
    server: Onehop,
    folder: Folder,
}

impl Site {
    fn start() -> Site {
        let folder = Folder::new();
        let data = folder.join("data");
        folder.write(
            "Onehopfile",
            format!(
                "{{\n\tadmin 127.0.0.1:0\n\tauto_https disable_redirects\n\tdata_dir {}\n}}\n\
                 https://localhost:0 {{\n\tbind 127.0.0.1\n\trespond \"hello\"\n}}\n",
                data.display()
            ),
        );
        Site { server: Onehop::start_in(folder.path()), folder }
    }

    fn url(&self) -> String {
        self.server.address.replace("127.0.0.1", "https://localhost")
    }

    fn root(&self) -> PathBuf {
        self.folder.join("data/tls/pki/authorities/local/root.crt")
    }

    fn bench(&self, arguments: &[&str]) -> Finished {
        let root = self.root();
        let trust = ["--cacert", root.to_str().unwrap(), "--json", "-", "--quiet"];
        Program::new(std::iter::once(&"bench").chain(arguments).chain(&trust)).finish()
    }

    /// Handshakes that the server counted: full and resumed.
    fn handshakes(&self) -> [u64; 2] {
        let metrics = self.server.metrics();
        ["full", "resumed"].map(|kind| {
            let name = format!("onehop_tls_handshakes_total{{kind=\"{kind}\"}} ");
            let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
            line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
        })
    }
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

fn only_run(finished: &Finished) -> Value {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
    json(finished)["loads"][0]["runs"][0].take()
}

#[test]
fn answers_over_https_count_and_a_kept_connection_has_one_handshake() {
    let site = Site::start();
    let https = site.url();
    let run = only_run(&site.bench(&[&https, "-n", "500", "-c", "4", "--runs", "1"]));
    assert_eq!(run["total"]["good"], 500, "{run:#}");
    assert_eq!((&run["tls"]["full"], &run["tls"]["resumed"]), (&4.into(), &0.into()), "{run:#}");
    let negotiated = &run["tls"]["negotiated"][0];
    assert_eq!((&negotiated["version"], &negotiated["group"]), (&"TLS 1.3".into(), &"X25519MLKEM768".into()));
}

#[test]
fn a_certificate_that_is_not_trusted_ends_the_load_before_it_begins() {
    let site = Site::start();
    let https = site.url();
    for arguments in [&[https.as_str()][..], &["max", &https], &["compare", &https, &https]] {
        let finished = Program::new(std::iter::once(&"bench").chain(arguments)).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{}", finished.stderr);
        for part in ["is not trusted", "--cacert FILE", "--insecure"] {
            assert!(finished.stderr.contains(part), "{arguments:?}: {}", finished.stderr);
        }
    }
    let wrong = https.replace("localhost", "127.0.0.1");
    let finished = site.bench(&[&wrong]);
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    let unverified =
        Program::new(["bench", &https, "-n", "10", "--runs", "1", "-k", "--json", "-", "-q"]).finish();
    assert_eq!(unverified.code, Some(0), "{}", unverified.stderr);
    let report = json(&unverified);
    let codes: Vec<&Value> =
        report["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["code"]).collect();
    assert!(codes.contains(&&"unverified".into()), "{codes:?}");
}

#[test]
fn new_connections_resume_sessions_unless_every_handshake_is_to_be_full() {
    let site = Site::start();
    let https = site.url();
    for (sessions, expected) in [("resume", [4, 196]), ("full", [200, 0])] {
        let before = site.handshakes();
        let arguments = [&https, "-n", "200", "-c", "4", "--runs", "1", "--new-connections"];
        let run = only_run(&site.bench(&[&arguments[..], &["--tls-sessions", sessions]].concat()));
        assert_eq!(run["total"]["good"], 200, "{run:#}");
        let seen = ["full", "resumed"].map(|kind| run["tls"][kind].as_u64().unwrap());
        assert_eq!(seen, expected, "{run:#}");
        let [full, resumed] = site.handshakes();
        // Before the load its certificate was looked at once.
        assert_eq!([full - before[0] - 1, resumed - before[1]], seen, "the server counted the same");
    }
}

#[test]
fn https_is_compared_with_http() {
    let site = Site::start();
    let https = site.url();
    let plain = Onehop::start("http://:0 {\n\tbind 127.0.0.1\n\trespond \"hello\"\n}\n");
    let http = format!("http://{}", plain.address);
    let finished = site.bench(&[
        "compare",
        &format!("plain={http}"),
        &format!("encrypted={https}"),
        "--rounds",
        "1",
        "-d",
        "200ms",
        "--warm-up",
        "100ms",
        "-c",
        "4",
    ]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let report = json(&finished);
    for sample in report["comparison"]["samples"].as_array().unwrap() {
        let is_encrypted = sample["arm"] == 1 || sample["arm"] == "encrypted";
        assert_eq!(sample["run"]["tls"].is_null(), !is_encrypted, "{sample:#}");
        assert!(sample["run"]["total"]["good"].as_u64().unwrap() > 0, "{sample:#}");
    }
}
