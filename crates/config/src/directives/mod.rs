//! The directives: one file a family, its settings beside it.
//!
//! This file knows their names and how to read a block of them. A directive makes routes with what
//! their place in the order depends on; it must not care about where it stands.

mod app;
mod basic_auth;
mod bind;
mod cookie;
mod early_hints;
mod encode;
mod error;
mod file_server;
mod handle;
mod handle_errors;
mod header;
mod limit;
mod log;
mod proxy;
mod rate_limit;
mod redir;
mod request_body;
mod request_header;
mod respond;
mod rewrite;
mod root;
mod spa;
mod tls;
mod tracing;
mod trust;
mod try_files;
mod uri;

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::matcher::{Chosen, Scope, is_definition};
use crate::check::route_order::{Placed, arrange};
use crate::checked::{AccessLog, ErrorRoutes, Route, Step};
use crate::nearest::nearest;
use crate::option_table::Outline;
use crate::problem::Problem;
use crate::syntax::{Block, Directive, Token};
use crate::vocabulary::DIRECTIVE_ORDER;

pub(crate) use app::KnownApps;
pub(crate) use app::is_variable_name;
pub use app::telling_folder;
pub(crate) use bind::{Bind, bind_to, bind_to_interface};
pub(crate) use limit::{KnownLimits, of_global_block, warn_of_lag};
pub(crate) use log::{only_errors as log_only_errors, output_and_roll as log_output};
pub(crate) use tls::{
    TlsSettings, dns as dns_of_tls, file as file_of_tls, issuer as issuer_of_tls,
    key_type as key_type_of_tls, local_issuer, on_demand as on_demand_of_tls, pki, ratio as ratio_of_tls,
};
pub(crate) use trust::of_networks;

type ReadRoutes = fn(&mut Context<'_>, &Scope<'_>, &Directive) -> Result<Vec<Placed>, Box<Problem>>;

/// What reads a directive.
enum Read {
    /// It makes routes.
    Routes(ReadRoutes),
    /// It is a setting of the whole site, which only [`site`] reads.
    Site,
    /// Only within an import, where the parser replaces it.
    Import,
}

/// The directives that work.
const DIRECTIVES: [(&str, Read); 33] = [
    ("app", Read::Routes(app::app)),
    ("basic_auth", Read::Routes(basic_auth::basic_auth)),
    ("basicauth", Read::Routes(basic_auth::basic_auth)),
    ("bind", Read::Site),
    ("early_hints", Read::Routes(early_hints::early_hints)),
    ("encode", Read::Routes(encode::encode)),
    ("error", Read::Routes(error::error)),
    ("file_server", Read::Routes(file_server::file_server)),
    ("handle", Read::Routes(handle::handle)),
    ("handle_errors", Read::Site),
    ("handle_path", Read::Routes(handle::handle_path)),
    ("header", Read::Routes(header::header)),
    ("limit", Read::Routes(limit::limit)),
    ("log", Read::Site),
    ("log_append", Read::Routes(log::log_append)),
    ("log_name", Read::Routes(log::log_name)),
    ("log_skip", Read::Routes(log::log_skip)),
    ("rate_limit", Read::Routes(rate_limit::rate_limit)),
    ("redir", Read::Routes(redir::redir)),
    ("request_body", Read::Routes(request_body::request_body)),
    ("request_header", Read::Routes(request_header::request_header)),
    ("respond", Read::Routes(respond::respond)),
    ("reverse_proxy", Read::Routes(proxy::reverse_proxy)),
    ("rewrite", Read::Routes(rewrite::rewrite)),
    ("root", Read::Routes(root::root)),
    ("route", Read::Routes(handle::route)),
    ("skip_log", Read::Routes(log::log_skip)),
    ("spa", Read::Routes(spa::spa)),
    ("tls", Read::Site),
    ("tracing", Read::Routes(tracing::tracing)),
    ("try_files", Read::Routes(|cx, _, line| try_files::try_files(cx, line))),
    ("uri", Read::Routes(uri::uri)),
    ("import", Read::Import),
];

/// Words of other servers' configurations, with what to do about them.
const OTHERS_WORDS: [(&str, &str); 8] = [
    ("error_page", "that is `handle_errors STATUS… { … }` here"),
    ("limit_conn", "that is `limit in_flight N` here, which counts requests"),
    ("limit_req", "that is `rate_limit 10r/s burst 20` here"),
    ("limit_req_zone", "zones need no line of their own here: `rate_limit 10r/s burst 20`"),
    ("pool", "`pool` stands in the block of a `reverse_proxy`"),
    ("proxy", "that is `reverse_proxy` here"),
    ("proxy_pass", "that is `reverse_proxy` here"),
    ("upstream", "`reverse_proxy` takes all its upstreams on its line, or behind `to`"),
];

/// Directives of nginx that onehop lacks under this name, with the Onehopfile's way to write the same.
const WORDS_OF_NGINX: [(&str, &str); 20] = [
    ("add_header", "`header NAME VALUE` sets a field"),
    (
        "alias",
        "`handle_path /prefix/* { root * DIR; file_server }`, on lines of their own, serves a folder below a prefix",
    ),
    ("autoindex", "`file_server browse` lists folders"),
    (
        "client_max_body_size",
        "`request_body { max_size 10MB }`, on lines of their own, bounds the body of a request",
    ),
    ("default_type", "onehop derives Content-Type from the file's name"),
    ("deny", "`respond 403` in a `handle` with a matcher refuses requests"),
    ("events", "remove this block: onehop starts one thread per core"),
    (
        "expires",
        "`header Cache-Control VALUE` sets a lifetime; files with a hash in their name get one by default",
    ),
    ("gzip", "`encode zstd br gzip` compresses responses"),
    ("http", "remove this block: sites are at the top level of the file"),
    ("index", "`file_server` serves index.html of a folder by default"),
    ("keepalive", "upstream connections are kept by default"),
    ("listen", "the address is in front of the site's block: `http://example.com:8080 { … }`"),
    ("location", "`handle /path/* { … }` groups what acts below a path"),
    ("return", "`respond STATUS` answers, `redir TARGET` redirects"),
    ("sendfile", "remove this line: onehop serves files from memory"),
    ("server", "a site is its address and a block: `http://example.com { … }`"),
    ("server_name", "the host is in front of the site's block: `http://example.com { … }`"),
    ("worker_connections", "remove this line: the bound follows from the machine's limits"),
    ("worker_processes", "remove this line: onehop starts one thread per core"),
];

/// What a site's directives set besides routes.
#[derive(Debug, Default)]
pub(crate) struct SiteSettings {
    pub(crate) logs: Vec<AccessLog>,
    pub(crate) binds: Vec<Bind>,
    pub(crate) errors: Vec<ErrorRoutes>,
    pub(crate) tls: TlsSettings,
}

/// The options of every directive and of the blocks in them, and the directives without any.
pub(crate) fn outlines() -> Vec<Outline> {
    let mut outlines = vec![
        bind::OPTIONS.outline(),
        early_hints::OPTIONS.outline(),
        encode::OPTIONS.outline(),
        error::OPTIONS.outline(),
        file_server::OPTIONS.outline(),
        file_server::BROWSE.outline(),
        header::OPTIONS.outline(),
        log::OPTIONS.outline(),
        log::OUTPUT_FILE.outline(),
        log::OUTPUT_NET.outline(),
        log::FORMAT_FILTER.outline(),
        log::FORMAT_JSON.outline(),
        log::FORMAT_TRANSFORM.outline(),
        log::IP_MASK.outline(),
        log::SAMPLING.outline(),
        request_body::OPTIONS.outline(),
        respond::OPTIONS.outline(),
        spa::OPTIONS.outline(),
        tls::OPTIONS.outline(),
        tracing::OPTIONS.outline(),
        tls::ACME.outline(),
        tls::CLIENT_AUTH.outline(),
        tls::ON_DEMAND.outline(),
        tls::RFC2136.outline(),
        tls::INTERNAL.outline(),
        tls::PKI.outline(),
        tls::CA.outline(),
        tls::FILES.outline(),
        try_files::OPTIONS.outline(),
    ];
    outlines.extend(app::outlines());
    outlines.extend(limit::outlines());
    outlines.extend(rate_limit::outlines());
    outlines.extend(proxy::outlines());
    let names = DIRECTIVES.iter().map(|(name, _)| *name);
    let bare: Vec<_> = names.filter(|name| outlines.iter().all(|outline| outline.owner != *name)).collect();
    outlines.extend(bare.into_iter().map(|owner| Outline { owner, options: Vec::new() }));
    outlines
}

/// Whether a word is a directive, ours or Caddy's.
pub(crate) fn is_known(word: &str) -> bool {
    DIRECTIVES.iter().any(|(name, _)| *name == word) || DIRECTIVE_ORDER.contains(&word)
}

/// The routes of a site, in acting order.
pub(crate) fn site(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    block: &Block,
    settings: &mut SiteSettings,
) -> Vec<Route> {
    let mut placed = Vec::new();
    limit::must_stand_once(cx, &block.lines);
    for line in block.lines.iter().filter(|line| !is_definition(line)) {
        let result = match line.name.text.as_str() {
            "log" => log::log(cx, line, &mut settings.logs),
            "tls" => tls::tls(cx, line, &mut settings.tls),
            "bind" => bind::bind(cx, line).map(|binds| settings.binds.extend(binds)),
            "handle_errors" => {
                handle_errors::handle_errors(cx, scope, line).map(|errors| settings.errors.push(errors))
            }
            _ => directive(cx, scope, line).map(|made| placed.extend(made)),
        };
        let result = result.map_err(|problem| match problem.help {
            // A second address in a file without braces reads as a directive.
            None if !block.braces && problem.code == "unknown-directive" => {
                problem.help("to define several sites, put braces around each of them")
            }
            _ => problem,
        });
        cx.keep(result);
    }
    log::unknown_names(cx, &settings.logs);
    handle_errors::arrange(&mut settings.errors);
    arrange(cx, &block.place, placed, true)
}

/// The routes of a directive's block, in acting order or as written.
fn nested(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Directive, sorted: bool) -> Vec<Route> {
    let lines = line.block.as_deref().unwrap_or_default();
    let scope = Scope::of_block(cx, lines, Some(scope));
    let mut placed = Vec::new();
    limit::must_stand_once(cx, lines);
    cx.limits.enter(line);
    for inner in lines.iter().filter(|inner| !is_definition(inner)) {
        let result = match inner.name.text.as_str() {
            word @ ("log" | "bind" | "tls" | "handle_errors") => {
                let message = format!("`{word}` stands inside of `{}`", line.name.text);
                Err(Problem::error("directive-place", &inner.name.place, message)
                    .help("it is a setting of the whole site: move it out of this block"))
            }
            _ => directive(cx, &scope, inner),
        };
        placed.extend(cx.keep(result).into_iter().flatten());
    }
    cx.limits.leave();
    arrange(cx, &line.name.place, placed, sorted)
}

fn directive(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Directive) -> Result<Vec<Placed>, Box<Problem>> {
    if let Some(problem) = handle_errors::unfit(cx, line) {
        return Err(problem);
    }
    let made = match DIRECTIVES.iter().find(|(name, _)| *name == line.name.text) {
        Some((_, Read::Routes(read))) => read(cx, scope, line),
        _ => Err(unknown(cx, line)),
    };
    made.map_err(|problem| match suggested_matcher(line) {
        Some(help) if problem.code != "unknown-directive" => problem.help(help),
        _ => problem,
    })
}

/// For a directive that failed behind several paths, where it takes one matcher: how to write them as a named one.
fn suggested_matcher(line: &Directive) -> Option<String> {
    let is_path = |token: &&Token| token.text.starts_with('/');
    let paths: Vec<&str> = line.args.iter().take_while(is_path).map(|token| token.text.as_str()).collect();
    let rest: Vec<&str> = line.args.iter().skip(paths.len()).map(|token| token.text.as_str()).collect();
    // `/srv/api/server.js` is a file, `/ws` and `/api/*` are paths of requests.
    let is_of_requests =
        |path: &str| path.contains('*') || !path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let is_meant = paths.len() > 1 && !(rest.is_empty() && line.block.is_none());
    (is_meant && paths.iter().all(|path| is_of_requests(path))).then(|| {
        let name = &line.name.text;
        let words: Vec<&str> = std::iter::once("@paths").chain(rest).collect();
        let block = if line.block.is_some() { " { … }" } else { "" };
        format!(
            "one path is a matcher; several need a name: `@paths path {}` on a line of its own, then `{name} {}{block}`",
            paths.join(" "),
            words.join(" ")
        )
    })
}

fn unknown(cx: &Context<'_>, line: &Directive) -> Box<Problem> {
    let (word, place) = (line.name.text.as_str(), &line.name.place);
    if DIRECTIVE_ORDER.contains(&word) {
        let message = format!("`{word}` is a Caddy directive that onehop does not have yet");
        let help = match word {
            "acme_server" => {
                "sites of this server get certificates of its authority with `tls { issuer internal }`; for other machines run \
                 an ACME server of its own and name it there with `tls { ca URL }`"
            }
            _ => "docs/onehopfile.md lists what there is",
        };
        return Problem::error("not-yet", place, message).help(help);
    }
    let problem = Problem::error("unknown-directive", place, format!("there is no directive `{word}`"));
    if let Some((_, help)) = OTHERS_WORDS.iter().find(|(theirs, _)| *theirs == word) {
        return problem.help(*help);
    }
    if let Some((_, instead)) = WORDS_OF_NGINX.iter().find(|(theirs, _)| *theirs == word) {
        return problem.help(format!(
            "this looks like nginx: {instead}; `onehop adapt nginx.conf` prints it as an Onehopfile"
        ));
    }
    if (cx.is_global_option)(word) {
        return problem.help(format!(
            "`{word}` is a global option: it stands in a block without an address, the file's first"
        ));
    }
    if let Some(near) = nearest(word, DIRECTIVES.iter().map(|(name, _)| *name).chain(DIRECTIVE_ORDER)) {
        return problem.help(format!("did you mean `{near}`?"));
    }
    if line.block.is_some() && word.contains(['.', ':']) {
        return problem.help("an address begins a site: it cannot stand inside of another site");
    }
    problem
}

/// One route at its place.
fn placed(directive: &'static str, chosen: Chosen, line: &Directive, step: Step) -> Placed {
    let Chosen { matcher, single_path } = chosen;
    let route = Route { matcher, group: None, step, line: line.name.place.line() };
    Placed::new(directive, single_path, route)
}

/// The first arguments of directives that take `[<matcher>] <value>`: one argument is the value
/// even where it looks like a path.
fn matcher_and_value<'l>(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &'l Directive,
    usage: &str,
) -> Result<(Chosen, &'l Token), Box<Problem>> {
    match line.args.as_slice() {
        [value] => Ok((Chosen::default(), value)),
        [first, value] => {
            let (chosen, rest) = crate::check::matcher::split(cx, scope, &line.args)?;
            if rest.len() == 1 {
                return Ok((chosen, value));
            }
            let message = format!("`{}` is no matcher", first.text);
            Err(Problem::error("matcher", &first.place, message)
                .help(format!("a matcher begins with `/` or `@`, or is `*`; it is written `{usage}`")))
        }
        _ => Err(wrong_arguments(line, usage)),
    }
}
