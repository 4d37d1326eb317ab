//! The options of the transport whose names begin with `tls`. Each of them alone means that upstreams are spoken to over
//! TLS.
//!
//! Files must be there and are not read: that is for the server, at each start.

use std::path::PathBuf;

use crate::arguments::{no_arguments, some_arguments, wrong_arguments};
use crate::check::Context;
use crate::check::template::{fixed, template, template_of_upstream};
use crate::check::value::port;
use crate::checked::proxy::ProxyTls;
use crate::checked::{Part, Placeholder, Template};
use crate::limits::PROXY_LIST_MAX;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::source::Entry;
use crate::syntax::{Directive, Token};

/// Where Caddy can take trusted certificates from besides files.
const OTHER_POOLS: [&str; 7] =
    ["combined", "http", "inline", "lazy_file", "pki_intermediate", "pki_root", "storage"];

/// `tls_insecure_skip_verify`
pub(super) fn skip_verify(
    cx: &mut Context<'_>,
    tls: &mut ProxyTls,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    no_arguments(option)?;
    tls.insecure_skip_verify = true;
    let message = "whoever answers in an upstream's place is believed";
    cx.problems.push(
        Problem::warning("insecure", &option.name.place, message)
            .help("`tls_trust_pool file <certificate>` trusts a certificate of your own instead"),
    );
    Ok(())
}

/// `tls_server_name <name>`
pub(super) fn server_name(cx: &Context<'_>, token: &Token) -> Result<Option<Template>, Box<Problem>> {
    // The name of the upstream is what is asked for anyway.
    let of_upstream = template_of_upstream(cx.source, token);
    if of_upstream.is_ok_and(|name| name.parts == [Part::Value(Placeholder::UpstreamHost)]) {
        return Ok(None);
    }
    let name = template(cx.source, token)?;
    if name.as_text().is_some_and(|name| !is_name(name)) {
        let message = format!("`{}` is no name of a server", token.text);
        return Err(Problem::error("host", &token.place, message)
            .help("write the name that the upstream's certificate has, without a port"));
    }
    Ok(Some(name))
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    is_address || (!name.is_empty() && name.len() <= 253 && !name.contains(':') && name.bytes().all(fits))
}

/// A certificate and its key.
pub(super) fn client_auth(cx: &Context<'_>, option: &Directive) -> Result<(PathBuf, PathBuf), Box<Problem>> {
    let usage = "tls_client_auth <certificate> <key>";
    match some_arguments(option, usage)? {
        [name] => {
            let message = "a certificate that is obtained for a name is a feature of Caddy that onehop does not have yet";
            Err(Problem::error("not-yet", &name.place, message).help(format!("name two files: `{usage}`")))
        }
        [certificate, key] => Ok((file(cx, certificate)?, file(cx, key)?)),
        _ => Err(wrong_arguments(option, usage)),
    }
}

/// Ports of upstreams that are spoken to in the clear.
pub(super) fn except_ports(option: &Directive) -> Result<Vec<u16>, Box<Problem>> {
    let tokens = some_arguments(option, "tls_except_ports 8080")?;
    if tokens.len() > PROXY_LIST_MAX {
        let message = format!("`tls_except_ports` takes at most {PROXY_LIST_MAX} ports");
        return Err(Problem::error("too-large", &option.name.place, message));
    }
    tokens.iter().map(|token| port(token, "a port")).collect()
}

/// `tls_trust_pool file <file>…`, or the files as `pem_file` in a block.
pub(super) fn trust_pool(cx: &Context<'_>, option: &Directive) -> Result<Vec<PathBuf>, Box<Problem>> {
    let usage = "tls_trust_pool file <file>…";
    let Some((source, tokens)) = option.args.split_first() else {
        return Err(wrong_arguments(option, usage));
    };
    let word = source.text.as_str();
    if OTHER_POOLS.contains(&word) {
        let message =
            format!("certificates from `{word}` are a feature of Caddy that onehop does not have yet");
        return Err(Problem::error("not-yet", &source.place, message).help(format!("write `{usage}`")));
    }
    if word != "file" {
        let message = format!("there is no source of certificates `{word}`");
        let problem = Problem::error("unknown-option", &source.place, message);
        return Err(match nearest(word, ["file"].into_iter().chain(OTHER_POOLS)) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(format!("write `{usage}`")),
        });
    }
    let mut found = files(cx, tokens)?;
    for line in option.block.as_deref().unwrap_or_default() {
        if line.name.text != "pem_file" {
            let message = format!("`tls_trust_pool file` has no option `{}`", line.name.text);
            return Err(
                Problem::error("unknown-option", &line.name.place, message).help("there is `pem_file`")
            );
        }
        found.extend(files(cx, some_arguments(line, "pem_file <file>…")?)?);
    }
    if found.is_empty() {
        return Err(wrong_arguments(option, usage));
    }
    Ok(found)
}

/// Files of certificates.
pub(super) fn files(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<PathBuf>, Box<Problem>> {
    if let Some(token) = tokens.get(PROXY_LIST_MAX) {
        let message = format!("at most {PROXY_LIST_MAX} files of certificates are read");
        return Err(
            Problem::error("too-large", &token.place, message).help("one file can hold many certificates")
        );
    }
    tokens.iter().map(|token| file(cx, token)).collect()
}

/// A file that must be there.
fn file(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Box<Problem>> {
    let path = cx.absolute(&fixed(cx.source, token, "a file")?);
    match cx.source.entry(&path) {
        Some(Entry::File) => Ok(path),
        Some(_) => Err(Problem::error("no-file", &token.place, format!("`{}` is no file", path.display()))
            .help("name the file that is in it")),
        None => {
            Err(Problem::error("no-file", &token.place, format!("there is no file `{}`", path.display()))
                .help(format!("relative paths start in {}", cx.base.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn a_server_name_has_no_port() {
        for (name, fits) in [
            ("app.internal", true),
            ("::1", true),
            ("192.0.2.1", true),
            ("app:443", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(is_name(name), fits, "{name}");
        }
    }
}
