//! `header`: changes to the fields of an answer.

use onehop_config::checked::{HeaderOp, HeaderStep, Template};
use regex_lite::Regex;

use crate::request::answer::{Answer, Fields};
use crate::request::route::{self, Into};
use crate::request::trip::Trip;

/// Fields that follow from the body and the connection; a configuration that sets them would frame
/// the answer twice (RFC 9112 section 6).
const FRAMING: [&str; 4] = ["content-length", "transfer-encoding", "connection", "date"];

/// A step on the way, with the values that are not what they will be when the answer is there.
#[derive(Debug)]
pub struct Gathered<'a> {
    step: &'a HeaderStep,
    /// The value of each change, filled in when the step was taken; empty where that can wait.
    values: Vec<Vec<u8>>,
}

/// Takes a step. One that does not wait for the answer sees the request as it is now, before a later
/// rewrite: its placeholders are filled in here. Most have none, and cost nothing.
pub(crate) fn gather<'a>(step: &'a HeaderStep, trip: &Trip<'_>) -> Gathered<'a> {
    let names_request = |op| value_of(op).is_some_and(|value| value.as_text().is_none());
    let values = match !step.deferred && step.ops.iter().any(names_request) {
        true => step
            .ops
            .iter()
            .map(|op| value_of(op).map(|value| expand(value, trip)).unwrap_or_default())
            .collect(),
        false => Vec::new(),
    };
    Gathered { step, values }
}

/// Makes the changes that were gathered on the way, in order. What the configuration sets wins over
/// what the handler set.
pub(crate) fn apply(trip: &Trip<'_>, answer: &mut Answer) {
    for gathered in &trip.headers {
        apply_step(gathered, trip, &mut answer.fields);
    }
}

/// Makes only the changes that do not wait for a handler's answer, or all where the error is the
/// answer of a handler about a file that it has: a condition that fails, a range beyond its end.
pub(crate) fn apply_to_error(trip: &Trip<'_>, answer: &mut Answer) {
    let is_about_a_file = matches!(answer.status, 412 | 416);
    for gathered in trip.headers.iter().filter(|gathered| is_about_a_file || !gathered.step.deferred) {
        apply_step(gathered, trip, &mut answer.fields);
    }
}

fn apply_step(gathered: &Gathered<'_>, trip: &Trip<'_>, fields: &mut Fields) {
    for (index, op) in gathered.step.ops.iter().enumerate() {
        match gathered.values.get(index) {
            Some(value) => apply_op(op, value, fields),
            None => {
                let value = value_of(op).map(|value| expand(value, trip)).unwrap_or_default();
                apply_op(op, &value, fields);
            }
        }
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

fn expand(value: &Template, trip: &Trip<'_>) -> Vec<u8> {
    route::expand(value, trip, Into::HeaderValue)
}

fn apply_op(op: &HeaderOp, value: &[u8], fields: &mut Fields) {
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
        HeaderOp::Replace { name, find, .. } => replace_values(fields, name, find, value),
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

/// The expression was compiled by the checker already; compiling it here again keeps the settings
/// plain data, and the directive is rare.
fn replace_values(fields: &mut Fields, name: &str, find: &str, replace: &[u8]) {
    let Ok(expression) = Regex::new(find) else { return };
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
