//! The Caddyfile's grammar: what the texts of answers become.

use crate::memory::Memory;
use crate::outline::template;
use onehop_config::checked::{Route, Step};

/// The bodies of all `respond`, site by site.
fn bodies(memory: &Memory) -> Vec<String> {
    fn of(routes: &[Route], bodies: &mut Vec<String>) {
        for route in routes {
            match &route.step {
                Step::Respond { body, .. } => bodies.push(template(body)),
                Step::Handle(routes) | Step::HandlePath { routes, .. } => of(routes, bodies),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    for site in &memory.sound().checked.sites {
        of(&site.routes, &mut found);
    }
    found
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(bodies(&Memory::main(text)), expected, "{text}");
}

#[test]
fn quotes_and_escapes_are_caddys() {
    for (written, meant) in [
        ("plain", "plain"),
        ("\"with space\"", "with space"),
        ("\"a \\\"quoted\\\" word\"", "a \"quoted\" word"),
        ("\"back\\slash and \\\\two\"", "back\\slash and \\\\two"),
        ("`raw \"x\" \\n`", "raw \"x\" \\n"),
        ("\"two\nlines\"", "two\nlines"),
        ("in#side", "in#side"),
        ("back\\slash", "back\\slash"),
        ("\\<<no_heredoc", "<<no_heredoc"),
        ("a # and a comment", "a"),
        ("\"{\\\"json\\\": true}\"", "{\"json\": true}"),
        ("`{\"json\": {\"a\": 1}}`", "{\"json\": {\"a\": 1}}"),
        ("`\\{path\\}`", "{path}"),
        ("`body { color: red }`", "body { color: red }"),
        ("\"{path} and {host}\"", "<Path> and <Host>"),
    ] {
        check(&format!(":80\nrespond {written}\n"), &[meant]);
    }
}

#[test]
fn heredocs_lose_the_indentation_of_their_end() {
    check(":80 {\n\trespond <<HTML\n\t\t<p>\n\n\t\t  hi\n\t\tHTML 200\n}\n", &["<p>\n\n  hi"]);
    check(":80\r\nrespond <<X\r\na\r\nX\r\n", &["a"]);
}

#[test]
fn a_backslash_at_the_end_of_a_line_joins_it_with_the_next() {
    check(":80 {\n\trespond \\\n\t\thi \\\n\t\t200\n}\n", &["hi"]);
}

#[test]
fn variables_are_put_in_before_the_text_is_cut_into_words() {
    let text = ":80 {\n\t{$LINE}\n\trespond /b {$UNSET:fallback}\n\trespond /c {env.NAME}\n}\n";
    let memory =
        Memory::main(text).variable("LINE", "respond /abc \"from a variable\"").variable("NAME", "value");
    assert_eq!(bodies(&memory), ["from a variable", "fallback", "value"]);
}

#[test]
fn a_variable_that_is_not_set_gives_a_warning() {
    let loaded = Memory::main(":80\nrespond \"a{$NOBODY}b\"\n").sound();
    insta::assert_snapshot!(crate::memory::text_of(&loaded.warnings));
}

#[test]
fn an_error_on_the_line_of_a_variable_that_is_not_set_says_so_first() {
    let lines = ":80 {\n\tapp server.mjs {\n\t\tenv TOKEN {$TOKEN}\n\t\tworkers none\n\t}\n}\n";
    let text = Memory::main(lines).file("server.mjs", "").errors();
    insta::assert_snapshot!(text);
    let set = onehop_config::variables_to_set("# {$A}\n{$B:1} {$} {$C} {$A} {$");
    assert_eq!(set.collect::<Vec<_>>(), ["A", "C", "A"]);
}

#[test]
fn a_single_site_needs_no_braces() {
    check(":80\n\nrespond /a a\nrespond b\n", &["a", "b"]);
    check(":80\n{\n\trespond a\n}\n", &["a"]);
}

#[test]
fn addresses_go_on_after_a_comma() {
    let loaded =
        Memory::main("http://a.example,\nhttp://b.example http://c.example {\n\trespond a\n}\n").sound();
    assert_eq!(loaded.checked.sites[0].hosts.len(), 3);
    assert_eq!(loaded.checked.sites[0].label, "http://a.example");
}

#[test]
fn snippets_take_arguments_and_blocks() {
    check(
        "(greet) {\n\trespond {args[0]} \"{args[1]}, {args.2}!\"\n}\n:80 {\n\timport greet /hi hello world\n}\n",
        &["hello, world!"],
    );
    check("(say) {\n\trespond {args[:]}\n}\n:80 {\n\timport say /a hi 200\n}\n", &["hi"]);
    check("(say) {\n\trespond {args[1:3]}\n}\n:80 {\n\timport say x /a hi\n}\n", &["hi"]);
    check(
        "(wrap) {\n\thandle {args[0]} {\n\t\t{block}\n\t}\n}\n:80 {\n\timport wrap /a {\n\t\trespond inner\n\t}\n}\n",
        &["inner"],
    );
    check(
        "(two) {\n\thandle /a {\n\t\t{blocks.first}\n\t}\n\thandle {\n\t\t{blocks.second}\n\t}\n}\n:80 {\n\timport two {\n\t\tfirst {\n\t\t\trespond one\n\t\t}\n\t\tsecond {\n\t\t\trespond two\n\t\t}\n\t}\n}\n",
        &["one", "two"],
    );
}

#[test]
fn a_snippet_may_stand_in_its_own_block() {
    let wrap = "(wrap) {\n\thandle {args[0]} {\n\t\t{block}\n\t}\n}\n";
    let site = ":80 {\n\timport wrap /a/* {\n\t\timport wrap /a/b/* {\n\t\t\trespond inner\n\t\t}\n\t}\n}\n";
    check(&format!("{wrap}{site}"), &["inner"]);
}

#[test]
fn files_are_imported_relative_to_the_file_that_names_them() {
    let memory = Memory::main("import parts/all.conf\nimport sites/*\n")
        .file("parts/all.conf", "import more/snippets.conf\n")
        .file("parts/more/snippets.conf", "(hi) {\n\trespond {args[0]}\n}\n")
        .file("sites/a.conf", "http://a.example {\n\timport hi a\n}\n")
        .file("sites/b.conf", "http://b.example {\n\timport hi b\n}\n")
        .file("sites/.hidden", "broken {\n");
    assert_eq!(bodies(&memory), ["a", "b"]);
    let files: Vec<String> = memory.sound().files.iter().map(|file| file.display().to_string()).collect();
    let expected =
        ["Onehopfile", "parts/all.conf", "parts/more/snippets.conf", "sites/a.conf", "sites/b.conf"];
    assert_eq!(files, expected);
}

#[test]
fn a_pattern_that_fits_no_file_gives_a_warning() {
    let loaded = Memory::main("import sites/*.conf\n:80 {\n\trespond a\n}\n").sound();
    assert_eq!(loaded.warnings.len(), 1);
}
