//! `limit` and `rate_limit`: what their lines mean.

use std::time::Duration;

use crate::memory::{Memory, text_of};
use crate::outline::outline;
use onehop_config::checked::limit::{Bound, Limit, Priority, RateKey, RateLimit};
use onehop_config::checked::{Checked, Part, Placeholder, Step, Template};

/// A site with these lines, beside a file that an application may have.
pub(crate) fn site(lines: &str) -> Memory {
    Memory::main(&format!("http://a.example {{\n{lines}\n}}\n")).file("a.mjs", "")
}

#[track_caller]
fn checked(lines: &str) -> Checked {
    let loaded = site(lines).sound();
    assert_eq!(text_of(&loaded.warnings), "", "{lines}");
    loaded.checked
}

/// The bounds of these lines, in the order in which they act.
#[track_caller]
fn limits(lines: &str) -> Vec<Limit> {
    let mut limits = Vec::new();
    checked(lines).each_step(|step| {
        if let Step::Limit(limit) = step {
            limits.push(Limit::clone(limit));
        }
    });
    limits
}

#[track_caller]
fn rates(lines: &str) -> Vec<RateLimit> {
    let mut rates = Vec::new();
    checked(lines).each_step(|step| {
        if let Step::RateLimit(rate) = step {
            rates.push(RateLimit::clone(rate));
        }
    });
    rates
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn fixed(most: u32) -> Limit {
    let label = "http://a.example".to_owned();
    Limit { label, bound: Bound::Fixed(most), queue: 0, wait: Duration::ZERO, lag: None, shed_status: 503 }
}

#[test]
fn a_bound_says_only_what_is_written_and_refuses_the_rest_at_once() {
    let adaptive = |min, max| Bound::Adaptive { min, max };
    for (line, expected) in [
        ("limit in_flight 64", fixed(64)),
        ("limit * in_flight 64", fixed(64)),
        ("limit in_flight 64 queue 0", fixed(64)),
        ("limit in_flight 64 queue 128", Limit { queue: 128, wait: millis(1000), ..fixed(64) }),
        ("limit queue 128 wait 250ms in_flight 64", Limit { queue: 128, wait: millis(250), ..fixed(64) }),
        ("limit in_flight 1 shed 429", Limit { shed_status: 429, ..fixed(1) }),
        ("limit adaptive", Limit { bound: adaptive(1, 4096), ..fixed(0) }),
        ("limit adaptive min 4", Limit { bound: adaptive(4, 4096), ..fixed(0) }),
        (
            "limit adaptive max 9 min 9 shed 500",
            Limit { bound: adaptive(9, 9), shed_status: 500, ..fixed(0) },
        ),
        ("limit adaptive min 5000", Limit { bound: adaptive(5000, 5000), ..fixed(0) }),
        (
            "limit {\nadaptive max 9\nqueue 3\n}",
            Limit { bound: adaptive(1, 9), queue: 3, wait: millis(1000), ..fixed(0) },
        ),
        ("limit in_flight 5 {\nqueue 2 wait 1m\n}", Limit { queue: 2, wait: millis(60_000), ..fixed(5) }),
    ] {
        assert_eq!(limits(line), [expected], "{line}");
    }
}

#[test]
fn a_lag_alone_lets_in_as_many_as_come() {
    let expected = Limit { bound: Bound::Unbounded, lag: Some(millis(70)), ..fixed(0) };
    assert_eq!(limits("limit lag 70ms\napp a.mjs"), [expected]);
}

#[test]
fn a_lag_that_nobody_tells_is_a_warning() {
    for (lines, warnings) in [
        ("limit lag 70ms\nreverse_proxy a:80", 1),
        ("limit lag 70ms\nhandle /a/* {\nlimit lag 1s\napp {\ncommand true\n}\n}", 2),
        ("limit lag 70ms\nhandle /a/* {\napp a.mjs\n}", 0),
    ] {
        assert_eq!(site(lines).sound().warnings.len(), warnings, "{lines}");
    }
    let global =
        |site: &str| Memory::main(&format!("{{\nlimit lag 70ms\n}}\n:80 {{\n{site}\n}}\n")).file("a.mjs", "");
    assert_eq!(global("respond a").sound().warnings.len(), 1);
    assert_eq!(global("app a.mjs").sound().warnings.len(), 0);
}

#[test]
fn the_whole_server_has_a_bound_where_the_global_block_says_so() {
    let loaded = Memory::main("{\n\tlimit in_flight 1000 queue 9 wait 2s\n}\n:80\nrespond a\n").sound();
    let expected = Limit { label: "server".into(), queue: 9, wait: millis(2000), ..fixed(1000) };
    assert_eq!(loaded.checked.global.limit.as_deref(), Some(&expected));
    let app = Memory::main("{\n\tlimit off\n}\n:80\nrespond a\n").sound().checked.global;
    assert_eq!(app.limit, None);
}

#[test]
fn a_bound_is_called_after_what_stands_around_it_and_no_two_alike() {
    let text = "limit in_flight 9
        limit /api/* in_flight 8
        @search path /search
        limit @search in_flight 7
        handle /api/* {
            limit in_flight 6
            limit * priority high
            limit /x in_flight 5
        }
        handle {
            limit in_flight 4
            handle_path /deep/* {
                limit in_flight 3
            }
        }";
    let labels: Vec<String> = limits(text).into_iter().map(|limit| limit.label).collect();
    assert_eq!(
        labels,
        [
            "http://a.example",
            "http://a.example /api/*",
            "http://a.example @search",
            "http://a.example /api/* #2",
            "http://a.example /api/* /x",
            "http://a.example #2",
            "http://a.example /deep/*",
        ]
    );
}

#[test]
fn a_site_at_two_places_has_one_bound() {
    let text = "http://a.example, http://b.example:8080 {\n\tlimit in_flight 3\n\trespond a\n}\n";
    let checked = Memory::main(text).sound().checked;
    assert_eq!(checked.sites.len(), 2);
    let [first, second] = [0, 1].map(|site| checked.sites[site].routes[0].step.clone());
    assert_eq!(first, second);
}

#[test]
fn priorities_stand_beside_bounds_and_alone() {
    let steps = |lines: &str| {
        let mut steps = Vec::new();
        checked(lines).each_step(|step| steps.push(step.clone()));
        steps
    };
    for (word, priority) in [("high", Priority::High), ("normal", Priority::Normal), ("low", Priority::Low)] {
        assert_eq!(steps(&format!("limit priority {word}")), [Step::Priority(priority)]);
    }
    let both = steps("limit in_flight 3 priority low");
    assert_eq!(both, [Step::Priority(Priority::Low), Step::Limit(fixed(3).into())]);
}

#[test]
fn bounds_hold_for_what_the_client_asked_for_and_general_ones_come_first() {
    let lines = "respond /r hi
        limit /api/v1/* in_flight 1 priority high
        limit in_flight 2 priority low
        limit /api/* in_flight 3
        rate_limit 10r/s
        rate_limit /api/* 5r/s
        encode
        rewrite /w /x
        redir /d /e";
    assert_eq!(
        outline(&checked(lines).sites[0].routes),
        "redir /e 302 path /d
priority Low
limit http://a.example Fixed(2)
limit http://a.example /api/* Fixed(3) path /api/*
priority High path /api/v1/*
limit http://a.example /api/v1/* Fixed(1) path /api/v1/*
rewrite /x path /w
rate_limit http://a.example /api/* 5/1s path /api/*
rate_limit http://a.example 10/1s
encode [Zstd, Gzip] from 512
respond 200 \"hi\" path /r
"
    );
}

fn rate(zone: &str, events: u32, seconds: u64) -> RateLimit {
    RateLimit {
        zone: zone.into(),
        key: RateKey::ClientAddress,
        events,
        window: Duration::from_secs(seconds),
        burst: events,
        keys_max: 100_000,
        trusted_proxies: Vec::new(),
        announce: false,
    }
}

fn everybody() -> RateKey {
    RateKey::Template(Template::text("everybody"))
}

#[test]
fn who_stands_in_front_of_every_site_says_who_a_client_is() {
    let text = "{\n\tservers {\n\t\ttrusted_proxies static 10.0.0.5\n\t}\n}\n:80\nrate_limit 10r/s\n";
    let Step::RateLimit(rate) = Memory::main(text).sound().checked.sites[0].routes[0].step.clone() else {
        panic!()
    };
    assert_eq!(rate.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.5/32"]);
}

#[test]
fn a_rate_on_one_line_counts_each_client() {
    let value = |value| RateKey::Template(Template { parts: vec![Part::Value(value)] });
    for (line, expected) in [
        ("rate_limit 10r/s", rate("http://a.example", 10, 1)),
        ("rate_limit * 100r/m", rate("http://a.example", 100, 60)),
        ("rate_limit /login 5r/h", rate("http://a.example /login", 5, 3600)),
        ("rate_limit 1000r/d", rate("http://a.example", 1000, 86_400)),
        ("rate_limit 50r/10s", rate("http://a.example", 50, 10)),
        ("rate_limit 10r/s burst 1", RateLimit { burst: 1, ..rate("http://a.example", 10, 1) }),
        ("rate_limit 10r/s keys 1000", RateLimit { keys_max: 1000, ..rate("http://a.example", 10, 1) }),
        ("rate_limit 10r/s zone api by ip", rate("api", 10, 1)),
        (
            "rate_limit 10r/s by header X-Api-Key burst 20",
            RateLimit {
                key: RateKey::Header("x-api-key".into()),
                burst: 20,
                ..rate("http://a.example", 10, 1)
            },
        ),
        (
            "rate_limit 10r/s by cookie session",
            RateLimit { key: RateKey::Cookie("session".into()), ..rate("http://a.example", 10, 1) },
        ),
        ("rate_limit 10r/s by everybody", RateLimit { key: everybody(), ..rate("http://a.example", 10, 1) }),
        (
            "rate_limit 10r/s by {host}",
            RateLimit { key: value(Placeholder::Host), ..rate("http://a.example", 10, 1) },
        ),
        (
            "rate_limit 10r/s announce burst 3",
            RateLimit { announce: true, burst: 3, ..rate("http://a.example", 10, 1) },
        ),
        ("rate_limit 10r/s by {client_ip}", rate("http://a.example", 10, 1)),
        (
            "rate_limit 10r/s by {header.X-Api-Key}",
            RateLimit { key: RateKey::Header("x-api-key".into()), ..rate("http://a.example", 10, 1) },
        ),
    ] {
        assert_eq!(rates(line), [expected], "{line}");
    }
}

#[test]
fn zones_are_written_as_the_plugin_has_them() {
    let lines = "@api path /api/*
        rate_limit @api {
            zone static_example {
                match {
                    method GET
                    header X-A *
                }
                key static
                events 100
                window 1m
            }
            zone dynamic_example {
                key {remote_host}
                window 5s
                events 2
            }
            zone nobody_said {
                events 1
                window 1s
                burst 3
                keys 1000
                announce
            }
        }";
    let expected = [
        RateLimit { key: RateKey::Template(Template::text("static")), ..rate("static_example", 100, 60) },
        rate("dynamic_example", 2, 5),
        RateLimit { key: everybody(), burst: 3, announce: true, keys_max: 1000, ..rate("nobody_said", 1, 1) },
    ];
    assert_eq!(rates(lines), expected);
    assert_eq!(
        outline(&checked(lines).sites[0].routes),
        "rate_limit static_example 100/60s path /api/* and method GET and header x-a
rate_limit dynamic_example 2/5s path /api/*
rate_limit nobody_said 1/1s path /api/*
"
    );
}

#[test]
fn a_caddyfile_for_the_plugin_checks_without_a_word() {
    let text = "{\n\torder rate_limit before basicauth\n}\nhttp://a.example {\n\trate_limit {\n\t\tzone a {\n\t\t\tkey {remote_host}\n\t\t\tevents 2\n\t\t\twindow 5s\n\t\t}\n\t}\n\trespond hi\n}\n";
    assert_eq!(text_of(&Memory::main(text).sound().warnings), "");
}

#[test]
fn a_zone_of_one_name_and_the_same_settings_is_one() {
    let lines = "handle /a/* {\nrate_limit 10r/s zone both\n}\nhandle /b/* {\nrate_limit 10r/s zone both\n}";
    assert_eq!(rates(lines), [rate("both", 10, 1), rate("both", 10, 1)]);
    let unnamed =
        "handle /a/* {\nrate_limit 10r/s\n}\nhandle {\nrate_limit 10r/s\nrate_limit 1r/s burst 3\n}";
    let names: Vec<String> = rates(unnamed).into_iter().map(|rate| rate.zone).collect();
    assert_eq!(names, ["http://a.example /a/*", "http://a.example", "http://a.example #2"]);
}

#[test]
fn the_sweeping_of_the_plugin_is_a_warning() {
    let lines = "rate_limit {\nsweep_interval 1m\nzone a {\nevents 1\nwindow 1s\n}\n}";
    assert_eq!(site(lines).sound().warnings.len(), 1);
}

#[test]
fn what_a_rate_may_be_is_bounded_so_that_it_can_be_counted() {
    for (line, is_sound) in [
        ("rate_limit 1000000r/s", true),
        ("rate_limit 1000001r/s", false),
        ("rate_limit 4294967295r/366d", true),
        ("rate_limit 1r/366d", true),
        ("rate_limit 1r/367d", false),
        ("rate_limit 2r/d burst 731", true),
        ("rate_limit 2r/d burst 733", false),
        ("rate_limit 1r/s burst 4294967295", false),
        ("rate_limit 1r/0s", false),
    ] {
        assert_eq!(site(line).load().is_ok(), is_sound, "{line}");
    }
}
