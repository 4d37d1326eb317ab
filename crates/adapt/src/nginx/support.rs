//! Which directives are translated, left out, noted or refused.

use super::directive::Directive;
use super::location::takes_prefix_off;
use super::rewrites::is_step;
use crate::refusal::Refusal;

/// Directives that are translated.
const CARRIED: [&str; 37] = [
    "allow",
    "deny",
    "client_max_body_size",
    "listen",
    "server_name",
    "root",
    "alias",
    "index",
    "try_files",
    "location",
    "server",
    "upstream",
    "include",
    "proxy_pass",
    "proxy_set_header",
    "proxy_read_timeout",
    "proxy_hide_header",
    "gzip",
    "brotli",
    "gzip_static",
    "add_header",
    "expires",
    "return",
    "autoindex",
    "default_type",
    "access_log",
    "proxy_buffering",
    "proxy_connect_timeout",
    "proxy_send_timeout",
    "auth_basic_user_file",
    "limit_req_zone",
    "limit_req_status",
    "limit_req_dry_run",
    "limit_conn_zone",
    "limit_conn_status",
    "proxy_ssl_verify",
    "proxy_ssl_trusted_certificate",
];
/// Directives that do not change what is answered, or that onehop does by itself.
const NEUTRAL: [&str; 79] = [
    "user",
    "pid",
    "events",
    "daemon",
    "master_process",
    "load_module",
    "timer_resolution",
    "thread_pool",
    "pcre_jit",
    "working_directory",
    "proxy_http_version",
    "types",
    "map",
    "log_format",
    "error_log",
    "log_not_found",
    "log_subrequest",
    "sendfile",
    "sendfile_max_chunk",
    "tcp_nopush",
    "tcp_nodelay",
    "keepalive_timeout",
    "keepalive_requests",
    "keepalive_time",
    "keepalive_disable",
    "server_tokens",
    "types_hash_max_size",
    "types_hash_bucket_size",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "variables_hash_max_size",
    "variables_hash_bucket_size",
    "map_hash_bucket_size",
    "map_hash_max_size",
    "open_file_cache",
    "open_file_cache_valid",
    "open_file_cache_min_uses",
    "open_file_cache_errors",
    "client_body_buffer_size",
    "client_body_timeout",
    "client_header_timeout",
    "client_header_buffer_size",
    "large_client_header_buffers",
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
    "send_timeout",
    "reset_timedout_connection",
    "lingering_close",
    "aio",
    "aio_write",
    "directio",
    "output_buffers",
    "postpone_output",
    "proxy_buffers",
    "proxy_buffer_size",
    "proxy_busy_buffers_size",
    "proxy_request_buffering",
    "proxy_redirect",
    "proxy_headers_hash_max_size",
    "proxy_headers_hash_bucket_size",
    "proxy_max_temp_file_size",
    "proxy_socket_keepalive",
    "proxy_cache_bypass",
    "proxy_no_cache",
    "resolver",
    "resolver_timeout",
    "server_name_in_redirect",
    "port_in_redirect",
    "absolute_redirect",
    "etag",
    "http2",
    "http3",
    "chunked_transfer_encoding",
    "merge_slashes",
    "request_pool_size",
    "connection_pool_size",
];
/// Directives that decide about answers and have no equal, with the reason and the next step.
const REFUSED: [(&str, &str); 22] = [
    ("fastcgi_pass", "FastCGI (PHP)"),
    ("uwsgi_pass", "the uwsgi protocol"),
    ("scgi_pass", "SCGI"),
    ("grpc_pass", "gRPC to an upstream"),
    ("memcached_pass", "memcached"),
    ("auth_basic", "files of passwords; `basic_auth` takes users with bcrypt hashes"),
    ("auth_request", "questions to another server before each answer"),
    ("auth_jwt", "tokens"),
    ("rewrite", "rewriting by expressions"),
    ("if", "conditions"),
    ("sub_filter", "replacing text in answers"),
    ("mirror", "copies of requests"),
    ("limit_except", "rules by method"),
    ("secure_link", "signed links"),
    ("ssi", "server-side includes"),
    ("split_clients", "choices by share"),
    ("js_content", "scripts in nginx"),
    ("content_by_lua_block", "scripts in nginx"),
    ("content_by_lua_file", "scripts in nginx"),
    ("dav_methods", "WebDAV"),
    ("internal", "locations for nginx alone"),
    ("stub_status", "a page of its connections; its metrics are at `admin` of the global block"),
];
/// Families of directives that only matter to what is refused or left out in any case.
const NEUTRAL_FAMILIES: [&str; 14] = [
    "worker_",
    "ssl_",
    "ssl",
    "quic_",
    "gzip_",
    "proxy_ssl_",
    "brotli_",
    "limit_req_",
    "limit_conn_",
    "fastcgi_",
    "uwsgi_",
    "scgi_",
    "proxy_next_upstream",
    "real_ip_",
];

/// Whether a directive does not change what is answered, or onehop does it by itself.
pub fn is_unneeded(name: &str) -> bool {
    let is_of_family = NEUTRAL_FAMILIES.iter().any(|family| name.starts_with(family));
    NEUTRAL.contains(&name) || is_of_family && !CARRIED.contains(&name)
}

/// The directives of one block, sorted into those that are translated, noted and refused.
pub(crate) fn check_level(
    directives: &[Directive],
    level: &str,
    is_measured: bool,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    for directive in directives {
        let name = directive.name.as_str();
        if !is_measured && level != "http" && is_step(directive) {
            continue;
        }
        if is_measured && is_redirect_to_tls(directive) {
            notes.push(format!(
                "The redirect to TLS on {} is left out on both sides.",
                directive.place.words()
            ));
            continue;
        }
        if let Some((_, what)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            let is_off =
                directive.arg(0) == "off" || !is_measured && ["auth_basic", "internal"].contains(&name);
            // Tables at the level of http, and the idiom that takes a prefix off.
            let is_idiom = name == "rewrite" && level == "location" && takes_prefix_off(directives).is_some();
            if is_off || is_idiom || (level == "http" && name == "split_clients") {
                continue;
            }
            return Err(Refusal::at(
                &directive.place,
                format!("`{}`: onehop does not have {what}", directive.shown()),
                "take it out of a copy of the file, and try that: onehop try COPY.conf",
            ));
        }
        let note = match name {
            "limit_req" | "limit_conn" | "error_page" if !is_measured => continue,
            "charset" if directive.arg(0).eq_ignore_ascii_case("utf-8") => continue,
            "limit_rate" if !is_measured => "onehop does not bound the pace of a response",
            "limit_req" | "limit_conn" | "limit_rate" => {
                "it is left out, also where a load is measured; `rate_limit 10r/s burst 20 by ip` bounds a rate here"
            }
            "proxy_cache" | "proxy_cache_path" | "proxy_cache_valid" => {
                "nginx answers from its cache where onehop asks the application"
            }
            "set_real_ip_from" => "write `servers { trusted_proxies static … }` into the global options",
            "proxy_intercept_errors" if !is_measured => {
                "onehop passes the errors of applications on as they are"
            }
            "error_page" | "proxy_intercept_errors" => "pages of errors are not carried over",
            "satisfy" => {
                return Err(Refusal::at(
                    &directive.place,
                    format!("`{}`: onehop lets in who fits all rules", directive.shown()),
                    "take it out of a copy of the file, and try that: onehop try COPY.conf",
                ));
            }
            _ if CARRIED.contains(&name) || is_unneeded(name) => continue,
            _ if level == "http" && directive.block.is_some() => continue,
            _ => "it is not carried over",
        };
        notes.push(format!("`{}` ({}): {note}.", directive.shown(), directive.place.words()));
    }
    Ok(())
}

/// `if ($host = example.com) { return 301 https://… }` and the same with `$scheme`, as certificate tools write it.
pub fn is_redirect_to_tls(directive: &Directive) -> bool {
    let leads = |inner: &[Directive]| matches!(inner, [only] if only.name == "return" && (only.arg(1).starts_with("https://") || only.arg(0).starts_with("https://")));
    directive.name == "if" && leads(directive.inner())
}
