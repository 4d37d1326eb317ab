//! Caddyfiles as people have them, and what is made of each.

use crate::Environment;
use crate::detect::testing::{Folder, environment};

fn running() -> Environment {
    let occupied = ["127.0.0.1:3000", "[::]:4000"].map(|address| address.parse().unwrap()).to_vec();
    Environment { occupied, variables: vec![("API".to_owned(), "3000".to_owned())], ..environment() }
}

fn tried(text: &str) -> String {
    let folder = Folder::of(&[
        ("Caddyfile", text),
        ("dist/index.html", "<script src=/a.js>"),
        ("dist/a.js", ""),
        ("more.caddy", "header X-More 1\n"),
    ]);
    match folder.detect("", &running()) {
        Ok(setup) => folder.show(&setup),
        Err(error) => folder.plain(&format!("{error}\n")),
    }
}

#[test]
fn an_application_beside_its_caddyfile_is_started_for_today_and_run_by_onehop() {
    let folder = Folder::of(&[
        (
            "Caddyfile",
            "example.com {\n\tencode zstd gzip\n\thandle_path /api/* {\n\t\treverse_proxy localhost:3000\n\t}\n\thandle {\n\t\troot * dist\n\t\tfile_server\n\t}\n}\n",
        ),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        (
            "server.js",
            "const app = express(); app.get('/version', (q, s) => s.end()); app.listen(process.env.PORT);",
        ),
        ("dist/index.html", ""),
    ]);
    let setup = folder.detect("", &environment()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
}

#[test]
fn a_caddyfile_is_the_same_for_both_but_for_its_address() {
    let cases = [
        ":8080\nreverse_proxy :3000\n",
        "{\n\temail a@example.com\n\tservers {\n\t\tprotocols h1\n\t}\n}\n\n(site) {\n\troot * dist\n\tfile_server\n\timport more.caddy\n}\n\nwww.example.com {\n\tredir https://example.com{uri}\n}\n\nexample.com, example.org {\n\ttls internal\n\timport site\n\treverse_proxy /api/* localhost:{$API:9} {\n\t\theader_up X-Real-IP {remote_host}\n\t\ttransport http {\n\t\t\tkeepalive 30s\n\t\t\tresponse_header_timeout 5s\n\t\t}\n\t}\n\tlog {\n\t\toutput file /var/log/a.log\n\t}\n}\n",
        ":80\nreverse_proxy localhost:3000 localhost:4000 {\n\tlb_policy first\n\thealth_uri /health\n\theader_up -X-A\n}\n",
        "http://localhost:8080 {\n\t@ws path /ws/*\n\treverse_proxy @ws 127.0.0.1:4000\n\trespond \"at {port}\"\n}\n",
    ];
    let shown: Vec<String> = cases.iter().map(|text| format!("{text}\n{}", tried(text))).collect();
    insta::assert_snapshot!(shown.join("\n=====\n"));
}

#[test]
fn what_onehop_cannot_do_is_refused_with_its_line() {
    let cases = [
        ":80\nreverse_proxy localhost:3000 localhost:5000\n",
        ":80 {\n\treverse_proxy localhost:3000\n\n\tforward_auth localhost:9091 {\n\t\turi /a\n\t}\n}\n",
        ":80 {\n\treverse_proxy localhost:5000\n}\n",
        ":80 {\n\treverse_proxy application:3000\n}\n",
        ":80 {\n\treverse_proxy https://localhost:3000 unix//run/a.sock\n}\n",
        ":80 {\n\treverse_proxy localhost:3000 {\n\t\thandle_response {\n\t\t}\n\t}\n}\n",
        ":80 {\n\treverse_proxy {\n\t\tdynamic a example.com 80\n\t}\n}\n",
        ":80 {\n\tphp_fastcgi localhost:9000\n}\n",
        ":80 {\n",
        "",
    ];
    let shown: Vec<String> = cases.iter().map(|text| format!("{text}\n{}", tried(text))).collect();
    insta::assert_snapshot!(shown.join("\n=====\n"));
}

#[test]
fn a_snippet_that_the_site_does_not_import_is_not_looked_at() {
    let unused = "(unused) {\n\ttls internal\n\treverse_proxy elsewhere:1\n}\n";
    let site = |import: &str| {
        format!(
            "{unused}(used) {{\n\timport deeper\n}}\n(deeper) {{\n\trespond ok\n}}\n:80 {{\n\timport {import}\n}}\n"
        )
    };
    let out = tried(&site("used"));
    assert!(out.contains("asks /") && !out.contains("tls` on line"), "{out}");
    assert!(tried(&site("unused")).contains("elsewhere:1"));
    // A file may import anything, and a name that is not known as well.
    assert!(tried(&site("more.caddy")).contains("asks /"));
    assert!(tried(&site("*.nothing")).contains("elsewhere:1"));
}

#[test]
fn a_global_option_that_one_side_goes_without_is_reported() {
    let out = tried(
        "{\n\temail a@example.com\n\tgrace_period 5s\n\tservers {\n\t\tprotocols h1\n\t\ttimeouts {\n\t\t\tread_body 5s\n\t\t}\n\t}\n\tdebug\n}\n:80 {\n\trespond ok\n}\n",
    );
    let notes: Vec<&str> = out.lines().filter(|line| line.starts_with("note: ")).collect();
    let [only] = notes.as_slice() else { panic!("{out}") };
    assert!(only.starts_with("note: `timeouts {` (line 6) holds for Caddy alone: "), "{only}");
    assert!(
        out.starts_with(
            "a site of Caddy (Caddyfile)\n\n{\n\tservers {\n\t\tprotocols h1\n\t}\n\tdebug\n}\n\n:{port} {\n"
        ),
        "{out}"
    );
}

/// The same with its application beside it, where nobody listens yet.
fn beside(text: &str) -> String {
    let folder = Folder::of(&[
        ("Caddyfile", text),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        ("server.js", "express().listen(process.env.PORT);"),
    ]);
    match folder.detect("", &Environment { occupied: Vec::new(), ..running() }) {
        Ok(setup) => folder.show(&setup),
        Err(error) => folder.plain(&format!("{error}\n")),
    }
}

#[test]
fn an_application_that_app_would_tell_otherwise_is_reported_and_one_that_it_cannot_reach_stays_behind_the_proxy()
 {
    for (option, is_app, is_said) in [
        ("header_up X-Forwarded-Proto {scheme}", true, false),
        ("header_up X-Forwarded-Proto https", true, true),
        ("header_up X-Forwarded-For {remote_host}", true, false),
        ("header_up -X-Forwarded-For", true, true),
        ("header_up Host {host}", true, false),
        ("header_up Host example.com", true, true),
        ("lb_policy first", true, true),
        ("health_uri /", true, true),
        ("header_down -X-A", false, false),
        ("to localhost:3000", false, false),
    ] {
        let out = beside(&format!(":8080 {{\n\treverse_proxy :3000 {{\n\t\t{option}\n\t}}\n}}\n"));
        assert_eq!(out.contains(&format!("note: `{option}`")), is_said, "{option}\n{out}");
        assert_eq!(out.contains("\tapp ./server.js\n"), is_app, "{option}\n{out}");
        let is_started_apart =
            out.contains("is started there for both sides") && out.contains("by onehop: false");
        assert_eq!(is_started_apart, !is_app, "{option}\n{out}");
    }
}

#[test]
fn several_directives_that_lead_to_one_application_stay_one() {
    let slow = "{\n\t\ttransport http {\n\t\t\tresponse_header_timeout 90s\n\t\t}\n\t}";
    let out = beside(&format!(":8080 {{\n\treverse_proxy /slow/* :3000 {slow}\n\treverse_proxy :3000\n}}\n"));
    assert_eq!(out.matches("./server.js {\n\t\ttimeout 90s\n\t}").count(), 2, "{out}");
}
