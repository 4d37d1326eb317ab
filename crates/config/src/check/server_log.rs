//! `log` of the global block: where the server writes what it has to say.

use super::Context;
use crate::checked::{LogOutput, ServerLog, ServerLogFormat};
use crate::directives;
use crate::nearest::nearest;
use crate::option_table::{OptionTable, line, not_yet, value};
use crate::problem::Problem;
use crate::syntax::Directive;

/// What its block takes: Caddy's options of its default logger.
pub(super) const OPTIONS: OptionTable<ServerLog> = OptionTable {
    once: true,
    ..OptionTable::new(
        "log (global)",
        &[
            line(
                "output",
                "stdout|stderr|discard|file <path>|net <address>|syslog [<address>]",
                |cx, log, option| {
                    (log.output, log.roll) = directives::log_output(cx, option)?;
                    Ok(())
                },
            ),
            line("format", "console|json", |_, log, option| {
                log.format = Some(format(option)?);
                Ok(())
            }),
            value("level", "INFO|ERROR", |_, log, value| {
                log.only_errors = directives::log_only_errors(value.token)?;
                Ok(())
            }),
            not_yet("sampling"),
            not_yet("include"),
            not_yet("exclude"),
            not_yet("core"),
        ],
    )
};

/// `log { … }` or `log default { … }`; other names are loggers that choose among messages.
pub(super) fn server_log(cx: &mut Context<'_>, line: &Directive) -> Result<ServerLog, Box<Problem>> {
    match line.args.as_slice() {
        [] => {}
        [name] if name.text == "default" => {}
        [name, ..] => {
            let message = format!("onehop has no further loggers in the global block, as `{}`", name.text);
            return Err(Problem::error("not-yet", &name.place, message)
                .help("`log { … }` is for all messages; a site's `log` for its requests"));
        }
    }
    let mut log = ServerLog { output: LogOutput::Stderr, roll: None, format: None, only_errors: false };
    OPTIONS.read(cx, &mut log, line.block.as_deref());
    Ok(log)
}

fn format(option: &Directive) -> Result<ServerLogFormat, Box<Problem>> {
    let [kind] = option.args.as_slice() else {
        return Err(crate::arguments::wrong_arguments(option, "format console|json"));
    };
    if option.block.is_some() {
        let message = "formats of the server's own messages have no options here";
        return Err(
            Problem::error("not-yet", &kind.place, message).help("write `format console` or `format json`")
        );
    }
    match kind.text.as_str() {
        "console" => Ok(ServerLogFormat::Console),
        "json" => Ok(ServerLogFormat::Json),
        word => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("messages have no format `{word}`"));
            Err(match nearest(word, ["console", "json"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are `console` and `json`"),
            })
        }
    }
}
