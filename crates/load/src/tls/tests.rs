//! The one-request client and the engine against a TLS server of rustls.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::client;
use crate::engine;
use crate::plan::{Expect, Pace, Plan, Request, Reuse, Timeouts, Until};
use crate::progress::Unobserved;
use crate::url::Address;

/// A server with a certificate that signed itself, for `localhost`.
struct Site {
    address: std::net::SocketAddr,
    folder: tempfile::TempDir,
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

impl Site {
    /// Answers each request so, and ends each connection after so many, with TLS's own end or without.
    fn start(answer: &'static str, requests: usize, ends_well: bool) -> Site {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("own.pem"), own.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(session, socket.unwrap());
                std::thread::spawn(move || {
                    for _ in 0..requests {
                        let mut head = Vec::new();
                        let mut byte = [0];
                        while !head.ends_with(b"\r\n\r\n") {
                            match stream.read(&mut byte) {
                                Ok(1) => head.push(byte[0]),
                                _ => return,
                            }
                        }
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                    if ends_well {
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                });
            }
        });
        Site { address, folder }
    }

    fn trusting(&self) -> Settings {
        Settings { cacert: Some(self.folder.path().join("own.pem")), ..Settings::default() }
    }

    fn request(&self, host: &str, settings: Settings) -> Request {
        let url = Url::parse(&format!("https://{host}:{}/", self.address.port())).unwrap();
        Request {
            name: "page".to_owned(),
            tls: Client::new(settings).of(&url).unwrap(),
            protocol: crate::plan::Protocol::Http1,
            url,
            address: Address::Tcp(self.address),
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            weight: 1,
            expect: Expect::Success,
        }
    }

    fn ask(&self, host: &str, settings: Settings) -> Result<String, String> {
        let request = self.request(host, settings);
        let response = client::Client::new(request.address.clone()).request(&request, Timeouts::default());
        let body = response.map_err(|error| error.to_string())?.body;
        Ok(String::from_utf8(body).unwrap())
    }
}

fn plan(request: Request, requests: u64, reuse: Reuse) -> Plan {
    Plan {
        requests: vec![request],
        pace: Pace::Closed { connections: 2, think: Duration::ZERO },
        until: Until { requests: Some(requests), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse,
        timeouts: Timeouts::default(),
        seed: 1,
    }
}

#[test]
fn a_certificate_is_trusted_if_it_is_named_or_is_not_verified() {
    let site = Site::start(WHOLE, 1, true);
    assert_eq!(site.ask("localhost", site.trusting()).unwrap(), "hi");
    assert_eq!(site.ask("localhost", Settings { is_insecure: true, ..Settings::default() }).unwrap(), "hi");
    for (host, settings, part) in [
        ("localhost", Settings::default(), "is not trusted"),
        ("127.0.0.1", site.trusting(), "is not for `127.0.0.1`"),
    ] {
        let error = site.ask(host, settings).unwrap_err();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("--cacert FILE") && error.contains("--insecure"), "{error}");
    }
}

#[test]
fn what_speaks_no_tls_says_so() {
    let site = Site::start(WHOLE, 1, true);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = Site { address: listener.local_addr().unwrap(), ..site };
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut hello = [0; 16];
        let _ = socket.read(&mut hello);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = socket.read(&mut hello);
    });
    let error = plain.ask("localhost", plain.trusting()).unwrap_err();
    assert!(error.contains("try http://"), "{error}");
}

#[test]
fn a_body_that_ends_without_the_end_of_tls_is_cut_off() {
    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end";
    let site = Site::start(until_close, 1, true);
    assert_eq!(site.ask("localhost", site.trusting()).unwrap(), "to the end");
    let run = engine::run(&plan(site.request("localhost", site.trusting()), 4, Reuse::Kept), &mut Unobserved);
    assert_eq!(run.unwrap().total.good, 4);
    let site = Site::start(until_close, 1, false);
    assert!(site.ask("localhost", site.trusting()).unwrap_err().contains("broke off"));
    let run = engine::run(&plan(site.request("localhost", site.trusting()), 4, Reuse::Kept), &mut Unobserved);
    assert_eq!(run.unwrap().total.failures.truncated, 4);
}

#[test]
fn a_load_counts_its_handshakes_and_a_kept_connection_has_one() {
    let site = Site::start(WHOLE, usize::MAX, true);
    let of = |sessions, reuse| {
        let request = site.request("localhost", Settings { sessions, ..site.trusting() });
        let run = engine::run(&plan(request, 40, reuse), &mut Unobserved).unwrap();
        assert_eq!((run.total.good, run.total.failures.sum()), (40, 0));
        run.handshakes
    };
    let kept = of(Sessions::Resume, Reuse::Kept);
    assert_eq!((kept.full, kept.resumed), (2, 0));
    let agreed = kept.parameters.keys().next().unwrap().to_string();
    assert_eq!(agreed, "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519MLKEM768");
    let resumed = of(Sessions::Resume, Reuse::New);
    assert_eq!((resumed.full, resumed.resumed), (2, 38));
    let full = of(Sessions::Full, Reuse::New);
    assert_eq!((full.full, full.resumed), (40, 0));
}

#[test]
fn only_the_groups_that_are_named_are_offered() {
    let site = Site::start(WHOLE, usize::MAX, true);
    let settings = Settings { curves: vec![Curve::parse("X25519").unwrap()], ..site.trusting() };
    let run =
        engine::run(&plan(site.request("localhost", settings), 2, Reuse::Kept), &mut Unobserved).unwrap();
    assert!(run.handshakes.parameters.keys().all(|agreed| agreed.group == Some("X25519")));
    assert!(Curve::parse("x448").unwrap_err().contains("x25519mlkem768"));
}

#[test]
fn a_request_larger_than_what_tls_holds_back_goes_out_whole() {
    let site = Site::start(WHOLE, usize::MAX, true);
    let mut request = site.request("localhost", site.trusting());
    // The server reads to the empty line: the body is a field.
    request.fields = (0..30).map(|number| (format!("X-{number}"), "x".repeat(8000))).collect();
    let run = engine::run(&plan(request, 10, Reuse::Kept), &mut Unobserved).unwrap();
    assert_eq!((run.total.good, run.handshakes.full), (10, 2));
}

#[test]
fn a_handshake_that_fails_is_a_failure_of_its_own_kind() {
    let site = Site::start(WHOLE, usize::MAX, true);
    let request = site.request("localhost", Settings::default());
    let mut reached = request.clone();
    let error = reached.reach(Duration::from_secs(5)).unwrap_err().to_string();
    assert!(error.contains("is not trusted") && error.contains("--cacert FILE"), "{error}");
    let run = engine::run(&plan(request, 4, Reuse::Kept), &mut Unobserved).unwrap();
    assert_eq!((run.total.failures.tls, run.total.failures.sum(), run.handshakes.sum()), (4, 4, 0));
}
