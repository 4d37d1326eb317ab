//! The block of `app`: the table of its options, with their bounds.
//!
//! Sees each option by itself. `mod.rs` checks what they say together.

use std::num::NonZeroU16;
use std::time::Duration;

use super::draft::Draft;
use super::{environment, name, program, sticky};
use crate::arguments::{no_block, one_argument, some_arguments, unknown_word, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{number, size, within};
use crate::checked::{AppProtocol, AppResources, Recycle, WorkerCount};
use crate::directives::proxy::buffer;
use crate::directives::{limit, trust};
use crate::limits::{
    APP_CONCURRENCY_MAX, APP_DATA_NAME_BYTES_MAX, APP_MEMORY_BYTES_MIN, APP_OPEN_FILES_MIN, APP_QUEUE_MAX,
    APP_RECYCLE_AGE_MAX, APP_RECYCLE_AGE_MIN, APP_RECYCLE_REQUESTS_MIN, APP_STUCK_MIN, APP_TIME_MIN,
    APP_TIMEOUT_MAX, APP_WAIT_MAX, APP_WORKERS_MAX,
};
use crate::option_table::{OptionTable, Value, flag, line, repeated, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) const OPTIONS: OptionTable<Draft> = OptionTable {
    once: true,
    others: &OTHERS_WORDS,
    ..OptionTable::new(
        "app",
        &[
            values("command", "<program> [<argument>…]", |cx, app, words| {
                program::words(cx, words).map(|words| app.command = words)
            }),
            line("supervise", "off <address>", |cx, app, option| {
                program::address(cx, option).map(|address| app.address = Some(address))
            }),
            value("name", "shop-api", |cx, app, value| {
                name::written_name(cx, value.token).map(|name| app.name = Some(name))
            }),
            values("runtime", "node|bun|<path> [<argument>…]", |cx, app, words| {
                program::runtime(cx, words).map(|runtime| app.runtime = Some(runtime))
            }),
            value("workers", "4", |_, app, value| workers(value).map(|count| app.workers = Some(count))),
            value("concurrency", "64", |_, app, value| {
                value.count(1, APP_CONCURRENCY_MAX).map(|count| app.concurrency = Some(count))
            }),
            flag("one_at_a_time", |app| app.concurrency = Some(1)),
            line("queue", "<requests> [<longest wait>]", |_, app, option| {
                queue(option).map(|queue| app.queue = Some(queue))
            }),
            value("request_buffers", "64KiB", |cx, app, value| {
                request_buffers(cx, value).map(|bytes| app.request_buffers = Some(bytes))
            }),
            line("limit", "in_flight 64 [queue 128] [wait 250ms]", |cx, app, option| {
                limit::of_app(cx, option).map(|limit| app.limit = limit)
            }),
            value("timeout", "30s", |_, app, value| {
                value.within(APP_TIME_MIN, APP_TIMEOUT_MAX).map(|time| app.timeout = Some(time))
            }),
            value("start_timeout", "30s", |_, app, value| {
                value.within(APP_TIME_MIN, APP_WAIT_MAX).map(|time| app.start_timeout = Some(time))
            }),
            value("stop_timeout", "30s", |_, app, value| {
                value.within(APP_TIME_MIN, APP_WAIT_MAX).map(|time| app.stop_timeout = Some(time))
            }),
            value("stuck_after", "30s", |_, app, value| {
                value.within(APP_STUCK_MIN, APP_WAIT_MAX).map(|time| app.stuck_after = Some(time))
            }),
            line("recycle", "rss 512MiB requests 100000 age 1d", |cx, app, option| {
                app.recycle = Recycle::default();
                read_pairs(
                    cx,
                    &RECYCLE,
                    &mut app.recycle,
                    option,
                    "recycle rss 512MiB requests 100000 age 1d",
                )
            }),
            flag("retry", |app| app.retry = true),
            value("cwd", "<folder>", |cx, app, value| {
                program::folder(cx, value.token).map(|folder| app.directory = Some(folder))
            }),
            line("user", "<name> [<group>]", |cx, app, option| {
                user(cx, option).map(|user| app.user = Some(user))
            }),
            line("resources", "memory 16GiB open_files 1024", |cx, app, option| {
                app.resources = AppResources::default();
                read_pairs(
                    cx,
                    &RESOURCES,
                    &mut app.resources,
                    option,
                    "resources memory 16GiB open_files 1024",
                )
            }),
            repeated(line("env", "<NAME> <value>", |cx, app, option| {
                environment::env(cx, &mut app.environment, option)
            })),
            repeated(values("env_file", "<file>", |cx, app, files| {
                environment::env_file(cx, &mut app.environment, files)
            })),
            repeated(values("env_pass", "<NAME>…", |cx, app, names| {
                environment::env_pass(cx, &mut app.environment, names)
            })),
            value("data", "shop", |cx, app, value| {
                data_name(cx, value.token).map(|name| app.data = Some(name))
            }),
            value("files", "<folder>", |cx, app, value| {
                program::folder(cx, value.token).map(|folder| app.files = Some(folder))
            }),
            value("response", "platform", |_, app, value| {
                response(value.token).map(|()| app.platform_response = true)
            }),
            value("protocol", "http", |_, app, value| {
                protocol(value.token).map(|protocol| app.protocol = protocol)
            }),
            value("port", "3000", |_, app, value| {
                let number = value.number(1, u64::from(u16::MAX))?;
                app.port = u16::try_from(number).ok().and_then(NonZeroU16::new);
                Ok(())
            }),
            line("sticky", sticky::USAGE, |cx, app, option| {
                sticky::sticky(cx, option).map(|sticky| app.sticky = Some(sticky))
            }),
            line("trusted_proxies", trust::NETWORKS, |cx, app, option| {
                trust::trusted_proxies(cx, option).map(|networks| app.trusted_proxies = networks)
            }),
        ],
    )
};

pub(super) const RECYCLE: OptionTable<Recycle> = OptionTable::new(
    "recycle",
    &[
        value("rss", "512MiB", |_, recycle, value| {
            memory(value).map(|bytes| recycle.resident_bytes = Some(bytes))
        }),
        value("requests", "100000", |_, recycle, value| {
            let count = value.number(APP_RECYCLE_REQUESTS_MIN, u64::MAX);
            count.map(|count| recycle.requests = Some(count))
        }),
        value("age", "1d", |_, recycle, value| {
            value.within(APP_RECYCLE_AGE_MIN, APP_RECYCLE_AGE_MAX).map(|age| recycle.age = Some(age))
        }),
    ],
);

pub(super) const RESOURCES: OptionTable<AppResources> = OptionTable::new(
    "resources",
    &[
        value("memory", "16GiB", |_, resources, value| {
            memory(value).map(|bytes| resources.memory_bytes = Some(bytes))
        }),
        value("open_files", "1024", |_, resources, value| {
            value.number(APP_OPEN_FILES_MIN, u64::MAX).map(|files| resources.open_files = Some(files))
        }),
        value("processes", "64", |_, resources, value| {
            value.number(1, u64::MAX).map(|count| resources.processes = Some(count))
        }),
        value("cpu", "60s", |_, resources, value| {
            let time = value.within(Duration::from_secs(1), APP_RECYCLE_AGE_MAX)?;
            // The system counts whole seconds.
            resources.cpu_seconds = Some(time.as_secs());
            Ok(())
        }),
    ],
);

/// Words of other programs' configurations, with ours.
const OTHERS_WORDS: [(&str, &str); 22] = [
    ("instances", "that is `workers N` here"),
    ("processes", "that is `workers N` here"),
    ("script", "that is `a file behind `app`, or `command`` here"),
    ("exec_start", "that is `command` here"),
    ("interpreter", "that is `runtime` here"),
    ("environment", "that is `env` here"),
    ("environment_file", "that is `env_file` here"),
    ("max_memory_restart", "that is `recycle rss SIZE` here"),
    ("max_requests", "that is `recycle requests N` here"),
    ("kill_timeout", "that is `stop_timeout` here"),
    ("listen_timeout", "that is `start_timeout` here"),
    ("working_directory", "that is `cwd` here"),
    ("state_directory", "that is `data NAME` here"),
    ("data_dir", "that is `data NAME` here"),
    ("volume", "that is `data NAME` here"),
    ("lb_policy", "that is `sticky cookie|query|ip` here"),
    ("ip_hash", "that is `sticky ip` here"),
    ("session_affinity", "that is `sticky cookie` here"),
    ("set_real_ip_from", "that is `trusted_proxies ADDRESS` here"),
    ("trust_proxy", "that is `trusted_proxies ADDRESS` here"),
    ("max_lag", "that is `limit lag TIME` here"),
    ("toobusy", "that is `limit lag TIME` here"),
];

/// Reads the block; every problem is kept.
pub(super) fn read(cx: &mut Context<'_>, line: &Directive) -> Draft {
    let mut draft = Draft::default();
    draft.seen = OPTIONS.read_or(cx, &mut draft, line.block.as_deref(), |_, _, option| Err(unknown(option)));
    draft
}

fn unknown(option: &Directive) -> Box<Problem> {
    if option.name.text == "exec" {
        let message = "`exec` is planned for `app` and not there yet";
        return Problem::error("not-yet", &option.name.place, message);
    }
    match sticky::of_policy(option) {
        Some(ours) => OPTIONS.unknown(option).help(format!("that is `{ours}` here")),
        None => OPTIONS.unknown(option),
    }
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

fn workers(value: Value<'_>) -> Result<WorkerCount, Box<Problem>> {
    if matches!(value.token.text.as_str(), "auto" | "max") {
        return Ok(WorkerCount::Auto);
    }
    let count = value
        .number(1, APP_WORKERS_MAX)
        .map_err(|problem| problem.help("`workers auto` starts one for each core"))?;
    let count = u16::try_from(count).ok().and_then(NonZeroU16::new);
    Ok(WorkerCount::Exactly(count.unwrap_or(NonZeroU16::MIN)))
}

/// `queue <N> [<wait>]`
fn queue(option: &Directive) -> Result<(u32, Duration), Box<Problem>> {
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
fn request_buffers(cx: &mut Context<'_>, value: Value<'_>) -> Result<u64, Box<Problem>> {
    if value.token.text == "off" { Ok(0) } else { buffer(cx, value) }
}

/// Reads pairs of a word and its value. The usage says how all of them are written.
fn read_pairs<D>(
    cx: &mut Context<'_>,
    table: &OptionTable<D>,
    draft: &mut D,
    option: &Directive,
    usage: &str,
) -> Result<(), Box<Problem>> {
    let mut pairs = pairs(option, usage)?.into_iter();
    pairs.try_for_each(|(word, value)| table.read_word(cx, draft, word, &mut std::slice::from_ref(value)))
}

/// Words with a value each: on the line, or a line each in a block. None may come twice.
fn pairs<'l>(option: &'l Directive, usage: &str) -> Result<Vec<(&'l Token, &'l Token)>, Box<Problem>> {
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

fn user(cx: &Context<'_>, option: &Directive) -> Result<(String, Option<String>), Box<Problem>> {
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

fn response(class: &Token) -> Result<(), Box<Problem>> {
    if class.text == "platform" {
        return Ok(());
    }
    Err(Problem::error("unknown-option", &class.place, format!("`response` cannot be `{}`", class.text))
        .help("handlers get a `Response` that is faster; `response platform` gives them the runtime's own"))
}

fn protocol(word: &Token) -> Result<AppProtocol, Box<Problem>> {
    match word.text.as_str() {
        "frames" => Ok(AppProtocol::Frames),
        "http" => Ok(AppProtocol::Http),
        "h2c" => Ok(AppProtocol::Http2),
        _ => Err(unknown_word("protocol", word, &["frames", "http", "h2c"])),
    }
}

/// A number from 1 that fits into 32 bits.
fn small(token: &Token, what: &str, to: u64) -> Result<u32, Box<Problem>> {
    number(token, what, 1, to).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn memory(value: Value<'_>) -> Result<u64, Box<Problem>> {
    let bytes = size(value.token)?;
    if bytes < APP_MEMORY_BYTES_MIN {
        let message = format!("{} must be at least {}MiB", value.title(), APP_MEMORY_BYTES_MIN >> 20);
        return Err(Problem::error("size", &value.token.place, message)
            .help("no runtime starts within less; `512MiB` is usual"));
    }
    Ok(bytes)
}
