//! The Accept-Encoding field: which form of a file a client takes (RFC 9110 section 12.5.3).
//!
//! Pure and without allocation: it is read on every request. What is malformed is skipped, element by
//! element; a request is never refused because of it.

use onehop_config::checked::Encoding;

/// How much a client likes each coding, in thousandths; 0 is a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    gzip: u16,
    brotli: u16,
    zstd: u16,
    /// Only where the client spoke of it; otherwise it is acceptable, but the last choice.
    identity: Option<u16>,
}

impl Accepted {
    /// What a request without the field accepts: any coding by the RFC, but clients that say nothing
    /// are mostly unable to decode, so the bytes as they are.
    pub const IDENTITY: Self = Self { gzip: 0, brotli: 0, zstd: 0, identity: None };

    /// Reads the values of the field, one for each line of it.
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut named = [None::<u16>; 4];
        let mut any = None;
        for element in values.flat_map(|value| value.split(|b| *b == b',')) {
            let (name, quality) = split_quality(element);
            let Some(quality) = quality else { continue };
            let place = match name.len() {
                1 if name == b"*" => {
                    any.get_or_insert(quality);
                    continue;
                }
                4 if name.eq_ignore_ascii_case(b"gzip") => 0,
                6 if name.eq_ignore_ascii_case(b"x-gzip") => 0, // RFC 9110 section 8.4.1.3
                2 if name.eq_ignore_ascii_case(b"br") => 1,
                4 if name.eq_ignore_ascii_case(b"zstd") => 2,
                8 if name.eq_ignore_ascii_case(b"identity") => 3,
                _ => continue,
            };
            // The first word on a coding counts: a later, contradicting one is a mistake.
            if let Some(slot) = named.get_mut(place) {
                slot.get_or_insert(quality);
            }
        }
        let [gzip, brotli, zstd, identity] = named;
        let or_any = |quality: Option<u16>| quality.or(any).unwrap_or(0);
        // `*` speaks of identity only by refusing it; it does not raise it above what is listed.
        let identity = identity.or(any.filter(|quality| *quality == 0));
        Self { gzip: or_any(gzip), brotli: or_any(brotli), zstd: or_any(zstd), identity }
    }

    /// How much it likes a coding.
    pub fn quality(&self, encoding: Encoding) -> u16 {
        match encoding {
            Encoding::Gzip => self.gzip,
            Encoding::Brotli => self.brotli,
            Encoding::Zstd => self.zstd,
        }
    }

    /// The best of what is offered; among equals the first. `None` is identity, also where the client
    /// refuses it and nothing else is there: a page is of more use to it than a 406.
    pub fn choose(&self, offered: impl IntoIterator<Item = Encoding>) -> Option<Encoding> {
        let mut best = None;
        let mut best_quality = self.identity.unwrap_or(0);
        for encoding in offered {
            let quality = self.quality(encoding);
            if quality > best_quality || (best.is_none() && quality > 0 && quality == best_quality) {
                best = Some(encoding);
                best_quality = quality;
            }
        }
        best
    }
}

/// Splits `name;q=0.5` into the name and its weight in thousandths; no weight is 1000. The weight of
/// a malformed element is `None`.
pub fn split_quality(element: &[u8]) -> (&[u8], Option<u16>) {
    let Some(semicolon) = element.iter().position(|b| *b == b';') else {
        return (element.trim_ascii(), Some(1000));
    };
    let name = element[..semicolon].trim_ascii();
    let mut quality = Some(1000);
    for parameter in element[semicolon + 1..].split(|b| *b == b';') {
        if let [b'q' | b'Q', b'=', value @ ..] = parameter.trim_ascii() {
            quality = parse_quality(value);
        }
    }
    (name, quality)
}

/// `0`, `0.5`, `1.000`: at most three decimals, at most 1 (RFC 9110 section 12.4.2).
fn parse_quality(value: &[u8]) -> Option<u16> {
    let (whole, decimals) = match value {
        [whole] => (whole, [].as_slice()),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut thousandths = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    let mut place = 100;
    for digit in decimals {
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths += u16::from(digit - b'0') * place;
        place /= 10;
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use Encoding::{Brotli, Gzip, Zstd};
    use proptest::prelude::*;

    use super::*;

    fn choose(value: &str) -> Option<Encoding> {
        Accepted::parse([value.as_bytes()].into_iter()).choose([Brotli, Zstd, Gzip])
    }

    #[test]
    fn the_best_coding_is_chosen() {
        for (value, expected) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, deflate", Some(Gzip)),
            ("gzip", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("zstd, gzip", Some(Zstd)),
            ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
            ("br;q=0.9, gzip;q=0.9", Some(Brotli)),
            ("br;q=0.001", Some(Brotli)),
            ("br ; q=0.5 , gzip;q=0.4", Some(Brotli)),
            ("*", Some(Brotli)),
            ("*;q=0.5, gzip", Some(Gzip)),
            ("*, br;q=0", Some(Zstd)),
            ("br;q=0, *", Some(Zstd)),
            ("gzip;Q=0.5", Some(Gzip)),
            ("identity;q=0", None),
            ("gzip, identity;q=0", Some(Gzip)),
            ("gzip;q=0.5, identity", None),
            ("gzip, identity", Some(Gzip)),
            ("gzip;q=0.5, identity;q=0.5", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0, br;q=0.000", None),
            ("*;q=0", None),
            ("gzip, *;q=0", Some(Gzip)),
            ("", None),
            ("identity", None),
            ("deflate", None),
            ("compress, x-compress", None),
        ] {
            assert_eq!(choose(value), expected, "{value:?}");
        }
    }

    #[test]
    fn what_is_malformed_is_skipped() {
        for (value, expected) in [
            ("gzip;q=x, br", Some(Brotli)),
            ("br;q=2, gzip", Some(Gzip)),
            ("br;q=1.001, gzip", Some(Gzip)),
            ("br;q=0.1234, gzip;q=0.1", Some(Gzip)),
            ("br;q=, gzip;q=0.1", Some(Gzip)),
            ("br;q=-1, gzip;q=0.1", Some(Gzip)),
            ("br;level=9, gzip;q=0.1", Some(Brotli)),
            (",,;,gzip", Some(Gzip)),
            ("gzip br", None),
            ("gzip;;q=0.5", Some(Gzip)),
            ("br;q=1., gzip;q=0.1", Some(Brotli)),
            ("\u{1}\u{2}", None),
            ("gzip, gzip;q=0", Some(Gzip)),
        ] {
            assert_eq!(choose(value), expected, "{value:?}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let accepted = Accepted::parse([b"gzip".as_slice(), b"br;q=0.5"].into_iter());
        assert_eq!(accepted.choose([Brotli, Gzip]), Some(Gzip));
        assert_eq!(accepted.choose([Brotli]), Some(Brotli));
        assert_eq!(Accepted::parse(std::iter::empty()), Accepted::IDENTITY);
        assert_eq!(Accepted::IDENTITY.choose([Brotli, Gzip, Zstd]), None);
    }

    #[test]
    fn only_what_is_offered_is_chosen() {
        let accepted = Accepted::parse([b"br, gzip;q=0.1".as_slice()].into_iter());
        assert_eq!(accepted.choose([]), None);
        assert_eq!(accepted.choose([Gzip]), Some(Gzip));
    }

    proptest! {
        #[test]
        fn a_coding_that_is_refused_is_never_chosen(qualities in proptest::array::uniform3(0_u16..=10)) {
            let value = format!(
                "gzip;q={}.{}, br;q={}.{}, zstd;q={}.{}",
                qualities[0] / 10, qualities[0] % 10,
                qualities[1] / 10, qualities[1] % 10,
                qualities[2] / 10, qualities[2] % 10,
            );
            let best = qualities.iter().max().copied().unwrap_or(0);
            let chosen = choose(&value);
            let of = |encoding| match encoding { Gzip => qualities[0], Brotli => qualities[1], Zstd => qualities[2] };
            prop_assert_eq!(chosen.map_or(0, of), best);
            prop_assert_eq!(chosen.is_none(), best == 0);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(value in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Accepted::parse([value.as_slice()].into_iter()).choose([Brotli, Zstd, Gzip]);
        }
    }
}
