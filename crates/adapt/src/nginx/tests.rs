//! Configurations as people have them, and what is made of each.

use std::path::Path;

use onehop_config::{FileKind, FileSource};

use super::{Configuration, Listens, translate};
use crate::{Refusal, TextOnly, onehopfile};

/// What is made of the first server: the Onehopfile, paths and notes.
fn translated(path: &Path) -> Result<(String, Vec<String>, Vec<String>), Refusal> {
    let mut notes = Vec::new();
    let configuration = Configuration::read(path, &FileSource, &mut notes)?;
    let server = configuration.server(&mut notes)?;
    let translated = translate(&server, &TextOnly, &mut notes)?;
    let addresses = Listens::of(server.directive).plain_addresses(&mut notes);
    let addresses = if addresses.is_empty() { ":80".to_owned() } else { addresses.join(", ") };
    let text = format!("{addresses} {{\n{}}}\n", onehopfile::indented(&translated.body));
    Ok((text, translated.paths, notes))
}

/// What is made of a configuration, as one text; an Onehopfile that onehop's own checker takes.
fn onehopfile(conf: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("nginx.conf", conf), ("dist/index.html", ""), ("dist/a.js", ""), ("static/a", "")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let text = match translated(&folder.path().join("nginx.conf")) {
        Ok((onehopfile, paths, notes)) => {
            let file = folder.path().join("Onehopfile");
            std::fs::write(&file, &onehopfile).unwrap();
            if let Err(problems) = onehop_config::load(&file, FileKind::Onehopfile, &FileSource) {
                let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
                panic!("{onehopfile}\n{}", shown.join("\n"));
            }
            let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
            format!("{onehopfile}asks {}\n{notes}", paths.join(" "))
        }
        Err(refusal) => format!("{refusal}\n"),
    };
    text.replace(&folder.path().display().to_string(), "FOLDER")
}

/// Each of the words must stand in what comes out, or with a `!` before it must not.
fn check(conf: &str, words: &[&str]) {
    let out = onehopfile(conf);
    for word in words {
        let (is_there, word) = word.strip_prefix('!').map_or((true, *word), |word| (false, word));
        assert_eq!(out.contains(word), is_there, "{conf}\n{word}\n{out}");
    }
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    assert!(
        onehopfile("include nginx.conf;").contains("too many blocks")
            || onehopfile("include nginx.conf;").contains("files are included")
    );
    let deep = format!("{}{}", "a {".repeat(5000), "}".repeat(5000));
    assert!(onehopfile(&deep).contains("too many blocks"));
}

#[test]
fn what_stands_in_a_named_location_is_carried_over_or_refused_like_anything_else() {
    let around = |inner: &str| {
        format!(
            "root dist; location / {{ try_files $uri @app; }} location @app {{ proxy_pass http://localhost:3000; {inner} }}"
        )
    };
    check(&around("auth_basic x;"), &["onehop does not have files of passwords"]);
    check(&around("deny all;"), &["has other rules of `allow` and `deny`"]);
    check(
        &format!("deny 192.0.2.1; client_max_body_size 2m; {}", around("")),
        &[
            "handle @absent {\n\t\t@denied remote_ip 192.0.2.1\n\t\trespond @denied 403\n",
            "handle {\n\t\t@denied remote_ip 192.0.2.1\n\t\trespond @denied 403\n",
            "max_size 2MiB",
        ],
    );
    check(&around("rewrite ^/api/(.*)$ /$1 break;"), &["it changes what is asked for"]);
    check(
        &around("proxy_read_timeout 5m;"),
        &["reverse_proxy @absent 127.0.0.1:3000 {", "read_timeout 300s"],
    );
    check(&around("proxy_set_header X-Key a;"), &["header_up X-Key a\n", "!X-Key a`"]);
    let headers = "handle @absent {\n\t\theader +X-A 1\n\t\treverse_proxy 127.0.0.1:3000 {";
    check(&around("add_header X-A 1 always;"), &[headers, "handle {\n\t\tfile_server\n"]);
    check(
        "location /s/ { alias static/; try_files $uri @app; } location @app { proxy_pass http://localhost:3000; }",
        &["the application would get the path without"],
    );
}

#[test]
fn names_with_a_dot_that_nginx_refuses_do_not_reach_the_application() {
    let passed = "location / { proxy_pass http://localhost:3000; } ";
    let refusal = "path */.*\n\t\thandle @paths0 {\n\t\t\trespond 403\n";
    check(
        &format!("{passed}location ~ /\\. {{ deny all; access_log off; }}"),
        &[refusal, "asks / /.onehop-try"],
    );
    check(
        &format!("{passed}location ~ /\\.(?!well-known) {{ deny all; }}"),
        &["path */.*\n\t\t\tnot path */.well-known*\n", "respond 403"],
    );
    check(&format!("{passed}location ~ /\\.git {{ return 404; }}"), &["path */.git*", "respond 404"]);
    check(&format!("{passed}location /private/ {{ deny all; }}"), &["handle /private/* {\n\t\trespond 403"]);
    check(
        &format!("{passed}location ~ /\\.[a-z] {{ deny all; }}"),
        &["@paths0 path_regexp `/\\.[a-z]`\n\t\thandle @paths0 {\n\t\t\trespond 403\n"],
    );
    check(
        &format!("{passed}location ~ /(?=\\.)[^/] {{ deny all; }}"),
        &["matches by an expression that onehop does not have"],
    );
}

#[test]
fn a_strong_prefix_only_counts_where_it_is_the_longest() {
    let app = "proxy_pass http://localhost:3000;";
    let conf = format!("location ^~ /static/ {{ alias static/; }} location /static/images/ {{ {app} }}");
    let out = onehopfile(&conf);
    assert!(
        out.find("handle /static/images/*").unwrap() < out.find("handle_path /static/*").unwrap(),
        "{out}"
    );
    check(&format!("{conf} location ~ \\.js$ {{ return 410; }}"), &["lies below `location ^~ /static/`"]);
    check(
        &format!("location ^~ /s/ {{ {app} }} location ~ \\.js$ {{ return 410; }}"),
        &["path *.js\n\t\t\tnot path /s/*"],
    );
    check(
        &format!(
            "root dist; location ^~ / {{ }} location /api/ {{ {app} }} location ~ \\.js$ {{ return 410; }}"
        ),
        &["lies below `location ^~ /`"],
    );
}

#[test]
fn the_last_page_of_try_files_belongs_to_its_own_location_or_is_refused() {
    check(
        "location /app/ { alias dist/; try_files $uri $uri/ /app/index.html; }",
        &["try_files {path} {path}/ /index.html"],
    );
    check("location /app/ { alias dist/; try_files $uri /index.html; }", &["chooses a location once more"]);
    check(
        "location / { root dist; try_files $uri /backend; } location = /backend { proxy_pass http://localhost:3000; }",
        &["chooses a location once more"],
    );
    check(
        "root dist; location / { try_files $uri /index.html; } location ~ \\.html$ { expires 1h; }",
        &["chooses a location once more"],
    );
    check("root dist; location / { try_files $uri $uri.html; }", &["try_files {path} {path}.html"]);
    check("root dist; location / { try_files $uri =404; }", &["try_files {path} =404"]);
    check("root dist; location / { try_files $uri $uri/ =404; }", &["!try_files"]);
    check(
        "root dist; location / { try_files $uri =404; proxy_pass http://localhost:3000; }",
        &["stands beside a `proxy_pass`"],
    );
}

#[test]
fn a_name_gets_its_slash_only_where_nginx_adds_it() {
    let named = "location @app { proxy_pass http://localhost:3000; }";
    check(&format!("location /static/ {{ root dist; try_files $uri @app; }} {named}"), &["!redir"]);
    check("location /api/ { proxy_pass http://localhost:3000; }", &["redir /api /api/{?query} 301"]);
    check("location /api/ { proxy_pass http://localhost:3000; } location /api { return 410; }", &["!redir"]);
}

#[test]
fn several_servers_keep_their_weights_and_the_way_they_are_chosen() {
    let both = |more: &str| format!("server localhost:3000 {more}; server localhost:4000 {more};");
    for (upstream, location, options) in [
        (both(""), "", "lb_policy round_robin|fail_duration 10s|lb_retries 1"),
        (
            "server localhost:3000 weight=3; server localhost:4000;".to_owned(),
            "",
            "lb_policy weighted_round_robin 3 1|fail_duration 10s|lb_retries 1",
        ),
        (
            "server localhost:3000; server localhost:4000 backup;".to_owned(),
            "proxy_next_upstream off;",
            "lb_policy first|fail_duration 10s",
        ),
        (both("max_fails=0") + "least_conn;", "", "lb_policy least_conn|lb_retries 1"),
        (
            both("max_fails=3 fail_timeout=30s max_conns=9") + "ip_hash;",
            "proxy_next_upstream_tries 1;",
            "lb_policy ip_hash|fail_duration 30s|max_fails 3|unhealthy_request_count 9",
        ),
        (both("") + "hash $request_uri consistent;", "", "lb_policy uri_hash|fail_duration 10s|lb_retries 1"),
        (both("") + "hash $http_x_user;", "", "lb_policy header x-user|fail_duration 10s|lb_retries 1"),
        (both("") + "hash $arg_user;", "", "lb_policy query user|fail_duration 10s|lb_retries 1"),
        (
            both("") + "random two least_conn; zone a 64k; keepalive 8;",
            "",
            "lb_policy random_choose 2|fail_duration 10s|lb_retries 1",
        ),
    ] {
        let conf = format!(
            "upstream a {{ {upstream} }} server {{ location / {{ proxy_pass http://a; \
             proxy_set_header Host $http_host; {location} }} }}"
        );
        let options = options.replace('|', "\n\t\t");
        check(&conf, &[&format!("reverse_proxy 127.0.0.1:3000 127.0.0.1:4000 {{\n\t\t{options}\n\t}}\n")]);
    }
    // The server marked `down` gets no requests, and the backup comes last, wherever the file names it.
    let of = |servers: &str| {
        format!(
            "upstream a {{ {servers} }} server {{ location / {{ proxy_pass http://a; proxy_set_header Host $http_host; }} }}"
        )
    };
    check(&of("server localhost:3000; server localhost:5000 down;"), &["reverse_proxy 127.0.0.1:3000\n"]);
    let swapped = of("server localhost:3000 backup; server localhost:4000;");
    check(&swapped, &["reverse_proxy 127.0.0.1:4000 127.0.0.1:3000 {\n\t\tlb_policy first\n"]);
    let different = of("server localhost:3000 max_fails=2; server localhost:4000; least_conn;");
    check(&different, &["its servers differ in when they are taken out", "max_fails 2"]);
    let weighted = of("server localhost:3000 weight=2; server localhost:4000; least_conn;");
    check(&weighted, &["onehop counts the servers of `least_conn` alike"]);
}

#[test]
fn a_single_ending_is_a_matcher_of_its_own() {
    check("root dist; location ~ \\.js$ { expires 1h; }", &["@paths0 path *.js\n\t\thandle @paths0 {"]);
}

#[test]
fn a_lifetime_and_a_field_of_the_same_name_are_both_sent() {
    check(
        "location / { root dist; expires 1y; add_header Cache-Control \"public, immutable\"; }",
        &[
            "header >Cache-Control max-age=31536000\n\theader {\n\t\t+Cache-Control `public, immutable`\n\t\tdefer\n\t}\n",
            "!adds them to errors",
        ],
    );
}

#[test]
fn rules_by_address_and_the_size_of_bodies_are_carried_over() {
    let passed = |rules: &str| {
        format!("server {{ listen 80; location /a/ {{ {rules} proxy_pass http://127.0.0.1:3000; }} }}")
    };
    for (rules, words) in [
        (
            "allow 10.0.0.0/8; allow ::1; deny all;",
            &["@denied not remote_ip 10.0.0.0/8 ::1", "respond @denied 403"][..],
        ),
        ("deny 192.0.2.1;", &["@denied remote_ip 192.0.2.1", "respond @denied 403"]),
        ("deny 192.0.2.1; allow all;", &["@denied remote_ip 192.0.2.1"]),
        ("allow all;", &["!denied"]),
        ("allow 10.0.0.0/8; deny 10.1.0.0/16; deny all;", &["rules that take turns"]),
        ("allow 10.0.0.0/8;", &["rules that take turns"]),
        ("allow unix:; deny all;", &["rules that take turns"]),
        ("client_max_body_size 50m;", &["request_body {", "max_size 50MiB"]),
        ("client_max_body_size 1024;", &["max_size 1024B"]),
        ("client_max_body_size 0;", &["!request_body"]),
    ] {
        check(&passed(rules), words);
    }
}

#[test]
fn a_table_of_types_that_is_not_there_is_no_reason_to_stop() {
    check(
        "http { include /etc/nothing/mime.types; server { listen 80; location / { return 200 a; } } }",
        &["respond a 200"],
    );
}
