//! Whole configurations, and that each result is one that onehop takes.

use onehop_config::{FileKind, FileSource};

use super::{Adapted, adapt};

mod checks;
mod idioms;

/// Users as `htpasswd -B` and, before it, `htpasswd` wrote them.
const USERS: &str = "# staff\nann:$2y$04$HTUQuIBdzEfTanCVC8Sr8.m2n0w1mghKyO6K2XMMKdMJ6tsIfG/2q\n\
    old:$apr1$OA1MwEqN$EI2y9yEntC9q5O4FmeSU1/\n";
const OLD: &str = "bob:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\ncarl:{PLAIN}never shown\n";

/// What is made of a configuration; onehop's own checker takes it.
fn adapted(conf: &str) -> Adapted {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nginx.conf");
    for (name, text) in
        [("nginx.conf", conf), ("a.pem", ""), ("k.pem", ""), ("htpasswd", USERS), ("old", OLD)]
    {
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
        (
            "satisfy any; allow 10.0.0.0/8; deny all; location / { proxy_pass http://app:1; }",
            "\trespond 403\n}",
        ),
        (
            "location / { allow 10.0.0.0/8; deny 10.1.0.0/16; deny all; proxy_pass http://app:1; }",
            "\trespond 403\n}",
        ),
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
    let conf = "server { location / { proxy_pass http://app:1; }\nlocation /p/ { sub_filter a b; root /p; }\n\
        location ~ \\.php$ { root /p; fastcgi_pass x; } }";
    let adapted = adapted(conf);
    assert_eq!(adapted.left_out, 2, "{}", adapted.onehopfile);
    for expected in [
        "# NOT CARRIED OVER: FOLDER/nginx.conf:3: `fastcgi_pass x`: onehop does not have FastCGI (PHP). This location answers 403.",
        "# NOT CARRIED OVER: FOLDER/nginx.conf:2: `sub_filter a b`: onehop does not have replacing text in answers.\n",
        "reverse_proxy app:1",
        "handle /p/* {\n\t\t\troot /p\n",
        "handle @paths0 {\n\t\t\trespond 403\n",
    ] {
        assert!(adapted.onehopfile.contains(expected), "{expected}\n{}", adapted.onehopfile);
    }
}

#[test]
fn files_that_an_application_hides_are_not_served() {
    for conf in [
        // What is not passed on would be looked up below the root.
        "root /app; location / { proxy_pass http://$app; }",
        "root /app; location / { uwsgi_pass x; }",
        "root /app; location / { try_files $uri /index.php$is_args$args; } location ~ \\.php$ { fastcgi_pass x; }",
        // Nobody would answer these but the files.
        "root /app; location ~ (?<=[^/])\\.php(/|$) { fastcgi_pass x; }",
        "root /app; location ~ /(?=\\.)[^/] { deny all; }",
        "root /app; if ($bad) { return 403; }",
        "root /app; return 444;",
        // The application's name is no host.
        "root /app; location / { proxy_pass http://down; }",
        "root /app; location / { try_files $uri @app; } location @app { proxy_pass http://sock; }",
    ] {
        let around = "upstream down { server localhost:1 down; } upstream sock { server unix:a.sock; }";
        let adapted =
            adapted(&format!("http {{ {around}\nserver {{ {conf} }}\nserver {{ listen 81; root /b; }} }}"));
        let (own, other) = adapted.onehopfile.split_once("\n:81 {").unwrap();
        assert!(own.contains("respond 403") && !own.contains("reverse_proxy"), "{conf}\n{own}");
        let serves = own.contains("file_server");
        assert!(!serves || conf.contains("@app"), "{conf}\n{own}");
        assert!(other.contains("file_server"), "{conf}\n{other}");
    }
}

#[test]
fn a_site_is_reached_where_nginx_is_and_nowhere_else() {
    for (listens, addresses, bind) in [
        ("listen unix:/run/x.sock;", ":80", "bind unix//run/x.sock\n"),
        ("listen localhost:8080;", ":8080", "bind 127.0.0.1\n"),
        ("listen 127.0.0.1:80; listen [::1]:80;", ":80", "bind 127.0.0.1 ::1\n"),
        ("listen 80; listen [::]:80;", ":80", ""),
        ("listen 127.0.0.1:8080; listen 80;", ":80", ""),
        ("listen 127.0.0.1:8080; listen 10.0.0.1:80;", ":8080", "bind 127.0.0.1\n"),
    ] {
        let adapted = adapted(&format!("server {{ {listens} root /a; }}"));
        let text = &adapted.onehopfile;
        assert!(text.contains(&format!("\n{addresses} {{\n")) && text.contains(bind), "{listens}\n{text}");
        assert_eq!(text.contains("bind "), !bind.is_empty(), "{listens}\n{text}");
        let is_split = listens.contains("127.0.0.1:8080;");
        assert_eq!(text.contains("not listened to"), is_split, "{listens}\n{text}");
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
