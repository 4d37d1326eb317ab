//! The examples of the pages about Onehopfiles are whole files that load.

use crate::memory::{Memory, text_of};

const PAGE: &str = include_str!("../../../../docs/onehopfile.md");
const HANDLERS: &str = include_str!("../../../../docs/handlers.md");
const GUIDE: &str = include_str!("../../../../docs/guide/from-nginx-pm2-node.md");

#[test]
fn every_example_of_the_pages_loads_without_a_warning() {
    let examples =
        |page: &'static str| page.split("```caddyfile\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for example in [PAGE, HANDLERS, GUIDE].into_iter().flat_map(examples) {
        count += 1;
        match with_what_examples_name(Memory::main(example)).load() {
            Ok(loaded) => assert_eq!(text_of(&loaded.warnings), "", "{example}"),
            Err(problems) => panic!("{example}\n{}", text_of(&problems)),
        }
    }
    assert!(count >= 27, "only {count} examples were found");
}

/// The files that an example's application needs.
fn with_what_examples_name(memory: Memory) -> Memory {
    [
        "api/server.mjs",
        "bin/orders",
        "web/package.json",
        ".env",
        "server/server.js",
        "chat/server.mjs",
        "shop/server.mjs",
        "/etc/shop/secrets.env",
        "/srv/shop/invoices/report.pdf",
        "downloads/report.pdf",
    ]
    .into_iter()
    .fold(memory, |memory, path| memory.file(path, ""))
}

#[test]
fn every_directive_has_its_chapter() {
    let directives = [
        "app",
        "bind",
        "encode",
        "file_server",
        "handle",
        "handle_path",
        "header",
        "log",
        "redir",
        "respond",
        "rewrite",
        "root",
        "route",
        "spa",
        "try_files",
    ];
    let chapters: Vec<&str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("### ")).flat_map(|line| line.split(", ")).collect();
    for directive in directives {
        assert!(chapters.contains(&directive), "{directive}");
    }
}
