//! The floor that every server is measured against: one thread, one epoll, one `recv` and one
//! `send` per request. It does not parse: it counts empty lines, so that pipelined requests are
//! all answered. How long the body is that all requests of a connection get is the path of the
//! first: `/1000` stands for 1000 bytes, everything else for 788.
//!
//! Usage: rival-floor ADDRESS
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use rustix::event::epoll;
use rustix::net::{RecvFlags, SendFlags, recv, send};

struct Connection {
    stream: TcpStream,
    /// How much of the `\r\n\r\n` at a head's end has been seen.
    matched: usize,
    /// Answers that are owed, the one under way too.
    owed: usize,
    /// Bytes of the first of them that the socket has taken.
    sent: usize,
    /// What each request gets, once the first has come.
    answer: Option<Rc<[u8]>>,
}

/// Answers by the length of their body, made once.
type Answers = HashMap<usize, Rc<[u8]>>;

/// The body where no length is asked for: that of the page of `benchmarks/files`.
const USUAL_BYTES: usize = 788;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(address) = arguments.next() else {
        return Err("usage: rival-floor ADDRESS".into());
    };
    let mut answers = Answers::new();
    let listener = TcpListener::bind(address)?;
    // std listens with a backlog of 128 on some targets and 4096 on others: say it.
    rustix::net::listen(&listener, 4096)?;
    listener.set_nonblocking(true)?;

    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(1024);
    let mut buffer = vec![0; 8 * 1024];
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let key = event.data.u64();
            if key == u64::MAX {
                accept_all(&listener, &poll, &mut connections)?;
                continue;
            }
            let slot = &mut connections[key as usize];
            if slot.as_mut().is_some_and(|connection| !serve(connection, &mut buffer, &mut answers)) {
                *slot = None;
            }
        }
    }
}

fn accept_all(
    listener: &TcpListener,
    poll: &impl std::os::fd::AsFd,
    connections: &mut Vec<Option<Connection>>,
) -> Result<(), Box<dyn std::error::Error>> {
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let slot = stream.as_raw_fd() as usize;
        if connections.len() <= slot {
            connections.resize_with(slot + 1, || None);
        }
        let interest = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(poll, &stream, epoll::EventData::new_u64(slot as u64), interest)?;
        connections[slot] = Some(Connection { stream, matched: 0, owed: 0, sent: 0, answer: None });
    }
    Ok(())
}

/// Answers what has arrived; false when the connection is over.
fn serve(connection: &mut Connection, buffer: &mut [u8], answers: &mut Answers) -> bool {
    if !send_owed(connection) {
        return false;
    }
    loop {
        let (count, _) = match recv(&connection.stream, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return false,
            Ok(received) => received,
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        };
        connection.answer.get_or_insert_with(|| answer_to(&buffer[..count], answers));
        for &byte in &buffer[..count] {
            connection.matched = match (connection.matched, byte) {
                (0 | 2, b'\r') | (1 | 3, b'\n') => connection.matched + 1,
                (_, b'\r') => 1,
                _ => 0,
            };
            if connection.matched == 4 {
                connection.matched = 0;
                connection.owed += 1;
            }
        }
        if !send_owed(connection) {
            return false;
        }
        // A short read means that the socket is empty: no second `recv` to hear it say so.
        if count < buffer.len() {
            return true;
        }
    }
}

/// Sends until nothing is owed or the socket takes no more; false when the connection is over.
fn send_owed(connection: &mut Connection) -> bool {
    let Some(answer) = connection.answer.clone() else { return true };
    while connection.owed > 0 {
        match send(&connection.stream, &answer[connection.sent..], SendFlags::NOSIGNAL) {
            Ok(sent) => connection.sent += sent,
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        }
        if connection.sent == answer.len() {
            connection.sent = 0;
            connection.owed -= 1;
        }
    }
    true
}

/// What a request gets that begins with these bytes.
fn answer_to(head: &[u8], answers: &mut Answers) -> Rc<[u8]> {
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let length = path.strip_prefix(b"/").and_then(|path| std::str::from_utf8(path).ok()?.parse().ok());
    let length = length.unwrap_or(USUAL_BYTES);
    let make = || {
        let head = "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/html\r\n";
        let mut answer = format!("{head}Content-Length: {length}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + length, b'x');
        answer.into()
    };
    answers.entry(length).or_insert_with(make).clone()
}
