//! `onehop reload` and `onehop stop`: one request to the control socket of a running onehop.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arguments::{Control, Stop, Target};
use crate::configuration;
use crate::control_client::{self, ClientError, Response};
use crate::control_path;
use crate::failure::Failure;
use crate::own_program;
use crate::units::counted;

pub(crate) fn reload(arguments: &Control) -> Result<(), Failure> {
    let response = ask(&arguments.target, "POST", if arguments.restart { "/restart" } else { "/reload" })?;
    let sites = response.body.get("sites").and_then(serde_json::Value::as_u64).unwrap_or_default();
    let took = response.body.get("took_ms").and_then(serde_json::Value::as_u64).unwrap_or_default();
    let mut page = format!("reloaded: {} in {took} ms\n", counted(sites, "site"));
    let options = control_client::list(&response.body, "at_next_start");
    for option in options.iter().filter_map(serde_json::Value::as_str) {
        page.push_str(&format!("`{option}` stays as it was at the start: restart onehop to change it\n"));
    }
    super::standard_output::print(&page);
    Ok(())
}

pub(crate) fn stop(arguments: &Stop) -> Result<(), Failure> {
    let path = socket(&arguments.target)?;
    let process = control_client::Process::behind(&path);
    changed(ask_at(&path, control_client::RESPONSE_DEADLINE, "POST", "/stop")?)?;
    let wait = Duration::from_secs(arguments.wait.into());
    match process.map(|process| process.wait_for_end(wait)) {
        Some(true) => {
            super::standard_output::print("stopped\n");
            Ok(())
        }
        Some(false) => Err(Failure::failed(format!("still running after {} s", arguments.wait))),
        // Without a process id (another namespace) the answer is all that can be known.
        None => {
            super::standard_output::print("stopping\n");
            Ok(())
        }
    }
}

/// Sends one request; an answer that is not 2xx is a failure with the server's own reason.
pub(super) fn ask(target: &Target, method: &str, path: &str) -> Result<Response, Failure> {
    ask_within(control_client::RESPONSE_DEADLINE, target, method, path)
}

/// The same for a request that changes nothing: the failure is the server's own reason.
pub(super) fn ask_about(target: &Target, path: &str) -> Result<Response, Failure> {
    ask_about_at(&socket(target)?, path)
}

/// The same at this socket.
pub(super) fn ask_about_at(socket: &Path, path: &str) -> Result<Response, Failure> {
    let response = ask_at(socket, control_client::RESPONSE_DEADLINE, "GET", path)?;
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    Err(Failure::failed(reason(&response).to_owned()))
}

/// The same with another deadline for the response.
pub(super) fn ask_within(
    deadline: Duration,
    target: &Target,
    method: &str,
    path: &str,
) -> Result<Response, Failure> {
    changed(ask_at(&socket(target)?, deadline, method, path)?)
}

/// Hands on each line of a response that may go on for long, until it ends or the caller has enough.
pub(super) fn lines(
    target: &Target,
    path: &str,
    goes_on: bool,
    each: impl FnMut(&str) -> bool,
) -> Result<(), Failure> {
    let socket = socket(target)?;
    let deadline = (!goes_on).then_some(control_client::RESPONSE_DEADLINE);
    control_client::lines(&socket, path, deadline, each).map_err(|error| unanswered(&socket, error))
}

/// The response to a request that was to change something.
fn changed(response: Response) -> Result<Response, Failure> {
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    Err(Failure::failed(format!("nothing was changed\n{}", reason(&response))))
}

/// Why a response is not 2xx.
fn reason(response: &Response) -> &str {
    let reason = response.body.get("error").and_then(serde_json::Value::as_str);
    reason.unwrap_or("no reason was given").trim_end()
}

fn ask_at(socket: &Path, deadline: Duration, method: &str, path: &str) -> Result<Response, Failure> {
    control_client::ask_within(deadline, socket, method, path).map_err(|error| unanswered(socket, error))
}

fn unanswered(socket: &Path, error: ClientError) -> Failure {
    match error {
        ClientError::NobodyThere => nobody(&format!("no onehop listens at {}", socket.display())),
        ClientError::Failed(reason) => Failure::failed(format!("{}: {reason}", socket.display())),
    }
}

/// The socket that was named, else the one of the file that was named, else of what is served from this folder, else
/// of the only onehop that runs.
pub(super) fn socket(target: &Target) -> Result<PathBuf, Failure> {
    if let Some(control) = &target.control {
        return Ok(control.clone());
    }
    let find = |subject: &Path| {
        control_path::for_subject(subject).map_err(|error| Failure::failed(error.to_string()))
    };
    let is_served = |socket: &PathBuf| control_client::listener_pid(socket).is_some();
    if let Some(subject) = &target.config {
        let socket = find(subject)?;
        return match is_served(&socket) {
            true => Ok(socket),
            false => Err(nobody(&format!("no onehop runs with {}", subject.display()))),
        };
    }
    // The folder may be served by `onehop serve` although a file stands in it.
    let file = configuration::find_here().map(|file| find(&file.path)).transpose();
    let here = find(Path::new("."));
    let known = file.iter().flatten().chain(&here).find(|socket| is_served(socket)).cloned();
    let mut running = control_path::all().into_iter().filter(is_served);
    match (known, running.next(), running.next()) {
        (Some(socket), _, _) | (None, Some(socket), None) => Ok(socket),
        (None, Some(_), Some(_)) => Err(Failure::failed(format!(
            "several onehops run; name the one that is meant by --config FILE, or by\n{}",
            instances()
        ))),
        // What lies in an unsafe folder was not asked, which is the reason to name.
        (None, None, _) => Err(here.err().unwrap_or_else(|| nobody("no onehop runs"))),
    }
}

/// How long a server may take to say what it listens on, for a list.
const HELLO_DEADLINE: Duration = Duration::from_secs(3);

/// A line for each onehop of this user that runs.
fn instances() -> String {
    let all = control_path::all().into_iter();
    let running = all.filter_map(|path| control_client::listener_pid(&path).map(|pid| (pid, path)));
    let lines = running.map(|(pid, path)| {
        let status = control_client::ask_within(HELLO_DEADLINE, &path, "GET", "/status");
        let status = status.map(|response| response.body).unwrap_or_default();
        let listening =
            control_client::list(&status, "listening").iter().filter_map(serde_json::Value::as_str);
        let listening = listening.collect::<Vec<_>>().join(", ");
        format!("  process {pid}:  {listening}  --control {}", path.display())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn nobody(text: &str) -> Failure {
    let running = instances();
    let next = match (running.as_str(), own_program::called()) {
        ("", onehop) if onehop == "onehop" => "\n  start one: onehop run\n  or name its control socket, if it has one of its own: --control SOCKET".to_owned(),
        ("", pack) => format!("\n  start it: {pack}"),
        (running, _) => format!("\nthese run:\n{running}"),
    };
    Failure::failed(format!("{text}{next}"))
}
