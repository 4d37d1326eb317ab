//! From a head's bytes to its fields.
//!
//! Owns the use of httparse and the closing of its leniencies: it takes a lone LF for a line's end, which
//! shows as a gap between two fields that is not white space and CRLF. A head that httparse or a gap
//! rejects is read a second time by [`request_fault`], line by line, only to name what is wrong with it.

use core::mem::MaybeUninit;

use crate::fields::{Fields, Span};
use crate::limits::Limits;
use crate::{Method, Refusal, RequestHead, ResponseHead, Version, grammar};

/// Bytes of a method; the longest registered one has 18. RFC 9112 section 3 asks for 501 above.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// Bytes of a request line beside method and target: two spaces, the version, CRLF.
const REQUEST_LINE_REST: usize = 12;

/// Bytes of the longest request line that can be accepted.
pub(crate) fn request_line_bytes(limits: &Limits) -> usize {
    limits.target_bytes.saturating_add(METHOD_BYTES_MAX + REQUEST_LINE_REST)
}

/// Reads a request head that is whole and in order, into `head`; `Ok(None)` for anything else. On success
/// `input` begins with a head of the returned length, in which every line ends in CRLF.
pub(crate) fn request(
    input: &[u8],
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<Option<usize>, Refusal> {
    let mut room = [const { MaybeUninit::uninit() }; Limits::FIELDS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let Ok(httparse::Status::Complete(length)) = request.parse_with_uninit_headers(input, &mut room) else {
        return Ok(None);
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Ok(None);
    };
    if place(input, method.as_bytes()) != Some(0) {
        // httparse skips empty lines before the head; the caller has skipped those that are allowed.
        return Ok(None);
    }
    let target_start = method.len() + 1;
    let target_end = target_start + target.len();
    let line_end = target_end + " HTTP/1.1".len();
    let bytes = input.get(..length).unwrap_or_default();
    let Some(lines) = crlf_after(bytes, line_end) else { return Ok(None) };
    if length > limits.head_bytes || lines > request_line_bytes(limits) {
        return Ok(None);
    }
    if !fill(&mut head.fields, bytes, lines, request.headers) {
        head.clear();
        return Ok(None);
    }
    if request.headers.len() > limits.fields {
        return Err(Refusal::TooManyFields);
    }
    if method.len() > METHOD_BYTES_MAX {
        return Err(Refusal::MethodTooLong);
    }
    if target.len() > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    head.version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    head.method = Method::from_bytes(method.as_bytes());
    head.method_span = Span::new(0, method.len());
    head.target = Span::new(target_start, target_end);
    Ok(Some(length))
}

/// Reads an answer's head that is whole and in order, into `head`, and says how long it is; `None` for anything else.
pub(crate) fn answer_at_once(input: &[u8], limits: &Limits, head: &mut ResponseHead) -> Option<usize> {
    let line_end = input.iter().position(|byte| *byte == b'\n')?;
    let line = input.get(..line_end)?.strip_suffix(b"\r")?;
    let (version, status, reason) = status_line(line).ok()?;
    let mut room = [const { MaybeUninit::uninit() }; Limits::FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut answer, input, &mut room);
    let Ok(httparse::Status::Complete(length)) = parsed else { return None };
    let is_within = length <= limits.head_bytes && answer.headers.len() <= limits.fields;
    let bytes = input.get(..length)?;
    if !is_within || !fill(&mut head.fields, bytes, line_end + 1, answer.headers) {
        head.clear();
        return None;
    }
    head.version = version;
    head.status = status;
    head.reason = Span::new(line.len() - reason, line.len());
    Some(length)
}

/// Reads an answer's whole head into `head`. The lines are known to end in CRLF.
pub(crate) fn answer(bytes: &[u8], limits: &Limits, head: &mut ResponseHead) -> Result<(), Refusal> {
    let line = head_lines(bytes).next().unwrap_or_default();
    let (version, status, reason) = status_line(line)?;
    if let Some(refusal) = field_fault(head_lines(bytes).skip(1), limits) {
        return Err(refusal);
    }
    let lines = line.len() + 2;
    let mut room = [const { MaybeUninit::uninit() }; Limits::FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut answer, bytes, &mut room);
    if parsed != Ok(httparse::Status::Complete(bytes.len())) {
        return Err(Refusal::BadStatusLine);
    }
    if !fill(&mut head.fields, bytes, lines, answer.headers) {
        return Err(Refusal::BadStatusLine);
    }
    head.version = version;
    head.status = status;
    head.reason = Span::new(line.len() - reason, line.len());
    Ok(())
}

/// Copies a head and notes its fields; `false` where a line does not end in CRLF.
fn fill(fields: &mut Fields, head: &[u8], lines: usize, headers: &[httparse::Header<'_>]) -> bool {
    fields.fill(head, Span::new(lines, head.len().saturating_sub(2)), headers.len());
    let mut next = lines;
    for header in headers {
        let name_end = next + header.name.len();
        // An empty value has no place of its own.
        let value = if header.value.is_empty() { Some(name_end + 1) } else { place(head, header.value) };
        let Some(value) = value.filter(|_| place(head, header.name.as_bytes()) == Some(next)) else {
            return false;
        };
        let end = value + header.value.len();
        fields.push(Span::new(next, name_end), Span::new(value, end));
        match crlf_after(head, end) {
            Some(after) => next = after,
            None => return false,
        }
    }
    crlf_after(head, next) == Some(head.len()) && head.get(next) == Some(&b'\r')
}

/// Where in `head` the `part` stands that httparse cut out of it.
fn place(head: &[u8], part: &[u8]) -> Option<usize> {
    part.as_ptr().addr().checked_sub(head.as_ptr().addr()).filter(|place| *place < head.len())
}

/// The place after optional white space and CRLF at `from`.
#[inline]
fn crlf_after(head: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while head.get(at).is_some_and(|byte| grammar::is_ows(*byte)) {
        at += 1;
    }
    (head.get(at) == Some(&b'\r') && head.get(at + 1) == Some(&b'\n')).then_some(at + 2)
}

/// The head as one of HTTP/1.1, where its request line names a higher minor version: RFC 9110 section 2.5 has it
/// processed as the highest version that the recipient knows. `None` for every other head.
pub(crate) fn as_known_version(head: &[u8]) -> Option<Vec<u8>> {
    let line = head_lines(head).next()?;
    let [.., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] = line else { return None };
    let mut known = head.to_vec();
    *known.get_mut(line.len() - 1)? = b'1';
    Some(known)
}

/// Whether a request line begins with a method over its bound, wherever it ends.
pub(crate) fn begins_with_long_method(line: &[u8]) -> bool {
    line.get(..=METHOD_BYTES_MAX).is_some_and(grammar::is_token)
}

/// What is wrong with a whole request head that [`request`] did not take. The lines are known to end in
/// CRLF. Errors are named in the order of the lines.
pub(crate) fn request_fault(head: &[u8], limits: &Limits) -> Refusal {
    let mut lines = head_lines(head);
    if let Err(refusal) = request_line(lines.next().unwrap_or_default()) {
        return refusal;
    }
    field_fault(lines, limits).unwrap_or(Refusal::BadRequestLine)
}

/// The first fault in some field lines.
pub(crate) fn field_fault<'a>(lines: impl Iterator<Item = &'a [u8]>, limits: &Limits) -> Option<Refusal> {
    for (index, line) in lines.enumerate() {
        if index >= limits.fields.min(Limits::FIELDS_MAX) {
            return Some(Refusal::TooManyFields);
        }
        if let Err(refusal) = grammar::field_line(line) {
            return Some(refusal);
        }
    }
    None
}

/// The lines of a section that ends in an empty line, without their CRLFs and without that empty line.
pub(crate) fn head_lines(section: &[u8]) -> impl Iterator<Item = &[u8]> {
    section
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
}

fn request_line(line: &[u8]) -> Result<(), Refusal> {
    // RFC 9112 section 3: exactly one space between the parts. Splitting at any white space is allowed and
    // is how one proxy's target becomes another's version.
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::BadRequestLine);
    };
    if !grammar::is_token(method) {
        return Err(Refusal::BadMethod);
    }
    if target.is_empty() {
        return Err(Refusal::BadRequestLine);
    }
    match version {
        b"HTTP/1.0" | b"HTTP/1.1" => {}
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal::UnsupportedVersion);
        }
        _ => return Err(Refusal::BadRequestLine),
    }
    // After the version: a later protocol may well have other targets.
    let printable = target.iter().all(|byte| byte.is_ascii_graphic());
    if printable { Ok(()) } else { Err(Refusal::BadTarget) }
}

/// Version, status and the reason's length. A missing space before an empty reason is taken: upstreams in
/// wide use send it, and it can be read in one way only (RFC 9112 section 4).
fn status_line(line: &[u8]) -> Result<(Version, u16, usize), Refusal> {
    let (version, rest) = match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0', b' ', rest @ ..] => (Version::Http10, rest),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b' ', rest @ ..] => (Version::Http11, rest),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b' ', ..]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal::UnsupportedVersion);
        }
        _ => return Err(Refusal::BadStatusLine),
    };
    let (digits, reason) = match rest {
        [_, _, _] => (rest, &b""[..]),
        [_, _, _, b' ', reason @ ..] => (rest.get(..3).unwrap_or_default(), reason),
        _ => return Err(Refusal::BadStatusLine),
    };
    let status = grammar::decimal(digits).and_then(|status| u16::try_from(status).ok());
    match status {
        Some(status) if status >= 100 && reason.iter().all(|byte| grammar::is_value_byte(*byte)) => {
            Ok((version, status, reason.len()))
        }
        _ => Err(Refusal::BadStatusLine),
    }
}
