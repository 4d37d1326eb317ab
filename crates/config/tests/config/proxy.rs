//! `reverse_proxy`: what its lines mean.

mod health;
mod transport;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::{Memory, text_of};
use crate::outline::{conditions, outline, template};
use onehop_config::checked::proxy::{
    ActiveHealth, AmbiguousHeaders, Balance, BalancePolicy, CookieSecret, EncryptedVersions, PassiveHealth,
    Proxy, ProxyAddress, ProxyFlush, ProxyPool, ProxyTls, ProxyTransport, ProxyUpstream, ProxyVersions,
    StatusTest,
};
use onehop_config::checked::{HeaderOp, Network, Part, Placeholder, Step, Template};
use onehop_config::{FileKind, Loaded, load};

/// A site with these lines, beside files of certificates.
pub(crate) fn site(lines: &str) -> Memory {
    Memory::main(&format!(":8080 {{\n{lines}\n}}\n"))
        .file("ca.pem", "")
        .file("more.pem", "")
        .file("client.pem", "")
        .file("client.key", "")
}

fn proxies_of(loaded: &Loaded) -> Vec<Arc<Proxy>> {
    let mut proxies = Vec::new();
    loaded.checked.each_step(|step| {
        if let Step::Proxy(proxy) = step {
            proxies.push(Arc::clone(proxy));
        }
    });
    proxies
}

/// The only proxy of these lines, about which nothing is to be said.
#[track_caller]
fn proxy(lines: &str) -> Proxy {
    let loaded = site(lines).sound();
    assert_eq!(text_of(&loaded.warnings), "", "{lines}");
    only(&loaded)
}

/// The same where something is to be said: how often.
#[track_caller]
fn warned(lines: &str) -> (Proxy, String) {
    let loaded = site(lines).sound();
    (only(&loaded), text_of(&loaded.warnings))
}

#[track_caller]
fn only(loaded: &Loaded) -> Proxy {
    let proxies = proxies_of(loaded);
    assert_eq!(proxies.len(), 1, "{proxies:?}");
    Proxy::clone(&proxies[0])
}

/// With these lines in its block.
#[track_caller]
fn with(options: &str) -> Proxy {
    proxy(&format!("reverse_proxy a:80 {{\n{options}\n}}"))
}

/// With these lines in its transport.
#[track_caller]
fn over(options: &str) -> ProxyTransport {
    with(&format!("transport http {{\n{options}\n}}")).transport
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn tcp(host: &str, port: u16) -> ProxyAddress {
    ProxyAddress::Tcp { host: host.into(), port }
}

fn upstream(label: &str, address: ProxyAddress) -> ProxyUpstream {
    ProxyUpstream { label: label.into(), address }
}

fn transport() -> ProxyTransport {
    ProxyTransport {
        tls: None,
        versions: ProxyVersions::default(),
        dial_timeout: seconds(3),
        dial_fallback_delay: Some(Duration::from_millis(300)),
        read_timeout: None,
        write_timeout: None,
        response_header_timeout: None,
        expect_continue_timeout: None,
        max_conns_per_host: None,
        keepalive: Some(seconds(120)),
        keepalive_interval: Some(seconds(30)),
        keepalive_idle_conns: None,
        keepalive_idle_conns_per_host: 32,
        resolvers: Vec::new(),
        max_response_header: None,
    }
}

fn tls() -> ProxyTls {
    ProxyTls {
        server_name: None,
        insecure_skip_verify: false,
        trusted: Vec::new(),
        client_certificate: None,
        timeout: seconds(10),
        except_ports: Vec::new(),
    }
}

fn active() -> ActiveHealth {
    ActiveHealth {
        uri: "/".into(),
        port: None,
        target: None,
        interval: seconds(30),
        timeout: seconds(5),
        status: StatusTest::Class(2),
        follow_redirects: false,
        body: None,
        passes: 1,
        fails: 1,
        fields: Vec::new(),
        method: "GET".into(),
        request_body: String::new(),
    }
}

fn defaults(name: &str, upstreams: Vec<ProxyUpstream>) -> Proxy {
    Proxy {
        name: name.into(),
        upstreams,
        transport: transport(),
        pool: ProxyPool { min: 1, max: None },
        balance: Balance {
            policy: BalancePolicy::Random,
            retries: None,
            try_duration: Duration::ZERO,
            try_interval: Duration::ZERO,
            retry_match: Vec::new(),
        },
        active_health: None,
        passive_health: PassiveHealth {
            fail_duration: None,
            max_fails: 1,
            unhealthy_status: Vec::new(),
            unhealthy_latency: None,
            unhealthy_request_count: None,
        },
        request_fields: Vec::new(),
        answer_fields: Vec::new(),
        flush: ProxyFlush::AsItComes,
        request_buffer_bytes: 0,
        answer_buffer_bytes: 0,
        stream_timeout: None,
        stream_close_delay: None,
        ambiguous_headers: AmbiguousHeaders::Drop,
        trusted_proxies: Vec::new(),
    }
}

/// The file that began it: a comment stands behind a value in the block.
const KEPT: &str = "http://127.0.0.1:7718 {
	reverse_proxy 100.2.3.4:7718 {
		transport http {
			keepalive 1800s # 30 minutes
			keepalive_idle_conns 20
		}
	}
}
";

#[test]
fn a_caddyfile_that_keeps_connections_for_half_an_hour_checks_without_a_word() {
    for kind in [FileKind::Onehopfile, FileKind::Caddyfile] {
        let memory = Memory::default().file("/etc/caddy/Caddyfile", KEPT);
        let loaded = load(Path::new("/etc/caddy/Caddyfile"), kind, &memory).unwrap();
        assert_eq!(text_of(&loaded.warnings), "");
        let mut expected =
            defaults("100.2.3.4:7718", vec![upstream("100.2.3.4:7718", tcp("100.2.3.4", 7718))]);
        expected.transport.keepalive = Some(seconds(1800));
        expected.transport.keepalive_idle_conns = Some(20);
        assert_eq!(only(&loaded), expected);
    }
}

#[test]
fn an_upstream_alone_is_a_proxy_with_every_default() {
    let expected = defaults("a.internal:8080", vec![upstream("a.internal:8080", tcp("a.internal", 8080))]);
    for line in [
        "reverse_proxy a.internal:8080",
        "reverse_proxy * a.internal:8080",
        "reverse_proxy /api/* a.internal:8080",
        "@api path /api/*\nreverse_proxy @api a.internal:8080",
        "reverse_proxy {\nto a.internal:8080\n}",
        "reverse_proxy {$UPSTREAM:a.internal:8080}",
        "reverse_proxy a.internal:8080 {\ntransport http\n}",
    ] {
        assert_eq!(proxy(line), expected, "{line}");
    }
}

#[test]
fn an_upstream_is_written_as_caddy_has_it() {
    for (written, label, host, port) in [
        ("a:8080", "a:8080", "a", 8080),
        ("a", "a:80", "a", 80),
        (":8080", ":8080", "127.0.0.1", 8080),
        ("http://:8080", ":8080", "127.0.0.1", 8080),
        ("http://a", "a:80", "a", 80),
        ("HTTP://a:3000", "a:3000", "a", 3000),
        ("tcp/a:3000", "a:3000", "a", 3000),
        ("10.0.0.7:3000", "10.0.0.7:3000", "10.0.0.7", 3000),
        ("[::1]:3000", "[::1]:3000", "::1", 3000),
        ("[::1]", "[::1]:80", "::1", 80),
        ("::1", "[::1]:80", "::1", 80),
        ("http://[2001:db8::7]", "[2001:db8::7]:80", "2001:db8::7", 80),
        ("my_app-1.internal.:3000", "my_app-1.internal.:3000", "my_app-1.internal.", 3000),
    ] {
        let proxy = proxy(&format!("reverse_proxy {written}"));
        assert_eq!(proxy.upstreams, [upstream(label, tcp(host, port))], "{written}");
        assert_eq!(proxy.transport.tls, None, "{written}");
    }
}

#[test]
fn https_alone_means_tls_with_its_defaults() {
    for (written, label, port) in [("https://a", "a:443", 443), ("https://a:8443", "a:8443", 8443)] {
        let proxy = proxy(&format!("reverse_proxy {written}"));
        assert_eq!(proxy.upstreams, [upstream(label, tcp("a", port))], "{written}");
        assert_eq!(proxy.transport, ProxyTransport { tls: Some(tls()), ..transport() }, "{written}");
    }
}

#[test]
fn a_unix_socket_is_a_path() {
    for (written, path) in [("unix//run/a.sock", "/run/a.sock"), ("unix/a.sock", "/work/a.sock")] {
        let label = format!("unix/{path}");
        let expected = upstream(&label, ProxyAddress::Unix(path.into()));
        assert_eq!(proxy(&format!("reverse_proxy {written}")).upstreams, [expected], "{written}");
    }
}

#[test]
fn a_range_of_ports_is_an_upstream_for_each() {
    for (written, host) in [
        ("a:8000-8002", "a"),
        ("http://a:8000-8002", "a"),
        (":8000-8002", "127.0.0.1"),
        ("a:8000 a:8001-8002", "a"),
    ] {
        let proxy = proxy(&format!("reverse_proxy {written}"));
        let addresses: Vec<ProxyAddress> =
            proxy.upstreams.into_iter().map(|upstream| upstream.address).collect();
        assert_eq!(addresses, [tcp(host, 8000), tcp(host, 8001), tcp(host, 8002)], "{written}");
    }
}

#[test]
fn an_upstream_with_placeholders_is_known_with_the_request() {
    for (written, shown) in [
        ("{labels.2}.internal:8080", "<HostLabel(2)>.internal:8080"),
        ("{header.X-Upstream}", "<Header(\"x-upstream\")>"),
        ("a:{query.port}", "a:<QueryValue(\"port\")>"),
        (":{query.port}", "127.0.0.1:<QueryValue(\"port\")>"),
    ] {
        let proxy = proxy(&format!("reverse_proxy {written}"));
        let [ProxyUpstream { label, address: ProxyAddress::OfRequest(address) }] = proxy.upstreams.as_slice()
        else {
            panic!("{written}: {:?}", proxy.upstreams)
        };
        assert_eq!((label.as_str(), template(address).as_str()), (written, shown));
        assert_eq!(proxy.pool.min, 0, "no connection is open before a request says where to");
    }
}

#[test]
fn a_variable_is_read_once_and_may_hold_a_whole_address() {
    let memory = site("reverse_proxy {env.HOST}:{env.PORT} https://{env.HOST}")
        .variable("HOST", "a.internal")
        .variable("PORT", "8000");
    let problem = memory.load().map(|loaded| text_of(&loaded.warnings)).unwrap();
    assert!(problem.contains("over TLS as well"), "{problem}");
    let memory = site("reverse_proxy {$UPSTREAMS}").variable("UPSTREAMS", "a:1 b:2");
    assert_eq!(only(&memory.sound()).upstreams.len(), 2);
}

#[test]
fn upstreams_of_the_line_come_before_those_of_the_block() {
    let proxy = proxy("reverse_proxy a:1 b:2 {\nto c:3\nto d:4 e:5\n}");
    let labels: Vec<&str> = proxy.upstreams.iter().map(|upstream| upstream.label.as_str()).collect();
    assert_eq!(labels, ["a:1", "b:2", "c:3", "d:4", "e:5"]);
    assert_eq!(proxy.name, "a:1 b:2 c:3 d:4 e:5");
}

#[test]
fn a_name_of_many_upstreams_is_cut() {
    let many: Vec<String> = (0..100).map(|number| format!("upstream-{number}.internal:80")).collect();
    let name = proxy(&format!("reverse_proxy {}", many.join(" "))).name;
    assert!(
        name.starts_with("upstream-0.internal:80 upstream-1") && name.ends_with(" and 95 more"),
        "{name}"
    );
}

#[test]
fn every_policy_has_its_place() {
    let random = || Box::new(BalancePolicy::Random);
    for (written, policy) in [
        ("random", BalancePolicy::Random),
        ("random_choose 2", BalancePolicy::RandomChoose(2)),
        ("first", BalancePolicy::First),
        ("round_robin", BalancePolicy::RoundRobin),
        ("weighted_round_robin 3 0", BalancePolicy::WeightedRoundRobin(vec![3, 0])),
        ("least_conn", BalancePolicy::LeastConn),
        ("peak_ewma", BalancePolicy::PeakEwma),
        ("ip_hash", BalancePolicy::IpHash),
        ("client_ip_hash", BalancePolicy::ClientIpHash),
        ("uri_hash", BalancePolicy::UriHash),
        ("query key", BalancePolicy::Query("key".into(), random())),
        ("header X-User", BalancePolicy::Header("x-user".into(), random())),
        (
            "header X-User {\nfallback first\n}",
            BalancePolicy::Header("x-user".into(), Box::new(BalancePolicy::First)),
        ),
        (
            "query key {\nfallback weighted_round_robin 1 2\n}",
            BalancePolicy::Query("key".into(), Box::new(BalancePolicy::WeightedRoundRobin(vec![1, 2]))),
        ),
        (
            "cookie",
            BalancePolicy::Cookie {
                name: "lb".into(),
                secret: CookieSecret(String::new()),
                max_age: None,
                fallback: random(),
            },
        ),
        (
            "cookie seat secret {\nmax_age 1h\nfallback header X-User {\nfallback ip_hash\n}\n}",
            BalancePolicy::Cookie {
                name: "seat".into(),
                secret: CookieSecret("secret".into()),
                max_age: Some(seconds(3600)),
                fallback: Box::new(BalancePolicy::Header("x-user".into(), Box::new(BalancePolicy::IpHash))),
            },
        ),
    ] {
        let proxy = proxy(&format!("reverse_proxy a:1 b:2 {{\nlb_policy {written}\n}}"));
        assert_eq!(proxy.balance.policy, policy, "{written}");
    }
}

#[test]
fn the_secret_of_a_cookie_is_not_shown() {
    let policy = with("lb_policy cookie seat much-secret").balance.policy;
    let shown = format!("{policy:?}");
    assert!(shown.contains("seat") && !shown.contains("much-secret"), "{shown}");
}

#[test]
fn attempts_pause_where_they_go_on_for_a_time_and_not_where_they_are_counted() {
    let millis = Duration::from_millis;
    for (written, pause) in [
        ("lb_retries 3", Duration::ZERO),
        ("lb_retries 3\nlb_try_interval 0", Duration::ZERO),
        ("lb_retries 3\nlb_try_interval 40ms", millis(40)),
        ("lb_try_duration 5s", millis(250)),
        ("lb_try_interval 0\nlb_try_duration 5s", millis(250)),
        ("lb_retries 3\nlb_try_duration 5s", millis(250)),
        ("lb_try_duration 5s\nlb_try_interval 40ms", millis(40)),
    ] {
        assert_eq!(with(written).balance.try_interval, pause, "{written}");
    }
}

#[test]
fn retries_have_a_number_a_time_a_pause_and_conditions() {
    let balance = with(
        "lb_retries 3
        lb_try_duration 5s
        lb_try_interval 100ms
        lb_retry_match method POST PUT
        lb_retry_match {
            path /safe/*
            header Idempotency-Key *
        }",
    )
    .balance;
    assert_eq!((balance.retries, balance.try_duration), (Some(3), seconds(5)));
    assert_eq!(balance.try_interval, Duration::from_millis(100));
    let matchers: Vec<String> = balance.retry_match.iter().map(conditions).collect();
    assert_eq!(matchers, ["method POST PUT", "path /safe/* and header idempotency-key"]);
    let balance = with("lb_retries 0\nlb_try_duration 0").balance;
    assert_eq!((balance.retries, balance.try_duration), (None, Duration::ZERO));
}

#[test]
fn ambiguous_headers_are_dropped_unless_they_are_to_pass() {
    for (options, expected) in [
        ("", AmbiguousHeaders::Drop),
        ("ambiguous_headers drop", AmbiguousHeaders::Drop),
        ("ambiguous_headers pass", AmbiguousHeaders::Pass),
    ] {
        assert_eq!(with(options).ambiguous_headers, expected, "{options}");
    }
}

#[test]
fn fields_are_changed_as_header_changes_them_and_in_caddys_order() {
    let proxy = with(
        "header_up X-Path ^/old /new
        header_up -X-Gone
        header_up X-Set {client_ip}
        header_up +X-Added one
        header_up Host {upstream_hostport}
        header_up -*
        header_down -Server
        header_down X-From {http.reverse_proxy.upstream.host}:{http.reverse_proxy.upstream.port}
        header_down >X-Late one",
    );
    let text = |text: &str| Template::text(text);
    let value = |value| Template { parts: vec![Part::Value(value)] };
    assert_eq!(
        proxy.request_fields,
        [
            HeaderOp::Delete { name: "*".into() },
            HeaderOp::Add { name: "X-Added".into(), value: text("one") },
            HeaderOp::Set { name: "X-Set".into(), value: value(Placeholder::ClientIp) },
            HeaderOp::Set { name: "Host".into(), value: value(Placeholder::UpstreamHostPort) },
            HeaderOp::Delete { name: "x-gone".into() },
            HeaderOp::Replace { name: "x-path".into(), find: "^/old".into(), replace: text("/new") },
        ]
    );
    let from = Template {
        parts: vec![
            Part::Value(Placeholder::UpstreamHost),
            Part::Text(":".into()),
            Part::Value(Placeholder::UpstreamPort),
        ],
    };
    assert_eq!(
        proxy.answer_fields,
        [
            HeaderOp::Set { name: "X-From".into(), value: from },
            HeaderOp::Set { name: "X-Late".into(), value: text("one") },
            HeaderOp::Delete { name: "server".into() },
        ]
    );
}

#[test]
fn framing_and_connections_are_not_for_header_up() {
    for field in [
        "Connection {header.Connection}",
        "Upgrade websocket",
        "Content-Length 5",
        "-Transfer-Encoding",
        "te trailers",
    ] {
        for option in ["header_up", "header_down"] {
            let (proxy, warning) = warned(&format!("reverse_proxy a {{\n{option} {field}\n}}"));
            assert!(warning.contains("has no effect"), "{field}: {warning}");
            assert_eq!((proxy.request_fields, proxy.answer_fields), (Vec::new(), Vec::new()), "{field}");
        }
    }
}

#[test]
fn flushing_is_at_once_in_time_or_as_it_comes() {
    for (written, flush) in [
        ("-1", ProxyFlush::Immediately),
        ("-1ms", ProxyFlush::Immediately),
        ("10us", ProxyFlush::Immediately),
        ("0", ProxyFlush::AsItComes),
        ("0s", ProxyFlush::AsItComes),
        ("100ms", ProxyFlush::Every(Duration::from_millis(100))),
    ] {
        assert_eq!(with(&format!("flush_interval {written}")).flush, flush, "{written}");
    }
}

#[test]
fn buffers_and_tunnels_are_bounded_as_the_file_says() {
    let proxy = with("request_buffers 64KiB\nresponse_buffers 4k\nstream_timeout 24h\nstream_close_delay 5m");
    assert_eq!((proxy.request_buffer_bytes, proxy.answer_buffer_bytes), (65_536, 4_000));
    assert_eq!((proxy.stream_timeout, proxy.stream_close_delay), (Some(seconds(86_400)), Some(seconds(300))));
    let proxy = with("stream_timeout 0\nstream_close_delay 0");
    assert_eq!((proxy.stream_timeout, proxy.stream_close_delay), (None, Some(Duration::ZERO)));
    for size in ["unlimited", "1GiB"] {
        let (proxy, warning) = warned(&format!("reverse_proxy a {{\nrequest_buffers {size}\n}}"));
        assert_eq!(proxy.request_buffer_bytes, 16 << 20, "{size}");
        assert!(warning.contains("at most 16MiB"), "{warning}");
    }
}

#[test]
fn trusted_proxies_of_the_directive_and_of_all_servers_add_up() {
    let shown = |networks: &[Network]| networks.iter().map(Network::to_string).collect::<Vec<_>>().join(" ");
    let file = "{
        servers {
            trusted_proxies static 192.0.2.0/24 203.0.113.4
            trusted_proxies_strict
            trusted_proxies_unix
            client_ip_headers X-Forwarded-For
            protocols h1
        }
    }
    :8080 {
        reverse_proxy /a a:80
        reverse_proxy /b a:80 {
            trusted_proxies 198.51.100.7
            trusted_proxies 203.0.113.4
        }
        app /c/* api/server.mjs
        app /d/* api/server.mjs {
            trusted_proxies 198.51.100.8
        }
    }";
    let loaded = Memory::main(file).file("api/server.mjs", "").sound();
    assert_eq!(text_of(&loaded.warnings), "");
    let proxies: Vec<String> =
        proxies_of(&loaded).iter().map(|proxy| shown(&proxy.trusted_proxies)).collect();
    assert_eq!(proxies, ["192.0.2.0/24 203.0.113.4/32", "198.51.100.7/32 203.0.113.4/32 192.0.2.0/24"]);
    let apps: Vec<String> = loaded.checked.apps().iter().map(|app| shown(&app.trusted_proxies)).collect();
    assert_eq!(apps, ["192.0.2.0/24 203.0.113.4/32", "198.51.100.8/32 192.0.2.0/24 203.0.113.4/32"]);
    assert_eq!(with("trusted_proxies private_ranges").trusted_proxies.len(), 6);
}

#[test]
fn it_acts_behind_respond_and_before_files() {
    let loaded =
        site("file_server\nreverse_proxy b:80\nreverse_proxy /api/* a:80\nrespond /r hi\nencode").sound();
    assert_eq!(
        outline(&loaded.checked.sites[0].routes),
        "root /work
encode [Zstd, Gzip] from 512
respond 200 \"hi\" path /r
reverse_proxy a:80 path /api/*
reverse_proxy b:80
file_server
"
    );
}

#[test]
fn equal_proxies_are_one() {
    let loaded = site("reverse_proxy /a a:80\nreverse_proxy /b a:80\nreverse_proxy /c b:80").sound();
    assert_eq!(loaded.checked.proxies().len(), 2);
}

/// Every option that works, except those that contradict another one.
const EVERY_OPTION: &str = include_str!("every_option.caddyfile");

#[test]
fn a_caddyfile_with_every_option_checks_without_a_word() {
    let memory = ["ca.pem", "client.pem", "client.key"]
        .into_iter()
        .fold(Memory::default().file("Caddyfile", EVERY_OPTION), |memory, file| memory.file(file, ""));
    let loaded = load(Path::new("Caddyfile"), FileKind::Caddyfile, &memory)
        .unwrap_or_else(|problems| panic!("{}", text_of(&problems)));
    assert_eq!(text_of(&loaded.warnings), "");
    insta::assert_debug_snapshot!(only(&loaded));
}
