//! Limits, passwords and addresses: what is carried over, and what is said of the rest.

use super::adapted;

/// Each of the words must stand in what comes out, or with a `!` before it must not.
pub(super) fn check(conf: &str, words: &[&str]) {
    let out = adapted(conf).onehopfile;
    for word in words {
        let (is_there, word) = word.strip_prefix('!').map_or((true, *word), |word| (false, word));
        assert_eq!(out.contains(word), is_there, "{conf}\n{word}\n{out}");
    }
}

#[test]
fn users_with_bcrypt_hashes_are_carried_over_and_no_other_line_is_shown() {
    let site = |more: &str| format!("server {{\nroot /a;\n{more}\n}}");
    check(
        &site("auth_basic \"Staff only\"; auth_basic_user_file htpasswd;"),
        &[
            "\tbasic_auth bcrypt `Staff only` {\n\t\tann $2y$04$HTUQuIBdzEfTanCVC8Sr8.m2n0w1mghKyO6K2XMMKdMJ6tsIfG/2q\n\t}\n",
            "# NOT CARRIED OVER: htpasswd:3: user `old` has an apr1 hash, and onehop verifies bcrypt hashes; `onehop hash-password`",
            "!OA1MwEqN",
            "file_server",
            "!403",
        ],
    );
    check(
        &site("auth_basic x; auth_basic_user_file old;"),
        &[
            "no user of `old` has a bcrypt hash (a password in plain text, a {SHA} hash); `onehop hash-password`",
            "respond 403",
            "!never shown",
            "!qUqP5",
            "!file_server",
        ],
    );
    for file in ["auth_basic_user_file missing;", "auth_basic_user_file $users;", ""] {
        check(&site(&format!("auth_basic x; {file}")), &["NOT CARRIED OVER", "respond 403", "!file_server"]);
    }
    check(
        &site("auth_basic $host; auth_basic_user_file htpasswd;"),
        &["\tbasic_auth {\n", "that of onehop is `restricted`"],
    );
}

#[test]
fn a_location_without_passwords_inside_a_site_with_them_stays_open() {
    check(
        "server { auth_basic x; auth_basic_user_file htpasswd; location /open/ { auth_basic off; root /a; }\n\
         location /health { return 200 ok; }\nlocation / { proxy_pass http://app:1; } }",
        &[
            "handle /open/* {\n\t\troot /a",
            "handle /health* {\n\t\trespond ok 200",
            "handle {\n\t\tbasic_auth bcrypt x {\n",
        ],
    );
}

#[test]
fn what_is_not_there_is_asked_for_the_passwords_of_both_locations() {
    let site = |files: &str, app: &str| {
        format!(
            "server {{ root /a; location / {{ {files} try_files $uri @app; }}\n\
             location @app {{ {app} proxy_pass http://app:1; }} }}"
        )
    };
    let asks = "auth_basic x; auth_basic_user_file htpasswd;";
    check(&site(asks, ""), &["\tbasic_auth bcrypt x {", "\treverse_proxy @absent app:1"]);
    check(&site("", asks), &["handle @absent {\n\t\tbasic_auth bcrypt x {"]);
    check(
        &site(asks, "auth_basic other; auth_basic_user_file htpasswd;"),
        &["respond 403", "!reverse_proxy"],
    );
}

#[test]
fn a_rate_of_nginx_admits_one_request_more_at_once_than_its_burst() {
    let site = |zone: &str, server: &str| {
        format!(
            "http {{ limit_req_zone {zone};\nserver {{ location /a/ {{ proxy_pass http://app:1; }}\n{server} }} }}"
        )
    };
    let by_address = "$binary_remote_addr zone=api:10m rate=10r/s";
    for (zone, server, words) in [
        (
            by_address,
            "limit_req zone=api burst=20 nodelay; limit_req_status 429;",
            &["rate_limit 10r/s burst 21 by ip zone api\n", "!handle_errors", "!NOT CARRIED", "!Not needed"]
                [..],
        ),
        (
            by_address,
            "limit_req zone=api;",
            &[
                "rate_limit 10r/s burst 1 by ip zone api\n",
                "handle_errors 429 {\n\t\trespond 503\n",
                "!delays",
            ],
        ),
        (
            by_address,
            "limit_req zone=api burst=5;",
            &["burst 6 by ip", "nginx delays the requests of its burst"],
        ),
        (by_address, "limit_req zone=api delay=5 burst=5;", &["burst 6 by ip", "!nginx delays"]),
        ("$remote_addr zone=api:1m rate=30r/m", "limit_req zone=api;", &["rate_limit 30r/m burst 1 by ip"]),
        (
            by_address,
            "limit_req zone=api burst=5 nodelay; location /b/ { limit_req zone=api burst=9 nodelay; root /b; }",
            &["burst 6 by ip zone api.burst5\n", "burst 10 by ip zone api.burst9\n", "counts for each apart"],
        ),
        (
            by_address,
            "limit_req zone=api; location /b/ { limit_req zone=api; limit_req_status 429; root /b; }",
            &["with 429 or 503, onehop all with 429", "!handle_errors"],
        ),
        (
            "$http_x_key zone=api:1m rate=1r/s",
            "limit_req zone=api;",
            &["NOT CARRIED OVER", "counts by `$http_x_key`", "!\trate_limit"],
        ),
        (by_address, "limit_req zone=other;", &["no `limit_req_zone` has its zone", "!\trate_limit"]),
        (by_address, "limit_req zone=api; limit_req_dry_run on;", &["refuses nothing", "!\trate_limit"]),
        (
            by_address,
            "limit_req zone=api; set_real_ip_from 10.0.0.1;",
            &["trusted_proxies static", "!\trate_limit"],
        ),
        (
            "$remote_addr zone=api:1m rate=9999r/s",
            "limit_req zone=api burst=4294967295;",
            &["as good as no bound", "!\trate_limit"],
        ),
        (
            "$remote_addr zone=api:1m rate=1r/m",
            "limit_req zone=api burst=999999999;",
            &["more than a year", "!\trate_limit"],
        ),
        ("$remote_addr zone=api:1m rate=0r/s", "limit_req zone=api;", &["NOT CARRIED OVER", "!\trate_limit"]),
    ] {
        check(&site(zone, server), words);
    }
    check(
        &site(by_address, "limit_req zone=api; location /b/ { return 200 b; }"),
        &["handle /b/* {\n\t\trespond b 200\n", "handle /a/* {\n\t\trate_limit 10r/s"],
    );
}

#[test]
fn a_named_location_counts_only_where_the_one_before_it_does_not() {
    let site = |files: &str| {
        format!(
            "http {{ limit_req_zone $binary_remote_addr zone=api:1m rate=1r/s; limit_req_zone $binary_remote_addr zone=b:1m rate=2r/s;\n\
             server {{ root /a; location / {{ {files} try_files $uri @app; }}\n\
             location @app {{ limit_req zone=api; proxy_pass http://app:1; }} }} }}"
        )
    };
    check(&site(""), &["handle @absent {\n\t\trate_limit 1r/s burst 1 by ip zone api\n"]);
    check(&site("limit_req zone=b;"), &["\trate_limit 2r/s burst 1 by ip zone b\n", "!zone api"]);
}

#[test]
fn requests_at_a_time_are_bounded_only_where_onehop_counts_the_same() {
    let site = |key: &str, server: &str| {
        format!(
            "http {{ limit_conn_zone {key} zone=all:1m;\nserver {{ server_name a.example; {server}\nlocation /b/ {{ root /b; }} }} }}"
        )
    };
    let passed =
        |more: &str| format!("location /a/ {{ limit_conn all 10; {more} proxy_pass http://app:1; }}");
    check(&site("$server_name", &passed("")), &["\tlimit in_flight 10\n", "!NOT CARRIED"]);
    check(&site("$server_name", &passed("limit_conn_status 429;")), &["\tlimit in_flight 10 shed 429\n"]);
    check(
        &site("$server_name", &passed("proxy_set_header Upgrade $http_upgrade;")),
        &["WebSockets", "!\tlimit "],
    );
    check(&site("$server_name", "limit_conn all 10;"), &["NOT CARRIED OVER", "!\tlimit "]);
    check(
        &site("$server_name", &passed("")).replace("server_name a.example;", ""),
        &["nginx counts no request", "!\tlimit "],
    );
    check(
        &site("$binary_remote_addr", &passed("")),
        &["NOT CARRIED OVER", "`connections_per_address`", "!\tlimit "],
    );
}
