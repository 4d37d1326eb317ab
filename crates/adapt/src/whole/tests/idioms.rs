//! Redirects, conditions, expressions and pages of errors, as nginx's own documentation has them.

use super::checks::check;

fn site(conf: &str, words: &[&str]) {
    check(&format!("server {{\nroot /a;\n{conf}\n}}"), words);
}

#[test]
fn a_rewrite_that_redirects_is_carried_over_and_no_other() {
    for (rewrite, words) in [
        ("^/old/(.*)$ /new/$1 permanent", &["handle_path /old/* {\n\t\t\tredir * /new{uri} 301\n"][..]),
        ("^(.*)$ https://b.example$1 permanent", &["handle {\n\t\t\tredir https://b.example{uri} 301\n"]),
        ("^ https://b.example$request_uri? permanent", &["redir https://b.example{orig_uri} 301\n"]),
        ("^/a/?$ /b redirect", &["@first0 path /a /a/\n", "redir * /b{?query} 302\n"]),
        ("^/a$ /b? redirect", &["redir * /b 302\n"]),
        ("^/a/(.*)$ https://b.example/$1", &["redir https://b.example{uri} 302\n"]),
        // What nginx looks up once more, and what has no equal target.
        ("^/a$ /b last", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("^/a/(.*)$ /b/$1? redirect", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        (r"^/a/(\d+)$ /b/$1 redirect", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("^/a$ /b?c=d redirect", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("^/a/(.*)$ $1 redirect", &["NOT CARRIED OVER", "\trespond 403\n}"]),
    ] {
        site(&format!("rewrite {rewrite};"), words);
    }
}

#[test]
fn a_condition_with_a_return_is_a_matcher_before_everything_else() {
    for (condition, words) in [
        (
            "$host = www.a.example",
            &["@first0 host www.a.example\n\t\thandle @first0 {\n\t\t\trespond 403\n"][..],
        ),
        ("$request_method != GET", &["@first0 not method GET\n"]),
        ("$request_method !~ ^(GET|HEAD)$", &["@first0 not method GET HEAD\n"]),
        ("$scheme = http", &["@first0 protocol http\n"]),
        ("$http_user_agent ~* (bot|crawl)", &["@first0 header_regexp user-agent `(?i)(bot|crawl)`\n"]),
        (r"$uri ~ \.bak$", &["@first0 path_regexp `\\.bak$`\n"]),
        // nginx compares a field that is not there too.
        ("$http_referer ~ ^$", &["NOT CARRIED OVER", "\trespond 403\n}", "!route"]),
        ("$http_x_key", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("-f $request_filename", &["NOT CARRIED OVER", "\trespond 403\n}"]),
    ] {
        site(&format!("if ({condition}) {{ return 403; }}"), words);
    }
    site("if ($host = a.example) { set $x 1; }", &["NOT CARRIED OVER", "\trespond 403\n}"]);
    // Behind the site's own `return` nothing is looked at.
    site("return 410; if ($host = a.example) { return 403; }", &["\trespond 410\n}", "!403"]);
    let conf = "location /a/ { proxy_pass http://app:1/; if ($uri ~ b) { return 403; } }";
    site(conf, &["takes the location's path off before it", "handle /a/* {\n\t\trespond 403\n"]);
    let named = "location / { try_files $uri @app; } location @app { if ($host = a) { return 403; } proxy_pass http://app:1; }";
    site(named, &["it changes what is asked for", "respond 403", "!reverse_proxy"]);
}

#[test]
fn an_expression_of_no_path_pattern_is_kept_unless_onehop_reads_it_otherwise() {
    for (location, words) in [
        (r"~* \.(jpe?g|png)$", &[r"@paths0 path_regexp `(?i)\.(jpe?g|png)$`"][..]),
        ("~ ^/v[0-9]+/", &["@paths0 path_regexp `^/v[0-9]+/`"]),
        (r#"~ "^/\d{2,3}$""#, &[r"@paths0 path_regexp `^/\d{2,3}$`"]),
        (r"~ a(?!b)", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        (r"~ (a)\1", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("~ a++", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        (r"~ \pL", &["NOT CARRIED OVER", "\trespond 403\n}"]),
        ("~ [a", &["NOT CARRIED OVER", "\trespond 403\n}"]),
    ] {
        site(&format!("location {location} {{ return 410; }}"), words);
    }
    site(
        "location ^~ /s/ { return 200 s; } location ~ a.*b { return 410; }",
        &["path_regexp `a.*b`\n\t\t\tnot path /s/*\n"],
    );
}

#[test]
fn pages_of_errors_are_files_of_the_location_that_has_them() {
    site(
        "error_page 404 /404.html; error_page 500 502 /50x.html; location = /50x.html { internal; root /b; }",
        &[
            "handle_errors 404 {\n\t\troot /a\n\t\trewrite * /404.html\n\t\tfile_server\n",
            "handle_errors 500 502 {\n\t\troot /b\n\t\trewrite * /50x.html\n",
            "handle /50x.html {\n\t\terror 404\n",
            "!NOT CARRIED OVER",
        ],
    );
    for page in ["404 = @app", "404 =200 /x.gif", "404 https://b.example/", "301 /x.html", "404 /x/$uri"] {
        site(&format!("error_page {page};"), &["NOT CARRIED OVER", "!handle_errors", "file_server"]);
    }
    let conf = "error_page 404 /e; location /e { proxy_pass http://app:1; }";
    site(conf, &["sends something else than a file", "!handle_errors"]);
    site("location /x/ { error_page 404 /e; root /b; }", &["hold for a whole site", "!handle_errors"]);
    site("location /x/ { internal; root /b; }", &["`internal`: onehop does not have", "respond 403"]);
}

#[test]
fn a_page_of_nginx_itself_is_refused_and_not_looked_up_below_the_root() {
    site(
        "location /status { stub_status; allow 127.0.0.1; deny all; }",
        &["NOT CARRIED OVER", "`admin` of the global block", "handle /status* {\n\t\trespond 403\n"],
    );
}

#[test]
fn the_redirects_of_certbot_are_left_to_onehop() {
    check(
        "server { listen 443 ssl; server_name a.example; root /a; }\n\
         server { if ($host = a.example) { return 301 https://$host$request_uri; } listen 80; server_name a.example; return 404; }",
        &["this server leads to HTTPS", "\na.example {\n", "!http://"],
    );
}

#[test]
fn an_application_without_a_root_gets_every_request_of_try_files() {
    check(
        "server { deny 192.0.2.1; location / { try_files $uri @app; } location @app { proxy_pass http://app:1; } }",
        &["@denied remote_ip 192.0.2.1", "\treverse_proxy app:1 {", "!respond 404"],
    );
}

#[test]
fn rules_by_address_hold_for_the_client_that_a_proxy_reports() {
    site("set_real_ip_from 10.0.0.1; allow 192.0.2.0/24; deny all;", &["@denied not client_ip 192.0.2.0/24"]);
}

#[test]
fn an_application_at_a_unix_socket_is_reached_there() {
    site(
        "location / { proxy_pass http://unix:/run/a.sock; }",
        &["reverse_proxy unix//run/a.sock {\n\t\theader_up Host localhost\n"],
    );
    site(
        "location /a/ { proxy_pass http://unix:/run/a.sock:/; }",
        &["handle_path /a/* {", "unix//run/a.sock {"],
    );
    check(
        "upstream app { server unix:/run/a.sock fail_timeout=0; }\n\
         server { location / { try_files $uri @app; } location @app { proxy_set_header Host $http_host; proxy_pass http://app; } }",
        &["reverse_proxy unix//run/a.sock\n", "!NOT CARRIED"],
    );
}

#[test]
fn an_application_over_tls_is_verified_where_nginx_verifies_it() {
    let passed = |more: &str| format!("location / {{ proxy_pass https://app.example; {more} }}");
    site(
        &passed(""),
        &[
            "reverse_proxy https://app.example:443 {\n\t\theader_up Host app.example\n",
            "\ttls_insecure_skip_verify\n",
            "nginx does not verify the certificate",
            r"^https://app\.example/",
        ],
    );
    site(
        &passed("proxy_ssl_verify on; proxy_ssl_server_name on;"),
        &["!tls_insecure", "reverse_proxy https://"],
    );
    site(&passed("proxy_set_header Host $http_host;"), &["header_up Host {hostport}\n"]);
    site(&passed("proxy_ssl_certificate a.pem;"), &["NOT CARRIED OVER", "respond 403", "!reverse_proxy"]);
    check(
        "upstream app { server unix:/run/a.sock; }\nserver { location / { proxy_pass https://app; } }",
        &["does not speak TLS at a Unix socket", "respond 403", "!reverse_proxy"],
    );
}

#[test]
fn a_location_without_an_access_log_is_not_logged() {
    let http = |server: &str| format!("http {{ server {{ root /a; {server} }} }}");
    check(&http("location /s/ { access_log off; }"), &["handle /s/* {\n\t\tlog_skip\n", "\tlog\n"]);
    check(&http("access_log off; location /s/ { access_log off; }"), &["!log_skip", "!\tlog\n"]);
}

#[test]
fn a_prefix_without_a_slash_is_replaced_alone_and_before_a_path() {
    site(
        "location /a { deny 192.0.2.1; proxy_pass http://app:1/x; }",
        &[
            "handle /a {\n\t\t\t@denied remote_ip 192.0.2.1\n\t\t\trespond @denied 403\n\t\t\trewrite * /x{?query}\n",
            "handle_path /a* {\n\t\t\t@denied remote_ip 192.0.2.1\n\t\t\trespond @denied 403\n\t\t\trewrite * /x{uri}\n",
            "nginx sends /ab as /xb, onehop as /x/b.",
        ],
    );
}
