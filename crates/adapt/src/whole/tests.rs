//! Whole configurations, and that each result is one that onehop takes.

use onehop_config::{FileKind, FileSource};

use super::{Adapted, adapt};

/// What is made of a configuration; onehop's own checker takes it.
fn adapted(conf: &str) -> Adapted {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nginx.conf");
    for (name, text) in [("nginx.conf", conf), ("a.pem", ""), ("k.pem", "")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let adapted = adapt(&path, &FileSource).unwrap();
    let file = folder.path().join("Onehopfile");
    std::fs::write(&file, &adapted.onehopfile).unwrap();
    if let Err(problems) = onehop_config::load(&file, FileKind::Onehopfile, &FileSource) {
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}\n{}", adapted.onehopfile, shown.join("\n"));
    }
    let onehopfile = adapted.onehopfile.replace(&folder.path().display().to_string(), "FOLDER");
    Adapted { onehopfile, ..adapted }
}

#[test]
fn a_site_with_https_and_an_application_becomes_one_of_a_few_lines() {
    let adapted = adapted(include_str!("shop.conf"));
    insta::assert_snapshot!("shop", adapted.onehopfile);
    assert_eq!(adapted.left_out, 2);
}

#[test]
fn where_nginx_decides_who_may_ask_requests_are_refused() {
    for (conf, closed) in [
        (
            "location /a/ { proxy_pass http://app:1; } location /b/ { auth_basic x; proxy_pass http://app:1; }",
            "handle /b/* {\n\t\trespond 403\n\t}",
        ),
        ("allow 10.0.0.0/8; deny all; location / { proxy_pass http://app:1; }", "\trespond 403\n}"),
        ("location / { allow 10.0.0.0/8; deny all; proxy_pass http://app:1; }", "\trespond 403\n}"),
        ("location / { limit_except GET { deny all; } proxy_pass http://app:1; }", "\trespond 403\n}"),
    ] {
        let adapted = adapted(&format!("server {{\n{conf}\n}}"));
        assert!(adapted.onehopfile.contains(closed), "{conf}\n{}", adapted.onehopfile);
        assert!(adapted.left_out > 0 && adapted.onehopfile.contains("NOT CARRIED OVER"));
    }
    let conf = "http { auth_basic x; server { listen 81; root /a; } server { listen 82; root /b; } }";
    let adapted = adapted(conf);
    assert_eq!(adapted.onehopfile.matches("respond 403").count(), 2, "{}", adapted.onehopfile);
    assert!(!adapted.onehopfile.contains("file_server"), "{}", adapted.onehopfile);
}

#[test]
fn what_is_refused_becomes_a_comment_and_the_rest_is_kept() {
    let conf = "server { location / { proxy_pass http://app:1; }\nlocation ~ \\.php$ { fastcgi_pass x; } \
        location ~ ^/v[0-9]+/ { return 410; } }\nserver { listen unix:/run/x.sock; listen 127.0.0.1:8080; root /srv; }";
    let adapted = adapted(conf);
    assert_eq!(adapted.left_out, 2, "{}", adapted.onehopfile);
    for expected in [
        "# NOT CARRIED OVER: FOLDER/nginx.conf:2: `fastcgi_pass x`: onehop does not have FastCGI (PHP).",
        "# NOT CARRIED OVER: FOLDER/nginx.conf:2: `location ~ ^/v[0-9]+/` matches by an expression",
        "reverse_proxy app:1",
        ":8080 {\n\tbind 127.0.0.1\n",
        "root /srv\n",
    ] {
        assert!(adapted.onehopfile.contains(expected), "{expected}\n{}", adapted.onehopfile);
    }
}

#[test]
fn a_certificate_of_certbot_is_obtained_and_any_other_is_named() {
    let of = |certificate: &str| {
        adapted(&format!(
            "server {{ listen 443 ssl; server_name a.example; ssl_certificate {certificate}; ssl_certificate_key k.pem; root /a; }}"
        ))
        .onehopfile
    };
    let obtained = of("/etc/letsencrypt/live/a.example/fullchain.pem");
    assert!(obtained.contains("\na.example {\n") && !obtained.contains("\ttls "), "{obtained}");
    assert!(obtained.contains("obtains and renews certificates by itself"), "{obtained}");
    assert!(of("a.pem").contains("\ttls FOLDER/a.pem FOLDER/k.pem\n"));
}
