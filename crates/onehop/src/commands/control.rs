//! `onehop reload` and `onehop stop`: one request to the control socket of a running onehop.

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::{Control, Stop, Target};
use crate::configuration;
use crate::control_client::{self, Answer, ClientError};
use crate::control_path;
use crate::failure::Failure;
use crate::own_program;
use crate::units::counted;

pub(crate) fn reload(arguments: &Control) -> Result<(), Failure> {
    let answer = ask(&arguments.target, "POST", "/reload")?;
    let sites = answer.body.get("sites").and_then(serde_json::Value::as_u64).unwrap_or_default();
    let took = answer.body.get("took_ms").and_then(serde_json::Value::as_u64).unwrap_or_default();
    super::pages::print(&format!("reloaded: {} in {took} ms\n", counted(sites, "site")));
    Ok(())
}

pub(crate) fn stop(arguments: &Stop) -> Result<(), Failure> {
    let path = socket(&arguments.target);
    let process = control_client::Process::behind(&path);
    ask(&arguments.target, "POST", "/stop")?;
    let wait = Duration::from_secs(arguments.wait.into());
    match process.map(|process| process.wait_for_end(wait)) {
        Some(true) => {
            super::pages::print("stopped\n");
            Ok(())
        }
        Some(false) => Err(Failure::failed(format!("still running after {} s", arguments.wait))),
        // Without a process id (another namespace) the answer is all that can be known.
        None => {
            super::pages::print("stopping\n");
            Ok(())
        }
    }
}

/// Sends one request; an answer that is not 2xx is a failure with the server's own reason.
pub(super) fn ask(target: &Target, method: &str, path: &str) -> Result<Answer, Failure> {
    ask_within(control_client::ANSWER_DEADLINE, target, method, path)
}

/// The same with another deadline for the answer.
pub(super) fn ask_within(
    deadline: Duration,
    target: &Target,
    method: &str,
    path: &str,
) -> Result<Answer, Failure> {
    let socket = socket(target);
    let answer =
        control_client::ask_within(deadline, &socket, method, path).map_err(|error| match error {
            ClientError::NobodyThere => nobody(target, &socket),
            ClientError::Failed(reason) => Failure::failed(format!("{}: {reason}", socket.display())),
        })?;
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    let reason =
        answer.body.get("error").and_then(serde_json::Value::as_str).unwrap_or("no reason was given");
    Err(Failure::failed(format!("nothing was changed\n{}", reason.trim_end())))
}

/// The socket that was named, else the one of the file that was named, else of what stands here.
pub(super) fn socket(target: &Target) -> PathBuf {
    if let Some(control) = &target.control {
        return control.clone();
    }
    if let Some(subject) = &target.config {
        return control_path::for_subject(subject);
    }
    let here = control_path::for_subject(std::path::Path::new("."));
    match configuration::find_here() {
        // The folder may be served by `onehop serve` although a file stands in it.
        Some(file) => {
            let by_file = control_path::for_subject(&file.path);
            let served = control_client::listener_pid(&by_file).is_none()
                && control_client::listener_pid(&here).is_some();
            if served { here } else { by_file }
        }
        None => here,
    }
}

fn nobody(target: &Target, socket: &std::path::Path) -> Failure {
    let mut text = match (&target.control, &target.config) {
        (Some(control), _) => format!("no onehop listens at {}", control.display()),
        (None, Some(config)) => format!("no onehop runs with {}", config.display()),
        (None, None) => "no onehop was started in this folder".to_owned(),
    };
    let others: Vec<String> = control_path::all()
        .into_iter()
        .filter(|path| path != socket)
        .filter_map(|path| {
            control_client::listener_pid(&path)
                .map(|pid| format!("\n  process {pid}:  --control {}", path.display()))
        })
        .collect();
    if others.is_empty() {
        text.push_str(&match own_program::called() {
            onehop if onehop == "onehop" => "\n  start one: onehop run".to_owned(),
            pack => format!("\n  start it: {pack}"),
        });
    } else {
        text.push_str("\nthese run:");
        text.extend(others);
    }
    Failure::failed(text)
}
