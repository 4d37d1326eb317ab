//! The order in which directives act. Each expectation was compared with what Caddy 2.11 makes of
//! the same file (`caddy adapt`).

use crate::memory::Memory;
use crate::outline::outline;

#[track_caller]
fn check(lines: &str, expected: &str) {
    let loaded = Memory::main(&format!(":8080 {{\n{lines}\n}}\n")).sound();
    let expected: String = expected
        .lines()
        .map(|line| line.strip_prefix("\t\t").unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(outline(&loaded.checked.sites[0].routes), expected.trim_start_matches('\n'));
}

#[test]
fn directives_act_in_caddys_order_whatever_their_order_in_the_file() {
    check(
        "file_server\nrespond /r hi\nhandle /h {\n}\nencode\ntry_files {path} /i\nrewrite /w /x\nredir /d /e\nheader A b\nroot /s",
        "
		root /s
		header A=b
		redir /e 302 path /d
		rewrite /x path /w
		rewrite <FileMatchRelative> file <Path> /i
		encode [Zstd, Gzip] from 512
		handle path /h
		respond 200 \"hi\" path /r
		file_server",
    );
}

#[test]
fn within_one_directive_the_longest_path_comes_first() {
    check(
        "respond none\nrespond /a* a\nrespond /abc* abc\nrespond /ab ab\nrespond /ab* ab-star",
        "
		respond 200 \"abc\" path /abc*
		respond 200 \"ab\" path /ab
		respond 200 \"ab-star\" path /ab*
		respond 200 \"a\" path /a*
		respond 200 \"none\"",
    );
}

#[test]
fn a_named_matcher_of_one_path_is_sorted_by_it_even_with_other_conditions() {
    check(
        "@a {\n\tmethod GET\n\tpath /abc/*\n}\nrespond /ab ab\nrespond @a a",
        "
		respond 200 \"a\" method GET and path /abc/*
		respond 200 \"ab\" path /ab",
    );
}

#[test]
fn of_handle_and_handle_path_only_the_first_that_matches_is_taken() {
    check(
        "handle {\n\trespond c\n}\nhandle_path /api/* {\n\trespond a\n}\nhandle /api/x {\n\trespond b\n}",
        "
		handle group0 path /api/x
		  respond 200 \"b\"
		handle_path /api group0 path /api/*
		  respond 200 \"a\"
		handle group0
		  respond 200 \"c\"",
    );
}

#[test]
fn of_root_and_of_rewrite_only_the_first_that_matches_is_taken() {
    check(
        "root /a\nroot /x/* /b\nrewrite /one /two\nrewrite /two /three",
        "
		root /b group0 path /x/*
		root /a group0
		rewrite /two group1 path /one
		rewrite /three group1 path /two",
    );
}

#[test]
fn try_files_with_queries_makes_a_group_of_rewrites() {
    check(
        "root /s\ntry_files {path} {path}/ /index.php?{query}&p={path} /last =404",
        "
		root /s
		rewrite <FileMatchRelative> group0 file <Path> <Path>/
		rewrite <FileMatchRelative>?<Query>&p=<Path> group0 file /index.php
		rewrite <FileMatchRelative> group0 file /last =404",
    );
}

#[test]
fn a_route_keeps_the_written_order() {
    check(
        "route /r/* {\n\trespond /r/a a\n\trespond /r/abc abc\n\theader A b\n}",
        "
		handle path /r/*
		  respond 200 \"a\" path /r/a
		  respond 200 \"abc\" path /r/abc
		  header A=b",
    );
}

#[test]
fn spa_acts_where_file_server_does() {
    check(
        "root /f\nspa /s\nfile_server /files/*\nrespond /r hi",
        "
		root /f
		respond 200 \"hi\" path /r
		file_server path /files/*
		spa /s",
    );
}

#[test]
fn changes_of_fields_act_by_kind_and_defaults_last() {
    check(
        "header {\n\tD: d\n\t?F g\n\t-E\n\t+A a\n\tH i j\n\t-*\n}\nheader >Late x",
        "
		header -*, +A=a, D=d, -e, h~i~j deferred
		header ?F=g deferred
		header Late=x deferred",
    );
}

#[test]
fn groups_are_numbered_within_their_block() {
    let handles =
        "\thandle /a {\n\t\troot /x\n\t\troot /b /y\n\t}\n\thandle {\n\t\troot /x\n\t\troot /b /y\n\t}\n";
    let sites: String = (0..50).map(|number| format!("http://{number}.example {{\n{handles}}}\n")).collect();
    let loaded = Memory::main(&sites).sound();
    fn highest(routes: &[onehop_config::checked::Route]) -> u32 {
        let inner = |route: &onehop_config::checked::Route| match &route.step {
            onehop_config::checked::Step::Handle(routes) => highest(routes),
            _ => 0,
        };
        routes.iter().map(|route| route.group.unwrap_or(0).max(inner(route))).max().unwrap_or(0)
    }
    assert_eq!(loaded.checked.sites.iter().map(|site| highest(&site.routes)).max(), Some(0));
}

#[test]
fn early_hints_act_by_the_path_that_the_client_asked_for() {
    check(
        "respond hi\nrewrite /a /b\nearly_hints learn\nearly_hints /a learn\nlimit /a priority high\nredir /d /e",
        "
		redir /e 302 path /d
		priority High path /a
		early_hints  learn path /a
		early_hints  learn
		rewrite /b path /a
		respond 200 \"hi\"",
    );
}
