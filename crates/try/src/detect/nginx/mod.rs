//! An nginx.conf, whole or a part of one: which server it is, how it runs for a side-by-side run, what an Onehopfile makes of it.
//!
//! `onehop_adapt` reads and translates it; here are the applications behind it (`Located`) and what is measured:
//! `runnable.rs` has the configuration for a side-by-side run, `connections.rs` says whether a tuned one is measured beside it.

mod connections;
mod runnable;
#[cfg(test)]
mod tests;

use std::path::Path;

use onehop_adapt::nginx::{Configuration, Directive, Listens, translate};
use onehop_adapt::{Deployment, Upstream};

use super::behind::Behind;
use super::environment::Environment;
use super::files::{BoundedSource, TEXT_BYTES_MAX, below, read_bounded};
use super::write::site;
use crate::{Found, Front, Setup, SideBySideError};
use connections::opens_connections;

/// An nginx configuration.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let mut notes = Vec::new();
    let source = BoundedSource;
    let configuration = Configuration::read(path, &source, &mut notes)?;
    if environment.nginx.is_none() {
        return Err(SideBySideError::found(
            path.display(),
            "nginx is not installed, so this does not run here today",
            "install it: apt-get install nginx",
        ));
    }
    let folder = path.parent().unwrap_or(path);
    let server = configuration.server(&mut notes)?;
    let upstreams = server.upstreams()?;
    let behind = Behind::find(&upstreams, folder, environment, &mut notes)?;
    let located = Located { behind: &behind, folder, environment };
    let translated = translate(&server, &located, &mut notes)?;
    let mut today = vec![Front::Nginx { conf: runnable::text(&server, false)? }];
    if let Some(opening) = opens_connections(&server).filter(|_| !upstreams.is_empty()) {
        notes.push(format!(
            "This nginx opens a connection to the application for each request{opening}. It is measured as it is, \
             and once more with kept connections (`upstream` with `keepalive 64`, HTTP/1.1), as its manual advises."
        ));
        today.push(Front::Nginx { conf: runnable::text(&server, true)? });
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
        addresses: Listens::of(server.directive).plain_addresses(&mut notes),
        workers: None,
        routes: Vec::new(),
        guessed: translated.paths,
        skipped: Vec::new(),
        has_links: false,
        notes,
    })
}

/// Whether a file without a known name is one of nginx's, such as those in sites-available.
pub(super) fn looks_like(path: &Path) -> bool {
    read_bounded(path, TEXT_BYTES_MAX).is_ok_and(|text| onehop_adapt::nginx::looks_like(&text))
}

/// The applications behind a front, as they are on this machine.
struct Located<'a> {
    behind: &'a Behind,
    folder: &'a Path,
    environment: &'a Environment,
}

impl Deployment for Located<'_> {
    fn address(&self, upstream: &Upstream) -> String {
        self.behind.address(upstream.port)
    }

    fn app(&self, port: u16, matcher: Option<&str>) -> Option<String> {
        self.behind.app(port, matcher, self.folder, self.environment)
    }

    fn routes(&self) -> &[String] {
        &self.behind.guessed
    }

    fn is_single_page_application(&self, folder: &Path) -> bool {
        super::site::is_application(folder)
    }

    fn access_log(&self, _written: Option<&Directive>, notes: &mut Vec<String>) -> Option<String> {
        notes.push(
            "nginx writes an access log, so onehop writes one too; both go to a folder that goes away."
                .to_owned(),
        );
        Some("{scratch}/onehop-access.log".to_owned())
    }
}
