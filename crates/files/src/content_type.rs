//! Media types of files by their names.
//!
//! mime_guess knows the extensions; this corrects it where browsers or newer standards want otherwise,
//! and adds the charset. Never looks into a file: guessing from content is how an upload becomes a page.

use std::borrow::Cow;

/// The media type of a file, with charset where text has one; empty where nothing is known, and then
/// no Content-Type is sent.
pub fn content_type(path: &[u8]) -> Cow<'static, str> {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    // Apple asks for this file without an extension, and as JSON.
    if name == b"apple-app-site-association" {
        return Cow::Borrowed("application/json");
    }
    let Some(dot) = name.iter().rposition(|b| *b == b'.') else { return Cow::Borrowed("") };
    let Ok(extension) = std::str::from_utf8(&name[dot + 1..]) else { return Cow::Borrowed("") };
    let extension = extension.to_ascii_lowercase();
    if let Some(corrected) = corrected(&extension) {
        return Cow::Borrowed(corrected);
    }
    match mime_guess::from_ext(&extension).first_raw() {
        Some(text) if text.starts_with("text/") && !text.contains(';') => {
            Cow::Owned(format!("{text}; charset=utf-8"))
        }
        Some(known) => Cow::Borrowed(known),
        None => Cow::Borrowed(""),
    }
}

/// Whether a media type, in lower case and without parameters, is among these; `*` at the end stands for anything.
pub fn is_listed(types: &[String], media_type: &[u8]) -> bool {
    types.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => media_type.starts_with(prefix.as_bytes()),
        None => media_type == pattern.as_bytes(),
    })
}

/// Whether files of that type become smaller when they are compressed.
pub fn is_compressible(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or(content_type).trim_ascii();
    if essence.starts_with("text/") || essence.ends_with("+json") || essence.ends_with("+xml") {
        return true;
    }
    matches!(
        essence,
        "application/json"
            | "application/json5"
            | "application/javascript"
            | "application/ecmascript"
            | "application/xml"
            | "application/wasm"
            | "application/graphql"
            | "application/rtf"
            | "application/sql"
            | "application/toml"
            | "application/yaml"
            | "application/x-sh"
            | "application/x-tar"
            | "application/x-ndjson"
            | "application/vnd.ms-fontobject"
            | "application/postscript"
            | "font/ttf"
            | "font/otf"
            | "font/collection"
            | "image/bmp"
            | "image/x-icon"
            | "image/vnd.microsoft.icon"
            | "image/vnd.adobe.photoshop"
            | "model/gltf-binary"
            | "model/obj"
            | "model/stl"
    )
}

/// Where mime_guess says nothing, says an older name, or lacks the charset.
fn corrected(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "html" | "htm" => "text/html; charset=utf-8",
        // RFC 9239: text/javascript is the one name for scripts.
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        // RFC 8259 section 11: JSON has no charset parameter, it is UTF-8.
        "json" | "map" => "application/json",
        "json5" => "application/json5",
        "ndjson" | "jsonl" => "application/x-ndjson",
        "webmanifest" => "application/manifest+json",
        "geojson" => "application/geo+json",
        "jsonld" => "application/ld+json",
        "svg" => "image/svg+xml",
        "xml" => "text/xml; charset=utf-8",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "txt" | "text" | "log" => "text/plain; charset=utf-8",
        "md" | "markdown" => "text/markdown; charset=utf-8",
        "wasm" => "application/wasm",
        "avif" => "image/avif",
        "webp" => "image/webp",
        "jxl" => "image/jxl",
        "ico" => "image/vnd.microsoft.icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "gz" => "application/gzip",
        "zst" => "application/zstd",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "sh" => "application/x-sh",
        // A segment of HLS; TypeScript is not sent to browsers.
        "ts" => "video/mp2t",
        "m3u8" => "application/vnd.apple.mpegurl",
        "mpd" => "application/dash+xml",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "wav" => "audio/wav",
        "flac" => "audio/flac",
        "opus" => "audio/ogg",
        "ics" => "text/calendar; charset=utf-8",
        "vtt" => "text/vtt; charset=utf-8",
        "glb" => "model/gltf-binary",
        "gltf" => "model/gltf+json",
        "rtf" => "application/rtf",
        "epub" => "application/epub+zip",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_types_that_browsers_want() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/INDEX.HTM", "text/html; charset=utf-8"),
            ("assets/index-B3xKq9aZ.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.js.map", "application/json"),
            ("site.webmanifest", "application/manifest+json"),
            ("a.svg", "image/svg+xml"),
            ("sitemap.xml", "text/xml; charset=utf-8"),
            ("robots.txt", "text/plain; charset=utf-8"),
            ("a.csv", "text/csv; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.wasm", "application/wasm"),
            ("a.woff2", "font/woff2"),
            ("a.woff", "font/woff"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.png", "image/png"),
            ("a.jpg", "image/jpeg"),
            ("a.jpeg", "image/jpeg"),
            ("a.gif", "image/gif"),
            ("favicon.ico", "image/vnd.microsoft.icon"),
            ("a.pdf", "application/pdf"),
            ("a.mp4", "video/mp4"),
            ("a.webm", "video/webm"),
            ("a.zip", "application/zip"),
            ("a.tar.gz", "application/gzip"),
            (".well-known/apple-app-site-association", "application/json"),
            ("LICENSE", ""),
            ("folder.js/file", ""),
            ("a.", ""),
            ("a.nobodyknows", ""),
        ] {
            assert_eq!(content_type(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(content_type(b"a.\xff"), "");
        assert_eq!(content_type(b""), "");
    }

    #[test]
    fn what_is_compressed_already_is_left_alone() {
        for path in [
            "a.html",
            "a.js",
            "a.css",
            "a.json",
            "a.svg",
            "a.wasm",
            "a.ttf",
            "a.ico",
            "a.map",
            "a.xml",
            "a.webmanifest",
            "a.rss",
            "a.csv",
        ] {
            assert!(is_compressible(&content_type(path.as_bytes())), "{path}");
        }
        for path in [
            "a.png", "a.jpg", "a.webp", "a.avif", "a.woff2", "a.woff", "a.mp4", "a.zip", "a.gz", "a.pdf",
            "a.mp3", "LICENSE",
        ] {
            assert!(!is_compressible(&content_type(path.as_bytes())), "{path}");
        }
    }
}
