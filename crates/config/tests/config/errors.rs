//! What a person reads when a configuration is wrong.

use crate::memory::{Memory, text_of};

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(Memory::main($text).errors());
        }
    };
}

errors!(an_unknown_directive_is_named_with_its_nearest_word, ":8080\nfile_sever browse\n");
errors!(
    all_errors_of_a_file_come_at_once,
    ":8080 {\n\troot\n\tgzip\n\theader X-A b c d\n\trespond \"a\" 20000\n\tredir /a\n}\n"
);
errors!(
    a_directive_of_caddy_is_not_yet_there,
    "http://a.example {\n\tphp_fastcgi localhost:9000\n\ttemplates\n}\n"
);
errors!(
    a_directive_of_nginx_is_recognised,
    "server {\n\tlisten 80;\n\tserver_name a.example;\n\tlocation /api {\n\t\tproxy_pass http://localhost:3000;\n\t}\n}\n"
);
errors!(
    several_paths_before_a_target_suggest_a_named_matcher,
    ":8080 {\n\tapp /api/* /ws ./server.js\n\treverse_proxy /api/* /ws localhost:3000\n\thandle /a /b {\n\t\trespond hi\n\t}\n\tapp /srv/api/server.js /ws\n}\n"
);
errors!(a_directive_without_a_site_asks_for_an_address, "root * /srv\nfile_server\n");
errors!(an_undefined_matcher_names_the_nearest, ":8080 {\n\t@static path *.css\n\trespond @statics hi\n}\n");
errors!(a_matcher_defined_twice, ":8080 {\n\t@a path /a\n\t@a path /b\n\trespond @a hi\n}\n");
errors!(
    a_matcher_of_caddy_is_not_yet_there,
    ":8080 {\n\t@a vars {path} /x\n\t@b pth /x\n\t@c header Foo\n\trespond @a hi\n}\n"
);
errors!(
    an_unknown_placeholder,
    ":8080\nrespond \"hi {http.request.hots} and {nothing_at_all} and {re.a.1}\"\n"
);
errors!(
    a_duplicate_address,
    "http://a.example {\n\trespond a\n}\nhttp://b.example, http://a.example:80 {\n\trespond b\n}\n"
);
errors!(
    one_port_speaks_one_protocol,
    "http://a.example:8443 {\n\trespond a\n}\nhttps://b.example:8443 {\n\trespond b\n}\n"
);
errors!(a_block_that_is_never_closed, ":8080 {\n\thandle /a {\n\t\trespond a\n\trespond b\n}\n");
errors!(a_brace_too_many, ":8080 {\n\trespond a\n}\n}\n");
errors!(a_brace_on_a_line_of_its_own, ":8080 {\n\thandle /a\n\t{\n\t\trespond a\n\t}\n}\n");
errors!(an_address_glued_to_its_brace, ":8080{\n\trespond a\n}\n");
errors!(a_path_in_an_address, "http://a.example/api {\n\trespond a\n}\n");
errors!(
    an_unknown_global_option,
    "{\n\tadmn off\n\tmemory lots\n\tech a.example\n\tthreads 0\n\tgrace_period soon\n}\n:8080\nrespond a\n"
);
errors!(a_global_block_that_is_not_first, ":8080 {\n\trespond a\n}\n{\n\tadmin off\n}\n");
errors!(an_open_quote, ":8080\nrespond \"never closed\n");
errors!(an_open_heredoc, ":8080\nrespond <<END\nnever closed\n");
errors!(a_heredoc_with_a_line_too_far_left, ":8080 {\n\trespond <<END\n\t\ta\n\tb\n\t\tEND\n}\n");
errors!(
    an_unknown_snippet_names_the_nearest,
    "(logging) {\n\tlog\n}\n:8080 {\n\timport loging\n\trespond a\n}\n"
);
errors!(
    an_import_argument_that_is_not_given,
    "(greet) {\n\trespond {args[1]}\n}\n:8080 {\n\timport greet hi\n}\n"
);
errors!(
    a_snippet_that_imports_itself,
    "(a) {\n\timport b\n}\n(b) {\n\timport a\n}\n:8080 {\n\timport a\n}\n"
);
errors!(an_invalid_field_name, ":8080\nheader \"X A\" b\n");
errors!(a_regular_expression_that_does_not_compile, ":8080\nheader X-A \"(\" b\n");
errors!(a_site_setting_inside_of_a_handle, ":8080 {\n\thandle {\n\t\tlog\n\t\tbind 127.0.0.1\n\t}\n}\n");
errors!(bind_takes_no_port, ":8080 {\n\tbind 127.0.0.1:80 unix//run/a|0066 example.com\n\trespond a\n}\n");
errors!(a_second_site_without_braces, ":8080\nrespond a\nexample.com\nrespond b\n");
errors!(an_empty_file, "# nothing yet\n");

#[test]
fn an_error_in_an_imported_file_names_that_file() {
    let memory = Memory::main("import sites/*.conf\n").file("sites/a.conf", ":8080 {\n\trespnd a\n}\n");
    insta::assert_snapshot!(memory.errors());
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    insta::assert_snapshot!(text_of(&Memory::default().load().unwrap_err()));
}

#[test]
fn an_error_behind_many_warnings_is_not_lost() {
    let warnings: String =
        (0..300).map(|number| format!("\trespond /{number} \"{{$NONE{number}}}\"\n")).collect();
    assert_eq!(Memory::main(&format!(":80 {{\n{warnings}\tnonsense\n}}\n")).load().unwrap_err().len(), 1);
}

errors!(broken_lines_at_the_top_do_not_hide_the_sites_below, "}\n@a path /a\n:80 {\n\trespnd a\n}\n");
errors!(
    a_socket_with_two_permissions,
    "http://a.example {\n\tbind unix//a|0660\n\trespond a\n}\nhttp://b.example {\n\tbind unix//a\n\trespond b\n}\n"
);
errors!(a_field_value_over_two_lines, ":80\nheader X-A \"a\nb\"\n");
errors!(more_groups_than_a_block_may_have, &format!(":80 {{\n{}}}\n", "\ttry_files a /b?c\n".repeat(65)));

#[test]
fn imports_without_end_are_stopped() {
    let text: String = (1..21)
        .map(|level| format!("(s{level}) {{\n\timport s{}\n\timport s{}\n}}\n", level - 1, level - 1))
        .collect();
    let errors = Memory::main(&format!("(s0) {{\n}}\n{text}:80 {{\n\timport s20\n}}\n")).errors();
    assert!(errors.contains("imports are made"), "{errors}");
}
