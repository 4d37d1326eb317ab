//! Events as lines for a person.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use onehop_server::Event;
use onehop_server::control::{AppEvent, CertificateEvent};
use onehop_server::request::incidents::{Incident, Origin};

use crate::units::{bytes, counted, duration};

/// Lines of applications that are remembered: more than a reason repeats of them.
const REMEMBERED_LINES_MAX: usize = 64;

/// Writes events as lines, and remembers what applications wrote last: the reason of an end repeats it for
/// those who do not see it, and a person has just read it.
#[derive(Default)]
pub(crate) struct Lines {
    recent: VecDeque<String>,
}

impl Lines {
    /// One event, or nothing where only a progress bar cares.
    pub(crate) fn line(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::App(AppEvent::Output { line, .. }) => {
                if self.recent.len() == REMEMBERED_LINES_MAX {
                    self.recent.pop_front();
                }
                self.recent.push_back(line.trim().to_owned());
                // An empty line says nothing under a name in front of it.
                if line.trim().is_empty() { None } else { line_of(event) }
            }
            _ => {
                let mut event = event.clone();
                if let Event::App(
                    AppEvent::WorkerEnded { reason, .. }
                    | AppEvent::Failing { reason, .. }
                    | AppEvent::CrashLoop { reason, .. },
                )
                | Event::ReloadFailed { reason } = &mut event
                {
                    *reason = self.unreported(reason);
                }
                line_of(&event)
            }
        }
    }

    /// A reason, and of what its process wrote last the lines behind those that were just shown: what is left of
    /// earlier ones would be taken for the cause.
    fn unreported(&self, reason: &str) -> String {
        let lines: Vec<&str> = reason.lines().collect();
        let is_reported = |line: &&str| self.recent.contains(&line.trim().to_owned());
        let behind = lines.iter().skip(1).rposition(is_reported).map_or(1, |reported| reported + 2);
        let unreported = lines.iter().enumerate().filter(|(number, _)| *number == 0 || *number >= behind);
        unreported.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
    }
}

fn line_of(event: &Event) -> Option<String> {
    Some(match event {
        Event::Reading { .. } => return None,
        // A build that wrote the same files again.
        Event::TreePublished { changed: 0, .. } => return None,
        Event::Stored { root, files, bytes: size, on_disk: _, packed: true, took } => format!(
            "  holds      {}: {}, {} (packed; found in {})",
            root.display(),
            counted(*files as u64, "file"),
            bytes(*size),
            duration(*took)
        ),
        Event::Stored { root, files, bytes: size, on_disk, packed: false, took } => {
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
        Event::LoadBegan => "  load       onehop bench begins to measure this server".to_owned(),
        Event::LoadEnded => "  load       onehop bench has measured this server".to_owned(),
        Event::Listening { url, address } => {
            let everywhere = address.starts_with("[::]:") || address.starts_with("0.0.0.0:");
            let whom = if everywhere { " (every interface)" } else { "" };
            format!("  listens    {url}{whom}")
        }
        Event::AdminListening { address, instead_of } => {
            let why = instead_of.as_ref().map_or_else(String::new, |taken| format!(" ({taken} is taken)"));
            format!("  metrics    http://{address}/metrics{why}")
        }
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
        Event::App(event) => app_line(event),
        Event::UpstreamDown { upstream, sites, reason } => first_and_rest(
            &format!("warning: upstream {upstream} of {} is down: ", sites.join(", ")),
            reason,
            "",
        ),
        Event::UpstreamUp { upstream, sites, after } => {
            format!("upstream {upstream} of {} is up again after {}", sites.join(", "), duration(*after))
        }
        Event::ResponsesFailed(incident) => {
            let Incident { origin, status, reason, requests, .. } = incident;
            let origin = match origin {
                Origin::App(name) => format!("app {name}"),
                Origin::Upstream(label) => format!("upstream {label}"),
            };
            let requests = counted(*requests, "request");
            format!("warning: {}: {reason}: {requests} answered {status}", printable(&origin))
        }
        Event::Certificate(event) => certificate_line(event),
        Event::Warning { message } => format!("warning: {message}"),
    })
}

/// The line of an event of a certificate.
fn certificate_line(event: &CertificateEvent) -> String {
    match event {
        CertificateEvent::Obtained { name, issuer, not_after, is_renewal } => {
            let what = if *is_renewal { "renewed" } else { "obtained" };
            let lasts = not_after.duration_since(SystemTime::now()).unwrap_or_default();
            format!("  {what:<10} a certificate for {name} from {issuer}, valid for {}", duration(lasts))
        }
        CertificateEvent::Revoked { name, issuer } => {
            format!("  revoked    the certificate for {name} from {issuer}, as asked")
        }
        CertificateEvent::Failed { name: _, issuer, reason, next_try_in } => {
            let next = if next_try_in.is_zero() {
                "the next issuer is asked now".to_owned()
            } else {
                format!("next attempt in {}", duration(*next_try_in))
            };
            // The reason begins with the name.
            let from = if issuer.is_empty() { String::new() } else { format!("{issuer}: ") };
            first_and_rest(&format!("warning: {from}"), &format!("{reason}; {next}"), "")
        }
    }
}

/// The line of an event of an application.
fn app_line(event: &AppEvent) -> String {
    match event {
        AppEvent::Unpacked { folder, files, took } => format!(
            "  unpacked   {}: {} (took {})",
            folder.display(),
            counted(*files as u64, "file"),
            duration(*took)
        ),
        // A program that another service manager starts.
        AppEvent::Ready { app, runtime, took, .. } if app == runtime => {
            format!("  uses       {app} (answers after {})", duration(*took))
        }
        AppEvent::Ready { app, runtime, workers, took, failures } => {
            let times = if *workers == 1 { String::new() } else { format!("{workers} × ") };
            let failures = match failures {
                0 => String::new(),
                count => format!(", {}", counted((*count).into(), "failed start")),
            };
            format!("  runs       {app}: {times}{runtime} (ready after {}{failures})", duration(*took))
        }
        AppEvent::SpeaksHttp { app, runtime, is_asked } => {
            let why = if *is_asked { "as its `protocol http` says" } else { "as its worker asks for" };
            format!("{app}: {runtime} is spoken to in HTTP instead of frames, {why}")
        }
        AppEvent::WorkerEnded { app, pid, reason, restart_in, failed } => {
            let next = match restart_in {
                Some(Duration::ZERO) => "; another one starts".to_owned(),
                Some(wait) => format!("; another one starts in {}", duration(*wait)),
                None => String::new(),
            };
            let how = if *failed { "failed" } else { "ended" };
            let process = if *pid == 0 { String::new() } else { format!("[{pid}]") };
            first_and_rest(&format!("{app}{process} {how}: "), reason, &next)
        }
        AppEvent::CrashLoop { app, reason, failures } => {
            let head = format!("warning: a worker of {app} has failed {failures} times in a row: ");
            first_and_rest(&head, reason, "; from now on failures for this reason are only counted")
        }
        AppEvent::Failing { app, reason, retry_in, failures } => {
            let times =
                if *failures > 1 { format!(" (failed {failures} times in a row)") } else { String::new() };
            let head = format!("warning: {app} does not run and is answered 503{times}: ");
            first_and_rest(&head, reason, &format!("; next try in {}", duration(*retry_in)))
        }
        AppEvent::Rolled { app, workers, took } => {
            format!("{app}: {} replaced in {}", counted(*workers as u64, "worker"), duration(*took))
        }
        AppEvent::WorkerStuck { app, pid, since, stack } => {
            let place = if stack.trim().is_empty() { "" } else { ". Where it is:" };
            let head = format!(
                "warning: {app}[{pid}] has not turned its event loop for {}; it is replaced{place}",
                duration(*since)
            );
            first_and_rest(&head, &format!("\n{stack}"), "")
        }
        AppEvent::Output { app, pid, is_error, line } => {
            let mark = if *is_error { '!' } else { '|' };
            format!("{app}[{pid}] {mark} {}", printable(line)).trim_end().to_owned()
        }
        AppEvent::Warning { message } => format!("warning: {message}"),
    }
}

/// A text whose first line ends a sentence, and whose further lines (of a log, of a stack) stand below it.
fn first_and_rest(head: &str, text: &str, after_first: &str) -> String {
    let mut lines = text.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let mut shown = format!("{head}{}{after_first}", printable(first));
    for line in lines.filter(|line| !line.trim().is_empty()) {
        shown.push_str("\n    ");
        shown.push_str(&printable(line));
    }
    shown
}

/// A line of an application may hold what a stranger sent to it: characters that would move the cursor or
/// colour a terminal are spelled out.
pub(crate) fn printable(line: &str) -> Cow<'_, str> {
    let acts = |character: char| character.is_control() && character != '\t';
    if !line.contains(acts) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if acts(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json;

    /// What the server says about applications.
    fn events() -> Vec<Event> {
        let app = || "api".to_owned();
        let output = |is_error, line: &str| {
            Event::App(AppEvent::Output { app: app(), pid: 4711, is_error, line: line.to_owned() })
        };
        let stderr = "exited with code 1\nTypeError: Cannot read properties of undefined\n\n    at load (/srv/api/server.mjs:3:9)";
        let ended = |reason: &str, restart_in, failed| {
            Event::App(AppEvent::WorkerEnded {
                app: app(),
                pid: 4711,
                reason: reason.to_owned(),
                restart_in,
                failed,
            })
        };
        vec![
            Event::App(AppEvent::Ready {
                app: app(),
                runtime: "node 20.20.2".into(),
                workers: 1,
                took: Duration::from_millis(143),
                failures: 0,
            }),
            Event::App(AppEvent::SpeaksHttp { app: app(), runtime: "node 20.20.2".into(), is_asked: true }),
            Event::App(AppEvent::SpeaksHttp { app: app(), runtime: "bun 1.2.0".into(), is_asked: false }),
            Event::App(AppEvent::Ready {
                app: app(),
                runtime: "bun 1.2.0".into(),
                workers: 4,
                took: Duration::from_millis(1430),
                failures: 4,
            }),
            ended(stderr, Some(Duration::from_millis(250)), true),
            ended("killed by SIGKILL", Some(Duration::ZERO), true),
            ended("finished what it had, as asked", None, false),
            Event::App(AppEvent::Ready {
                app: "127.0.0.1:3000".into(),
                runtime: "127.0.0.1:3000".into(),
                workers: 1,
                took: Duration::from_millis(3),
                failures: 0,
            }),
            Event::App(AppEvent::WorkerEnded {
                app: "127.0.0.1:3000".into(),
                pid: 0,
                reason: "it is not asked any more".into(),
                restart_in: None,
                failed: false,
            }),
            Event::UpstreamDown {
                upstream: "10.0.0.2:8080".to_owned(),
                sites: vec!["http://localhost".to_owned(), "http://shop.example".to_owned()],
                reason: "it answered 503 instead of 2xx".to_owned(),
            },
            Event::ResponsesFailed(Incident {
                origin: Origin::Upstream("10.0.0.2:8080".to_owned()),
                status: 502,
                cause: "upstream_broken",
                reason: "the response header is too large".to_owned(),
                requests: 1,
            }),
            Event::ResponsesFailed(Incident {
                origin: Origin::App(app()),
                status: 504,
                cause: "worker_timeout",
                reason: "no response in time (`timeout`)".to_owned(),
                requests: 1234,
            }),
            Event::UpstreamUp {
                upstream: "10.0.0.2:8080".to_owned(),
                sites: vec!["http://localhost".to_owned()],
                after: Duration::from_secs(95),
            },
            Event::App(AppEvent::Failing {
                app: app(),
                reason: stderr.to_owned(),
                retry_in: Duration::from_secs(4),
                failures: 3,
            }),
            Event::App(AppEvent::CrashLoop { app: app(), reason: stderr.to_owned(), failures: 3 }),
            Event::App(AppEvent::Rolled { app: app(), workers: 2, took: Duration::from_millis(430) }),
            Event::App(AppEvent::WorkerStuck {
                app: app(),
                pid: 4711,
                since: Duration::from_millis(5200),
                stack: "at spin (/srv/api/server.mjs:9:3)\nat fetch (/srv/api/server.mjs:20:5)\n".into(),
            }),
            Event::App(AppEvent::WorkerStuck {
                app: app(),
                pid: 4711,
                since: Duration::from_millis(5200),
                stack: String::new(),
            }),
            output(false, "listening"),
            output(true, "warning: \u{1b}[31mred\u{1b}[0m\tand\rover"),
            output(false, r#"{"level":30,"msg":"hello","id":18446744073709551615}"#),
            output(false, r#"{"almost": JSON}"#),
            output(false, "[1]"),
        ]
    }

    #[test]
    fn applications_are_reported_in_lines_for_a_person() {
        let lines: Vec<String> = events().iter().filter_map(line_of).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_reason_does_not_repeat_what_was_just_shown() {
        let mut lines = Lines::default();
        let output = |line: &str| {
            Event::App(AppEvent::Output { app: "api".into(), pid: 1, is_error: true, line: line.to_owned() })
        };
        let ended = Event::App(AppEvent::WorkerEnded {
            app: "api".into(),
            pid: 1,
            reason: "exit code 1\n  Error: boom\n      at x\n  of which nobody has heard".into(),
            restart_in: None,
            failed: true,
        });
        for shown in ["Error: boom", "    at x"] {
            lines.line(&output(shown));
        }
        assert_eq!(
            lines.line(&ended).as_deref(),
            Some("api[1] failed: exit code 1\n      of which nobody has heard")
        );
        lines.line(&output("  of which nobody has heard"));
        assert_eq!(lines.line(&ended).as_deref(), Some("api[1] failed: exit code 1"));
        for number in 0..=REMEMBERED_LINES_MAX {
            lines.line(&output(&number.to_string()));
        }
        assert!(lines.line(&ended).is_some_and(|line| line.contains("boom")));
    }

    #[test]
    fn applications_are_reported_in_json() {
        let lines: Vec<String> =
            events().iter().map(|event| json::line(event, std::time::UNIX_EPOCH)).collect();
        assert!(lines.iter().all(|line| !line.contains('\n')));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
