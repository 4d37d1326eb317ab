//! A folder of files with an index page, such as a build leaves.
//!
//! Reads the page for the names of its assets; what a browser would ask for by itself is worth asking.

use std::path::Path;

use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, read_bounded, walk};
use super::rivals;
use super::write::site;
use crate::side_by_side::{Found, Setup, SideBySideError};

/// Paths that are asked for: what a page loads at once, and no crawl.
const PATHS_MAX: usize = 12;
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
    let mut paths = vec!["/".to_owned()];
    paths.extend(assets(&page, folder));
    paths.truncate(PATHS_MAX);
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
        paths,
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

/// The paths of local files that a page names in `src` and `href`, in its order, each once.
pub(super) fn assets(page: &str, folder: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap_or_default();
        let name = tag.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        let attribute = match name.as_str() {
            "script" | "img" | "source" => "src",
            "link" => "href",
            _ => continue,
        };
        let Some(path) = attribute_value(tag, attribute).and_then(local_path) else { continue };
        let file = folder.join(path.trim_start_matches('/'));
        let is_asset = file.metadata().is_ok_and(|file| file.is_file() && file.len() <= ASSET_BYTES_MAX);
        if is_asset && !found.contains(&path) && found.len() < PATHS_MAX {
            found.push(path);
        }
    }
    found
}

/// The value of an attribute, quoted or not.
fn attribute_value<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let before = rest.get(..at)?.chars().next_back();
        rest = rest.get(at + name.len()..)?;
        if !before.is_some_and(|before| before.is_whitespace() || before == '"' || before == '\'') {
            continue;
        }
        let Some(value) = rest.trim_start().strip_prefix('=') else { continue };
        let value = value.trim_start();
        return match value.chars().next()? {
            quote @ ('"' | '\'') => value.get(1..)?.split(quote).next(),
            _ => value.split_whitespace().next(),
        };
    }
}

/// The path of a reference to the same site, from the root; nothing for other sites and what climbs.
fn local_path(reference: &str) -> Option<String> {
    let reference = reference.split(['?', '#']).next()?.trim();
    if reference.is_empty() || reference.contains([':', '%', '\\', ' ']) || reference.starts_with("//") {
        return None;
    }
    let path = reference.strip_prefix("./").unwrap_or(reference);
    if path.split('/').any(|segment| segment == "..") {
        return None;
    }
    Some(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
}
