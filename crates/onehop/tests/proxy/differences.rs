//! Where onehop passes something else on than Caddy does, each with its reason.

/// Who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Upstream,
    Client,
}

/// A difference that is known. `:line` is the first line, `:body` the body with its trailers, `:before` the statuses of
/// informational answers, `:error` that there was no whole answer.
pub(crate) struct Difference {
    pub(crate) reason: &'static str,
    pub(crate) side: Side,
    /// `*` for all of them.
    pub(crate) field: &'static str,
    /// Names of the exchanges; empty for all.
    pub(crate) cases: &'static [&'static str],
    /// What Caddy passes on, where the reason holds for that alone; `Some(None)` for nothing.
    pub(crate) caddy: Option<Option<&'static str>>,
    /// What onehop passes on, likewise.
    pub(crate) onehop: Option<Option<&'static str>>,
}

/// One that is described by where it is alone.
const fn at(
    side: Side,
    field: &'static str,
    cases: &'static [&'static str],
    reason: &'static str,
) -> Difference {
    Difference { reason, side, field, cases, caddy: None, onehop: None }
}

use Side::{Client, Upstream};

pub(crate) const DIFFERENCES: &[Difference] = &[
    at(Upstream, "via", &[], "each names itself (RFC 9110 section 7.6.3)"),
    at(
        Client,
        "via",
        &[],
        "each names itself; onehop behind those before it, as RFC 9110 section 7.6.3 has it, Caddy in front",
    ),
    Difference {
        reason: "a type is not guessed from the body: Go's server does where the upstream has named none",
        side: Client,
        field: "content-type",
        cases: &[],
        caddy: None,
        onehop: Some(None),
    },
    at(
        Upstream,
        ":line",
        &["dots within"],
        "dot segments are resolved before matchers see them, and upstreams get what matchers saw",
    ),
    at(
        Upstream,
        "*",
        &["two slashes in front"],
        "resolved as a reference it names another host (RFC 3986 section 4.2), so it is refused",
    ),
    at(Client, "*", &["two slashes in front"], "it is refused with 400"),
    at(
        Client,
        ":line",
        &["418 of its own reason", "an unknown status"],
        "a reason phrase has no meaning (RFC 9112 section 4) and is not made up",
    ),
    at(
        Client,
        "content-length",
        &["304 with a length"],
        "a length that 200 would have may stand in a 304 (RFC 9110 section 8.6)",
    ),
    at(
        Upstream,
        "forwarded",
        &["forwarded otherwise"],
        "a field that says who the client is comes from trusted peers alone (RFC 7239)",
    ),
    at(Upstream, "x-forwarded-port", &["forwarded otherwise"], "likewise"),
    at(Upstream, "x-real-ip", &["forwarded otherwise"], "likewise"),
    Difference {
        reason: "an upstream is asked for the codings that the client accepts, and for no others",
        side: Upstream,
        field: "accept-encoding",
        cases: &[],
        caddy: Some(Some("gzip")),
        onehop: Some(None),
    },
    at(
        Upstream,
        "connection",
        &["an upgrade nobody takes"],
        "options of a connection have no case (RFC 9110 section 7.6.1)",
    ),
    Difference {
        reason: "whoever sends TE names it in Connection (RFC 9110 section 10.1.4)",
        side: Upstream,
        field: "connection",
        cases: &["trailers", "priority"],
        caddy: Some(None),
        onehop: Some(Some("TE")),
    },
    at(
        Upstream,
        "*",
        &["quotes in a query"],
        "a quotation mark is no part of a target (RFC 3986 section 3.4): refused",
    ),
    at(Client, "*", &["quotes in a query"], "likewise"),
];
