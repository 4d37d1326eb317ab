use super::*;
use crate::file_server;

fn tree() -> Store {
    Builder::new()
        .file("index.html", "root")
        .file("a.txt", "a")
        .file("docs/index.html", "docs")
        .file("docs/a.txt", "docs a")
        .file("text/index.txt", "text")
        .file("empty/x/y.txt", "y")
        .file("secret/index.html", "secret")
        .file(".git/config", "git")
        .file("a.js", "js")
        .file("a.js.br", "coded br")
        .file("a.js.gz", "coded gz")
        .file("a.js.zst/inner", "not a sidecar")
        .build()
}

struct Target {
    served: Result<Served, HttpError>,
    answer: Response,
    body: String,
}

impl Target {
    /// `200 body`, `308 location`, `passed` or the fault's name.
    fn text(&self) -> String {
        match &self.served {
            Ok(Served::Answered) if self.answer.status == 308 => {
                format!("308 {}", field(&self.answer, "Location").unwrap())
            }
            Ok(Served::Answered) => format!("{} {}", self.answer.status, self.body),
            Ok(Served::PassedOn) => "passed".to_owned(),
            other => format!("{other:?}"),
        }
    }
}

/// Asks for `current`, which came as `original`.
fn rewritten(settings: &FileServer, method: &str, original: &str, current: &str, lines: &[&str]) -> Target {
    let store = tree();
    let head = head(method, original, lines);
    let mut answer = Response::default();
    let request = FileRequest { path: current.as_bytes(), ..request(&head, &store, &[]) };
    let served = file_server(settings, &request, &mut answer);
    let body = body(&store, &answer);
    Target { served, answer, body }
}

fn get(settings: &FileServer, target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    rewritten(settings, "GET", target, path, &[]).text()
}

#[test]
fn paths_are_answered_as_caddy_answers_them() {
    for (target, expected) in [
        ("/", "200 root"),
        ("/index.html", "200 root"),
        ("/a.txt", "200 a"),
        ("/a.txt/", "308 /a.txt"),
        ("/a.txt/?q=1", "308 /a.txt?q=1"),
        ("/docs", "308 /docs/"),
        ("/docs?q=1&r", "308 /docs/?q=1&r"),
        ("/docs/", "200 docs"),
        ("/docs//", "200 docs"),
        ("//docs", "308 /docs/"),
        ("/text/", "200 text"),
        ("/empty", "Err(NotFound)"),
        ("/empty/", "Err(NotFound)"),
        ("/gone", "Err(NotFound)"),
        ("/a.txt/b", "Err(NotFound)"),
        ("/.git/config", "Err(NotFound)"),
        ("/docs/%2e%2e/a.txt", "200 a"),
        ("/%61.txt", "200 a"),
        ("/%2e%2e/a.txt", "Err(BadPath)"),
        ("/docs%2fa.txt", "Err(BadPath)"),
        ("/docs%5ca.txt", "Err(BadPath)"),
        ("/a.txt%00", "Err(BadPath)"),
    ] {
        assert_eq!(get(&file_server_settings(), target), expected, "{target}");
    }
}

#[test]
fn only_paths_that_were_not_rewritten_are_redirected() {
    let settings = file_server_settings();
    for (original, current, expected) in [
        ("/x/docs", "/docs", "308 /x/docs/"),
        ("/x/a.txt/", "/a.txt", "308 /x/a.txt"),
        ("/other", "/docs", "200 docs"),
        ("/other/", "/a.txt", "200 a"),
        ("/docs/index.html", "/docs/", "200 docs"),
        ("/d%6fcs", "/docs", "308 /d%6fcs/"),
        ("/site", "", "200 root"),
    ] {
        assert_eq!(
            rewritten(&settings, "GET", original, current, &[]).text(),
            expected,
            "{original} {current}"
        );
    }
    let settings = FileServer { canonical_uris: false, ..settings };
    for (target, expected) in [("/docs", "200 docs"), ("/a.txt/", "200 a")] {
        assert_eq!(get(&settings, target), expected);
    }
}

#[test]
fn other_methods_are_not_allowed_where_a_file_is() {
    let settings = file_server_settings();
    let ask = |method, target| rewritten(&settings, method, target, target, &[]).text();
    assert_eq!(ask("HEAD", "/a.txt"), "200 a");
    assert_eq!(ask("POST", "/a.txt"), "Err(MethodNotAllowed(Files))");
    assert_eq!(ask("DELETE", "/docs/"), "Err(MethodNotAllowed(Files))");
    assert_eq!(ask("POST", "/gone"), "Err(NotFound)");
}

#[test]
fn hidden_files_are_absent() {
    let hide = |patterns: &[&str]| FileServer {
        hide: patterns.iter().map(|text| (*text).to_owned()).collect(),
        browse: true,
        ..file_server_settings()
    };
    for (patterns, target, expected) in [
        (&["secret"][..], "/secret/", "Err(NotFound)"),
        (&["secret"], "/secret/index.html", "Err(NotFound)"),
        (&["secret"], "/docs/", "200 docs"),
        (&["*.txt"], "/a.txt", "Err(NotFound)"),
        (&["*.txt"], "/docs/a.txt", "Err(NotFound)"),
        (&["*.txt"], "/a.txt/", "Err(NotFound)"),
        (&["/srv/www/docs"], "/docs/a.txt", "Err(NotFound)"),
        (&["/srv/www/docs"], "/docs", "Err(NotFound)"),
        (&["/srv/www/doc"], "/docs/", "200 docs"),
        (&["/srv/www/*.txt"], "/a.txt", "Err(NotFound)"),
        (&["/srv/www/*.txt"], "/docs/a.txt", "200 docs a"),
    ] {
        assert_eq!(get(&hide(patterns), target), expected, "{patterns:?} {target}");
    }
    let index_hidden = get(&FileServer { browse: false, ..hide(&["index.html"]) }, "/docs/");
    assert_eq!(index_hidden, "Err(NotFound)");
}

#[test]
fn what_is_absent_may_be_passed_on() {
    let settings =
        FileServer { pass_through: true, hide: vec!["secret".to_owned()], ..file_server_settings() };
    for (target, expected) in [
        ("/gone", "passed"),
        ("/empty/", "passed"),
        ("/secret/", "passed"),
        ("/.git/config", "passed"),
        ("/a.txt", "200 a"),
        ("/%00", "Err(BadPath)"),
    ] {
        assert_eq!(get(&settings, target), expected, "{target}");
    }
}

#[test]
fn sidecar_files_are_sent_to_those_who_take_them() {
    let precompressed = vec![Encoding::Zstd, Encoding::Brotli, Encoding::Gzip];
    let settings = FileServer { precompressed, ..file_server_settings() };
    for (accept, coding, body) in [
        ("br, gzip", Some("br"), "coded br"),
        ("gzip", Some("gzip"), "coded gz"),
        ("br;q=0.1, gzip", Some("gzip"), "coded gz"),
        ("zstd", None, "js"),
        ("zstd, gzip;q=0.5", Some("gzip"), "coded gz"),
        ("identity", None, "js"),
    ] {
        let asked = rewritten(&settings, "GET", "/a.js", "/a.js", &[&format!("Accept-Encoding: {accept}")]);
        assert_eq!((asked.answer.status, asked.body.as_str()), (200, body), "{accept}");
        assert_eq!(field(&asked.answer, "Content-Encoding"), coding, "{accept}");
        assert_eq!(field(&asked.answer, "Vary"), Some("Accept-Encoding"), "{accept}");
        assert_eq!(field(&asked.answer, "Content-Type"), Some("text/javascript; charset=utf-8"), "{accept}");
    }
}

#[test]
fn dotfiles_are_served_where_that_is_configured() {
    let settings = FileServer { dotfiles: true, ..file_server_settings() };
    assert_eq!(get(&settings, "/.git/config"), "200 git");
}
