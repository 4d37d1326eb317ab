//! Named matchers of addresses, expressions, protocols and queries.

use crate::harness::{TestServer, Wishes, application};

/// A request's target and fields, and whether it fits.
type Case = (&'static str, &'static str, bool);

/// Whether a request with this target and these fields fits a matcher.
fn fits(server: &TestServer, target: &str, fields: &str) -> bool {
    let mut client = server.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    match client.answer().text().as_str() {
        "yes" => true,
        "no" => false,
        other => panic!("{other}"),
    }
}

fn server(matcher: &str) -> TestServer {
    let text = format!(
        "{{\n\tservers {{\n\t\ttrusted_proxies static 127.0.0.0/8\n\t}}\n}}\nhttp://localhost:0 {{\n\tbind 127.0.0.1\n\
         \t@m {matcher}\n\trespond @m yes\n\trespond no\n}}\n"
    );
    TestServer::start(application(), &text, Wishes::default())
}

#[test]
fn requests_differ_by_address_expression_protocol_and_query() {
    let cases: [(&str, &[Case]); 12] = [
        ("remote_ip 127.0.0.1", &[("/", "", true), ("/", "X-Forwarded-For: 10.1.2.3\r\n", true)]),
        ("remote_ip 10.0.0.0/8 ::1", &[("/", "", false), ("/", "X-Forwarded-For: 10.1.2.3\r\n", false)]),
        (
            "client_ip 10.0.0.0/8",
            &[
                ("/", "", false),
                ("/", "X-Forwarded-For: 10.1.2.3\r\n", true),
                ("/", "X-Forwarded-For: 10.1.2.3, 192.0.2.1\r\n", false),
            ],
        ),
        ("client_ip private_ranges", &[("/", "X-Forwarded-For: 172.16.0.9\r\n", true)]),
        (
            "path_regexp ^/items/[0-9]+$",
            &[
                ("/items/12", "", true),
                ("/items/%31?x", "", true),
                ("/a/../items//12", "", true),
                ("/Items/12", "", false),
            ],
        ),
        ("path_regexp name \\.php$", &[("/a.php", "", true), ("/a.phpx", "", false)]),
        (
            "header_regexp User-Agent (?i)bot",
            &[
                ("/", "User-Agent: GoogleBot/2\r\n", true),
                ("/", "User-Agent: curl\r\n", false),
                ("/", "", false),
            ],
        ),
        ("protocol http", &[("/", "", true)]),
        (
            "protocol https http/2 grpc",
            &[("/", "", false), ("/", "Content-Type: application/grpc+json\r\n", true)],
        ),
        ("protocol http/1.1", &[("/", "", true)]),
        (
            "query sort=asc sort=desc debug=*",
            &[
                ("/?sort=asc&debug", "", true),
                ("/?debug=1&s%6frt=desc", "", true),
                ("/?sort=up&debug=1", "", false),
                ("/?sort=asc", "", false),
            ],
        ),
        ("query \"\"", &[("/", "", true), ("/?", "", true), ("/?a=1", "", false)]),
    ];
    for (matcher, requests) in cases {
        let server = server(matcher);
        for (target, fields, expected) in requests {
            assert_eq!(fits(&server, target, fields), *expected, "{matcher}: {target} {fields}");
        }
    }
}

#[test]
fn a_version_and_all_later_ones_are_a_protocol() {
    let server = server("protocol http/1.1+");
    let ask = |version: &str| {
        let mut client = server.connect();
        client.send(format!("GET / {version}\r\nHost: localhost\r\n\r\n"));
        client.answer().text()
    };
    assert_eq!((ask("HTTP/1.1").as_str(), ask("HTTP/1.0").as_str()), ("yes", "no"));
}
