//! What is asked at a door, and whether it may be. Decides only; nothing here does anything.

use std::net::IpAddr;

use onehop_certificates::issuer::RevocationReason;

use crate::control::Restart;

/// The door through which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
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
pub(super) enum Ask {
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
    /// `GET /why/ID`: one of them
    Why {
        /// Its id, or another name of it.
        id: String,
    },
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
    /// The path is not served at this door.
    NotFound,
    /// The path is, with this method.
    Method(&'static str),
    /// The host is a name that could be anybody's.
    Host,
}

/// Reads a request. HEAD asks as GET does; the codec leaves the body out.
pub(super) fn read(door: Door, method: &[u8], path: &[u8], host: Option<&[u8]>) -> Ask {
    if let Door::Admin { local } = door
        && !may_be_meant(host, local)
    {
        return Ask::Refused(Refused::Host);
    }
    let (ask, wanted) = match (door, path) {
        (Door::Control, b"/status") => (Ask::Status, "GET"),
        (Door::Control, b"/certificates") => (Ask::Certificates, "GET"),
        (Door::Control, b"/reload") => (Ask::Reload(Restart::Changed), "POST"),
        (Door::Control, b"/restart") => (Ask::Reload(Restart::All), "POST"),
        (Door::Control, b"/logs") => (Ask::Logs { follows: false }, "GET"),
        (Door::Control, b"/logs/follow") => (Ask::Logs { follows: true }, "GET"),
        (Door::Control, b"/stop") => (Ask::Stop, "POST"),
        (Door::Control, b"/marks/load/begin") => (Ask::Mark { begins: true }, "POST"),
        (Door::Control, b"/marks/load/end") => (Ask::Mark { begins: false }, "POST"),
        (_, b"/slow") => (Ask::Slow, "GET"),
        (_, path) if path.starts_with(WHY) => match why(path) {
            Some(id) => (Ask::Why { id }, "GET"),
            None => return Ask::Refused(Refused::NotFound),
        },
        (_, b"/metrics") => (Ask::Metrics, "GET"),
        (_, b"/healthz") => (Ask::Health, "GET"),
        (Door::Control, path) => match workers(path).or_else(|| revocation(path)) {
            Some(asked) => asked,
            None => return Ask::Refused(Refused::NotFound),
        },
        _ => return Ask::Refused(Refused::NotFound),
    };
    match method {
        b"HEAD" if wanted == "GET" => ask,
        _ if method == wanted.as_bytes() => ask,
        _ => Ask::Refused(Refused::Method(wanted)),
    }
}

/// Before the id of a request.
const WHY: &[u8] = b"/why/";

/// The id in `/why/ID`; ids hold no slash.
fn why(path: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(path.strip_prefix(WHY)?).ok()?;
    (!id.is_empty() && !id.contains('/')).then(|| id.to_owned())
}

/// `/workers/APP` or `/workers/APP/N`; names of applications hold no slash.
fn workers(path: &[u8]) -> Option<(Ask, &'static str)> {
    let rest = std::str::from_utf8(path).ok()?.strip_prefix("/workers/")?;
    let (app, wanted) = match rest.split_once('/') {
        Some((app, wanted)) => (app, Some(wanted.parse().ok()?)),
        None => (rest, None),
    };
    let method = if wanted.is_some() { "POST" } else { "GET" };
    (!app.is_empty()).then(|| (Ask::Workers { app: app.to_owned(), wanted }, method))
}

/// `/certificates/NAME/revoke/REASON`; names of certificates hold no slash.
fn revocation(path: &[u8]) -> Option<(Ask, &'static str)> {
    let rest = std::str::from_utf8(path).ok()?.strip_prefix("/certificates/")?;
    let (name, reason) = rest.split_once("/revoke/").filter(|(name, _)| !name.is_empty())?;
    let reason = RevocationReason::of_name(reason)?;
    Some((Ask::Revoke { name: name.to_owned(), reason }, "POST"))
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
    use super::*;

    const ADMIN: Door = Door::Admin { local: Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 5))) };

    fn asked(wanted: Option<usize>) -> Ask {
        Ask::Workers { app: "api".to_owned(), wanted }
    }

    fn revoke(name: &str) -> Ask {
        Ask::Revoke { name: name.to_owned(), reason: RevocationReason::Superseded }
    }

    #[test]
    fn each_door_answers_its_own_paths_only() {
        for (door, method, path, expected) in [
            (Door::Control, "GET", "/status", Ask::Status),
            (Door::Control, "HEAD", "/status", Ask::Status),
            (Door::Control, "GET", "/certificates", Ask::Certificates),
            (Door::Control, "POST", "/certificates", Ask::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/certificates", Ask::Refused(Refused::NotFound)),
            (Door::Control, "POST", "/certificates/*.a.example/revoke/superseded", revoke("*.a.example")),
            (Door::Control, "POST", "/certificates/::1/revoke/superseded", revoke("::1")),
            (
                Door::Control,
                "GET",
                "/certificates/a.example/revoke/superseded",
                Ask::Refused(Refused::Method("POST")),
            ),
            (
                Door::Control,
                "POST",
                "/certificates/a.example/revoke/boredom",
                Ask::Refused(Refused::NotFound),
            ),
            (Door::Control, "POST", "/certificates//revoke/superseded", Ask::Refused(Refused::NotFound)),
            (ADMIN, "POST", "/certificates/a.example/revoke/superseded", Ask::Refused(Refused::NotFound)),
            (Door::Control, "POST", "/reload", Ask::Reload(Restart::Changed)),
            (Door::Control, "POST", "/restart", Ask::Reload(Restart::All)),
            (Door::Control, "GET", "/reload", Ask::Refused(Refused::Method("POST"))),
            (Door::Control, "POST", "/marks/load/begin", Ask::Mark { begins: true }),
            (Door::Control, "POST", "/marks/load/end", Ask::Mark { begins: false }),
            (ADMIN, "POST", "/marks/load/begin", Ask::Refused(Refused::NotFound)),
            (Door::Control, "GET", "/logs", Ask::Logs { follows: false }),
            (Door::Control, "GET", "/logs/follow", Ask::Logs { follows: true }),
            (Door::Control, "POST", "/logs", Ask::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/logs", Ask::Refused(Refused::NotFound)),
            (Door::Control, "HEAD", "/stop", Ask::Refused(Refused::Method("POST"))),
            (Door::Control, "GET", "/metrics", Ask::Metrics),
            (Door::Control, "GET", "/healthz", Ask::Health),
            (Door::Control, "GET", "/elsewhere", Ask::Refused(Refused::NotFound)),
            (Door::Control, "GET", "/workers/api", asked(None)),
            (Door::Control, "POST", "/workers/api/4", asked(Some(4))),
            (Door::Control, "GET", "/workers/api/4", Ask::Refused(Refused::Method("POST"))),
            (Door::Control, "POST", "/workers/api", Ask::Refused(Refused::Method("GET"))),
            (Door::Control, "POST", "/workers/api/-1", Ask::Refused(Refused::NotFound)),
            (Door::Control, "POST", "/workers/api/4/5", Ask::Refused(Refused::NotFound)),
            (Door::Control, "GET", "/workers/", Ask::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/workers/api", Ask::Refused(Refused::NotFound)),
            (Door::Control, "GET", "/slow", Ask::Slow),
            (ADMIN, "GET", "/slow", Ask::Slow),
            (ADMIN, "POST", "/slow", Ask::Refused(Refused::Method("GET"))),
            (ADMIN, "GET", "/why/00ff", Ask::Why { id: "00ff".to_owned() }),
            (Door::Control, "GET", "/why/", Ask::Refused(Refused::NotFound)),
            (Door::Control, "GET", "/why/a/b", Ask::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/metrics", Ask::Metrics),
            (ADMIN, "GET", "/healthz", Ask::Health),
            (ADMIN, "POST", "/metrics", Ask::Refused(Refused::Method("GET"))),
            (ADMIN, "POST", "/stop", Ask::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/status", Ask::Refused(Refused::NotFound)),
            (ADMIN, "GET", "/metrics/", Ask::Refused(Refused::NotFound)),
        ] {
            assert_eq!(
                read(door, method.as_bytes(), path.as_bytes(), Some(b"localhost")),
                expected,
                "{method} {path}"
            );
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
            let ask = read(ADMIN, b"GET", b"/metrics", Some(host.as_bytes()));
            assert_eq!(ask == Ask::Metrics, meant, "{host:?}");
        }
        assert_eq!(read(ADMIN, b"GET", b"/metrics", None), Ask::Metrics);
        assert_eq!(read(Door::Control, b"GET", b"/status", Some(b"anything.example")), Ask::Status);
    }
}
