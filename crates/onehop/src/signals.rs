//! Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT stop, a second SIGINT ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What the main thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Read the configuration again.
    Reload,
    /// Stop.
    Stop,
    /// The server has begun to stop by itself, or through its control socket.
    Stopping,
}

/// Listens from now on. Until `serving` is set, SIGTERM and SIGINT end the process at once: nothing is
/// in flight yet, and reading a large tree cannot be interrupted otherwise.
pub(crate) fn listen(wishes: Sender<Wish>, serving: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut stop_was_asked = false;
        for signal in signals.forever() {
            if signal == SIGHUP {
                // An error means that the main thread is past listening: it is stopping.
                let _ = wishes.send(Wish::Reload);
                continue;
            }
            if !serving.load(Ordering::Acquire) {
                std::process::exit(0);
            }
            if stop_was_asked && signal == SIGINT {
                crate::report::write_line("interrupted again: ending at once");
                std::process::exit(1);
            }
            stop_was_asked = true;
            let _ = wishes.send(Wish::Stop);
        }
    })?;
    Ok(())
}
