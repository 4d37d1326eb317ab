//! The events that explain a curve, each as one line for a person.

use std::time::Duration;

use onehop_certificates::keeper::Event as CertificateEvent;
use onehop_history::Event as Kept;
use onehop_supervisor::AppEvent;

use crate::control::events::Event;

/// What the history keeps of an event; most are not kept.
pub(super) fn kept(event: &Event, at: u64) -> Option<Kept> {
    let (event, text, subject) = match event {
        Event::Ready { took } => {
            let version = env!("CARGO_PKG_VERSION");
            ("start", format!("onehop {version} has started in {} ms", took.as_millis()), None)
        }
        Event::Stopping { in_flight } => {
            ("stop", format!("the server stops; {in_flight} connections are open"), None)
        }
        Event::Reloaded { sites } => {
            ("reload", format!("the configuration was reloaded: {sites} sites"), None)
        }
        Event::ReloadFailed { reason } => {
            ("reload_failed", format!("a reload changed nothing: {}", first_line(reason)), None)
        }
        Event::TreePublished { root, changed, files } => {
            let root = root.display().to_string();
            ("deploy", format!("{changed} of {files} files changed in {root}"), Some(root))
        }
        Event::LoadBegan => ("load_began", "a load test has begun".to_owned(), None),
        Event::LoadEnded => ("load_ended", "the load test has ended".to_owned(), None),
        Event::UpstreamDown { upstream, reason, .. } => {
            ("upstream_down", format!("{upstream} is down: {}", first_line(reason)), Some(upstream.clone()))
        }
        Event::UpstreamUp { upstream, after, .. } => (
            "upstream_up",
            format!("{upstream} is up again after {}", seconds(*after)),
            Some(upstream.clone()),
        ),
        Event::App(event) => of_app(event)?,
        Event::Certificate(event) => of_certificate(event),
        _ => return None,
    };
    Some(Kept { at, event: event.to_owned(), text, subject })
}

fn of_app(event: &AppEvent) -> Option<(&'static str, String, Option<String>)> {
    let (name, text, app) = match event {
        AppEvent::Rolled { app, workers, took } => {
            ("deploy", format!("{app}: {workers} workers were replaced in {}", seconds(*took)), app)
        }
        AppEvent::WorkerEnded { app, pid, reason, failed: true, .. } => {
            ("worker_exited", format!("{app}: worker {pid} has ended: {}", first_line(reason)), app)
        }
        AppEvent::WorkerStuck { app, pid, since, .. } => {
            ("worker_stuck", format!("{app}: worker {pid} has not answered for {}", seconds(*since)), app)
        }
        AppEvent::CrashLoop { app, reason, .. } | AppEvent::Failing { app, reason, .. } => {
            ("app_failing", format!("{app} fails: {}", first_line(reason)), app)
        }
        AppEvent::Ready { app, failures: 1.., .. } => ("app_recovered", format!("{app} serves again"), app),
        _ => return None,
    };
    Some((name, text, Some(app.clone())))
}

fn of_certificate(event: &CertificateEvent) -> (&'static str, String, Option<String>) {
    let (event, text, name) = match event {
        CertificateEvent::Obtained { name, issuer, is_renewal, .. } => {
            let what = if *is_renewal { "renewed" } else { "obtained" };
            ("certificate_renewed", format!("the certificate of {name} was {what} from {issuer}"), name)
        }
        CertificateEvent::Revoked { name, .. } => {
            ("certificate_revoked", format!("the certificate of {name} was revoked"), name)
        }
        CertificateEvent::Failed { name, reason, .. } => {
            ("certificate_failing", format!("no certificate for {name}: {}", first_line(reason)), name)
        }
    };
    (event, text, Some(name.clone()))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
