//! How many workers an application has, and what they take of the server.

use onehop_config::checked::{App, AppRun, WorkerCount};
use onehop_workers::limits::WORKERS_MAX;

/// Descriptors of a worker besides its connections to the cores: its control connection, two outputs, and two that tell its end.
const OTHER_DESCRIPTORS: usize = 5;

/// As many workers as the settings want.
pub(crate) fn configured_workers(app: &App, cores: usize) -> usize {
    let wanted = match (&app.run, app.workers) {
        (AppRun::Elsewhere { .. }, _) => 1,
        (_, WorkerCount::Auto) => cores,
        (_, WorkerCount::Exactly(count)) => usize::from(count.get()),
    };
    wanted.clamp(1, WORKERS_MAX)
}

/// Connections between an application's workers and the cores; none where the workers speak HTTP.
pub fn worker_connections(app: &App, cores: usize) -> usize {
    if matches!(app.run, AppRun::Handler { .. }) { configured_workers(app, cores) * cores } else { 0 }
}

/// Descriptors that an application's workers may take while others replace all of them.
pub fn descriptors(app: &App, cores: usize) -> usize {
    2 * configured_workers(app, cores) * (cores + OTHER_DESCRIPTORS)
}
