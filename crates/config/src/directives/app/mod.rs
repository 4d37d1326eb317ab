//! `app`: an application that onehop runs in processes of its own and hands requests to. A directive of
//! onehop's own.
//!
//! `options` reads the block into what was written, `program` finds out what is run, `environment` what
//! it sees, `name` what it is called, `known` keeps those of the lines above, `sticky` which requests stay together; this file puts them together and finds what contradicts itself.
//! Starts nothing: whether a program is there in `PATH` shows when it is started.

mod draft;
mod environment;
mod known;
mod name;
mod options;
mod program;
mod sticky;

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::limit::OfApp;
use super::{limit, placed, trust};
use crate::check::Context;
use crate::check::matcher::{Chosen, Scope, split};
use crate::check::route_order::Placed;
use crate::checked::limit::Limit;
use crate::checked::{App, AppData, AppProtocol, AppRun, Step, WorkerCount};
use crate::limits::APP_NODE_ADDRESS_BYTES_MIN;
use crate::option_table::Outline;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

use draft::Draft;
pub(crate) use environment::is_name as is_variable_name;
pub(crate) use known::KnownApps;
pub use name::telling_folder;

const USAGE: &str = "app [<matcher>] <file> [<argument>…]";

/// Requests that wait where the file does not say: some four seconds of work at 256 a second.
const QUEUE: u32 = 1024;
/// How long a request waits where the file does not say: as long as a person does at most.
const QUEUE_WAIT: Duration = Duration::from_secs(30);
/// How long an answer may take where the file does not say: as nginx has it for a proxied one.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a start may take where the file does not say: a large framework takes ten seconds on a small machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stop may take where the file does not say: as the whole server's `grace_period`.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// When an event loop counts as stuck where the file does not say. A handler that computes for so long
/// without a pause has failed everybody else.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Options that make no sense where somebody else starts the program.
const OF_PROCESSES: [&str; 17] = [
    "workers",
    "runtime",
    "start_timeout",
    "stop_timeout",
    "stuck_after",
    "recycle",
    "cwd",
    "user",
    "resources",
    "env",
    "env_file",
    "env_pass",
    "data",
    "response",
    "port",
    "sticky",
    "command",
];
/// Variables that tell a program where to listen.
const OF_ONEHOP: [&str; 2] = ["HOST", "PORT"];
/// The variable that tells a program where its data folder is.
const DATA_VARIABLE: &str = "APP_DATA_DIR";
/// Options that make no sense for a program that speaks HTTP.
const OF_HANDLERS: [&str; 4] = ["runtime", "stuck_after", "response", "port"];

/// The options of its blocks.
pub(super) fn outlines() -> [Outline; 3] {
    [options::OPTIONS.outline(), options::RECYCLE.outline(), options::RESOURCES.outline()]
}

pub(super) fn app(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let mut written = options::read(cx, line);
    let in_block = written.command_or_address();
    let (chosen, args) = arguments(cx, scope, line, in_block)?;
    let is_unknown = written.seen.is_broken && written.command.is_empty() && written.address.is_none();
    if is_contradictory(cx, &written, args) || (in_block.is_some() && is_unknown) {
        // What is meant is not known: what follows from a guess would mislead.
        return Ok(Vec::new());
    }
    let program = program::program(cx, line, args, &written);
    if written.seen.is_broken {
        cx.keep(program);
        return Ok(Vec::new());
    }
    let (run, directory) = program?;
    warn_of_small_memory(cx, &written, &run);
    let sticky = written.token("sticky").cloned();
    let data = written.token("data").cloned();
    let says_workers = written.workers.is_some();
    let limit = limit::settled(cx, std::mem::take(&mut written.limit));
    let mut app = settings(written, run, directory);
    app.limit = limit;
    trust::add_global(cx, &mut app.trusted_proxies);
    if let Some(data) = &mut app.data {
        data.directory.clone_from(&cx.data_directory);
    }
    let app = name::named(cx, app, line)?;
    if let (Some(token), Some(data)) = (data, &app.data)
        && let Some(other) = cx.apps.with_data(&data.name, &app)
    {
        let message = format!("the application `{}` has the data folder `{}` already", other.name, data.name);
        return Err(
            Problem::error("data", &token.place, message).help("give each application a folder of its own")
        );
    }
    cx.apps.by_line.push((line.number, Arc::clone(&app)));
    if let Some(token) = sticky {
        sticky::warn(cx, &app, &token, says_workers);
    }
    Ok(vec![placed("reverse_proxy", chosen, line, Step::App(app))])
}

/// The matcher, and what stands behind it. One argument is the file even where it looks like a path,
/// as with `spa`, unless the block says what is run.
fn arguments<'l>(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &'l Directive,
    in_block: Option<&Token>,
) -> Result<(Chosen, &'l [Token]), Box<Problem>> {
    match (line.args.as_slice(), in_block) {
        ([], None) => Err(crate::arguments::wrong_arguments(line, USAGE)),
        ([only], None) if only.text.starts_with('@') || only.text == "*" => {
            let message = format!("`app {}` does not say what is run", only.text);
            Err(Problem::error("arguments", &only.place, message)
                .help(format!("write a file, `app {} ./api/server.mjs`, or `command` in a block", only.text)))
        }
        ([_], None) => Ok((Chosen::default(), &line.args)),
        _ => split(cx, scope, &line.args),
    }
}

/// Whether something was written that cannot be meant; every problem is kept.
fn is_contradictory(cx: &mut Context<'_>, written: &Draft, args: &[Token]) -> bool {
    let mut found = false;
    let mut push = |problem| {
        found = true;
        cx.problems.push(problem);
    };
    if let (Some(word), Some(file)) = (written.command_or_address(), args.first()) {
        let message = format!("`app` runs either the file `{}` or what `{}` says", file.text, word.text);
        push(Problem::error("contradiction", &file.place, message).help("take one of the two away"));
    }
    let (others, why) = if let Some(word) = written.token("supervise") {
        (OF_PROCESSES.as_slice(), format!("`{} off`: somebody else starts this program", word.text))
    } else if written.token("command").is_some() {
        (OF_HANDLERS.as_slice(), "`command`: it is for files with a handler".to_owned())
    } else {
        (&[][..], String::new())
    };
    if let (OfApp::Is(Limit { lag: Some(_), .. }), Some(token), false) =
        (&written.limit, written.token("limit"), others.is_empty())
    {
        let message = format!("`lag` of `limit` has no meaning beside {why}");
        push(
            Problem::error("contradiction", &token.place, message)
                .help("only the workers of a file tell how late they are; `limit adaptive` finds a bound"),
        );
    }
    for token in written.seen.names.iter().filter(|token| others.contains(&token.text.as_str())) {
        let message = format!("`{}` has no meaning beside {why}", token.text);
        push(Problem::error("contradiction", &token.place, message).help("take it away"));
    }
    if let Some(problem) = contradictory_protocol(written, others.is_empty()) {
        push(problem);
    }
    let set = &written.environment.set;
    for name in OF_ONEHOP.iter().filter(|name| set.iter().any(|(known, _)| known == *name)) {
        if let Some(command) = written.token("command") {
            let message =
                format!("`env {name}` has no meaning beside `command`: onehop chooses where it listens");
            push(
                Problem::error("contradiction", &command.place, message)
                    .help("the program reads it from its environment; give it nothing of its own"),
            );
        }
    }
    if let (Some(token), true) = (written.token("data"), set.iter().any(|(known, _)| known == DATA_VARIABLE))
    {
        let message = format!("`env {DATA_VARIABLE}` has no meaning beside `data`, which sets it");
        push(Problem::error("contradiction", &token.place, message).help("take one of the two away"));
    }
    if let (Some(_), Some(token)) = (written.token("one_at_a_time"), written.token("concurrency")) {
        let message = "`concurrency` and `one_at_a_time` contradict each other";
        push(
            Problem::error("contradiction", &token.place, message)
                .help("`one_at_a_time` is `concurrency 1`: take one of the two away"),
        );
    }
    found
}

/// Files are spoken to in frames or HTTP/1.1, programs in HTTP/1.1 or HTTP/2.
fn contradictory_protocol(written: &Draft, is_file: bool) -> Option<Box<Problem>> {
    let token = written.token("protocol")?;
    let (message, help) = match (written.protocol, is_file) {
        (AppProtocol::Http2, true) => {
            ("`protocol h2c` has no meaning for a file", "`command` runs a program that speaks HTTP/2")
        }
        (AppProtocol::Frames | AppProtocol::Http, false) => {
            ("a program has no `protocol` but `h2c`", "without it, programs are spoken to in HTTP/1.1")
        }
        _ => return None,
    };
    Some(Problem::error("contradiction", &token.place, message).help(help))
}

/// What is meant as a bound on memory in use is one on addresses, and Node.js reserves many.
fn warn_of_small_memory(cx: &mut Context<'_>, written: &Draft, run: &AppRun) {
    let AppRun::Handler { runtime, .. } = run else { return };
    let is_bun = runtime.as_ref().is_some_and(|name| name.ends_with("bun"));
    let is_small = written.resources.memory_bytes.is_some_and(|bytes| bytes < APP_NODE_ADDRESS_BYTES_MIN);
    if let Some(token) = written.token("resources").filter(|_| is_small && !is_bun) {
        let message = format!(
            "with less than {}GiB of addresses, Node.js fails at its first `fetch`, or before",
            APP_NODE_ADDRESS_BYTES_MIN >> 30
        );
        cx.problems.push(Problem::warning("small-memory", &token.place, message).help(
            "`memory` counts what is reserved; `recycle rss 512MiB` replaces a process that uses too much",
        ));
    }
}

/// Every default spelled out. The name is still to be made unique, and the bound to be put in.
fn settings(written: Draft, run: AppRun, directory: PathBuf) -> App {
    let (queue, queue_wait) = written.queue.unwrap_or((QUEUE, QUEUE_WAIT));
    App {
        name: written.name.unwrap_or_default(),
        run,
        workers: written.workers.unwrap_or(WorkerCount::Exactly(NonZeroU16::MIN)),
        directory,
        environment: written.environment,
        user: written.user,
        resources: written.resources,
        recycle: written.recycle,
        concurrency: written.concurrency,
        queue,
        queue_wait,
        request_buffers: written.request_buffers,
        limit: None,
        timeout: written.timeout.unwrap_or(TIMEOUT),
        start_timeout: written.start_timeout.unwrap_or(START_TIMEOUT),
        stop_timeout: written.stop_timeout.unwrap_or(STOP_TIMEOUT),
        stuck_after: written.stuck_after.unwrap_or(STUCK_AFTER),
        retry: written.retry,
        files: written.files,
        platform_response: written.platform_response,
        protocol: written.protocol,
        port: written.port,
        sticky: written.sticky,
        trusted_proxies: written.trusted_proxies,
        data: written.data.map(|name| AppData { name, directory: None }),
    }
}
