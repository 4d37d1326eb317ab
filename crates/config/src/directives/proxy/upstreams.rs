//! Where requests go: the addresses of upstreams.
//!
//! Caddy's forms: `host:port`, `host`, `:port`, `http://`, `https://` and `h2c://` with nothing behind the port, `unix/` and
//! `unix+h2c/` with a path, a range of ports, and `host:port` with placeholders.

use std::net::{IpAddr, Ipv6Addr};

use super::draft::{Draft, Scheme};
use crate::check::Context;
use crate::check::template::template;
use crate::checked::proxy::{ProxyAddress, ProxyUpstream};
use crate::checked::{Part, Template};
use crate::limits::{PROXY_NAME_CHARACTERS_MAX, PROXY_UPSTREAMS_MAX, UNIX_PATH_BYTES_MAX};
use crate::problem::Problem;
use crate::syntax::Token;

/// Where an address without a host leads, as with Caddy on Linux.
const HERE: &str = "127.0.0.1";
/// Bytes of a name (RFC 1035 section 2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// Bytes between two dots of a name.
const LABEL_BYTES_MAX: usize = 63;

/// Adds what an address stands for.
pub(super) fn add(cx: &mut Context<'_>, draft: &mut Draft, token: &Token) -> Result<(), Box<Problem>> {
    let template = template(cx.source, token)?;
    let (scheme, upstreams) = match template.as_text() {
        Some(text) => fixed(cx, token, text)?,
        None => (Scheme::None, vec![of_request(token, template)?]),
    };
    agree_on_scheme(cx, draft, token, scheme)?;
    let all = &mut draft.proxy.upstreams;
    all.extend(upstreams);
    if all.len() > PROXY_UPSTREAMS_MAX {
        all.truncate(PROXY_UPSTREAMS_MAX);
        let message = format!("a `reverse_proxy` takes at most {PROXY_UPSTREAMS_MAX} upstreams");
        return Err(Problem::error("too-large", &token.place, message)
            .help("a range of ports counts as often as it has ports"));
    }
    Ok(())
}

/// What a `reverse_proxy` is called: its upstreams as written, the first ones where they are many.
pub(super) fn name(tokens: &[Token]) -> String {
    let mut name = String::new();
    for (number, token) in tokens.iter().enumerate() {
        let characters = name.chars().count() + token.text.chars().count();
        if number > 0 && characters >= PROXY_NAME_CHARACTERS_MAX {
            name += &format!(" and {} more", tokens.len() - number);
            break;
        }
        if number > 0 {
            name.push(' ');
        }
        name.extend(
            token.text.chars().filter(|character| !character.is_control()).take(PROXY_NAME_CHARACTERS_MAX),
        );
    }
    name
}

/// Host and port of an address that has both.
pub(super) fn host_and_port(token: &Token, text: &str) -> Result<(String, u16), Box<Problem>> {
    let wrong = || {
        Problem::error("upstream", &token.place, format!("`{text}` is no address with a port"))
            .help("write `host:port`, without a scheme: `127.0.0.1:8081`")
    };
    let (host, port) = split(text).ok_or_else(wrong)?;
    let port = port.ok_or_else(wrong)?;
    let host = if host.is_empty() { HERE } else { known_host(token, host)? };
    match ports(token, Some(port), 0)? {
        (from, to) if from == to => Ok((host.to_owned(), from)),
        _ => Err(wrong()),
    }
}

/// As in Caddy, all upstreams of a directive share one transport: what one says of TLS holds for all.
fn agree_on_scheme(
    cx: &mut Context<'_>,
    draft: &mut Draft,
    token: &Token,
    scheme: Scheme,
) -> Result<(), Box<Problem>> {
    let earlier = draft.scheme.replace(scheme);
    match (earlier, scheme) {
        (None, _) | (Some(Scheme::None), Scheme::None | Scheme::Http) => Ok(()),
        (Some(earlier), now) if earlier == now => Ok(()),
        (Some(Scheme::None), Scheme::Https) => {
            let message =
                format!("with `{}`, the upstreams before it are spoken to over TLS as well", token.text);
            cx.problems.push(
                Problem::warning("mixed-schemes", &token.place, message)
                    .help("write `https://` before each of them, or a `reverse_proxy` for each kind"),
            );
            Ok(())
        }
        (Some(earlier), _) => {
            draft.scheme = Some(earlier);
            let (other, wanted) = match (earlier, scheme) {
                (Scheme::Https, _) => ("with `https://`", "https"),
                (Scheme::H2c, _) => ("with `h2c://`", "h2c"),
                (Scheme::None, Scheme::H2c) => ("without a scheme", "h2c"),
                (Scheme::None | Scheme::Http, _) => ("with `http://`", "http"),
            };
            let message = format!("`{}` and an upstream {other} stand side by side", token.text);
            Err(Problem::error("mixed-schemes", &token.place, message).help(format!(
                "all upstreams of a `reverse_proxy` share one transport: write `{wanted}://` before each"
            )))
        }
    }
}

/// An address that is known now.
fn fixed(cx: &Context<'_>, token: &Token, text: &str) -> Result<(Scheme, Vec<ProxyUpstream>), Box<Problem>> {
    let wrong = |message: String| Problem::error("upstream", &token.place, message);
    if text.is_empty() {
        return Err(wrong("the address of an upstream is empty".to_owned())
            .help("a variable or a placeholder may stand for nothing"));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let scheme = known_scheme(token, scheme)?;
        return Ok((scheme, with_scheme(token, scheme, rest)?));
    }
    let Some((network, rest)) = text.split_once('/') else {
        return Ok((Scheme::None, tcp(token, text, 80)?));
    };
    match network.to_ascii_lowercase().as_str() {
        "unix" => Ok((Scheme::None, vec![unix(cx, token, rest)?])),
        "unix+h2c" => Ok((Scheme::H2c, vec![unix(cx, token, rest)?])),
        "tcp" => Ok((Scheme::None, tcp(token, rest, 80)?)),
        other @ ("unixgram" | "unixpacket" | "tcp4" | "tcp6" | "fd" | "fdgram") => {
            let message = format!("`{other}/` is a network of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &token.place, message))
        }
        "udp" | "udp4" | "udp6" => {
            Err(wrong(format!("`{text}` names UDP, over which no HTTP/1 is spoken")).help("leave `udp/` out"))
        }
        other if other.contains(['.', ':']) || other == "localhost" => {
            Err(with_path(token, &format!("/{rest}")))
        }
        other => Err(wrong(format!("there is no network `{other}/`"))
            .help("there are `unix/`, as in `unix//run/app.sock`, and `tcp/`, which may be left out")),
    }
}

fn known_scheme(token: &Token, scheme: &str) -> Result<Scheme, Box<Problem>> {
    let wrong = |message: String| Problem::error("upstream", &token.place.narrowed_to(scheme), message);
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        "h2c" => Ok(Scheme::H2c),
        "ws" => Err(wrong("no upstream is spoken to as `ws://`".to_owned())
            .help("write `http://`: WebSocket connections begin as HTTP")),
        "wss" => Err(wrong("no upstream is spoken to as `wss://`".to_owned())
            .help("write `https://`: WebSocket connections begin as HTTP")),
        "unix" => Err(wrong("a Unix socket has no scheme".to_owned())
            .help("write `unix/` and the path: `unix//run/app.sock`")),
        other if other.starts_with("srv+") || other == "srv" => {
            let message = format!("`{other}://` is a form of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &token.place.narrowed_to(scheme), message))
        }
        other => Err(wrong(format!("there is no scheme `{other}`"))
            .help("there are `http://`, `https://` and `h2c://`")),
    }
}

fn with_scheme(token: &Token, scheme: Scheme, rest: &str) -> Result<Vec<ProxyUpstream>, Box<Problem>> {
    let wrong = |message: String| Problem::error("upstream", &token.place, message);
    if let Some(at) = rest.find(['/', '?', '#']) {
        return Err(with_path(token, rest.get(at..).unwrap_or_default()));
    }
    if rest.contains('@') {
        return Err(wrong("an upstream's address has no user and no password".to_owned())
            .help("`header_up Authorization` says who is asking"));
    }
    let (default, other, name) = if scheme == Scheme::Https { (443, 80, "http") } else { (80, 443, "https") };
    let upstreams = tcp(token, rest, default)?;
    let has_other = |upstream: &ProxyUpstream| matches!(upstream.address, ProxyAddress::Tcp { port, .. } if port == other);
    if upstreams.iter().any(has_other) {
        let message = format!("`{}` contradicts itself: port {other} is for {name}", token.text);
        return Err(wrong(message).help(format!("write `{name}://`, or another port")));
    }
    Ok(upstreams)
}

/// Caddy refuses it too: an upstream is a place, and a path part of a request.
fn with_path(token: &Token, path: &str) -> Box<Problem> {
    let place = token.place.narrowed_to(path);
    let problem = Problem::error("upstream", &place, "an upstream's address ends with its port");
    match path {
        "/" => problem.help("take the slash away: the path is the request's"),
        _ => problem.help("`rewrite` or `handle_path` changes the path before `reverse_proxy` sees it"),
    }
}

fn unix(cx: &Context<'_>, token: &Token, path: &str) -> Result<ProxyUpstream, Box<Problem>> {
    if path.starts_with('@') {
        let message = "a Unix socket without a file is a form of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &token.place, message));
    }
    let wrong = |message: String| Problem::error("upstream", &token.place, message);
    if path.is_empty() || path.contains('\0') {
        return Err(wrong("`unix/` needs the path of a socket".to_owned())
            .help("write `unix//run/app.sock`; the second slash begins the path"));
    }
    let path = cx.absolute(path);
    if path.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        return Err(wrong(format!("the path of a Unix socket has at most {UNIX_PATH_BYTES_MAX} bytes"))
            .help("put the socket into a folder nearer to the root"));
    }
    Ok(ProxyUpstream { label: format!("unix/{}", path.display()), address: ProxyAddress::Unix(path) })
}

/// `host:port`, `host`, `:port`, `host:from-to`; IPv6 in brackets, or alone.
fn tcp(token: &Token, text: &str, default: u16) -> Result<Vec<ProxyUpstream>, Box<Problem>> {
    let wrong = |message: String| Problem::error("upstream", &token.place, message);
    let (host, port) = split(text).ok_or_else(|| {
        wrong(format!("`{text}` is no address of an upstream"))
            .help("write `host:port`; an IPv6 address stands in brackets: `[::1]:8080`")
    })?;
    if host.is_empty() && port.is_none() {
        return Err(wrong(format!("`{}` names no host", token.text)).help("write `host:port`"));
    }
    if port.is_none() && !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong(format!("`{host}` is a number, and no host"))
            .help(format!("write `:{host}` for that port of this machine")));
    }
    let host = if host.is_empty() { host } else { known_host(token, host)? };
    let (from, to) = ports(token, port, default)?;
    let upstream = |port: u16| ProxyUpstream {
        label: if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") },
        address: ProxyAddress::Tcp {
            host: if host.is_empty() { HERE.to_owned() } else { host.to_owned() },
            port,
        },
    };
    if usize::from(to - from) >= PROXY_UPSTREAMS_MAX {
        return Err(Problem::error("too-large", &token.place, format!("`{text}` has too many ports"))
            .help(format!("a `reverse_proxy` takes at most {PROXY_UPSTREAMS_MAX} upstreams")));
    }
    Ok((from..=to).map(upstream).collect())
}

/// Host and port, apart.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (host, after) = inside.split_once(']')?;
        let port = if after.is_empty() { None } else { Some(after.strip_prefix(':')?) };
        return host.parse::<Ipv6Addr>().is_ok().then_some((host, port));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
        None => Some((text, None)),
    }
}

fn known_host<'t>(token: &Token, host: &'t str) -> Result<&'t str, Box<Problem>> {
    let wrong = |message: String| Problem::error("host", &token.place.narrowed_to(host), message);
    if host.parse::<IpAddr>().is_ok() {
        return Ok(host);
    }
    if !host.is_ascii() {
        return Err(wrong(format!("`{host}` has letters outside of ASCII"))
            .help("write the name as it stands in DNS: in its `xn--` form"));
    }
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let fits = |label: &&str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if host.len() > NAME_BYTES_MAX || !labels.iter().all(fits) {
        return Err(
            wrong(format!("`{host}` is no host")).help("letters, digits, `-`, `_` and dots make a host")
        );
    }
    if labels.last().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit())) && labels.len() > 1 {
        return Err(wrong(format!("`{host}` is no IPv4 address"))
            .help("it has four numbers from 0 to 255, and no name ends in a number"));
    }
    Ok(host)
}

/// The first and the last port.
fn ports(token: &Token, port: Option<&str>, default: u16) -> Result<(u16, u16), Box<Problem>> {
    let Some(port) = port else { return Ok((default, default)) };
    let wrong = |help: &str| {
        Err(Problem::error("port", &token.place.narrowed_to(port), format!("`{port}` is no port")).help(help))
    };
    let read = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|port| is_number && *port > 0)
    };
    match port.split_once('-') {
        None => match read(port) {
            Some(port) => Ok((port, port)),
            None => wrong("a port is a number from 1 to 65535; `8000-8003` is four upstreams"),
        },
        Some((from, to)) => match (read(from), read(to)) {
            (Some(from), Some(to)) if from <= to => Ok((from, to)),
            (Some(_), Some(_)) => wrong("a range begins with its smaller port"),
            _ => wrong("a range has two numbers from 1 to 65535: `8000-8003`"),
        },
    }
}

/// An address that is known with the request.
fn of_request(token: &Token, mut template: Template) -> Result<ProxyUpstream, Box<Problem>> {
    let wrong = |message: &str| Problem::error("upstream", &token.place, message);
    let texts = || {
        template.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Value(_) => None,
        })
    };
    if texts().any(|text| text.contains("://")) {
        return Err(wrong("an upstream with a placeholder has no scheme")
            .help("leave it out; `tls` in `transport http { … }` means HTTPS"));
    }
    if texts().any(|text| text.contains('/')) {
        let message =
            "placeholders in the path of a socket are a form of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &token.place, message));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    if !texts().all(|text| text.bytes().all(fits)) {
        return Err(wrong("what stands around the placeholders is no part of a host and a port")
            .help("write `{labels.2}.internal:8080`, for example"));
    }
    if let Some(Part::Text(last)) = template.parts.last() {
        let Some((_, port)) = last.rsplit_once(':') else {
            return Err(wrong("this upstream has no port")
                .help(format!("write it behind a colon: `{}:80`", token.text)));
        };
        let (from, to) = ports(token, Some(port), 80)?;
        if from != to {
            let message =
                "a range of ports behind a placeholder is a form of Caddy that onehop does not have yet";
            return Err(Problem::error("not-yet", &token.place, message));
        }
    }
    if let Some(Part::Text(first)) = template.parts.first_mut()
        && first.starts_with(':')
    {
        first.insert_str(0, HERE);
    }
    Ok(ProxyUpstream { label: token.text.clone(), address: ProxyAddress::OfRequest(template) })
}
