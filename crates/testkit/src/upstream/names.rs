//! A small server of names: answers questions for the addresses of any name with those that a test has set.
//!
//! Speaks just enough of DNS over UDP (RFC 1035) for the resolvers that are tested. Answers nobody off this machine.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a question over UDP without extensions (RFC 1035 section 4.2.1), and some more for those.
const QUESTION_BYTES_MAX: usize = 1500;

/// Kind of an IPv4 address (RFC 1035 section 3.2.2).
const A: u16 = 1;

/// A server of names on a port of 127.0.0.1. It ends when this is dropped.
pub struct Names {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// `None`: no such name.
    addresses: Mutex<Option<Vec<Ipv4Addr>>>,
    ttl_seconds: u32,
    asked: AtomicUsize,
    is_ending: AtomicBool,
}

impl Names {
    /// Every name has these addresses, for so many seconds.
    ///
    /// # Panics
    /// Where there is no free port.
    pub fn start(addresses: &[Ipv4Addr], ttl_seconds: u32) -> Names {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        let state = Arc::new(State {
            addresses: Mutex::new(Some(addresses.to_vec())),
            ttl_seconds,
            asked: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
        });
        let answering = Arc::clone(&state);
        std::thread::spawn(move || answering.serve(&socket));
        Names { address, state }
    }

    /// `127.0.0.1:43121`
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// From now on these are the addresses; `None`: there is no such name.
    pub fn set(&self, addresses: Option<&[Ipv4Addr]>) {
        *self.state.addresses.lock().unwrap_or_else(PoisonError::into_inner) =
            addresses.map(<[Ipv4Addr]>::to_vec);
    }

    /// How many questions for IPv4 addresses came.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.state.is_ending.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn serve(&self, socket: &UdpSocket) {
        let mut buffer = [0; QUESTION_BYTES_MAX];
        while !self.is_ending.load(Ordering::SeqCst) {
            let Ok((count, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Some(answer) = buffer.get(..count).and_then(|question| self.answer(question)) {
                let _ = socket.send_to(&answer, from);
            }
        }
    }

    /// RFC 1035 section 4.1.
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let mut end = 12;
        loop {
            let label = usize::from(*question.get(end)?);
            end += 1 + label;
            if label == 0 {
                break;
            }
        }
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        let asked = question.get(12..end + 4)?;
        if kind == A {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (code, addresses) = match addresses {
            None => (3, Vec::new()),
            Some(addresses) if kind == A => (0, addresses),
            Some(_) => (0, Vec::new()),
        };
        let mut answer = question.get(..2)?.to_vec();
        // An answer, authoritative, recursion asked for and there.
        answer.extend([0x85, 0x80 | code]);
        answer.extend([0, 1]);
        answer.extend(u16::try_from(addresses.len()).ok()?.to_be_bytes());
        answer.extend([0; 4]);
        answer.extend(asked);
        for address in addresses {
            // The name is the one at byte 12.
            answer.extend([0xc0, 12]);
            answer.extend(A.to_be_bytes());
            answer.extend([0, 1]);
            answer.extend(self.ttl_seconds.to_be_bytes());
            answer.extend([0, 4]);
            answer.extend(address.octets());
        }
        Some(answer)
    }
}
