//! Frames as values: what each kind carries.
//!
//! Owns the types and the numbers of kinds, facts and codes. Reading is `decode.rs`, writing `encode.rs`.

use std::net::SocketAddr;

use crate::Broken;
use crate::head::{HeadBlock, Records};

/// Which side sent the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is that side")]
pub enum Sender {
    Server,
    Worker,
}

/// Which sort of connection the bytes came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKind {
    /// The first one, about the worker itself.
    Control,
    /// All others, with exchanges.
    Data,
}

/// A whole frame. It borrows the bytes that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The place of its exchange on the connection; 0 on the control connection.
    pub slot: u16,
    /// Which exchange in that place; 0 on the control connection.
    pub generation: u32,
    /// The last frame of its direction.
    pub end: bool,
    /// What it carries.
    pub payload: Payload<'a>,
}

/// What a frame carries, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The server's first frame.
    Hello(Hello<'a>),
    /// The worker has loaded the application.
    Ready(Ready<'a>),
    /// The worker could not load the application: UTF-8 text for people, not checked.
    Failed(&'a [u8]),
    /// Asks for [`Payload::Pong`] with this token.
    Ping(u64),
    /// The event loop turns.
    Pong(Pong),
    /// Files that the worker has loaded since it last reported some: absolute paths, each ended by a NUL, not checked.
    Loaded(&'a [u8]),
    /// The event loop stood still.
    Blocked(Blocked),
    /// No more requests.
    Drain,
    /// Finish and exit.
    Retire,
    /// The beginning of an exchange.
    Request(Request<'a>),
    /// The final head of an answer.
    Response(Response<'a>),
    /// A head before the final one.
    Informational(Informational<'a>),
    /// An answer whose body is a file that the server opens.
    File(File<'a>),
    /// Bytes of a body, or after 101 of the new protocol.
    Data(&'a [u8]),
    /// Fields after a body.
    Trailers(HeadBlock<'a>),
    /// The exchange is over.
    Reset(ResetCode),
    /// Bytes that may be sent in addition.
    Credit(u32),
    /// Bytes of a file are the next bytes of an answer's body.
    FilePart(FilePart<'a>),
    /// So many bytes of the file that [`Payload::FilePart`] named have been passed on.
    FileSent(u64),
}

/// What the server tells a new worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The lowest version that the server speaks.
    pub version_min: u16,
    /// The highest version that the server speaks.
    pub version_max: u16,
    /// Data connections.
    pub connections: u16,
    /// Slots on each data connection.
    pub slots: u16,
    /// The window of a stream, in bytes.
    pub stream_window: u32,
    /// The window of a connection, in bytes.
    pub connection_window: u32,
    /// Requests that a worker may begin in one turn of its event loop.
    pub begins_per_turn: u32,
    /// The server and its version, without line feeds.
    pub server: &'a [u8],
    /// The application's name, without line feeds.
    pub application: &'a [u8],
}

/// What a worker says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready<'a> {
    /// The version that is spoken from now on.
    pub version: u16,
    /// How its requests reach it.
    pub transport: Transport,
    /// The runtime's name, without line feeds.
    pub runtime: &'a [u8],
    /// The runtime's version, without line feeds.
    pub runtime_version: &'a [u8],
    /// The version of the worker's library, without line feeds.
    pub library_version: &'a [u8],
}

/// How requests reach a worker that is ready; the control connection is the same for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// As frames on the data connections.
    #[default]
    Frames,
    /// As HTTP/1.1 on the Unix socket that `ONEHOP_HTTP_SOCKET` named; nothing is ever on the data connections.
    Http,
    /// As frames, for a server of the application's own: it bounds by itself how many it has at a time.
    FramesForServer,
}

impl Transport {
    /// The number that READY has for it.
    pub fn code(self) -> u16 {
        match self {
            Transport::Frames => 0,
            Transport::Http => 1,
            Transport::FramesForServer => 2,
        }
    }

    /// The one that has this number in READY.
    pub fn from_code(code: u16) -> Option<Self> {
        let all = [Transport::Frames, Transport::Http, Transport::FramesForServer];
        all.into_iter().find(|transport| transport.code() == code)
    }
}

/// How a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pong {
    /// The PING's token.
    pub token: u64,
    /// Longest delay of the event loop since the last PONG, in microseconds.
    pub delay_us: u32,
    /// Exchanges in flight.
    pub in_flight: u32,
    /// Requests begun since the start.
    pub begun: u64,
    /// Bytes in use on the heap.
    pub heap_bytes: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
}

/// A time in which the event loop of a worker ran one thing and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocked {
    /// How long it was, in microseconds.
    pub duration_us: u32,
    /// How long before this frame it ended, in microseconds.
    pub ended_us_ago: u32,
}

/// The beginning of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method's number, 0 for one that stands in the head block.
    pub method_code: u8,
    /// What is known of the request beside its head.
    pub facts: Facts,
    /// The client's address; `None` on a Unix socket.
    pub client: Option<SocketAddr>,
    /// The request's id.
    pub id: u64,
    /// Bytes of the body, where that is known.
    pub length: Option<u64>,
    /// The whole block, with the four records before the fields: [`Request::line`] takes them off.
    pub head: HeadBlock<'a>,
    /// Bytes of the body that were already there.
    pub body: &'a [u8],
}

/// A request's four leading records, and its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// Path and query.
    pub target: &'a [u8],
    /// The authority; may be empty.
    pub authority: &'a [u8],
    /// TLS facts; empty without TLS.
    pub tls: &'a [u8],
    /// The method where its number is 0, else empty.
    pub method: &'a [u8],
    /// The rest of the block.
    pub fields: HeadBlock<'a>,
}

impl<'a> Request<'a> {
    /// The records before the fields, and the fields.
    pub fn line(&self) -> Result<RequestLine<'a>, Broken> {
        fn next<'a>(records: &mut Records<'a>) -> Result<&'a [u8], Broken> {
            records.next().ok_or(Broken::LeadingRecords)
        }
        let mut records = self.head.records();
        Ok(RequestLine {
            target: next(&mut records)?,
            authority: next(&mut records)?,
            tls: next(&mut records)?,
            method: next(&mut records)?,
            fields: records.rest(),
        })
    }
}

/// The final head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// 101, or 200 to 999.
    pub status: u16,
    /// Bytes of the body, where that is known. With END and a body the payload decides.
    pub length: Option<u64>,
    /// The fields.
    pub head: HeadBlock<'a>,
    /// The beginning of the body, or with END all of it.
    pub body: &'a [u8],
}

/// A head before the final one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Informational<'a> {
    /// 100, or 102 to 199.
    pub status: u16,
    /// The fields.
    pub head: HeadBlock<'a>,
}

/// An answer whose body is a file that the server opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// 200 to 999. With 200 conditions and ranges are the server's.
    pub status: u16,
    /// The fields.
    pub head: HeadBlock<'a>,
    /// Bytes of the file that are left out.
    pub offset: u64,
    /// Bytes of it that are sent; `None` is the rest.
    pub length: Option<u64>,
    /// Where it is, relative to the folder for such files. Not checked in any way.
    pub path: &'a [u8],
}

/// Bytes of a file that the server is asked to open, and that the worker has open itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart<'a> {
    /// Where they begin in the file.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
    /// The device of the file that is meant (`st_dev`).
    pub device: u64,
    /// Its number there (`st_ino`).
    pub inode: u64,
    /// Where it is, relative to the folder for such files. Not checked in any way.
    pub path: &'a [u8],
}

/// What the server knows of a request beside its head: a set of bits. Bits without a name are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts(pub u8);

impl Facts {
    /// Nothing.
    pub const NONE: Facts = Facts(0);
    /// The client's connection is encrypted.
    pub const ENCRYPTED: Facts = Facts(1);
    /// The client waits for 100 before it sends its body.
    pub const EXPECTS_CONTINUE: Facts = Facts(2);
    /// The client asks for an upgrade.
    pub const UPGRADE: Facts = Facts(4);
    /// HTTP/1.0
    pub const HTTP_10: Facts = Facts(8);
    /// A name of the table is sent in full, in a spelling of its own.
    pub const ODD_SPELLING: Facts = Facts(16);

    /// Both sets together.
    pub const fn with(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    /// All of `other` is in this set.
    pub const fn has(self, other: Facts) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Why an exchange is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ResetCode {
    /// The client closed its connection.
    ClientGone = 1,
    /// The answer took too long.
    Timeout = 2,
    /// The handler failed before its answer was complete.
    Failed = 3,
    /// The request was never begun and may be given to another worker.
    Refused = 4,
    /// The answer is complete, the rest of the request is not wanted.
    NotNeeded = 5,
    /// What the worker sent is not an answer.
    Broken = 6,
    /// The application closed the connection.
    HangUp = 7,
}

impl ResetCode {
    /// The code's number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// What a number means from this side: codes that the side does not send count as its general one.
    pub const fn from_number(number: u32, from: Sender) -> ResetCode {
        match (from, number) {
            (Sender::Server, 2) => ResetCode::Timeout,
            (Sender::Server, 5) => ResetCode::NotNeeded,
            (Sender::Server, 6) => ResetCode::Broken,
            (Sender::Server, _) => ResetCode::ClientGone,
            (Sender::Worker, 4) => ResetCode::Refused,
            (Sender::Worker, 7) => ResetCode::HangUp,
            (Sender::Worker, _) => ResetCode::Failed,
        }
    }
}

/// The kinds of frames, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Hello = 0x01,
    Ready = 0x02,
    Failed = 0x03,
    Ping = 0x04,
    Pong = 0x05,
    Drain = 0x06,
    Retire = 0x07,
    Loaded = 0x08,
    Blocked = 0x09,
    Request = 0x10,
    Response = 0x11,
    Informational = 0x12,
    File = 0x13,
    Data = 0x14,
    Trailers = 0x15,
    Reset = 0x16,
    Credit = 0x17,
    FilePart = 0x18,
    FileSent = 0x19,
}

/// Whether a kind of frame is the last of its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Never,
    Maybe,
    Always,
}

impl Kind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            0x01 => Kind::Hello,
            0x02 => Kind::Ready,
            0x03 => Kind::Failed,
            0x04 => Kind::Ping,
            0x05 => Kind::Pong,
            0x06 => Kind::Drain,
            0x07 => Kind::Retire,
            0x08 => Kind::Loaded,
            0x09 => Kind::Blocked,
            0x10 => Kind::Request,
            0x11 => Kind::Response,
            0x12 => Kind::Informational,
            0x13 => Kind::File,
            0x14 => Kind::Data,
            0x15 => Kind::Trailers,
            0x16 => Kind::Reset,
            0x17 => Kind::Credit,
            0x18 => Kind::FilePart,
            0x19 => Kind::FileSent,
            _ => return None,
        })
    }

    /// Who sends it; `None` is both.
    pub(crate) const fn sender(self) -> Option<Sender> {
        match self {
            Kind::Hello | Kind::Ping | Kind::Retire | Kind::Request | Kind::FileSent => Some(Sender::Server),
            Kind::Ready
            | Kind::Failed
            | Kind::Pong
            | Kind::Loaded
            | Kind::Blocked
            | Kind::Response
            | Kind::Informational
            | Kind::File
            | Kind::FilePart => Some(Sender::Worker),
            Kind::Drain | Kind::Data | Kind::Trailers | Kind::Reset | Kind::Credit => None,
        }
    }

    pub(crate) const fn connection(self) -> ConnectionKind {
        match self {
            Kind::Hello
            | Kind::Ready
            | Kind::Failed
            | Kind::Ping
            | Kind::Pong
            | Kind::Drain
            | Kind::Retire
            | Kind::Loaded
            | Kind::Blocked => ConnectionKind::Control,
            _ => ConnectionKind::Data,
        }
    }

    pub(crate) const fn end(self) -> End {
        match self {
            Kind::Request | Kind::Response | Kind::Data => End::Maybe,
            Kind::File | Kind::Trailers => End::Always,
            _ => End::Never,
        }
    }
}
