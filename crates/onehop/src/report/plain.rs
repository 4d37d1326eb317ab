//! Events as lines for a person.

use onehop_server::Event;

use crate::units::{bytes, counted, duration};

/// One event, or nothing where only a progress bar cares.
pub(crate) fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Reading { .. } => return None,
        // A build that wrote the same files again.
        Event::TreePublished { changed: 0, .. } => return None,
        Event::Stored { root, files, bytes: size, on_disk, took } => {
            let on_disk =
                if *on_disk == 0 { String::new() } else { format!(", {on_disk} of them stay on disk") };
            format!(
                "  holds      {}: {}, {}{on_disk} (read in {})",
                root.display(),
                counted(*files as u64, "file"),
                bytes(*size),
                duration(*took)
            )
        }
        Event::Compressed { root, compressed_bytes, took } => format!(
            "  compressed {}: {} more in compressed forms (took {})",
            root.display(),
            bytes(*compressed_bytes),
            duration(*took)
        ),
        Event::Listening { url, address } => {
            let everywhere = address.starts_with("[::]:") || address.starts_with("0.0.0.0:");
            let whom = if everywhere { " (every interface)" } else { "" };
            format!("  listens    {url}{whom}")
        }
        Event::AdminListening { address } => format!("  metrics    http://{address}/metrics"),
        Event::Ready { took } => format!("  ready      after {}", duration(*took)),
        Event::TreePublished { root, changed, files } => format!(
            "published {}: {} changed, {} in all",
            root.display(),
            counted(*changed as u64, "file"),
            files
        ),
        Event::Reloaded { sites } => format!("reloaded: {}", counted(*sites as u64, "site")),
        Event::ReloadFailed { reason } => {
            format!("reload failed, everything stays as it was:\n{}", reason.trim_end())
        }
        Event::Stopping { in_flight } => {
            format!("stopping: {} in flight", counted(*in_flight, "request"))
        }
        Event::Stopped { cut_off: 0 } => "stopped".to_owned(),
        Event::Stopped { cut_off } => format!("stopped; {} cut off", counted(*cut_off, "connection")),
        Event::AppReady { app, runtime, workers, took } => {
            format!("  runs       {app}: {workers} × {runtime} (ready after {})", duration(*took))
        }
        Event::WorkerEnded { app, pid, reason, .. } => format!("{app}[{pid}] ended: {reason}"),
        Event::AppFailing { app, reason, retry_in } => {
            format!("{app} does not run, next try in {}: {reason}", duration(*retry_in))
        }
        Event::AppRolled { app, workers, took } => {
            format!("{app}: {} replaced in {}", counted(*workers as u64, "worker"), duration(*took))
        }
        Event::WorkerStuck { app, pid, since, stack } => {
            format!("{app}[{pid}] has not turned for {}:\n{stack}", duration(*since))
        }
        Event::AppOutput { app, pid, line, .. } => format!("{app}[{pid}] {line}"),
        Event::Warning { message } => format!("warning: {message}"),
    })
}
