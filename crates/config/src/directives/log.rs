//! `log`: the access log of a site.

use super::{no_arguments, options, some_arguments, unknown_option};
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::{AccessLog, LogOutput};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::Line;

pub(super) fn log(cx: &mut Context<'_>, line: &Line) -> Result<AccessLog, Box<Problem>> {
    if let Some(name) = line.args.first() {
        let message = "names of loggers are a feature of Caddy that onehop does not have yet";
        return Err(
            Problem::error("not-yet", &name.place, message).help("write `log` alone, or with a block")
        );
    }
    let mut settings = AccessLog { output: LogOutput::Stderr, hosts: Vec::new() };
    options(cx, line, |cx, option| {
        match option.name.text.as_str() {
            "output" => settings.output = output(cx, option)?,
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
            if let Some(inner) = option.block.as_ref().and_then(|block| block.first()) {
                let caddys = [
                    "mode",
                    "dir_mode",
                    "roll_disabled",
                    "roll_size",
                    "roll_uncompressed",
                    "roll_compression",
                    "roll_local_time",
                    "roll_keep",
                    "roll_keep_for",
                    "roll_interval",
                    "roll_minutes",
                    "roll_at",
                    "backup_time_format",
                ];
                return Err(unknown_option("output file", inner, &[], &caddys));
            }
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
