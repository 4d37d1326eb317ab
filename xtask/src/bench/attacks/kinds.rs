//! What attackers over HTTP/2 send, and the bound that ends each of them (docs/http2.md, `crates/http2/src/limits.rs`).

use onehop_http2::limits::{
    OVERHEAD_BURST, OVERHEAD_PER_SECOND, PINGS_BURST, PINGS_PER_SECOND, PROVOKED_RESETS_MAX, RESETS_BURST,
    RESETS_PER_SECOND, SETTINGS_BURST, SETTINGS_PER_SECOND,
};
use onehop_testkit::http2::{Frame, code, flag, integer, kind, literals};

/// Where the page is that other clients ask for.
pub(super) const PAGE: &str = "/";
/// Where a second site of the same server is proxied to.
pub(super) const PROXIED: &str = "/proxied";
/// A file that is larger than what the kernel takes.
pub(super) const LARGE: &str = "/large.bin";

/// One attack.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// What its requests are for.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// MiB by which the server's memory may grow.
    pub(super) growth_mib: u64,
}

pub(super) enum Kind {
    Flood(Flood),
    Hold(Hold),
}

/// Frames as fast as they are taken. The server ends the connection, and the attacker makes another.
pub(super) struct Flood {
    /// The bytes of each round, counted from 0 on each connection.
    pub(super) round: fn(&str, u32) -> Vec<u8>,
    /// Rounds that the server takes at once, and in each second after that.
    pub(super) bound: (u32, u32),
}

/// Responses that are asked for and not taken: some connections hold theirs for all the time, and on a further one after the
/// other as many are asked for and left.
pub(super) struct Hold {
    pub(super) connections: usize,
    /// SETTINGS_INITIAL_WINDOW_SIZE, and the window of the connection.
    pub(super) window: u32,
    /// Bytes that the attacker's kernel holds; `None` leaves that to it.
    pub(super) receive_buffer: Option<usize>,
}

/// Streams of each connection that holds responses.
pub(super) const STREAMS: u32 = 100;

/// All of them. Each flood has one connection at a time: what a connection may hold, and what the allocator keeps. Responses that
/// wait have their first pieces.
pub(super) const ATTACKS: [Attack; 9] = [
    flood("rapid-reset", PAGE, rapid_reset, (RESETS_BURST, RESETS_PER_SECOND)),
    flood("rapid-reset-proxied", PROXIED, rapid_reset, (RESETS_BURST, RESETS_PER_SECOND)),
    flood("made-you-reset", PAGE, made_you_reset, (PROVOKED_RESETS_MAX as u32, 0)),
    flood("continuation", PAGE, continuation, (OVERHEAD_BURST, OVERHEAD_PER_SECOND)),
    flood("hpack-bomb", PAGE, hpack_bomb, (PROVOKED_RESETS_MAX as u32, 0)),
    flood("settings", PAGE, settings, (SETTINGS_BURST, SETTINGS_PER_SECOND)),
    flood("ping", PAGE, ping, (PINGS_BURST, PINGS_PER_SECOND)),
    hold("stalled-windows", Hold { connections: 10, window: 0, receive_buffer: None }, 32),
    hold("slow-readers", Hold { connections: 50, window: 1 << 30, receive_buffer: Some(4096) }, 160),
];

const fn flood(
    name: &'static str,
    path: &'static str,
    round: fn(&str, u32) -> Vec<u8>,
    bound: (u32, u32),
) -> Attack {
    Attack { name, path, kind: Kind::Flood(Flood { round, bound }), growth_mib: 24 }
}

const fn hold(name: &'static str, hold: Hold, growth_mib: u64) -> Attack {
    Attack { name, path: LARGE, kind: Kind::Hold(hold), growth_mib }
}

fn fields(path: &str) -> Vec<u8> {
    literals(&[(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", path)])
}

/// HEADERS of a whole request.
pub(super) fn get(path: &str, stream: u32) -> Vec<u8> {
    Frame::new(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, fields(path)).bytes()
}

/// CVE-2023-44487.
fn rapid_reset(path: &str, round: u32) -> Vec<u8> {
    let stream = round * 2 + 1;
    [get(path, stream), Frame::reset(stream, code::CANCEL).bytes()].concat()
}

/// CVE-2025-8671: a window beyond 2^31-1, which the server has to answer with a reset.
fn made_you_reset(path: &str, round: u32) -> Vec<u8> {
    let stream = round * 2 + 1;
    [get(path, stream), Frame::window_update(stream, 0x7fff_ffff).bytes()].concat()
}

/// CVE-2024-27316: a field block without end.
fn continuation(path: &str, round: u32) -> Vec<u8> {
    match round {
        0 => Frame::new(kind::HEADERS, flag::END_STREAM, 1, fields(path)).bytes(),
        _ => Frame::new(kind::CONTINUATION, 0, 1, literals(&[("x", "yyyyy")])).bytes(),
    }
}

/// A field of 4,000 bytes in the table, and 12,000 bytes that each name it.
fn hpack_bomb(path: &str, round: u32) -> Vec<u8> {
    let mut block = fields(path);
    block.push(0x40);
    integer(&mut block, 0, 7, 1);
    block.push(b'a');
    integer(&mut block, 0, 7, 4000);
    block.extend([b'b'; 4000]);
    block.extend(std::iter::repeat_n(0x80 | 62, 12_000));
    Frame::new(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, round * 2 + 1, block).bytes()
}

fn settings(_: &str, _: u32) -> Vec<u8> {
    Frame::settings(&[]).bytes()
}

fn ping(_: &str, _: u32) -> Vec<u8> {
    Frame::new(kind::PING, 0, 0, [7; 8]).bytes()
}
