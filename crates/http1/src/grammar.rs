//! The character classes and small productions of RFC 9110 section 5 and RFC 9112.
//!
//! Owns what a token, a field value and a field line may look like. Decides nothing about meaning.

use crate::Refusal;

/// token = 1*tchar (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// tchar (RFC 9110 section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// A byte that a field value may hold: VCHAR, obs-text, space and tab (RFC 9110 section 5.5).
pub(crate) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Optional white space (RFC 9110 section 5.6.3).
pub(crate) fn is_ows(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// `bytes` without optional white space at either end.
pub(crate) fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_ows(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_ows(*last)
    {
        bytes = rest;
    }
    bytes
}

/// 1*DIGIT as a number; `None` for anything else, a sign, and what does not fit.
pub(crate) fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The members of a comma-separated list, trimmed; empty ones are dropped (RFC 9110 section 5.6.1.2).
pub(crate) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim_ows).filter(|member| !member.is_empty())
}

/// Name and value of one field line (without its CRLF), or what is wrong with it (RFC 9112 section 5).
pub(crate) fn field_line(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    if line.first().is_some_and(|byte| is_ows(*byte)) {
        // RFC 9112 section 5.2: a server refuses obs-fold or replaces it; the first cannot go wrong.
        return Err(Refusal::ObsoleteFold);
    }
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return Err(Refusal::BadFieldName);
    };
    let (name, rest) = line.split_at(colon);
    if name.last().is_some_and(|byte| is_ows(*byte)) && is_token(trim_ows(name)) {
        // RFC 9112 section 5.1: MUST be refused, since others have read it as another name.
        return Err(Refusal::SpaceBeforeColon);
    }
    if !is_token(name) {
        return Err(Refusal::BadFieldName);
    }
    let value = trim_ows(rest.get(1..).unwrap_or_default());
    if !value.iter().all(|byte| is_value_byte(*byte)) {
        return Err(Refusal::BadFieldValue);
    }
    Ok((name, value))
}
