//! Directory pages: what stands in a folder, as a page for people or as JSON for programs.
//!
//! Pure: the listing is made by whoever knows the folder, from memory or from disk. Names come from the
//! file system and are escaped wherever they stand. The page needs no script; its look is `browse.css`.

use std::cmp::Ordering;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use onehop_http1::{Known, RequestHead};
use onehop_message::calendar::Moment;
use onehop_message::response::{Body, Response};
use serde::Serialize;

use crate::accept_encoding::split_quality;
use crate::limits::BROWSE_ENTRIES_MAX;
use crate::path::percent_encode;

mod page;

/// What stands in a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<Entry>,
    /// There is more than may stand on one page.
    pub(super) cut: bool,
}

/// One thing in a folder.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    name: Vec<u8>,
    folder: bool,
    link: bool,
    length: u64,
    modified: SystemTime,
    /// Permission bits, `None` where they are not known.
    mode: Option<u32>,
}

impl Listing {
    /// Adds an entry; `false` once the page is full.
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        self.cut = self.entries.len() >= BROWSE_ENTRIES_MAX;
        if !self.cut {
            self.entries.push(entry);
        }
        !self.cut
    }
}

impl Entry {
    /// A file in memory.
    pub(super) fn file(name: &[u8], length: u64, modified: SystemTime) -> Self {
        Self { name: name.to_vec(), folder: false, link: false, length, modified, mode: None }
    }

    /// A folder in memory.
    pub(super) fn folder(name: &[u8], modified: SystemTime) -> Self {
        Self { name: name.to_vec(), folder: true, link: false, length: 0, modified, mode: None }
    }

    /// What the file system knows; for a link, of its target.
    pub(super) fn from_metadata(name: &[u8], metadata: &Metadata, link: bool) -> Self {
        Self {
            name: name.to_vec(),
            folder: metadata.is_dir(),
            link,
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(UNIX_EPOCH),
            mode: Some(metadata.mode() & 0o777),
        }
    }

    /// A relative reference to it: `./` keeps a colon in its name from being taken for a scheme
    /// (RFC 3986 section 4.2).
    fn url(&self) -> String {
        let mut url = b"./".to_vec();
        percent_encode(&self.name, &mut url);
        if self.folder {
            url.push(b'/');
        }
        String::from_utf8_lossy(&url).into_owned()
    }

    fn display_name(&self) -> String {
        let name = String::from_utf8_lossy(&self.name);
        if self.folder { format!("{name}/") } else { name.into_owned() }
    }
}

/// How a page is sorted, from its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sorting {
    by: SortBy,
    descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortBy {
    /// Folders first, then by name: what a page shows at first.
    FoldersFirst,
    Name,
    Size,
    Time,
}

impl Sorting {
    fn from_query(query: Option<&[u8]>) -> Self {
        let mut sorting = Self { by: SortBy::FoldersFirst, descending: false };
        for pair in query.unwrap_or_default().split(|b| *b == b'&') {
            match pair {
                b"sort=name" => sorting.by = SortBy::Name,
                b"sort=namedirfirst" => sorting.by = SortBy::FoldersFirst,
                b"sort=size" => sorting.by = SortBy::Size,
                b"sort=time" => sorting.by = SortBy::Time,
                b"order=asc" => sorting.descending = false,
                b"order=desc" => sorting.descending = true,
                _ => {}
            }
        }
        sorting
    }

    fn sort(self, entries: &mut [Entry]) {
        entries.sort_by(|a, b| {
            let by_name = || {
                a.name
                    .to_ascii_lowercase()
                    .cmp(&b.name.to_ascii_lowercase())
                    .then_with(|| a.name.cmp(&b.name))
            };
            let order = match self.by {
                SortBy::FoldersFirst => b.folder.cmp(&a.folder).then_with(by_name),
                SortBy::Name => by_name(),
                SortBy::Size => a.length.cmp(&b.length).then_with(by_name),
                SortBy::Time => a.modified.cmp(&b.modified).then_with(by_name),
            };
            if self.descending { order.reverse() } else { order }
        });
    }
}

/// The page has a style of its own and nothing else: should a name ever get through unescaped, it still
/// runs nothing.
const POLICY: &[u8] = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                        frame-ancestors 'self'";

/// Answers with the page of a folder. `path` is the folder's, decoded, below the root.
pub(super) fn answer(
    mut listing: Listing,
    head: &RequestHead,
    path: &[u8],
    query: Option<&[u8]>,
    answer: &mut Response,
) {
    let sorting = Sorting::from_query(query);
    sorting.sort(&mut listing.entries);
    answer.status = 200;
    answer.fields.add("Vary", b"Accept");
    // A page is put together for each request and changes with every file in the folder.
    if answer.fields.get("Cache-Control").is_none() {
        answer.fields.add("Cache-Control", b"no-cache");
    }
    if prefers_json(head) {
        answer.fields.set("Content-Type", b"application/json");
        answer.body = Body::Bytes(json(&listing));
    } else {
        answer.fields.set("Content-Type", b"text/html; charset=utf-8");
        if answer.fields.get("Content-Security-Policy").is_none() {
            answer.fields.add("Content-Security-Policy", POLICY);
        }
        answer.body = Body::Bytes(page::html(&listing, path, sorting).into_bytes());
    }
}

/// JSON is named, and liked at least as much as HTML where that is named too.
fn prefers_json(head: &RequestHead) -> bool {
    let (mut json, mut html) = (0, 0);
    for element in head.get_all(Known::Accept).flat_map(|value| value.split(|b| *b == b',')) {
        let (name, quality) = split_quality(element);
        let quality = quality.unwrap_or(0);
        if name.eq_ignore_ascii_case(b"application/json") {
            json = json.max(quality);
        } else if name.eq_ignore_ascii_case(b"text/html") {
            html = html.max(quality);
        }
    }
    json > 0 && json.cmp(&html) != Ordering::Less
}

/// An entry with the names that Caddy gives its fields, so that programs written for it go on working.
#[derive(Serialize)]
struct JsonEntry {
    name: String,
    size: u64,
    url: String,
    mod_time: String,
    mode: u32,
    is_dir: bool,
    is_symlink: bool,
}

fn json(listing: &Listing) -> Vec<u8> {
    /// The bit by which Go's file modes mark a folder.
    const GO_FOLDER: u32 = 1 << 31;
    let entries: Vec<JsonEntry> = listing
        .entries
        .iter()
        .map(|entry| JsonEntry {
            name: entry.display_name(),
            size: entry.length,
            url: entry.url(),
            mod_time: Moment::of(entry.modified).rfc3339(),
            mode: match (entry.mode, entry.folder) {
                (Some(mode), true) => mode | GO_FOLDER,
                (Some(mode), false) => mode,
                (None, true) => 0o755 | GO_FOLDER,
                (None, false) => 0o644,
            },
            is_dir: entry.folder,
            is_symlink: entry.link,
        })
        .collect();
    serde_json::to_vec(&entries).unwrap_or_else(|_| b"[]".to_vec())
}
