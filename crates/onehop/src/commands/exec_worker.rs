//! `onehop exec-worker`: the process of a worker, before it becomes the worker.
//!
//! Sets what a process can only set for itself (it ends with the server; its limits) and then executes the
//! worker, with the descriptors that it was given. It is no command for a person: neither help nor completions
//! know it. `onehop exec-worker PARENT [LIMIT=N…] -- PROGRAM [ARGUMENT…]`

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

use crate::failure::Failure;
use crate::own_program;

/// This very program, even when its file has been replaced by a newer one, and its first argument.
pub(crate) fn launcher() -> (PathBuf, Vec<OsString>) {
    (own_program::path(), vec![NAME.into()])
}

/// What follows the name, if this is that process.
pub(crate) fn asked_for() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == NAME).then(|| arguments.collect())
}

/// Returns only if it fails.
pub(crate) fn become_worker(arguments: &[OsString]) -> Result<(), Failure> {
    let failed = |what: String| Failure::failed(format!("this is what a server starts for itself: {what}"));
    let wrong = || failed("its arguments are not what it expects".to_owned());
    let end = arguments.iter().position(|argument| argument == "--").ok_or_else(wrong)?;
    let (settings, command) = arguments.split_at(end);
    let (parent, limits) = settings.split_first().ok_or_else(wrong)?;
    let (program, arguments) = command.get(1..).and_then(<[_]>::split_first).ok_or_else(wrong)?;
    die_with(parent).map_err(failed)?;
    for limit in limits {
        set_limit(limit).map_err(failed)?;
    }
    keep_only_lanes();
    let error = Command::new(program).args(arguments).exec();
    Err(Failure::failed(format!("cannot execute {}: {error}", program.display())))
}

const NAME: &str = "exec-worker";

/// Nothing that a server started outlives it.
fn die_with(parent: &OsStr) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot ask for a signal at the server's death: {error}"))?;
    // It may have died before the signal was asked for.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    let expected = parent.to_str().and_then(|parent| parent.parse::<i32>().ok());
    if now == expected { Ok(()) } else { Err("the server is gone".to_owned()) }
}

/// What the server itself was started with is not for workers: it may be open on what they may not read.
fn keep_only_lanes() {
    let lanes = std::env::var("ONEHOP_LANES").ok();
    let last = lanes.and_then(|lanes| lanes.split_once('-')?.1.parse::<i32>().ok());
    // Standard input, output and error stay in any case.
    close_fds::set_fds_cloexec(last.unwrap_or(2).max(2).saturating_add(1), &[]);
}

fn set_limit(limit: &OsStr) -> Result<(), String> {
    let wrong = || format!("no limit: {}", limit.display());
    let (name, number) = limit.to_str().and_then(|limit| limit.split_once('=')).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let resource = match name {
        "memory" => Resource::As,
        "files" => Resource::Nofile,
        "processes" => Resource::Nproc,
        "cpu" => Resource::Cpu,
        _ => return Err(wrong()),
    };
    // Only root may raise the hard limit; whoever may not gets what is allowed.
    let hard = getrlimit(resource).maximum;
    let allowed = setrlimit(resource, Rlimit { current: Some(number), maximum: Some(number) });
    let allowed = allowed.or_else(|error| match hard {
        Some(hard) if hard < number => {
            setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })
        }
        _ => Err(error),
    });
    allowed.map_err(|error| format!("cannot set the limit {}: {error}", limit.display()))
}
