//! The field names that a head block writes as one byte.
//!
//! Owns the table and how a name is found in it. Never allocates, knows nothing about values. The order is
//! part of the protocol: docs/worker-protocol.md lists the same names, and a test compares the two.

/// The bit of an interned name: no literal name begins with a byte from here on.
pub(crate) const INTERNED_BIT: u8 = 0x80;

/// The bit that says that the name is in lower case.
const LOWER_BIT: u8 = 0x40;

/// The bits of the number.
const NUMBER_BITS: u8 = 0x3F;

/// How many names there are: all that six bits can number.
pub const NAMES: usize = 64;

/// Between a name and its value in an HTTP/1 field line.
const LINE_SEPARATOR_BYTES: usize = ": ".len();

/// The byte of a head block that stands for a name in one of its two spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interned(u8);

/// What the table knows of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// In this very spelling.
    Exact(Interned),
    /// In a spelling of its own, so that it has to be sent in full.
    Odd,
    Unknown,
}

/// Declares the names once, so that constants, numbers and both spellings cannot disagree.
macro_rules! interned_names {
    ($($constant:ident $name:literal,)+) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "only its numbers are used, below")]
        enum Number {
            $($constant,)+
        }

        #[expect(missing_docs, reason = "each constant is the field of that name, as it is usually written")]
        impl Interned {
            $(pub const $constant: Interned = Interned(INTERNED_BIT | Number::$constant as u8);)+
        }

        /// The beginning of a field line with each name, as usually written and in lower case.
        static LINE_STARTS: [[&[u8]; 2]; NAMES] = [$([
            concat!($name, ": ").as_bytes(),
            &lower_case::<{ concat!($name, ": ").len() }>(concat!($name, ": ").as_bytes()),
        ],)+];
    };
}

interned_names! {
    ACCEPT "Accept",
    ACCEPT_ENCODING "Accept-Encoding",
    ACCEPT_LANGUAGE "Accept-Language",
    ACCEPT_RANGES "Accept-Ranges",
    ACCESS_CONTROL_ALLOW_CREDENTIALS "Access-Control-Allow-Credentials",
    ACCESS_CONTROL_ALLOW_HEADERS "Access-Control-Allow-Headers",
    ACCESS_CONTROL_ALLOW_METHODS "Access-Control-Allow-Methods",
    ACCESS_CONTROL_ALLOW_ORIGIN "Access-Control-Allow-Origin",
    ACCESS_CONTROL_EXPOSE_HEADERS "Access-Control-Expose-Headers",
    ACCESS_CONTROL_REQUEST_HEADERS "Access-Control-Request-Headers",
    ACCESS_CONTROL_REQUEST_METHOD "Access-Control-Request-Method",
    AGE "Age",
    ALLOW "Allow",
    AUTHORIZATION "Authorization",
    CACHE_CONTROL "Cache-Control",
    CONTENT_DISPOSITION "Content-Disposition",
    CONTENT_ENCODING "Content-Encoding",
    CONTENT_LANGUAGE "Content-Language",
    CONTENT_LENGTH "Content-Length",
    CONTENT_LOCATION "Content-Location",
    CONTENT_RANGE "Content-Range",
    CONTENT_SECURITY_POLICY "Content-Security-Policy",
    CONTENT_TYPE "Content-Type",
    COOKIE "Cookie",
    DATE "Date",
    ETAG "ETag",
    EXPIRES "Expires",
    FORWARDED "Forwarded",
    HOST "Host",
    IF_MATCH "If-Match",
    IF_MODIFIED_SINCE "If-Modified-Since",
    IF_NONE_MATCH "If-None-Match",
    IF_RANGE "If-Range",
    IF_UNMODIFIED_SINCE "If-Unmodified-Since",
    LAST_MODIFIED "Last-Modified",
    LINK "Link",
    LOCATION "Location",
    ORIGIN "Origin",
    PRIORITY "Priority",
    RANGE "Range",
    REFERER "Referer",
    REFERRER_POLICY "Referrer-Policy",
    RETRY_AFTER "Retry-After",
    SEC_FETCH_DEST "Sec-Fetch-Dest",
    SEC_FETCH_MODE "Sec-Fetch-Mode",
    SEC_FETCH_SITE "Sec-Fetch-Site",
    SEC_FETCH_USER "Sec-Fetch-User",
    SEC_WEBSOCKET_ACCEPT "Sec-WebSocket-Accept",
    SEC_WEBSOCKET_KEY "Sec-WebSocket-Key",
    SEC_WEBSOCKET_PROTOCOL "Sec-WebSocket-Protocol",
    SEC_WEBSOCKET_VERSION "Sec-WebSocket-Version",
    SERVER "Server",
    SET_COOKIE "Set-Cookie",
    STRICT_TRANSPORT_SECURITY "Strict-Transport-Security",
    UPGRADE "Upgrade",
    UPGRADE_INSECURE_REQUESTS "Upgrade-Insecure-Requests",
    USER_AGENT "User-Agent",
    VARY "Vary",
    WWW_AUTHENTICATE "WWW-Authenticate",
    X_CONTENT_TYPE_OPTIONS "X-Content-Type-Options",
    X_FORWARDED_FOR "X-Forwarded-For",
    X_FRAME_OPTIONS "X-Frame-Options",
    X_POWERED_BY "X-Powered-By",
    X_REQUESTED_WITH "X-Requested-With",
}

const fn lower_case<const LENGTH: usize>(text: &[u8]) -> [u8; LENGTH] {
    let mut lower = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        lower[at] = text[at].to_ascii_lowercase();
        at += 1;
    }
    lower
}

impl Interned {
    /// The name of this byte of a head block; `None` for the first byte of a name in full.
    pub const fn from_byte(byte: u8) -> Option<Interned> {
        if byte & INTERNED_BIT == 0 { None } else { Some(Interned(byte)) }
    }

    /// The byte that stands for it in a head block.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Its place in the table, whatever the spelling: below [`NAMES`].
    pub const fn number(self) -> u8 {
        self.0 & NUMBER_BITS
    }

    /// In lower case.
    pub const fn is_lower(self) -> bool {
        self.0 & LOWER_BIT != 0
    }

    /// The same name in lower case.
    pub const fn lower(self) -> Interned {
        Interned(self.0 | LOWER_BIT)
    }

    /// The same field (RFC 9110 section 5.1: names have no case).
    pub const fn is(self, other: Interned) -> bool {
        self.number() == other.number()
    }

    /// The name as it is usually written.
    pub fn name(self) -> &'static [u8] {
        without_separator(LINE_STARTS[usize::from(self.number())][0])
    }

    /// The name in lower case.
    pub fn lower_name(self) -> &'static [u8] {
        without_separator(LINE_STARTS[usize::from(self.number())][1])
    }

    /// The name as it stood in the head block.
    pub fn spelling(self) -> &'static [u8] {
        without_separator(self.line_start())
    }

    /// The beginning of an HTTP/1 field line in the spelling that stood in the head block: `Content-Type: `.
    pub fn line_start(self) -> &'static [u8] {
        LINE_STARTS[usize::from(self.number())][usize::from(self.is_lower())]
    }

    /// The name in one of its two spellings; `None` for every other, which has to be sent in full.
    pub fn of(name: &[u8]) -> Option<Interned> {
        match look(name) {
            Looked::Exact(interned) => Some(interned),
            Looked::Odd | Looked::Unknown => None,
        }
    }

    /// Whether the name is in the table, whatever its spelling.
    pub fn is_known_in_any_case(name: &[u8]) -> bool {
        look(name) != Looked::Unknown
    }
}

fn without_separator(line_start: &'static [u8]) -> &'static [u8] {
    &line_start[..line_start.len() - LINE_SEPARATOR_BYTES]
}

/// One multiplication and one comparison: no two names have the same place.
pub(crate) fn look(name: &[u8]) -> Looked {
    let Some(place) = place(name) else { return Looked::Unknown };
    let number = NUMBERS[place];
    let Some([usual, lower]) = LINE_STARTS.get(usize::from(number)) else { return Looked::Unknown };
    if usual.len() != name.len() + LINE_SEPARATOR_BYTES {
        Looked::Unknown
    } else if usual.starts_with(name) {
        Looked::Exact(Interned(INTERNED_BIT | number))
    } else if lower.starts_with(name) {
        Looked::Exact(Interned(INTERNED_BIT | LOWER_BIT | number))
    } else if lower.iter().zip(name).all(|(lower, byte)| *lower == byte.to_ascii_lowercase()) {
        Looked::Odd
    } else {
        Looked::Unknown
    }
}

/// Places of the perfect hash.
const PLACES: usize = 256;

/// A place that no name has.
const NOBODY: u8 = u8::MAX;

/// Found by trying: with it no two names share a place. The table below does not compile with another.
const MULTIPLIER: u32 = 0x5ab4_c991;

static NUMBERS: [u8; PLACES] = {
    let mut numbers = [NOBODY; PLACES];
    let mut number = 0;
    while number < NAMES {
        let (name, _) = LINE_STARTS[number][0].split_at(LINE_STARTS[number][0].len() - LINE_SEPARATOR_BYTES);
        let Some(place) = place(name) else { panic!("a name is too short") };
        assert!(numbers[place] == NOBODY, "two names have the same place: find another multiplier");
        numbers[place] = number as u8;
        number += 1;
    }
    numbers
};

/// Length and three letters tell the names apart. `0x20` makes letters lower-case; what else it changes is
/// found out by the comparison.
const fn place(name: &[u8]) -> Option<usize> {
    let length = name.len();
    if length < 3 {
        return None;
    }
    let letters = [length as u8, name[0] | 0x20, name[length / 2] | 0x20, name[length - 3] | 0x20];
    Some((u32::from_le_bytes(letters).wrapping_mul(MULTIPLIER) >> 24) as usize)
}
