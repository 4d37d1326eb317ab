//! `file_server`: what stands at a path of the store, with index files, hidden names, directory pages
//! and canonical slashes as Caddy has them.

use onehop_config::checked::FileServer;
use onehop_message::error::HttpError;
use onehop_message::response::Response;

use super::browse::{self, Listing};
use super::hidden::is_hidden;
use super::redirect;
use super::stored::{self, ResponseOptions};
use super::{FileRequest, Served};
use crate::path;
use crate::store::{Node, Store};

/// Answers a request with what stands at its path in the store.
pub fn file_server(
    settings: &FileServer,
    request: &FileRequest<'_>,
    answer: &mut Response,
) -> Result<Served, HttpError> {
    let path = path::parse(request.path).map_err(|_| HttpError::BadPath)?;
    if path.dotfile && !settings.dotfiles {
        return absent(settings);
    }
    let name: &[u8] = &path.bytes;
    let hidden = |name: &[u8]| is_hidden(&request.store.root, name, &settings.hide);
    match request.store.find(name) {
        None => absent(settings),
        Some(Node::File(number)) => {
            if hidden(name) {
                return absent(settings);
            }
            if let Some(to) = slash_to_remove(settings, request.original_path, request.path) {
                redirect::permanent(to, request.query, answer);
                return Ok(Served::Answered);
            }
            stored::stored_file(request, number, options(settings, request.error_status), answer)
        }
        Some(Node::Folder(number)) => {
            let index = settings.index.iter().find_map(|index| {
                with_joined(name, index.as_bytes(), |joined| match request.store.get(joined) {
                    Some(Node::File(number)) if !hidden(joined) => Some(number),
                    _ => None,
                })
            });
            if let Some(index) = index {
                if let Some(to) = slash_to_add(settings, request.original_path, request.path) {
                    redirect::permanent(&to, request.query, answer);
                    return Ok(Served::Answered);
                }
                return stored::stored_file(request, index, options(settings, request.error_status), answer);
            }
            if !settings.browse || hidden(name) {
                return absent(settings);
            }
            if let Some(to) = page_slash_to_add(request.original_path, request.path) {
                redirect::permanent(&to, request.query, answer);
                return Ok(Served::Answered);
            }
            stored::only_get_and_head(request.head)?;
            let listing =
                listing(settings, request.store, number, &hidden).ok_or(HttpError::FileUnreadable)?;
            browse::answer(listing, request.head, name, request.query, answer);
            Ok(Served::Answered)
        }
    }
}

/// How `file_server` sends files.
pub(super) fn options(settings: &FileServer, error_status: Option<u16>) -> ResponseOptions<'_> {
    ResponseOptions {
        cache_control: None,
        status: settings.status.or(error_status),
        precompressed: &settings.precompressed,
        follow_outside: settings.follow_outside,
        varies_by_accept: false,
    }
}

/// Nothing is there, or nothing that may be seen.
pub(super) fn absent(settings: &FileServer) -> Result<Served, HttpError> {
    if settings.pass_through { Ok(Served::PassedOn) } else { Err(HttpError::NotFound) }
}

/// Where a file is asked for with a slash at its end: the path without it.
pub(super) fn slash_to_remove<'a>(
    settings: &FileServer,
    original: &'a [u8],
    current: &[u8],
) -> Option<&'a [u8]> {
    let without = original.strip_suffix(b"/").filter(|without| !without.is_empty())?;
    (settings.canonical_uris && redirect::same_last_segment(original, current)).then_some(without)
}

/// Where a folder's index is asked for without a slash at its end: the path with it.
pub(super) fn slash_to_add(settings: &FileServer, original: &[u8], current: &[u8]) -> Option<Vec<u8>> {
    let missing = !original.ends_with(b"/") && redirect::same_last_segment(original, current);
    (settings.canonical_uris && missing).then(|| redirect::with_slash(original))
}

/// The links of a directory page are relative: without the slash they would lead elsewhere, whatever
/// `canonical_uris` says. An empty path is what `handle_path` leaves of its own prefix.
pub(super) fn page_slash_to_add(original: &[u8], current: &[u8]) -> Option<Vec<u8>> {
    let own = current.is_empty() || redirect::same_last_segment(original, current);
    (own && !original.ends_with(b"/")).then(|| redirect::with_slash(original))
}

/// Looks at `folder/name` without allocating where it is short.
pub(super) fn with_joined<T>(folder: &[u8], name: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    /// Longer paths exist, and may cost an allocation.
    const SHORT: usize = 256;
    if folder.is_empty() {
        return look(name);
    }
    let length = folder.len() + 1 + name.len();
    let mut buffer = [0_u8; SHORT];
    match buffer.get_mut(..length) {
        Some(joined) => {
            let (before, after) = joined.split_at_mut(folder.len());
            before.copy_from_slice(folder);
            if let Some((slash, rest)) = after.split_first_mut() {
                *slash = b'/';
                rest.copy_from_slice(name);
            }
            look(joined)
        }
        None => look(&[folder, b"/", name].concat()),
    }
}

fn listing(
    settings: &FileServer,
    store: &Store,
    number: u32,
    hidden: &dyn Fn(&[u8]) -> bool,
) -> Option<Listing> {
    let folder = store.folders.get(usize::try_from(number).ok()?)?;
    let mut listing = Listing::default();
    for (name, node) in &folder.entries {
        let dotfile = name.starts_with(b".") && !settings.dotfiles;
        let is_left_out = |path: &[u8]| hidden(path) || !path::can_be_asked_for(path);
        if dotfile || with_joined(&folder.path, name, is_left_out) {
            continue;
        }
        let entry = match *node {
            Node::File(number) => {
                let file = store.file(number)?;
                browse::Entry::file(name, file.length, file.modified)
            }
            Node::Folder(number) => {
                let folder = store.folders.get(usize::try_from(number).ok()?)?;
                browse::Entry::folder(name, folder.modified)
            }
        };
        if !listing.push(entry) {
            break;
        }
    }
    Some(listing)
}
