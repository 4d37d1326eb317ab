//! `log`: the access logs of a site. `format.rs` reads what their lines look like, `request.rs` the directives that decide
//! for single requests.

mod format;
mod request;

use std::time::Duration;

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{duration, number, size};
use crate::checked::{AccessLog, LogFormat, LogOutput, LogRoll, LogSampling, NetAddress, NetOutput};
use crate::limits::{LOG_DIAL_MAX, LOG_DIAL_MIN, LOG_SAMPLING_MAX, LOG_SAMPLING_MIN, LOGS_PER_SITE_MAX};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Value, flag, line, not_yet, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) use format::{FORMAT_FILTER, FORMAT_JSON, FORMAT_TRANSFORM, IP_MASK};
pub(crate) use request::unknown_names;
pub(super) use request::{log_append, log_name, log_skip};

pub(super) const OPTIONS: OptionTable<AccessLog> = OptionTable::new(
    "log",
    &[
        line(
            "output",
            "stdout|stderr|discard|file <path>|net <address>|syslog [<address>]",
            |cx, log, option| {
                (log.output, log.roll) = output_and_roll(cx, option)?;
                Ok(())
            },
        ),
        line("format", "json|common|combined|filter { … }|transform <template>", |cx, log, option| {
            log.format = format::format(cx, option)?;
            Ok(())
        }),
        values("hostnames", "<host>…", |cx, log, hosts| {
            let mut hosts = hosts.iter();
            hosts.try_for_each(|host| {
                fixed(cx.source, host, "a host").map(|host| log.hosts.push(host.to_lowercase()))
            })
        }),
        flag("no_hostname", |log| log.only_named = true),
        value("level", "INFO|ERROR", |_, log, value| {
            log.only_errors = only_errors(value.token)?;
            Ok(())
        }),
        line("sampling", "{ … }", |cx, log, option| {
            log.sampling = Some(sampling(cx, option)?);
            Ok(())
        }),
        not_yet("core"),
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

/// Where the system takes messages of syslog.
const SYSLOG_SOCKET: &str = "/dev/log";
/// Caddy's default.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const OUTPUT_NET: OptionTable<NetOutput> = OptionTable::new(
    "output net",
    &[
        value("dial_timeout", "10s", |_, net, value| {
            value.within(LOG_DIAL_MIN, LOG_DIAL_MAX).map(|time| net.dial_timeout = time)
        }),
        flag("soft_start", |net| net.soft_start = true),
    ],
);

pub(super) const SAMPLING: OptionTable<LogSampling> = OptionTable::new(
    "sampling",
    &[
        value("interval", "1s", |_, sampling, value| {
            value.within(LOG_SAMPLING_MIN, LOG_SAMPLING_MAX).map(|time| sampling.interval = time)
        }),
        value("first", "100", |_, sampling, value| {
            value.number(0, u64::from(u32::MAX)).map(|lines| sampling.first = lines)
        }),
        value("thereafter", "100", |_, sampling, value| {
            value.number(0, u64::from(u32::MAX)).map(|lines| sampling.thereafter = lines)
        }),
    ],
);

/// Reads a log and adds it to those of its site.
pub(super) fn log(
    cx: &mut Context<'_>,
    line: &Directive,
    logs: &mut Vec<AccessLog>,
) -> Result<(), Box<Problem>> {
    let name = match line.args.as_slice() {
        [] => None,
        [name] => Some(fixed(cx.source, name, "the name of a log")?),
        _ => return Err(wrong_arguments(line, "log [<name>]")),
    };
    if name.is_some() && logs.iter().any(|log| log.name == name) {
        let message = format!("this site has a log `{}` already", name.unwrap_or_default());
        return Err(Problem::error("duplicate-option", &line.name.place, message)
            .help("`log_name` could not tell them apart: give each a name of its own"));
    }
    if logs.len() == LOGS_PER_SITE_MAX {
        let message = format!("a site has at most {LOGS_PER_SITE_MAX} logs");
        return Err(Problem::error("too-large", &line.name.place, message));
    }
    // As in Caddy, requests are among the server's messages where their log does not say otherwise.
    let (output, roll) =
        cx.server_log.as_ref().map_or((LogOutput::Stderr, None), |log| (log.output.clone(), log.roll));
    let mut settings = AccessLog {
        name,
        output,
        format: LogFormat::default(),
        roll,
        hosts: Vec::new(),
        only_named: false,
        only_errors: false,
        credentials: cx.log_credentials,
        sampling: None,
    };
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    if settings.only_named && settings.name.is_none() {
        let message = "a log with `no_hostname` and without a name has no line: `log_name` cannot call it";
        return Err(
            Problem::error("contradiction", &line.name.place, message).help("write `log <name> { … }`")
        );
    }
    logs.push(settings);
    Ok(())
}

/// What lines have in Caddy: those of failures on the server's side ERROR, all others INFO.
pub(crate) fn only_errors(token: &Token) -> Result<bool, Box<Problem>> {
    match token.text.to_ascii_uppercase().as_str() {
        "DEBUG" | "INFO" | "" => Ok(false),
        "WARN" | "ERROR" => Ok(true),
        "PANIC" | "FATAL" => {
            let message = format!("no request is logged as `{}`", token.text);
            Err(Problem::error("contradiction", &token.place, message)
                .help("lines are INFO, or ERROR where the request failed on the server's side"))
        }
        _ => {
            let message = format!("there is no level `{}`", token.text);
            let problem = Problem::error("unknown-option", &token.place, message);
            Err(problem.help("there are `DEBUG`, `INFO`, `WARN` and `ERROR`"))
        }
    }
}

fn sampling(cx: &mut Context<'_>, option: &Directive) -> Result<LogSampling, Box<Problem>> {
    if !option.args.is_empty() {
        return Err(wrong_arguments(option, "sampling { interval 1s; first 100; thereafter 100 }"));
    }
    // Caddy's defaults.
    let mut settings = LogSampling { interval: Duration::from_secs(1), first: 100, thereafter: 100 };
    SAMPLING.read(cx, &mut settings, option.block.as_deref());
    Ok(settings)
}

/// Where lines go, and when a file is rotated.
pub(crate) fn output_and_roll(
    cx: &mut Context<'_>,
    option: &Directive,
) -> Result<(LogOutput, Option<LogRoll>), Box<Problem>> {
    let output = output(cx, option)?;
    let roll = if matches!(output, LogOutput::File(_)) { roll(cx, option) } else { None };
    Ok((output, roll))
}

fn output(cx: &mut Context<'_>, option: &Directive) -> Result<LogOutput, Box<Problem>> {
    let Some((kind, rest)) = option.args.split_first() else {
        return Err(wrong_arguments(
            option,
            "output stdout|stderr|discard|file <path>|net <address>|syslog [<address>]",
        ));
    };
    if matches!(kind.text.as_str(), "stdout" | "stderr" | "discard")
        && let Some(extra) = rest.first()
    {
        return Err(Problem::error(
            "arguments",
            &extra.place,
            format!("`output {}` takes nothing", kind.text),
        )
        .help(format!("take `{}` away", extra.text)));
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
        "net" | "syslog" => net(cx, kind, rest, option).map(LogOutput::Net),
        word => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no output `{word}`"));
            Err(match nearest(word, ["stdout", "stderr", "discard", "file", "net", "syslog"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are `stdout`, `stderr`, `discard`, `file <path>`, `net <address>` and `syslog [<address>]`"),
            })
        }
    }
}

/// `net <address>` of Caddy's, and `syslog [<address>]`.
fn net(
    cx: &mut Context<'_>,
    kind: &Token,
    rest: &[Token],
    option: &Directive,
) -> Result<NetOutput, Box<Problem>> {
    let is_syslog = kind.text == "syslog";
    let address = match rest {
        [] if is_syslog => NetAddress::UnixDatagram(SYSLOG_SOCKET.into()),
        [address] => net_address(address, &fixed(cx.source, address, "the address of a log")?)?,
        _ => return Err(wrong_arguments(option, "output net <address>")),
    };
    let mut settings = NetOutput { address, is_syslog, dial_timeout: DIAL_TIMEOUT, soft_start: false };
    OUTPUT_NET.read(cx, &mut settings, option.block.as_deref());
    Ok(settings)
}

/// An address of a network as Caddy writes it: `tcp/logs:514`, `udp/logs:514`, `unix//run/log.sock`, `unixgram//dev/log`.
fn net_address(token: &Token, text: &str) -> Result<NetAddress, Box<Problem>> {
    let wrong = || {
        Problem::error("address", &token.place, format!("`{text}` is no address for a log"))
            .help("write `tcp/HOST:PORT`, `udp/HOST:PORT`, `unix//PATH` or `unixgram//PATH`")
    };
    let (network, rest) = text.split_once('/').unwrap_or(("tcp", text));
    let host_and_port = || match rest.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(rest.to_owned())
        }
        _ => Err(wrong()),
    };
    let path = || if rest.starts_with('/') { Ok(rest.into()) } else { Err(wrong()) };
    match network {
        "tcp" => host_and_port().map(NetAddress::Tcp),
        "udp" => host_and_port().map(NetAddress::Udp),
        "unix" => path().map(NetAddress::Unix),
        "unixgram" => path().map(NetAddress::UnixDatagram),
        _ => Err(wrong()),
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
