//! The floor that every server is measured against: one thread, one epoll, one `recv` and one
//! `send` per request. It does not parse: it counts empty lines, so that pipelined requests are
//! all answered. The answer's bytes come from a file and are as long as what onehop sends.
//!
//! Usage: rival-floor ADDRESS ANSWER-FILE
#![forbid(unsafe_code)]

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

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
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rival-floor ADDRESS ANSWER-FILE".into());
    };
    let answer = std::fs::read(file)?;
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
            if slot.as_mut().is_some_and(|connection| !serve(connection, &mut buffer, &answer)) {
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
        connections[slot] = Some(Connection { stream, matched: 0, owed: 0, sent: 0 });
    }
    Ok(())
}

/// Answers what has arrived; false when the connection is over.
fn serve(connection: &mut Connection, buffer: &mut [u8], answer: &[u8]) -> bool {
    if !send_owed(connection, answer) {
        return false;
    }
    loop {
        let (count, _) = match recv(&connection.stream, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return false,
            Ok(received) => received,
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        };
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
        if !send_owed(connection, answer) {
            return false;
        }
        // A short read means that the socket is empty: no second `recv` to hear it say so.
        if count < buffer.len() {
            return true;
        }
    }
}

/// Sends until nothing is owed or the socket takes no more; false when the connection is over.
fn send_owed(connection: &mut Connection, answer: &[u8]) -> bool {
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
