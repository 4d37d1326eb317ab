//! Finds the assets that an index page names.
//!
//! Owns a small bounded scan over HTML: scripts, style sheets, preloads, icons and images at local
//! addresses. Not a parser of HTML, and pure: what it misses is published as it is, what it finds
//! wrongly costs a publication ten seconds at most. Never fails on any input.

use onehop_message::uri::percent_decode;

use crate::limits::{INDEX_ASSETS_MAX, INDEX_SCAN_BYTES_MAX};

/// Paths below the site's root (decoded, no slash at either end) that a page names. `page` is the
/// page's own path below the root.
pub(super) fn named_assets(html: &[u8], page: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = html.get(..INDEX_SCAN_BYTES_MAX).unwrap_or(html);
    let mut base = folder_of(page);
    let mut assets: Vec<Vec<u8>> = Vec::new();
    while let Some(start) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix(b"!--") {
            rest = behind(comment, b"-->");
            continue;
        }
        let (tag, after) = Tag::read(rest);
        rest = after;
        let address = match &*tag.name {
            b"script" | b"img" | b"source" => tag.get(b"src"),
            b"link" if tag.names_asset() => tag.get(b"href"),
            b"base" => {
                match tag.get(b"href").map(|href| local(href, &base)) {
                    // Everything else is relative to another place.
                    Some(None) => return Vec::new(),
                    Some(Some(path)) => base = path,
                    None => {}
                }
                continue;
            }
            _ => None,
        };
        if let Some(path) = address.and_then(|address| local(address, &base))
            && !path.is_empty()
            && !assets.contains(&path)
        {
            assets.push(path);
        }
        if assets.len() >= INDEX_ASSETS_MAX {
            break;
        }
        if let b"script" | b"style" | b"textarea" | b"title" | b"noscript" = &*tag.name {
            // What looks like tags in there is text; what noscript holds is for few.
            rest = behind(rest, &[b"</", &*tag.name].concat());
        }
    }
    assets
}

struct Tag {
    /// Lower case.
    name: Vec<u8>,
    /// Names in lower case.
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Tag {
    /// Reads a tag behind its `<`, and returns what is behind it.
    fn read(input: &[u8]) -> (Self, &[u8]) {
        let (name, mut rest) = word(input, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let mut tag = Self { name: name.to_ascii_lowercase(), attributes: Vec::new() };
        if tag.name.is_empty() {
            return (tag, input);
        }
        loop {
            rest = word(rest, |byte| byte.is_ascii_whitespace() || byte == b'/').1;
            match rest.first() {
                None => return (tag, rest),
                Some(b'>') => return (tag, &rest[1..]),
                Some(_) => {}
            }
            let (name, after) = word(rest, |byte| !byte.is_ascii_whitespace() && !b"=>/".contains(&byte));
            let blank = |byte: u8| byte.is_ascii_whitespace();
            let after = word(after, blank).1;
            let (value, after) = match after.strip_prefix(b"=") {
                Some(after) => value(word(after, blank).1),
                None => (&b""[..], after),
            };
            // Always ahead: a byte that is neither name nor end is passed over.
            rest = if after.len() == rest.len() { &rest[1..] } else { after };
            if tag.attributes.len() < ATTRIBUTES_MAX {
                tag.attributes.push((name.to_ascii_lowercase(), value.to_vec()));
            }
        }
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Whether a link is to something that the page loads.
    fn names_asset(&self) -> bool {
        self.get(b"rel").is_some_and(|rel| {
            rel.split(u8::is_ascii_whitespace)
                .any(|word| LOADED.iter().any(|known| word.eq_ignore_ascii_case(known)))
        })
    }
}

const LOADED: [&[u8]; 7] =
    [b"stylesheet", b"modulepreload", b"preload", b"prefetch", b"icon", b"manifest", b"apple-touch-icon"];

/// Attributes kept of one tag: the interesting tags have a handful.
const ATTRIBUTES_MAX: usize = 32;

fn word(input: &[u8], belongs: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = input.iter().position(|byte| !belongs(*byte)).unwrap_or(input.len());
    input.split_at(end)
}

fn value(input: &[u8]) -> (&[u8], &[u8]) {
    match input.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let (value, rest) = word(&input[1..], |byte| byte != *quote);
            (value, rest.get(1..).unwrap_or_default())
        }
        _ => word(input, |byte| !byte.is_ascii_whitespace() && byte != b'>'),
    }
}

/// What stands behind the first `end`, without regard to case.
fn behind<'a>(input: &'a [u8], end: &[u8]) -> &'a [u8] {
    let found = input.windows(end.len()).position(|window| window.eq_ignore_ascii_case(end));
    found.and_then(|at| input.get(at + end.len()..)).unwrap_or_default()
}

fn folder_of(path: &[u8]) -> Vec<u8> {
    path.iter().rposition(|byte| *byte == b'/').map_or_else(Vec::new, |slash| path[..slash].to_vec())
}

/// The path below the root that an address on a page leads to; `None`: it leads elsewhere.
fn local(address: &[u8], folder: &[u8]) -> Option<Vec<u8>> {
    let address = address.trim_ascii();
    let address = word(address, |byte| byte != b'?' && byte != b'#').0;
    if address.is_empty() || address.starts_with(b"//") || address.contains(&b'\\') {
        return None;
    }
    // A colon before any slash ends a scheme (RFC 3986 section 4.2).
    if word(address, |byte| byte != b'/').0.contains(&b':') {
        return None;
    }
    let decoded = percent_decode(address)?;
    let mut parts: Vec<&[u8]> = Vec::new();
    let relative = !decoded.starts_with(b"/");
    let start = if relative { folder } else { b"" };
    for part in start.split(|byte| *byte == b'/').chain(decoded.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &[&str]) {
        let found: Vec<String> = named_assets(html.as_bytes(), b"index.html")
            .into_iter()
            .map(|path| String::from_utf8_lossy(&path).into_owned())
            .collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn scripts_styles_preloads_icons_and_images_are_assets() {
        check(
            r#"<!doctype html><html><head>
            <link rel="icon" type="image/svg+xml" href="/vite.svg" />
            <script type="module" crossorigin src="/assets/index-C0ffee12.js"></script>
            <link rel="modulepreload" crossorigin href='./assets/vendor-Ab12.js'>
            <LINK REL=stylesheet HREF=/assets/index-D1.css?v=1#x>
            </head><body><img src="logo%20big.png"></body>"#,
            &[
                "vite.svg",
                "assets/index-C0ffee12.js",
                "assets/vendor-Ab12.js",
                "assets/index-D1.css",
                "logo big.png",
            ],
        );
    }

    #[test]
    fn what_leads_elsewhere_is_no_asset() {
        check(
            r#"<a href="/about"><link rel="canonical" href="/"><link rel=stylesheet href="//cdn.test/a.css">
            <script src="https://cdn.test/a.js"></script><img src="data:image/png;base64,AAAA">
            <script src=""></script><script src></script><img src="/"><img src="%zz"><img src="a\b">"#,
            &[],
        );
    }

    #[test]
    fn tags_in_comments_and_in_scripts_are_text() {
        check(
            r#"<!-- <script src="/old.js"></script> --><script>let a = '<img src="/no.png">';</script>
            <title><img src="/no.png"></title><script src="/yes.js"></script>"#,
            &["yes.js"],
        );
    }

    #[test]
    fn addresses_are_relative_to_the_page_or_its_base() {
        let page = br#"<script src="../a.js"></script><script src="b.js"></script>"#;
        assert_eq!(named_assets(page, b"x/y/index.html"), [b"x/a.js".to_vec(), b"x/y/b.js".to_vec()]);
        check(r#"<base href="/app/"><script src="a.js"></script>"#, &["app/a.js"]);
        check(r#"<base href="https://cdn.test/"><script src="a.js"></script>"#, &[]);
    }

    #[test]
    fn broken_pages_end_and_large_ones_are_bounded() {
        for page in ["<", "<script", "<script src", "<script src=", "<script src=\"a", "<!--", "<a =\"", "</"]
        {
            named_assets(page.as_bytes(), b"index.html");
        }
        let many: String = (0..2 * INDEX_ASSETS_MAX).map(|n| format!("<img src=/{n}.png>")).collect();
        assert_eq!(named_assets(many.as_bytes(), b"index.html").len(), INDEX_ASSETS_MAX);
    }

    proptest::proptest! {
        #[test]
        fn no_page_panics(page in "[<>a-z!\\-/=\"' %.0]{0,200}") {
            named_assets(page.as_bytes(), b"a/index.html");
        }
    }
}
