//! `{re.…}`: which captures of expressions a configuration may name.

use crate::memory::{Memory, text_of};
use crate::outline::outline;

fn of(lines: &str) -> Memory {
    Memory::main(&format!(":80 {{\n{lines}\n}}\n"))
}

fn outline_of(lines: &str) -> String {
    outline(&of(lines).sound().checked.sites[0].routes)
}

#[test]
fn an_expression_without_a_name_has_that_of_its_matcher() {
    for (lines, shown) in [
        ("@item path_regexp ^/i/(.+)$\nrespond @item {re.item.1}", "path_regexp item ^/i/(.+)$ read"),
        ("@item path_regexp id ^/i/(.+)$\nrespond @item {re.id.1}", "path_regexp id ^/i/(.+)$ read"),
        ("@item {\npath_regexp ^/i/(.+)$\n}\nrespond @item {re.1}", "path_regexp item ^/i/(.+)$ read"),
        ("@a not path_regexp b\nrespond @a {re.a.0}", "not (path_regexp a b read)"),
        ("@a header_regexp X-A (?<first>.)\nrespond @a {re.a.first}", "header_regexp x-a a (?<first>.) read"),
        ("@a header_regexp b X-A (.)\nrespond @a {http.regexp.b.1}", "header_regexp x-a b (.) read"),
        ("@a path_regexp (?P<x>.)\nrespond @a {re.x}", "path_regexp a (?P<x>.) read"),
    ] {
        let outline = outline_of(lines);
        assert!(outline.contains(shown), "{lines}: {outline}");
    }
}

#[test]
fn captures_that_nothing_reads_are_not_kept() {
    for lines in ["@a path_regexp (.)\nrespond @a x", "@a path_regexp (.)\nrespond @a \\{re.a.1\\}"] {
        let outline = outline_of(lines);
        assert!(outline.contains("path_regexp a (.)\n"), "{lines}: {outline}");
    }
}

#[test]
fn a_capture_that_no_expression_of_the_site_has_is_an_error() {
    for (lines, message) in [
        ("respond {re.a.1}", "no expression of this site captures `{re.a.1}`"),
        ("@a path_regexp (.)\nrespond @a {re.b.1}", "no expression of this site captures `{re.b.1}`"),
        ("@a path_regexp (.)\nrespond @a {re.a.2}", "groups count from 1"),
        ("@a path_regexp (.)\nrespond @a {re.2}", "no expression of this site captures `{re.2}`"),
        ("@a path_regexp (?<x>.)\nhandle {\nrespond @a {re.a.y}\n}", "captures `{re.a.y}`"),
        ("@a path_regexp ((\nrespond @a {re.a.2}", "no regular expression"),
        ("@a path_regexp .{1000}{1000}\nrespond @a x", "no regular expression"),
        ("respond {re.}", "`{re.}`"),
    ] {
        let problems = of(lines).load();
        let problems = text_of(&problems.err().unwrap_or_else(|| panic!("{lines}")));
        assert!(problems.contains(message), "{lines}: {problems}");
        assert_eq!(problems.matches("error").count(), 1, "{lines}: {problems}");
    }
    let other =
        Memory::main(":80 {\n@a path_regexp (.)\nrespond @a {re.a.1}\n}\n:81 {\nrespond {re.a.1}\n}\n");
    assert!(other.load().is_err(), "expressions of another site capture nothing here");
}

#[test]
fn a_list_of_a_thousand_words_is_within_the_bound_of_expressions() {
    let words: Vec<String> = (0..1_000).map(|number| format!("robot-{number:04}")).collect();
    of(&format!("@bots header_regexp User-Agent (?i)({})\nrespond @bots 403", words.join("|"))).sound();
}
