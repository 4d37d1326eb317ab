//! `log`: the access log of a site.

use std::time::Duration;

use super::{no_arguments, one_argument, options, some_arguments, unknown_option};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{duration, number, size};
use crate::checked::{AccessLog, LogOutput, LogRoll};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Line, Token};

pub(super) fn log(cx: &mut Context<'_>, line: &Line) -> Result<AccessLog, Box<Problem>> {
    if let Some(name) = line.args.first() {
        let message = "names of loggers are a feature of Caddy that onehop does not have yet";
        return Err(
            Problem::error("not-yet", &name.place, message).help("write `log` alone, or with a block")
        );
    }
    let mut settings = AccessLog { output: LogOutput::Stderr, roll: None, hosts: Vec::new() };
    options(cx, line, |cx, option| {
        match option.name.text.as_str() {
            "output" => {
                settings.output = output(cx, option)?;
                settings.roll =
                    if matches!(settings.output, LogOutput::File(_)) { roll(cx, option)? } else { None };
            }
            "format" => format(option)?,
            "hostnames" => {
                for token in some_arguments(option, "hostnames <host>…")? {
                    settings.hosts.push(fixed(cx.source, token, "a host")?.to_lowercase());
                }
            }
            _ => {
                let caddys = ["level", "sampling", "core", "no_hostname", "include", "exclude"];
                return Err(unknown_option("log", option, &["output", "format", "hostnames"], &caddys));
            }
        }
        Ok(())
    });
    Ok(settings)
}

fn output(cx: &Context<'_>, option: &Line) -> Result<LogOutput, Box<Problem>> {
    let Some((kind, rest)) = option.args.split_first() else {
        return Err(super::wrong_arguments(option, "output stdout|stderr|discard|file <path>"));
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
                return Err(super::wrong_arguments(option, "output file <path>"));
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
fn roll(cx: &mut Context<'_>, option: &Line) -> Result<Option<LogRoll>, Box<Problem>> {
    let mut settings =
        LogRoll { size: 100 * ROLL_SIZE_STEP, keep: 10, keep_for: 90 * ROLL_KEEP_STEP, compress: true };
    let mut is_disabled = false;
    options(cx, option, |_, inner| {
        match inner.name.text.as_str() {
            "roll_disabled" => {
                no_arguments(inner)?;
                is_disabled = true;
            }
            "roll_uncompressed" => {
                no_arguments(inner)?;
                settings.compress = false;
            }
            "roll_size" => {
                let token = one_argument(inner, "roll_size 100MiB")?;
                settings.size = at_least_one(size(token)?.div_ceil(ROLL_SIZE_STEP), token)? * ROLL_SIZE_STEP;
            }
            "roll_keep" => {
                let token = one_argument(inner, "roll_keep 10")?;
                let files =
                    at_least_one(number(token, "the number of files", 0, u64::from(u32::MAX))?, token)?;
                settings.keep = usize::try_from(files).unwrap_or(usize::MAX);
            }
            "roll_keep_for" => {
                let token = one_argument(inner, "roll_keep_for 90d")?;
                let days = duration(token)?.as_secs().div_ceil(ROLL_KEEP_STEP.as_secs());
                let days = u32::try_from(at_least_one(days, token)?).unwrap_or(u32::MAX);
                settings.keep_for = ROLL_KEEP_STEP.saturating_mul(days);
            }
            _ => {
                let known = ["roll_size", "roll_keep", "roll_keep_for", "roll_disabled", "roll_uncompressed"];
                let caddys = [
                    "mode",
                    "dir_mode",
                    "roll_compression",
                    "roll_local_time",
                    "roll_interval",
                    "roll_minutes",
                    "roll_at",
                    "backup_time_format",
                ];
                return Err(unknown_option("output file", inner, &known, &caddys));
            }
        }
        Ok(())
    });
    Ok((!is_disabled).then_some(settings))
}

/// Caddy rounds sizes up to these, and times to these.
const ROLL_SIZE_STEP: u64 = 1024 * 1024;
const ROLL_KEEP_STEP: Duration = Duration::from_secs(86_400);

fn at_least_one(value: u64, token: &Token) -> Result<u64, Box<Problem>> {
    let zero = || {
        Problem::error("number", &token.place, "a log cannot be rotated with 0 here")
            .help("`roll_disabled` turns rotation off")
    };
    if value == 0 { Err(zero()) } else { Ok(value) }
}

fn format(option: &Line) -> Result<(), Box<Problem>> {
    let Some(kind) = option.args.first() else { return Err(super::wrong_arguments(option, "format json")) };
    match kind.text.as_str() {
        "json" if option.args.len() == 1 => match option.block.as_ref().and_then(|block| block.first()) {
            Some(inner) => {
                let caddys = [
                    "message_key",
                    "level_key",
                    "time_key",
                    "name_key",
                    "caller_key",
                    "stacktrace_key",
                    "line_ending",
                    "time_format",
                    "time_local",
                    "duration_format",
                    "level_format",
                ];
                Err(unknown_option("format json", inner, &[], &caddys))
            }
            None => Ok(()),
        },
        "json" => no_arguments(option),
        word @ ("console" | "filter" | "append" | "transform" | "single_field" | "formatted") => {
            let message = format!("`format {word}` is a feature of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &kind.place, message)
                .help("access logs are JSON: write `format json`"))
        }
        word => Err(Problem::error("unknown-option", &kind.place, format!("there is no format `{word}`"))
            .help("access logs are JSON: write `format json`")),
    }
}
