//! The block of `app`, option for option, as it was written: what is not there stays empty.
//!
//! Knows bounds and words; what belongs together is for `mod.rs`.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use super::{environment, name, program, sticky};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{number, size, within};
use crate::checked::{
    AppAddress, AppEnvironment, AppProtocol, AppResources, Network, Recycle, Sticky, WorkerCount,
};
use crate::directives::limit::OfApp;
use crate::directives::{
    limit, no_arguments, no_block, one_argument, some_arguments, trust, unknown_option, unknown_word,
    wrong_arguments,
};
use crate::limits::{
    APP_CONCURRENCY_MAX, APP_DATA_NAME_BYTES_MAX, APP_MEMORY_BYTES_MIN, APP_OPEN_FILES_MIN, APP_QUEUE_MAX,
    APP_RECYCLE_AGE_MAX, APP_RECYCLE_AGE_MIN, APP_RECYCLE_REQUESTS_MIN, APP_STUCK_MIN, APP_TIME_MIN,
    APP_TIMEOUT_MAX, APP_WAIT_MAX, APP_WORKERS_MAX,
};
use crate::problem::Problem;
use crate::syntax::{Line, Token};

const OPTIONS: [&str; 29] = [
    "command",
    "supervise",
    "name",
    "runtime",
    "workers",
    "concurrency",
    "one_at_a_time",
    "queue",
    "request_buffers",
    "limit",
    "timeout",
    "start_timeout",
    "stop_timeout",
    "stuck_after",
    "recycle",
    "retry",
    "cwd",
    "user",
    "resources",
    "env",
    "env_file",
    "env_pass",
    "data",
    "files",
    "response",
    "protocol",
    "port",
    "sticky",
    "trusted_proxies",
];

/// Options that can stand in a block several times: each adds to the others.
const REPEATED: [&str; 3] = ["env", "env_file", "env_pass"];

/// Words of other programs' configurations, with ours.
const OTHERS_WORDS: [(&str, &str); 22] = [
    ("instances", "workers N"),
    ("processes", "workers N"),
    ("script", "a file behind `app`, or `command`"),
    ("exec_start", "command"),
    ("interpreter", "runtime"),
    ("environment", "env"),
    ("environment_file", "env_file"),
    ("max_memory_restart", "recycle rss SIZE"),
    ("max_requests", "recycle requests N"),
    ("kill_timeout", "stop_timeout"),
    ("listen_timeout", "start_timeout"),
    ("working_directory", "cwd"),
    ("state_directory", "data NAME"),
    ("data_dir", "data NAME"),
    ("volume", "data NAME"),
    ("lb_policy", "sticky cookie|query|ip"),
    ("ip_hash", "sticky ip"),
    ("session_affinity", "sticky cookie"),
    ("set_real_ip_from", "trusted_proxies ADDRESS"),
    ("trust_proxy", "trusted_proxies ADDRESS"),
    ("max_lag", "limit lag TIME"),
    ("toobusy", "limit lag TIME"),
];

/// What a block says.
#[derive(Default)]
pub(super) struct Written<'l> {
    /// The names of all options.
    pub(super) seen: Vec<&'l Token>,
    /// One of them is wrong.
    pub(super) is_broken: bool,
    pub(super) command: Vec<String>,
    pub(super) address: Option<AppAddress>,
    pub(super) name: Option<String>,
    pub(super) runtime: Option<(String, Vec<String>)>,
    pub(super) workers: Option<WorkerCount>,
    pub(super) concurrency: Option<u32>,
    pub(super) queue: Option<(u32, Duration)>,
    pub(super) request_buffers: Option<u64>,
    pub(super) limit: OfApp,
    pub(super) timeout: Option<Duration>,
    pub(super) start_timeout: Option<Duration>,
    pub(super) stop_timeout: Option<Duration>,
    pub(super) stuck_after: Option<Duration>,
    pub(super) recycle: Recycle,
    pub(super) retry: bool,
    pub(super) directory: Option<PathBuf>,
    pub(super) user: Option<(String, Option<String>)>,
    pub(super) resources: AppResources,
    pub(super) environment: AppEnvironment,
    pub(super) data: Option<String>,
    pub(super) files: Option<PathBuf>,
    pub(super) platform_response: bool,
    pub(super) protocol: AppProtocol,
    pub(super) port: Option<NonZeroU16>,
    pub(super) sticky: Option<Sticky>,
    pub(super) trusted_proxies: Vec<Network>,
}

impl Written<'_> {
    /// The first option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&Token> {
        self.seen.iter().find(|token| token.text == name).copied()
    }

    /// What says instead of a file what is run.
    pub(super) fn command_or_address(&self) -> Option<&Token> {
        self.token("command").or_else(|| self.token("supervise"))
    }
}

/// Reads the block; every problem is kept.
pub(super) fn read<'l>(cx: &mut Context<'_>, line: &'l Line) -> Written<'l> {
    let mut written = Written::default();
    for option in line.block.as_deref().unwrap_or_default() {
        let name = option.name.text.as_str();
        let mut result = read_option(cx, &mut written, option);
        if result.is_ok()
            && !REPEATED.contains(&name)
            && let Some(earlier) = written.token(name)
        {
            let message = format!("`{name}` is set twice; line {} has it already", earlier.place.line());
            result = Err(Problem::error("duplicate-option", &option.name.place, message));
        }
        written.seen.push(&option.name);
        written.is_broken |= cx.keep(result).is_none();
    }
    written
}

fn read_option(cx: &mut Context<'_>, written: &mut Written<'_>, option: &Line) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "command" => {
            let words = some_arguments(option, "command <program> [<argument>…]")?;
            written.command = program::words(cx, words)?;
        }
        "supervise" => written.address = Some(program::address(cx, option)?),
        "name" => written.name = Some(name::written_name(cx, one_argument(option, "name shop-api")?)?),
        "runtime" => written.runtime = Some(program::runtime(cx, option)?),
        "workers" => written.workers = Some(workers(one_argument(option, "workers 4")?)?),
        "concurrency" => {
            let token = one_argument(option, "concurrency 64")?;
            written.concurrency = Some(small(token, "`concurrency`", APP_CONCURRENCY_MAX)?);
        }
        "one_at_a_time" => no_arguments(option).map(|()| written.concurrency = Some(1))?,
        "queue" => written.queue = Some(queue(option)?),
        "request_buffers" => written.request_buffers = Some(request_buffers(cx, option)?),
        "limit" => written.limit = limit::of_app(cx, option)?,
        "timeout" => written.timeout = Some(span(option, APP_TIME_MIN, APP_TIMEOUT_MAX)?),
        "start_timeout" => written.start_timeout = Some(span(option, APP_TIME_MIN, APP_WAIT_MAX)?),
        "stop_timeout" => written.stop_timeout = Some(span(option, APP_TIME_MIN, APP_WAIT_MAX)?),
        "stuck_after" => written.stuck_after = Some(span(option, APP_STUCK_MIN, APP_WAIT_MAX)?),
        "recycle" => written.recycle = recycle(option)?,
        "retry" => no_arguments(option).map(|()| written.retry = true)?,
        "cwd" => written.directory = Some(program::folder(cx, one_argument(option, "cwd <folder>")?)?),
        "user" => written.user = Some(user(cx, option)?),
        "resources" => written.resources = resources(option)?,
        "env" => environment::env(cx, &mut written.environment, option)?,
        "env_file" => environment::env_file(cx, &mut written.environment, option)?,
        "env_pass" => environment::env_pass(cx, &mut written.environment, option)?,
        "data" => written.data = Some(data_name(cx, one_argument(option, "data shop")?)?),
        "files" => written.files = Some(program::folder(cx, one_argument(option, "files <folder>")?)?),
        "response" => response(option).map(|()| written.platform_response = true)?,
        "protocol" => written.protocol = protocol(option)?,
        "port" => {
            let number = number(one_argument(option, "port 3000")?, "`port`", 1, u64::from(u16::MAX))?;
            written.port = u16::try_from(number).ok().and_then(NonZeroU16::new);
        }
        "sticky" => written.sticky = Some(sticky::sticky(cx, option)?),
        "trusted_proxies" => written.trusted_proxies = trust::trusted_proxies(cx, option)?,
        "exec" => {
            let message = "`exec` is planned for `app` and not there yet";
            return Err(Problem::error("not-yet", &option.name.place, message));
        }
        _ => return Err(unknown(option)),
    }
    Ok(())
}

/// The name of a folder: nothing that leads elsewhere, and nothing hidden.
fn data_name(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let name = fixed(cx.source, token, "the name of a data folder")?;
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.is_empty()
        || name.starts_with('.')
        || !name.chars().all(fits)
        || name.len() > APP_DATA_NAME_BYTES_MAX
    {
        let message = format!("`{name}` is no name of a data folder");
        return Err(Problem::error("data", &token.place, message).help(format!(
            "it has at most {APP_DATA_NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`; where it lies is set by `data_dir` \
             of the global block"
        )));
    }
    Ok(name)
}

fn unknown(option: &Line) -> Box<Problem> {
    let word = option.name.text.as_str();
    let problem = unknown_option("app", option, &OPTIONS, &[]);
    if let Some(ours) = sticky::of_policy(option) {
        return problem.help(format!("that is `{ours}` here"));
    }
    match OTHERS_WORDS.iter().find(|(theirs, _)| *theirs == word) {
        Some((_, ours)) => problem.help(format!("that is `{ours}` here")),
        None => problem,
    }
}

fn workers(token: &Token) -> Result<WorkerCount, Box<Problem>> {
    if matches!(token.text.as_str(), "auto" | "max") {
        return Ok(WorkerCount::Auto);
    }
    let count = number(token, "`workers`", 1, APP_WORKERS_MAX)
        .map_err(|problem| problem.help("`workers auto` starts one for each core"))?;
    let count = u16::try_from(count).ok().and_then(NonZeroU16::new);
    Ok(WorkerCount::Exactly(count.unwrap_or(NonZeroU16::MIN)))
}

/// `queue <N> [<wait>]`
fn queue(option: &Line) -> Result<(u32, Duration), Box<Problem>> {
    let usage = "queue <requests> [<longest wait>]";
    match some_arguments(option, usage)? {
        [length] => Ok((small(length, "`queue`", APP_QUEUE_MAX)?, super::QUEUE_WAIT)),
        [length, wait] => {
            let length = small(length, "`queue`", APP_QUEUE_MAX)?;
            Ok((length, within(wait, "the wait of `queue`", APP_TIME_MIN, APP_WAIT_MAX)?))
        }
        _ => Err(wrong_arguments(option, usage)),
    }
}

/// As `request_buffers` of `reverse_proxy`; `off` streams at once.
fn request_buffers(cx: &mut Context<'_>, option: &Line) -> Result<u64, Box<Problem>> {
    if option.args.first().is_some_and(|token| token.text == "off") && option.args.len() == 1 {
        return Ok(0);
    }
    crate::directives::proxy::buffer(cx, option)
}

fn recycle(option: &Line) -> Result<Recycle, Box<Problem>> {
    let mut recycle = Recycle::default();
    for (word, value) in pairs(option, "recycle rss 512MiB requests 100000 age 1d")? {
        match word.text.as_str() {
            "rss" => recycle.resident_bytes = Some(memory(value, "`rss`")?),
            "requests" => {
                recycle.requests = Some(number(value, "`requests`", APP_RECYCLE_REQUESTS_MIN, u64::MAX)?);
            }
            "age" => {
                recycle.age = Some(within(value, "`age`", APP_RECYCLE_AGE_MIN, APP_RECYCLE_AGE_MAX)?);
            }
            _ => return Err(unknown_word("recycle", word, &["rss", "requests", "age"])),
        }
    }
    Ok(recycle)
}

fn resources(option: &Line) -> Result<AppResources, Box<Problem>> {
    let mut resources = AppResources::default();
    for (word, value) in pairs(option, "resources memory 16GiB open_files 1024")? {
        match word.text.as_str() {
            "memory" => resources.memory_bytes = Some(memory(value, "`memory`")?),
            "open_files" => {
                resources.open_files = Some(number(value, "`open_files`", APP_OPEN_FILES_MIN, u64::MAX)?);
            }
            "processes" => resources.processes = Some(number(value, "`processes`", 1, u64::MAX)?),
            "cpu" => {
                let time = within(value, "`cpu`", Duration::from_secs(1), APP_RECYCLE_AGE_MAX)?;
                // The system counts whole seconds.
                resources.cpu_seconds = Some(time.as_secs());
            }
            _ => return Err(unknown_word("resources", word, &["memory", "open_files", "processes", "cpu"])),
        }
    }
    Ok(resources)
}

/// Words with a value each: on the line, or a line each in a block. None may come twice.
fn pairs<'l>(option: &'l Line, usage: &str) -> Result<Vec<(&'l Token, &'l Token)>, Box<Problem>> {
    let mut pairs = Vec::new();
    for pair in option.args.chunks(2) {
        let [word, value] = pair else { return Err(wrong_arguments(option, usage)) };
        pairs.push((word, value));
    }
    for line in option.block.iter().flatten() {
        pairs.push((&line.name, one_argument(line, usage)?));
    }
    if pairs.is_empty() {
        return Err(wrong_arguments(option, usage));
    }
    for (index, (word, _)) in pairs.iter().enumerate() {
        if pairs.iter().take(index).any(|(earlier, _)| earlier.text == word.text) {
            let message = format!("`{}` is set twice", word.text);
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
    }
    Ok(pairs)
}

fn user(cx: &Context<'_>, option: &Line) -> Result<(String, Option<String>), Box<Problem>> {
    no_block(option)?;
    let read = |token: &Token| {
        let name = fixed(cx.source, token, "the name of a user")?;
        if name.is_empty() || name.contains(|character: char| ":/\0".contains(character)) {
            return Err(Problem::error(
                "user",
                &token.place,
                format!("`{name}` is no name of a user or a group"),
            )
            .help("it is written `user <name> [<group>]`"));
        }
        Ok(name)
    };
    match option.args.as_slice() {
        [user] => Ok((read(user)?, None)),
        [user, group] => Ok((read(user)?, Some(read(group)?))),
        _ => Err(wrong_arguments(option, "user <name> [<group>]")),
    }
}

fn response(option: &Line) -> Result<(), Box<Problem>> {
    let class = one_argument(option, "response platform")?;
    if class.text == "platform" {
        return Ok(());
    }
    Err(Problem::error("unknown-option", &class.place, format!("`response` cannot be `{}`", class.text))
        .help("handlers get a `Response` that is faster; `response platform` gives them the runtime's own"))
}

fn protocol(option: &Line) -> Result<AppProtocol, Box<Problem>> {
    let word = one_argument(option, "protocol http")?;
    match word.text.as_str() {
        "frames" => Ok(AppProtocol::Frames),
        "http" => Ok(AppProtocol::Http),
        _ => Err(unknown_word("protocol", word, &["frames", "http"])),
    }
}

/// A number from 1 that fits into 32 bits.
fn small(token: &Token, what: &str, to: u64) -> Result<u32, Box<Problem>> {
    number(token, what, 1, to).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn memory(token: &Token, what: &str) -> Result<u64, Box<Problem>> {
    let bytes = size(token)?;
    if bytes < APP_MEMORY_BYTES_MIN {
        let message = format!("{what} must be at least {}MiB", APP_MEMORY_BYTES_MIN >> 20);
        return Err(Problem::error("size", &token.place, message)
            .help("no runtime starts within less; `512MiB` is usual"));
    }
    Ok(bytes)
}

/// An option that takes a duration.
fn span(option: &Line, from: Duration, to: Duration) -> Result<Duration, Box<Problem>> {
    let name = &option.name.text;
    within(one_argument(option, &format!("{name} 30s"))?, &format!("`{name}`"), from, to)
}
