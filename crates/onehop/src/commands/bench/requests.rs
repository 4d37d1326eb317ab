//! Requests out of what was typed: URLs with weights, method, headers, body; and who may be asked.
//!
//! Owns the refusal: a host that is not this machine is resolved and refused before anything is sent to it, since a
//! load can harm a server and everybody who shares its way.

use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::time::Duration;

use onehop_bench::basic;
use onehop_load::plan::{self, Expect, Protocol};
use onehop_load::tls;
use onehop_load::url::{Address, Endpoint, Url, UrlError};

use crate::arguments::Request;
use crate::failure::Failure;

/// A request without its place.
#[derive(Debug, Clone)]
pub(super) struct RequestOptions {
    pub(super) method: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) expect: Expect,
    pub(super) tls: tls::Client,
    pub(super) protocol: Protocol,
}

/// One of several requests is asked at most so many times as often as another.
const WEIGHT_MAX: u32 = 1_000_000;

impl RequestOptions {
    /// What `--method`, `--header`, `--body`, `--user` and `--expect` say; a file is read now.
    pub(super) fn of(request: &Request) -> Result<RequestOptions, Failure> {
        let body = match &request.body {
            None => None,
            Some(text) => Some(match text.strip_prefix('@') {
                Some(file) => read_body(Path::new(file))?,
                None => text.clone().into_bytes(),
            }),
        };
        let usual = if body.is_some() { "POST" } else { "GET" };
        let mut fields = request.headers.clone();
        if take_framing(&mut fields)? {
            return Err(Failure::wrong(
                "`Connection: close` asks for a connection of its own for each request: say --new-connections",
            ));
        }
        fields.extend(request.user.as_deref().map(basic::authorization));
        let is_set = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
        if !is_set {
            let own = concat!("onehop/", env!("CARGO_PKG_VERSION"));
            fields.push(("User-Agent".to_owned(), own.to_owned()));
        }
        Ok(RequestOptions {
            method: request.method.clone().unwrap_or_else(|| usual.to_owned()),
            fields,
            body,
            expect: request.expect.clone().unwrap_or(Expect::Success),
            tls: request.encryption.client(request.version.protocol()),
            protocol: request.version.protocol(),
        })
    }

    /// The same request to this place; its address is filled in when it is reached, or when its server is started.
    pub(super) fn to(&self, url: Url, weight: u32) -> Result<plan::Request, Failure> {
        Ok(plan::Request {
            tls: self.tls.of(&url).map_err(|error| Failure::wrong(error.to_string()))?,
            protocol: self.protocol,
            name: format!("{} {}", self.method, url.path),
            url,
            address: Address::Tcp(([127, 0, 0, 1], 0).into()),
            method: self.method.clone(),
            fields: self.fields.clone(),
            body: self.body.clone(),
            weight,
            expect: self.expect.clone(),
        })
    }
}

/// Takes away the fields that follow from how a request is sent; whether they ask for a connection of its own for
/// each request. Dropped in silence, they would change the figures.
pub(super) fn take_framing(fields: &mut Vec<(String, String)>) -> Result<bool, Failure> {
    let mut closes = false;
    for (name, value) in &*fields {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") || is("transfer-encoding") {
            return Err(Failure::wrong(format!(
                "the header `{name}` follows from the body and cannot be chosen: leave it out"
            )));
        }
        // RFC 9110 section 7.6.1.
        for option in value.split(',').map(str::trim).filter(|_| is("connection")) {
            closes |= option.eq_ignore_ascii_case("close");
            if !["close", "keep-alive", ""].iter().any(|known| option.eq_ignore_ascii_case(known)) {
                return Err(Failure::wrong(format!(
                    "`{name}: {value}`: of a connection only `close` and `keep-alive` can be asked here"
                )));
            }
        }
    }
    fields.retain(|(name, _)| !["connection", "keep-alive"].iter().any(|own| name.eq_ignore_ascii_case(own)));
    Ok(closes)
}

/// What a file holds.
pub(super) fn read_body(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::wrong(format!("cannot read the body from {}: {error}", file.display())))
}

/// `URL`, or `3=URL` for one that is asked three times as often.
pub(super) fn weighted(text: &str) -> Result<(u32, Url), Failure> {
    let is_weight = |before: &str| !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_digit());
    let (weight, url) = match text.split_once('=') {
        Some((before, url)) if is_weight(before) => match before.parse() {
            Ok(weight) if (1..=WEIGHT_MAX).contains(&weight) => (weight, url),
            _ => return Err(Failure::wrong(format!("{text}: a weight is from 1 to {WEIGHT_MAX}"))),
        },
        _ => (1, text),
    };
    Ok((weight, Url::parse(url).map_err(url_failure)?))
}

/// Makes sure that all of them may be asked and can be, and fills in their addresses.
pub(super) fn reach(
    requests: &mut [plan::Request],
    is_own_host: bool,
    timeouts: Duration,
) -> Result<(), Failure> {
    for request in requests.iter_mut() {
        // The same text that the engine would refuse it with, before anybody waits for a connection.
        request.field_lines().map_err(|error| Failure::wrong(error.to_string()))?;
        permit(&request.url, is_own_host)?;
    }
    for at in 0..requests.len() {
        let (before, rest) = requests.split_at_mut(at);
        let Some(request) = rest.first_mut() else { break };
        let is_known =
            |other: &&plan::Request| other.url.endpoint == request.url.endpoint && other.tls == request.tls;
        match before.iter().find(is_known) {
            Some(other) => request.address = other.address.clone(),
            None => request.reach(timeouts).map_err(url_failure)?,
        }
    }
    Ok(())
}

/// Refuses a target beyond this machine that was not said to be one's own. Nothing is sent to find out.
pub(super) fn permit(url: &Url, is_own_host: bool) -> Result<(), Failure> {
    let Endpoint::Tcp { host, port } = &url.endpoint else { return Ok(()) };
    if is_own_host {
        return Ok(());
    }
    // A name without an address fails when the address is needed.
    let addresses = (host.as_str(), *port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let elsewhere = addresses.unwrap_or_default().into_iter().find(|at| !Address::Tcp(*at).is_loopback());
    match elsewhere {
        None => Ok(()),
        Some(address) => Err(Failure::wrong(format!(
            "{url} is not on this machine ({}): a load can harm a server, and everybody who shares its network\n  \
             nothing was sent; where the host is yours and you may load it, say --i-own-this-host",
            address.ip()
        ))),
    }
}

/// A target that cannot be asked: the fault of what was typed, or of the world.
pub(super) fn url_failure(error: UrlError) -> Failure {
    match error {
        UrlError::Malformed { .. } | UrlError::Tls(_) => Failure::wrong(error.to_string()),
        UrlError::Unresolved { .. }
        | UrlError::Unreachable { .. }
        | UrlError::NoHttp2 { .. }
        | UrlError::Handshake { .. } => Failure::failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_a_number_before_the_url() {
        for (text, weight, shown) in [
            (":3000/a", 1, "http://localhost:3000/a"),
            ("3=:3000/a", 3, "http://localhost:3000/a"),
            ("3=3000/a", 3, "http://localhost:3000/a"),
            ("10=http://localhost/?a=b", 10, "http://localhost/?a=b"),
            ("localhost/?a=b", 1, "http://localhost/?a=b"),
        ] {
            let (found, url) = weighted(text).unwrap();
            assert_eq!((found, url.to_string()), (weight, shown.to_owned()), "{text}");
        }
        for text in ["0=:1", "99999999999=:1", "", "3="] {
            assert!(weighted(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_this_machine_is_loaded_unasked() {
        let elsewhere = Url::parse("http://192.0.2.1/").unwrap();
        assert!(permit(&elsewhere, false).is_err());
        assert!(permit(&elsewhere, true).is_ok());
        for here in ["http://127.0.0.1/", "http://[::1]:3/", "http://127.9.9.9/"] {
            assert!(permit(&Url::parse(here).unwrap(), false).is_ok(), "{here}");
        }
    }
}
