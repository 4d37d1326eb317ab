//! Files over the wire: what a browser and its caches depend on.

use onehop_server::Event;

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, application, serve_application, write};

fn ask(client: &mut Client, path: &str, fields: &str) -> Response {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    client.answer()
}

#[test]
fn a_missing_asset_is_not_the_index_page() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let navigation = ask(&mut client, "/deep/link", "Accept: text/html,*/*;q=0.8\r\n");
    assert!(navigation.status == 200 && navigation.text().contains("app"));
    for (path, accept) in
        [("/assets/gone-B3xKq9aZ.js", "*/*"), ("/api/users", "application/json"), ("/x.png", "text/html")]
    {
        let answer = ask(&mut client, path, &format!("Accept: {accept}\r\n"));
        assert_eq!((answer.status, answer.field("Cache-Control")), (404, Some("no-store")), "{path}");
    }
}

#[test]
fn hashed_assets_are_immutable_and_pages_are_checked_again() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let asset = client.get("/assets/index-B3xKq9aZ.js");
    assert_eq!(asset.field("Cache-Control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(client.get("/").field("Cache-Control"), Some("no-cache"));
}

#[test]
fn a_page_that_the_client_has_is_304() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let first = client.get("/");
    let tag = first.field("ETag").unwrap().to_owned();
    let again = ask(&mut client, "/", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.field("ETag"), again.body.len()), (304, Some(&*tag), 0));
}

#[test]
fn compressed_forms_come_once_they_are_ready() {
    let server = serve_application(Wishes::default());
    server.wait_for(|event| matches!(event, Event::Compressed { .. }).then_some(()));
    let mut client = server.connect();
    for coding in ["br", "gzip", "zstd"] {
        let answer = ask(&mut client, "/assets/index-B3xKq9aZ.js", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(answer.field("Content-Encoding"), Some(coding));
        assert_eq!(answer.field("Vary"), Some("Accept-Encoding"));
        assert!(answer.body.len() < 300);
    }
    let none = ask(&mut client, "/assets/index-B3xKq9aZ.js", "Accept-Encoding: *;q=0, identity\r\n");
    assert_eq!((none.field("Content-Encoding"), none.body.len()), (None, 2100));
}

#[test]
fn a_changed_file_is_served_without_a_restart() {
    let server = serve_application(Wishes::default());
    write(server.folder.path(), "dist/robots.txt", b"changed");
    server.wait_for(|event| matches!(event, Event::TreePublished { .. }).then_some(()));
    assert_eq!(server.connect().get("/robots.txt").text(), "changed");
}

#[test]
fn no_path_leaves_the_root() {
    for handler in ["root * ./dist\n\tfile_server", "spa ./dist"] {
        let text = format!("http://localhost:0 {{\n\t{handler}\n}}\n");
        let server = TestServer::start(with_secrets(), &text, Wishes::default());
        for path in [
            "/../secret.txt",
            "/..%2fsecret.txt",
            "/%2e%2e/secret.txt",
            "/%2e%2e%2fsecret.txt",
            "/..%5csecret.txt",
            "/x/../../secret.txt",
            "/link.txt",
            "/.env",
            "/%2eenv",
            "//../secret.txt",
            "/secret.txt%00.html",
            "/..;/secret.txt",
        ] {
            let answer = server.connect().get(path);
            assert!(answer.status >= 400, "{handler} {path}: {}", answer.status);
            assert!(!answer.text().contains("secret"), "{handler} {path}");
        }
    }
}

/// An application with something beside it, a link to that, and a dotfile.
fn with_secrets() -> tempfile::TempDir {
    let folder = application();
    write(folder.path(), "secret.txt", b"secret");
    write(folder.path(), "dist/.env", b"secret");
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), folder.path().join("dist/link.txt"))
        .unwrap();
    folder
}

#[test]
fn a_root_with_a_placeholder_is_served_from_disk() {
    let folder = tempfile::TempDir::new().unwrap();
    write(folder.path(), "localhost/page.html", b"from disk");
    write(folder.path(), "secret.txt", b"secret");
    let text =
        format!("http://localhost:0 {{\n\troot * {}/{{host}}\n\tfile_server\n}}\n", folder.path().display());
    let server = TestServer::start(folder, &text, Wishes::default());
    let mut client = server.connect();
    let answer = client.get("/page.html");
    assert_eq!((answer.status, answer.text()), (200, "from disk".into()));
    assert_eq!(ask(&mut client, "/page.html", "Range: bytes=5-8\r\n").text(), "disk");
    assert_eq!(client.get("/missing").status, 404);
    assert!(client.get("/%2e%2e/secret.txt").status >= 400);
}

#[test]
fn a_host_is_no_way_out_of_a_root_with_placeholders() {
    let folder = tempfile::TempDir::new().unwrap();
    write(folder.path(), "outside.txt", b"secret");
    write(folder.path(), "sites/.git/config", b"secret");
    write(folder.path(), "sites/other.test/page.txt", b"secret");
    write(folder.path(), "sites/own.test/page.txt", b"own");
    let text =
        format!("http://:0 {{\n\troot * {}/sites/{{host}}\n\tfile_server\n}}\n", folder.path().display());
    let server = TestServer::start(folder, &text, Wishes::default());
    let ask = |host: &str, path: &str| {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.answer()
    };
    assert_eq!(ask("own.test", "/page.txt").text(), "own");
    for (host, path) in
        [("..", "/outside.txt"), (".", "/other.test/page.txt"), (".git", "/config"), ("...", "/x")]
    {
        let answer = ask(host, path);
        assert!(answer.status >= 400, "{host}{path}: {}", answer.status);
    }
}

#[test]
fn a_site_that_does_not_follow_links_is_not_shown_what_another_follows() {
    let text = "http://follows.test:0 {\n\tbind 127.0.0.1\n\troot * ./dist\n\tfile_server {\n\t\tsymlinks follow\n\t}\n}\n\
                http://plain.test:0 {\n\tbind 127.0.0.1\n\troot * ./dist\n\tfile_server\n}\n";
    let server = TestServer::start(with_secrets(), text, Wishes::default());
    let ask = |host: &str| {
        let mut client = server.connect();
        client.send(format!("GET /link.txt HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.answer().status
    };
    assert_eq!((ask("follows.test"), ask("plain.test")), (200, 404));
}

#[test]
fn each_file_server_of_a_list_has_its_own_say_about_dotfiles() {
    let text = "http://localhost:0 {\n\troot * ./dist\n\thandle /.env {\n\t\tfile_server {\n\t\t\tdotfiles\n\t\t}\n\t}\n\
                \thandle {\n\t\tfile_server\n\t}\n}\n";
    let folder = with_secrets();
    write(folder.path(), "dist/.other", b"secret");
    let server = TestServer::start(folder, text, Wishes::default());
    assert_eq!(server.connect().get("/.env").status, 200);
    assert_eq!(server.connect().get("/.other").status, 404);
}

#[test]
fn an_application_without_its_index_says_so_at_the_start() {
    let folder = tempfile::TempDir::new().unwrap();
    write(folder.path(), "dist/robots.txt", b"x");
    let server = TestServer::start(folder, "http://localhost:0 {\n\tspa ./dist\n}\n", Wishes::default());
    let warned = server.wait_for(|event| match event {
        Event::Warning { message } => Some(message.clone()),
        _ => None,
    });
    assert!(warned.contains("has no index.html"), "{warned}");
}
