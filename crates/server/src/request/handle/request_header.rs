//! `request_header`: changes of a request's header fields, for everything that comes after it.
//!
//! Fields that frame the body, belong to the connection or say who the client is are never changed: they are kept apart
//! while the others are. The changed head is read by the code that reads those of clients.

use onehop_config::checked::HeaderOp;
use onehop_config::checked::request_fields::is_kept_by_request_header;
use onehop_http1::{Known, with_fields};
use onehop_message::error::HttpError;
use onehop_message::response::Fields;
use regex_lite::Regex;

use super::header;
use crate::limits::CHANGED_HEAD_LIMITS;
use crate::request::context::RequestContext;

/// Makes the changes, in order.
///
/// What Connection names is not passed on (RFC 9110 section 7.6.1). A client must not name away what the configuration
/// writes: such a name is taken out of Connection, and the client's own field, which is for this hop alone, goes.
pub(crate) fn change(
    ops: &[HeaderOp],
    expressions: &[Option<Regex>],
    context: &mut RequestContext<'_>,
) -> Result<(), HttpError> {
    let head = &context.request.head;
    let is_written = |name: &[u8]| {
        ops.iter().filter_map(written_name).any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    };
    let named: Vec<&[u8]> =
        head.get_all(Known::Connection).flat_map(options).filter(|option| is_written(option)).collect();
    let is_named = |name: &[u8]| named.iter().any(|own| own.eq_ignore_ascii_case(name));
    let (mut kept, mut changed) = (Fields::default(), Fields::default());
    for (name, value) in head.fields() {
        if name.eq_ignore_ascii_case(b"connection") && !named.is_empty() {
            let others: Vec<&[u8]> = options(value).filter(|option| !is_named(option)).collect();
            kept.add_bytes(name, &others.join(&b", "[..]));
        } else if is_kept_by_request_header(name) {
            kept.add_bytes(name, value);
        } else if !is_named(name) {
            changed.add_bytes(name, value);
        }
    }
    header::change(ops, expressions, context, &mut changed);
    kept.add_lines(changed.lines());
    let head = with_fields(head.received(), kept.lines(), &CHANGED_HEAD_LIMITS);
    context.request.head.change(head.map_err(HttpError::Malformed)?);
    Ok(())
}

/// The field that a change writes; removing writes none.
fn written_name(op: &HeaderOp) -> Option<&str> {
    match op {
        HeaderOp::Set { name, .. }
        | HeaderOp::Add { name, .. }
        | HeaderOp::Default { name, .. }
        | HeaderOp::Replace { name, .. } => Some(name),
        HeaderOp::Delete { .. } => None,
    }
}

/// What a line of Connection names.
fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
