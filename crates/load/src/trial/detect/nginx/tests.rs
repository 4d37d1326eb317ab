//! Configurations as people have them, and what is made of each.

use crate::trial::Surroundings;
use crate::trial::detect::testing::{Folder, surroundings};

/// Somebody listens on 3000 and 4000.
fn running() -> Surroundings {
    let occupied = ["127.0.0.1:3000", "[::]:4000"].map(|address| address.parse().unwrap()).to_vec();
    Surroundings { occupied, ..surroundings() }
}

fn onehopfile(conf: &str) -> String {
    let folder =
        Folder::of(&[("nginx.conf", conf), ("dist/index.html", ""), ("dist/a.js", ""), ("static/a", "")]);
    match folder.detect("nginx.conf", &running()) {
        Ok(setup) => {
            let notes: String = setup.notes.iter().map(|note| format!("note: {note}\n")).collect();
            folder.plain(&format!("{}asks {}\n{notes}", setup.onehopfile, setup.paths.join(" ")))
        }
        Err(error) => folder.plain(&format!("{error}\n")),
    }
}

#[test]
fn a_location_that_passes_its_prefix_on_without_it_is_measured_as_it_is_and_tuned() {
    let folder = Folder::of(&[
        (
            "nginx.conf",
            "user www-data;\nevents { worker_connections 1024; }\nhttp {\n  include mime.types;\n  server {\n    \
             listen 80 default_server;\n    server_name example.com;\n    location /nws/ {\n      \
             proxy_pass http://localhost:3000/;\n      proxy_set_header Host $host;\n      \
             proxy_set_header X-Real-IP $remote_addr;\n      \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n    }\n  }\n}\n",
        ),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        (
            "server.js",
            "const app = express(); app.get('/latest', (q, s) => s.end()); app.listen(process.env.PORT);",
        ),
    ]);
    let setup = folder.detect("", &surroundings()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
}

#[test]
fn locations_become_blocks_of_an_onehopfile() {
    let cases = [
        "location / { proxy_pass http://localhost:3000; }",
        "root dist; location / { try_files $uri $uri/ /index.html; }\nlocation /api/ { proxy_pass http://127.0.0.1:3000; proxy_read_timeout 5m; proxy_set_header Host $host; }",
        "root dist; location / { try_files $uri @app; }\nlocation @app { proxy_pass http://localhost:3000; }",
        "location /api { proxy_pass http://localhost:3000/api; }\nlocation /v1/ { proxy_pass http://localhost:4000/base/; }",
        "location /api/ { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://localhost:3000; }",
        "location = /health { return 200 'fine'; default_type text/plain; }\nlocation /old { return 301 https://$host/new; }\nlocation = /gone { return 410; }",
        "gzip on; access_log off; root dist; index index.html index.htm; add_header X-A \"b c\"; location ~* \\.(js|css)$ { expires 1y; }\nlocation ~ /\\.ht { deny all; }",
        "location /static/ { alias static/; autoindex on; }\nlocation ^~ /x { root dist; }\nclient_max_body_size 10m; limit_req zone=a; charset utf-8;",
    ];
    let shown: Vec<String> = cases.iter().map(|conf| format!("{conf}\n\n{}", onehopfile(conf))).collect();
    insta::assert_snapshot!(shown.join("\n----\n"));
}

#[test]
fn what_cannot_be_carried_over_is_refused_with_its_line() {
    let cases = [
        "location / { proxy_pass http://localhost:5000; }",
        "location / { proxy_pass http://application:3000; }",
        "location / {\n proxy_pass http://$target; }",
        "upstream a { server localhost:3000; server localhost:4000; hash $uid; } server { location / { proxy_pass http://a; } }",
        "upstream a { server localhost:3000; server localhost:4000; sticky cookie x; } server { location / { proxy_pass http://a; } }",
        "upstream a { server localhost:3000; server localhost:4000; server localhost:3000 backup; } server { location / { proxy_pass http://a; } }",
        "upstream a { server localhost:3000 down; } server { location / { proxy_pass http://a; } }",
        "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }",
        "location ~ ^/v[0-9]+/ { proxy_pass http://localhost:3000; }",
        "root /nowhere/at/all; location / { }",
        "location / { auth_basic x; proxy_pass http://localhost:3000; }",
        "location /api/ { proxy_pass http://localhost:3000/api; }",
        "location / { if ($host = a) { return 403; } proxy_pass http://localhost:3000; }",
        "location / { proxy_pass http://localhost:3000",
        "location / { proxy_pass 'http://localhost:3000; }",
        "}",
        "include nowhere.conf;",
        "include ../../../../../../../../etc/passwd;",
        "worker_processes 1;",
    ];
    let shown: Vec<String> = cases.iter().map(|conf| format!("{conf}\n{}", onehopfile(conf))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_server_with_tls_is_measured_without_and_its_redirect_is_left_out() {
    let conf = "events {}\nhttp { access_log off;\nupstream app { server 127.0.0.1:3000; keepalive 8; }\n\
        server { listen 80; return 301 https://$host$request_uri; }\n\
        server { listen 443 ssl; ssl_certificate /nowhere/a.pem; ssl_certificate_key /nowhere/b.pem;\n\
        location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection \"\"; } } }\n";
    let folder = Folder::of(&[("nginx.conf", conf)]);
    let setup = folder.detect("nginx.conf", &running()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
    assert_eq!(setup.today.len(), 1, "it keeps its connections already");
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

/// Each of the words must stand in what comes out, or with a `!` before it must not.
fn check(conf: &str, words: &[&str]) {
    let out = onehopfile(conf);
    for word in words {
        let (is_there, word) = word.strip_prefix('!').map_or((true, *word), |word| (false, word));
        assert_eq!(out.contains(word), is_there, "{conf}\n{word}\n{out}");
    }
}

#[test]
fn what_stands_in_a_named_location_is_carried_over_or_refused_like_anything_else() {
    let around = |inner: &str| {
        format!(
            "root dist; location / {{ try_files $uri @app; }} location @app {{ proxy_pass http://localhost:3000; {inner} }}"
        )
    };
    check(&around("auth_basic x;"), &["onehop does not have passwords"]);
    check(&around("deny all;"), &["onehop does not decide by a client's address"]);
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
    check(&format!("{passed}location ~ /\\.[a-z] {{ deny all; }}"), &["no path pattern is equal to"]);
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

/// The same application beside its configuration, where nobody listens yet.
fn beside(conf: &str) -> String {
    let folder = Folder::of(&[
        ("nginx.conf", conf),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        ("server.js", "express().listen(process.env.PORT);"),
    ]);
    match folder.detect("nginx.conf", &Surroundings { occupied: Vec::new(), ..running() }) {
        Ok(setup) => folder.show(&setup),
        Err(error) => folder.plain(&format!("{error}\n")),
    }
}

#[test]
fn an_application_that_app_would_tell_less_stays_behind_a_proxy() {
    for (field, is_kept) in [
        ("X-Forwarded-Proto $scheme", true),
        ("X-Forwarded-Proto https", false),
        ("X-Forwarded-For $proxy_add_x_forwarded_for", true),
        ("X-Forwarded-For \"\"", false),
        ("X-Forwarded-Host ${host}", true),
        ("X-Real-IP $remote_addr", true),
        ("X-Key a", false),
        ("X-Key $http_x_key", true),
        // No directive has an equal for it.
        ("X-Key $upstream_addr", true),
        ("Host $hostname", true),
        ("Host $http_host", true),
        ("Upgrade $http_upgrade", true),
    ] {
        let out =
            beside(&format!("location / {{ proxy_pass http://localhost:3000; proxy_set_header {field}; }}"));
        assert_eq!(out.contains("\tapp ./server.js\n"), is_kept, "{field}\n{out}");
        assert_eq!(out.contains("\treverse_proxy 127.0.0.1:3000 {\n"), !is_kept, "{field}\n{out}");
        assert_eq!(out.contains("by onehop: true"), is_kept, "{field}\n{out}");
    }
}

#[test]
fn what_leads_to_one_application_stays_one() {
    let out = beside(
        "location / { proxy_pass http://localhost:3000; }\n\
         location /ws/ { proxy_pass http://localhost:3000; proxy_read_timeout 1h; }",
    );
    assert_eq!(out.matches("app ./server.js {\n\t\t\ttimeout 3600s\n").count(), 2, "{out}");
    assert!(out.contains("it is one application, and the longest one, 3600s, holds everywhere"), "{out}");
    // One place that needs a proxy makes all of them need the port.
    let out = beside(
        "location / { proxy_pass http://localhost:3000; }\n\
         location /key/ { proxy_pass http://localhost:3000; proxy_set_header X-Key a; }",
    );
    assert!(out.contains("is started there for both sides") && !out.contains("app ./server.js"), "{out}");
}

#[test]
fn what_nginx_tells_and_waits_for_is_told_and_waited_for_by_the_proxy() {
    let cases = [
        "location / { proxy_pass http://localhost:3000; proxy_set_header Host $host; proxy_set_header X-Request-Id \
         $http_x_request_id; proxy_set_header X-Trace $http_x_request_id; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Empty \
         \"\"; proxy_set_header Upgrade $http_upgrade; proxy_set_header X-Odd $hostname; }",
        "location /nws/ { proxy_pass http://localhost:3000/; proxy_connect_timeout 2s; proxy_read_timeout 90; \
         proxy_send_timeout 1m; proxy_buffering off; proxy_hide_header X-Secret; }",
        "location / { proxy_pass http://localhost:3000; proxy_set_header Host $http_host; proxy_redirect off; }",
        "location / { proxy_pass http://localhost:3000; proxy_set_header Host $http_host; proxy_redirect \
         http://a.example.com/x/ /y/; proxy_redirect ~^http://b/(.*) /$1; }",
    ];
    let shown: Vec<String> = cases.iter().map(|conf| format!("{conf}\n\n{}", onehopfile(conf))).collect();
    insta::assert_snapshot!(shown.join("\n----\n"));
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
    // The one that is down gets nothing, and the spare one stands behind, wherever it is written.
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
fn a_page_drawn_by_a_script_becomes_spa_and_the_site_keeps_its_names() {
    let conf = "server { listen 80; listen [::]:80; listen 8081 default_server; listen 443 ssl; server_name a.example .b.example _; \
                root web; index index.html; location / { try_files $uri $uri/ /index.html; } \
                location /api/ { proxy_pass http://localhost:3000; proxy_set_header Host $http_host; } }";
    let folder = |page: &str| Folder::of(&[("nginx.conf", conf), ("web/index.html", page)]);
    let application = folder("<div id=\"root\"></div><script type=\"module\" src=\"/a.js\"></script>");
    let setup = application.detect("nginx.conf", &running()).unwrap();
    assert!(setup.onehopfile.contains("\t\tspa ./web\n"), "{}", setup.onehopfile);
    assert!(!setup.onehopfile.contains("try_files") && !setup.onehopfile.contains("file_server"));
    let expected = ["a.example", "b.example", "*.b.example"];
    let expected = expected.map(|name| [format!("http://{name}"), format!("http://{name}:8081")]).concat();
    assert_eq!(setup.addresses, expected);
    let setup = folder("<p>a page</p>").detect("nginx.conf", &running()).unwrap();
    assert!(
        setup.onehopfile.contains("try_files") && !setup.onehopfile.contains("spa "),
        "{}",
        setup.onehopfile
    );
}

#[test]
fn a_map_that_closes_ordinary_connections_keeps_none() {
    let site = |ordinary: &str, more: &str| {
        format!(
            "map $http_upgrade $connection_upgrade {{ default upgrade; '' {ordinary}; }} \
             upstream a {{ server 127.0.0.1:3000; keepalive 8; }} \
             server {{ location / {{ proxy_pass http://a; proxy_http_version 1.1; \
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }} {more} }}"
        )
    };
    check(&site("close", ""), &["for each request. It is measured as it is"]);
    check(&site("''", ""), &["!for each request"]);
    check(
        &site("''", "location /b/ { proxy_pass http://a; }"),
        &["for each request of `location /b/` (line 1"],
    );
}
