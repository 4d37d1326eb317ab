//! `spa`: a built single-page app from memory.
//!
//! A path that names a file is that file. Any other path is a place within the app when a browser
//! navigates to it, and is answered by the app's page; a missing asset is a 404 that nobody may
//! remember. Decided here: how long each kind of file is good.

use onehop_config::checked::{PathPattern, Spa};
use onehop_http1::{Known, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::glob;
use onehop_message::response::Response;

use super::file_server::with_joined;
use super::stored::{self, ResponseOptions};
use super::{FileRequest, Served};
use crate::accept_encoding::split_quality;
use crate::path;
use crate::store::{File, Node};

/// The name says what the content is: it never has to be asked for again (RFC 8246).
const IMMUTABLE: &[u8] = b"Cache-Control: public, max-age=31536000, immutable\r\n";

/// Everything else is kept, but asked for again each time, which costs a 304: a page, and just as much
/// a manifest, a service worker or a `config.json`, is current from the moment it is deployed.
const REVALIDATED: &[u8] = b"Cache-Control: no-cache\r\n";

/// Page of a folder below the root.
const FOLDER_INDEX: &[u8] = b"index.html";

/// Answers a request for an app.
pub fn spa(settings: &Spa, request: &FileRequest<'_>, answer: &mut Response) -> Result<Served, HttpError> {
    if request.error_status.is_none() {
        stored::only_get_and_head(request.head)?;
    }
    let path = path::parse(request.path).map_err(|_| HttpError::BadPath)?;
    if path.dotfile && !settings.dotfiles {
        return Err(HttpError::MissingAsset);
    }
    let name: &[u8] = &path.bytes;
    let number = match request.store.find(name) {
        Some(Node::File(number)) if !path.folder => Some(number),
        Some(Node::Folder(_)) if name.is_empty() => index(settings, request),
        Some(Node::Folder(_)) => with_joined(name, FOLDER_INDEX, |joined| match request.store.get(joined) {
            Some(Node::File(number)) => Some(number),
            _ => None,
        }),
        _ => None,
    };
    // The same path is absent for whoever does not name HTML.
    let varies_by_accept = number.is_none();
    let number = match number {
        Some(number) => number,
        None if is_navigation(request.head, name) => {
            index(settings, request).ok_or(HttpError::MissingAsset)?
        }
        None => return Err(HttpError::MissingAsset),
    };
    let Some(file) = request.store.file(number) else { return Err(HttpError::FileUnreadable) };
    let options = ResponseOptions {
        // What a file says of itself holds for the file, not for an error that it is the page of.
        cache_control: Some(request.error_status.map_or(cache_control(settings, file), |_| REVALIDATED)),
        status: request.error_status,
        follow_outside: settings.follow_outside,
        varies_by_accept,
        ..ResponseOptions::default()
    };
    stored::stored_file(request, number, options, answer)
}

fn index(settings: &Spa, request: &FileRequest<'_>) -> Option<u32> {
    let name = settings.index.strip_prefix('/').unwrap_or(&settings.index);
    match request.store.get(name.as_bytes()) {
        Some(Node::File(number)) => Some(number),
        _ => None,
    }
}

fn cache_control(settings: &Spa, file: &File) -> &'static [u8] {
    let immutable = file.hashed_name || settings.immutable.iter().any(|pattern| fits(pattern, &file.path));
    if immutable { IMMUTABLE } else { REVALIDATED }
}

/// Whether a browser goes to a place within the app, rather than some script asking for a file that is
/// not there: the client names HTML among what it takes, and the last segment does not look like the
/// name of a file.
fn is_navigation(head: &RequestHead, name: &[u8]) -> bool {
    !has_form_of_asset(name) && head.get_all(Known::Accept).any(takes_html)
}

/// `text/html` by name and not refused; `*/*` is what scripts, images and command lines send.
fn takes_html(accept: &[u8]) -> bool {
    accept.split(|b| *b == b',').any(|element| {
        let (name, quality) = split_quality(element);
        name.eq_ignore_ascii_case(b"text/html") && quality.is_some_and(|quality| quality > 0)
    })
}

/// A last segment with an extension: a dot, then at most ten letters or digits that are not all digits
/// (`/releases/1.2` is a place in an app).
fn has_form_of_asset(name: &[u8]) -> bool {
    /// `webmanifest` is the longest that browsers ask for.
    const LONGEST: usize = 11;
    let last = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
    let Some(dot) = last.iter().rposition(|b| *b == b'.') else { return false };
    let extension = &last[dot + 1..];
    (1..=LONGEST).contains(&extension.len())
        && extension.iter().all(u8::is_ascii_alphanumeric)
        && !extension.iter().all(u8::is_ascii_digit)
}

/// Whether the path of a file, which has no slash at its beginning, fits an `immutable` pattern. The
/// patterns are lower case and match without regard to case, as Caddy's path matcher does.
fn fits(pattern: &PathPattern, path: &[u8]) -> bool {
    let lower = || [b"/".as_slice(), &path.to_ascii_lowercase()].concat();
    match pattern {
        PathPattern::Any => true,
        PathPattern::Exact(text) | PathPattern::Escaped(text) => {
            text.as_bytes().strip_prefix(b"/").is_some_and(|text| text.eq_ignore_ascii_case(path))
        }
        PathPattern::Prefix(text) => {
            let text = text.as_bytes();
            let text = text.strip_prefix(b"/").unwrap_or(text);
            path.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
        }
        PathPattern::Suffix(text) => lower().ends_with(text.as_bytes()),
        PathPattern::Contains(text) => {
            text.is_empty() || lower().windows(text.len()).any(|window| window == text.as_bytes())
        }
        PathPattern::Glob(text) => glob::matches(text.as_bytes(), &lower()),
    }
}
