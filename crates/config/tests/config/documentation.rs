//! The examples of the pages about Onehopfiles are whole files that load.

use crate::memory::{Memory, text_of};

const PAGE: &str = include_str!("../../../../docs/onehopfile.md");
const PROXY: &str = include_str!("../../../../docs/proxy.md");
const LIMITS: &str = include_str!("../../../../docs/limits.md");
const HANDLERS: &str = include_str!("../../../../docs/handlers.md");
const HTTPS: &str = include_str!("../../../../docs/https.md");
const HTTP2: &str = include_str!("../../../../docs/http2.md");
const PACK: &str = include_str!("../../../../docs/pack.md");
const GUIDES: [&str; 2] = [
    include_str!("../../../../docs/guide/from-nginx-pm2-node.md"),
    include_str!("../../../../docs/guide/proxy.md"),
];
const README: &str = include_str!("../../../../README.md");

#[test]
fn every_example_of_the_pages_loads_without_a_warning() {
    let examples =
        |page: &'static str| page.split("```caddyfile\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    let pages = [README, PAGE, PROXY, LIMITS, HANDLERS, HTTPS, HTTP2, PACK].into_iter().chain(GUIDES);
    for example in pages.flat_map(examples) {
        count += 1;
        match with_what_examples_name(Memory::main(example)).load() {
            Ok(loaded) => assert_eq!(text_of(&loaded.warnings), "", "{example}"),
            Err(problems) => panic!("{example}\n{}", text_of(&problems)),
        }
    }
    assert!(count >= 60, "only {count} examples were found");
}

/// The files that an example's application needs.
fn with_what_examples_name(memory: Memory) -> Memory {
    [
        "api/server.mjs",
        "bin/orders",
        "bin/greeter",
        "web/package.json",
        ".env",
        "server/server.js",
        "server.mjs",
        "server.js",
        "chat/server.mjs",
        "shop/server.mjs",
        "/etc/shop/secrets.env",
        "/srv/shop/invoices/report.pdf",
        "downloads/report.pdf",
        "/etc/app/ca.pem",
        "/etc/app/client.pem",
        "/etc/app/client.key",
    ]
    .into_iter()
    .fold(memory, |memory, path| memory.file(path, ""))
}

#[test]
fn every_directive_has_its_chapter() {
    let directives = [
        "app",
        "basic_auth",
        "bind",
        "early_hints",
        "encode",
        "error",
        "file_server",
        "handle",
        "handle_errors",
        "handle_path",
        "header",
        "limit",
        "log",
        "log_append",
        "log_name",
        "log_skip",
        "rate_limit",
        "redir",
        "request_body",
        "request_header",
        "respond",
        "reverse_proxy",
        "rewrite",
        "root",
        "route",
        "spa",
        "tracing",
        "try_files",
        "uri",
    ];
    let chapters: Vec<&str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("### ")).flat_map(|line| line.split(", ")).collect();
    for directive in directives {
        assert!(chapters.contains(&directive), "{directive}");
    }
}

/// That a page names every option of some blocks, those that do not work yet too.
#[track_caller]
fn names_every_option(page: &str, owners: &[&str]) {
    let outlines = onehop_config::directives();
    for owner in owners {
        let options =
            outlines.iter().filter(|outline| outline.owner == *owner).flat_map(|outline| &outline.options);
        let missing: Vec<&str> = options
            .clone()
            .map(|option| option.name)
            .filter(|name| !page.contains(&format!("`{name}")))
            .collect();
        assert!(options.count() > 0 && missing.is_empty(), "{owner}: {missing:?}");
    }
}

#[test]
fn every_option_of_a_bound_is_on_its_page() {
    names_every_option(LIMITS, &["limit", "rate_limit", "zone"]);
    for priority in ["high", "normal", "low"] {
        assert!(LIMITS.contains(&format!("`{priority}")), "{priority}");
    }
}

#[test]
fn every_option_of_tls_is_on_its_page() {
    names_every_option(HTTPS, &["tls", "issuer acme", "issuer internal", "ca", "client_auth"]);
}

#[test]
fn every_option_of_reverse_proxy_is_on_its_page() {
    names_every_option(PROXY, &["reverse_proxy", "transport http"]);
}
