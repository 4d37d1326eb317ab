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

/// Of the cores' time, what other machines of the same host may take before delays say nothing of other threads: it is taken
/// from some and left to others.
const STOLEN_MAX: f64 = 0.1;

/// By how much of the truth a percentile may be late where they take more.
const LATE_MAX_WHERE_STOLEN: f64 = 0.5;

/// Between two bytes.
const DISTANCE: Duration = Duration::from_millis(5);

/// A plain client at work.
pub(crate) struct Plain {
    is_over: Arc<AtomicBool>,
    client: JoinHandle<Vec<Duration>>,
    begun: [u64; 2],
}

/// What it measured.
pub(crate) struct Delays {
    sorted: Vec<Duration>,
    /// The share of all cores' time that other machines of the host took.
    stolen: f64,
}

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
        Plain { is_over, client, begun: ticks() }
    }

    pub(crate) fn end(self) -> Delays {
        self.is_over.store(true, Ordering::SeqCst);
        let mut sorted = self.client.join().unwrap();
        sorted.sort_unstable();
        let [all, stolen] = ticks();
        let stolen = (stolen - self.begun[1]) as f64 / (all - self.begun[0]).max(1) as f64;
        Delays { sorted, stolen }
    }
}

/// Ticks of all cores since the machine started, and those of them that other machines of the host took (proc_stat(5)).
fn ticks() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<u64> =
        text.lines().next().unwrap().split_ascii_whitespace().skip(1).flat_map(str::parse).collect();
    [ticks[..8].iter().sum(), ticks[7]]
}

impl Delays {
    /// Whether others took so much of the machine that a thread may have stood still at any place.
    pub(crate) fn is_stolen(&self) -> bool {
        self.stolen > STOLEN_MAX
    }

    /// By which share of the truth a percentile may be late: this one, where the machine was left to us.
    pub(crate) fn late_max(&self, share: f64) -> f64 {
        if self.is_stolen() { LATE_MAX_WHERE_STOLEN } else { share }
    }

    /// What it explains of a percentile. That adds up delays of its own: half of what is beyond it may be later than here.
    pub(crate) fn beside(&self, share: f64) -> Duration {
        let place = (self.sorted.len() as f64 * share.midpoint(1.0)) as usize;
        self.sorted.get(place).or(self.sorted.last()).copied().unwrap_or_default()
    }
}
