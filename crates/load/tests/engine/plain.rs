//! What the machine adds to an answer however it is measured.
//!
//! The plainest client there is: beside the load, one thread sends a byte at even distances, and another sends it back. A
//! machine that is busy with other things wakes these threads late, too, so what they measure is not the load's fault.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two bytes.
const DISTANCE: Duration = Duration::from_millis(5);

/// A plain client at work.
pub(crate) struct Plain {
    is_over: Arc<AtomicBool>,
    client: JoinHandle<Vec<Duration>>,
}

/// What it measured, sorted.
pub(crate) struct Delays(Vec<Duration>);

impl Plain {
    pub(crate) fn start() -> Plain {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for side in [&client, &server] {
            side.set_nodelay(true).unwrap();
        }
        let mut came = [0];
        // It ends with its client.
        thread::spawn(
            move || while server.read_exact(&mut came).and_then(|()| server.write_all(&came)).is_ok() {},
        );
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let client = thread::spawn(move || {
            let mut delays = Vec::new();
            let mut due = Instant::now();
            while !ends.load(Ordering::SeqCst) {
                due = (due + DISTANCE).max(Instant::now());
                thread::sleep(due.saturating_duration_since(Instant::now()));
                client.write_all(&[0]).unwrap();
                client.read_exact(&mut [0]).unwrap();
                delays.push(due.elapsed());
            }
            delays
        });
        Plain { is_over, client }
    }

    pub(crate) fn end(self) -> Delays {
        self.is_over.store(true, Ordering::SeqCst);
        let mut delays = self.client.join().unwrap();
        delays.sort_unstable();
        Delays(delays)
    }
}

impl Delays {
    /// What it explains of a percentile. That adds up delays of its own: half of what is beyond it may be later than here.
    pub(crate) fn beside(&self, share: f64) -> Duration {
        let place = (self.0.len() as f64 * share.midpoint(1.0)) as usize;
        self.0.get(place).or(self.0.last()).copied().unwrap_or_default()
    }
}
