//! What settings and addresses mean.

use std::time::Duration;

use crate::memory::{Memory, text_of};
use crate::outline::{conditions, host, outline};
use onehop_config::checked::{Admin, FileServer, HeaderPolicy, ListenAddress, LogOutput, LogRoll, Step};
use onehop_config::{FileKind, Loaded, load};

/// Listeners as `address tls: hosts; hosts`.
fn listeners(loaded: &Loaded) -> Vec<String> {
    let checked = &loaded.checked;
    let site = |index: &usize| checked.sites[*index].hosts.iter().map(host).collect::<Vec<_>>().join(" ");
    checked
        .listeners
        .iter()
        .map(|listener| {
            let address = match &listener.address {
                ListenAddress::Tcp { host: None, port } => format!("*:{port}"),
                ListenAddress::Tcp { host: Some(host), port } => format!("{host}:{port}"),
                ListenAddress::Unix { path, mode } => {
                    format!("{} {:?}", path.display(), mode.map(|mode| format!("{mode:o}")))
                }
            };
            let tls = if listener.tls { " tls" } else { "" };
            format!("{address}{tls}: {}", listener.sites.iter().map(site).collect::<Vec<_>>().join("; "))
        })
        .collect()
}

#[test]
fn an_address_means_a_listener() {
    for (address, expected) in [
        (":8080", &["*:8080: "][..]),
        (":80", &["*:80: "]),
        (":443", &["*:443 tls: ", "*:80: "]),
        ("http://", &["*:80: "]),
        ("https://", &["*:443 tls: ", "*:80: "]),
        ("example.com", &["*:443 tls: example.com", "*:80: "]),
        ("Example.COM:80", &["*:80: example.com"]),
        ("http://example.com", &["*:80: example.com"]),
        ("http://example.com:8080", &["*:8080: example.com"]),
        ("https://example.com:8443", &["*:8443 tls: example.com", "*:80: example.com; "]),
        ("example.com:443", &["*:443 tls: example.com", "*:80: "]),
        ("example.com:8080", &["*:8080 tls: example.com", "*:80: example.com; "]),
        ("localhost", &["*:443 tls: localhost", "*:80: "]),
        ("localhost:8080", &["*:8080 tls: localhost", "*:80: localhost; "]),
        ("http://[::1]:8080", &["*:8080: ::1"]),
        ("http://[0:0::1]", &["*:80: ::1"]),
        (":0", &["*:0: "]),
    ] {
        let loaded = Memory::main(&format!("{address} {{\n\trespond a\n}}\n")).sound();
        assert_eq!(listeners(&loaded), expected, "{address}");
        assert_eq!(loaded.warnings.len(), 0, "{address}");
    }
}

#[test]
fn without_auto_https_a_bare_host_is_served_on_the_http_port() {
    let text = "{\n\tauto_https off\n\thttp_port 8000\n}\nexample.com, http://a.example {\n\trespond a\n}\n";
    assert_eq!(listeners(&Memory::main(text).sound()), ["*:8000: example.com a.example"]);
}

#[test]
fn a_caddyfile_without_auto_https_is_warned_that_caddy_would_still_use_tls() {
    let memory = Memory::main(
        "{\n\tauto_https off\n}\nexample.com, a.example:8080, http://b.example {\n\trespond a\n}\n",
    );
    let loaded = load("Onehopfile".as_ref(), FileKind::Caddyfile, &memory).unwrap();
    insta::assert_snapshot!(text_of(&loaded.warnings));
    assert_eq!(memory.sound().warnings.len(), 0);
}

#[test]
fn the_ports_of_http_and_https_can_be_set() {
    let text = "{\n\thttp_port 8000\n\thttps_port 8443\n}\nexample.com, http://example.com, :8443 {\n\trespond a\n}\n";
    let loaded = Memory::main(text).sound();
    assert_eq!(listeners(&loaded), ["*:8443 tls: ", "*:8000: example.com; "]);
}

#[test]
fn a_host_is_not_answered_on_a_port_where_it_was_not_written() {
    let text = "http://a.example, http://b.example:8080 {\n\trespond a\n}\nhttp://c.example:8080 {\n\trespond c\n}\n";
    assert_eq!(listeners(&Memory::main(text).sound()), ["*:80: a.example", "*:8080: b.example; c.example"]);
}

#[test]
fn bind_names_interfaces_and_sockets() {
    let text = "http://a.example:8080 {\n\tbind 127.0.0.1 [::1] unix//run/a.sock|0660 unix/b.sock localhost\n\trespond a\n}\n";
    let expected = [
        "127.0.0.1:8080: a.example",
        "::1:8080: a.example",
        "/run/a.sock Some(\"660\"): a.example",
        "/work/b.sock None: a.example",
    ];
    assert_eq!(listeners(&Memory::main(text).sound()), expected);
}

#[test]
fn the_global_block_sets_the_process() {
    let text =
        "{\n\tadmin localhost:2019\n\tmemory 1.5GiB\n\tthreads 4\n\tgrace_period 1m30s\n}\n:80\nrespond a\n";
    let global = Memory::main(text).sound().checked.global;
    assert_eq!(global.admin, Admin::Address("127.0.0.1:2019".parse().unwrap()));
    assert_eq!((global.memory, global.memory_bytes), (Some(1_610_612_736), 1_610_612_736));
    assert_eq!(global.threads.map(usize::from), Some(4));
    assert_eq!(global.grace_period, Duration::from_secs(90));
    assert_eq!(Memory::main("{\n\tadmin off\n}\n:80\nrespond a\n").sound().checked.global.admin, Admin::Off);
}

#[test]
fn memory_bounds_everything_and_files_a_part_of_it() {
    for (line, all, files) in [
        ("", None, 512 << 20),
        ("memory 2GiB", Some(2 << 30), 2 << 30),
        ("memory 2GiB files 1GiB", Some(2 << 30), 1 << 30),
        ("memory 2MiB files 1MiB", Some(2 << 20), 1 << 20),
    ] {
        let global = Memory::main(&format!("{{\n{line}\n}}\n:80\nrespond a\n")).sound().checked.global;
        assert_eq!((global.memory, global.memory_bytes), (all, files), "{line}");
    }
}

#[test]
fn connections_of_one_address_are_bounded_where_the_file_says_so() {
    for (line, expected) in [("admin off", None), ("connections_per_address 100", Some(100))] {
        let global = Memory::main(&format!("{{\n{line}\n}}\n:80\nrespond a\n")).sound().checked.global;
        assert_eq!(global.connections_per_address, expected, "{line}");
    }
}

#[test]
fn matchers_of_one_kind_are_merged_and_kinds_must_all_hold() {
    let text = ":80 {\n\t@a {\n\t\tpath /A/* *.PNG\n\t\tpath *mid* /a*b /x%2fy\n\t\tmethod GET\n\t\thost a.example *.b.example\n\t\theader X-A *\n\t\theader !X-B\n\t\theader X-C a*\n\t\theader X-C *b\n\t\tnot path /no\n\t\tnot {\n\t\t\tmethod PUT\n\t\t\theader X-D d\n\t\t}\n\t}\n\trespond @a hi\n}\n";
    let loaded = Memory::main(text).sound();
    let matcher = loaded.checked.sites[0].routes[0].matcher.clone().unwrap();
    let expected = "path /a/* *.png *mid* glob /a*b escaped /x%2fy and method GET and host a.example *.b.example \
                    and header x-a and header !x-b and header x-c a* *b \
                    and not (path /no or method PUT and header x-d d)";
    assert_eq!(conditions(&matcher), expected);
}

#[test]
fn an_inner_block_sees_the_matchers_around_it() {
    let text =
        ":80 {\n\t@a path /a\n\thandle {\n\t\t@b path /b\n\t\trespond @a a\n\t\trespond @b b\n\t}\n}\n";
    let outlined = outline(&Memory::main(text).sound().checked.sites[0].routes);
    assert_eq!(outlined, "handle\n  respond 200 \"a\" path /a\n  respond 200 \"b\" path /b\n");
}

fn file_server(loaded: &Loaded) -> FileServer {
    match &loaded.checked.sites[0].routes.last().unwrap().step {
        Step::FileServer(settings) => settings.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_server_has_caddys_options_and_hides_the_configuration() {
    let text = ":80 {\n\tfile_server {\n\t\troot /srv/{host}\n\t\thide .git secret/*.txt\n\t\tindex a.html b.html\n\t\tbrowse\n\t\tprecompressed\n\t\tstatus 203\n\t\tdisable_canonical_uris\n\t\tpass_thru\n\t\tdotfiles\n\t\tsymlinks follow\n\t}\n}\n";
    let settings = file_server(&Memory::main(text).sound());
    assert_eq!(crate::outline::template(&settings.root.unwrap()), "/srv/<Host>");
    assert_eq!(settings.hide, ["/work/Onehopfile", ".git", "/work/secret/*.txt"]);
    assert_eq!(settings.index, ["a.html", "b.html"]);
    assert_eq!(settings.precompressed.len(), 3);
    assert_eq!(settings.status, Some(203));
    assert!(settings.browse && settings.pass_through && settings.dotfiles && settings.follow_outside);
    assert!(!settings.canonical_uris);
}

#[test]
fn relative_paths_start_at_the_onehopfile_or_at_caddys_working_directory() {
    let memory = Memory::default().file("sub/file", ":80 {\n\troot ./dist/../out\n\tfile_server\n}\n");
    for (kind, root, warnings) in
        [(FileKind::Onehopfile, "root /work/sub/out", 0), (FileKind::Caddyfile, "root /work/out", 1)]
    {
        let loaded = load("sub/file".as_ref(), kind, &memory).unwrap();
        assert_eq!(outline(&loaded.checked.sites[0].routes).lines().next(), Some(root));
        assert_eq!(file_server(&loaded).hide, ["/work/sub/file"]);
        assert_eq!(loaded.warnings.len(), warnings, "{kind:?}");
    }
}

#[test]
fn what_a_caddyfile_would_serve_besides_is_said() {
    let memory = Memory::main(":80\nroot /srv\nfile_server\n");
    let loaded = load("Onehopfile".as_ref(), FileKind::Caddyfile, &memory).unwrap();
    insta::assert_snapshot!(text_of(&loaded.warnings));
}

#[test]
fn spa_has_its_options() {
    let text = ":80 {\n\tspa dist {\n\t\tindex app.html\n\t\timmutable /assets/* *.wasm\n\t\tdotfiles\n\t\tsymlinks follow\n\t}\n}\n";
    let loaded = Memory::main(text).sound();
    let Step::Spa(settings) = &loaded.checked.sites[0].routes[0].step else { panic!() };
    assert_eq!(settings.root.to_str(), Some("/work/dist"));
    assert_eq!(settings.index, "app.html");
    assert_eq!(settings.immutable.len(), 2);
    assert!(settings.dotfiles && settings.follow_outside);
}

#[test]
fn a_log_file_rotates_as_caddys_does() {
    let day = Duration::from_secs(86_400);
    let usual = LogRoll { size: 100 << 20, keep: 10, keep_for: 90 * day, compress: true };
    for (options, roll) in [
        ("", Some(usual)),
        ("roll_disabled", None),
        // Both are rounded up.
        ("roll_size 1.1MiB", Some(LogRoll { size: 2 << 20, ..usual })),
        ("roll_size 10mb\n\t\t\troll_keep 3", Some(LogRoll { size: 10 << 20, keep: 3, ..usual })),
        ("roll_keep_for 36h", Some(LogRoll { keep_for: 2 * day, ..usual })),
        ("roll_uncompressed", Some(LogRoll { compress: false, ..usual })),
    ] {
        let text = format!(
            ":80 {{\n\tlog {{\n\t\toutput file a.log {{\n\t\t\t{options}\n\t\t}}\n\t}}\n\trespond a\n}}\n"
        );
        assert_eq!(Memory::main(&text).sound().checked.sites[0].logs[0].roll, roll, "{options}");
    }
    let usual_options =
        Memory::main(":80 {\n\tlog {\n\t\toutput file a.log\n\t}\n\tlog\n\trespond a\n}\n").sound();
    let logs = &usual_options.checked.sites[0].logs;
    assert_eq!((logs[0].roll, logs[1].roll), (Some(usual), None));
}

#[test]
fn wrong_options_of_a_log_file_are_explained() {
    let mut shown = String::new();
    for option in [
        "roll_size 0",
        "roll_size large",
        "roll_keep 0",
        "roll_keep_for soon",
        "roll_sze 1MiB",
        "roll_interval 1d",
        "roll_disabled yes",
    ] {
        let text = format!(
            ":80 {{\n\tlog {{\n\t\toutput file a.log {{\n\t\t\t{option}\n\t\t}}\n\t}}\n\trespond a\n}}\n"
        );
        let problems = load("Onehopfile".as_ref(), FileKind::Onehopfile, &Memory::main(&text)).unwrap_err();
        shown.push_str(&text_of(&problems));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn logs_go_where_the_file_says() {
    let text = ":80 {\n\tlog {\n\t\toutput file logs/a.log\n\t\tformat json\n\t\thostnames a.example\n\t}\n\tlog\n\trespond a\n}\n";
    let logs = Memory::main(text).sound().checked.sites[0].logs.clone();
    assert_eq!(logs[0].output, LogOutput::File("/work/logs/a.log".into()));
    assert_eq!(logs[0].hosts, ["a.example"]);
    assert_eq!(logs[1].output, LogOutput::Stderr);
}

#[test]
fn a_target_of_redir_that_would_be_read_as_a_matcher_is_an_error() {
    for line in ["redir /new permanent", "redir /catalogue{uri} permanent", "redir /new 308"] {
        let loaded = Memory::main(&format!(":80 {{\n{line}\n}}\n")).load();
        let problems = text_of(&loaded.err().unwrap_or_else(|| panic!("{line}")));
        let next = line.replace("redir ", "write `redir * ");
        assert!(problems.contains("is read as a matcher") && problems.contains(&next), "{line}: {problems}");
    }
}

#[test]
fn the_forms_of_redir_and_respond() {
    for (line, expected) in [
        ("redir https://{host}{uri}", "redir https://<Host><Uri> 302"),
        ("redir * /a permanent", "redir /a 301"),
        ("redir /old /new html", "redir /new html path /old"),
        ("redir * /a 308", "redir /a 308"),
        ("respond 404", "respond 404 \"\""),
        ("respond 40", "respond 200 \"40\""),
        ("respond /a gone 410 {\n\tclose\n}", "respond 410 \"gone\" close path /a"),
        ("respond 200 {\n\tbody hi\n}", "respond 200 \"hi\""),
    ] {
        let result = Memory::main(&format!(":80 {{\n{line}\n}}\n")).load();
        match result {
            Ok(loaded) => assert_eq!(outline(&loaded.checked.sites[0].routes).trim_end(), expected, "{line}"),

            Err(problems) => panic!("{line}: {}", text_of(&problems)),
        }
    }
}

#[test]
fn without_a_root_files_are_looked_for_where_relative_paths_start() {
    for (lines, first) in [
        ("file_server", "root /work"),
        ("root /docs/* /srv\nfile_server", "root /work"),
        ("handle {\n\ttry_files {path} /x\n}", "root /work"),
        ("root /srv\nfile_server", "root /srv"),
        ("respond hi", "respond 200 \"hi\""),
        ("spa dist", "spa /work/dist"),
    ] {
        let loaded = Memory::main(&format!(":80 {{\n{lines}\n}}\n")).sound();
        assert_eq!(outline(&loaded.checked.sites[0].routes).lines().next(), Some(first), "{lines}");
    }
}

#[test]
fn an_interface_in_the_place_of_a_host_is_said() {
    insta::assert_snapshot!(text_of(&Memory::main("http://0.0.0.0:8080\nrespond a\n").sound().warnings));
}

#[test]
fn a_large_file_is_read_in_little_time() {
    let redirects: String =
        (0..10_000).map(|number| format!("\tredir /old/{number}* /new/{number}\n")).collect();
    let loaded = Memory::main(&format!(":80 {{\n{redirects}}}\n")).sound();
    assert_eq!(loaded.checked.sites[0].routes.len(), 10_000);
}

/// An Onehopfile with these lines in `listener_wrappers`, and a site.
fn with_wrappers(lines: &str, site: &str) -> Memory {
    Memory::main(&format!(
        "{{\n\tservers {{\n\t\tlistener_wrappers {{\n{lines}\n\t\t}}\n\t}}\n}}\n{site} {{\n\trespond hi\n}}\n"
    ))
}

#[test]
fn a_load_balancer_in_front_is_named() {
    let loaded = with_wrappers(
        "proxy_protocol {\ntimeout 2s\nallow 10.0.0.0/8 192.0.2.7\nallow fd00::/8\ndeny 10.1.0.0/16\nfallback_policy REJECT\n}\ntls",
        "localhost",
    )
    .sound();
    let settings = loaded.checked.global.proxy_protocol.expect("settings");
    assert_eq!(settings.timeout, Duration::from_secs(2));
    for (peer, expected) in [
        (Some("10.0.0.1"), HeaderPolicy::Use),
        (Some("192.0.2.7"), HeaderPolicy::Use),
        (Some("fd00::1"), HeaderPolicy::Use),
        (Some("10.1.0.1"), HeaderPolicy::Reject),
        (Some("192.0.2.8"), HeaderPolicy::Reject),
        (None, HeaderPolicy::Use),
    ] {
        assert_eq!(settings.policy(peer.map(|peer| peer.parse().unwrap())), expected, "{peer:?}");
    }
    // As in Caddy.
    let usual = with_wrappers("proxy_protocol\ntls", "localhost").load().expect("no errors");
    let settings = usual.checked.global.proxy_protocol.expect("settings");
    assert_eq!((settings.timeout, settings.fallback), (Duration::from_secs(5), HeaderPolicy::Ignore));
    assert!(text_of(&usual.warnings).contains("believes nobody"), "{}", text_of(&usual.warnings));
}

#[test]
fn a_header_inside_of_tls_is_not_read() {
    let header = "proxy_protocol {\nallow 10.0.0.0/8\n}";
    for wrappers in [header.to_owned(), format!("tls\n{header}")] {
        let errors = with_wrappers(&wrappers, "localhost").errors();
        assert!(errors.contains("inside of TLS") && errors.contains("behind `proxy_protocol`"), "{errors}");
        // Nothing is encrypted there.
        with_wrappers(&wrappers, "http://localhost").sound();
    }
}

#[test]
fn what_is_wrong_with_wrappers_is_said() {
    for (lines, expected) in [
        ("proxy_protocol 10.0.0.0/8\ntls", "takes a block"),
        ("proxy_protocol {\nallow\n}\ntls", "`allow` has no argument"),
        ("proxy_protocol {\nallow 10.0.0.1/8\n}\ntls", "the network itself"),
        ("proxy_protocol {\nallow ::1 ::1\n}\ntls", "`allow` has `::1` already"),
        ("proxy_protocol {\nfallback_policy maybe\n}\ntls", "there is no policy `maybe`"),
        ("proxy_protocol {\nfallback_policy use\n}\ntls", "every client may say who it is"),
        ("proxy_protocol {\ntimeout 0\n}\ntls", "from 1ms to 1m"),
        ("proxy_protocol {\nalow ::1\n}\ntls", "`allow`"),
        ("http_redirect\ntls", "gets 400"),
        ("tls internal", "takes nothing after it"),
    ] {
        let text = match with_wrappers(lines, "localhost").load() {
            Ok(loaded) => text_of(&loaded.warnings),
            Err(problems) => text_of(&problems),
        };
        assert!(text.contains(expected), "{lines}: {text}");
    }
}

#[test]
fn a_history_is_kept_for_90_days_unless_the_file_says_otherwise() {
    let read = |lines: &str| Memory::main(&format!("{{\n{lines}\n}}\n:80\nrespond a\n"));
    let history = |lines: &str| read(lines).sound().checked.global.history.map(|it| (it.keep, it.bytes));
    let days = |days: u64| Duration::from_secs(days * 86_400);
    assert_eq!(history("threads 1"), Some((days(90), 512 << 20)));
    assert_eq!(history("history off"), None);
    assert_eq!(history("history {\n\tkeep 30d\n\tsize 64MiB\n}"), Some((days(30), 64 << 20)));
    for (lines, part) in [
        ("history on", "the arguments of `history` do not fit"),
        ("history", "the arguments of `history` do not fit"),
        ("history {\n\tkeep 1h\n}", "`keep`"),
        ("history {\n\tsize 1KiB\n}", "`size` must be at least 4MiB"),
        ("history {\n\tfolder x\n}", "`history` has no option `folder`"),
    ] {
        let errors = read(lines).errors();
        assert!(errors.contains(part), "{lines}: {errors}");
    }
}

#[test]
fn conditions_of_one_kind_in_a_block_are_alternatives() {
    let text = ":80 {\n\t@m {\n\t\tremote_ip 10.0.0.0/8\n\t\tremote_ip 192.0.2.1\n\t\tprotocol https\n\t\tprotocol http/2+\n\
                \t\tquery a=1\n\t\tquery a=2 b=*\n\t}\n\trespond @m x\n}\n";
    let checked = Memory::main(text).sound().checked;
    let matcher = checked.sites[0].routes[0].matcher.as_ref().expect("a matcher");
    let shown = conditions(matcher);
    assert_eq!(matcher.all.len(), 3, "{shown}");
    assert!(shown.contains("name: \"a\", values: [\"1\", \"2\"]"), "{shown}");
}

#[test]
fn what_conditions_cannot_say() {
    for (line, message) in [
        ("remote_ip nonsense", "nonsense"),
        ("remote_ip forwarded 10.0.0.1", "old option"),
        ("remote_ip", "has no argument"),
        ("path_regexp (", "no regular expression"),
        ("path_regexp a b c", "do not fit"),
        ("header_regexp X", "do not fit"),
        ("protocol ftp", "there is no protocol `ftp`"),
        ("protocol", "needs something"),
        ("query a", "does not say a value"),
        ("remote_ip 10.0.0.1 {\n\t\tx\n\t}", "takes no block"),
    ] {
        let text = format!(":80 {{\n\t@m {line}\n\trespond @m x\n}}\n");
        let problems = Memory::main(&text).load();
        let problems = text_of(&problems.err().unwrap_or_else(|| panic!("{line}")));
        assert!(problems.contains(message), "{line}: {problems}");
    }
}

#[test]
fn users_have_bcrypt_hashes_and_these_are_shown_nowhere() {
    let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";
    let of = |lines: &str| format!(":80 {{\n\tbasic_auth /admin/* {lines}\n\trespond x\n}}\n");
    let checked =
        Memory::main(&of(&format!("bcrypt inner {{\n\t\tbob {hash}\n\t\tann {hash}\n\t}}"))).sound().checked;
    let Step::BasicAuth(auth) = &checked.sites[0].routes[0].step else {
        panic!("{:?}", checked.sites[0].routes)
    };
    assert_eq!((auth.realm.as_str(), auth.accounts.len()), ("inner", 2));
    assert!(!format!("{checked:?}").contains("Zkx19"));
    for (lines, message) in [
        ("", "has no user"),
        ("{\n\t\tbob secret\n\t}", "`bob` has no bcrypt hash"),
        (
            "{\n\t\tbob $2a$99$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n\t}",
            "`bob` has no bcrypt hash",
        ),
        ("argon2id {\n\t\tbob x\n\t}", "`argon2id`"),
        ("scrypt {\n\t\tbob x\n\t}", "do not fit"),
        (&format!("{{\n\t\tbob {hash}\n\t\tbob {hash}\n\t}}"), "has two passwords"),
        (&format!("{{\n\t\ta:b {hash}\n\t}}"), "no colon"),
    ] {
        let problems = Memory::main(&of(lines)).load();
        let problems = text_of(&problems.err().unwrap_or_else(|| panic!("{lines}")));
        assert!(problems.contains(message), "{lines}: {problems}");
        assert!(!problems.contains("secret") && !problems.contains("Zkx19"), "{problems}");
    }
}

#[test]
fn an_error_has_a_status_a_message_or_both() {
    let of = |line: &str| Memory::main(&format!(":80 {{\n\t{line}\n}}\n"));
    for (line, shown) in [
        ("error 404", "error 404 "),
        ("error \"no {path}\"", "error 500 no <Path>"),
        ("error gone 410", "error 410 gone"),
        ("error 410 {\n\t\tmessage gone\n\t}", "error 410 gone"),
    ] {
        let outline = outline(&of(line).sound().checked.sites[0].routes);
        assert!(outline.contains(shown), "{line}: {outline}");
    }
    for (line, message) in
        [("error", "has no argument"), ("error a 200", "from 400 to 599"), ("error a b c", "do not fit")]
    {
        let problems = text_of(&of(line).load().err().unwrap_or_else(|| panic!("{line}")));
        assert!(problems.contains(message), "{line}: {problems}");
    }
}
