//! `request_header`: how it is written, and which fields stay the server's own.

use crate::memory::{Memory, text_of};
use crate::outline::outline;

fn of(line: &str) -> Memory {
    Memory::main(&format!(":80 {{\n\t{line}\n\trespond x\n}}\n"))
}

#[test]
fn a_request_field_is_set_added_removed_or_replaced() {
    for (line, shown) in [
        ("request_header X-One 1", "request_header X-One=1\n"),
        ("request_header X-One: {header.X-Two}", "request_header X-One=<Header(\"x-two\")>\n"),
        ("request_header >X-One 1", "request_header X-One=1\n"),
        ("request_header X-One", "request_header X-One=\n"),
        ("request_header +X-One 1", "request_header +X-One=1\n"),
        ("request_header -X-One", "request_header -x-one\n"),
        ("request_header -X-*", "request_header -x-*\n"),
        ("request_header -*", "request_header -*\n"),
        ("request_header X-One a(b) c$1", "request_header x-one~a(b)~c$1\n"),
        ("request_header X-Forwarded-Prefix /shop", "request_header X-Forwarded-Prefix=/shop\n"),
        ("request_header /api/* X-One 1", "request_header X-One=1 path /api/*\n"),
    ] {
        let outline = outline(&of(line).sound().checked.sites[0].routes);
        assert!(outline.contains(shown), "{line}: {outline}");
    }
}

#[test]
fn request_fields_change_behind_basic_auth_and_before_encode() {
    let checked = of("encode gzip\n\trequest_header X-One 1\n\trate_limit 1r/s").sound().checked;
    let outline = outline(&checked.sites[0].routes);
    let order: Vec<&str> = outline.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(order, ["rate_limit", "request_header", "encode", "respond"], "{outline}");
}

#[test]
fn request_fields_that_frame_or_say_who_the_client_is_cannot_be_changed() {
    for (line, message) in [
        ("Content-Length 1", "cannot change `Content-Length`"),
        ("-Transfer-Encoding", "cannot change `transfer-encoding`"),
        ("+Trailer X", "cannot change `Trailer`"),
        ("Connection close", "cannot change `Connection`"),
        ("-Upgrade", "belongs to the connection"),
        ("Expect 100-continue", "cannot change `Expect`"),
        ("Host example.com", "it has chosen the site"),
        ("host a b", "cannot change `host`"),
        ("X-Forwarded-For {remote_host}", "says who the client is"),
        ("-X-Forwarded-Proto", "says who the client is"),
        ("X_Forwarded_For 1", "cannot change `X_Forwarded_For`"),
        ("X-Real-IP {remote_host}", "`header_up` in a `reverse_proxy`"),
        ("Client-Cert x", "says who the client is"),
        ("", "has no argument"),
        ("?X-One 1", "has no defaults"),
        ("X-One a b c", "an argument too many"),
        ("-X-One 1", "takes no value"),
        ("-X-*-One", "a star in its middle"),
        ("X-* 1", "can only be removed"),
        ("X-One ( b", "`(`"),
        ("\"X One\" 1", "no name of a header field"),
        ("X-One {\n\t\tX-Two 2\n\t}", "takes no block"),
    ] {
        let problems = of(&format!("request_header {line}")).load();
        let problems = text_of(&problems.err().unwrap_or_else(|| panic!("{line}")));
        assert!(problems.contains(message), "{line}: {problems}");
    }
}
