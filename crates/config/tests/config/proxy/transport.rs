//! `transport http` and `pool`: how upstreams are reached, and which versions of HTTP are spoken to them.

use super::*;

#[test]
fn every_option_of_the_transport_has_its_place() {
    let transport = over(
        "keepalive 5m
        keepalive_interval 15s
        keepalive_idle_conns 100
        keepalive_idle_conns_per_host 50
        dial_timeout 1s
        dial_fallback_delay 50ms
        read_timeout 10s
        write_timeout 11s
        response_header_timeout 12s
        expect_continue_timeout 2s
        max_conns_per_host 200
        max_response_header 16KiB
        tls
        tls_server_name {labels.0}.app.internal
        tls_client_auth client.pem client.key
        tls_trust_pool file ca.pem /work/more.pem
        tls_timeout 4s
        tls_except_ports 8080 8081
        versions 1.1
        resolvers 192.0.2.53 [2001:db8::53]:5353 udp/192.0.2.54:53 2001:db8::54",
    );
    let name = vec![Part::Value(Placeholder::HostLabel(0)), Part::Text(".app.internal".into())];
    let tls = ProxyTls {
        server_name: Some(Template { parts: name }),
        insecure_skip_verify: false,
        trusted: vec!["/work/ca.pem".into(), "/work/more.pem".into()],
        client_certificate: Some(("/work/client.pem".into(), "/work/client.key".into())),
        timeout: seconds(4),
        except_ports: vec![8080, 8081],
    };
    let resolvers = ["192.0.2.53:53", "[2001:db8::53]:5353", "192.0.2.54:53", "[2001:db8::54]:53"];
    let expected = ProxyTransport {
        tls: Some(tls),
        versions: ProxyVersions::default(),
        dial_timeout: seconds(1),
        dial_fallback_delay: Some(Duration::from_millis(50)),
        read_timeout: Some(seconds(10)),
        write_timeout: Some(seconds(11)),
        response_header_timeout: Some(seconds(12)),
        expect_continue_timeout: Some(seconds(2)),
        max_conns_per_host: Some(200),
        keepalive: Some(seconds(300)),
        keepalive_interval: Some(seconds(15)),
        keepalive_idle_conns: Some(100),
        keepalive_idle_conns_per_host: 50,
        resolvers: resolvers.map(|address| address.parse().unwrap()).to_vec(),
        max_response_header: Some(16 << 10),
    };
    assert_eq!(transport, expected);
}

#[test]
fn one_option_of_the_transport_keeps_the_defaults_of_the_others() {
    let base = transport;
    for (written, expected) in [
        ("keepalive 1m", ProxyTransport { keepalive: Some(seconds(60)), ..base() }),
        ("keepalive off", ProxyTransport { keepalive: None, ..base() }),
        ("keepalive_interval -1s", ProxyTransport { keepalive_interval: None, ..base() }),
        ("keepalive_idle_conns 0", base()),
        ("keepalive_idle_conns_per_host 5", ProxyTransport { keepalive_idle_conns_per_host: 5, ..base() }),
        ("dial_fallback_delay -1s", ProxyTransport { dial_fallback_delay: None, ..base() }),
        ("max_conns_per_host 0", base()),
        ("read_timeout 0", base()),
        ("compression off", base()),
        ("max_response_header 0", base()),
        ("tls", ProxyTransport { tls: Some(tls()), ..base() }),
        ("tls_server_name {http.reverse_proxy.upstream.host}", ProxyTransport { tls: Some(tls()), ..base() }),
        ("tls_timeout 2s", ProxyTransport { tls: Some(ProxyTls { timeout: seconds(2), ..tls() }), ..base() }),
        (
            "tls_trusted_ca_certs ca.pem more.pem",
            ProxyTransport {
                tls: Some(ProxyTls {
                    trusted: vec!["/work/ca.pem".into(), "/work/more.pem".into()],
                    ..tls()
                }),
                ..base()
            },
        ),
        (
            "tls_trust_pool file {\npem_file ca.pem\n}",
            ProxyTransport {
                tls: Some(ProxyTls { trusted: vec!["/work/ca.pem".into()], ..tls() }),
                ..base()
            },
        ),
    ] {
        assert_eq!(over(written), expected, "{written}");
    }
}

#[test]
fn a_zero_that_means_the_default_is_said() {
    for (written, shown) in [
        ("keepalive 0", "`keepalive 2m`"),
        ("keepalive_interval 0s", "`keepalive_interval 30s`"),
        ("dial_timeout 0", "`dial_timeout 3s`"),
        ("dial_fallback_delay 0", "`dial_fallback_delay 300ms`"),
        ("keepalive_idle_conns_per_host 0", "`keepalive_idle_conns_per_host 32`"),
    ] {
        let (proxy, warning) = warned(&format!("reverse_proxy a {{\ntransport http {{\n{written}\n}}\n}}"));
        assert_eq!(proxy.transport, transport(), "{written}");
        assert!(warning.contains(shown), "{written}: {warning}");
    }
}

#[test]
fn a_pool_has_a_floor_a_bound_and_a_time() {
    for (written, min, max, idle) in [
        ("pool min 4", 4, None, 120),
        ("pool max 64", 1, Some(64), 120),
        ("pool idle 30m", 1, None, 1800),
        ("pool min 4 max 64 idle 30m", 4, Some(64), 1800),
        ("pool idle 30m min 4", 4, None, 1800),
        ("pool min 0", 0, None, 120),
        ("pool idle 30m\ntransport http {\nkeepalive 1800s\n}", 1, None, 1800),
        ("pool min 4 max 64\ntransport http {\nmax_conns_per_host 64\n}", 4, Some(64), 120),
        ("transport http {\nkeepalive off\n}", 0, None, 0),
    ] {
        let proxy = with(written);
        assert_eq!(proxy.pool, ProxyPool { min, max }, "{written}");
        assert_eq!(proxy.transport.keepalive.unwrap_or_default(), seconds(idle), "{written}");
    }
    assert_eq!(with("pool min 100").transport.keepalive_idle_conns_per_host, 100);
}

#[test]
fn the_usual_floor_gives_way_to_a_bound_that_leaves_no_room_for_it() {
    let proxy = proxy("reverse_proxy a:8000-8019 {\ntransport http {\nkeepalive_idle_conns 10\n}\n}");
    assert_eq!(proxy.pool.min, 0);
    let proxy = with("transport http {\ntls_server_name {host}\n}");
    assert_eq!(proxy.pool.min, 0, "the name that is asked for is only known with the request");
}

fn speaks(h2c: bool, encrypted: EncryptedVersions) -> ProxyVersions {
    ProxyVersions { h2c, encrypted }
}

#[test]
fn versions_say_what_is_spoken_in_the_clear_and_over_tls() {
    use EncryptedVersions::{Http1, Http2, Negotiated};
    for (written, expected) in [
        ("versions 1.1", speaks(false, Http1)),
        ("tls\nversions 1.1 2", speaks(false, Negotiated)),
        ("tls\nversions 2", speaks(false, Http2)),
        ("versions h2c 2", speaks(true, Http2)),
        ("versions h2c", speaks(true, Http2)),
        ("versions 1.1 2 h2c", speaks(true, Negotiated)),
    ] {
        assert_eq!(over(written).versions, expected, "{written}");
    }
}

#[test]
fn h2c_before_an_address_is_http_2_in_the_clear() {
    for (written, upstreams) in [
        ("h2c://a:50051 h2c://b", vec![upstream("a:50051", tcp("a", 50051)), upstream("b:80", tcp("b", 80))]),
        (
            "unix+h2c//run/app.sock",
            vec![upstream("unix//run/app.sock", ProxyAddress::Unix("/run/app.sock".into()))],
        ),
    ] {
        let proxy = proxy(&format!("reverse_proxy {written}"));
        assert_eq!(proxy.upstreams, upstreams, "{written}");
        assert_eq!(proxy.transport.versions, speaks(true, EncryptedVersions::Http1), "{written}");
    }
}

#[test]
fn version_2_without_tls_has_no_effect() {
    let (proxy, warnings) = warned("reverse_proxy a:80 {\ntransport http {\nversions 1.1 2\n}\n}");
    assert!(!proxy.transport.versions.h2c);
    assert!(warnings.contains("`versions` has no effect"), "{warnings}");
}
