//! Events as notes for `onehop logs`.

use std::time::SystemTime;

use onehop_server::Event;
use onehop_server::control::{AppEvent, CertificateEvent, Note};

use super::output::app_of;

/// An event with its line for a person and its JSON object.
pub(super) fn note(event: &Event, at: SystemTime, text: String, record: String) -> Note {
    let app = match event {
        Event::App(event) => Some(app_of(event)).filter(|app| !app.is_empty()).map(str::to_owned),
        _ => None,
    };
    let is_output = matches!(event, Event::App(AppEvent::Output { .. }));
    Note { at, is_output, app, is_error: is_error(event), text, record }
}

/// Whether an event is about a failure, or a line comes from standard error.
pub(super) fn is_error(event: &Event) -> bool {
    match event {
        Event::App(event) => match event {
            AppEvent::Output { is_error, .. } => *is_error,
            AppEvent::WorkerEnded { failed, .. } => *failed,
            AppEvent::CrashLoop { .. }
            | AppEvent::Failing { .. }
            | AppEvent::WorkerStuck { .. }
            | AppEvent::Warning { .. } => true,
            AppEvent::Unpacked { .. }
            | AppEvent::Ready { .. }
            | AppEvent::SpeaksHttp { .. }
            | AppEvent::Rolled { .. } => false,
        },
        Event::ReloadFailed { .. }
        | Event::UpstreamDown { .. }
        | Event::ResponsesFailed(_)
        | Event::Certificate(CertificateEvent::Failed { .. })
        | Event::Warning { .. } => true,
        _ => false,
    }
}
