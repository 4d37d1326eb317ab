//! Configurations as people have them, and what is made of each.

use crate::Environment;
use crate::detect::testing::{Folder, environment};

/// Somebody listens on 3000 and 4000.
fn running() -> Environment {
    let occupied = ["127.0.0.1:3000", "[::]:4000"].map(|address| address.parse().unwrap()).to_vec();
    Environment { occupied, ..environment() }
}

fn onehopfile(conf: &str) -> String {
    let folder =
        Folder::of(&[("nginx.conf", conf), ("dist/index.html", ""), ("dist/a.js", ""), ("static/a", "")]);
    match folder.detect("nginx.conf", &running()) {
        Ok(setup) => {
            let notes: String = setup.notes.iter().map(|note| format!("note: {note}\n")).collect();
            folder.plain(&format!("{}guesses {}\n{notes}", setup.onehopfile, setup.guessed.join(" ")))
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
    let setup = folder.detect("", &environment()).unwrap();
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
        "location ~ ^/v(?=[0-9]) { proxy_pass http://localhost:3000; }",
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

/// Each of the words must stand in what comes out, or with a `!` before it must not.
fn check(conf: &str, words: &[&str]) {
    let out = onehopfile(conf);
    for word in words {
        let (is_there, word) = word.strip_prefix('!').map_or((true, *word), |word| (false, word));
        assert_eq!(out.contains(word), is_there, "{conf}\n{word}\n{out}");
    }
}

/// The same application beside its configuration, where nobody listens yet.
fn beside(conf: &str) -> String {
    let folder = Folder::of(&[
        ("nginx.conf", conf),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        ("server.js", "express().listen(process.env.PORT);"),
    ]);
    match folder.detect("nginx.conf", &Environment { occupied: Vec::new(), ..running() }) {
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
fn what_nginx_tells_and_waits_for_is_reported_and_waited_for_by_the_proxy() {
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

#[test]
fn nginx_takes_what_is_measured_of_each_kind_of_location_and_upstream() {
    let passed = "location / { proxy_pass http://localhost:3000; }";
    let upstream = |servers: &str| {
        format!(
            "upstream a {{ {servers} }} server {{ location / {{ proxy_pass http://a; proxy_set_header Host $http_host; }} }}"
        )
    };
    for conf in [
        "root dist; location / { try_files $uri @app; } location @app { proxy_pass http://localhost:3000; add_header X-A 1 always; }".to_owned(),
        format!("{passed} location ~ /\\.(?!well-known) {{ deny all; access_log off; }}"),
        format!("{passed} location ~ /\\.git {{ return 404; }} location /private/ {{ deny all; }}"),
        "location ^~ /static/ { alias static/; } location /static/images/ { proxy_pass http://localhost:3000; }".to_owned(),
        "location /app/ { alias dist/; try_files $uri $uri/ /app/index.html; }".to_owned(),
        "location /api/ { proxy_pass http://localhost:3000; } location /api { return 410; }".to_owned(),
        "location / { root dist; expires 1y; add_header Cache-Control \"public, immutable\"; }".to_owned(),
        upstream("server localhost:3000 weight=3; server localhost:4000;"),
        upstream("server localhost:3000; server localhost:4000 backup;"),
        upstream("server localhost:3000 max_fails=3 fail_timeout=30s max_conns=9; server localhost:4000; ip_hash;"),
        upstream("server localhost:3000; server localhost:4000; hash $request_uri consistent;"),
        upstream("server localhost:3000; server localhost:4000; random two least_conn; zone a 64k; keepalive 8;"),
        upstream("server localhost:3000; server localhost:5000 down;"),
    ] {
        // The folder's own check asks nginx.
        check(&conf, &["guesses "]);
    }
}
