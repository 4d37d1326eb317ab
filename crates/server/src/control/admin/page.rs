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

macro_rules! asset {
    ($file:literal, $type:literal) => {
        asset!(concat!("/dashboard/", $file), $file, $type)
    };
    ($path:expr, $file:literal, $type:literal) => {
        Asset {
            path: $path,
            content_type: $type,
            body: include_bytes!(concat!("../../../../../dashboard/dist/", $file)),
        }
    };
}

/// What `npm run build` in `dashboard/` has made; its tests compare the two.
static ASSETS: [Asset; 4] = [
    asset!("/dashboard/", "index.html", "text/html; charset=utf-8"),
    asset!("assets/dashboard.js", "text/javascript; charset=utf-8"),
    asset!("assets/dashboard.css", "text/css; charset=utf-8"),
    asset!("assets/icon.svg", "image/svg+xml"),
];

/// The file at this path.
pub(super) fn asset(path: &[u8]) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path.as_bytes() == path)
}
