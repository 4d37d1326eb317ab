//! Bytes of a connection to frames.
//!
//! Owns what a frame may look like by itself; whether it may come now is the caller's to know. Never
//! allocates, never panics whatever the bytes are, and refuses at the first byte that shows the fault, so
//! that no one waits for a payload that could not be right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Broken;
use crate::frame::{
    Blocked, ConnectionKind, End, Facts, File, FilePart, Frame, Hello, Informational, Kind, Payload, Pong,
    Ready, Request, ResetCode, Response, Sender, Transport,
};
use crate::head::HeadBlock;
use crate::limits::{
    CONNECTION_SLOT, DATA_BYTES_MAX, FRAME_HEADER_BYTES, HEAD_BLOCK_BYTES_MAX, INLINE_BODY_BYTES_MAX,
    PAYLOAD_BYTES_MAX, UNKNOWN_LENGTH,
};

/// The flag END.
pub(crate) const FLAG_END: u8 = 1;

/// The highest number of a method: TRACE.
pub(crate) const METHOD_CODE_MAX: u8 = 9;

/// The first frame of `input`, which `from` sent on such a connection, and how many bytes it takes. `None`: more
/// bytes are needed.
pub fn decode(
    input: &[u8],
    from: Sender,
    connection: ConnectionKind,
) -> Result<Option<(Frame<'_>, usize)>, Broken> {
    let Some((length, after_length)) = input.split_first_chunk::<4>() else { return Ok(None) };
    let announced = u32::from_le_bytes(*length);
    let length = announced as usize;
    if length > PAYLOAD_BYTES_MAX {
        return Err(Broken::FrameTooLong(announced));
    }
    let Some(&byte) = after_length.first() else { return Ok(None) };
    let kind = checked_kind(byte, from, connection)?;
    let Some(&flags) = after_length.get(1) else { return Ok(None) };
    let end = checked_end(flags, kind)?;
    let Some((header, rest)) = input.split_first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
    let [.., slot_low, slot_high, a, b, c, d] = *header;
    let slot = u16::from_le_bytes([slot_low, slot_high]);
    let generation = u32::from_le_bytes([a, b, c, d]);
    check_place(slot, generation, kind)?;
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let payload = read_payload(payload, kind, end, from)?;
    Ok(Some((Frame { slot, generation, end, payload }, FRAME_HEADER_BYTES + length)))
}

fn checked_kind(byte: u8, from: Sender, connection: ConnectionKind) -> Result<Kind, Broken> {
    let kind = Kind::from_byte(byte).ok_or(Broken::UnknownKind(byte))?;
    if kind.sender().is_some_and(|sender| sender != from) {
        return Err(Broken::WrongSender(byte));
    }
    if kind.connection() != connection {
        return Err(Broken::WrongConnection(byte));
    }
    Ok(kind)
}

fn checked_end(flags: u8, kind: Kind) -> Result<bool, Broken> {
    if flags & !FLAG_END != 0 {
        return Err(Broken::UnknownFlags(flags));
    }
    let end = flags & FLAG_END != 0;
    match (kind.end(), end) {
        (End::Never, true) => Err(Broken::EndNotAllowed),
        (End::Always, false) => Err(Broken::EndMissing),
        _ => Ok(end),
    }
}

fn check_place(slot: u16, generation: u32, kind: Kind) -> Result<(), Broken> {
    if kind.connection() == ConnectionKind::Control && (slot, generation) != (0, 0) {
        return Err(Broken::ControlSlot(slot, generation));
    }
    if slot == CONNECTION_SLOT && (kind != Kind::Credit || generation != 0) {
        return Err(Broken::ConnectionSlot);
    }
    Ok(())
}

fn read_payload(bytes: &[u8], kind: Kind, end: bool, from: Sender) -> Result<Payload<'_>, Broken> {
    let mut reader = Reader { rest: bytes };
    let payload = match kind {
        Kind::Hello => Payload::Hello(read_hello(&mut reader)?),
        Kind::Ready => Payload::Ready(read_ready(&mut reader)?),
        Kind::Failed => Payload::Failed(reader.all()),
        Kind::Ping => Payload::Ping(reader.u64()?),
        Kind::Pong => Payload::Pong(read_pong(&mut reader)?),
        Kind::Drain => Payload::Drain,
        Kind::Retire => Payload::Retire,
        Kind::Loaded => Payload::Loaded(reader.all()),
        Kind::Blocked => {
            Payload::Blocked(Blocked { duration_us: reader.u32()?, ended_us_ago: reader.u32()? })
        }
        Kind::Request => Payload::Request(read_request(&mut reader)?),
        Kind::Response => Payload::Response(read_response(&mut reader, end)?),
        Kind::Informational => Payload::Informational(read_informational(&mut reader)?),
        Kind::File => Payload::File(read_file(&mut reader)?),
        Kind::Data => Payload::Data(read_data(&mut reader, end)?),
        Kind::Trailers => Payload::Trailers(HeadBlock::new(reader.all())?),
        Kind::Reset => Payload::Reset(ResetCode::from_number(reader.u32()?, from)),
        Kind::Credit => Payload::Credit(reader.u32()?),
        Kind::FilePart => Payload::FilePart(read_file_part(&mut reader)?),
        Kind::FileSent => Payload::FileSent(reader.u64()?),
    };
    reader.finish()?;
    Ok(payload)
}

fn read_hello<'a>(reader: &mut Reader<'a>) -> Result<Hello<'a>, Broken> {
    let (version_min, version_max) = (reader.u16()?, reader.u16()?);
    let (connections, slots) = (reader.u16()?, reader.u16()?);
    let (stream_window, connection_window, begins_per_turn) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let [server, application] = reader.text()?;
    Ok(Hello {
        version_min,
        version_max,
        connections,
        slots,
        stream_window,
        connection_window,
        begins_per_turn,
        server,
        application,
    })
}

fn read_ready<'a>(reader: &mut Reader<'a>) -> Result<Ready<'a>, Broken> {
    let (version, code) = (reader.u16()?, reader.u16()?);
    let transport = Transport::from_code(code).ok_or(Broken::Transport(code))?;
    let [runtime, runtime_version, library_version] = reader.text()?;
    Ok(Ready { version, transport, runtime, runtime_version, library_version })
}

fn read_pong(reader: &mut Reader<'_>) -> Result<Pong, Broken> {
    Ok(Pong {
        token: reader.u64()?,
        delay_us: reader.u32()?,
        in_flight: reader.u32()?,
        begun: reader.u64()?,
        heap_bytes: reader.u64()?,
        resident_bytes: reader.u64()?,
    })
}

fn read_request<'a>(reader: &mut Reader<'a>) -> Result<Request<'a>, Broken> {
    let method_code = reader.u8()?;
    if method_code > METHOD_CODE_MAX {
        return Err(Broken::MethodCode(method_code));
    }
    let facts = Facts(reader.u8()?);
    let client = read_client(reader)?;
    let id = reader.u64()?;
    let length = known(reader.u64()?);
    let head_bytes = reader.u32()?;
    let head = reader.head(head_bytes)?;
    let body = reader.inline_body()?;
    Ok(Request { method_code, facts, client, id, length, head, body })
}

fn read_client(reader: &mut Reader<'_>) -> Result<Option<SocketAddr>, Broken> {
    let kind = reader.u8()?;
    reader.zeros(1)?;
    let port = reader.u16()?;
    reader.zeros(2)?;
    match kind {
        0 if port != 0 => Err(Broken::ReservedNotZero),
        0 => reader.zeros(16).map(|()| None),
        4 => {
            let address = Ipv4Addr::from(*reader.array::<4>()?);
            reader.zeros(12)?;
            Ok(Some(SocketAddr::new(IpAddr::V4(address), port)))
        }
        6 => {
            let address = Ipv6Addr::from(*reader.array::<16>()?);
            Ok(Some(SocketAddr::new(IpAddr::V6(address), port)))
        }
        other => Err(Broken::AddressKind(other)),
    }
}

fn read_response<'a>(reader: &mut Reader<'a>, end: bool) -> Result<Response<'a>, Broken> {
    let status = reader.u16()?;
    check_response(status, end)?;
    reader.zeros(2)?;
    let head_bytes = reader.u32()?;
    let length = known(reader.u64()?);
    let head = reader.head(head_bytes)?;
    let body = reader.inline_body()?;
    Ok(Response { status, length, head, body })
}

fn read_informational<'a>(reader: &mut Reader<'a>) -> Result<Informational<'a>, Broken> {
    let status = reader.u16()?;
    check_informational(status)?;
    reader.zeros(2)?;
    let head_bytes = reader.u32()?;
    let head = reader.head(head_bytes)?;
    Ok(Informational { status, head })
}

fn read_file<'a>(reader: &mut Reader<'a>) -> Result<File<'a>, Broken> {
    let status = reader.u16()?;
    reader.zeros(2)?;
    let head_bytes = reader.u32()?;
    let _ignored_length = reader.u64()?;
    let head = reader.head(head_bytes)?;
    let offset = reader.u64()?;
    let length = known(reader.u64()?);
    check_file(status, offset, length)?;
    let path_bytes = reader.u32()?;
    let path = reader.take(path_bytes as usize)?;
    Ok(File { status, head, offset, length, path })
}

fn read_file_part<'a>(reader: &mut Reader<'a>) -> Result<FilePart<'a>, Broken> {
    Ok(FilePart {
        offset: reader.u64()?,
        length: reader.u64()?,
        device: reader.u64()?,
        inode: reader.u64()?,
        path: reader.all(),
    })
}

fn read_data<'a>(reader: &mut Reader<'a>, end: bool) -> Result<&'a [u8], Broken> {
    let bytes = reader.all();
    if bytes.len() > DATA_BYTES_MAX {
        return Err(Broken::DataTooLong(bytes.len()));
    }
    if bytes.is_empty() && !end {
        return Err(Broken::DataEmpty);
    }
    Ok(bytes)
}

fn known(length: u64) -> Option<u64> {
    (length != UNKNOWN_LENGTH).then_some(length)
}

pub(crate) fn check_response(status: u16, end: bool) -> Result<(), Broken> {
    match status {
        // After 101 both directions are open: it cannot be the end of one.
        101 if end => Err(Broken::EndNotAllowed),
        101 | 200..=999 => Ok(()),
        _ => Err(Broken::Status(status)),
    }
}

pub(crate) fn check_informational(status: u16) -> Result<(), Broken> {
    match status {
        100 | 102..=199 => Ok(()),
        _ => Err(Broken::Status(status)),
    }
}

pub(crate) fn check_file(status: u16, offset: u64, length: Option<u64>) -> Result<(), Broken> {
    match status {
        200 if offset != 0 || length.is_some() => Err(Broken::FileRange),
        200..=999 => Ok(()),
        _ => Err(Broken::Status(status)),
    }
}

/// What of a payload has not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Broken::PayloadTooShort)?;
        self.rest = rest;
        Ok(taken)
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<&'a [u8; BYTES], Broken> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Broken::PayloadTooShort)?;
        self.rest = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, Broken> {
        self.array().map(|[byte]| *byte)
    }

    fn u16(&mut self) -> Result<u16, Broken> {
        self.array().map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Result<u32, Broken> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Result<u64, Broken> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn zeros(&mut self, bytes: usize) -> Result<(), Broken> {
        if self.take(bytes)?.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(Broken::ReservedNotZero) }
    }

    fn head(&mut self, bytes: u32) -> Result<HeadBlock<'a>, Broken> {
        let bytes = bytes as usize;
        if bytes > HEAD_BLOCK_BYTES_MAX {
            return Err(Broken::HeadTooLong(bytes));
        }
        HeadBlock::new(self.take(bytes)?)
    }

    fn inline_body(&mut self) -> Result<&'a [u8], Broken> {
        let body = self.all();
        if body.len() > INLINE_BODY_BYTES_MAX { Err(Broken::InlineBodyTooLong(body.len())) } else { Ok(body) }
    }

    /// A text of exactly so many records, with its length before it.
    fn text<const RECORDS: usize>(&mut self) -> Result<[&'a [u8]; RECORDS], Broken> {
        let bytes = self.u32()?;
        let text = HeadBlock::new(self.take(bytes as usize)?).map_err(|_| Broken::TextRecords)?;
        let mut records = text.records();
        let mut texts: [&[u8]; RECORDS] = [&[]; RECORDS];
        for text in &mut texts {
            *text = records.next().ok_or(Broken::TextRecords)?;
        }
        if records.next().is_some() { Err(Broken::TextRecords) } else { Ok(texts) }
    }

    fn finish(self) -> Result<(), Broken> {
        if self.rest.is_empty() { Ok(()) } else { Err(Broken::PayloadTooLong) }
    }
}
