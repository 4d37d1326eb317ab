//! The field lines of a file's answers, written once when the file is read.
//!
//! Owns the entity tag and the order of the lines: the ETag's stands first, because a 304 takes it and
//! leaves the rest. Cache-Control and Vary are not among them: they depend on the handler.

use std::sync::Arc;
use std::time::SystemTime;

use onehop_config::checked::Encoding;

use crate::conditional::{http_date, seconds};
use crate::store::Variant;
use crate::store::budget::Held;

impl Variant {
    /// A form of a file: its bytes in that coding (`None`: as they are), the media type of the file
    /// (empty: none), when it changed, and the hash of its uncoded content.
    pub fn new(
        bytes: Arc<[u8]>,
        encoding: Option<Encoding>,
        content_type: &str,
        modified: SystemTime,
        hash: u128,
    ) -> Self {
        let etag = entity_tag(hash, encoding);
        let lines = lines(&etag, encoding, content_type, modified);
        Self { bytes, etag: etag.into(), lines: lines.into(), held: None }
    }

    /// The same form, with its share of the memory bound.
    #[must_use]
    pub fn holding(self, held: Arc<Held>) -> Self {
        Self { held: Some(held), ..self }
    }

    /// How many bytes of [`Variant::lines`] the ETag's line takes.
    pub fn etag_line_length(&self) -> usize {
        etag_line_length(self.etag.as_bytes())
    }
}

/// How many bytes the line of an ETag takes.
pub(crate) fn etag_line_length(etag: &[u8]) -> usize {
    ETAG.len() + etag.len() + 2
}

const ETAG: &str = "ETag: ";

/// The lines of an answer with all of a form.
pub(crate) fn lines(
    etag: &str,
    encoding: Option<Encoding>,
    content_type: &str,
    modified: SystemTime,
) -> Vec<u8> {
    let mut lines = format!("{ETAG}{etag}\r\n");
    if !content_type.is_empty() {
        lines.push_str(&format!("Content-Type: {content_type}\r\n"));
    }
    // A file from the future would claim to be newer than its answer (RFC 9110 section 8.8.2.1).
    if modified <= SystemTime::now()
        && let Some(date) = seconds(modified).and_then(http_date)
    {
        lines.push_str(&format!("Last-Modified: {date}\r\n"));
    }
    if let Some(encoding) = encoding {
        lines.push_str(&format!("Content-Encoding: {}\r\n", coding_name(encoding)));
    }
    lines.push_str("Accept-Ranges: bytes\r\n");
    lines.into_bytes()
}

/// The name of a coding in Content-Encoding and Accept-Encoding.
pub fn coding_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Gzip => "gzip",
        Encoding::Brotli => "br",
        Encoding::Zstd => "zstd",
    }
}

/// The ending of a sidecar file in that coding.
pub fn sidecar_ending(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Gzip => ".gz",
        Encoding::Brotli => ".br",
        Encoding::Zstd => ".zst",
    }
}

/// A strong tag: 128 bits of the content in base64url, and the coding, since each form is a
/// representation of its own (RFC 9110 section 8.8.3.3).
fn entity_tag(hash: u128, encoding: Option<Encoding>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut tag = String::with_capacity(32);
    tag.push('"');
    for place in (0..22_u32).rev() {
        let digit = (hash >> (place * 6)) & 63;
        tag.push(char::from(DIGITS[usize::try_from(digit).unwrap_or(0) & 63]));
    }
    if let Some(encoding) = encoding {
        tag.push('-');
        tag.push_str(coding_name(encoding));
    }
    tag.push('"');
    tag
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_form_carries_the_lines_of_its_answers() {
        let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let form = Variant::new(
            b"x".as_slice().into(),
            Some(Encoding::Gzip),
            "text/css; charset=utf-8",
            modified,
            1,
        );
        assert_eq!(&*form.etag, "\"AAAAAAAAAAAAAAAAAAAAAB-gzip\"");
        assert_eq!(
            std::str::from_utf8(&form.lines).unwrap(),
            "ETag: \"AAAAAAAAAAAAAAAAAAAAAB-gzip\"\r\nContent-Type: text/css; charset=utf-8\r\n\
             Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Encoding: gzip\r\nAccept-Ranges: bytes\r\n"
        );
        assert!(form.lines[..form.etag_line_length()].ends_with(b"-gzip\"\r\n"));
    }

    #[test]
    fn tags_tell_contents_and_codings_apart() {
        let tags = [
            entity_tag(0, None),
            entity_tag(1, None),
            entity_tag(u128::MAX, None),
            entity_tag(1 << 127, None),
            entity_tag(0, Some(Encoding::Brotli)),
            entity_tag(0, Some(Encoding::Zstd)),
        ];
        for (at, tag) in tags.iter().enumerate() {
            assert!(tags[at + 1..].iter().all(|other| other != tag), "{tag}");
        }
    }

    #[test]
    fn a_time_in_the_future_or_at_the_epoch_is_not_sent() {
        let lines = |modified| String::from_utf8(lines("\"a\"", None, "", modified)).unwrap();
        assert_eq!(lines(UNIX_EPOCH), "ETag: \"a\"\r\nAccept-Ranges: bytes\r\n");
        assert_eq!(
            lines(SystemTime::now() + Duration::from_secs(3600)),
            "ETag: \"a\"\r\nAccept-Ranges: bytes\r\n"
        );
    }
}
