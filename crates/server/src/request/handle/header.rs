//! `header`: changes of a response's header fields.

use onehop_config::checked::{HeaderOp, HeaderStep, Template, compile_expression};
use onehop_message::response::{Fields, Response};
use regex_lite::Regex;

use crate::request::context::{HeaderEdits, RequestContext};
use crate::request::replacement::{TooLong, replace_all};
use crate::request::route::{self, Into};

/// Fields that follow from the body and the connection; a configuration that sets them would frame
/// the response twice (RFC 9112 section 6).
const FRAMING: [&str; 5] = ["content-length", "transfer-encoding", "connection", "keep-alive", "date"];

/// Prepares the edits of a step. One that does not wait for the response sees the request as it is now, before a later
/// rewrite: its placeholders are filled in here. Most have none, and cost nothing.
pub(crate) fn gather<'a>(
    step: &'a HeaderStep,
    expressions: &'a [Option<Regex>],
    context: &RequestContext<'_>,
) -> HeaderEdits<'a> {
    let names_request = |op| value_of(op).is_some_and(|value| value.as_text().is_none());
    let values = match !step.deferred && step.ops.iter().any(names_request) {
        true => step.ops.iter().map(|op| expand(op, context)).collect(),
        false => Vec::new(),
    };
    HeaderEdits { step, expressions, values }
}

/// Makes the changes that apply to the request, in order. What the configuration sets wins over
/// what the handler set.
pub(crate) fn apply(context: &RequestContext<'_>, response: &mut Response) {
    for edits in &context.header_edits {
        apply_step(edits, context, response);
    }
}

/// Makes only the changes that do not wait for a handler's response, or all where the error is the
/// response of a handler about a file that it has: a condition that fails, a range beyond its end.
pub(crate) fn apply_to_error(context: &RequestContext<'_>, response: &mut Response) {
    let is_about_a_file = matches!(response.status, 412 | 416);
    for edits in context.header_edits.iter().filter(|edits| is_about_a_file || !edits.step.deferred) {
        apply_step(edits, context, response);
    }
}

fn apply_step(edits: &HeaderEdits<'_>, context: &RequestContext<'_>, response: &mut Response) {
    for (index, op) in edits.step.ops.iter().enumerate() {
        let expression = edits.expressions.get(index).and_then(Option::as_ref);
        let expanded;
        let value = match edits.values.get(index) {
            Some(value) => value,
            None => {
                expanded = expand(op, context);
                &expanded
            }
        };
        if response.status < 400 || !keeps_for_good(op, value) {
            apply_op(op, expression, value, &mut response.fields);
        }
    }
}

/// Whether a change says `immutable` (RFC 8246 section 2), which is never true of an error: a client that keeps the 404
/// of an asset does not ask for it once a build has brought it.
fn keeps_for_good(op: &HeaderOp, value: &[u8]) -> bool {
    let (HeaderOp::Set { name, .. } | HeaderOp::Add { name, .. } | HeaderOp::Default { name, .. }) = op
    else {
        return false;
    };
    name.eq_ignore_ascii_case("cache-control")
        && value
            .split(|byte| *byte == b',')
            .any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"immutable"))
}

/// The compiled expressions of replacements, one for each change.
pub(crate) fn compile(ops: &[HeaderOp]) -> Vec<Option<Regex>> {
    let expressions = ops.iter().map(|op| match op {
        // The checker has compiled it already.
        HeaderOp::Replace { find, .. } => compile_expression(find).ok(),
        _ => None,
    });
    expressions.collect()
}

/// Makes changes now, in order. Those that would frame a message twice are not made.
pub(crate) fn change(
    ops: &[HeaderOp],
    expressions: &[Option<Regex>],
    context: &RequestContext<'_>,
    fields: &mut Fields,
) {
    for (index, op) in ops.iter().enumerate() {
        let expression = expressions.get(index).and_then(Option::as_ref);
        apply_op(op, expression, &expand(op, context), fields);
    }
}

/// The text that a change brings; removing brings none.
fn value_of(op: &HeaderOp) -> Option<&Template> {
    match op {
        HeaderOp::Set { value, .. } | HeaderOp::Add { value, .. } | HeaderOp::Default { value, .. } => {
            Some(value)
        }
        HeaderOp::Replace { replace, .. } => Some(replace),
        HeaderOp::Delete { .. } => None,
    }
}

fn expand(op: &HeaderOp, context: &RequestContext<'_>) -> Vec<u8> {
    let into = if matches!(op, HeaderOp::Replace { .. }) { Into::Replacement } else { Into::HeaderValue };
    value_of(op).map(|value| route::expand(value, context, into)).unwrap_or_default()
}

fn apply_op(op: &HeaderOp, expression: Option<&Regex>, value: &[u8], fields: &mut Fields) {
    match op {
        HeaderOp::Set { name, .. } | HeaderOp::Add { name, .. } | HeaderOp::Default { name, .. }
            if FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing)) => {}
        HeaderOp::Set { name, .. } => fields.set(name, value),
        HeaderOp::Add { name, .. } => fields.add(name, value),
        HeaderOp::Default { name, .. } => {
            if fields.get(name).is_none() {
                fields.add(name, value);
            }
        }
        HeaderOp::Delete { name } => fields.retain(|field, _| !name_is_like(name.as_bytes(), field)),
        HeaderOp::Replace { name, .. } => {
            if let Some(expression) = expression {
                replace_values(fields, name, expression, value);
            }
        }
    }
}

fn name_is_like(pattern: &[u8], name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    match (pattern.strip_prefix(b"*"), pattern.strip_suffix(b"*")) {
        (Some(rest), Some(_)) => {
            let middle = rest.strip_suffix(b"*").unwrap_or(rest);
            middle.is_empty() || name.windows(middle.len()).any(|window| window == middle)
        }
        (Some(suffix), None) => name.ends_with(suffix),
        (None, Some(prefix)) => name.starts_with(prefix),
        (None, None) => name == pattern,
    }
}

fn replace_values(fields: &mut Fields, name: &str, expression: &Regex, replace: &[u8]) {
    let replace = String::from_utf8_lossy(replace);
    let mut replaced = Fields::default();
    for (field, value) in fields.iter() {
        let field_name = String::from_utf8_lossy(field);
        if !field.eq_ignore_ascii_case(name.as_bytes()) {
            replaced.add(&field_name, value);
            continue;
        }
        // What would grow beyond the bound is left out.
        match replace_all(expression, &String::from_utf8_lossy(value), &replace) {
            Ok(Some(changed)) => replaced.add(&field_name, changed.as_bytes()),
            Ok(None) => replaced.add(&field_name, value),
            Err(TooLong) => {}
        }
    }
    *fields = replaced;
}
