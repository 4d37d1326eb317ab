//! Where the server listens.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use onehop_server::StartError;

use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};

#[test]
fn ipv6_is_served() {
    let text = "http://localhost:0 {\n\tbind ::1\n\trespond hello\n}\n";
    let server = TestServer::start(application(), text, Wishes::default());
    assert_eq!(server.connect().get("/").text(), "hello");
}

#[test]
fn a_unix_socket_is_served_by_all_cores() {
    let folder = application();
    let path = folder.path().join("onehop.sock");
    let text = format!("http://localhost {{\n\tbind unix/{}|0600\n\trespond hello\n}}\n", path.display());
    let server = TestServer::start(folder, &text, Wishes { threads: 4, ..Wishes::default() });
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for _ in 0..8 {
        let mut client = Client::over(UnixStream::connect(&path).unwrap());
        assert_eq!(client.get("/").text(), "hello");
    }
    assert_eq!(server.metric("onehop_connections_total"), 8);
}

#[test]
fn a_second_start_on_one_address_is_an_error_that_names_it() {
    let text = |port: &str| format!("http://localhost:{port} {{\n\tbind 127.0.0.1\n\trespond hello\n}}\n");
    let first = TestServer::start(application(), &text("0"), Wishes { threads: 4, ..Wishes::default() });
    let address = first.address();
    let port = address.rsplit(':').next().unwrap();
    let second = TestServer::try_start(application(), &text(port), Wishes::default());
    match second {
        Err(StartError::Bind { address: named, reason }) => {
            assert_eq!(named, address);
            assert!(reason.contains("another program listens there"), "{reason}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the address was shared"),
    }
    assert_eq!(first.connect().get("/").text(), "hello");
}

#[test]
fn a_live_unix_socket_is_not_taken_over_and_a_dead_one_is_replaced() {
    let folder = application();
    let path = folder.path().join("onehop.sock");
    let text = format!("http://localhost {{\n\tbind unix/{}\n\trespond hello\n}}\n", path.display());
    let first = TestServer::start(folder, &text, Wishes::default());
    assert!(matches!(
        TestServer::try_start(application(), &text, Wishes::default()),
        Err(StartError::Bind { .. })
    ));
    let (running, _folder) = first.into_running();
    running.stop();
    running.wait();
    assert!(!path.exists(), "a stopped server leaves no socket behind");
    drop(std::os::unix::net::UnixListener::bind(&path));
    assert!(path.exists(), "a socket that nobody answers");
    let _second = TestServer::start(application(), &text, Wishes::default());
    let mut client = Client::over(UnixStream::connect(&path).unwrap());
    assert_eq!(client.get("/").text(), "hello");
}

#[test]
fn what_means_https_is_never_served_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{{\n\tauto_https disable_redirects\n\tdata_dir {}\n}}\nhttps://localhost:0 {{\n\tbind 127.0.0.1\n\trespond hello\n}}\n",
        folder.path().join("data").display()
    );
    let server = TestServer::start(application(), &text, Wishes::default());
    let response = server.connect().get("/");
    assert_eq!(response.status, 400);
    assert!(response.text().contains("https://"), "{}", response.text());
}
