//! The fields of a request that no configuration changes at will: one list for the checker and the server.

/// How a body is sent is decided where it is sent (RFC 9112 section 6).
pub const OF_FRAMING: [&str; 3] = ["content-length", "trailer", "transfer-encoding"];

/// Of one connection (RFC 9110 section 7.6.1).
pub const OF_CONNECTION: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];

/// Names that say who the client is: the server writes them, or takes them from trusted proxies.
const OF_CLIENT: [&[u8]; 8] = [
    b"client-cert",
    b"client-cert-chain",
    b"forwarded",
    b"x-real-ip",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-forwarded-port",
];

/// Also decided before any route: which site answers, whether the body is asked for, who may use a proxy.
const BEFORE_ROUTES: [&str; 4] = ["host", "expect", "proxy-authorization", "proxy-authenticate"];

/// Whether a field says who the client is, also in spellings that become the same name in a CGI-like environment: there
/// PHP has `_` for `.`, others for everything that is no letter or digit.
pub fn is_of_client(name: &[u8]) -> bool {
    if !matches!(name.first(), Some(b'c' | b'C' | b'f' | b'F' | b'x' | b'X')) {
        return false;
    }
    let same = |own: &[u8]| {
        own.len() == name.len()
            && own.iter().zip(name).all(|(own, byte)| {
                *own == byte.to_ascii_lowercase() || (*own == b'-' && !byte.is_ascii_alphanumeric())
            })
    };
    OF_CLIENT.iter().any(|own| same(own))
}

/// Whether `request_header` leaves a field as the client sent it.
pub fn is_kept_by_request_header(name: &[u8]) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    let mut known = OF_FRAMING.iter().chain(&OF_CONNECTION).chain(&BEFORE_ROUTES);
    is_of_client(name) || known.any(is)
}
