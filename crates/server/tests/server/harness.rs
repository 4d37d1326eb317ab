//! Starts servers from Onehopfile text.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onehop_archive::installed::Packed;
use onehop_config::checked::{Admin, Checked, ListenAddress};
use onehop_config::{FileKind, FileSource, load};
use onehop_metrics::exposition::TextFormat;
use onehop_server::control::SuperviseOptions;
use onehop_server::limits::Timeouts;
use onehop_server::{Event, Options, Running, Server, StartError};
use tempfile::TempDir;

use crate::client::Client;

pub(crate) struct TestServer {
    running: Option<Running>,
    pub(crate) folder: TempDir,
    events: Mutex<Receiver<Event>>,
}

/// What a test wants besides the text.
#[derive(Clone)]
pub(crate) struct Wishes {
    pub(crate) threads: usize,
    pub(crate) timeouts: Timeouts,
    pub(crate) connections_max: Option<usize>,
    pub(crate) packed: Option<Packed>,
    /// What is changed in the settings after they were read.
    pub(crate) amend: Option<Arc<Amend>>,
}

pub(crate) type Amend = dyn Fn(&mut Checked) + Send + Sync;

impl Default for Wishes {
    fn default() -> Self {
        Self { threads: 1, timeouts: Timeouts::default(), connections_max: None, packed: None, amend: None }
    }
}

/// A folder with a small built application.
pub(crate) fn application() -> TempDir {
    let folder = TempDir::new().unwrap();
    write(
        folder.path(),
        "dist/index.html",
        b"<!doctype html><script src=/assets/index-B3xKq9aZ.js></script>app",
    );
    write(folder.path(), "dist/assets/index-B3xKq9aZ.js", "console.log('hello');".repeat(100).as_bytes());
    write(folder.path(), "dist/assets/large-C4yLr0bA.bin", &vec![b'x'; 3 << 20]);
    write(folder.path(), "dist/robots.txt", b"User-agent: *\n");
    folder
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// An address where nobody listens, and that no other test is given: each call has an address of loopback of its own.
pub(crate) fn nowhere() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let [high, low] = NEXT.fetch_add(1, Ordering::SeqCst).to_be_bytes();
    std::net::TcpListener::bind((Ipv4Addr::new(127, 77, high, low), 0)).unwrap().local_addr().unwrap()
}

/// A server of the application, on a free port.
pub(crate) fn serve_application(wishes: Wishes) -> TestServer {
    TestServer::start(application(), "http://localhost:0 {\n\tbind 127.0.0.1\n\tspa ./dist\n}\n", wishes)
}

impl TestServer {
    pub(crate) fn start(folder: TempDir, text: &str, wishes: Wishes) -> Self {
        Self::try_start(folder, text, wishes).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_start(folder: TempDir, text: &str, wishes: Wishes) -> Result<Self, StartError> {
        let file = folder.path().join("Onehopfile");
        std::fs::write(&file, text).unwrap();
        let amend = wishes.amend;
        let read = move || {
            let mut checked = read(&file)?;
            if let Some(amend) = &amend {
                amend(&mut checked);
            }
            Ok(checked)
        };
        let checked = read().unwrap_or_else(|problems: String| panic!("{problems}"));
        let (sender, events) = channel();
        let options = Options {
            threads: NonZeroUsize::new(wishes.threads),
            events: Arc::new(move |event| drop(sender.send(event))),
            control_socket: None,
            load: Arc::new(read),
            compressor: None,
            supervise: SuperviseOptions::default(),
            timeouts: wishes.timeouts,
            connections_max: wishes.connections_max.and_then(NonZeroUsize::new),
            packed: wishes.packed,
            recent: Arc::default(),
            server_log: Arc::default(),
            history: None,
        };
        let running = Server::start(checked, options)?;
        Ok(Self { running: Some(running), folder, events: Mutex::new(events) })
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn address(&self) -> String {
        self.running().addresses()[0].clone()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(&self.address())
    }

    pub(crate) fn metrics(&self) -> String {
        onehop_metrics::exposition::text(&self.running().api().metrics(), TextFormat::Prometheus)
    }

    /// The value of a metric line that begins so; 0 where there is none.
    pub(crate) fn metric(&self, begin: &str) -> u64 {
        let text = self.metrics();
        let lines = text.lines().filter(|line| line.starts_with(begin));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Waits for an event that fits.
    pub(crate) fn wait_for<T>(&self, fits: impl Fn(&Event) -> Option<T>) -> T {
        let events = self.events.lock().unwrap();
        loop {
            let event = events.recv_timeout(Duration::from_secs(20)).expect("the event comes");
            if let Some(found) = fits(&event) {
                return found;
            }
        }
    }

    /// Stops, and gives the number of connections that were cut off.
    pub(crate) fn stop(mut self) -> u64 {
        let running = self.running.take().unwrap();
        running.stop();
        running.wait()
    }

    /// The server and its folder, which is removed when it is dropped.
    pub(crate) fn into_running(mut self) -> (Running, TempDir) {
        let running = self.running.take().unwrap();
        (running, std::mem::replace(&mut self.folder, TempDir::new().unwrap()))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}

fn read(file: &Path) -> Result<Checked, String> {
    let loaded = load(file, FileKind::Onehopfile, &FileSource);
    let loaded =
        loaded.map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let mut checked = loaded.checked;
    checked.global.admin = Admin::Off;
    checked.global.grace_period = Duration::from_secs(5);
    for listener in &mut checked.listeners {
        // Tests that name no interface still stay on this machine.
        if let ListenAddress::Tcp { host: host @ None, .. } = &mut listener.address {
            *host = Some(std::net::Ipv4Addr::LOCALHOST.into());
        }
    }
    Ok(checked)
}
