//! nginx and Caddy as those who know them would set them up for the same work.
//!
//! A rival without kept connections to the application, or that opens each file anew, would be measured for a
//! mistake that is not its own.

use std::path::Path;

use super::environment::Environment;
use crate::Front;

/// The head of every configuration of nginx here, with what any user may write to.
pub(super) const NGINX_HEAD: &str = "\
daemon off;
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
";

/// Where nginx keeps what does not fit into memory, for a user who may not write to its own folders.
pub(super) const NGINX_SCRATCH: &str = "\
client_body_temp_path {scratch}/body;
proxy_temp_path {scratch}/proxy;
fastcgi_temp_path {scratch}/fastcgi;
uwsgi_temp_path {scratch}/uwsgi;
scgi_temp_path {scratch}/scgi;
";

/// What nothing but a proxy in front of an application at `{app_port}` is, where one is installed.
pub(super) fn proxy(environment: &Environment) -> Option<Front> {
    if environment.nginx.is_some() {
        let server = "\
upstream application {
	server 127.0.0.1:{app_port};
	keepalive 64;
	keepalive_requests 1000000000;
}
server {
	listen 127.0.0.1:{port} backlog=4096;
	location / {
		proxy_pass http://application;
		proxy_http_version 1.1;
		proxy_set_header Connection \"\";
		proxy_set_header Host $host;
		proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		proxy_set_header X-Forwarded-Proto $scheme;
		proxy_request_buffering off;
	}
}
";
        return Some(Front::Nginx { conf: nginx("tcp_nodelay on;\nclient_max_body_size 0;\n", server) });
    }
    environment.caddy.as_ref()?;
    Some(Front::Caddy { file: caddy("reverse_proxy 127.0.0.1:{app_port}\n") })
}

/// What nginx keeps open for files, and the fields that onehop sends with them: where nothing says how files are
/// served today, both sides send the same bytes. JavaScript is text/javascript (RFC 9239, section 6).
const NGINX_FILES: &str = "\
include /etc/nginx/mime.types;
default_type application/octet-stream;
charset utf-8;
charset_types text/css text/plain text/xml text/javascript application/json;
sendfile on;
tcp_nopush on;
tcp_nodelay on;
open_file_cache max=10000 inactive=300s;
open_file_cache_valid 60s;
open_file_cache_min_uses 1;
open_file_cache_errors on;
";
/// How long clients keep what a build leaves: names with a hash for good.
const NGINX_KEPT: &str = "\
map $uri $kept {
	default no-cache;
	\"~-[A-Za-z0-9_-]{8}\\.[a-z0-9]+$\" \"public, max-age=31536000, immutable\";
}
";
/// The page itself has a location, without the redirect inside of nginx that `$uri/` would be.
const NGINX_APPLICATION: &str = "\
location / {
	try_files $uri /index.html;
	add_header Cache-Control $kept;
}
location = / {
	try_files /index.html =404;
	add_header Cache-Control $kept;
}
location ~* \\.m?js$ {
	types { }
	default_type text/javascript;
	add_header Cache-Control $kept;
}
";
const NGINX_PAGES: &str = "\
location ~* \\.m?js$ {
	types { }
	default_type text/javascript;
}
";
/// The same for Caddy, which has onehop's types by itself.
const CADDY_APPLICATION: &str = "\
@hashed path_regexp -[A-Za-z0-9_-]{8}\\.[a-z0-9]+$
@plain not path_regexp -[A-Za-z0-9_-]{8}\\.[a-z0-9]+$
header @hashed Cache-Control \"public, max-age=31536000, immutable\"
header @plain Cache-Control no-cache
try_files {path} /index.html
";

/// What serves a folder of files, where one is installed; an application's page stands for every path that is no
/// file.
pub(super) fn files(folder: &Path, is_application: bool, environment: &Environment) -> Option<Front> {
    if environment.nginx.is_some() {
        let (settings, locations) = if is_application {
            (format!("{NGINX_FILES}{NGINX_KEPT}"), NGINX_APPLICATION)
        } else {
            (NGINX_FILES.to_owned(), NGINX_PAGES)
        };
        let inner = format!("listen 127.0.0.1:{{port}} backlog=4096;\nroot {};\n{locations}", quoted(folder));
        let server = format!("server {{\n{}}}\n", onehop_adapt::onehopfile::indented(&inner));
        return Some(Front::Nginx { conf: nginx(&settings, &server) });
    }
    environment.caddy.as_ref()?;
    let fields = if is_application { CADDY_APPLICATION } else { "" };
    let root = onehop_adapt::onehopfile::word(&folder.display().to_string());
    Some(Front::Caddy { file: caddy(&format!("root * {root}\n{fields}file_server\n")) })
}

/// A whole configuration: one worker for each core that nginx sees, connections kept, nothing logged, since onehop
/// logs nothing either.
fn nginx(settings: &str, servers: &str) -> String {
    let http = format!(
        "{NGINX_SCRATCH}access_log off;\nkeepalive_timeout 300s;\nkeepalive_requests 1000000000;\n{settings}{servers}"
    );
    format!(
        "worker_processes auto;\n{NGINX_HEAD}\nevents {{\n\tworker_connections 4096;\n\tmulti_accept on;\n}}\n\n\
         http {{\n{}}}\n",
        onehop_adapt::onehopfile::indented(&http)
    )
}

/// The global block of every Caddyfile here.
pub(super) const CADDY_HEAD: &str = "\
admin off
auto_https off
persist_config off
storage file_system {scratch}/caddy
default_bind 127.0.0.1
";

fn caddy(site: &str) -> String {
    let head = onehop_adapt::onehopfile::indented(&format!("{CADDY_HEAD}log {{\n\tlevel ERROR\n}}\n"));
    format!("{{\n{head}}}\n\nhttp://:{{port}} {{\n{}}}\n", onehop_adapt::onehopfile::indented(site))
}

/// A path as nginx reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
