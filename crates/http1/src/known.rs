//! The header fields that are looked up by name on the way of a request.
//!
//! Owns the list of names and the recognition of one. Never allocates; knows nothing about values.

/// Declares the fields once, so that the variants, their names and their number cannot disagree.
macro_rules! known_fields {
    ($($variant:ident $name:literal,)+) => {
        /// A field whose place in a head is remembered while it is parsed, so that a lookup builds no map.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each variant is the field of that name")]
        pub enum Known {
            $($variant,)+
        }

        impl Known {
            /// All of them, in the order of their discriminants.
            pub const ALL: &[Known] = &[$(Known::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = Known::ALL.len();

            /// The name as it is usually written.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Known::$variant => $name,)+
                }
            }
        }
    };
}

known_fields! {
    Accept "Accept",
    AcceptEncoding "Accept-Encoding",
    Authorization "Authorization",
    Connection "Connection",
    ContentEncoding "Content-Encoding",
    ContentLength "Content-Length",
    ContentType "Content-Type",
    Cookie "Cookie",
    Date "Date",
    Etag "ETag",
    Expect "Expect",
    Host "Host",
    IfMatch "If-Match",
    IfModifiedSince "If-Modified-Since",
    IfNoneMatch "If-None-Match",
    IfRange "If-Range",
    IfUnmodifiedSince "If-Unmodified-Since",
    KeepAlive "Keep-Alive",
    LastModified "Last-Modified",
    Location "Location",
    Origin "Origin",
    Range "Range",
    Referer "Referer",
    SecFetchDest "Sec-Fetch-Dest",
    SecFetchMode "Sec-Fetch-Mode",
    Te "TE",
    Trailer "Trailer",
    TransferEncoding "Transfer-Encoding",
    Upgrade "Upgrade",
    UserAgent "User-Agent",
    Vary "Vary",
    XForwardedFor "X-Forwarded-For",
    XForwardedHost "X-Forwarded-Host",
    XForwardedProto "X-Forwarded-Proto",
}

impl Known {
    /// The known field of this name in any case (RFC 9110 section 5.1).
    ///
    /// Length and first letter leave at most two candidates, so a head costs about one comparison a field.
    pub fn from_name(name: &[u8]) -> Option<Known> {
        let first = name.first()?.to_ascii_lowercase();
        let candidates: &[Known] = match (name.len(), first) {
            (2, b't') => &[Known::Te],
            (4, b'h') => &[Known::Host],
            (4, b'd') => &[Known::Date],
            (4, b'e') => &[Known::Etag],
            (4, b'v') => &[Known::Vary],
            (5, b'r') => &[Known::Range],
            (6, b'a') => &[Known::Accept],
            (6, b'c') => &[Known::Cookie],
            (6, b'e') => &[Known::Expect],
            (6, b'o') => &[Known::Origin],
            (7, b'r') => &[Known::Referer],
            (7, b't') => &[Known::Trailer],
            (7, b'u') => &[Known::Upgrade],
            (8, b'i') => &[Known::IfMatch, Known::IfRange],
            (8, b'l') => &[Known::Location],
            (10, b'c') => &[Known::Connection],
            (10, b'k') => &[Known::KeepAlive],
            (10, b'u') => &[Known::UserAgent],
            (12, b'c') => &[Known::ContentType],
            (13, b'a') => &[Known::Authorization],
            (13, b'i') => &[Known::IfNoneMatch],
            (13, b'l') => &[Known::LastModified],
            (14, b'c') => &[Known::ContentLength],
            (14, b's') => &[Known::SecFetchDest, Known::SecFetchMode],
            (15, b'a') => &[Known::AcceptEncoding],
            (15, b'x') => &[Known::XForwardedFor],
            (16, b'c') => &[Known::ContentEncoding],
            (16, b'x') => &[Known::XForwardedHost],
            (17, b'i') => &[Known::IfModifiedSince],
            (17, b't') => &[Known::TransferEncoding],
            (17, b'x') => &[Known::XForwardedProto],
            (19, b'i') => &[Known::IfUnmodifiedSince],
            _ => &[],
        };
        // The usual spelling is one comparison of words; any other is compared letter by letter.
        let is = |known: &Known| {
            let usual = known.name().as_bytes();
            name == usual || name.eq_ignore_ascii_case(usual)
        };
        candidates.iter().copied().find(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_recognised_in_any_case_and_no_neighbour_is() {
        for (index, known) in Known::ALL.iter().enumerate() {
            assert_eq!(*known as usize, index);
            let name = known.name();
            for spelling in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                assert_eq!(Known::from_name(spelling.as_bytes()), Some(*known), "{spelling}");
            }
            assert_eq!(Known::from_name(format!("{name}x").as_bytes()), None);
            assert_eq!(Known::from_name(&name.as_bytes()[1..]), None);
            assert_eq!(Known::from_name(name.replace('-', "_").as_bytes()).is_some(), !name.contains('-'));
        }
        assert_eq!(Known::from_name(b""), None);
    }
}
