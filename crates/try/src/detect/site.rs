//! A folder of files with an index page, such as a build leaves.
//!
//! Reads the page for its links, so that only those are asked that lead to files.

use std::path::Path;

use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, read_bounded, walk};
use super::rivals;
use super::write::site;
use crate::links::{self, Links};
use crate::{Found, Origin, Route, Setup, SideBySideError};

/// Bytes of an asset that is asked for. Above it the wire is measured and no longer the server.
const ASSET_BYTES_MAX: u64 = 1024 * 1024;
/// Pages beside the index that make a folder a site of pages and no single-page application.
const PAGES_SEEN_MAX: usize = 50;

/// A folder with an index page.
pub(super) fn detect(folder: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let index = folder.join("index.html");
    let page =
        read_bounded(&index, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(&index, &error))?;
    let pages = pages(folder);
    let is_application = pages <= 1 && has_module(&page);
    let today = rivals::files(folder, is_application, environment).ok_or_else(|| {
        SideBySideError::found(
            folder.display(),
            "neither nginx nor Caddy is installed, so there is nothing that serves these files today",
            "install one (apt-get install nginx), or serve the folder by onehop alone: onehop serve DIR",
        )
    })?;
    let parent = folder.parent().unwrap_or(folder);
    let (description, body) = if is_application {
        let body = format!("spa {}\n", onehop_adapt::onehopfile::word(&super::files::below(parent, folder)));
        (format!("a built single-page application ({})", folder.display()), body)
    } else {
        let root = onehop_adapt::onehopfile::word(&super::files::below(parent, folder));
        (
            format!("a folder of pages ({}, {pages} of HTML)", folder.display()),
            format!("root {root}\nfile_server\n"),
        )
    };
    let links = links(&page, folder);
    let mut routes = vec![Route { path: "/".to_owned(), origin: Origin::StartPage }];
    routes.extend(links.routes);
    let mut notes = vec![
        "Nothing says how these files are served today; the server beside onehop is set up as its manual \
         advises for files."
            .to_owned(),
    ];
    if is_application {
        notes.push(
            "Paths that are no file are not asked for: nginx answers each of them with the index page, onehop \
             only navigations, and a missing asset with 404."
                .to_owned(),
        );
    }
    Ok(Setup {
        found: Found { path: folder.to_owned(), description },
        folder: parent.to_owned(),
        application: None,
        today: vec![today],
        onehopfile: site(&body),
        addresses: Vec::new(),
        workers: None,
        routes,
        guessed: Vec::new(),
        skipped: links.skipped,
        has_links: true,
        notes,
    })
}

/// Whether a folder's only page is drawn by a script.
pub(super) fn is_application(folder: &Path) -> bool {
    let page = read_bounded(&folder.join("index.html"), TEXT_BYTES_MAX);
    page.is_ok_and(|page| has_module(&page)) && pages(folder) <= 1
}

/// How many pages a folder has, up to a bound.
fn pages(folder: &Path) -> usize {
    let pages = walk(folder, PAGES_SEEN_MAX, |path| path.extension().is_some_and(|ending| ending == "html"));
    // 404.html is what some hosts answer with, and no page of its own.
    pages.iter().filter(|page| !page.ends_with("404.html")).count()
}

/// Whether the page is drawn by a script, as single-page applications are.
fn has_module(page: &str) -> bool {
    let page = page.to_ascii_lowercase();
    page.contains("<script type=\"module\"")
        || page.contains("<script type='module'")
        || (page.contains("<script")
            && ["id=\"root\"", "id=\"app\"", "id=root", "id=app"].iter().any(|id| page.contains(id)))
}

/// What the index page links to that is a file of the folder.
fn links(page: &str, folder: &Path) -> Links {
    let mut links = links::of(page, "/");
    links.routes.retain(|route| {
        let file = folder.join(route.path.trim_start_matches('/'));
        file.metadata().is_ok_and(|file| file.is_file() && file.len() <= ASSET_BYTES_MAX)
    });
    links
}
