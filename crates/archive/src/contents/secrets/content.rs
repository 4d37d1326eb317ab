//! What the content of a small file gives away: variables, private keys, tokens.
//!
//! Owns no names of files. Never hands a value out: only names of variables, and that something is there.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Words that a token or a password follows in the settings of npm and Yarn, in lower case.
const TOKEN_WORDS: [&str; 7] =
    ["_auth", "_authtoken", "_password", ":username", ":password", "npmauthtoken", "npmauthident"];

/// The names that an environment file sets, as far as its lines can be read.
pub(in crate::contents) fn variables(content: &[u8]) -> BTreeSet<String> {
    let is_wide = content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff");
    let content = if is_wide { without_zeros(content) } else { Cow::Borrowed(content) };
    if content.contains(&0) {
        // Not text: pictures of surroundings for three dimensions are called `.env`, too.
        return BTreeSet::new();
    }
    let text = String::from_utf8_lossy(&content);
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['\u{feff}', '\u{fffd}']).trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let name = line.split_once('=')?.0.trim();
        let is_name = !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| name.to_owned())
    });
    names.collect()
}

/// Settings of npm or Yarn that hold a token or a password themselves, and not `${NAME}` in its stead. What is written
/// as a comment is told, too: whoever has the pack reads it.
pub(super) fn holds_token(content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content).to_ascii_lowercase();
    let follows = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let rest = text.get(at + word.len()..).unwrap_or_default();
            // The word ends here, and its value begins: on this line, or in YAML on the next.
            let in_yaml = word.starts_with("npm");
            let value = rest.trim_start_matches(|character| {
                is_separator(character) || in_yaml && matches!(character, '\r' | '\n' | '|' | '>')
            });
            let value = value.split(['"', '\'', '\r', '\n']).next().unwrap_or_default().trim();
            value.len() < rest.len()
                && rest.starts_with(is_separator)
                && !value.is_empty()
                && !is_stand_in(value)
        })
    };
    TOKEN_WORDS.into_iter().any(follows) || text.lines().any(names_password)
}

fn is_separator(character: char) -> bool {
    matches!(character, '"' | '\'' | ':' | '=' | ' ' | '\t')
}

/// `${NAME}`, which npm and Yarn fill in from the environment; a default in it would be the secret.
fn is_stand_in(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|value| value.strip_suffix('}'));
    let name = name.map(|name| name.trim_end_matches(['?', '-', ':']));
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

/// An address with a password: `https://user:password@host`.
fn names_password(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        user.is_some_and(|(_, password)| !password.is_empty() && !is_stand_in(password))
    })
}

/// Holds certificates or public keys and nothing else; or is no text of keys at all, but an archive (`.key` is a
/// presentation's ending, too).
pub(super) fn is_public(content: &[u8]) -> bool {
    let has = |what: &str| memchr::memmem::find(content, what.as_bytes()).is_some();
    if content.starts_with(b"PK\x03\x04") {
        return true;
    }
    let blocks =
        ["-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "-----BEGIN RSA PUBLIC KEY-----"];
    blocks.into_iter().any(has) && !has("PRIVATE KEY")
}

/// A private key in DER (X.690): a sequence that begins with a small number, its version (RFC 5958 section 2, RFC 8017
/// appendix A.1.2, RFC 5915 section 3), or an encrypted one (RFC 5958 section 3): an algorithm with octets behind it.
/// Certificates and public keys begin otherwise.
pub(super) fn is_private_der(content: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    const OCTETS: u8 = 0x04;
    let Some((SEQUENCE, outer, _)) = der(content) else { return false };
    match der(outer) {
        Some((INTEGER, version, _)) => version.len() == 1,
        Some((SEQUENCE, _, behind)) => behind.first() == Some(&OCTETS),
        _ => false,
    }
}

/// The first value of DER: its tag, its bytes, and what stands behind it.
fn der(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // What is looked at has no more bytes than two can count.
        0x81 | 0x82 => {
            let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (length.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (value, behind) = rest.split_at_checked(length)?;
    Some((*tag, value, behind))
}

/// Holds a private key in PEM (RFC 7468) or of OpenPGP (RFC 9580 section 6.2), also within a string of JSON and in
/// UTF-16: its first line, and behind the line's end at least so many characters of its content. Code that only knows
/// the first line is none.
pub(super) fn holds_key(content: &[u8], characters: usize) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    const KEY: &[u8] = b"PRIVATE KEY";
    const ENDS: [&[u8]; 2] = [b"-----", b" BLOCK-----"];
    // Words that stand between the two: `ENCRYPTED`, `OPENSSH`.
    const WORDS_BYTES_MAX: usize = 32;
    let content = without_zeros(content);
    let mut rest = &*content;
    while let Some(at) = memchr::memmem::find(rest, BEGIN) {
        rest = rest.get(at + BEGIN.len()..).unwrap_or_default();
        let head = rest.get(..(WORDS_BYTES_MAX + KEY.len()).min(rest.len())).unwrap_or_default();
        let Some(key) = memchr::memmem::find(head, KEY) else { continue };
        let behind = rest.get(key + KEY.len()..).unwrap_or_default();
        let Some(mut behind) = ENDS.into_iter().find_map(|end| behind.strip_prefix(end)) else { continue };
        let mut line_ended = false;
        while let Some(next) = ["\\r", "\\n", "\r", "\n", " ", "\t"].iter().find_map(|space| {
            let next = behind.strip_prefix(space.as_bytes())?;
            line_ended |= space.contains(['n', '\n', '\r']);
            Some(next)
        }) {
            behind = next;
        }
        let is_content = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=:,-\r\n\\".contains(byte);
        let first = behind.first().is_some_and(u8::is_ascii_alphanumeric);
        if line_ended && first && behind.iter().take_while(is_content).count() >= characters {
            return true;
        }
    }
    false
}

/// What is written in UTF-16 reads like ASCII then.
fn without_zeros(content: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, content).is_none() {
        return Cow::Borrowed(content);
    }
    Cow::Owned(content.iter().copied().filter(|byte| *byte != 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_read_and_values_are_not() {
        let text = "# db\nDATABASE_URL=postgres://u:p@h/d\nexport API_KEY='x=y'\n\nnothing\n 2A=1\n-----x=\n";
        let names: Vec<String> = variables(text.as_bytes()).into_iter().collect();
        assert_eq!(names, ["API_KEY", "DATABASE_URL"]);
        let wide: Vec<u8> =
            b"\xff\xfe".iter().copied().chain(b"A=1\nB=2\n".map(|byte| [byte, 0]).concat()).collect();
        assert_eq!(variables(&wide).len(), 2, "UTF-16");
        assert!(variables(b"\x86\x16\0A=1\nB=2").is_empty(), "a picture");
    }

    #[test]
    fn settings_of_npm_and_yarn_are_credentials_only_where_they_hold_some() {
        for (text, expected) in [
            ("omit-lockfile-registry-resolved=true\nfund=false\n", false),
            ("registry=https://registry.example.com/\nalways-auth=true\n", false),
            ("//registry.example.com/:_authToken=hush\n", true),
            ("//registry.example.com/:_authToken = \"hush\"\n", true),
            ("; //registry.example.com/:_authToken=hush\n", true),
            ("//registry.example.com/:_authToken=${NPM_TOKEN}\n", false),
            ("//registry.example.com/:_authToken=\"${NPM_TOKEN}\"\n", false),
            ("//registry.example.com/:username=me\n", true),
            ("//registry.example.com/:certfile=./cert.crt\n", false),
            ("_auth=aHVzaA==\n", true),
            ("_password=aHVzaA==\n", true),
            ("_authToken=\nfund=false\n", false),
            ("https-proxy=http://me:hush@proxy.example.com:3128/\n", true),
            ("https-proxy=http://me:${PASSWORD}@proxy.example.com:3128/\n", false),
            ("https-proxy=http://proxy.example.com:3128/\n", false),
            ("\"//registry.example.com/:_authToken\" hush\n", true),
            ("yarn-offline-mirror \"./mirror\"\n", false),
            ("npmAuthToken: hush\n", true),
            ("npmScopes:\n  mine:\n    npmAuthIdent: \"me:hush\"\n", true),
            ("npmAuthToken: >-\n  hush\n", true),
            ("npmAuthToken: ${NPM_TOKEN:-}\n", false),
            ("npmAuthToken: ${NPM_TOKEN:-hush}\n", true),
            ("npmAlwaysAuth: true\nnodeLinker: node-modules\n", false),
        ] {
            assert_eq!(holds_token(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn private_keys_in_der_are_distinguished_from_certificates_and_public_keys() {
        for (what, bytes, expected) in [
            ("PKCS #8 of Ed25519", &b"\x30\x05\x02\x01\x00\x30\x00"[..], true),
            ("PKCS #1", b"\x30\x81\x06\x02\x01\x00\x02\x01\x05", true),
            ("SEC 1", b"\x30\x82\x00\x05\x02\x01\x01\x04\x00", true),
            ("encrypted PKCS #8", b"\x30\x06\x30\x02\x06\x00\x04\x00", true),
            ("a certificate", b"\x30\x09\x30\x05\xa0\x03\x02\x01\x02\x30\x00", false),
            ("a public key", b"\x30\x06\x30\x02\x06\x00\x03\x00", false),
            ("a public key of PKCS #1", b"\x30\x07\x02\x02\x00\x99\x02\x01\x03", false),
            ("text", b"0 is no key", false),
            ("nothing", b"", false),
            ("the beginning of one", b"\x30\x82\x10", false),
        ] {
            assert_eq!(is_private_der(bytes), expected, "{what}");
        }
    }
}
