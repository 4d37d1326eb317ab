//! A raw HTTP/2 client: it sends the frames that it is given and shows what came (RFC 9113). The server's side, for scripted
//! upstreams, is [`Http2Server`].
//!
//! It checks what comes (frame sizes, windows, field names, the order of frames) and reports what a server may not send
//! as an error of the kind `InvalidData`. It acknowledges SETTINGS and PING; anything else is the test's.

mod frame;
mod hpack;
mod server;

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

pub use frame::{FRAME_BYTES_MAX, Frame, PREFACE, code, flag, kind, setting};
pub use hpack::{Fields, integer, literals};
pub use server::{Http2Server, head, response};

use crate::TIMEOUT;
use crate::tls::TlsConnection;
use hpack::Decoder;

/// A window that nobody has changed (RFC 9113 section 6.9.2).
const WINDOW_BYTES: i64 = 65_535;

/// One connection.
pub struct Http2 {
    socket: Box<dyn Socket>,
    scheme: &'static str,
    /// What requests are for.
    pub authority: String,
    /// Whether each octet of a body that comes may be followed by another one; without that, windows are the test's.
    pub takes_all: bool,
    decoder: Decoder,
    next_stream: u32,
    /// What came on streams.
    streams: BTreeMap<u32, Response>,
    /// The server's settings, once they came.
    pub settings: BTreeMap<u16, u32>,
    /// GOAWAY frames that came.
    pub goaways: Vec<GoAway>,
    /// Acknowledged pings.
    pub pongs: usize,
    /// Acknowledged settings.
    pub acks: usize,
    /// Octets that we may send: on the connection, and on each stream.
    send: Windows,
    /// Octets that the server may send.
    receive: Windows,
}

/// What came on one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Heads of interim responses: status and fields.
    pub interim: Vec<(u16, Fields)>,
    /// The status code; 0 before the head.
    pub status: u16,
    /// The fields of the head.
    pub fields: Fields,
    /// The body.
    pub body: Vec<u8>,
    /// The fields behind the body.
    pub trailers: Fields,
    /// Whether END_STREAM came.
    pub is_whole: bool,
    /// The code of RST_STREAM.
    pub reset: Option<u32>,
}

/// A GOAWAY frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoAway {
    /// The last stream that the server may have looked at.
    pub last_stream: u32,
    /// One of [`code`].
    pub code: u32,
    /// The text behind it.
    pub text: String,
}

struct Windows {
    connection: i64,
    /// Of a stream that nothing was said about.
    initial: i64,
    streams: BTreeMap<u32, i64>,
}

trait Socket: Read + Write + Send {}
impl Socket for TcpStream {}
impl Socket for TlsConnection {}

impl Response {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        value(&self.fields, name)
    }

    /// The first value of a field behind the body.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        value(&self.trailers, name)
    }

    /// The body as text.
    ///
    /// # Panics
    /// Where it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    /// Whether nothing more comes.
    pub fn is_over(&self) -> bool {
        self.is_whole || self.reset.is_some()
    }
}

fn value<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
}

impl Windows {
    fn new(initial: i64) -> Windows {
        Windows { connection: WINDOW_BYTES, initial, streams: BTreeMap::new() }
    }

    fn of(&mut self, stream: u32) -> &mut i64 {
        match stream {
            0 => &mut self.connection,
            _ => self.streams.entry(stream).or_insert(self.initial),
        }
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE changes those that are there, too (RFC 9113 section 6.9.2).
    fn start_at(&mut self, initial: i64) {
        for window in self.streams.values_mut() {
            *window += initial - self.initial;
        }
        self.initial = initial;
    }
}

impl Http2 {
    /// Connects to `host:port` with prior knowledge, with usual settings.
    ///
    /// # Panics
    /// Where nobody listens.
    pub fn connect(address: &str) -> Http2 {
        Self::connect_with(address, &[])
    }

    /// The same with these settings.
    ///
    /// # Panics
    /// Where nobody listens.
    pub fn connect_with(address: &str, settings: &[(u16, u32)]) -> Http2 {
        let stream = TcpStream::connect(address)
            .unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"));
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self::start(Box::new(stream), "http", address, settings)
    }

    /// Over an encrypted connection, to this authority.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn over_tls(connection: TlsConnection, authority: &str, settings: &[(u16, u32)]) -> Http2 {
        Self::start(Box::new(connection), "https", authority, settings)
    }

    fn start(
        socket: Box<dyn Socket>,
        scheme: &'static str,
        authority: &str,
        settings: &[(u16, u32)],
    ) -> Http2 {
        let initial = settings.iter().find(|(name, _)| *name == setting::INITIAL_WINDOW_SIZE);
        let mut client = Http2 {
            socket,
            scheme,
            authority: authority.to_owned(),
            takes_all: true,
            decoder: Decoder::new(),
            next_stream: 1,
            streams: BTreeMap::new(),
            settings: BTreeMap::new(),
            goaways: Vec::new(),
            pongs: 0,
            acks: 0,
            send: Windows::new(WINDOW_BYTES),
            receive: Windows::new(initial.map_or(WINDOW_BYTES, |(_, octets)| i64::from(*octets))),
        };
        let mut bytes = PREFACE.to_vec();
        bytes.extend(Frame::settings(settings).bytes());
        client.try_send(&bytes).expect("sent");
        client
    }

    /// Sends a frame as it is.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn send(&mut self, frame: &Frame) {
        self.try_send(&frame.bytes()).expect("sent");
    }

    /// Sends bytes as they are, or says why it cannot.
    ///
    /// # Errors
    /// Those of the network.
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<()> {
        self.socket.write_all(bytes)
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Octets that may be sent now: on the connection, and on a stream that is new.
    pub fn send_windows(&self) -> (usize, usize) {
        let octets = |window| usize::try_from(window).unwrap_or_default();
        (octets(self.send.connection), octets(self.send.initial))
    }

    /// Lets the server send more of a body, or of all (stream 0).
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn let_more_come(&mut self, stream: u32, octets: u32) {
        *self.receive.of(stream) += i64::from(octets);
        self.send(&Frame::window_update(stream, octets));
    }

    /// Opens a stream with exactly these fields; its number.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn open(&mut self, fields: &[(&str, &str)], is_last: bool) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let end = if is_last { flag::END_STREAM } else { 0 };
        self.send(&Frame::new(kind::HEADERS, flag::END_HEADERS | end, stream, literals(fields)));
        stream
    }

    /// Opens a stream without a body with this field block, in HEADERS and as many CONTINUATION frames as it needs.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn open_in_pieces(&mut self, block: &[u8]) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut pieces = block.chunks(FRAME_BYTES_MAX).peekable();
        let (mut kind, mut flags) = (kind::HEADERS, flag::END_STREAM);
        while let Some(piece) = pieces.next() {
            let end = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
            self.send(&Frame::new(kind, flags | end, stream, piece));
            (kind, flags) = (kind::CONTINUATION, 0);
        }
        stream
    }

    /// Opens a stream with a request that is well-formed if its fields are; `is_last` where no body follows.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)], is_last: bool) -> u32 {
        let authority = self.authority.clone();
        let mut all: Vec<(&str, &str)> =
            [(":method", method), (":scheme", self.scheme), (":authority", &authority), (":path", path)]
                .into();
        all.extend(fields);
        self.open(&all, is_last)
    }

    /// Sends a request without a body and waits for all of the response.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn ask(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Response {
        let stream = self.request(method, path, fields, true);
        self.answer(stream)
    }

    /// GET.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, &[])
    }

    /// Sends SETTINGS_INITIAL_WINDOW_SIZE, and waits until the server has seen it.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn change_windows(&mut self, octets: u32) {
        // Until it is acknowledged, the server may send by the larger of both.
        let before = self.receive.initial;
        self.receive.start_at(before.max(octets.into()));
        self.send(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, octets)]));
        self.ping();
        self.receive.start_at(octets.into());
    }

    /// Sends a part of a body, as far as the windows allow at once, and waits where they do not. Stops where the response
    /// is over before that; whether all was sent.
    ///
    /// # Panics
    /// Where the windows do not open within [`TIMEOUT`](crate::TIMEOUT), or the connection is gone.
    pub fn upload(&mut self, stream: u32, mut body: &[u8], is_last: bool) -> bool {
        loop {
            let window = (*self.send.of(stream)).min(self.send.connection);
            let window = usize::try_from(window).unwrap_or_default();
            if window == 0 && !body.is_empty() {
                self.pump().unwrap_or_else(|error| panic!("no window opens: {error}"));
                if self.streams.get(&stream).is_some_and(Response::is_over) {
                    return false;
                }
                continue;
            }
            let (now, rest) = body.split_at(window.min(body.len()).min(FRAME_BYTES_MAX));
            body = rest;
            let end = if is_last && body.is_empty() { flag::END_STREAM } else { 0 };
            let octets = i64::try_from(now.len()).unwrap_or_default();
            *self.send.of(stream) -= octets;
            self.send.connection -= octets;
            self.send(&Frame::new(kind::DATA, end, stream, now));
            if body.is_empty() {
                return true;
            }
        }
    }

    /// What came on a stream until now.
    pub fn seen(&self, stream: u32) -> Response {
        self.streams.get(&stream).cloned().unwrap_or_default()
    }

    /// Waits until a stream is over.
    ///
    /// # Panics
    /// Where that does not come within [`TIMEOUT`](crate::TIMEOUT) after the last frame, or the connection ends.
    pub fn answer(&mut self, stream: u32) -> Response {
        self.wait_on(stream, "the end of a stream", Response::is_over)
    }

    /// Waits until this is true of a stream.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn wait_on(&mut self, stream: u32, what: &str, check: impl Fn(&Response) -> bool) -> Response {
        self.wait_for(what, |client| {
            let answer = client.streams.get(&stream)?;
            check(answer).then(|| answer.clone())
        })
    }

    /// Waits until the check gives a value.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn wait_for<T>(&mut self, what: &str, check: impl Fn(&Http2) -> Option<T>) -> T {
        loop {
            if let Some(value) = check(self) {
                return value;
            }
            let goaways = self.goaways.clone();
            self.pump().unwrap_or_else(|error| panic!("waited in vain for {what}: {error}; {goaways:?}"));
        }
    }

    /// Waits until the server has seen all that was sent: a ping is answered after what came before it is read.
    ///
    /// # Panics
    /// As [`Http2::answer`].
    pub fn ping(&mut self) {
        let wanted = self.pongs + 1;
        self.send(&Frame::new(kind::PING, 0, 0, *b"one ping"));
        self.wait_for("a ping's answer", |client| (client.pongs == wanted).then_some(()));
    }

    /// Reads to the end of the connection; the GOAWAY frames that came.
    ///
    /// # Panics
    /// Where it does not end within [`TIMEOUT`](crate::TIMEOUT) after the last frame.
    pub fn read_to_end(&mut self) -> Vec<GoAway> {
        loop {
            match self.pump() {
                Ok(_) => {}
                Err(error) if is_end(&error) => return self.goaways.clone(),
                Err(error) => panic!("the connection did not end: {error}; {:?}", self.goaways),
            }
        }
    }

    /// Reads one frame and notes what it says.
    ///
    /// # Errors
    /// Those of the network; `UnexpectedEof` where the connection ended, `InvalidData` where a server may not send it.
    pub fn pump(&mut self) -> Result<Frame> {
        let frame = Frame::read(&mut self.socket)?;
        if frame.payload.len() > FRAME_BYTES_MAX {
            return Err(wrong(&frame, "longer than SETTINGS_MAX_FRAME_SIZE"));
        }
        match frame.kind {
            kind::DATA => self.take_data(&frame)?,
            kind::HEADERS => self.take_headers(&frame)?,
            kind::RST_STREAM => self.stream(&frame)?.reset = Some(frame.number_at(0)),
            kind::SETTINGS if frame.has(flag::ACK) => self.acks += 1,
            kind::SETTINGS => self.take_settings(&frame),
            kind::PING if frame.has(flag::ACK) => self.pongs += 1,
            // Where the connection has ended meanwhile, what came before that is there to be read.
            kind::PING => drop(self.try_send(&Frame { flags: flag::ACK, ..frame.clone() }.bytes())),
            kind::GOAWAY => self.goaways.push(GoAway {
                last_stream: frame.number_at(0),
                code: frame.number_at(4),
                text: String::from_utf8_lossy(frame.payload.get(8..).unwrap_or_default()).into_owned(),
            }),
            kind::WINDOW_UPDATE => *self.send.of(frame.stream) += i64::from(frame.number_at(0)),
            kind::PUSH_PROMISE | kind::CONTINUATION => return Err(wrong(&frame, "not expected")),
            _ => {}
        }
        Ok(frame)
    }

    /// What came on a stream, where something may still come (RFC 9113 section 5.1).
    fn stream(&mut self, frame: &Frame) -> Result<&mut Response> {
        if frame.stream.is_multiple_of(2) || frame.stream >= self.next_stream {
            return Err(wrong(frame, "on a stream that is not open"));
        }
        let answer = self.streams.entry(frame.stream).or_default();
        if answer.reset.is_some() || (answer.is_whole && frame.kind != kind::RST_STREAM) {
            return Err(wrong(frame, "after the end of its stream"));
        }
        Ok(answer)
    }

    fn take_data(&mut self, frame: &Frame) -> Result<()> {
        let octets = u32::try_from(frame.payload.len()).unwrap_or(u32::MAX);
        for stream in [0, frame.stream] {
            let window = self.receive.of(stream);
            *window -= i64::from(octets);
            if *window < 0 && octets > 0 {
                return Err(wrong(frame, "beyond a window"));
            }
        }
        let answer = self.stream(frame)?;
        if answer.status == 0 || !answer.trailers.is_empty() {
            return Err(wrong(frame, "not between a head and trailers"));
        }
        answer.body.extend_from_slice(frame.content());
        answer.is_whole = frame.has(flag::END_STREAM);
        if self.takes_all && octets > 0 {
            for stream in [0, frame.stream] {
                *self.receive.of(stream) += i64::from(octets);
                let _ = self.try_send(&Frame::window_update(stream, octets).bytes());
            }
        }
        Ok(())
    }

    fn take_headers(&mut self, frame: &Frame) -> Result<()> {
        let mut block = frame.content().to_vec();
        let mut is_complete = frame.has(flag::END_HEADERS);
        while !is_complete {
            let more = Frame::read(&mut self.socket)?;
            if more.kind != kind::CONTINUATION || more.stream != frame.stream {
                return Err(wrong(&more, "within a field block"));
            }
            block.extend_from_slice(&more.payload);
            is_complete = more.has(flag::END_HEADERS);
        }
        let fields = self.decoder.decode(&block)?;
        let answer = self.stream(frame)?;
        let is_trailer = answer.status != 0;
        check_fields(frame, &fields, is_trailer)?;
        let is_last = frame.has(flag::END_STREAM);
        if is_trailer {
            if !is_last {
                return Err(wrong(frame, "trailers without END_STREAM"));
            }
            answer.trailers = fields;
        } else {
            let status = fields.first().and_then(|(_, status)| status.parse().ok()).unwrap_or_default();
            let fields: Fields = fields.into_iter().skip(1).collect();
            match status {
                100..200 if is_last || status == 101 => return Err(wrong(frame, "no interim response")),
                100..200 => answer.interim.push((status, fields)),
                _ => (answer.status, answer.fields) = (status, fields),
            }
        }
        answer.is_whole = is_last;
        Ok(())
    }

    fn take_settings(&mut self, frame: &Frame) {
        for octets in frame.payload.chunks_exact(6) {
            let &[a, b, c, d, e, f] = octets else { continue };
            self.settings.insert(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        }
        if let Some(octets) = self.settings.get(&setting::INITIAL_WINDOW_SIZE) {
            self.send.start_at(i64::from(*octets));
        }
        let _ = self.try_send(&Frame::new(kind::SETTINGS, flag::ACK, 0, []).bytes());
    }
}

/// What RFC 9113 section 8.2 and 8.3.2 ask of the fields of a response.
fn check_fields(frame: &Frame, fields: &Fields, is_trailer: bool) -> Result<()> {
    let pseudo: Vec<usize> =
        fields.iter().enumerate().filter(|(_, (name, _))| name.starts_with(':')).map(|(at, _)| at).collect();
    let starts_with_status = fields.first().is_some_and(|(name, _)| name == ":status");
    if pseudo != (if is_trailer { vec![] } else { vec![0] }) || starts_with_status == is_trailer {
        return Err(wrong(frame, "with other pseudo-header fields than :status alone"));
    }
    const OF_CONNECTIONS: [&str; 5] =
        ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    for (name, value) in fields {
        if name.chars().any(|letter| letter.is_ascii_uppercase() || letter == ' ') || name.is_empty() {
            return Err(wrong(frame, &format!("with the field name {name:?}")));
        }
        if OF_CONNECTIONS.contains(&name.as_str()) || value.trim() != value {
            return Err(wrong(frame, &format!("with the field {name}: {value:?}")));
        }
    }
    Ok(())
}

/// Whether a connection has ended, in whichever way.
pub fn is_end(error: &Error) -> bool {
    let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    ends.contains(&error.kind())
}

fn wrong(frame: &Frame, why: &str) -> Error {
    let Frame { kind, flags, stream, payload } = frame;
    let text = format!(
        "a frame of type {kind}, flags {flags}, stream {stream}, {} octets, {why} (RFC 9113)",
        payload.len()
    );
    Error::new(ErrorKind::InvalidData, text)
}
