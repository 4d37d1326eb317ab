//! An nginx.conf, whole or a part of one: which server it is, how it runs for a trial, what an Onehopfile makes of it.
//!
//! `lexer.rs` makes words, `tree.rs` directives, `values.rs` turns single values, `translate.rs` and `location.rs`
//! write the Onehopfile, `pass.rs` with `fields.rs` and `upstreams.rs` what a `proxy_pass` becomes in it, `runnable.rs`
//! the configuration that is measured. Never drops silently what changes answers.

mod fields;
mod lexer;
mod location;
mod names;
mod pass;
mod runnable;
#[cfg(test)]
mod tests;
mod translate;
mod tree;
mod tried;
mod upstreams;
mod values;

use std::path::Path;
use std::sync::Arc;

use super::behind::Behind;
use super::files::{TEXT_BYTES_MAX, below, normal, read_bounded};
use super::surroundings::Surroundings;
use super::write::site;
use crate::trial::{Found, Front, Setup, TrialError};
use tree::{Directive, Place};

/// What stands around a part of a configuration, as distributions have it.
const AROUND: &str = "worker_processes auto;\nevents { worker_connections 4096; }\n\
    http { default_type application/octet-stream; sendfile on; tcp_nopush on; access_log off; }\n";
/// Tables of types, where nginx keeps them.
const TYPES: &str = "/etc/nginx/mime.types";

/// The server that is tried, with what stands around it.
struct Chosen<'a> {
    main: &'a [Directive],
    http: &'a [Directive],
    server: &'a Directive,
    folder: &'a Path,
}

/// An nginx configuration.
pub(super) fn detect(path: &Path, surroundings: &Surroundings) -> Result<Setup, TrialError> {
    let read = tree::read(path)?;
    if surroundings.nginx.is_none() {
        return Err(TrialError::found(
            path.display(),
            "nginx is not installed, so this does not run here today",
            "install it: apt-get install nginx",
        ));
    }
    let folder = path.parent().unwrap_or(path);
    let mut notes = Vec::new();
    let main = whole(path, read, &mut notes)?;
    let http = main.iter().find(|directive| directive.name == "http").map_or(&[][..], Directive::inner);
    let server = choose(path, http, &mut notes)?;
    let chosen = Chosen { main: &main, http, server, folder };
    let upstreams = chosen.upstreams()?;
    let behind = Behind::find(&upstreams, folder, surroundings, &mut notes)?;
    let translated = translate::translate(&chosen, &behind, surroundings, &mut notes)?;
    let mut today = vec![Front::Nginx { conf: runnable::text(&chosen, false)? }];
    if let Some(opening) = chosen.opens_connections().filter(|_| !upstreams.is_empty()) {
        notes.push(format!(
            "This nginx opens a connection to the application for each request{opening}. It is measured as it is, \
             and once more with kept connections (`upstream` with `keepalive 64`, HTTP/1.1), as its manual advises."
        ));
        today.push(Front::Nginx { conf: runnable::text(&chosen, true)? });
    }
    // What stands around several locations is said for each of them.
    let mut said = std::collections::HashSet::new();
    notes.retain(|note| said.insert(note.clone()));
    let description = match upstreams.first() {
        Some(upstream) => format!(
            "an nginx in front of {}:{} ({})",
            upstream.host,
            upstream.port,
            below(folder, path).trim_start_matches("./")
        ),
        None => format!("a site of nginx ({})", below(folder, path).trim_start_matches("./")),
    };
    Ok(Setup {
        found: Found { path: path.to_owned(), description },
        folder: folder.to_owned(),
        application: behind.application.clone(),
        today,
        onehopfile: site(&translated.body),
        addresses: names::addresses(server, &mut notes),
        workers: None,
        paths: translated.paths,
        notes,
    })
}

/// Whether a file without a known name is one of nginx's, such as those in sites-available.
pub(super) fn looks_like(path: &Path) -> bool {
    let Ok(text) = read_bounded(path, TEXT_BYTES_MAX) else { return false };
    text.lines().any(|line| {
        let line = line.trim_start();
        line.strip_prefix("server").is_some_and(|rest| rest.trim_start().starts_with('{'))
            || line.starts_with("proxy_pass ")
    })
}

/// The first of a name, from the innermost level outwards.
fn nearest<'a>(name: &str, levels: &[&'a [Directive]]) -> Option<&'a Directive> {
    levels.iter().rev().find_map(|level| level.iter().find(|directive| directive.name == name))
}

/// All of a name at the innermost level that has one: nginx inherits such lists as a whole.
fn nearest_all<'a>(name: &str, levels: &[&'a [Directive]]) -> Vec<&'a Directive> {
    let at = |level: &&'a [Directive]| -> Vec<&'a Directive> {
        level.iter().filter(|directive| directive.name == name).collect()
    };
    levels.iter().rev().map(at).find(|found| !found.is_empty()).unwrap_or_default()
}

impl<'a> Chosen<'a> {
    /// The folder that a `root` or `alias` names: relative ones start where nginx is installed, or here.
    fn folder_of(&self, directive: &Directive) -> String {
        let written = directive.arg(0);
        let here = normal(&self.folder.join(written));
        if !written.starts_with('/') && !here.is_dir() {
            let installed = Path::new("/usr/share/nginx").join(written);
            if installed.is_dir() {
                return installed.display().to_string();
            }
        }
        here.display().to_string()
    }

    fn has_upstream(&self, name: &str) -> bool {
        self.upstream(name).is_some()
    }

    fn upstream(&self, name: &str) -> Option<&'a Directive> {
        self.http.iter().find(|directive| directive.name == "upstream" && directive.arg(0) == name)
    }

    /// Whether a connection is opened for each request to the application, and of which locations if not of all.
    fn opens_connections(&self) -> Option<String> {
        let server = self.server.inner();
        let locations = server.iter().filter(|directive| directive.name == "location");
        let passes = |block: &&Directive| block.inner().iter().any(|inner| inner.name == "proxy_pass");
        let passing: Vec<&Directive> = locations.filter(passes).collect();
        let opening: Vec<&Directive> =
            passing.iter().copied().filter(|block| !self.keeps_connections(block.inner())).collect();
        if opening.len() == passing.len() {
            return Some(String::new());
        }
        let shown: Vec<String> =
            opening.iter().map(|block| format!("`{}` ({})", block.shown(), block.place.words())).collect();
        (!shown.is_empty()).then(|| format!(" of {}", shown.join(", ")))
    }

    /// Whether the connections of a block are used again already.
    fn keeps_connections(&self, block: &[Directive]) -> bool {
        let levels = [self.http, self.server.inner(), block];
        let kept = block
            .iter()
            .find(|directive| directive.name == "proxy_pass")
            .and_then(|pass| values::passed(pass.arg(0)))
            .and_then(|to| self.upstream(&to.host))
            .is_some_and(|upstream| upstream.inner().iter().any(|inner| inner.name == "keepalive"));
        let version = nearest("proxy_http_version", &levels).is_some_and(|found| found.arg(0) == "1.1");
        let connection = nearest_all("proxy_set_header", &levels)
            .into_iter()
            .find(|field| field.arg(0).eq_ignore_ascii_case("connection"))
            .is_some_and(|field| self.keeps(field.arg(1)));
        kept && version && connection
    }

    /// Whether a value of Connection keeps a connection where the request asks for no upgrade.
    fn keeps(&self, value: &str) -> bool {
        let Some(variable) = value.strip_prefix('$') else { return value.is_empty() };
        let variable = variable.trim_matches(['{', '}']);
        if variable.starts_with("http_") {
            // A field of the request: without it, it is empty.
            return true;
        }
        let is_map = |directive: &&Directive| {
            directive.name == "map" && directive.arg(1).strip_prefix('$') == Some(variable)
        };
        let Some(map) = self.http.iter().find(is_map) else { return false };
        // `default upgrade; '' close;`, as the manual of WebSockets has it, closes all others.
        let entry = |name: &str| map.inner().iter().find(|entry| entry.name == name);
        entry("").or_else(|| entry("default")).is_none_or(|entry| entry.arg(0).is_empty())
    }
}

/// A whole configuration of what may be a part: a file of conf.d, or the inside of a server.
fn whole(path: &Path, read: Vec<Directive>, notes: &mut Vec<String>) -> Result<Vec<Directive>, TrialError> {
    let has = |name: &str| read.iter().any(|directive| directive.name == name);
    if has("http") {
        return Ok(read);
    }
    if !has("server") && !has("location") && !has("root") {
        return Err(TrialError::found(
            path.display(),
            "it has neither a server nor a location",
            "name the file with the server: onehop try nginx.conf",
        ));
    }
    notes.push(
        "This is a part of a configuration. Around it stand the settings of a distribution: one process for each \
         core, no access log."
            .to_owned(),
    );
    let place = Place { file: Arc::from(path), line: 1 };
    let mut main = tree::read_text(path, AROUND)?;
    let inside = if has("server") {
        read
    } else {
        vec![Directive { block: Some(read), ..Directive::new("server", &[], &place) }]
    };
    for directive in &mut main {
        if let ("http", Some(block)) = (directive.name.as_str(), &mut directive.block) {
            if Path::new(TYPES).is_file() {
                block.push(Directive::new("include", &[TYPES], &place));
            }
            block.extend(inside.iter().cloned());
        }
    }
    Ok(main)
}

/// The first server that does more than lead to TLS; one without TLS before those with it.
fn choose<'a>(
    path: &Path,
    http: &'a [Directive],
    notes: &mut Vec<String>,
) -> Result<&'a Directive, TrialError> {
    let servers: Vec<&Directive> = http.iter().filter(|directive| directive.name == "server").collect();
    let is_tls = |server: &Directive| {
        let listens = server.inner().iter().filter(|directive| directive.name == "listen");
        let mut listens = listens.peekable();
        listens.peek().is_some() && listens.all(|listen| listen.args.iter().any(|word| word.text == "ssl"))
    };
    let leads_away = |server: &Directive| {
        server
            .inner()
            .iter()
            .any(|directive| directive.name == "return" && directive.shown().contains("https://"))
    };
    let serving: Vec<&Directive> = servers.iter().copied().filter(|server| !leads_away(server)).collect();
    let chosen = serving.iter().find(|server| !is_tls(server)).or_else(|| serving.first());
    let Some(server) = chosen.or(servers.first()).copied() else {
        return Err(TrialError::found(
            path.display(),
            "it has no server",
            "name the file with the server, such as /etc/nginx/sites-enabled/default",
        ));
    };
    if is_tls(server) {
        notes.push(format!(
            "The server on {} speaks TLS; it is measured without, on both sides.",
            server.place.words()
        ));
    }
    let others: Vec<String> = servers
        .iter()
        .filter(|other| other.place != server.place)
        .map(|other| other.place.line.to_string())
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "Only the server on {} is tried; those on line {} are left out.",
            server.place.words(),
            others.join(", ")
        ));
    }
    Ok(server)
}
