//! From checked settings to a server that has stopped: what `run` and `serve` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use onehop_archive::installed::Packed;
use onehop_config::checked::Checked;
use onehop_server::control::admin::remove_dead_control_sockets;
use onehop_server::control::{Restart, SuperviseOptions};
use onehop_server::limits::Timeouts;
use onehop_server::{Event, Options, Running, Server, StartError};

use super::{exec_worker, forms, guard};
use crate::arguments::Process;
use crate::control_client;
use crate::control_path;
use crate::failure::Failure;
use crate::own_program;
use crate::report::Reporter;
use crate::signals::{self, Action};
use crate::watch::{self, Apps, Watching};

/// What is served, and how.
pub(super) struct Serving<'a> {
    /// The first settings.
    pub(super) checked: Checked,
    /// Options of the process.
    pub(super) process: &'a Process,
    /// The file or folder by which `onehop reload` finds this process.
    pub(super) subject: &'a Path,
    /// Reads the settings anew.
    pub(super) load: Arc<dyn Fn() -> Result<Checked, String> + Send + Sync>,
    /// Files whose change means a reload.
    pub(super) watch: Option<Watching>,
    /// The pack that this program is.
    pub(super) packed: Option<Packed>,
    /// Where events are shown.
    pub(super) reporter: Reporter,
    /// The history outlives the process, in the data directory; what is served for once has it in memory.
    pub(super) keeps_history: bool,
}

/// What the process writes its events to, as its options say.
pub(super) fn reporter(process: &Process) -> Result<Reporter, Failure> {
    Reporter::of(process)
        .map_err(|error| Failure::failed(format!("cannot start the thread that writes events: {error}")))
}

/// Starts, obeys signals, and returns when the server has stopped.
pub(super) fn serve_until_stopped(serving: Serving<'_>) -> Result<(), Failure> {
    let Serving { checked, process, subject, load, watch, packed, reporter, keeps_history } = serving;
    let (send, actions) = mpsc::channel();
    let is_serving = Arc::new(AtomicBool::new(false));
    // Before anything is bound: a signal that comes while a large tree is read must not be lost.
    signals::listen(send.clone(), Arc::clone(&is_serving))
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    let control_socket = control_socket(process, subject, &reporter)?;

    let events = {
        let send = send.clone();
        reporter.sink(move |event| match event {
            // Whoever has read this event may send a signal at once, and requests are in flight.
            Event::Ready { .. } => is_serving.store(true, Ordering::Release),
            Event::Stopping { .. } | Event::Stopped { .. } => {
                let _ = send.send(Action::Stopping);
            }
            _ => {}
        })
    };
    let watches = watch.is_some();
    let apps = Apps::default();
    // From what was just read on: a file that changes while the trees are read is read again afterwards.
    if let Some(files) = watch
        && let Err(error) = watch::start(files, Arc::clone(&apps), send)
    {
        reporter.warn(format!("--watch does not work: {error}"));
    }
    let (recent, server_log) = (reporter.recent(), reporter.server_log());
    let options = Options {
        threads: process.threads,
        events,
        control_socket,
        load,
        compressor: Some(forms::compressor()),
        supervise: SuperviseOptions {
            launcher: Some(exec_worker::launcher()),
            guard: Some(guard::guard()),
            // Nobody works on what is packed.
            watch: watches && packed.is_none(),
        },
        timeouts: Timeouts::default(),
        connections_max: None,
        packed,
        recent,
        server_log,
        history: keeps_history.then(|| control_path::identity(subject)),
    };
    let running = Server::start(checked, options).map_err(start_failure)?;
    let _ = apps.set(running.app_files());
    obey(&running, &actions);
    running.wait();
    Ok(())
}

/// Until a stop has begun. What a reload did is told by the server's own events.
fn obey(running: &Running, actions: &Receiver<Action>) {
    // Beside this thread, so that a stop need not wait for a large tree. One more reload may wait its
    // turn; it reads what is there then, so further actions add nothing.
    let (ask, asked) = mpsc::sync_channel::<()>(1);
    let api = running.api();
    let reloads = thread::Builder::new().name("reload".into()).spawn(move || {
        for () in asked {
            let _ = api.reload(Restart::Changed);
        }
    });
    for action in actions {
        match (action, &reloads) {
            (Action::Reload, Ok(_)) => {
                let _ = ask.try_send(());
            }
            // Without a thread it is done here.
            (Action::Reload, Err(_)) => {
                let _ = running.reload();
            }
            (Action::ReopenLogs, _) => running.reopen_logs(),
            (Action::Stop, _) => return running.stop(),
            (Action::Stopping, _) => return,
        }
    }
}

/// The control socket's path. One that was named must work; the usual one may be missing, since a
/// read-only container serves pages all the same.
fn control_socket(
    process: &Process,
    subject: &Path,
    reporter: &Reporter,
) -> Result<Option<PathBuf>, Failure> {
    let (path, was_named) = match &process.control {
        Some(path) if path.as_os_str() == "off" => return Ok(None),
        Some(path) => (path.clone(), true),
        None => match control_path::prepare(subject) {
            Ok(path) => (path, false),
            Err(error) => {
                reporter.warn(format!(
                    "there is no control socket, so `{called} reload` and `{called} stop` will not find this process: \
                     {error}",
                    called = own_program::called()
                ));
                return Ok(None);
            }
        },
    };
    if !was_named && let Some(folder) = path.parent() {
        // What others have left behind is no reason not to start.
        let _ = remove_dead_control_sockets(folder);
    }
    let holder = control_client::listener_pid(&path);
    if let Some(pid) = holder.filter(|_| !was_named && subject.is_dir()) {
        // The same folder at another address is an ordinary wish.
        let own = control_path::beside(&path);
        reporter.warn(format!(
            "process {pid} serves this folder, too: `onehop stop` ends that one, `onehop stop --control {}` this one",
            own.display()
        ));
        return Ok(Some(own));
    }
    if let Some(pid) = holder {
        return Err(Failure::failed(format!(
            "already running with process id {pid}\n  \
             let it read its configuration again:  {called} reload --control {path}\n  \
             or end it:                            {called} stop --control {path}\n  \
             or start a second one beside it:      --control another.sock",
            called = own_program::called(),
            path = path.display()
        )));
    }
    Ok(Some(path))
}

fn start_failure(error: StartError) -> Failure {
    match error {
        StartError::Tls(_) | StartError::Memory(_) => Failure::wrong(error.to_string()),
        StartError::Bind { .. }
        | StartError::Descriptors(_)
        | StartError::Store(_)
        | StartError::System(_) => Failure::failed(error.to_string()),
    }
}
