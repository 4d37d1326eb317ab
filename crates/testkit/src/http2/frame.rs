//! Frames as they stand on the wire (RFC 9113 section 4.1), and the numbers in them.

use std::io::{Read, Result};

/// What a client sends first (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Octets of a frame's payload where nobody allows more (RFC 9113 section 4.2).
pub const FRAME_BYTES_MAX: usize = 16_384;

/// Types of frames.
#[expect(missing_docs, reason = "the names of RFC 9113 section 6 and RFC 9218 section 7.1")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
#[expect(missing_docs, reason = "the names of RFC 9113 section 6")]
pub mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

/// Error codes.
#[expect(missing_docs, reason = "the names of RFC 9113 section 7")]
pub mod code {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const STREAM_CLOSED: u32 = 5;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
    pub const HTTP_1_1_REQUIRED: u32 = 13;
}

/// Settings.
#[expect(missing_docs, reason = "the names of RFC 9113 section 6.5.2 and RFC 8441 section 3")]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

/// One frame, right or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: u8,
    /// Of [`flag`].
    pub flags: u8,
    /// 0 is the connection.
    pub stream: u32,
    /// What follows its header.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of these parts.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Frame {
        Frame { kind, flags, stream, payload: payload.into() }
    }

    /// SETTINGS with these.
    pub fn settings(settings: &[(u16, u32)]) -> Frame {
        let payload = settings.iter().flat_map(|(name, value)| {
            let (name, value) = (name.to_be_bytes(), value.to_be_bytes());
            name.into_iter().chain(value)
        });
        Frame::new(kind::SETTINGS, 0, 0, payload.collect::<Vec<u8>>())
    }

    /// WINDOW_UPDATE of so many octets.
    pub fn window_update(stream: u32, octets: u32) -> Frame {
        Frame::new(kind::WINDOW_UPDATE, 0, stream, octets.to_be_bytes())
    }

    /// RST_STREAM with a code.
    pub fn reset(stream: u32, code: u32) -> Frame {
        Frame::new(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// As it stands on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], self.kind, self.flags];
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// The next one.
    ///
    /// # Errors
    /// Those of the network; `UnexpectedEof` where none comes any more.
    pub fn read(from: &mut impl Read) -> Result<Frame> {
        let mut header = [0; 9];
        from.read_exact(&mut header)?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        from.read_exact(&mut payload)?;
        Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload })
    }

    /// Whether it has this flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The number of four octets that stands there in its payload; 0 where it is too short.
    pub fn number_at(&self, at: usize) -> u32 {
        let octets = self.payload.get(at..at + 4).and_then(|octets| octets.try_into().ok());
        octets.map_or(0, u32::from_be_bytes)
    }

    /// What it carries of a field block or a body: without padding and priority.
    pub(super) fn content(&self) -> &[u8] {
        let mut content = self.payload.as_slice();
        if self.has(flag::PADDED) && matches!(self.kind, kind::DATA | kind::HEADERS) {
            let padding = usize::from(content.first().copied().unwrap_or_default());
            content = content.get(1..content.len().saturating_sub(padding)).unwrap_or_default();
        }
        if self.has(flag::PRIORITY) && self.kind == kind::HEADERS {
            content = content.get(5..).unwrap_or_default();
        }
        content
    }
}
