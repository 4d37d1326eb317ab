//! `rate_limit` from outside: who asks too often gets 429, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onehop_config::checked::limit::{RateKey, RateLimit};
use onehop_config::checked::{Checked, Network, Route, Step};

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, application, write};
use crate::programs::program::Program;
use crate::sticky::connect_from;

const RESPOND: &str = "http://localhost:0 {\n\trespond hello\n}\n";

/// So many requests an hour, all of them at once: no test lasts until there is one more.
fn limit(events: u32) -> RateLimit {
    RateLimit {
        zone: "api".to_owned(),
        key: RateKey::ClientAddress,
        events,
        window: Duration::from_secs(3_600),
        burst: events,
        keys_max: 10_000,
        trusted_proxies: Vec::new(),
        announce: false,
    }
}

/// Puts a limit in front of everything.
fn with(limit: impl Fn() -> RateLimit + Send + Sync + 'static) -> Wishes {
    let amend = move |checked: &mut Checked| {
        for site in &mut checked.sites {
            let step = Step::RateLimit(Arc::new(limit()));
            site.routes.insert(0, Route { matcher: None, group: None, step, line: 0 });
        }
    };
    Wishes { threads: 2, amend: Some(Arc::new(amend)), ..Wishes::default() }
}

fn from(last: u8, server: &TestServer) -> Client {
    Client::over(connect_from(last, server.address().parse().unwrap()))
}

fn ask(client: &mut Client, path: &str, fields: &str) -> Response {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    client.answer()
}

#[test]
fn who_asks_too_often_gets_429_over_all_connections_and_cores_and_others_are_served() {
    let server = TestServer::start(application(), RESPOND, with(|| limit(6)));
    for _ in 0..3 {
        let mut client = from(1, &server);
        assert_eq!((client.get("/").status, client.get("/").status), (200, 200));
    }
    let mut client = from(1, &server);
    for _ in 0..2 {
        let answer = client.get("/");
        assert_eq!((answer.status, answer.text()), (429, String::new()));
        let wait: u32 = answer.field("Retry-After").unwrap().parse().unwrap();
        assert!((590..=600).contains(&wait), "{wait}");
        assert_eq!(answer.field("RateLimit-Policy"), Some("\"api\";q=6;w=3600"));
        assert_eq!(answer.field("RateLimit"), Some(&*format!("\"api\";r=0;t={wait}")));
    }
    let answer = from(2, &server).get("/");
    assert_eq!((answer.status, answer.field("RateLimit")), (200, None));
    assert_eq!(server.metric("onehop_refused_total{cause=\"rate_limited\",status=\"429\"}"), 2);
    assert_eq!(server.metric("onehop_rate_limit_refused_total{zone=\"api\"}"), 2);
    assert_eq!(server.metric("onehop_rate_limit_let_in_total{zone=\"api\"}"), 7);
    assert_eq!(server.metric("onehop_rate_limit_keys{zone=\"api\"}"), 2);
}

#[test]
fn a_refused_request_with_a_body_leaves_its_connection_to_the_next_one() {
    let server = TestServer::start(application(), RESPOND, with(|| limit(1)));
    let mut client = from(1, &server);
    assert_eq!(client.get("/").status, 200);
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().status, 429);
    assert_eq!(client.get("/").status, 429);
}

#[test]
fn a_reload_goes_on_counting_unless_the_limit_is_another() {
    let events = Arc::new(AtomicU32::new(2));
    let wanted = Arc::clone(&events);
    let server =
        TestServer::start(application(), RESPOND, with(move || limit(wanted.load(Ordering::Relaxed))));
    let mut client = from(1, &server);
    assert_eq!((client.get("/").status, client.get("/").status), (200, 200));
    server.running().reload().unwrap();
    assert_eq!(client.get("/").status, 429);
    events.store(3, Ordering::Relaxed);
    server.running().reload().unwrap();
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn a_client_is_who_a_trusted_proxy_says_and_nobody_else_can_say_so() {
    let trusting = || RateLimit {
        trusted_proxies: vec![Network::new("127.0.0.2".parse().unwrap(), 32).unwrap()],
        ..limit(1)
    };
    let server = TestServer::start(application(), RESPOND, with(trusting));
    let (mut front, mut client) = (from(2, &server), from(1, &server));
    let status =
        |client: &mut Client, said: &str| ask(client, "/", &format!("X-Forwarded-For: {said}\r\n")).status;
    assert_eq!(status(&mut front, "192.0.2.1"), 200);
    assert_eq!(status(&mut front, "198.51.100.1, 192.0.2.1"), 429);
    assert_eq!(status(&mut front, "2001:db8::1"), 200);
    assert_eq!(status(&mut front, "2001:db8::2"), 429);
    assert_eq!(status(&mut client, "192.0.2.3"), 200);
    assert_eq!(status(&mut client, "192.0.2.4"), 429);
}

#[test]
fn a_file_from_disk_counts_once_although_its_way_is_made_twice() {
    let folder = application();
    write(folder.path(), "localhost/page.html", b"from disk");
    let text =
        format!("http://localhost:0 {{\n\troot * {}/{{host}}\n\tfile_server\n}}\n", folder.path().display());
    let announced = || RateLimit { announce: true, ..limit(3) };
    let server = TestServer::start(folder, &text, with(announced));
    let mut client = from(1, &server);
    for left in (0..3).rev() {
        let answer = client.get("/page.html");
        assert_eq!((answer.status, answer.text()), (200, "from disk".to_owned()));
        let reported = answer.field("RateLimit").unwrap();
        assert!(reported.starts_with(&format!("\"api\";r={left};t=")), "{reported}");
    }
    assert_eq!(client.get("/page.html").status, 429);
    assert_eq!(server.metric("onehop_rate_limit_let_in_total"), 3);
}

#[test]
fn a_page_about_a_refusal_tells_the_same_wherever_it_comes_from() {
    let folder = application();
    write(folder.path(), "localhost/busy.html", b"busy");
    let pages = [
        ("respond busy".to_owned(), 1),
        (
            format!("root * {}/{{host}}\n\t\trewrite * /busy.html\n\t\tfile_server", folder.path().display()),
            2,
        ),
    ];
    for (page, last) in pages {
        let text = format!(
            "http://localhost:0 {{\n\trate_limit 1r/h zone api\n\trespond hello\n\
             \thandle_errors 429 {{\n\t\t{page}\n\t}}\n}}\n"
        );
        let server = TestServer::start(application(), &text, Wishes::default());
        let mut client = from(last, &server);
        assert_eq!(client.get("/").status, 200);
        let answer = client.get("/");
        assert_eq!((answer.status, answer.text()), (429, "busy".to_owned()));
        let wait = answer.field("Retry-After").unwrap();
        assert_eq!(answer.field("RateLimit"), Some(&*format!("\"api\";r=0;t={wait}")));
        assert_eq!(server.metric("onehop_rate_limit_refused_total"), 1);
    }
}

#[test]
fn the_answer_of_an_upstream_and_its_failure_tell_what_is_left() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let text = format!(
        "http://localhost:0 {{\n\treverse_proxy /good {}\n\treverse_proxy /bad 127.0.0.1:1\n}}\n",
        program.address
    );
    let announced = || RateLimit { announce: true, ..limit(10) };
    let server = TestServer::start(application(), &text, with(announced));
    let mut client = from(1, &server);
    for (path, status, reported) in
        [("/good", 200, "\"api\";r=9;t=3240"), ("/bad", 502, "\"api\";r=8;t=2880")]
    {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.field("RateLimit")), (status, Some(reported)), "{path}");
        assert_eq!(answer.field("RateLimit-Policy"), Some("\"api\";q=10;w=3600"), "{path}");
    }
}

#[test]
fn a_flood_of_new_keys_fills_a_bounded_table_and_leaves_others_alone() {
    const KEYS: u32 = 20_000;
    let by_header = || RateLimit { key: RateKey::Header("x-key".to_owned()), keys_max: 1_000, ..limit(2) };
    let server = TestServer::start(application(), RESPOND, with(by_header));
    let mut other = from(2, &server);
    assert_eq!(ask(&mut other, "/", "X-Key: greedy\r\n").status, 200);
    assert_eq!(ask(&mut other, "/", "X-Key: greedy\r\n").status, 200);
    let mut flood = from(1, &server);
    for batch in 0..KEYS / 100 {
        let requests: String = (0..100)
            .map(|number| {
                format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Key: {}\r\n\r\n", batch * 100 + number)
            })
            .collect();
        flood.send(requests);
        assert!((0..100).all(|_| flood.answer().status == 200), "a new key is let in");
        assert_eq!(ask(&mut other, "/", &format!("X-Key: other-{batch}\r\n")).status, 200);
    }
    assert_eq!(ask(&mut other, "/", "X-Key: greedy\r\n").status, 429, "it is not forgotten over them");
    assert!(server.metric("onehop_rate_limit_keys") <= 1_000);
    assert!(server.metric("onehop_rate_limit_displaced_total") > 10_000);
}

#[test]
fn a_refused_request_whose_page_somebody_else_makes_reaches_nobody_else() {
    let program = Program::start(|talk, _| talk.answer("application"));
    let pages = Program::start(|talk, _| talk.answer("page"));
    let text = format!(
        "http://localhost:0 {{\nbind 127.0.0.1\nroot * ./{{host}}\ntry_files {{path}} {{path}}\nrate_limit 1r/h\n\
         reverse_proxy {}\nhandle_errors 429 {{\nreverse_proxy {}\n}}\n}}\n",
        program.address, pages.address
    );
    let server = TestServer::start(application(), &text, Wishes::default());
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "application");
    for _ in 0..3 {
        assert_eq!(client.get("/").text(), "page");
    }
    assert_eq!(program.heads().len(), 1);
}
