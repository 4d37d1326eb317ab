//! Field blocks (RFC 7541): requests as plain literals that are never indexed, responses with all that an encoder may use.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};

/// Names and values, in their order.
pub type Fields = Vec<(String, String)>;

/// Octets that a table holds where nobody says otherwise (RFC 9113 section 6.5.2).
const TABLE_BYTES: usize = 4096;

/// A field block of these, each a literal that is never indexed, without Huffman coding (RFC 7541 section 6.2.3).
pub fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        string(&mut block, name.as_bytes());
        string(&mut block, value.as_bytes());
    }
    block
}

fn string(block: &mut Vec<u8>, bytes: &[u8]) {
    integer(block, 0, 7, bytes.len());
    block.extend_from_slice(bytes);
}

/// An integer behind the high bits of its first octet (RFC 7541 section 5.1).
pub fn integer(block: &mut Vec<u8>, high: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        block.push(high | value.to_le_bytes()[0]);
        return;
    }
    block.push(high | most.to_le_bytes()[0]);
    let mut rest = value - most;
    while rest >= 128 {
        block.push(0x80 | (rest % 128).to_le_bytes()[0]);
        rest /= 128;
    }
    block.push(rest.to_le_bytes()[0]);
}

/// Reads the field blocks of one connection.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The newest entry first.
    table: VecDeque<(String, String)>,
    bytes: usize,
    bytes_max: usize,
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder { table: VecDeque::new(), bytes: 0, bytes_max: TABLE_BYTES }
    }

    /// The fields of a block; an error where RFC 7541 has it malformed.
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<Fields> {
        let mut input = Input(block);
        let mut fields = Vec::new();
        while let Some(first) = input.peek() {
            if first & 0x80 != 0 {
                let index = input.integer(7)?;
                fields.push(self.entry(index)?);
            } else if first & 0xc0 == 0x40 {
                let field = self.literal(&mut input, 6)?;
                self.insert(field.clone());
                fields.push(field);
            } else if first & 0xe0 == 0x20 {
                let bytes_max = input.integer(5)?;
                if !fields.is_empty() || bytes_max > TABLE_BYTES {
                    return Err(malformed("a table size update that may not be there"));
                }
                self.bytes_max = bytes_max;
                self.evict();
            } else {
                fields.push(self.literal(&mut input, 4)?);
            }
        }
        Ok(fields)
    }

    fn literal(&self, input: &mut Input<'_>, bits: u32) -> Result<(String, String)> {
        let name = match input.integer(bits)? {
            0 => input.string()?,
            index => self.entry(index)?.0,
        };
        Ok((name, input.string()?))
    }

    fn entry(&self, index: usize) -> Result<(String, String)> {
        let index = index.checked_sub(1).ok_or_else(|| malformed("index 0"))?;
        if let Some(&(name, value)) = STATIC_TABLE.get(index) {
            return Ok((name.to_owned(), value.to_owned()));
        }
        let entry = self.table.get(index - STATIC_TABLE.len());
        entry.cloned().ok_or_else(|| malformed("an index beyond the tables"))
    }

    fn insert(&mut self, field: (String, String)) {
        self.bytes += field.0.len() + field.1.len() + 32;
        self.table.push_front(field);
        self.evict();
    }

    fn evict(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((name, value)) = self.table.pop_back() else { return };
            self.bytes -= name.len() + value.len() + 32;
        }
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(|| malformed("a block that is cut off"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn integer(&mut self, bits: u32) -> Result<usize> {
        let most = (1 << bits) - 1;
        let mut value = usize::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            value += (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed("an integer of too many octets"))
    }

    fn string(&mut self) -> Result<String> {
        let is_coded = self.peek().is_some_and(|byte| byte & 0x80 != 0);
        let length = self.integer(7)?;
        let (text, rest) =
            self.0.split_at_checked(length).ok_or_else(|| malformed("a string that is cut off"))?;
        self.0 = rest;
        let bytes = if is_coded { huffman(text)? } else { text.to_vec() };
        Ok(bytes.into_iter().map(char::from).collect())
    }
}

/// The text of a Huffman code (RFC 7541 section 5.2). The code is canonical: its lengths are enough.
fn huffman(coded: &[u8]) -> Result<Vec<u8>> {
    let mut symbols: Vec<(u8, usize)> =
        CODE_LENGTHS.iter().enumerate().map(|(symbol, length)| (*length, symbol)).collect();
    symbols.sort_unstable();
    let mut text = Vec::new();
    // Of the code that is being read: its bits, their number, and the first code of that length with its rank.
    let (mut code, mut bits) = (0_usize, 0_u8);
    let (mut first, mut rank) = (0_usize, 0_usize);
    for bit in coded.iter().flat_map(|byte| (0..8).rev().map(move |shift| usize::from(byte >> shift) & 1)) {
        code = code << 1 | bit;
        first <<= 1;
        bits += 1;
        let count = symbols.iter().skip(rank).take_while(|(length, _)| *length == bits).count();
        if code < first + count {
            let (_, symbol) =
                symbols.get(rank + code - first).ok_or_else(|| malformed("no such Huffman code"))?;
            text.push(u8::try_from(*symbol).map_err(|_| malformed("the end-of-string symbol"))?);
            (code, bits, first, rank) = (0, 0, 0, 0);
        } else {
            first += count;
            rank += count;
        }
    }
    if bits > 7 || code != (1 << bits) - 1 {
        return Err(malformed("padding that is not the beginning of the end-of-string symbol"));
    }
    Ok(text)
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("a malformed field block: {what}"))
}

/// RFC 7541 appendix A.
const STATIC_TABLE: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Bits of each symbol's code, that of the end-of-string symbol last (RFC 7541 appendix B).
#[rustfmt::skip]
const CODE_LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<char> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
        let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16));
        pairs.map(|byte| byte.expect("hexadecimal")).collect()
    }

    fn shown(fields: &Fields) -> Vec<String> {
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn blocks_of_the_rfc_are_read() {
        // RFC 7541 appendix C.6.
        let mut decoder = Decoder { bytes_max: 256, ..Decoder::new() };
        for (hex, expected) in [
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d \
                 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "302|private|Mon, 21 Oct 2013 20:13:21 GMT|https://www.example.com",
            ),
            ("4883 640e ffc1 c0bf", "307|private|Mon, 21 Oct 2013 20:13:21 GMT|https://www.example.com"),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d \
                 d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 \
                 3d50 07",
                "200|private|Mon, 21 Oct 2013 20:13:22 GMT|https://www.example.com|gzip|\
                 foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ),
        ] {
            let fields = decoder.decode(&bytes(hex)).expect("a block");
            let values: Vec<&str> = fields.iter().map(|(_, value)| value.as_str()).collect();
            assert_eq!(values.join("|"), expected, "{:?}", shown(&fields));
        }
        assert_eq!((decoder.table.len(), decoder.bytes), (3, 215));
    }

    #[test]
    fn what_is_written_is_read() {
        let long = "x".repeat(1000);
        let fields = [(":path", "/a?b"), ("x", ""), ("long", long.as_str())];
        let read = Decoder::new().decode(&literals(&fields)).expect("a block");
        let read: Vec<(&str, &str)> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, fields);
    }

    #[test]
    fn malformed_blocks_are_errors() {
        for hex in ["80", "be", "4a", "0001", "0081 00", "3fe2 1f", "82 20", "ffff ffff ffff"] {
            assert!(Decoder::new().decode(&bytes(hex)).is_err(), "{hex}");
        }
    }
}
