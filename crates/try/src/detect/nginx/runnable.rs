//! The user's configuration, made so that any user can run it beside others on a port of its own.
//!
//! What decides about answers and their cost stays as it is; users, ports, paths of logs and TLS do not. The tuned
//! one differs in one thing more: its connections to the application are kept.

use onehop_adapt::Position;
use onehop_adapt::nginx::{Directive, Server, is_redirect_to_tls, nearest_all, parse, passed, write};

use crate::SideBySideError;
use crate::detect::rivals::{NGINX_HEAD, NGINX_SCRATCH};

/// Directives that name a user, a place to write to, or what only a listener with TLS has.
const LEFT_OUT: [&str; 24] = [
    "user",
    "daemon",
    "pid",
    "error_log",
    "lock_file",
    "master_process",
    "worker_priority",
    "worker_cpu_affinity",
    "working_directory",
    "debug_points",
    "env",
    "mail",
    "stream",
    "http2",
    "http3",
    "listen",
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
    "limit_req",
    "limit_conn",
    "limit_rate",
];
/// Connections that are kept to each server of an `upstream`.
const KEPT: &str = "64";
/// Where an upgrade of a WebSocket and a kept connection need different values.
const MAP: &str = "map $http_upgrade $onehop_connection { default upgrade; '' ''; }";

/// The whole configuration as text.
pub(super) fn text(chosen: &Server<'_>, tuned: bool) -> Result<String, SideBySideError> {
    let mut writer = Writer { chosen, tuned, upstreams: Vec::new(), is_upgraded: false };
    let place = &chosen.directive.place;
    let mut server = writer.directives(chosen.directive.inner(), &[chosen.http, chosen.directive.inner()]);
    server.insert(0, Directive::new("listen", &["127.0.0.1:{port}", "backlog=4096"], place));
    // Braces of `{scratch}` are none of nginx's, so these lines are not read but cut.
    let lines = NGINX_SCRATCH.lines().filter_map(|line| line.trim_end_matches(';').split_once(' '));
    let mut http: Vec<Directive> = lines.map(|(name, path)| Directive::new(name, &[path], place)).collect();
    for directive in chosen.http.iter().filter(|directive| directive.name != "server") {
        http.extend(writer.directive(directive, &[chosen.http]));
    }
    if !http.iter().any(|directive| directive.name == "access_log") {
        // nginx writes one where nothing is said, to a place that few may write to.
        http.push(Directive::new("access_log", &["{scratch}/access.log"], place));
    }
    if writer.is_upgraded {
        http.extend(parse(&place.file, MAP)?);
    }
    http.append(&mut writer.upstreams);
    http.push(Directive { block: Some(server), ..Directive::new("server", &[], place) });
    let mut main = Vec::new();
    let mut has_events = false;
    for directive in chosen.main {
        has_events |= directive.name == "events";
        if directive.name != "http" && !is_left_out(&directive.name) {
            main.extend(module(directive));
        }
    }
    if !has_events {
        main.push(Directive { block: Some(Vec::new()), ..Directive::new("events", &[], place) });
    }
    main.push(Directive { block: Some(http), ..Directive::new("http", &[], place) });
    let mut out = NGINX_HEAD.to_owned();
    write(&main, 0, &mut out);
    Ok(out)
}

struct Writer<'a> {
    chosen: &'a Server<'a>,
    tuned: bool,
    upstreams: Vec<Directive>,
    is_upgraded: bool,
}

impl Writer<'_> {
    fn directives(&mut self, directives: &[Directive], levels: &[&[Directive]]) -> Vec<Directive> {
        let mut out: Vec<Directive> =
            directives.iter().flat_map(|directive| self.directive(directive, levels)).collect();
        if self.tuned && out.iter().any(|directive| directive.name == "proxy_pass") {
            self.keep_connections(&mut out, levels);
        }
        out
    }

    fn directive(&mut self, directive: &Directive, levels: &[&[Directive]]) -> Option<Directive> {
        let name = directive.name.as_str();
        if is_left_out(name) || is_redirect_to_tls(directive) {
            return None;
        }
        let mut directive = directive.clone();
        match name {
            "access_log" if directive.arg(0) != "off" => {
                if let Some(path) = directive.args.first_mut() {
                    "{scratch}/access.log".clone_into(&mut path.raw);
                }
            }
            "proxy_cache_path" | "fastcgi_cache_path" => {
                if let Some(path) = directive.args.first_mut() {
                    "{scratch}/cache".clone_into(&mut path.raw);
                }
            }
            "root" | "alias" => {
                let mut path = self.chosen.folder_of(&directive);
                if directive.arg(0).ends_with('/') && !path.ends_with('/') {
                    // An alias takes the place of its prefix, slash for slash.
                    path.push('/');
                }
                if let Some(word) = directive.args.first_mut() {
                    word.raw = format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
                }
            }
            "upstream" if self.tuned => {
                let is_kept = directive.inner().iter().any(|inner| inner.name == "keepalive");
                if let (false, Some(block)) = (is_kept, &mut directive.block) {
                    block.push(Directive::new("keepalive", &[KEPT], &directive.place));
                }
            }
            _ => {}
        }
        if matches!(name, "location" | "if" | "limit_except") {
            let inner = directive.block.take().unwrap_or_default();
            let mut deeper = levels.to_vec();
            deeper.push(&inner);
            directive.block = Some(self.directives(&inner, &deeper));
        }
        Some(directive)
    }

    /// HTTP/1.1 to an `upstream` whose connections are kept, with the same fields as before.
    fn keep_connections(&mut self, out: &mut Vec<Directive>, levels: &[&[Directive]]) {
        let Some(pass) = out.iter_mut().find(|directive| directive.name == "proxy_pass") else { return };
        let place = pass.place.clone();
        let Some(to) = passed(pass.arg(0)) else { return };
        let mut host = "$proxy_host".to_owned();
        if self.chosen.upstream(&to.host).is_none() {
            let port = to.port.unwrap_or(80);
            let name = format!("onehop_{}", port);
            host = to.port.map_or_else(|| to.host.clone(), |port| format!("{}:{port}", to.host));
            if let Some(word) = pass.args.first_mut() {
                word.raw = format!("http://{name}{}", to.uri.as_deref().unwrap_or_default());
            }
            if !self.upstreams.iter().any(|upstream| upstream.arg(0) == name) {
                let server = Directive::new("server", &[&format!("{}:{port}", to.host)], &place);
                let block = Some(vec![server, Directive::new("keepalive", &[KEPT], &place)]);
                self.upstreams.push(Directive { block, ..Directive::new("upstream", &[&name], &place) });
            }
        }
        // A level with fields of its own takes none from above, so all of them stand here then.
        let fields = nearest_all("proxy_set_header", levels);
        let mut set: Vec<Directive> = fields.into_iter().cloned().collect();
        out.retain(|directive| !matches!(directive.name.as_str(), "proxy_set_header" | "proxy_http_version"));
        let is = |directive: &Directive, name: &str| directive.arg(0).eq_ignore_ascii_case(name);
        if !set.iter().any(|directive| is(directive, "Host")) {
            set.push(Directive::new("proxy_set_header", &["Host", &host], &place));
        }
        let upgrades = set.iter().any(|directive| is(directive, "Upgrade"));
        set.retain(|directive| !is(directive, "Connection"));
        self.is_upgraded |= upgrades;
        let connection = if upgrades { "$onehop_connection" } else { "\"\"" };
        set.push(Directive::new("proxy_set_header", &["Connection", connection], &place));
        out.push(Directive::new("proxy_http_version", &["1.1"], &place));
        out.append(&mut set);
    }
}

fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
        || name.starts_with("ssl_")
        || name.starts_with("quic_")
        || name == "ssl"
        || name.starts_with("limit_req_")
        || name.starts_with("limit_conn_")
        || name.starts_with("limit_rate_")
}

/// A module by its whole path, since a relative one starts where nginx was installed to.
fn module(directive: &Directive) -> Option<Directive> {
    let mut directive = directive.clone();
    if directive.name != "load_module" || directive.arg(0).starts_with('/') {
        return Some(directive);
    }
    let written = directive.arg(0).to_owned();
    let found = ["/usr/share/nginx", "/etc/nginx", "/usr/lib/nginx", "/usr/local/nginx"]
        .iter()
        .map(|folder| format!("{folder}/{written}"))
        .find(|path| std::path::Path::new(path).is_file())?;
    let place: Position = directive.place.clone();
    directive.args = Directive::new("", &[&found], &place).args;
    Some(directive)
}
