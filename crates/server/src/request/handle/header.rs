//! `header`: changes to the fields of an answer.

use onehop_config::checked::{HeaderOp, HeaderStep};
use regex_lite::Regex;

use crate::request::answer::{Answer, Fields};
use crate::request::route::{self, Into};
use crate::request::trip::Trip;

/// Fields that follow from the body and the connection; a configuration that sets them would frame
/// the answer twice (RFC 9112 section 6).
const FRAMING: [&str; 5] = ["content-length", "transfer-encoding", "connection", "keep-alive", "date"];

/// A step with the compiled expressions of its replacements, one for each change.
pub(crate) type Changes<'a> = (&'a HeaderStep, &'a [Option<Regex>]);

/// Makes the changes that were gathered on the way, in order. What the configuration sets wins over
/// what the handler set.
pub(crate) fn apply(trip: &Trip<'_>, answer: &mut Answer) {
    for changes in &trip.headers {
        apply_step(changes, trip, &mut answer.fields);
    }
}

/// Makes only the changes that do not wait for a handler's answer.
pub(crate) fn apply_to_error(trip: &Trip<'_>, answer: &mut Answer) {
    for changes in trip.headers.iter().filter(|(step, _)| !step.deferred) {
        apply_step(changes, trip, &mut answer.fields);
    }
}

fn apply_step((step, expressions): &Changes<'_>, trip: &Trip<'_>, fields: &mut Fields) {
    for (op, expression) in step.ops.iter().zip(*expressions) {
        apply_op(op, expression.as_ref(), trip, fields);
    }
}

fn apply_op(op: &HeaderOp, expression: Option<&Regex>, trip: &Trip<'_>, fields: &mut Fields) {
    let expand = |value| route::expand(value, trip, Into::HeaderValue);
    match op {
        HeaderOp::Set { name, .. } | HeaderOp::Add { name, .. } | HeaderOp::Default { name, .. }
            if FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing)) => {}
        HeaderOp::Set { name, value } => fields.set(name, &expand(value)),
        HeaderOp::Add { name, value } => fields.add(name, &expand(value)),
        HeaderOp::Default { name, value } => {
            if fields.get(name).is_none() {
                fields.add(name, &expand(value));
            }
        }
        HeaderOp::Delete { name } => fields.retain(|field, _| !name_is_like(name.as_bytes(), field)),
        HeaderOp::Replace { name, replace, .. } => {
            let replace = route::expand(replace, trip, Into::Replacement);
            if let Some(expression) = expression {
                replace_values(fields, name, expression, &replace);
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
        let text = String::from_utf8_lossy(value);
        replaced.add(&field_name, expression.replace_all(&text, &*replace).as_bytes());
    }
    *fields = replaced;
}
