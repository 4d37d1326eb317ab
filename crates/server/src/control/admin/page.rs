//! The files of the dashboard, as parts of the program.

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asset {
    path: &'static str,
    /// Its media type.
    pub(super) content_type: &'static str,
    /// What is in it.
    pub(super) body: &'static [u8],
}

/// Header fields of every file: nothing but its own files runs in the page, and no other page shows it.
pub(super) const FIELDS: &str =
    "Content-Security-Policy: default-src 'self'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n";

static ASSETS: [Asset; 1] = [Asset {
    path: "/dashboard/",
    content_type: "text/html; charset=utf-8",
    body: b"<!doctype html><title>onehop</title><p>This onehop was built without its dashboard.</p>\n",
}];

/// The file at this path.
pub(super) fn asset(path: &[u8]) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path.as_bytes() == path)
}
