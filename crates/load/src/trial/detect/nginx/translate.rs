//! A server of nginx as a site of an Onehopfile: its locations in the order in which nginx chooses among them.
//!
//! What changes answers and has no equal is an error with its line, or a note where the rest still holds.

use super::location::{Block, Kind, Location, is_denied};
use super::tree::Directive;
use super::{Chosen, nearest, runnable, values};
use crate::trial::TrialError;
use crate::trial::detect::behind::Behind;
use crate::trial::detect::site::assets;
use crate::trial::detect::surroundings::Surroundings;
use crate::trial::detect::write::indented;

/// Paths that are asked for.
const PATHS_MAX: usize = 12;

/// What a server became.
#[derive(Debug, Default)]
pub(super) struct Translated {
    /// The lines of a site.
    pub(super) body: String,
    /// Paths worth asking.
    pub(super) paths: Vec<String>,
}

/// What is at hand while locations are read.
pub(super) struct Context<'a> {
    pub(super) chosen: &'a Chosen<'a>,
    pub(super) behind: &'a Behind,
    pub(super) surroundings: &'a Surroundings,
    /// `location @name`.
    pub(super) named: Vec<&'a Directive>,
    /// All others.
    pub(super) locations: Vec<Location<'a>>,
}

/// The server's directives as those of a site.
pub(super) fn translate(
    chosen: &Chosen<'_>,
    behind: &Behind,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Translated, TrialError> {
    let inner = chosen.server.inner();
    let is_named = |directive: &&Directive| directive.name == "location" && directive.arg(0).starts_with('@');
    let named = inner.iter().filter(is_named).collect();
    check_level(chosen.http, "http", notes)?;
    check_level(inner, "server", notes)?;
    let others = inner.iter().filter(|directive| directive.name == "location" && !is_named(directive));
    let locations: Vec<Location<'_>> = others.map(Location::of).collect::<Result<_, _>>()?;
    check_order(&locations)?;
    let context = Context { chosen, behind, surroundings, named, locations: locations.clone() };
    let mut translated = Translated::default();
    translated.body.push_str(&settings(chosen, notes));
    let whole = inner.iter().find(|directive| directive.name == "return");
    if let Some(directive) = whole {
        translated.body.push_str(&super::location::returned(directive, None)?);
    } else {
        translated.body.push_str(&bodies(&context, locations.clone(), notes)?);
    }
    translated.paths = paths(&context, &locations);
    Ok(translated)
}

/// The locations' blocks, or the one block's lines alone.
fn bodies<'a>(
    context: &Context<'a>,
    mut locations: Vec<Location<'a>>,
    notes: &mut Vec<String>,
) -> Result<String, TrialError> {
    if !locations.iter().any(|location| location.kind == Kind::Prefix && location.pattern == "/")
        && !locations.iter().any(|location| location.kind == Kind::Strong && location.pattern == "/")
    {
        locations.push(Location {
            kind: Kind::Prefix,
            pattern: "/".to_owned(),
            directive: context.chosen.server,
        });
    }
    // Exact ones, then expressions as written, then the longest prefix (ngx_http_core_find_location). A `^~` is a
    // prefix like others, below which no expression is looked at.
    locations.sort_by_key(|location| {
        let length = usize::MAX - location.pattern.len();
        match location.kind {
            Kind::Exact => (0, length),
            Kind::Expression => (1, 0),
            Kind::Strong | Kind::Prefix => (2, length),
        }
    });
    let is_ordered = locations.iter().any(|location| location.kind == Kind::Expression);
    let mut outside = String::new();
    let mut blocks = Vec::new();
    for location in &locations {
        let is_server = std::ptr::eq(location.directive, context.chosen.server);
        let block = context.block(location, is_server, notes)?;
        let slashless = location.pattern.strip_suffix('/').filter(|name| !name.is_empty());
        if let (Some(name), true, Kind::Prefix | Kind::Strong) =
            (slashless, block.is_redirected, location.kind)
        {
            let is_own = |other: &Location<'_>| other.kind != Kind::Expression && other.pattern == name;
            if !locations.iter().any(is_own) {
                // nginx sends the name without its slash there when a proxy serves it.
                outside.push_str(&format!("redir {name} {name}/{{?query}} 301\n"));
            }
        }
        blocks.push(block);
    }
    if let [only] = blocks.as_slice()
        && only.is_plain()
    {
        return Ok(only.lines.clone());
    }
    let mut all = String::new();
    for (number, block) in blocks.iter().enumerate() {
        all.push_str(&block.text(number));
    }
    if is_ordered {
        all = format!("route {{\n{}}}\n", indented(&all));
    }
    Ok(outside + &all)
}

impl Context<'_> {
    fn block(
        &self,
        location: &Location<'_>,
        is_server: bool,
        notes: &mut Vec<String>,
    ) -> Result<Block, TrialError> {
        if !is_server && !is_denied(location) {
            check_level(location.directive.inner(), "location", notes)?;
        }
        super::location::block(self, location, is_server, notes)
    }

    /// The path patterns of a location, and those that are none of its: expressions end at a `^~`.
    pub(super) fn patterns(&self, location: &Location<'_>) -> Result<(Vec<String>, Vec<String>), TrialError> {
        let (patterns, mut but) = super::location::patterns(location)?;
        if location.kind == Kind::Expression {
            let strong = self.locations.iter().filter(|other| other.kind == Kind::Strong);
            but.extend(strong.map(|other| format!("{}*", other.pattern)));
        }
        Ok((patterns, but))
    }

    /// The levels of a location, the outermost first.
    pub(super) fn levels<'b>(&'b self, location: &'b Location<'b>, is_server: bool) -> Vec<&'b [Directive]> {
        let mut levels = vec![self.chosen.http, self.chosen.server.inner()];
        if !is_server {
            levels.push(location.directive.inner());
        }
        levels
    }
}

/// Refuses the one order that path patterns cannot say: expressions that end at a `^~` and begin again below it.
fn check_order(locations: &[Location<'_>]) -> Result<(), TrialError> {
    if !locations.iter().any(|location| location.kind == Kind::Expression) {
        return Ok(());
    }
    for strong in locations.iter().filter(|location| location.kind == Kind::Strong) {
        let is_below =
            |other: &&Location<'_>| other.kind == Kind::Prefix && other.pattern.starts_with(&strong.pattern);
        if let Some(below) = locations.iter().find(is_below) {
            return Err(TrialError::found(
                &below.directive.place,
                format!(
                    "`{}` lies below `{}` ({}), so expressions hold here and not around it",
                    below.directive.shown(),
                    strong.directive.shown(),
                    strong.directive.place.words()
                ),
                format!("write `location ^~ {}` too in a copy of the file, and try that", below.pattern),
            ));
        }
    }
    Ok(())
}

/// What holds for the whole site: compression, logs.
fn settings(chosen: &Chosen<'_>, notes: &mut Vec<String>) -> String {
    let levels = [chosen.http, chosen.server.inner()];
    let mut out = String::new();
    let is_on = |name: &str| nearest(name, &levels).is_some_and(|directive| directive.arg(0) == "on");
    match (is_on("gzip"), is_on("brotli")) {
        (true, true) => out.push_str("encode br gzip\n"),
        (true, false) => out.push_str("encode gzip\n"),
        (false, true) => out.push_str("encode br\n"),
        (false, false) => {}
    }
    if nearest("access_log", &levels).is_none_or(|directive| directive.arg(0) != "off") {
        out.push_str("log {\n\toutput file {scratch}/onehop-access.log\n}\n");
        notes.push(
            "nginx writes an access log, so onehop writes one too; both go to a folder that goes away."
                .to_owned(),
        );
    }
    out
}

/// Directives that do not change what is answered, or that onehop does by itself.
const NEUTRAL: [&str; 96] = [
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
    "proxy_http_version",
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
    "types",
    "map",
    "log_format",
    "access_log",
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
    "proxy_buffering",
    "proxy_buffers",
    "proxy_buffer_size",
    "proxy_busy_buffers_size",
    "proxy_request_buffering",
    "proxy_connect_timeout",
    "proxy_send_timeout",
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
    "set_real_ip_from",
];
/// Directives that decide about answers and have no equal, with the reason and the next step.
const REFUSED: [(&str, &str); 21] = [
    ("fastcgi_pass", "FastCGI (PHP)"),
    ("uwsgi_pass", "the uwsgi protocol"),
    ("scgi_pass", "SCGI"),
    ("grpc_pass", "gRPC to an upstream"),
    ("memcached_pass", "memcached"),
    ("auth_basic", "passwords"),
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
];
/// Families of directives that only matter to what is refused or left out in any case.
const NEUTRAL_FAMILIES: [&str; 12] = [
    "ssl_",
    "ssl",
    "quic_",
    "gzip_",
    "brotli_",
    "limit_req_",
    "limit_conn_",
    "fastcgi_",
    "uwsgi_",
    "scgi_",
    "proxy_next_upstream",
    "real_ip_",
];

/// What stands at a level, sorted into what is carried over, noted and refused.
pub(super) fn check_level(
    directives: &[Directive],
    level: &str,
    notes: &mut Vec<String>,
) -> Result<(), TrialError> {
    for directive in directives {
        let name = directive.name.as_str();
        if runnable::is_redirect_to_tls(directive) {
            notes.push(format!(
                "The redirect to TLS on {} is left out on both sides.",
                directive.place.words()
            ));
            continue;
        }
        if let Some((_, what)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            let is_off = directive.arg(0) == "off";
            // Tables at the level of http, and the idiom that takes a prefix off.
            let is_idiom = name == "rewrite"
                && level == "location"
                && super::location::takes_prefix_off(directives).is_some();
            if is_off || is_idiom || (level == "http" && name == "split_clients") {
                continue;
            }
            return Err(TrialError::found(
                &directive.place,
                format!("`{}`: onehop does not have {what}", directive.shown()),
                "take it out of a copy of the file, and try that: onehop try COPY.conf",
            ));
        }
        let note = match name {
            "client_max_body_size" => "onehop sets no bound on the length of a request's body",
            "limit_req" | "limit_conn" | "limit_rate" => {
                "it is left out on both sides, since a load would measure it"
            }
            "proxy_cache" | "proxy_cache_path" | "proxy_cache_valid" => {
                "nginx answers from its cache where onehop asks the application"
            }
            "error_page" | "proxy_intercept_errors" => "pages of errors are not carried over",
            "allow" | "deny" | "satisfy" => {
                return Err(TrialError::found(
                    &directive.place,
                    format!("`{}`: onehop does not decide by a client's address", directive.shown()),
                    "take it out of a copy of the file, and try that: onehop try COPY.conf",
                ));
            }
            _ if NEUTRAL.contains(&name)
                || NEUTRAL_FAMILIES.iter().any(|family| name.starts_with(family)) =>
            {
                continue;
            }
            _ if level == "http" && directive.block.is_some() => continue,
            _ => "it is not carried over",
        };
        notes.push(format!("`{}` ({}): {note}.", directive.shown(), directive.place.words()));
    }
    Ok(())
}

/// What is asked: the locations themselves, the application's routes where they are passed on, the page's assets.
fn paths(context: &Context<'_>, locations: &[Location<'_>]) -> Vec<String> {
    // What an application answers comes first: it is what a trial waits for and measures.
    let (mut passed, mut paths) = (Vec::new(), Vec::new());
    let serves_root = locations.is_empty() || locations.iter().any(|location| location.pattern == "/");
    if serves_root || context.chosen.server.inner().iter().any(|directive| directive.name == "root") {
        paths.push("/".to_owned());
    }
    for location in locations {
        let inner = location.directive.inner();
        if location.kind == Kind::Expression {
            paths.extend(refused_path(location));
            continue;
        }
        let Some(pass) = inner.iter().find(|directive| directive.name == "proxy_pass") else {
            paths.push(location.pattern.clone());
            continue;
        };
        passed.push(location.pattern.clone());
        let uri = values::passed(pass.arg(0)).and_then(|to| to.uri);
        let replaced = match (&uri, super::location::takes_prefix_off(inner)) {
            (_, Some(_)) => Some("/".to_owned()),
            (uri, None) => uri.clone(),
        };
        for path in &context.behind.paths {
            let outside = match &replaced {
                Some(replacement) => {
                    path.strip_prefix(replacement.as_str()).map(|rest| location.pattern.clone() + rest)
                }
                None => path.starts_with(&location.pattern).then(|| path.clone()),
            };
            passed.extend(outside.filter(|path| path.starts_with('/') && !path.contains("//")));
        }
    }
    let levels = [context.chosen.http, context.chosen.server.inner()];
    let root = locations
        .iter()
        .filter(|location| location.pattern == "/")
        .find_map(|location| nearest("root", &[location.directive.inner()]))
        .or_else(|| nearest("root", &levels));
    if let Some(root) = root {
        let folder = context.chosen.folder_of(root);
        let folder = std::path::Path::new(&folder);
        let page = crate::trial::detect::files::read_bounded(
            &folder.join("index.html"),
            crate::trial::detect::files::TEXT_BYTES_MAX,
        );
        paths.extend(assets(&page.unwrap_or_default(), folder));
    }
    passed.append(&mut paths);
    let mut paths = passed;
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths.truncate(PATHS_MAX);
    paths
}

/// A path that an expression refuses: whether both sides refuse it is asked.
fn refused_path(location: &Location<'_>) -> Option<String> {
    if !is_denied(location) {
        return None;
    }
    let (patterns, _) = super::location::patterns(location).ok()?;
    let name = patterns.first()?.replace('*', "");
    let name = if name.ends_with('.') { name + "onehop-try" } else { name };
    Some(if name.starts_with('/') { name } else { format!("/onehop-try{name}") })
}
