//! The PROXY protocol, versions 1 and 2: what a load balancer says before the first byte of a connection, namely whose it is.
//!
//! Reads the header out of the bytes that a connection begins with, and never waits. A header has one reading or is refused:
//! whoever takes another address from it than the sender meant lets the wrong one in. Who may send one is for the
//! configuration to say. The text is "The PROXY protocol", versions 1 and 2, of HAProxy (doc/proxy-protocol.txt).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{PROXY_LINE_BYTES_MAX, PROXY_PAYLOAD_BYTES_MAX};

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// More bytes are needed to say.
    Incomplete,
    /// No header: the bytes belong to what follows.
    NoHeader,
    /// A header.
    Header {
        /// Bytes of it; what follows begins behind them.
        length: usize,
        /// Whose connection it is. `None`: that of whoever sends the header, or of somebody without such an address.
        client: Option<SocketAddr>,
    },
}

/// A header that is not one, or that has more than one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Bytes of the longest header.
pub const HEADER_BYTES_MAX: usize = PREFIX_BYTES + PROXY_PAYLOAD_BYTES_MAX;

/// What version 1 begins with. No method of HTTP is called so, and no record of TLS begins with a letter.
const LINE: &[u8] = b"PROXY";
/// What version 2 begins with (section 2.2).
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, the version and command, the family and protocol, and the length of what follows.
const PREFIX_BYTES: usize = 16;

/// Reads what a connection begins with: all that has come so far, or its first [`HEADER_BYTES_MAX`] bytes.
pub fn read(bytes: &[u8]) -> Result<Beginning, Malformed> {
    if bytes.starts_with(LINE) {
        read_line(bytes)
    } else if bytes.starts_with(SIGNATURE) {
        read_binary(bytes)
    } else if LINE.starts_with(bytes) || SIGNATURE.starts_with(bytes) {
        Ok(Beginning::Incomplete)
    } else {
        Ok(Beginning::NoHeader)
    }
}

/// Version 1: a line (section 2.1).
fn read_line(bytes: &[u8]) -> Result<Beginning, Malformed> {
    let within = bytes.get(..PROXY_LINE_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
        return if within.len() == PROXY_LINE_BYTES_MAX { Err(Malformed) } else { Ok(Beginning::Incomplete) };
    };
    let line = within.get(..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(Malformed)?;
    let length = end + 1;
    // What follows UNKNOWN is to be ignored; it is one line all the same.
    let is_unknown = line == b"PROXY UNKNOWN" || line.starts_with(b"PROXY UNKNOWN ");
    if is_unknown && !line.contains(&b'\r') {
        return Ok(Beginning::Header { length, client: None });
    }
    let line = std::str::from_utf8(line).map_err(|_| Malformed)?;
    let mut words = line.split(' ');
    let mut word = || words.next().ok_or(Malformed);
    let (_, family) = (word()?, word()?);
    let source = address(family, word()?)?;
    // The destination is not needed, but has to be sound.
    address(family, word()?)?;
    let client = SocketAddr::new(source, port(word()?)?);
    port(word()?)?;
    if words.next().is_some() || !line.starts_with("PROXY ") {
        return Err(Malformed);
    }
    Ok(Beginning::Header { length, client: Some(client) })
}

/// "The advertised protocol family dictates what format to use."
fn address(family: &str, text: &str) -> Result<IpAddr, Malformed> {
    match family {
        "TCP4" => text.parse::<Ipv4Addr>().map(IpAddr::V4).map_err(|_| Malformed),
        "TCP6" => text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| Malformed),
        _ => Err(Malformed),
    }
}

/// A decimal number without leading zeros or a sign.
fn port(text: &str) -> Result<u16, Malformed> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain).ok_or(Malformed)
}

/// Version 2: binary (section 2.2).
fn read_binary(bytes: &[u8]) -> Result<Beginning, Malformed> {
    let fixed = bytes.get(SIGNATURE.len()..PREFIX_BYTES.min(bytes.len())).unwrap_or_default();
    // Each as soon as it is there: nobody waits for the rest of what is refused.
    let is_local = match fixed.first() {
        None => return Ok(Beginning::Incomplete),
        Some(0x20) => true,
        Some(0x21) => false,
        Some(_) => return Err(Malformed),
    };
    let family = match fixed.get(1) {
        None => return Ok(Beginning::Incomplete),
        // The family of a connection of its own says nothing.
        Some(_) if is_local => Family::Unspecified,
        Some(0x00) => Family::Unspecified,
        Some(0x11) => Family::Four,
        Some(0x21) => Family::Six,
        Some(0x31) => Family::Unix,
        // Datagrams do not come through a connection.
        Some(_) => return Err(Malformed),
    };
    let Some(length) = fixed.get(2..4).and_then(number) else { return Ok(Beginning::Incomplete) };
    if length > PROXY_PAYLOAD_BYTES_MAX || length < family.address_bytes() {
        return Err(Malformed);
    }
    let length = PREFIX_BYTES + length;
    let Some(payload) = bytes.get(PREFIX_BYTES..length) else { return Ok(Beginning::Incomplete) };
    let (addresses, additions) = payload.split_at_checked(family.address_bytes()).ok_or(Malformed)?;
    if !is_local {
        check_additions(additions)?;
    }
    Ok(Beginning::Header { length, client: family.client(addresses) })
}

/// What version 2 says an address is.
#[derive(Clone, Copy)]
enum Family {
    Unspecified,
    Four,
    Six,
    Unix,
}

impl Family {
    /// Bytes of both addresses and ports.
    fn address_bytes(self) -> usize {
        match self {
            Self::Unspecified => 0,
            Self::Four => 12,
            Self::Six => 36,
            Self::Unix => 216,
        }
    }

    /// Source, destination, their ports.
    fn client(self, bytes: &[u8]) -> Option<SocketAddr> {
        let (ip, port) = match self {
            Self::Unspecified | Self::Unix => return None,
            Self::Four => (<[u8; 4]>::try_from(bytes.get(..4)?).ok()?.into(), bytes.get(8..10)?),
            Self::Six => (<[u8; 16]>::try_from(bytes.get(..16)?).ok()?.into(), bytes.get(32..34)?),
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(port.try_into().ok()?)))
    }
}

/// Type, length and value, one after the other (section 2.2.1). None is needed here, but they have to end where the header ends.
fn check_additions(mut bytes: &[u8]) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        let length = bytes.get(1..3).and_then(number).ok_or(Malformed)?;
        bytes = bytes.get(3 + length..).ok_or(Malformed)?;
    }
    Ok(())
}

/// Two bytes, the higher one first.
fn number(bytes: &[u8]) -> Option<usize> {
    bytes.try_into().ok().map(u16::from_be_bytes).map(usize::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONGEST_LINE: &str = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
        ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";

    fn binary(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = [SIGNATURE, &[command, family]].concat();
        bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn client(bytes: &[u8]) -> Option<String> {
        match read(bytes) {
            Ok(Beginning::Header { length, client }) if length == bytes.len() => {
                Some(client.map_or_else(|| "its own".to_owned(), |client| client.to_string()))
            }
            _ => None,
        }
    }

    #[test]
    fn a_header_says_whose_connection_it_is() {
        let four = [&[192, 0, 2, 1, 198, 51, 100, 1][..], &[0x12, 0x34, 0, 80]].concat();
        let six = [&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 16], &[1, 0, 0, 80]]
            .concat();
        let with_additions = [&four[..], &[4, 0, 2, 9, 9, 1, 0, 0]].concat();
        for (bytes, expected) in [
            (b"PROXY TCP4 192.0.2.1 198.51.100.1 4711 80\r\n".to_vec(), "192.0.2.1:4711"),
            (b"PROXY TCP6 2001:db8::1 ::1 65535 0\r\n".to_vec(), "[2001:db8::1]:65535"),
            (b"PROXY UNKNOWN\r\n".to_vec(), "its own"),
            (LONGEST_LINE.as_bytes().to_vec(), "its own"),
            (binary(0x21, 0x11, &four), "192.0.2.1:4660"),
            (binary(0x21, 0x21, &six), "[2001:db8::1]:256"),
            (binary(0x21, 0x11, &with_additions), "192.0.2.1:4660"),
            (binary(0x21, 0x31, &[0; 216]), "its own"),
            (binary(0x21, 0x00, &[]), "its own"),
            (binary(0x20, 0x00, &[]), "its own"),
            (binary(0x20, 0xff, &[1, 2, 3]), "its own"),
            (binary(0x21, 0x00, &[&[4, 2, 21][..], &[0; 533]].concat()), "its own"),
        ] {
            assert_eq!(client(&bytes).as_deref(), Some(expected), "{}", bytes.escape_ascii());
        }
        assert_eq!(LONGEST_LINE.len(), PROXY_LINE_BYTES_MAX);
    }

    #[test]
    fn what_has_two_readings_or_none_is_refused() {
        let four = [192, 0, 2, 1, 198, 51, 100, 1, 0x12, 0x34, 0, 80];
        let mut bytes: Vec<Vec<u8>> = [
            "PROXY TCP4 192.0.2.1 198.51.100.1 4711 80\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 4711\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 4711 80 \r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 4711 80 x\r\n",
            "PROXY  TCP4 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXY\tTCP4 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXYX TCP4 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXY TCP4 192.0.2.01 198.51.100.1 4711 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 04711 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +4711 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 65536 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.256 4711 80\r\n",
            "PROXY TCP4 2001:db8::1 ::1 4711 80\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXY TCP6 fe80::1%eth0 ::1 4711 80\r\n",
            "PROXY tcp4 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 4711 80\r\n",
            "PROXY UNKNOWNX\r\n",
            "PROXY UNKNOWN a\rb\r\n",
            "PROXY / HTTP/1.1\r\n",
            "PROXY\r\n",
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
        bytes.push(format!("PROXY UNKNOWN {}", "f".repeat(93)).into_bytes());
        bytes.extend([
            binary(0x11, 0x11, &four),
            binary(0x22, 0x11, &four),
            binary(0x21, 0x12, &four),
            binary(0x21, 0x01, &four),
            binary(0x21, 0x41, &four),
            binary(0x21, 0x21, &four),
            binary(0x21, 0x31, &[0; 215]),
            binary(0x21, 0x11, &four[..11]),
            // Additions that end beyond the header, or begin behind their end.
            binary(0x21, 0x11, &[&four[..], &[4, 0, 2, 9]].concat()),
            binary(0x21, 0x11, &[&four[..], &[4, 0]].concat()),
            binary(0x20, 0x00, &[0; PROXY_PAYLOAD_BYTES_MAX + 1]),
        ]);
        for bytes in bytes {
            assert_eq!(read(&bytes), Err(Malformed), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn other_beginnings_are_no_header() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROPFIND / HTTP/1.1",
            b"\r\nGET / HTTP/1.1",
            b"\x16\x03\x01\x02\x00",
        ] {
            assert_eq!(read(bytes), Ok(Beginning::NoHeader), "{}", bytes.escape_ascii());
        }
        for bytes in [&b""[..], b"P", b"PROX", b"PROXY TCP4 192", b"\r\n\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21"] {
            assert_eq!(read(bytes), Ok(Beginning::Incomplete), "{}", bytes.escape_ascii());
        }
    }

    /// Bytes that are nearly headers.
    fn nearly() -> impl Strategy<Value = Vec<u8>> {
        let line = "PROXY (TCP4|TCP6|UNKNOWN)( (192\\.0\\.2\\.[0-9]{1,3}|[0-9a-f:]{2,12})){0,3}( [0-9]{1,6}){0,3}\r?\n[ -~]{0,9}";
        let family = prop::sample::select(vec![0x00u8, 0x11, 0x12, 0x21, 0x31, 0x41]);
        let payload = prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..600);
        prop_oneof![
            line.prop_map(String::into_bytes),
            (0x1fu8..0x23, family, payload)
                .prop_map(|(command, family, payload)| binary(command, family, &payload)),
            prop::collection::vec(any::<u8>(), 0..40),
        ]
    }

    proptest! {
        #[test]
        fn a_header_reads_the_same_however_it_arrives(bytes in nearly(), behind in prop::collection::vec(any::<u8>(), 0..9)) {
            let whole = read(&bytes);
            for end in 0..bytes.len() {
                let part = read(&bytes[..end]);
                // Once something is known, it stays.
                prop_assert!(part == Ok(Beginning::Incomplete) || part == whole);
            }
            let followed = read(&[&bytes[..], &behind].concat());
            prop_assert!(whole == Ok(Beginning::Incomplete) || followed == whole);
            if let Ok(Beginning::Header { length, .. }) = whole {
                prop_assert!(length <= bytes.len() && length <= HEADER_BYTES_MAX);
            }
            prop_assert!(bytes.len() < HEADER_BYTES_MAX || whole != Ok(Beginning::Incomplete));
        }
    }
}
