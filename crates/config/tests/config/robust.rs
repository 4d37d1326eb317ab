//! Whatever a file holds, a load ends, and its problems point into the text.

use crate::memory::Memory;
use onehop_config::Problem;
use proptest::prelude::*;

fn check(text: &str) {
    let memory =
        Memory::main(text).file("a.conf", text).file("a.mjs", "").variable("A", "x {\n}").variable("B", "\"");
    let problems: Vec<Problem> = match memory.load() {
        Ok(loaded) => loaded.warnings,
        Err(errors) => errors,
    };
    for problem in problems {
        assert!(problem.file.text.get(problem.span.clone()).is_some(), "{problem:?}");
        assert!(problem.line >= 1 && problem.column >= 1);
        assert!(!problem.to_string().is_empty());
    }
}

/// Pieces that mean something, so that most texts get past the first lines.
const PIECES: [&str; 72] = [
    "{",
    "}",
    "{\n",
    "}\n",
    "\n",
    "\n",
    "\n",
    " ",
    " ",
    "\t",
    ":8080",
    "http://a.example",
    "https://a.example:8443",
    "example.com",
    "*.example.com,",
    "[::1]:80",
    "unix//a|0660",
    "\"",
    "`",
    "<<END\n",
    "END",
    "\\",
    "\\\n",
    "#",
    "{$A}",
    "{$B:c}",
    "{$",
    "{args[0]}",
    "{args[:]}",
    "{args[1:2]}",
    "{block}",
    "{blocks.a}",
    "(a)",
    "(a) {\n",
    "import a",
    "import a.conf",
    "import *.conf",
    "&(a)",
    "@a",
    "@b",
    "path",
    "not",
    "not",
    "header",
    "host",
    "method",
    "/a*",
    "*",
    "root",
    "file_server",
    "spa",
    "try_files",
    "=404",
    "a?b={query}",
    "encode",
    "gzip",
    "handle",
    "handle_path",
    "route",
    "header",
    "+X-A",
    "-*",
    "redir",
    "html",
    "rewrite",
    "respond",
    "200",
    "log",
    "output",
    "file",
    "bind",
    "{path}",
];

/// Words of an `app` block, each a line's beginning or what follows one.
const APP_PIECES: &[&str] = &[
    "command",
    "supervise",
    "off",
    "unix/",
    "unix//a",
    ":1",
    "[::1]:9",
    "name",
    "runtime",
    "bun",
    "./a.conf",
    "workers",
    "auto",
    "0",
    "1",
    "99999999999999999999",
    "concurrency",
    "one_at_a_time",
    "queue",
    "timeout",
    "1s",
    "9999999999d",
    "start_timeout",
    "stop_timeout",
    "stuck_after",
    "recycle",
    "rss",
    "1GiB",
    "requests",
    "age",
    "retry",
    "cwd",
    ".",
    "user",
    "resources",
    "{\n",
    "}\n",
    "memory",
    "open_files",
    "cpu",
    "env",
    "A",
    "A=b",
    "ONEHOP_A",
    "\"\"",
    "{env.A}",
    "{path}",
    "env_file",
    "a.conf",
    "trusted_proxies",
    "private_ranges",
    "10.0.0.0/8",
    "env_pass",
    "A*",
    "*",
    "files",
    "response",
    "platform",
    "limit",
    "é",
];

/// Words of a `reverse_proxy` block, likewise.
const PROXY_PIECES: &[&str] = &[
    "to",
    "a:80",
    ":8000-8003",
    "a:1-65535",
    "http://a",
    "https://[::1]:9",
    "unix//a",
    "unix/",
    "{path}:80",
    "{env.A}",
    "://",
    "[",
    "-",
    "pool",
    "min",
    "max",
    "idle",
    "0",
    "1",
    "99999999999999999999",
    "1s",
    "-1s",
    "-1",
    "-",
    "9999999999d",
    "99999999999999999999s",
    "lb_policy",
    "random_choose",
    "weighted_round_robin",
    "cookie",
    "header",
    "query",
    "fallback",
    "max_age",
    "lb_retries",
    "lb_try_duration",
    "lb_retry_match",
    "method",
    "not",
    "file",
    "health_uri",
    "/a",
    "health_port",
    "health_upstream",
    "health_interval",
    "health_status",
    "2xx",
    "é",
    "health_body",
    "(",
    "health_headers",
    "health_method",
    "fail_duration",
    "unhealthy_status",
    "unhealthy_request_count",
    "header_up",
    "header_down",
    "-*",
    "+X",
    "?X",
    ">X",
    "{upstream_hostport}",
    "Connection",
    "flush_interval",
    "request_buffers",
    "unlimited",
    "1GiB",
    "stream_close_delay",
    "trusted_proxies",
    "private_ranges",
    "transport",
    "http",
    "{\n",
    "}\n",
    "keepalive",
    "off",
    "keepalive_idle_conns",
    "keepalive_idle_conns_per_host",
    "max_conns_per_host",
    "dial_fallback_delay",
    "tls",
    "tls_server_name",
    "tls_client_auth",
    "tls_trust_pool",
    "a.conf",
    "tls_except_ports",
    "resolvers",
    "192.0.2.53",
    "versions",
    "1.1",
    "compression",
    "@a",
    "rewrite",
];

/// Words of `limit` and `rate_limit`, likewise.
const LIMIT_PIECES: &[&str] = &[
    "in_flight",
    "queue",
    "wait",
    "priority",
    "high",
    "low",
    "shed",
    "503",
    "adaptive",
    "min",
    "max",
    "lag",
    "off",
    "0",
    "1",
    "64",
    "4294967295",
    "99999999999999999999",
    "1s",
    "366d",
    "9999999999d",
    "0",
    "10r/s",
    "4294967295r/1ns",
    "1r/99999999999d",
    "1r/",
    "r/",
    "é",
    "burst",
    "by",
    "header",
    "cookie",
    "ip",
    "everybody",
    "{client_ip}",
    "{header.A}",
    "{err.id}",
    "{env.A}",
    "\"\"",
    "keys",
    "zone",
    "a",
    "a {\n",
    "zone b {\n",
    "key",
    "events",
    "window",
    "match",
    "path /a",
    "not",
    "{\n",
    "}\n",
    "sweep_interval",
    "jitter",
    "4xx",
    "404",
    "respond",
    "/a/*",
    "@a",
    "*",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        check(&text);
    }

    #[test]
    fn any_row_of_pieces_is_answered(pieces in proptest::collection::vec((0..PIECES.len(), any::<bool>()), 0..80)) {
        let text: String = pieces
            .into_iter()
            .flat_map(|(piece, space)| [PIECES[piece], if space { " " } else { "" }])
            .collect();
        check(&text);
    }

    #[test]
    fn any_row_of_words_in_an_app_is_answered(
        words in proptest::collection::vec((0..APP_PIECES.len(), any::<bool>()), 0..20),
        begin in 0..4_usize,
    ) {
        let begin = ["app a.mjs {\n", "app /a/* {\n", "app * a.conf --b {\n", "app / {\n"][begin];
        let words = words.into_iter().flat_map(|(word, ends)| [APP_PIECES[word], if ends { "\n" } else { " " }]);
        check(&format!(":80 {{\n{begin}{}\n}}\n}}\n", words.collect::<String>()));
    }

    #[test]
    fn any_row_of_words_in_a_reverse_proxy_is_answered(
        words in proptest::collection::vec((0..PROXY_PIECES.len(), any::<bool>()), 0..20),
        begin in 0..4_usize,
    ) {
        let begin = [
            "reverse_proxy a:80 {\n",
            "reverse_proxy /a/* {\n",
            "reverse_proxy a:80 {\ntransport http {\n",
            "reverse_proxy * ",
        ][begin];
        let words = words.into_iter().flat_map(|(word, ends)| [PROXY_PIECES[word], if ends { "\n" } else { " " }]);
        check(&format!(":80 {{\n{begin}{}\n}}\n}}\n}}\n", words.collect::<String>()));
    }

    #[test]
    fn any_row_of_words_in_a_bound_is_answered(
        words in proptest::collection::vec((0..LIMIT_PIECES.len(), any::<bool>()), 0..20),
        begin in 0..7_usize,
    ) {
        let begin = [
            "limit ",
            "limit {\n",
            "rate_limit ",
            "rate_limit {\n",
            "rate_limit {\nzone a {\n",
            "handle_errors ",
            "app a.mjs {\nlimit ",
        ][begin];
        let words: String = words
            .into_iter()
            .flat_map(|(word, ends)| [LIMIT_PIECES[word], if ends { "\n" } else { " " }])
            .collect();
        check(&format!(":80 {{\n{begin}{words}\n}}\n}}\n}}\n"));
        check(&format!("{{\n{begin}{words}\n}}\n:80 {{\nrespond a\n}}\n"));
    }
}

#[test]
fn deep_nesting_ends_in_an_error() {
    for text in [
        format!(":80 {{\n{}", "handle {\n".repeat(50_000)),
        format!(":80 {{\n{}", "{\n".repeat(50_000)),
        format!(":80 {{\n@a {}\n}}", "not ".repeat(50_000)),
    ] {
        assert!(Memory::main(&text).load().is_err());
    }
}

#[test]
fn long_lists_of_a_proxy_end_in_an_answer() {
    let many = |word: &str| format!("{word} ").repeat(100_000);
    let lines = |line: &str| format!("{line}\n").repeat(15_000);
    for options in [
        format!("to {}", many("a:80")),
        format!("trusted_proxies {}", many("10.0.0.1")),
        format!("lb_policy weighted_round_robin {}", many("1")),
        format!("unhealthy_status {}", many("500")),
        format!("transport http {{\nresolvers {}\n}}", many("192.0.2.1")),
        lines("header_up +X a"),
        lines("lb_retry_match method GET"),
        lines("max_fails 1"),
    ] {
        let memory = Memory::main(&format!(":80 {{\nreverse_proxy a:80 {{\n{options}\n}}\n}}\n"));
        let is_sound = memory.load().is_ok();
        assert_eq!(is_sound, options.starts_with("header_up"), "{}", options.get(..40).unwrap_or_default());
    }
}

#[test]
fn many_bounds_end_in_an_answer() {
    let many = |line: &str| format!("{line}\n").repeat(15_000);
    let zones = |name: &str| format!("rate_limit 10r/s{name}\n");
    for (lines, is_sound) in [
        (many("limit in_flight 3"), false),
        (many("limit priority high"), false),
        ((0..62).map(|number| format!("limit /{number} in_flight 3\n")).collect(), true),
        ((0..5_000).map(|number| format!("limit /{number} in_flight 3\n")).collect(), false),
        ((0..2_000).map(|number| zones(&format!(" zone a{number}"))).collect(), true),
        (format!("handle_errors {} {{\nrespond a\n}}\n", "4xx 5xx 404 ".repeat(2_000)), true),
        (format!("limit {}", "in_flight 3 ".repeat(50_000)), false),
        (format!("rate_limit 1r/s {}", "burst 3 ".repeat(50_000)), false),
    ] {
        let memory = Memory::main(&format!(":80 {{\n{lines}}}\n"));
        assert_eq!(memory.load().is_ok(), is_sound, "{}", lines.get(..40).unwrap_or_default());
    }
}

#[test]
fn snippets_that_multiply_end_in_an_error() {
    let mut text = String::from("(s0) {\n\trespond hi\n}\n");
    for level in 1..30 {
        text += &format!("(s{level}) {{\n{}}}\n", format!("\timport s{}\n", level - 1).repeat(10));
    }
    text += ":80 {\n\timport s29\n}\n";
    assert!(Memory::main(&text).load().is_err());
    let long = format!(
        "(a) {{\n\timport b {0}\n}}\n(b) {{\n\trespond {0}\n}}\n:80 {{\n\timport a {1}\n}}\n",
        "{args[0]}".repeat(3_000),
        "x".repeat(3_000)
    );
    assert!(Memory::main(&long).load().is_err());
}
