//! `format`: what the lines of a log look like.

use std::sync::Arc;

use crate::arguments::{no_block, one_argument, set_twice, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::number;
use crate::checked::{
    FieldAction, FieldRule, LogField, LogFilter, LogFormat, LogTemplate, LogTime, ValueAction, ValueRule,
};
use crate::limits::{LOG_RULES_MAX, LOG_TEMPLATE_PARTS_MAX};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, line, not_yet, repeated, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// What `format` takes.
const FORMAT: &str = "format json|common|combined|filter { … }|transform <template>";
const HELP: &str = "there are `json`, `common`, `combined`, `filter` and `transform`";

/// Caddy's time of the Common Log Format, as Go writes it.
const COMMON_LOG_TIME: &str = "02/Jan/2006:15:04:05 -0700";
/// The template that replaces `{common_log}`.
const COMMON_LOG: &str = "{request>client_ip} - {user_id} [{ts}] \"{request>method} {request>uri} {request>proto}\" {status} {size}";

pub(crate) const FORMAT_JSON: OptionTable<LogTime> = OptionTable::new(
    "format json",
    &[
        value("time_format", "iso8601", |_, time, value| {
            *time = time_format(value.token)?;
            Ok(())
        }),
        not_yet("message_key"),
        not_yet("level_key"),
        not_yet("time_key"),
        not_yet("name_key"),
        not_yet("caller_key"),
        not_yet("stacktrace_key"),
        not_yet("line_ending"),
        not_yet("time_local"),
        not_yet("duration_format"),
        not_yet("level_format"),
    ],
);

pub(crate) const FORMAT_FILTER: OptionTable<LogFilter> = OptionTable::new(
    "format filter",
    &[
        repeated(line("wrap", "json", |cx, filter, option| {
            filter.time = wrapped(cx, option)?;
            Ok(())
        })),
        repeated(line("fields", "{ <field> <filter> … }", |cx, filter, option| {
            if !option.args.is_empty() {
                return Err(wrong_arguments(option, "fields { request>uri query { delete token } }"));
            }
            for rule in option.block.iter().flatten() {
                let result = field_rule(cx, filter, rule);
                cx.keep(result);
            }
            Ok(())
        })),
    ],
);

pub(crate) const FORMAT_TRANSFORM: OptionTable<LogTemplate> = OptionTable::new(
    "format transform",
    &[
        value("placeholder", "-", |cx, template, value| {
            template.empty = fixed(cx.source, value.token, "a placeholder")?;
            Ok(())
        }),
        value("time_format", "iso8601", |_, template, value| {
            template.time = time_format(value.token)?;
            Ok(())
        }),
        not_yet("unescape_strings"),
        not_yet("time_local"),
        not_yet("duration_format"),
        not_yet("level_format"),
    ],
);

/// The bits that stay, of IPv4 and IPv6.
pub(crate) const IP_MASK: OptionTable<(u8, u8)> = OptionTable::new(
    "ip_mask",
    &[
        value("ipv4", "24", |_, (ipv4, _), value| bits(value.token, 32).map(|bits| *ipv4 = bits)),
        value("ipv6", "48", |_, (_, ipv6), value| bits(value.token, 128).map(|bits| *ipv6 = bits)),
    ],
);

pub(super) fn format(cx: &mut Context<'_>, option: &Directive) -> Result<LogFormat, Box<Problem>> {
    let Some((kind, rest)) = option.args.split_first() else { return Err(wrong_arguments(option, FORMAT)) };
    if let Some(extra) = rest.get(usize::from(kind.text == "transform")) {
        let message = format!("`format {}` takes nothing more on its line", kind.text);
        let help = format!("take `{}` away", extra.text);
        return Err(Problem::error("arguments", &extra.place, message).help(help));
    }
    match kind.text.as_str() {
        "json" => Ok(LogFormat::Json(json_time(cx, option))),
        "common" => no_block(option).map(|()| LogFormat::Common),
        "combined" => no_block(option).map(|()| LogFormat::Combined),
        "filter" => filter(cx, option).map(LogFormat::Filter),
        "transform" | "formatted" => transform(cx, option, rest.first()).map(LogFormat::Transform),
        word @ ("console" | "append" | "single_field" | "journald") => {
            let message = format!("`format {word}` is a feature of Caddy that onehop does not have yet");
            let help = if word == "append" { "`log_append` adds a field" } else { HELP };
            Err(Problem::error("not-yet", &kind.place, message).help(help))
        }
        word => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no format `{word}`"));
            Err(match nearest(word, ["json", "common", "combined", "filter", "transform"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(HELP),
            })
        }
    }
}

fn json_time(cx: &mut Context<'_>, option: &Directive) -> LogTime {
    let mut time = LogTime::default();
    FORMAT_JSON.read(cx, &mut time, option.block.as_deref());
    time
}

/// Caddy's names. Layouts of Go are more than anybody needs, but for the one of the Common Log Format.
fn time_format(token: &Token) -> Result<LogTime, Box<Problem>> {
    Ok(match token.text.as_str() {
        "unix_seconds_float" => LogTime::UnixSeconds,
        "unix_milli_float" => LogTime::UnixMilliseconds,
        "unix_nano" => LogTime::UnixNanoseconds,
        "iso8601" => LogTime::Iso8601,
        "rfc3339" => LogTime::Rfc3339,
        "rfc3339_nano" => LogTime::Rfc3339Fraction,
        "wall" => LogTime::Wall,
        "wall_milli" => LogTime::WallMilliseconds,
        "common_log" | COMMON_LOG_TIME => LogTime::CommonLog,
        other => {
            let message = format!("`time_format {other}` is a format that onehop does not have yet");
            return Err(Problem::error("not-yet", &token.place, message)
                .help("there are `unix_seconds_float`, `unix_milli_float`, `unix_nano`, `iso8601`, `rfc3339`, `rfc3339_nano`, `wall`, `wall_milli` and `common_log`"));
        }
    })
}

/// `format transform <template>`; without one, `{common_log}`.
fn transform(
    cx: &mut Context<'_>,
    option: &Directive,
    template: Option<&Token>,
) -> Result<Arc<LogTemplate>, Box<Problem>> {
    let mut settings = LogTemplate { parts: Vec::new(), empty: "-".to_owned(), time: LogTime::UnixSeconds };
    let text = template.map_or("{common_log}", |token| token.text.as_str());
    let text = if text == "{common_log}" { COMMON_LOG } else { text };
    if text == COMMON_LOG {
        settings.time = LogTime::CommonLog;
    }
    FORMAT_TRANSFORM.read(cx, &mut settings, option.block.as_deref());
    let place = template.map_or(&option.name.place, |token| &token.place);
    if settings.empty.contains(char::is_control) || text.contains(char::is_control) {
        let message = "a line of a log has no control characters";
        return Err(Problem::error("template", place, message).help("write the template on one line"));
    }
    settings.parts = LogTemplate::read(text).map_err(|unknown| {
        let key = format!("{{{}}}", unknown.0);
        Problem::error("placeholder", &place.narrowed_to(&key), format!("lines have no field `{key}`"))
            .help(known_fields(&unknown.0))
    })?;
    if settings.parts.len() > LOG_TEMPLATE_PARTS_MAX {
        let message = format!("a template has at most {LOG_TEMPLATE_PARTS_MAX} parts");
        return Err(Problem::error("too-large", place, message));
    }
    Ok(Arc::new(settings))
}

/// Help for a name that is none.
fn known_fields(written: &str) -> String {
    match nearest(written, LogField::NAMED.iter().map(|(name, _)| *name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "there are those of a line of JSON, with `>` between levels: `request>uri`, `request>headers>User-Agent>[0]`, `status`"
                .to_owned()
        }
    }
}

/// `format filter`: rules stand in `fields`, or in the block itself.
fn filter(cx: &mut Context<'_>, option: &Directive) -> Result<Arc<LogFilter>, Box<Problem>> {
    let mut settings = LogFilter { time: LogTime::default(), rules: Vec::new() };
    let seen = FORMAT_FILTER.read_or(cx, &mut settings, option.block.as_deref(), field_rule);
    if settings.rules.is_empty() && !seen.is_broken {
        return Err(Problem::error("arguments", &option.name.place, "`format filter` has no rule")
            .help("for example `request>headers>X-Token delete`, or write `format json`"));
    }
    if settings.rules.len() > LOG_RULES_MAX {
        let message = format!("`format filter` has at most {LOG_RULES_MAX} rules");
        return Err(Problem::error("too-large", &option.name.place, message));
    }
    Ok(Arc::new(settings))
}

/// `wrap json`: only JSON has fields.
fn wrapped(cx: &mut Context<'_>, option: &Directive) -> Result<LogTime, Box<Problem>> {
    match option.args.as_slice() {
        [kind] if kind.text == "json" => Ok(json_time(cx, option)),
        [kind] => {
            let message = format!("`wrap {}` is a feature of Caddy that onehop does not have yet", kind.text);
            Err(Problem::error("not-yet", &kind.place, message).help("write `wrap json`"))
        }
        _ => Err(wrong_arguments(option, "wrap json")),
    }
}

/// `request>headers>Cookie delete`
fn field_rule(cx: &mut Context<'_>, filter: &mut LogFilter, rule: &Directive) -> Result<(), Box<Problem>> {
    let (path, place) = (rule.name.text.as_str(), &rule.name.place);
    let Some(field) = LogField::of(path) else {
        let message = format!("lines have no field `{path}`");
        return Err(Problem::error("unknown-option", place, message).help(known_fields(path)));
    };
    if matches!(field, LogField::Level | LogField::Time | LogField::Logger | LogField::Message) {
        let message = format!("`{path}` stays as it is: readers of logs rely on it");
        return Err(Problem::error("contradiction", place, message)
            .help("choose another field, or take the line away"));
    }
    if filter.rules.iter().any(|known| known.field == field) {
        return Err(set_twice(&rule.name, &rule.name));
    }
    let Some((kind, args)) = rule.args.split_first() else {
        return Err(wrong_arguments(rule, &format!("{path} delete")));
    };
    let action = action(cx, rule, kind, args)?;
    let is_object = matches!(field, LogField::Request | LogField::RequestHeaders | LogField::ResponseHeaders);
    if is_object && !matches!(action, FieldAction::Delete | FieldAction::Rename(_) | FieldAction::Replace(_))
    {
        let message = format!("`{}` needs a single value, and `{path}` is an object", kind.text);
        return Err(Problem::error("contradiction", &kind.place, message)
            .help(format!("name one of its fields: `{path}>…`")));
    }
    filter.rules.push(FieldRule { field, action });
    Ok(())
}

fn action(
    cx: &mut Context<'_>,
    rule: &Directive,
    kind: &Token,
    args: &[Token],
) -> Result<FieldAction, Box<Problem>> {
    if !matches!(kind.text.as_str(), "ip_mask" | "query" | "cookie" | "multi_regexp") {
        no_block(rule)?;
    }
    match (kind.text.as_str(), args) {
        ("delete", []) => Ok(FieldAction::Delete),
        ("hash", []) => Ok(FieldAction::Hash),
        ("rename", [name]) => {
            let name = fixed(cx.source, name, "the name of a field")?;
            Ok(FieldAction::Rename(name))
        }
        ("replace", [value]) => Ok(FieldAction::Replace(fixed(cx.source, value, "a value")?)),
        ("replace", []) => Ok(FieldAction::Replace(String::new())),
        ("regexp", [find, replace]) => match regex_lite::Regex::new(&find.text) {
            Ok(_) => Ok(FieldAction::Regexp { find: find.text.clone(), replace: replace.text.clone() }),
            Err(error) => {
                let message = format!("`{}` is no regular expression: {error}", find.text);
                Err(Problem::error("regexp", &find.place, message)
                    .help("look-around and back-references do not exist; `\\` before a character takes its meaning away"))
            }
        },
        ("ip_mask", args @ ([] | [_] | [_, _])) => {
            // What is not named is hidden as a whole.
            let mut mask = (0, 0);
            if let Some(ipv4) = args.first() {
                mask.0 = bits(ipv4, 32)?;
            }
            if let Some(ipv6) = args.get(1) {
                mask.1 = bits(ipv6, 128)?;
            }
            IP_MASK.read(cx, &mut mask, rule.block.as_deref());
            Ok(FieldAction::IpMask { ipv4: mask.0, ipv6: mask.1 })
        }
        ("query", []) => value_rules(cx, rule).map(FieldAction::Query),
        ("cookie", []) => value_rules(cx, rule).map(FieldAction::Cookie),
        ("multi_regexp", _) => {
            let message = "`multi_regexp` is a filter of Caddy that onehop does not have yet";
            Err(Problem::error("not-yet", &kind.place, message).help("`regexp` takes one expression"))
        }
        (
            word @ ("delete" | "hash" | "rename" | "replace" | "regexp" | "ip_mask" | "query" | "cookie"),
            _,
        ) => {
            let usage = match word {
                "rename" => "rename <name>",
                "replace" => "replace <value>",
                "regexp" => "regexp <expression> <replacement>",
                "ip_mask" => "ip_mask <bits of IPv4> <bits of IPv6>",
                "query" => "query { delete <parameter> }",
                "cookie" => "cookie { delete <name> }",
                other => other,
            };
            Err(wrong_arguments(rule, &format!("{} {usage}", rule.name.text)))
        }
        (word, _) => {
            const FILTERS: [&str; 8] =
                ["delete", "rename", "replace", "ip_mask", "query", "cookie", "regexp", "hash"];
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no filter `{word}`"));
            Err(match nearest(word, FILTERS) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("there are {}", crate::arguments::listed(&FILTERS))),
            })
        }
    }
}

fn bits(token: &Token, most: u8) -> Result<u8, Box<Problem>> {
    number(token, "the bits that are written", 0, most.into()).map(|bits| u8::try_from(bits).unwrap_or(most))
}

/// The block of `query` or `cookie`.
fn value_rules(cx: &mut Context<'_>, rule: &Directive) -> Result<Vec<ValueRule>, Box<Problem>> {
    let mut rules = Vec::new();
    for line in rule.block.iter().flatten() {
        no_block(line)?;
        let (name, action) = match (line.name.text.as_str(), line.args.as_slice()) {
            ("replace", [name, value]) => (name, ValueAction::Replace(fixed(cx.source, value, "a value")?)),
            ("replace", _) => return Err(wrong_arguments(line, "replace <name> <value>")),
            ("delete", _) => (one_argument(line, "delete <name>")?, ValueAction::Delete),
            ("hash", _) => (one_argument(line, "hash <name>")?, ValueAction::Hash),
            (word, _) => {
                let message = format!("there is no `{word}` here");
                return Err(Problem::error("unknown-option", &line.name.place, message)
                    .help("there are `delete`, `replace` and `hash`"));
            }
        };
        rules.push(ValueRule { name: fixed(cx.source, name, "a name")?, action });
    }
    if rules.is_empty() || rules.len() > LOG_RULES_MAX {
        let usage = format!("{} {} {{ delete <name> }}", rule.name.text, rule.args[0].text);
        return Err(wrong_arguments(rule, &usage));
    }
    Ok(rules)
}
