//! `uri`: changes of the path and the query, for everything that comes after it.

use std::borrow::Cow;

use onehop_config::checked::{QueryChange, UriChange};
use onehop_http1::Refusal;
use onehop_message::error::HttpError;
use onehop_message::path::RequestPath;
use onehop_message::query::Parameters;
use onehop_message::uri;

use crate::limits::REPLACED_BYTES_MAX;
use crate::request::context::RequestContext;
use crate::request::replacement::{TooLong, replace_all};
use crate::request::route::{self, Into};

/// RFC 9110 section 15.5.15.
const TOO_LONG: HttpError = HttpError::Malformed(Refusal::TargetTooLong);

impl From<TooLong> for HttpError {
    fn from(_: TooLong) -> Self {
        TOO_LONG
    }
}

/// Makes a change.
pub(crate) fn change(change: &UriChange, context: &mut RequestContext<'_>) -> Result<(), HttpError> {
    let request = &mut context.request;
    match change {
        UriChange::StripSuffix(suffix) => {
            if let Some(path) = request.path.without_suffix(suffix) {
                request.path = path.map_err(|_| HttpError::BadPath)?;
            }
        }
        // As in Caddy, in the path and in the query.
        UriChange::Replace { find, by, most } => {
            let (find, by) = (find.as_bytes(), by.as_bytes());
            request.path = request.path.replaced(find, by, *most).map_err(|_| HttpError::BadPath)?;
            if let Some(query) = &request.query {
                let query = uri::replace(query, find, by, *most);
                request.query = (!query.is_empty()).then_some(Cow::Owned(query));
            }
        }
        UriChange::PathRegexp { find, by } => {
            let by = route::expand_path_replacement(by, context);
            let path = String::from_utf8_lossy(context.request.path.sent());
            if let Some(path) = replace_all(&find.regex, &path, &String::from_utf8_lossy(&by))? {
                let path = Cow::Owned(uri::with_leading_slash(path.as_bytes()));
                context.request.path = RequestPath::read(path).map_err(|_| HttpError::BadPath)?;
            }
        }
        UriChange::Query(changes) => {
            let query = change_query(changes, context)?;
            context.request.query = (!query.is_empty()).then_some(Cow::Owned(query));
        }
    }
    let query = context.request.query.as_deref().map_or(0, <[u8]>::len);
    let is_short = context.request.path.sent().len() + query <= REPLACED_BYTES_MAX;
    if is_short { Ok(()) } else { Err(TOO_LONG) }
}

/// The query with its parameters changed, in order.
fn change_query(changes: &[QueryChange], context: &RequestContext<'_>) -> Result<Vec<u8>, HttpError> {
    let mut parameters = Parameters::read(context.request.query.as_deref().unwrap_or_default());
    for change in changes {
        match change {
            QueryChange::Rename { from, to } => parameters.rename(from.as_bytes(), to.as_bytes()),
            QueryChange::Set { name, value } => {
                parameters.set(name.as_bytes(), &route::expand(value, context, Into::Text));
            }
            QueryChange::Add { name, value } => {
                parameters.add(name.as_bytes(), &route::expand(value, context, Into::Text));
            }
            QueryChange::Replace { name, find, by } => {
                let by = route::expand(by, context, Into::Replacement);
                let by = String::from_utf8_lossy(&by);
                parameters.change_values(name.as_deref().map(str::as_bytes), |value| {
                    let replaced = replace_all(&find.regex, &String::from_utf8_lossy(value), &by)?;
                    Ok::<_, TooLong>(replaced.map(String::into_bytes))
                })?;
            }
            QueryChange::Delete { name } => parameters.remove(name.as_bytes()),
        }
    }
    Ok(parameters.write())
}
