//! What went wrong, for a person: the server's own words, and the next step.

use std::time::Duration;

use instant_acme::{Error, Problem};
use onehop_certificates::issuer::IssueError;

use crate::challenge::ChallengeKind;

/// The prefix of the types that RFC 8555 section 6.7 registers.
const PREFIX: &str = "urn:ietf:params:acme:error:";

/// An error that no response of the server caused.
pub(crate) fn failed(message: String) -> IssueError {
    IssueError { message, retry_after: None }
}

/// An error with its next step. `kind` is the challenge that failed, if one did.
pub(crate) fn explain(
    error: &Error,
    directory: &str,
    retry_after: Option<Duration>,
    kind: Option<ChallengeKind>,
) -> IssueError {
    let problem = match error {
        Error::Api(problem) => problem,
        Error::Timeout(Some(until)) => {
            let wait = until.saturating_duration_since(std::time::Instant::now());
            let message = format!("{directory} wants to be asked again in {} s", wait.as_secs());
            return IssueError { message, retry_after: Some(wait) };
        }
        Error::Json(error) => {
            return failed(format!(
                "{directory} sent something else than ACME ({error}): is it the URL of an ACME directory?"
            ));
        }
        other => {
            let said = other.to_string();
            let message = match said.contains("UnknownIssuer") {
                true => format!(
                    "{said}: nothing here trusts who issued the certificate of the ACME server {directory}; name the \
                     root in `acme_ca_root FILE` in the global block"
                ),
                false => format!("{said}; the ACME server {directory} must be reachable from here"),
            };
            return IssueError { message, retry_after };
        }
    };
    let by = kind.map(|kind| format!(" by {kind}")).unwrap_or_default();
    let step = next_step(kind_of(problem), kind);
    let message = format!("{directory} refused{by}: {}{step}", words(problem));
    IssueError { message, retry_after }
}

/// Whether the problem is of this type.
pub(crate) fn is_problem(error: &Error, wanted: &str) -> bool {
    matches!(error, Error::Api(problem) if kind_of(problem) == wanted)
}

/// A problem's type without [`PREFIX`].
fn kind_of(problem: &Problem) -> &str {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.strip_prefix(PREFIX).unwrap_or(kind)
}

/// The problem's detail and type, and those of its parts.
fn words(problem: &Problem) -> String {
    let detail = problem.detail.as_deref().unwrap_or("it gives no reason").trim_end_matches('.');
    let mut text = format!("{detail} ({})", kind_of(problem));
    for part in &problem.subproblems {
        text = format!("{text}; {part}");
    }
    text
}

/// What to do about a type of problem, with its punctuation; empty where the detail has to suffice.
fn next_step(problem: &str, kind: Option<ChallengeKind>) -> &'static str {
    match (problem, kind) {
        ("rateLimited", _) => ". Wait before the next attempt; the issuer's staging directory is for tests",
        ("connection", Some(ChallengeKind::TlsAlpn01)) => {
            ". Port 443 must reach this server from the internet: check the firewall and port forwarding"
        }
        ("connection", _) => {
            ". Port 80 must reach this server from the internet: check the firewall and port forwarding"
        }
        ("dns" | "unauthorized" | "incorrectResponse", Some(ChallengeKind::Dns01)) => {
            ". All name servers of the zone must have the TXT record: check the DNS solver, or raise the propagation \
             delay"
        }
        ("dns", _) => ". Create an A or AAAA record for the name that points to this server",
        ("unauthorized" | "incorrectResponse", Some(_)) => {
            ". Another server answered: let the name's A and AAAA records point to this server, and let proxies in \
             front of it pass the challenge on"
        }
        ("unauthorized", None) => {
            ". The account may not do this: remove it from the store to create another one"
        }
        ("tls", _) => {
            ". Nothing in front of this server may terminate TLS on port 443 for this kind of challenge"
        }
        ("caa", _) => {
            ". Allow this issuer in the CAA record of the name or its parents, or use another issuer"
        }
        ("rejectedIdentifier" | "unsupportedIdentifier", _) => {
            ". This issuer does not issue for the name: use a public DNS name, another issuer, or `tls internal`"
        }
        ("externalAccountRequired", _) => ". Set `acme_eab` to a key from the issuer's account page",
        ("agreementRequired" | "userActionRequired", _) => ". Accept the issuer's terms of service",
        ("badCSR" | "badPublicKey", _) => ". Choose another `key_type`",
        ("invalidProfile", _) => ". Choose a profile that the issuer's directory lists",
        ("invalidContact" | "unsupportedContact", _) => ". Correct `email`",
        ("serverInternal", _) => ". The issuer has a problem of its own: the next attempt may succeed",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_type_the_detail_and_the_next_step() {
        use ChallengeKind::{Dns01, Http01, TlsAlpn01};
        for (problem, kind, expected) in [
            ("rateLimited", None, "Wait before"),
            ("connection", Some(Http01), "Port 80 must reach"),
            ("connection", Some(TlsAlpn01), "Port 443 must reach"),
            ("dns", Some(Http01), "Create an A or AAAA record"),
            ("dns", Some(Dns01), "TXT record"),
            ("caa", Some(Http01), "CAA record"),
            ("unauthorized", Some(Http01), "A and AAAA records point"),
            ("unauthorized", Some(Dns01), "TXT record"),
            ("unauthorized", None, "create another one"),
            ("rejectedIdentifier", None, "`tls internal`"),
            ("externalAccountRequired", None, "`acme_eab`"),
            ("agreementRequired", None, "terms of service"),
            ("badPublicKey", None, "`key_type`"),
            ("tls", Some(TlsAlpn01), "terminate TLS"),
        ] {
            let json = format!(r#"{{"type": "{PREFIX}{problem}", "detail": "The detail."}}"#);
            let error = Error::Api(serde_json::from_str(&json).unwrap());
            assert!(is_problem(&error, problem) && !is_problem(&error, "other"));
            let explained = explain(&error, "https://example.com/dir", Some(Duration::from_secs(5)), kind);
            let by = kind.map(|kind| format!(" by {kind}")).unwrap_or_default();
            let start = format!("https://example.com/dir refused{by}: The detail ({problem}). ");
            assert!(explained.message.starts_with(&start), "{}", explained.message);
            assert!(explained.message.contains(expected), "{}", explained.message);
            assert_eq!(explained.retry_after, Some(Duration::from_secs(5)));
        }
    }

    #[test]
    fn a_certificate_that_nothing_trusts_is_named_as_such_and_not_as_unreachable() {
        let said =
            |error: &str| explain(&Error::Other(error.into()), "https://ca.test/dir", None, None).message;
        let untrusted = said("client error: invalid peer certificate: UnknownIssuer");
        assert!(untrusted.contains("`acme_ca_root FILE`") && !untrusted.contains("reachable"), "{untrusted}");
        assert!(said("client error: connection refused").contains("must be reachable"));
    }

    #[test]
    fn the_parts_of_a_problem_are_named_too() {
        let json = r#"{"type": "urn:ietf:params:acme:error:malformed", "detail": "Some names were refused",
            "subproblems": [{"type": "urn:ietf:params:acme:error:malformed", "detail": "An underscore",
            "identifier": {"type": "dns", "value": "_example.org"}}]}"#;
        let problem: Problem = serde_json::from_str(json).unwrap();
        let text = words(&problem);
        assert!(
            text.starts_with("Some names were refused (malformed); for \"_example.org\": An underscore"),
            "{text}"
        );
    }
}
