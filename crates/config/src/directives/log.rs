//! `log`: the access log of a site.

use std::time::Duration;

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{duration, number, size};
use crate::checked::{AccessLog, LogFormat, LogOutput, LogRoll};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Value, flag, line, not_yet, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) const OPTIONS: OptionTable<AccessLog> = OptionTable::new(
    "log",
    &[
        line("output", "stdout|stderr|discard|file <path>", |cx, log, option| {
            log.output = output(cx, option)?;
            log.roll = if matches!(log.output, LogOutput::File(_)) { roll(cx, option) } else { None };
            Ok(())
        }),
        line("format", "json|common|combined", |_, log, option| {
            log.format = format(option)?;
            Ok(())
        }),
        values("hostnames", "<host>…", |cx, log, hosts| {
            let mut hosts = hosts.iter();
            hosts.try_for_each(|host| {
                fixed(cx.source, host, "a host").map(|host| log.hosts.push(host.to_lowercase()))
            })
        }),
        not_yet("level"),
        not_yet("sampling"),
        not_yet("core"),
        not_yet("no_hostname"),
        not_yet("include"),
        not_yet("exclude"),
    ],
);

/// Rotation, unless it is switched off.
pub(super) const OUTPUT_FILE: OptionTable<(LogRoll, bool)> = OptionTable::new(
    "output file",
    &[
        value("roll_size", "100MiB", |_, (roll, _), value| {
            let steps = at_least_one(size(value.token)?.div_ceil(ROLL_SIZE_STEP), value.token)?;
            roll.size = steps * ROLL_SIZE_STEP;
            Ok(())
        }),
        value("roll_keep", "10", |_, (roll, _), value| keep(value).map(|files| roll.keep = files)),
        value("roll_keep_for", "90d", |_, (roll, _), value| {
            let days = duration(value.token)?.as_secs().div_ceil(ROLL_KEEP_STEP.as_secs());
            let days = u32::try_from(at_least_one(days, value.token)?).unwrap_or(u32::MAX);
            roll.keep_for = ROLL_KEEP_STEP.saturating_mul(days);
            Ok(())
        }),
        flag("roll_disabled", |(_, is_disabled)| *is_disabled = true),
        flag("roll_uncompressed", |(roll, _)| roll.compress = false),
        not_yet("mode"),
        not_yet("dir_mode"),
        not_yet("roll_compression"),
        not_yet("roll_local_time"),
        not_yet("roll_interval"),
        not_yet("roll_minutes"),
        not_yet("roll_at"),
        not_yet("backup_time_format"),
    ],
);

pub(super) const FORMAT_JSON: OptionTable<()> = OptionTable::new(
    "format json",
    &[
        not_yet("message_key"),
        not_yet("level_key"),
        not_yet("time_key"),
        not_yet("name_key"),
        not_yet("caller_key"),
        not_yet("stacktrace_key"),
        not_yet("line_ending"),
        not_yet("time_format"),
        not_yet("time_local"),
        not_yet("duration_format"),
        not_yet("level_format"),
    ],
);

pub(super) fn log(cx: &mut Context<'_>, line: &Directive) -> Result<AccessLog, Box<Problem>> {
    if let Some(name) = line.args.first() {
        let message = "names of loggers are a feature of Caddy that onehop does not have yet";
        return Err(
            Problem::error("not-yet", &name.place, message).help("write `log` alone, or with a block")
        );
    }
    let format = LogFormat::default();
    let mut settings = AccessLog { output: LogOutput::Stderr, format, roll: None, hosts: Vec::new() };
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    Ok(settings)
}

fn output(cx: &Context<'_>, option: &Directive) -> Result<LogOutput, Box<Problem>> {
    let Some((kind, rest)) = option.args.split_first() else {
        return Err(wrong_arguments(option, "output stdout|stderr|discard|file <path>"));
    };
    if matches!(kind.text.as_str(), "stdout" | "stderr" | "discard")
        && let Some(extra) = rest.first()
    {
        return Err(Problem::error(
            "arguments",
            &extra.place,
            format!("`output {}` takes nothing", kind.text),
        ));
    }
    match kind.text.as_str() {
        "stdout" => Ok(LogOutput::Stdout),
        "stderr" => Ok(LogOutput::Stderr),
        "discard" => Ok(LogOutput::Discard),
        "file" => {
            let [path] = rest else {
                return Err(wrong_arguments(option, "output file <path>"));
            };
            Ok(LogOutput::File(cx.absolute_to_write(&fixed(cx.source, path, "the path of a log")?)))
        }
        "net" => {
            let message = "`output net` is a feature of Caddy that onehop does not have yet";
            Err(Problem::error("not-yet", &kind.place, message))
        }
        word => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no output `{word}`"));
            Err(match nearest(word, ["stdout", "stderr", "discard", "file"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are `stdout`, `stderr`, `discard` and `file <path>`"),
            })
        }
    }
}

/// Options of `output file`, with Caddy's defaults and steps.
fn roll(cx: &mut Context<'_>, option: &Directive) -> Option<LogRoll> {
    let roll =
        LogRoll { size: 100 * ROLL_SIZE_STEP, keep: 10, keep_for: 90 * ROLL_KEEP_STEP, compress: true };
    let mut settings = (roll, false);
    OUTPUT_FILE.read(cx, &mut settings, option.block.as_deref());
    let (roll, is_disabled) = settings;
    (!is_disabled).then_some(roll)
}

/// Caddy rounds sizes up to these, and times to these.
const ROLL_SIZE_STEP: u64 = 1024 * 1024;
const ROLL_KEEP_STEP: Duration = Duration::from_secs(86_400);

fn keep(value: Value<'_>) -> Result<usize, Box<Problem>> {
    let files = number(value.token, "the number of files", 0, u64::from(u32::MAX))?;
    at_least_one(files, value.token).map(|files| usize::try_from(files).unwrap_or(usize::MAX))
}

fn at_least_one(value: u64, token: &Token) -> Result<u64, Box<Problem>> {
    let zero = || {
        Problem::error("number", &token.place, "a log cannot be rotated with 0 here")
            .help("`roll_disabled` turns rotation off")
    };
    if value == 0 { Err(zero()) } else { Ok(value) }
}

/// What `format` takes.
const FORMAT: &str = "format json|common|combined";

fn format(option: &Directive) -> Result<LogFormat, Box<Problem>> {
    const HELP: &str = "there are `json`, `common` and `combined`";
    let [kind] = option.args.as_slice() else { return Err(wrong_arguments(option, FORMAT)) };
    let inner = option.block.as_ref().and_then(|block| block.first());
    match kind.text.as_str() {
        "json" => inner.map_or(Ok(LogFormat::Json), |inner| Err(FORMAT_JSON.unknown(inner))),
        "common" | "combined" if inner.is_some() => Err(wrong_arguments(option, FORMAT)),
        "common" => Ok(LogFormat::Common),
        "combined" => Ok(LogFormat::Combined),
        word @ ("console" | "filter" | "append" | "transform" | "single_field" | "formatted") => {
            let message = format!("`format {word}` is a feature of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &kind.place, message).help(HELP))
        }
        word => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no format `{word}`"));
            Err(match nearest(word, ["json", "common", "combined"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(HELP),
            })
        }
    }
}
