//! Reloads, and checks to upstreams that are scripted.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use onehop_config::checked::proxy::{ProxyTls, ProxyUpstream, StatusTest};
use onehop_config::checked::tls::{AutoHttps, GlobalTls};
use onehop_config::checked::{Admin, Global, Part, Placeholder, Route, Site, Step, Template};

use super::*;
use crate::control::Event;
use crate::request::handle::proxy::tests::{Client, settings};

const TIMEOUT: Duration = Duration::from_secs(20);

fn tcp(host: &str, port: u16) -> ProxyUpstream {
    let (label, host) = (format!("{host}:{port}"), host.to_owned());
    ProxyUpstream { label, address: ProxyAddress::Tcp { host, port } }
}

fn proxy_to(upstreams: &[(&str, u16)]) -> checked::Proxy {
    let mut proxy = settings(checked::BalancePolicy::RoundRobin);
    proxy.upstreams = upstreams.iter().map(|(host, port)| tcp(host, *port)).collect();
    proxy
}

/// One site for each proxy: `http://0`, `http://1` …
fn checked(proxies: &[checked::Proxy]) -> Checked {
    let sites = proxies.iter().enumerate().map(|(number, proxy)| {
        let step = Step::Proxy(Arc::new(proxy.clone()));
        Site {
            label: format!("http://{number}"),
            hosts: Vec::new(),
            routes: vec![Route { matcher: None, group: None, step, line: 1 }],
            errors: Vec::new(),
            logs: Vec::new(),
            tls: None,
        }
    });
    let global = Global {
        admin: Admin::Off,
        memory_bytes: 0,
        memory: None,
        connections_per_address: None,
        protocols: onehop_config::checked::Protocols::default(),
        trusted_proxies: Vec::new(),
        proxy_protocol: None,
        limit: None,
        threads: None,
        grace_period: Duration::ZERO,
        auto_https: AutoHttps::Off,
        tls: GlobalTls::default(),
        http_port: 80,
        https_port: 443,
        data_directory: None,
        history: None,
        metrics_export: None,
        log: None,
    };
    Checked { global, listeners: Vec::new(), sites: sites.collect() }
}

/// Upstreams, and what they say.
fn upstreams() -> (Upstreams, mpsc::Receiver<Event>) {
    let (sender, events) = mpsc::channel();
    let sender = Mutex::new(sender);
    let sink: EventSink = Arc::new(move |event| drop(sender.lock().unwrap().send(event)));
    (Upstreams::new(None, sink), events)
}

fn reload(upstreams: &Upstreams, proxies: &[checked::Proxy]) -> Vec<Arc<Proxy>> {
    let prepared = upstreams.prepare(&checked(proxies)).unwrap();
    let made = prepared.proxies();
    upstreams.carry_out(prepared);
    made
}

#[test]
fn a_reload_keeps_the_peers_that_it_names_again_and_withdraws_the_others_once_it_is_published() {
    let (upstreams, _events) = upstreams();
    let first = reload(&upstreams, &[proxy_to(&[("10.0.0.1", 80), ("10.0.0.2", 80)])]);
    let peer = |proxies: &[Arc<Proxy>], number: usize| Arc::clone(&proxies[0].members[number].peer);
    let other = proxy_to(&[("10.0.0.2", 80), ("10.0.0.3", 80)]);
    let prepared = upstreams.prepare(&checked(&[other])).unwrap();
    let second = prepared.proxies();
    assert!(Arc::ptr_eq(&peer(&second, 0), &peer(&first, 1)));
    assert!(!peer(&first, 0).is_withdrawn(), "nothing is published yet");
    drop(prepared);
    assert!(!peer(&first, 0).is_withdrawn(), "nor will it be");
    let second = reload(&upstreams, &[proxy_to(&[("10.0.0.2", 80), ("10.0.0.3", 80)])]);
    assert!(peer(&first, 0).is_withdrawn());
    assert!(!peer(&first, 1).is_withdrawn());
    assert!(Arc::ptr_eq(&peer(&second, 0), &peer(&first, 1)));
}

#[test]
fn a_directive_that_has_not_changed_goes_on() {
    let (upstreams, _events) = upstreams();
    let mut second = proxy_to(&[("10.0.0.1", 80)]);
    second.request_buffer_bytes = 1;
    let proxies = [proxy_to(&[("10.0.0.1", 80), ("10.0.0.2", 80)]), second.clone()];
    let before = reload(&upstreams, &proxies);
    assert!(Arc::ptr_eq(&before[0].members[0].peer, &before[1].members[0].peer), "connections are shared");
    second.request_buffer_bytes = 2;
    let after = reload(&upstreams, &[proxies[0].clone(), second]);
    assert!(Arc::ptr_eq(&before[0], &after[0]));
    assert!(!Arc::ptr_eq(&before[1], &after[1]));
    assert!(Arc::ptr_eq(&before[1].members[0].peer, &after[1].members[0].peer));
}

#[test]
fn an_address_that_is_written_in_two_ways_shares_its_connections_and_each_keeps_its_own_words() {
    let (upstreams, _events) = upstreams();
    let mut short = proxy_to(&[("127.0.0.1", 3000)]);
    short.upstreams[0].label = ":3000".to_owned();
    let made = reload(&upstreams, &[short, proxy_to(&[("127.0.0.1", 3000)])]);
    let [one, other] = [0, 1].map(|number| &made[number].members[0]);
    assert!(Arc::ptr_eq(&one.peer, &other.peer));
    assert_eq!((one.host_port(), one.host(), one.port()), (":3000", "", "3000"));
    assert_eq!((other.host_port(), other.host(), other.port()), ("127.0.0.1:3000", "127.0.0.1", "3000"));
    let reported: Vec<_> =
        upstreams.status().iter().map(|proxy| proxy.upstreams[0].upstream.clone()).collect();
    assert_eq!(reported, [":3000", "127.0.0.1:3000"]);
}

#[test]
fn the_share_of_the_idle_connections_follows_the_number_of_upstreams() {
    let (upstreams, _events) = upstreams();
    let with = |hosts: &[(&str, u16)]| {
        let mut proxy = proxy_to(hosts);
        proxy.transport.keepalive_idle_conns_per_host = 32;
        proxy.transport.keepalive_idle_conns = Some(6);
        proxy
    };
    let many = with(&[("10.0.0.1", 80), ("10.0.0.2", 80), ("10.0.0.3", 80)]);
    let one = with(&[("10.0.0.1", 80)]);
    let idle_max = |proxy: &Proxy| proxy.members[0].peer.settings.idle_max;
    let both = reload(&upstreams, &[many.clone(), one.clone()]);
    assert_eq!((idle_max(&both[0]), idle_max(&both[1])), (2, 6));
    assert_eq!(idle_max(&reload(&upstreams, &[many])[0]), 2);
    assert_eq!(idle_max(&reload(&upstreams, &[one])[0]), 6);
}

#[test]
fn other_terms_mean_other_connections_but_the_same_failures() {
    let (upstreams, _events) = upstreams();
    let failing = checked::PassiveHealth {
        fail_duration: Some(TIMEOUT),
        max_fails: 2,
        ..checked::PassiveHealth::default()
    };
    let first = checked::Proxy { passive_health: failing.clone(), ..proxy_to(&[("10.0.0.1", 80)]) };
    let mut second = first.clone();
    second.transport.dial_timeout = Duration::from_secs(9);
    second.passive_health.max_fails = 3;
    let both = reload(&upstreams, &[first.clone(), second.clone()]);
    let [one, other] = [0, 1].map(|number| Arc::clone(&both[number].members[0]));
    assert!(!Arc::ptr_eq(&one.peer, &other.peer));
    one.failed(&failing);
    other.failed(&second.passive_health);
    assert!(!one.is_available(&failing) && other.is_available(&second.passive_health));
    second.passive_health.max_fails = 1;
    let after = reload(&upstreams, &[second.clone()]);
    assert!(!after[0].members[0].is_available(&second.passive_health), "a reload forgets none");
    assert!(one.peer.is_withdrawn());
}

#[test]
fn requests_in_flight_count_by_address_whatever_the_terms_and_over_reloads() {
    let (upstreams, _events) = upstreams();
    let bounded =
        checked::PassiveHealth { unhealthy_request_count: Some(1), ..checked::PassiveHealth::default() };
    let first = checked::Proxy { passive_health: bounded.clone(), ..proxy_to(&[("10.0.0.1", 80)]) };
    let mut second = first.clone();
    second.transport.dial_timeout = Duration::from_secs(9);
    let both = reload(&upstreams, &[first, second.clone()]);
    let [one, other] = [0, 1].map(|number| &both[number].members[0]);
    assert!(!Arc::ptr_eq(&one.peer, &other.peer));
    let request = one.begin();
    assert!(one.is_full(&bounded) && other.is_full(&bounded));
    second.transport.dial_timeout = Duration::from_secs(8);
    // More failures are told apart from now on, in a memory of its own.
    second.passive_health.max_fails = 7;
    let after = reload(&upstreams, &[second]);
    assert!(after[0].members[0].is_full(&bounded));
    drop(request);
    assert!(!after[0].members[0].is_full(&bounded) && !other.is_full(&bounded));
}

#[test]
fn upstreams_of_requests_are_made_when_they_are_asked_for_and_stay_over_reloads() {
    let (upstreams, _events) = upstreams();
    let parts = vec![Part::Value(Placeholder::Header("x-shard".to_owned())), Part::Text(":8080".to_owned())];
    let mut proxy = proxy_to(&[("10.0.0.1", 80)]);
    let address = ProxyAddress::OfRequest(Template { parts });
    proxy.upstreams.push(ProxyUpstream { label: "{header.X-Shard}:8080".to_owned(), address });
    proxy.pool.min = 4;
    let before = reload(&upstreams, std::slice::from_ref(&proxy));
    let one = before[0].member_for("shard-1:8080").unwrap();
    assert_eq!(
        (one.peer.label.as_str(), one.number, one.peer.settings.connections_min),
        ("shard-1:8080", 1, 0)
    );
    let mut changed = proxy.clone();
    changed.request_buffer_bytes = 1;
    let after = reload(&upstreams, &[changed]);
    assert!(Arc::ptr_eq(&one, &after[0].member_for("shard-1:8080").unwrap()));
    let _second = after[0].member_for("shard-2:8080").unwrap();
    let status = upstreams.status();
    let reported = &status[0].upstreams[1];
    assert_eq!((reported.upstream.as_str(), reported.addresses), ("{header.X-Shard}:8080", 2));
    reload(&upstreams, &[proxy_to(&[("10.0.0.1", 80)])]);
    assert!(one.peer.is_withdrawn());
}

#[test]
fn a_failed_reload_changes_nothing() {
    let (upstreams, _events) = upstreams();
    let good = proxy_to(&[("10.0.0.1", 80)]);
    let before = reload(&upstreams, std::slice::from_ref(&good));
    let mut bad = proxy_to(&[("10.0.0.1", 443)]);
    bad.name = "https://10.0.0.1:443".to_owned();
    bad.transport.tls = Some(ProxyTls {
        server_name: None,
        insecure_skip_verify: false,
        trusted: vec!["/nonexistent/authority.pem".into()],
        client_certificate: None,
        timeout: TIMEOUT,
        except_ports: Vec::new(),
    });
    let error = upstreams.prepare(&checked(&[bad])).err().unwrap();
    assert_eq!(
        error,
        "reverse_proxy https://10.0.0.1:443: cannot read certificates to trust from \
         /nonexistent/authority.pem: No such file or directory (os error 2)"
    );
    assert!(!before[0].members[0].peer.is_withdrawn());
    assert!(Arc::ptr_eq(&before[0], &reload(&upstreams, &[good])[0]));
}

/// An upstream that answers what it is told to, one request on each connection.
struct Scripted {
    address: SocketAddr,
    answers: Arc<Mutex<String>>,
    asked: mpsc::Receiver<String>,
}

impl Scripted {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(Mutex::new(answer.to_owned()));
        let (sender, asked) = mpsc::channel();
        let reported = Arc::clone(&answers);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let answer = reported.lock().unwrap().clone();
                let _ = stream.write_all(answer.as_bytes());
                if sender.send(head.join("\n")).is_err() {
                    return;
                }
            }
        });
        Self { address, answers, asked }
    }

    fn answer(&self, answer: &str) {
        answer.clone_into(&mut self.answers.lock().unwrap());
    }

    fn proxy(&self, health: ActiveHealth) -> checked::Proxy {
        let mut proxy = proxy_to(&[("127.0.0.1", self.address.port())]);
        proxy.active_health = Some(health);
        proxy
    }

    /// Waits until it was asked so many times more.
    fn wait_for_questions(&self, count: usize) {
        for _ in 0..count {
            self.asked.recv_timeout(TIMEOUT).unwrap();
        }
    }
}

const GOOD: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const BAD: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

fn every(milliseconds: u64) -> ActiveHealth {
    ActiveHealth {
        uri: "/health".to_owned(),
        port: None,
        target: None,
        interval: Duration::from_millis(milliseconds),
        timeout: TIMEOUT,
        status: StatusTest::Class(2),
        follow_redirects: false,
        body: None,
        passes: 2,
        fails: 2,
        fields: Vec::new(),
        method: "GET".to_owned(),
        request_body: String::new(),
    }
}

#[test]
fn an_upstream_goes_down_and_comes_back_and_each_is_reported_once() {
    let (upstreams, events) = upstreams();
    let scripted = Scripted::start(BAD);
    let proxies = reload(&upstreams, &[scripted.proxy(every(20)), proxy_to(&[("10.0.0.1", 80)])]);
    let member = &proxies[0].members[0];
    assert!(member.is_available(&checked::PassiveHealth::default()), "until something else is known");
    let upstream = || scripted.address.to_string();
    let sites = || vec!["http://0".to_owned()];
    let down = events.recv_timeout(TIMEOUT).unwrap();
    let reason = "it answered 503 instead of 2xx".to_owned();
    assert_eq!(down, Event::UpstreamDown { upstream: upstream(), sites: sites(), reason });
    assert!(!member.is_available(&checked::PassiveHealth::default()));
    let reported = &upstreams.status()[0].upstreams[0];
    assert_eq!(
        (reported.state, reported.reason.as_deref()),
        ("down", Some("it answered 503 instead of 2xx"))
    );
    scripted.answer(GOOD);
    let Event::UpstreamUp { upstream: label, sites: of, .. } = events.recv_timeout(TIMEOUT).unwrap() else {
        panic!("another event")
    };
    assert_eq!((label, of), (upstream(), sites()));
    assert!(member.is_available(&checked::PassiveHealth::default()));
    scripted.wait_for_questions(6);
    assert!(events.try_recv().is_err(), "nothing has changed");
    upstreams.stop();
}

#[test]
fn who_is_asked_in_the_stead_of_an_upstream_with_placeholders_speaks_for_all_that_requests_make_of_it() {
    let (upstreams, events) = upstreams();
    let scripted = Scripted::start(BAD);
    let target = Some(("127.0.0.1".to_owned(), scripted.address.port()));
    let mut proxy = proxy_to(&[]);
    let parts = vec![Part::Value(Placeholder::Header("x-shard".to_owned())), Part::Text(":8080".to_owned())];
    let address = ProxyAddress::OfRequest(Template { parts });
    proxy.upstreams.push(ProxyUpstream { label: "{header.X-Shard}:8080".to_owned(), address });
    proxy.active_health = Some(ActiveHealth { target, fails: 1, passes: 1, ..every(20) });
    let made = reload(&upstreams, std::slice::from_ref(&proxy));
    let client = Client::new("/", "X-Shard: 10.0.0.1\r\n");
    let Event::UpstreamDown { upstream, .. } = events.recv_timeout(TIMEOUT).unwrap() else {
        panic!("another event")
    };
    assert_eq!(upstream, "{header.X-Shard}:8080");
    assert!(client.chosen(&made[0], &[]).is_none());
    let reported = &upstreams.status()[0].upstreams[0];
    assert_eq!(
        (reported.state, reported.reason.as_deref()),
        ("down", Some("it answered 503 instead of 2xx"))
    );
    scripted.answer(GOOD);
    assert!(matches!(events.recv_timeout(TIMEOUT).unwrap(), Event::UpstreamUp { .. }));
    assert_eq!(&*client.chosen(&made[0], &[]).unwrap().member.name, "10.0.0.1:8080");
    // Without the check it is a directive of its own.
    proxy.active_health = None;
    assert!(!Arc::ptr_eq(&made[0], &reload(&upstreams, &[proxy])[0]));
    upstreams.stop();
}

#[test]
fn what_questions_found_outlives_a_reload_and_no_second_series_of_them_begins() {
    let (upstreams, events) = upstreams();
    let scripted = Scripted::start(BAD);
    let health = ActiveHealth { fails: 1, ..every(50) };
    let proxy = scripted.proxy(health);
    reload(&upstreams, std::slice::from_ref(&proxy));
    assert!(matches!(events.recv_timeout(TIMEOUT).unwrap(), Event::UpstreamDown { .. }));
    // Named by two directives from now on, and by another site.
    let other = checked::Proxy { request_buffer_bytes: 7, ..proxy.clone() };
    let proxies = reload(&upstreams, &[proxy_to(&[("10.0.0.1", 80)]), other, proxy.clone()]);
    assert!(
        proxies[1..].iter().all(|proxy| !proxy.members[0].is_available(&checked::PassiveHealth::default()))
    );
    scripted.answer(GOOD);
    let Event::UpstreamUp { sites, .. } = events.recv_timeout(TIMEOUT).unwrap() else {
        panic!("another event")
    };
    assert_eq!(sites, ["http://1", "http://2"]);
    let running = proxies[1].members[0].health.active.clone().unwrap();
    assert!(Arc::ptr_eq(&running, proxies[2].members[0].health.active.as_ref().unwrap()));
    // Without the check nobody is asked.
    reload(&upstreams, &[proxy_to(&[("127.0.0.1", scripted.address.port())])]);
    upstreams.stop();
    while scripted.asked.try_recv().is_ok() {}
    assert!(scripted.asked.recv_timeout(Duration::from_millis(200)).is_err());
}

#[test]
fn a_question_has_the_fields_that_are_configured() {
    let (upstreams, _events) = upstreams();
    let scripted = Scripted::start(GOOD);
    let fields = [("Host", "inside.example"), ("X-Key", "a b"), ("Content-Length", "7"), ("X-Bad", "a\r\nb")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let (uri, method) = ("/live?deep=1".to_owned(), "HEAD".to_owned());
    reload(&upstreams, &[scripted.proxy(ActiveHealth { fields, uri, method, ..every(60_000) })]);
    let asked = scripted.asked.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(
        asked,
        "HEAD /live?deep=1 HTTP/1.1\nHost: inside.example\nUser-Agent: onehop-health\nX-Key: a b"
    );
    upstreams.stop();
}

/// What is told of an upstream that answers so.
fn verdict(answer: &str, health: ActiveHealth) -> Option<String> {
    let (upstreams, events) = upstreams();
    let scripted = Scripted::start(answer);
    let health = ActiveHealth { fails: 1, ..health };
    let proxies = reload(&upstreams, &[scripted.proxy(health)]);
    let mut reason = None;
    // The second check begins when the first is answered.
    scripted.wait_for_questions(2);
    if let Ok(Event::UpstreamDown { reason: reported, .. }) = events.try_recv() {
        reason = Some(reported);
    }
    upstreams.stop();
    assert_eq!(proxies[0].members[0].is_available(&checked::PassiveHealth::default()), reason.is_none());
    reason
}

#[test]
fn an_answer_is_judged_by_its_status_and_its_body() {
    let body = |expression: &str| ActiveHealth { body: Some(expression.to_owned()), ..every(20) };
    let exactly = |status| ActiveHealth { status: StatusTest::Exactly(status), ..every(20) };
    let ok = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
              4\r\nall \r\n4\r\nwell\r\n0\r\n\r\n";
    for (answer, health, reason) in [
        (ok, every(20), None),
        (ok, body("^all w"), None),
        (ok, body("^well"), Some("its body does not match `^well`")),
        (ok, exactly(204), Some("it answered 200 instead of 204")),
        ("HTTP/1.0 200 OK\r\n\r\nwell", body("^well$"), None),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwell",
            body("well"),
            Some("its answer is broken: UnexpectedEnd"),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwell", every(20), None),
        ("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", exactly(302), None),
        ("HTTP/1.1 2", every(20), Some("it closed the connection without an answer")),
        ("220 smtp.example ESMTP\r\n\r\n", every(20), Some("its answer is broken: BadStatusLine")),
    ] {
        assert_eq!(verdict(answer, health).as_deref(), reason, "{answer:?}");
    }
}

#[test]
fn an_upstream_that_refuses_or_says_nothing_is_down() {
    let (upstreams, events) = upstreams();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The kernel accepts for it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let health = ActiveHealth { fails: 1, timeout: Duration::from_millis(300), ..every(60_000) };
    let mut proxies = [nobody, silent.local_addr().unwrap()].map(|at| proxy_to(&[("127.0.0.1", at.port())]));
    proxies.iter_mut().for_each(|proxy| proxy.active_health = Some(health.clone()));
    reload(&upstreams, &proxies);
    let mut reasons: Vec<_> = (0..2)
        .map(|_| match events.recv_timeout(TIMEOUT).unwrap() {
            Event::UpstreamDown { reason, .. } => reason,
            other => panic!("{other:?}"),
        })
        .collect();
    reasons.sort();
    assert_eq!(reasons, ["no answer within 300ms", "no connection: Connection refused (os error 111)"]);
    upstreams.stop();
}

#[test]
fn a_redirect_is_followed_where_that_is_asked_for_and_always_to_the_same_upstream() {
    let (upstreams, events) = upstreams();
    let scripted =
        Scripted::start("HTTP/1.1 303 See Other\r\nLocation: https://elsewhere.example/b?c=d#e\r\n\r\n");
    let (method, request_body) = ("POST".to_owned(), "how are you?".to_owned());
    let health = ActiveHealth { follow_redirects: true, fails: 1, method, request_body, ..every(60_000) };
    reload(&upstreams, &[scripted.proxy(health)]);
    let asked: Vec<_> = (0..3).map(|_| scripted.asked.recv_timeout(TIMEOUT).unwrap()).collect();
    let host = scripted.address;
    assert_eq!(
        asked[0],
        format!("POST /health HTTP/1.1\nHost: {host}\nUser-Agent: onehop-health\nContent-Length: 12")
    );
    let second = "GET /b?c=d HTTP/1.1\nHost: elsewhere.example\nUser-Agent: onehop-health";
    assert_eq!(asked[1..], [second, second]);
    let Event::UpstreamDown { reason, .. } = events.recv_timeout(TIMEOUT).unwrap() else { panic!() };
    assert_eq!(reason, "it redirected more than 10 times");
    upstreams.stop();
}

#[test]
fn somebody_else_may_be_asked() {
    let (upstreams, _events) = upstreams();
    let scripted = Scripted::start(GOOD);
    let mut proxy = proxy_to(&[("127.0.0.1", 1)]);
    let target = Some(("127.0.0.1".to_owned(), scripted.address.port()));
    proxy.active_health = Some(ActiveHealth { target, port: Some(9), ..every(60_000) });
    reload(&upstreams, &[proxy]);
    scripted.wait_for_questions(1);
    upstreams.stop();
}

#[test]
fn another_port_may_be_asked() {
    let (upstreams, _events) = upstreams();
    let scripted = Scripted::start(GOOD);
    let mut proxy = proxy_to(&[("127.0.0.1", 1)]);
    proxy.active_health = Some(ActiveHealth { port: Some(scripted.address.port()), ..every(60_000) });
    reload(&upstreams, &[proxy]);
    let asked = scripted.asked.recv_timeout(TIMEOUT).unwrap();
    assert!(asked.contains(&format!("\nHost: {}\n", scripted.address)), "{asked}");
    upstreams.stop();
}
