//! Dev only: starts the real program on a free port and speaks to it byte by byte.
//!
//! Owns child processes, folders that vanish and a client that shows what stood on the wire. It must
//! never be kinder than a real client: nothing is repeated, corrected or guessed. `distance/` puts two ends far apart.
#![forbid(unsafe_code)]

mod client;
pub mod distance;
mod folder;
pub mod http2;
pub mod pebble;
mod program;
pub mod tls;
pub mod upstream;

pub use client::{Client, Response};
pub use folder::Folder;
pub use program::{Finished, Onehop, Program, Started};

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen: long enough for a busy machine, short enough
/// for a test that fails.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// An address of this machine that nothing listens on, below the ports that the kernel gives to connections.
///
/// # Panics
/// Where there is none.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..20_000 {
        let number = std::process::id().wrapping_mul(37).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + number % 20_000).unwrap_or_default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port");
}

/// Waits until the check gives a value.
///
/// # Panics
/// With `what`, after [`TIMEOUT`].
pub fn wait_for<T>(what: &str, check: impl FnMut() -> Option<T>) -> T {
    wait_at_most(TIMEOUT, what, check)
}

/// The same for what may take longer.
///
/// # Panics
/// With `what`, after that time.
pub fn wait_at_most<T>(timeout: Duration, what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(begun.elapsed() < timeout, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
