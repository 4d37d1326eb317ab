//! `uri`: what later routes see of a changed path and query.

use crate::harness::{TestServer, Wishes, application};

/// What `{uri}` is behind some directives.
#[track_caller]
fn check(directives: &str, cases: &[(&str, &str)]) {
    let text = format!("http://localhost:0 {{\n{directives}\nrespond {{uri}}\n}}\n");
    let server = TestServer::start(application(), &text, Wishes::default());
    for (target, uri) in cases {
        assert_eq!(server.connect().get(target).text(), *uri, "{directives}: {target}");
    }
}

#[test]
fn parameters_are_changed_and_all_others_stay_as_they_were_sent() {
    check("uri query +foo bar", &[("/a?x=%41+b&y", "/a?x=%41+b&y&foo=bar"), ("/a", "/a?foo=bar")]);
    check(
        "uri query -foo",
        &[("/a?f%6fo=1&x=2&foo", "/a?x=2"), ("/a?foo=1", "/a"), ("/a?FOO=1", "/a?FOO=1")],
    );
    check("uri query foo {query.bar}", &[("/a?foo=1&bar=%26x%20y&foo=2", "/a?foo=%26x+y&bar=%26x%20y")]);
    check("uri query foo>bar", &[("/a?foo=%31&bar=2", "/a?bar=%31"), ("/a?bar=2", "/a?bar=2")]);
    check("uri query q \\s+ -", &[("/a?q=a%20+b&r=a+b", "/a?q=a-b&r=a+b"), ("/a?q=a%62", "/a?q=a%62")]);
    check("uri query * (.)(.) $2$1", &[("/a?q=ab&r=a%26", "/a?q=ba&r=%26a")]);
}

#[test]
fn a_block_changes_the_query_as_caddy_does() {
    check(
        "uri query {\n-gone\n+more {path}\na x {query.y}\nset 2\nold>new\n}",
        &[("/p%20q?gone=1&a=xx&old=3&y=$1", "/p%20q?a=%241%241&new=3&y=$1&set=2&more=%2Fp+q")],
    );
}

#[test]
fn a_value_of_the_request_stays_one_value_of_the_query() {
    check(
        "uri query to {header.Host}{query.a}",
        &[("/?a=1%26b%3d2%23%0d%0a", "/?a=1%26b%3d2%23%0d%0a&to=localhost1%26b%3D2%23%0D%0A")],
    );
}

#[test]
fn parameters_that_two_readers_take_for_different_ones_go() {
    check("uri query -admin", &[("/?a=1;admin=1&b=2&admin%=1", "/?b=2")]);
}

#[test]
fn an_expression_replaces_in_the_path_as_it_is_passed_on() {
    check("uri path_regexp /{2,} /", &[("/a//b///c?d//e", "/a/b/c?d//e")]);
    check(
        "uri path_regexp ^/old/([0-9]+)$ /new/$1.html",
        &[("/old/12?x", "/new/12.html?x"), ("/old/a", "/old/a")],
    );
    check("uri path_regexp %20 _", &[("/a%20b", "/a_b")]);
    check("uri path_regexp ^/old \"\"", &[("/old", "/"), ("/old/a", "/a"), ("/oldest", "/est")]);
    check("uri path_regexp (?<x>b) $\\{x\\}$$", &[("/abc", "/ab$c")]);
    check(
        "uri path_regexp ^/go$ /to/{query.x}/{uri}",
        &[("/go?x=a/%3f%25$1%0d", "/to/a/%3F%25$1%0D//go%3Fx=a/%3f%25$1%0d?x=a/%3f%25$1%0d")],
    );
}

#[test]
fn a_path_that_a_replacement_makes_ambiguous_is_refused() {
    let text = "http://localhost:0 {\nuri path_regexp _ .\nuri path_regexp x %2f\nrespond {uri}\n}\n";
    let server = TestServer::start(application(), text, Wishes::default());
    assert_eq!(server.connect().get("/a/__/b").text(), "/b", "dot segments are resolved");
    assert_eq!(server.connect().get("/a/__x/b").status, 400);
    assert_eq!(server.connect().get("/a//__/b").status, 400);
}

#[test]
fn a_uri_that_grows_beyond_the_bound_is_refused() {
    let in_path = format!("/{}?a={}", "a".repeat(3_500), "a".repeat(3_500));
    let in_query = format!("/a?a={}", "a".repeat(7_000));
    for (directive, target) in [
        ("uri path_regexp . {query.a}".to_owned(), &in_path),
        (format!("uri query b {}", "{query.a}".repeat(16)), &in_query),
        ("uri query a () {query.a}".to_owned(), &in_query),
        (format!("uri replace a {}", "b".repeat(100)), &in_query),
    ] {
        let text = format!("http://localhost:0 {{\n{directive}\nrespond ok\n}}\n");
        let server = TestServer::start(application(), &text, Wishes::default());
        assert_eq!(server.connect().get("/a?a=1").status, 200, "{directive}");
        assert_eq!(server.connect().get(target).status, 414, "{directive}");
    }
}

#[test]
fn a_matcher_behind_a_changed_query_reads_the_changed_one() {
    check(
        "uri query debug>trace\n@trace query trace=1\nrespond @trace traced",
        &[("/?debug=1", "traced"), ("/?debug=2", "/?trace=2")],
    );
}
