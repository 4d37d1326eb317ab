//! Active and passive health checks.

use super::*;

#[test]
fn every_option_of_active_health_has_its_place() {
    let health = with(
        "health_uri /health?full=1
        health_port 8081
        health_interval 10s
        health_timeout 2s
        health_status 204
        health_body `^(ok|well)$`
        health_passes 2
        health_fails 3
        health_headers {
            Host app.internal
            X-Many one two
            X-None
        }
        health_method POST
        health_request_body \"are you well\"
        health_follow_redirects",
    )
    .active_health;
    let fields = [("Host", "app.internal"), ("X-Many", "one"), ("X-Many", "two"), ("X-None", "")];
    let expected = ActiveHealth {
        uri: "/health?full=1".into(),
        port: Some(8081),
        target: None,
        interval: seconds(10),
        timeout: seconds(2),
        status: StatusTest::Exactly(204),
        follow_redirects: true,
        body: Some("^(ok|well)$".into()),
        passes: 2,
        fails: 3,
        fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        method: "POST".into(),
        request_body: "are you well".into(),
    };
    assert_eq!(health, Some(expected));
}

#[test]
fn one_option_of_active_health_keeps_the_defaults_of_the_others() {
    for (written, expected) in [
        ("health_uri /up", ActiveHealth { uri: "/up".into(), ..active() }),
        ("health_uri up", ActiveHealth { uri: "/up".into(), ..active() }),
        ("health_port 8081", ActiveHealth { port: Some(8081), ..active() }),
        (
            "health_uri /\nhealth_upstream [::1]:8081",
            ActiveHealth { target: Some(("::1".into(), 8081)), ..active() },
        ),
        ("health_uri /\nhealth_status 2xx", active()),
        ("health_uri /\nhealth_status 3", ActiveHealth { status: StatusTest::Class(3), ..active() }),
    ] {
        assert_eq!(with(written).active_health, Some(expected), "{written}");
    }
    let (proxy, warning) = warned("reverse_proxy a {\nhealth_path /up\n}");
    assert_eq!(proxy.active_health, Some(ActiveHealth { uri: "/up".into(), ..active() }));
    assert!(warning.contains("write `health_uri`"), "{warning}");
}

#[test]
fn every_option_of_passive_health_has_its_place() {
    let health = with(
        "fail_duration 30s
        max_fails 3
        unhealthy_status 5xx 429
        unhealthy_status 404
        unhealthy_latency 2s
        unhealthy_request_count 50",
    )
    .passive_health;
    let expected = PassiveHealth {
        fail_duration: Some(seconds(30)),
        max_fails: 3,
        unhealthy_status: vec![StatusTest::Class(5), StatusTest::Exactly(429), StatusTest::Exactly(404)],
        unhealthy_latency: Some(seconds(2)),
        unhealthy_request_count: Some(50),
    };
    assert_eq!(health, expected);
    assert_eq!(with("unhealthy_request_count 5").passive_health.max_fails, 1);
}
