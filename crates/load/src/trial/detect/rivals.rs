//! nginx and Caddy as those who know them would set them up for the same work.
//!
//! A rival without kept connections to the application, or that opens each file anew, would be measured for a
//! mistake that is not its own.

use std::path::Path;

use super::surroundings::Surroundings;
use crate::trial::Front;

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
pub(super) fn proxy(surroundings: &Surroundings) -> Option<Front> {
    if surroundings.nginx.is_some() {
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
    surroundings.caddy.as_ref()?;
    Some(Front::Caddy { file: caddy("reverse_proxy 127.0.0.1:{app_port}\n") })
}

/// What serves a folder of files, where one is installed. `fallback` is the page of every path that is no file.
pub(super) fn files(folder: &Path, has_fallback: bool, surroundings: &Surroundings) -> Option<Front> {
    if surroundings.nginx.is_some() {
        let settings = "\
include /etc/nginx/mime.types;
default_type application/octet-stream;
sendfile on;
tcp_nopush on;
tcp_nodelay on;
open_file_cache max=10000 inactive=300s;
open_file_cache_valid 60s;
open_file_cache_min_uses 1;
open_file_cache_errors on;
";
        // The page itself, without the redirect inside of nginx that `$uri/` would be.
        let locations = if has_fallback {
            "\tlocation / {\n\t\ttry_files $uri /index.html;\n\t}\n\tlocation = / {\n\t\ttry_files /index.html =404;\n\t}\n"
        } else {
            ""
        };
        let server = format!(
            "server {{\n\tlisten 127.0.0.1:{{port}} backlog=4096;\n\troot {};\n{locations}}}\n",
            quoted(folder)
        );
        return Some(Front::Nginx { conf: nginx(settings, &server) });
    }
    surroundings.caddy.as_ref()?;
    let fallback = if has_fallback { "try_files {path} /index.html\n" } else { "" };
    let root = super::write::word(&folder.display().to_string());
    Some(Front::Caddy { file: caddy(&format!("root * {root}\n{fallback}file_server\n")) })
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
        super::write::indented(&http)
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
    let head = super::write::indented(&format!("{CADDY_HEAD}log {{\n\tlevel ERROR\n}}\n"));
    format!("{{\n{head}}}\n\nhttp://:{{port}} {{\n{}}}\n", super::write::indented(site))
}

/// A path as nginx reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
