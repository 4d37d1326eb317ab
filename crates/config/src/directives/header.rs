//! `header`: changes to the fields of answers.

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::{template, template_of_upstream};
use crate::check::value::{field_name, field_value};
use crate::checked::{HeaderOp, HeaderStep, Step, Template, compile_expression};
use crate::option_table::{OptionTable, line, not_yet};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "header [<matcher>] [+|-|?|>]<field> [<value>|<find> <replace>]";

/// Every other word in the block is the name of a field.
pub(super) const OPTIONS: OptionTable<(Vec<Change>, bool)> = OptionTable::new(
    "header",
    &[
        line("defer", "", |_, (_, deferred), _| {
            *deferred = true;
            Ok(())
        }),
        not_yet("match"),
    ],
);

/// The directive or the option that a change is written behind.
#[derive(Clone, Copy)]
struct Owner<'a> {
    name: &'a str,
    usage: &'a str,
    /// Whether an upstream has been chosen.
    of_upstream: bool,
}

impl Owner<'_> {
    fn template(self, cx: &Context<'_>, token: &Token) -> Result<Template, Box<Problem>> {
        if self.of_upstream { template_of_upstream(cx.source, token) } else { template(cx.source, token) }
    }
}

const HEADER: Owner<'_> = Owner { name: "header", usage: USAGE, of_upstream: false };

/// One change as written.
pub(super) struct Change {
    op: HeaderOp,
    deferred: bool,
}

pub(super) fn header(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let mut settings = (Vec::new(), false);
    if let Some((field, values)) = args.split_first() {
        settings.0.push(change(cx, HEADER, line, field, &field.text, values)?);
    } else if line.block.is_none() {
        return Err(wrong_arguments(line, USAGE));
    }
    OPTIONS.read_or(cx, &mut settings, line.block.as_deref(), |cx, (changes, _), option| {
        if !args.is_empty() {
            let message = "fields stand both after `header` and in its block";
            return Err(Problem::error("arguments", &option.name.place, message)
                .help("put all of them into the block"));
        }
        no_block(option)?;
        // A colon after the name, as in HTTP, is a common mistake.
        let field = option.name.text.strip_suffix(':').unwrap_or(&option.name.text);
        changes.push(change(cx, HEADER, option, &option.name, field, &option.args)?);
        Ok(())
    });
    let (changes, deferred) = settings;
    let (defaults, mut others): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| matches!(change.op, HeaderOp::Default { .. }));
    // Caddy applies the changes of one block by kind, whatever their order in the file.
    others.sort_by_key(|change| kind(&change.op));
    let mut steps = Vec::new();
    if !others.is_empty() {
        let deferred = deferred || others.iter().any(|change| change.deferred);
        steps.push(HeaderStep { ops: others.into_iter().map(|change| change.op).collect(), deferred });
    }
    // Whether a field is absent shows only when the answer is written.
    steps.extend(defaults.into_iter().map(|change| HeaderStep { ops: vec![change.op], deferred: true }));
    Ok(steps.into_iter().map(|step| placed("header", chosen.clone(), line, Step::Header(step))).collect())
}

/// `header_up` and `header_down` of `reverse_proxy`: `[+|-]<field> [<value>|<find> <replace>]`
pub(super) fn of_proxy(cx: &Context<'_>, option: &Directive) -> Result<HeaderOp, Box<Problem>> {
    let name = option.name.text.as_str();
    let usage = format!("{name} [+|-]<field> [<value>|<find> <replace>]");
    let owner = Owner { name, usage: &usage, of_upstream: true };
    without_default(cx, owner, option, &option.args)
}

/// Reads the arguments of `request_header`: `[+|-]<field> [<value>|<find> <replace>]`
pub(super) fn of_request(
    cx: &Context<'_>,
    line: &Directive,
    args: &[Token],
) -> Result<HeaderOp, Box<Problem>> {
    let usage = "request_header [<matcher>] [+|-]<field> [<value>|<find> <replace>]";
    without_default(cx, Owner { name: "request_header", usage, of_upstream: false }, line, args)
}

fn without_default(
    cx: &Context<'_>,
    owner: Owner<'_>,
    line: &Directive,
    args: &[Token],
) -> Result<HeaderOp, Box<Problem>> {
    no_block(line)?;
    let Some((field, values)) = args.split_first() else { return Err(wrong_arguments(line, owner.usage)) };
    if field.text.starts_with('?') {
        let message = format!("`{}` has no defaults: `{}`", owner.name, field.text);
        let help = match owner.name {
            "header_down" => format!("`header {}` in the site sets a field that no answer has", field.text),
            "header_up" => "a matcher and a second `reverse_proxy` treat such requests apart".to_owned(),
            _ => "a matcher as `@without header !X-Field` chooses requests without a field".to_owned(),
        };
        return Err(Problem::error("arguments", &field.place, message).help(help));
    }
    let bare = field.text.strip_suffix(':').unwrap_or(&field.text);
    change(cx, owner, line, field, bare, values).map(|change| change.op)
}

/// The name of the field that a change is about.
pub(super) fn name_of(op: &HeaderOp) -> &str {
    match op {
        HeaderOp::Set { name, .. }
        | HeaderOp::Add { name, .. }
        | HeaderOp::Default { name, .. }
        | HeaderOp::Delete { name }
        | HeaderOp::Replace { name, .. } => name,
    }
}

/// The order in which Caddy applies the changes of one block, whatever their order in the file.
pub(super) fn kind(op: &HeaderOp) -> u8 {
    match op {
        HeaderOp::Delete { name } if name == "*" => 0,
        HeaderOp::Add { .. } => 1,
        HeaderOp::Set { .. } | HeaderOp::Default { .. } => 2,
        HeaderOp::Delete { .. } => 3,
        HeaderOp::Replace { .. } => 4,
    }
}

fn change(
    cx: &Context<'_>,
    owner: Owner<'_>,
    line: &Directive,
    token: &Token,
    field: &str,
    values: &[Token],
) -> Result<Change, Box<Problem>> {
    let bare = field.trim_start_matches(['+', '-', '?', '>']);
    let sign = field.chars().next().filter(|_| bare.len() < field.len());
    let name = field_name(token, bare)?;
    let value = |position: usize| match values.get(position) {
        Some(token) => field_value(token, owner.template(cx, token)?),
        None => Ok(Template::default()),
    };
    if values.len() > 2 {
        let message = format!("`{}` has an argument too many", owner.name);
        return Err(Problem::error("arguments", &values[2].place, message)
            .help(format!("quote a value that has spaces; it is written `{}`", owner.usage)));
    }
    if name.contains('*') && sign != Some('-') {
        let message = format!("`{name}` stands for many fields: they can only be removed");
        return Err(Problem::error("field-name", &token.place, message).help(format!("write `-{name}`")));
    }
    let op = match (sign, values.len()) {
        (Some('-'), 0) => return delete(token, name),
        (Some('-'), _) => {
            let message = format!("`-{name}` removes a field and takes no value");
            return Err(Problem::error("arguments", &token.place, message)
                .help(format!("to take something out of the value, write `{name} <find> <replace>`")));
        }
        (Some('+' | '?'), 2) => {
            let message = "a replacement neither adds nor sets a default";
            return Err(Problem::error("arguments", &token.place, message)
                .help(format!("write `{name} <find> <replace>`")));
        }
        (_, 2) => HeaderOp::Replace {
            name: name.to_ascii_lowercase(),
            find: regular_expression(cx, owner, line, values)?,
            replace: value(1)?,
        },
        (Some('+'), _) => HeaderOp::Add { name: name.to_owned(), value: value(0)? },
        (Some('?'), _) => HeaderOp::Default { name: name.to_owned(), value: value(0)? },
        _ => HeaderOp::Set { name: name.to_owned(), value: value(0)? },
    };
    Ok(Change { op, deferred: sign == Some('>') })
}

/// Removal acts when the answer is written: what is to be removed is not there before.
fn delete(token: &Token, name: &str) -> Result<Change, Box<Problem>> {
    let inner = name.strip_prefix('*').unwrap_or(name);
    let inner = inner.strip_suffix('*').unwrap_or(inner);
    if inner.contains('*') {
        return Err(Problem::error("field-name", &token.place, format!("`{name}` has a star in its middle"))
            .help("a star can begin or end a name: `-X-*`"));
    }
    Ok(Change { op: HeaderOp::Delete { name: name.to_ascii_lowercase() }, deferred: true })
}

fn regular_expression(
    cx: &Context<'_>,
    owner: Owner<'_>,
    line: &Directive,
    values: &[Token],
) -> Result<String, Box<Problem>> {
    let Some(find) = values.first() else { return Err(wrong_arguments(line, owner.usage)) };
    // Only to find placeholders: what a template makes of escapes is not what an expression means.
    match owner.template(cx, find) {
        Err(problem) if problem.code == "not-yet" => return Err(problem),
        Ok(template) if template.as_text().is_none() => {
            let message =
                "a placeholder in what is looked for is a feature of Caddy that onehop does not have yet";
            return Err(Problem::error("not-yet", &find.place, message));
        }
        _ => {}
    }
    match compile_expression(&find.text) {
        Ok(_) => Ok(find.text.clone()),
        Err(error) => {
            Err(Problem::error("regular-expression", &find.place, format!("`{}`: {error}", find.text))
                .help("a backslash before a character takes it as it is; quote with backticks"))
        }
    }
}
