//! What is asked at an endpoint, and whether it may be. Decides only; nothing here does anything.

use std::net::IpAddr;

use onehop_certificates::issuer::RevocationReason;
use onehop_history::view::Range;
use onehop_message::uri::percent_decode;

use super::page::{self, Asset};
use crate::control::{Restart, View};

/// Seconds of a range whose beginning is not said.
const RANGE_SECONDS: u64 = 3_600;

/// What decides about a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'r> {
    pub(super) method: &'r [u8],
    pub(super) path: &'r [u8],
    pub(super) query: Option<&'r [u8]>,
    pub(super) host: Option<&'r [u8]>,
    /// The page that asks; none where it is no page.
    pub(super) origin: Option<&'r [u8]>,
    /// `Onehop-Token`
    pub(super) token: Option<&'r [u8]>,
    /// Seconds since 1970.
    pub(super) now: u64,
}

/// The endpoint through which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The control socket: file permissions decided who comes in.
    Control,
    /// The admin address. `local` is the connection's own end.
    Admin {
        /// The address that the client reached.
        local: Option<IpAddr>,
    },
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    /// `GET /status`
    Status,
    /// `GET /certificates`
    Certificates,
    /// `POST /certificates/NAME/revoke/REASON`
    Revoke {
        /// The name of the certificate.
        name: String,
        /// Why.
        reason: RevocationReason,
    },
    /// `POST /reload`, and `POST /restart` for new processes of every application
    Reload(Restart),
    /// `GET /logs`, and `GET /logs/follow`, which goes on with what comes
    Logs {
        /// It goes on.
        follows: bool,
    },
    /// `POST /restart/APP`
    Roll(String),
    /// `POST /stop`
    Stop,
    /// `GET /workers/APP`, and `POST /workers/APP/N` to change their number
    Workers {
        /// The application.
        app: String,
        /// How many it is to have.
        wanted: Option<usize>,
    },
    /// `POST /marks/load/begin` and `POST /marks/load/end`: a load tool says when it measures this server
    Mark {
        /// It begins.
        begins: bool,
    },
    /// `GET /slow`: requests that were slow or failed
    Slow,
    /// `GET /frequent?site=…`: what is asked for most at a site
    Frequent {
        /// Its label.
        site: String,
    },
    /// `GET /why/ID`: one of them
    Why {
        /// Its id, or another name of it.
        id: String,
    },
    /// `GET /history…`, `GET /events`
    Look(View),
    /// `GET /live`
    Live,
    /// `GET /token`
    Token,
    /// `GET /dashboard/…`
    Page(&'static Asset),
    /// `GET /dashboard`, from where the page's own links would lead elsewhere
    PageMoved,
    /// `GET /metrics`
    Metrics,
    /// `GET /healthz`
    Health,
    /// Nothing; why.
    Refused(Refused),
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The path is not served at this endpoint.
    NotFound,
    /// The path is, with this method.
    Method(&'static str),
    /// The host is a name that could be anybody's.
    Host,
    /// A page of another origin asks for a change.
    Origin,
    /// A page asks for a change without the token.
    Token,
    /// The query cannot be read.
    Query,
}

/// Reads a request. HEAD asks as GET does; the codec leaves the body out. `token` is what a page has to send with a change.
pub(super) fn read(endpoint: Endpoint, request: &Request<'_>, token: &str) -> Operation {
    if let Endpoint::Admin { local } = endpoint
        && !may_be_meant(request.host, local)
    {
        return Operation::Refused(Refused::Host);
    }
    let asked = match endpoint {
        Endpoint::Control => shown(request).or_else(|| controlled(request.path)),
        Endpoint::Admin { local: Some(local) } if local.to_canonical().is_loopback() => shown(request),
        // Whoever reaches another interface learns what Prometheus does: there is no password.
        Endpoint::Admin { .. } => shown(request)
            .filter(|(operation, _)| matches!(operation, Operation::Metrics | Operation::Health)),
    };
    let Some((operation, wanted)) = asked else { return Operation::Refused(Refused::NotFound) };
    match request.method {
        b"HEAD" if wanted == "GET" => operation,
        method if method != wanted.as_bytes() => Operation::Refused(Refused::Method(wanted)),
        b"POST" => match may_change(request, token) {
            Ok(()) => operation,
            Err(refused) => Operation::Refused(refused),
        },
        // No page needs it, since it gets it with its address.
        _ if operation == Operation::Token && request.origin.is_some() => Operation::Refused(Refused::Origin),
        _ => operation,
    }
}

/// Before the id of a request.
const WHY: &[u8] = b"/why/";

/// The id in `/why/ID`; ids hold no slash.
fn why(path: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(path.strip_prefix(WHY)?).ok()?;
    (!id.is_empty() && !id.contains('/')).then(|| id.to_owned())
}

/// What both listeners show.
fn shown(request: &Request<'_>) -> Option<(Operation, &'static str)> {
    let range = || range(request);
    let look = |view: Result<View, Refused>| view.map_or_else(Operation::Refused, Operation::Look);
    let operation = match request.path {
        b"/status" => Operation::Status,
        b"/certificates" => Operation::Certificates,
        b"/metrics" => Operation::Metrics,
        b"/healthz" => Operation::Health,
        b"/live" => Operation::Live,
        b"/slow" => Operation::Slow,
        b"/frequent" => parameter(request, "site")
            .map_or(Operation::Refused(Refused::Query), |site| Operation::Frequent { site }),
        b"/history" => look(range().map(|range| View::Curves { site: parameter(request, "site"), range })),
        b"/history/sites" => look(range().map(View::Sites)),
        b"/history/apps" => look(range().map(View::Apps)),
        b"/events" => look(range().map(View::Events)),
        b"/history/handlers" => look(parameter(request, "site").map(View::Handlers).ok_or(Refused::Query)),
        b"/dashboard" => Operation::PageMoved,
        path if path.starts_with(WHY) => Operation::Why { id: why(path)? },
        path => Operation::Page(page::asset(path)?),
    };
    Some((operation, "GET"))
}

/// What the control socket does besides.
fn controlled(path: &[u8]) -> Option<(Operation, &'static str)> {
    Some(match path {
        b"/token" => (Operation::Token, "GET"),
        b"/logs" => (Operation::Logs { follows: false }, "GET"),
        b"/logs/follow" => (Operation::Logs { follows: true }, "GET"),
        b"/reload" => (Operation::Reload(Restart::Changed), "POST"),
        b"/restart" => (Operation::Reload(Restart::All), "POST"),
        b"/stop" => (Operation::Stop, "POST"),
        b"/marks/load/begin" => (Operation::Mark { begins: true }, "POST"),
        b"/marks/load/end" => (Operation::Mark { begins: false }, "POST"),
        path => return roll(path).or_else(|| workers(path)).or_else(|| revocation(path)),
    })
}

/// File permissions decided who may open the control socket. A browser cannot; what forwards a page's requests to it
/// passes on where the page is from, and the token that the page was given.
fn may_change(request: &Request<'_>, token: &str) -> Result<(), Refused> {
    if let Some(origin) = request.origin {
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        if !host.is_some_and(|host| may_be_meant(Some(host), None)) {
            return Err(Refused::Origin);
        }
    }
    match request.token {
        None if request.origin.is_none() => Ok(()),
        Some(given) if is_same(given, token.as_bytes()) => Ok(()),
        _ => Err(Refused::Token),
    }
}

/// Takes the same time wherever two texts differ.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differences =
        given.iter().zip(token).fold(0, |differences, (given, token)| differences | (given ^ token));
    given.len() == token.len() && differences == 0
}

/// `from` and `to`; the last hour where they are not said.
fn range(request: &Request<'_>) -> Result<Range, Refused> {
    let time = |name: &str| {
        let text = parameter(request, name);
        text.map(|text| text.parse::<u64>().map_err(|_| Refused::Query)).transpose()
    };
    // The second that has begun is part of it.
    let to = time("to")?.unwrap_or(request.now + 1);
    let from = time("from")?.unwrap_or(to.saturating_sub(RANGE_SECONDS));
    // Later times overflow where they are rounded, and no clock has them.
    if from < to && to <= u64::from(u32::MAX) { Ok(Range { from, to }) } else { Err(Refused::Query) }
}

/// A parameter of the query.
fn parameter(request: &Request<'_>, name: &str) -> Option<String> {
    let pairs = request.query?.split(|byte| *byte == b'&');
    let value = pairs.filter_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()?;
    String::from_utf8(percent_decode(value)?.into_owned()).ok()
}

/// `/restart/APP`
fn roll(path: &[u8]) -> Option<(Operation, &'static str)> {
    let app = std::str::from_utf8(path).ok()?.strip_prefix("/restart/")?;
    let is_name = !app.is_empty() && !app.contains('/');
    is_name.then(|| (Operation::Roll(app.to_owned()), "POST"))
}

/// `/workers/APP` or `/workers/APP/N`; names of applications hold no slash.
fn workers(path: &[u8]) -> Option<(Operation, &'static str)> {
    let rest = std::str::from_utf8(path).ok()?.strip_prefix("/workers/")?;
    let (app, wanted) = match rest.split_once('/') {
        Some((app, wanted)) => (app, Some(wanted.parse().ok()?)),
        None => (rest, None),
    };
    let method = if wanted.is_some() { "POST" } else { "GET" };
    (!app.is_empty()).then(|| (Operation::Workers { app: app.to_owned(), wanted }, method))
}

/// `/certificates/NAME/revoke/REASON`; names of certificates hold no slash.
fn revocation(path: &[u8]) -> Option<(Operation, &'static str)> {
    let rest = std::str::from_utf8(path).ok()?.strip_prefix("/certificates/")?;
    let (name, reason) = rest.split_once("/revoke/").filter(|(name, _)| !name.is_empty())?;
    let reason = RevocationReason::of_name(reason)?;
    Some((Operation::Revoke { name: name.to_owned(), reason }, "POST"))
}

/// A web page of a stranger can make its own name point at this machine (DNS rebinding) and read what it
/// finds here; the name then stands in Host. So only loopback's names and the very address that was
/// reached are answered. A client without Host (HTTP/1.0) is no browser.
fn may_be_meant(host: Option<&[u8]>, local: Option<IpAddr>) -> bool {
    let Some(host) = host else { return true };
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = without_port(host);
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() else {
        return false;
    };
    address.is_loopback() || local.is_some_and(|local| local.to_canonical() == address.to_canonical())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets (RFC 3986 section 3.2.2).
        Some((name, _)) if !name.starts_with('[') || name.ends_with(']') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADMIN: Endpoint = Endpoint::Admin { local: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
    const OUTSIDE: Endpoint = Endpoint::Admin { local: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5))) };

    fn asked(wanted: Option<usize>) -> Operation {
        Operation::Workers { app: "api".to_owned(), wanted }
    }

    fn revoke(name: &str) -> Operation {
        Operation::Revoke { name: name.to_owned(), reason: RevocationReason::Superseded }
    }

    const TOKEN: &str = "0123456789abcdef";

    fn request<'r>(method: &'r str, path: &'r str) -> Request<'r> {
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (path, None),
        };
        let (method, path) = (method.as_bytes(), path.as_bytes());
        Request { method, path, query, host: Some(b"localhost"), origin: None, token: None, now: 10_000 }
    }

    #[test]
    fn each_door_answers_its_own_paths_only() {
        for (endpoint, method, path, expected) in [
            (Endpoint::Control, "GET", "/status", Operation::Status),
            (Endpoint::Control, "HEAD", "/status", Operation::Status),
            (Endpoint::Control, "GET", "/certificates", Operation::Certificates),
            (Endpoint::Control, "POST", "/certificates", Operation::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/certificates", Operation::Certificates),
            (Endpoint::Control, "POST", "/restart/api", Operation::Roll("api".to_owned())),
            (Endpoint::Control, "POST", "/restart/", Operation::Refused(Refused::NotFound)),
            (ADMIN, "POST", "/restart/api", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/token", Operation::Token),
            (ADMIN, "GET", "/token", Operation::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/live", Operation::Live),
            (ADMIN, "GET", "/dashboard", Operation::PageMoved),
            (ADMIN, "GET", "/dashboard/../token", Operation::Refused(Refused::NotFound)),
            (ADMIN, "POST", "/history", Operation::Refused(Refused::Method("GET"))),
            (Endpoint::Control, "POST", "/certificates/*.a.example/revoke/superseded", revoke("*.a.example")),
            (Endpoint::Control, "POST", "/certificates/::1/revoke/superseded", revoke("::1")),
            (
                Endpoint::Control,
                "GET",
                "/certificates/a.example/revoke/superseded",
                Operation::Refused(Refused::Method("POST")),
            ),
            (
                Endpoint::Control,
                "POST",
                "/certificates/a.example/revoke/boredom",
                Operation::Refused(Refused::NotFound),
            ),
            (
                Endpoint::Control,
                "POST",
                "/certificates//revoke/superseded",
                Operation::Refused(Refused::NotFound),
            ),
            (
                ADMIN,
                "POST",
                "/certificates/a.example/revoke/superseded",
                Operation::Refused(Refused::NotFound),
            ),
            (Endpoint::Control, "POST", "/reload", Operation::Reload(Restart::Changed)),
            (Endpoint::Control, "POST", "/restart", Operation::Reload(Restart::All)),
            (Endpoint::Control, "GET", "/reload", Operation::Refused(Refused::Method("POST"))),
            (Endpoint::Control, "POST", "/marks/load/begin", Operation::Mark { begins: true }),
            (Endpoint::Control, "POST", "/marks/load/end", Operation::Mark { begins: false }),
            (ADMIN, "POST", "/marks/load/begin", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/logs", Operation::Logs { follows: false }),
            (Endpoint::Control, "GET", "/logs/follow", Operation::Logs { follows: true }),
            (Endpoint::Control, "POST", "/logs", Operation::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/logs", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "HEAD", "/stop", Operation::Refused(Refused::Method("POST"))),
            (Endpoint::Control, "GET", "/metrics", Operation::Metrics),
            (Endpoint::Control, "GET", "/healthz", Operation::Health),
            (Endpoint::Control, "GET", "/elsewhere", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/workers/api", asked(None)),
            (Endpoint::Control, "POST", "/workers/api/4", asked(Some(4))),
            (Endpoint::Control, "GET", "/workers/api/4", Operation::Refused(Refused::Method("POST"))),
            (Endpoint::Control, "POST", "/workers/api", Operation::Refused(Refused::Method("GET"))),
            (Endpoint::Control, "POST", "/workers/api/-1", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "POST", "/workers/api/4/5", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/workers/", Operation::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/workers/api", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/slow", Operation::Slow),
            (ADMIN, "GET", "/slow", Operation::Slow),
            (ADMIN, "POST", "/slow", Operation::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/frequent?site=a%2Fb", Operation::Frequent { site: "a/b".to_owned() }),
            (ADMIN, "GET", "/frequent", Operation::Refused(Refused::Query)),
            (ADMIN, "GET", "/why/00ff", Operation::Why { id: "00ff".to_owned() }),
            (Endpoint::Control, "GET", "/why/", Operation::Refused(Refused::NotFound)),
            (Endpoint::Control, "GET", "/why/a/b", Operation::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/metrics", Operation::Metrics),
            (ADMIN, "GET", "/healthz", Operation::Health),
            (ADMIN, "POST", "/metrics", Operation::Refused(Refused::Method("GET"))),
            (ADMIN, "POST", "/stop", Operation::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/status", Operation::Status),
            (ADMIN, "GET", "/metrics/", Operation::Refused(Refused::NotFound)),
        ] {
            assert_eq!(read(endpoint, &request(method, path), TOKEN), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_name_that_is_not_this_machines_is_refused_at_the_admin_address() {
        for (host, meant) in [
            ("localhost", true),
            ("LOCALHOST:2020", true),
            ("127.0.0.1:2020", true),
            ("127.9.9.9", true),
            ("[::1]:2020", true),
            ("[::1]", true),
            ("10.0.0.5:2020", true),
            ("[::ffff:10.0.0.5]:2020", true),
            ("10.0.0.6:2020", false),
            ("attacker.example", false),
            ("localhost.attacker.example:2020", false),
            ("127.0.0.1.attacker.example", false),
            ("", false),
        ] {
            let asked = Request { host: Some(host.as_bytes()), ..request("GET", "/metrics") };
            let operation = read(OUTSIDE, &asked, TOKEN);
            assert_eq!(operation == Operation::Metrics, meant, "{host:?}");
        }
        let without = Request { host: None, ..request("GET", "/metrics") };
        assert_eq!(read(OUTSIDE, &without, TOKEN), Operation::Metrics);
        let other = Request { host: Some(b"anything.example"), ..request("GET", "/status") };
        assert_eq!(read(Endpoint::Control, &other, TOKEN), Operation::Status);
    }

    #[test]
    fn on_another_interface_than_loopback_there_are_metrics_and_health_only() {
        let here = |path| read(OUTSIDE, &request("GET", path), TOKEN);
        assert_eq!((here("/metrics"), here("/healthz")), (Operation::Metrics, Operation::Health));
        for path in [
            "/status",
            "/certificates",
            "/history",
            "/events",
            "/live",
            "/slow",
            "/frequent?site=a",
            "/why/00ff",
            "/dashboard/",
        ] {
            assert_eq!(here(path), Operation::Refused(Refused::NotFound), "{path}");
            assert_ne!(
                read(ADMIN, &request("GET", path), TOKEN),
                Operation::Refused(Refused::NotFound),
                "{path}"
            );
        }
        // IPv4 on a socket of IPv6.
        let mapped = Endpoint::Admin { local: Some(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())) };
        assert_eq!(read(mapped, &request("GET", "/status"), TOKEN), Operation::Status);
    }

    #[test]
    fn a_page_changes_nothing_without_the_token_and_one_of_another_origin_nothing_at_all() {
        let reload = Operation::Reload(Restart::Changed);
        for (origin, token, expected) in [
            (None, None, reload.clone()),
            (None, Some(TOKEN), reload.clone()),
            (None, Some("0123456789abcdee"), Operation::Refused(Refused::Token)),
            (None, Some(""), Operation::Refused(Refused::Token)),
            (Some("http://127.0.0.1:4711"), Some(TOKEN), reload.clone()),
            (Some("http://localhost:4711"), Some(TOKEN), reload),
            (Some("http://127.0.0.1:4711"), None, Operation::Refused(Refused::Token)),
            (Some("http://attacker.example"), Some(TOKEN), Operation::Refused(Refused::Origin)),
            (Some("null"), Some(TOKEN), Operation::Refused(Refused::Origin)),
            (Some("http://127.0.0.1.attacker.example"), Some(TOKEN), Operation::Refused(Refused::Origin)),
        ] {
            let asked = Request {
                origin: origin.map(str::as_bytes),
                token: token.map(str::as_bytes),
                ..request("POST", "/reload")
            };
            assert_eq!(read(Endpoint::Control, &asked, TOKEN), expected, "{origin:?} {token:?}");
        }
        let page = Request { origin: Some(b"http://127.0.0.1:4711"), ..request("GET", "/token") };
        assert_eq!(read(Endpoint::Control, &page, TOKEN), Operation::Refused(Refused::Origin));
    }

    #[test]
    fn a_range_is_the_last_hour_unless_it_is_said() {
        let events = |from, to| Operation::Look(View::Events(Range { from, to }));
        for (query, expected) in [
            ("", events(6_401, 10_001)),
            ("?from=5", events(5, 10_001)),
            ("?to=7200&from=10", events(10, 7_200)),
            ("?to=7200", events(3_600, 7_200)),
            ("?from=10&to=10", Operation::Refused(Refused::Query)),
            ("?from=-1", Operation::Refused(Refused::Query)),
            ("?to=99999999999", Operation::Refused(Refused::Query)),
        ] {
            let path = format!("/events{query}");
            assert_eq!(read(ADMIN, &request("GET", &path), TOKEN), expected, "{query}");
        }
        let site = "/history?site=https%3A%2F%2Fa.example&from=1&to=2";
        let curves = View::Curves { site: Some("https://a.example".into()), range: Range { from: 1, to: 2 } };
        assert_eq!(read(ADMIN, &request("GET", site), TOKEN), Operation::Look(curves));
        assert_eq!(
            read(ADMIN, &request("GET", "/history/handlers"), TOKEN),
            Operation::Refused(Refused::Query)
        );
    }
}
