//! Conditions on a request, evaluated on the URI as it is now.

use onehop_config::checked::{Condition, FileMatch, HeaderTest, Matcher, ProtocolTest, QueryTest};
use onehop_http1::Version;
use onehop_message::error::HttpError;
use onehop_message::request::Request;
use onehop_message::trusted_proxies::Trust;
use onehop_message::uri::{self, host_without_port};

use super::hosts::host_matches;
use crate::request::context::RequestContext;
use crate::request::handle::try_files::{self, Lookups, Undecided};

/// Whether a request fits. A `try_files` condition notes the file that it found; what it has to look up on disk is in
/// `lookups`, or is named by the error.
pub(crate) fn matches(
    matcher: &Matcher,
    context: &mut RequestContext<'_>,
    lookups: &mut Lookups,
) -> Result<bool, Undecided> {
    for condition in &matcher.all {
        if !holds(condition, context, lookups)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(
    condition: &Condition,
    context: &mut RequestContext<'_>,
    lookups: &mut Lookups,
) -> Result<bool, Undecided> {
    Ok(match condition {
        Condition::Path(patterns) => context.request.path.fits_any(patterns),
        Condition::Method(methods) => {
            methods.iter().any(|method| method.as_bytes() == context.request.head.method_bytes())
        }
        Condition::Host(hosts) => {
            let host = context.request.head.host().map(host_without_port).unwrap_or_default();
            hosts.iter().any(|pattern| host_matches(pattern, host))
        }
        Condition::Header { name, value } => header_holds(context, name, value),
        Condition::HeaderRegexp { name, expression } => {
            context.captures.fits_field(expression, context.request.head.find_all(name))
        }
        Condition::PathRegexp(expression) => context.captures.fits_path(expression, &context.request.path),
        Condition::RemoteIp(networks) => {
            let peer = context.request.origin.peer.map(|peer| peer.ip().to_canonical());
            peer.is_some_and(|peer| networks.iter().any(|network| network.contains(peer)))
        }
        Condition::ClientIp(networks) => {
            let Request { head, origin, .. } = &context.request;
            let client = Trust::of(context.trusted_proxies, origin).client(head, origin);
            client.is_some_and(|client| networks.iter().any(|network| network.contains(client)))
        }
        Condition::Protocol(tests) => tests.iter().any(|test| protocol_holds(context, *test)),
        Condition::Query(tests) => tests.iter().all(|test| query_holds(context, test)),
        Condition::File(wanted) => file_holds(wanted, context, lookups)?,
        Condition::Not(matchers) => {
            for matcher in matchers {
                if matches(matcher, context, lookups)? {
                    return Ok(false);
                }
            }
            true
        }
    })
}

fn protocol_holds(context: &RequestContext<'_>, test: ProtocolTest) -> bool {
    let Request { head, origin, .. } = &context.request;
    match test {
        ProtocolTest::Http => !origin.tls,
        ProtocolTest::Https => origin.tls,
        ProtocolTest::Grpc => {
            head.find("content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
        }
        ProtocolTest::Version { number, or_later } => {
            let own = match head.version() {
                Version::Http10 => 10,
                Version::Http11 => 11,
                Version::Http2 => 20,
            };
            own == number || (or_later && own > number)
        }
    }
}

/// Names and values are compared without their escapes, as `{query.name}` shows them.
fn query_holds(context: &RequestContext<'_>, test: &QueryTest) -> bool {
    let query = context.request.query.as_deref().unwrap_or_default();
    if test.name.is_empty() && test.values.is_empty() {
        return query.is_empty();
    }
    let mut found = uri::query_values(query, test.name.as_bytes());
    found.any(|value| test.values.is_empty() || test.values.iter().any(|wanted| *value == *wanted.as_bytes()))
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || text.windows(needle.len()).any(|window| window == needle)
}

fn header_holds(context: &RequestContext<'_>, name: &str, test: &HeaderTest) -> bool {
    let mut values = context.request.head.find_all(name);
    match test {
        // net/http keeps Host out of the header map; Caddy puts it back for this matcher.
        HeaderTest::Present => values.next().is_some(),
        HeaderTest::Absent => values.next().is_none(),
        HeaderTest::Like(patterns) => {
            values.any(|value| patterns.iter().any(|pattern| value_is_like(pattern.as_bytes(), value)))
        }
    }
}

fn value_is_like(pattern: &[u8], value: &[u8]) -> bool {
    match (pattern.strip_prefix(b"*"), pattern.strip_suffix(b"*")) {
        (Some([]), _) => true,
        (Some(rest), Some(_)) => contains(value, rest.strip_suffix(b"*").unwrap_or(rest)),
        (Some(suffix), None) => value.ends_with(suffix),
        (None, Some(prefix)) => value.starts_with(prefix),
        (None, None) => value == pattern,
    }
}

fn file_holds(
    wanted: &FileMatch,
    context: &mut RequestContext<'_>,
    lookups: &mut Lookups,
) -> Result<bool, Undecided> {
    match try_files::find(wanted, context, lookups).map_err(Undecided::NeedsDisk)? {
        Some(found) => {
            context.file_match = Some(found);
            Ok(true)
        }
        None => match wanted.otherwise_status {
            Some(status) => Err(Undecided::Error(HttpError::Configured(status))),
            None => Ok(false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_value_may_begin_or_end_with_anything() {
        let cases = [
            ("*", "x", true),
            ("ab*", "abc", true),
            ("*bc", "abc", true),
            ("*b*", "abc", true),
            ("ab", "abc", false),
        ];
        for (pattern, value, expected) in cases {
            assert_eq!(value_is_like(pattern.as_bytes(), value.as_bytes()), expected, "{pattern} {value}");
        }
    }
}
