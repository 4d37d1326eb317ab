//! Frames to bytes: each function appends one whole frame to a buffer.
//!
//! Owns the layout of what is written. Writes nothing that `decode.rs` would refuse: what cannot be written
//! is an error and leaves the buffer as it was. Allocates only where the buffer has to grow.

use std::net::{IpAddr, SocketAddr};

use crate::Broken;
use crate::decode::{FLAG_END, METHOD_CODE_MAX, check_file, check_informational, check_response};
use crate::frame::{Blocked, Facts, FilePart, Hello, Kind, Pong, Ready, ResetCode};
use crate::head::{is_token, is_value};
use crate::limits::{
    DATA_BYTES_MAX, FIELDS_MAX, FRAME_HEADER_BYTES, HEAD_BLOCK_BYTES_MAX, INLINE_BODY_BYTES_MAX,
    PAYLOAD_BYTES_MAX, UNKNOWN_LENGTH,
};
use crate::names::{Interned, Looked, look};

/// The numbers of a REQUEST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestParts {
    /// The method's number, 0 for one that is written into the head block.
    pub method_code: u8,
    /// What is known beside the head. [`Facts::ODD_SPELLING`] is added where a field has one.
    pub facts: Facts,
    /// The client's address; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// The request's id.
    pub id: u64,
    /// Bytes of the body, where that is known.
    pub length: Option<u64>,
}

/// The numbers of a RESPONSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseParts {
    /// 101, or 200 to 999.
    pub status: u16,
    /// Bytes of the body, where that is known.
    pub length: Option<u64>,
}

/// The parts of a FILE beside its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileParts<'a> {
    /// 200 to 999.
    pub status: u16,
    /// Bytes of the file that are left out; 0 with status 200.
    pub offset: u64,
    /// Bytes of it that are sent; `None` is the rest, and all that status 200 may have.
    pub length: Option<u64>,
    /// Where it is, relative to the folder for such files.
    pub path: &'a [u8],
}

/// HELLO. Line feeds in its texts would make it another frame: they end the text there.
pub fn hello(out: &mut Vec<u8>, hello: &Hello<'_>) {
    let start = begin(out, Kind::Hello, 0, 0, false);
    for number in [hello.version_min, hello.version_max, hello.connections, hello.slots] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [hello.stream_window, hello.connection_window, hello.begins_per_turn] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    text(out, &[hello.server, hello.application]);
    finish(out, start);
}

/// READY, with the same rule for its texts as [`hello`].
pub fn ready(out: &mut Vec<u8>, ready: &Ready<'_>) {
    let start = begin(out, Kind::Ready, 0, 0, false);
    out.extend_from_slice(&ready.version.to_le_bytes());
    out.extend_from_slice(&ready.transport.code().to_le_bytes());
    text(out, &[ready.runtime, ready.runtime_version, ready.library_version]);
    finish(out, start);
}

/// FAILED. What does not fit into a frame is cut off.
pub fn failed(out: &mut Vec<u8>, why: &[u8]) {
    let start = begin(out, Kind::Failed, 0, 0, false);
    out.extend_from_slice(why.get(..PAYLOAD_BYTES_MAX).unwrap_or(why));
    finish(out, start);
}

/// PING.
pub fn ping(out: &mut Vec<u8>, token: u64) {
    let start = begin(out, Kind::Ping, 0, 0, false);
    out.extend_from_slice(&token.to_le_bytes());
    finish(out, start);
}

/// PONG.
pub fn pong(out: &mut Vec<u8>, pong: &Pong) {
    let start = begin(out, Kind::Pong, 0, 0, false);
    out.extend_from_slice(&pong.token.to_le_bytes());
    out.extend_from_slice(&pong.delay_us.to_le_bytes());
    out.extend_from_slice(&pong.in_flight.to_le_bytes());
    for number in [pong.begun, pong.heap_bytes, pong.resident_bytes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    finish(out, start);
}

/// BLOCKED.
pub fn blocked(out: &mut Vec<u8>, blocked: Blocked) {
    let start = begin(out, Kind::Blocked, 0, 0, false);
    out.extend_from_slice(&blocked.duration_us.to_le_bytes());
    out.extend_from_slice(&blocked.ended_us_ago.to_le_bytes());
    finish(out, start);
}

/// LOADED, with as many paths as one frame holds.
pub fn loaded(out: &mut Vec<u8>, paths: &[u8]) {
    let start = begin(out, Kind::Loaded, 0, 0, false);
    out.extend_from_slice(paths.get(..PAYLOAD_BYTES_MAX).unwrap_or(paths));
    finish(out, start);
}

/// DRAIN.
pub fn drain(out: &mut Vec<u8>) {
    let start = begin(out, Kind::Drain, 0, 0, false);
    finish(out, start);
}

/// RETIRE.
pub fn retire(out: &mut Vec<u8>) {
    let start = begin(out, Kind::Retire, 0, 0, false);
    finish(out, start);
}

/// REQUEST. `head` writes target, authority, TLS facts and method (those that it leaves out are empty), then
/// the fields. With `end`, `body` is all of it.
///
/// # Errors
/// The head or the body has more than a frame may carry, or a number is none that the frame can have; `out`
/// is as it was.
pub fn request(
    out: &mut Vec<u8>,
    slot: u16,
    generation: u32,
    end: bool,
    parts: &RequestParts,
    head: impl FnOnce(&mut HeadWriter<'_>),
    body: &[u8],
) -> Result<(), Broken> {
    if parts.method_code > METHOD_CODE_MAX {
        return Err(Broken::MethodCode(parts.method_code));
    }
    let start = begin(out, Kind::Request, slot, generation, end);
    let facts_at = out.len() + 1;
    out.extend_from_slice(&[parts.method_code, parts.facts.0]);
    client_address(out, parts.client);
    out.extend_from_slice(&parts.id.to_le_bytes());
    out.extend_from_slice(&parts.length.unwrap_or(UNKNOWN_LENGTH).to_le_bytes());
    let head_at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut writer = HeadWriter::new(out, LEADING_RECORDS);
    head(&mut writer);
    writer.lead(0);
    let odd_spelling = writer.odd_spelling;
    let written = writer.finish(head_at).and_then(|()| inline_body(out, body));
    if odd_spelling && let Some(facts) = out.get_mut(facts_at) {
        *facts |= Facts::ODD_SPELLING.0;
    }
    finish_or_undo(out, start, written)
}

/// RESPONSE. With `end`, `body` is all of it.
///
/// # Errors
/// As [`request`].
pub fn response(
    out: &mut Vec<u8>,
    slot: u16,
    generation: u32,
    end: bool,
    parts: &ResponseParts,
    head: impl FnOnce(&mut HeadWriter<'_>),
    body: &[u8],
) -> Result<(), Broken> {
    check_response(parts.status, end)?;
    let start = begin(out, Kind::Response, slot, generation, end);
    let written =
        answer_head(out, parts.status, Some(parts.length), head).and_then(|()| inline_body(out, body));
    finish_or_undo(out, start, written)
}

/// INFORMATIONAL.
///
/// # Errors
/// As [`request`].
pub fn informational(
    out: &mut Vec<u8>,
    slot: u16,
    generation: u32,
    status: u16,
    head: impl FnOnce(&mut HeadWriter<'_>),
) -> Result<(), Broken> {
    check_informational(status)?;
    let start = begin(out, Kind::Informational, slot, generation, false);
    let written = answer_head(out, status, None, head);
    finish_or_undo(out, start, written)
}

/// FILE.
///
/// # Errors
/// As [`request`]; also where the path does not fit.
pub fn file(
    out: &mut Vec<u8>,
    slot: u16,
    generation: u32,
    parts: &FileParts<'_>,
    head: impl FnOnce(&mut HeadWriter<'_>),
) -> Result<(), Broken> {
    check_file(parts.status, parts.offset, parts.length)?;
    let start = begin(out, Kind::File, slot, generation, true);
    let mut written = answer_head(out, parts.status, Some(None), head);
    out.extend_from_slice(&parts.offset.to_le_bytes());
    out.extend_from_slice(&parts.length.unwrap_or(UNKNOWN_LENGTH).to_le_bytes());
    let payload_bytes = out.len() - start - FRAME_HEADER_BYTES + size_of::<u32>() + parts.path.len();
    if written.is_ok() && payload_bytes > PAYLOAD_BYTES_MAX {
        written = Err(Broken::FrameTooLong(u32::try_from(payload_bytes).unwrap_or(u32::MAX)));
    }
    if written.is_ok() {
        out.extend_from_slice(&(parts.path.len() as u32).to_le_bytes());
        out.extend_from_slice(parts.path);
    }
    finish_or_undo(out, start, written)
}

/// DATA. More bytes than a frame carries become several frames; none without `end` become no frame.
pub fn data(out: &mut Vec<u8>, slot: u16, generation: u32, end: bool, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some((first, later)) =
        rest.split_at_checked(DATA_BYTES_MAX).filter(|(_, later)| !later.is_empty())
    {
        data_frame(out, slot, generation, false, first);
        rest = later;
    }
    if end || !rest.is_empty() {
        data_frame(out, slot, generation, end, rest);
    }
}

/// The header of a DATA frame whose bytes the caller appends or writes from elsewhere: at least one, or
/// none with `end`, and at most [`DATA_BYTES_MAX`].
pub fn data_header(out: &mut Vec<u8>, slot: u16, generation: u32, end: bool, bytes: usize) {
    debug_assert!(bytes <= DATA_BYTES_MAX && (end || bytes > 0), "no DATA frame has {bytes} bytes");
    let start = begin(out, Kind::Data, slot, generation, end);
    set_length(out, start, bytes);
}

/// TRAILERS.
///
/// # Errors
/// As [`request`].
pub fn trailers(
    out: &mut Vec<u8>,
    slot: u16,
    generation: u32,
    head: impl FnOnce(&mut HeadWriter<'_>),
) -> Result<(), Broken> {
    let start = begin(out, Kind::Trailers, slot, generation, true);
    let mut writer = HeadWriter::new(out, 0);
    head(&mut writer);
    let written = writer.bounds();
    finish_or_undo(out, start, written)
}

/// RESET.
pub fn reset(out: &mut Vec<u8>, slot: u16, generation: u32, code: ResetCode) {
    let start = begin(out, Kind::Reset, slot, generation, false);
    out.extend_from_slice(&code.number().to_le_bytes());
    finish(out, start);
}

/// FILE_PART.
///
/// # Errors
/// Where the path does not fit; `out` is then as it was.
pub fn file_part(out: &mut Vec<u8>, slot: u16, generation: u32, part: &FilePart<'_>) -> Result<(), Broken> {
    let start = begin(out, Kind::FilePart, slot, generation, false);
    for number in [part.offset, part.length, part.device, part.inode] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let payload_bytes = out.len() - start - FRAME_HEADER_BYTES + part.path.len();
    let written = if payload_bytes > PAYLOAD_BYTES_MAX {
        Err(Broken::FrameTooLong(u32::try_from(payload_bytes).unwrap_or(u32::MAX)))
    } else {
        out.extend_from_slice(part.path);
        Ok(())
    };
    finish_or_undo(out, start, written)
}

/// FILE_SENT.
pub fn file_sent(out: &mut Vec<u8>, slot: u16, generation: u32, bytes: u64) {
    let start = begin(out, Kind::FileSent, slot, generation, false);
    out.extend_from_slice(&bytes.to_le_bytes());
    finish(out, start);
}

/// CREDIT; for the connection itself with [`CONNECTION_SLOT`](crate::limits::CONNECTION_SLOT) and generation 0.
pub fn credit(out: &mut Vec<u8>, slot: u16, generation: u32, bytes: u32) {
    let start = begin(out, Kind::Credit, slot, generation, false);
    out.extend_from_slice(&bytes.to_le_bytes());
    finish(out, start);
}

/// Records before a request's fields: target, authority, TLS facts, method.
const LEADING_RECORDS: usize = 4;

/// Writes the records of a head block to where they belong in the frame.
#[derive(Debug)]
pub struct HeadWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Records that still come before the fields.
    leading: usize,
    fields: usize,
    odd_spelling: bool,
}

impl<'a> HeadWriter<'a> {
    fn new(out: &'a mut Vec<u8>, leading: usize) -> HeadWriter<'a> {
        let start = out.len();
        HeadWriter { out, start, leading, fields: 0, odd_spelling: false }
    }

    /// Path and query of a request. The four records of a request come in this order, before all fields.
    pub fn target(&mut self, target: &[u8]) {
        self.leading_record(4, target);
    }

    /// The authority of a request.
    pub fn authority(&mut self, authority: &[u8]) {
        self.leading_record(3, authority);
    }

    /// The TLS facts of a request.
    pub fn tls(&mut self, tls: &[u8]) {
        self.leading_record(2, tls);
    }

    /// The method of a request, where its number is 0.
    pub fn method(&mut self, method: &[u8]) {
        self.leading_record(1, method);
    }

    /// A field, its name as one byte where it is in the table in this spelling. A field that no head can
    /// have (RFC 9110 section 5) is a fault of the caller's, and left out.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        match look(name) {
            Looked::Exact(interned) => return self.interned(interned, value),
            Looked::Odd => self.odd_spelling = true,
            Looked::Unknown if is_token(name) => {}
            Looked::Unknown => {
                debug_assert!(false, "a field's name is not a token");
                return;
            }
        }
        if !self.may_write(value) {
            return;
        }
        self.out.extend_from_slice(name);
        self.out.push(b':');
        self.out.extend_from_slice(value);
        self.out.push(b'\n');
    }

    /// A field whose name's byte is known already, with the same rule for its value as [`HeadWriter::field`].
    #[inline]
    pub fn interned(&mut self, name: Interned, value: &[u8]) {
        if !self.may_write(value) {
            return;
        }
        self.out.push(name.byte());
        self.out.extend_from_slice(value);
        self.out.push(b'\n');
    }

    fn may_write(&mut self, value: &[u8]) -> bool {
        self.lead(0);
        let may = is_value(value);
        debug_assert!(may, "a field's value has a control character");
        self.fields += usize::from(may);
        may
    }

    /// The record that stands `place` before the first field.
    fn leading_record(&mut self, place: usize, text: &[u8]) {
        debug_assert!(place <= self.leading, "the records before the fields are out of order");
        if place > self.leading {
            return;
        }
        self.lead(place);
        self.out.extend_from_slice(up_to_line_feed(text));
        self.out.push(b'\n');
        self.leading -= 1;
    }

    /// Empty records until only `left` are to come before the fields.
    #[inline]
    fn lead(&mut self, left: usize) {
        while self.leading > left {
            self.out.push(b'\n');
            self.leading -= 1;
        }
    }

    fn bounds(&self) -> Result<(), Broken> {
        let bytes = self.out.len() - self.start;
        if bytes > HEAD_BLOCK_BYTES_MAX {
            Err(Broken::HeadTooLong(bytes))
        } else if self.fields > FIELDS_MAX {
            Err(Broken::TooManyFields)
        } else {
            Ok(())
        }
    }

    /// Writes the block's length to where it belongs.
    fn finish(self, length_at: usize) -> Result<(), Broken> {
        self.bounds()?;
        let bytes = (self.out.len() - self.start) as u32;
        if let Some(length) = self.out.get_mut(length_at..length_at + size_of::<u32>()) {
            length.copy_from_slice(&bytes.to_le_bytes());
        }
        Ok(())
    }
}

fn answer_head(
    out: &mut Vec<u8>,
    status: u16,
    length: Option<Option<u64>>,
    head: impl FnOnce(&mut HeadWriter<'_>),
) -> Result<(), Broken> {
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    let head_at = out.len();
    out.extend_from_slice(&[0; 4]);
    if let Some(length) = length {
        out.extend_from_slice(&length.unwrap_or(UNKNOWN_LENGTH).to_le_bytes());
    }
    let mut writer = HeadWriter::new(out, 0);
    head(&mut writer);
    writer.finish(head_at)
}

fn client_address(out: &mut Vec<u8>, client: Option<SocketAddr>) {
    let mut bytes = [0; 16];
    let (kind, port) = match client.map(|client| (client.ip(), client.port())) {
        None => (0, 0),
        Some((IpAddr::V4(address), port)) => {
            bytes[..4].copy_from_slice(&address.octets());
            (4, port)
        }
        Some((IpAddr::V6(address), port)) => {
            bytes = address.octets();
            (6, port)
        }
    };
    let [port_low, port_high] = port.to_le_bytes();
    out.extend_from_slice(&[kind, 0, port_low, port_high, 0, 0]);
    out.extend_from_slice(&bytes);
}

fn inline_body(out: &mut Vec<u8>, body: &[u8]) -> Result<(), Broken> {
    if body.len() > INLINE_BODY_BYTES_MAX {
        return Err(Broken::InlineBodyTooLong(body.len()));
    }
    out.extend_from_slice(body);
    Ok(())
}

fn data_frame(out: &mut Vec<u8>, slot: u16, generation: u32, end: bool, bytes: &[u8]) {
    data_header(out, slot, generation, end, bytes.len());
    out.extend_from_slice(bytes);
}

/// Records with their length before them.
fn text(out: &mut Vec<u8>, records: &[&[u8]]) {
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    for record in records {
        out.extend_from_slice(up_to_line_feed(record));
        out.push(b'\n');
    }
    let bytes = (out.len() - length_at - size_of::<u32>()) as u32;
    out[length_at..length_at + size_of::<u32>()].copy_from_slice(&bytes.to_le_bytes());
}

/// A record cannot hold a line feed: a caller that passes one has not checked its input.
fn up_to_line_feed(text: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', text);
    debug_assert!(end.is_none(), "a record has a line feed");
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// Appends a frame's header; its length is set when the payload is there.
fn begin(out: &mut Vec<u8>, kind: Kind, slot: u16, generation: u32, end: bool) -> usize {
    let start = out.len();
    let mut header = [0; FRAME_HEADER_BYTES];
    header[4] = kind as u8;
    header[5] = if end { FLAG_END } else { 0 };
    header[6..8].copy_from_slice(&slot.to_le_bytes());
    header[8..].copy_from_slice(&generation.to_le_bytes());
    out.extend_from_slice(&header);
    start
}

fn finish(out: &mut [u8], start: usize) {
    let bytes = out.len() - start - FRAME_HEADER_BYTES;
    set_length(out, start, bytes);
}

fn finish_or_undo(out: &mut Vec<u8>, start: usize, written: Result<(), Broken>) -> Result<(), Broken> {
    match written {
        Ok(()) => finish(out, start),
        Err(_) => out.truncate(start),
    }
    written
}

fn set_length(out: &mut [u8], start: usize, bytes: usize) {
    debug_assert!(bytes <= PAYLOAD_BYTES_MAX, "a payload of {bytes} bytes is too long");
    if let Some(length) = out.get_mut(start..start + size_of::<u32>()) {
        length.copy_from_slice(&(bytes as u32).to_le_bytes());
    }
}
