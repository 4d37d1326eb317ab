//! What a `proxy_pass` becomes: the `app` of what onehop runs itself, else a `reverse_proxy` to what listens there.
//!
//! All places that lead to one application see the same choice, so that it stays one process. What the chosen
//! directive cannot say becomes a note, what neither can is refused.

use super::context::Context;
use super::directive::{Directive, nearest};
use super::fields::{Fields, fields, redirects};
use super::server::Server;
use super::upstreams::{Target, retries};
use super::values;
use crate::deployment::Upstream;
use crate::onehopfile::{directive, word};
use crate::refusal::Refusal;

/// How long nginx waits for the next bytes of an answer where nothing is said (ngx_http_proxy_module).
const READ_SECONDS: u64 = 60;

/// A `proxy_pass` with all that holds for it.
pub(crate) struct ProxyPass {
    pub(crate) target: Target,
    fields: Fields,
    /// Options of `reverse_proxy` beside fields and servers.
    more: Vec<String>,
}

impl ProxyPass {
    /// Reads it with its levels, the outermost first; with the location's path where that does not reach the
    /// application.
    pub(crate) fn of(
        server: &Server<'_>,
        pass: &Directive,
        taken_off: Option<&str>,
        levels: &[&[Directive]],
    ) -> Result<ProxyPass, Refusal> {
        let mut target = server.target(pass)?;
        let mut fields = fields(pass, &target, levels);
        redirects(pass, taken_off, &target, levels, &mut fields);
        let timeout = seconds("proxy_read_timeout", levels).unwrap_or(READ_SECONDS);
        for upstream in &mut target.upstreams {
            upstream.timeout = Some(std::time::Duration::from_secs(timeout));
            upstream.is_apart |= fields.is_lost;
        }
        let mut of_tls = Vec::new();
        if target.is_tls {
            of_tls = tls(levels, &mut target.notes)?;
        }
        let more = transport(levels, of_tls);
        let more = if target.upstreams.len() > 1 {
            retries(target.upstreams.len(), levels).into_iter().chain(more).collect()
        } else {
            more
        };
        Ok(ProxyPass { target, fields, more })
    }

    /// Adds its notes.
    pub(crate) fn report(&self, context: &Context<'_>, notes: &mut Vec<String>) {
        let notes_of_it =
            if self.app(context, None).is_some() { &self.fields.of_app } else { &self.fields.notes };
        notes.extend(self.target.notes.iter().chain(notes_of_it).cloned());
    }

    /// The directive.
    pub(crate) fn directive(&self, context: &Context<'_>, matcher: Option<&str>) -> String {
        if let Some(app) = self.app(context, matcher) {
            return app;
        }
        let scheme = if self.target.is_tls { "https://" } else { "" };
        let addresses = self.target.upstreams.iter();
        let addresses = addresses.map(|upstream| format!("{scheme}{}", context.deployment.address(upstream)));
        let words: Vec<String> = matcher.map(str::to_owned).into_iter().chain(addresses).collect();
        let lines =
            [&self.target.lines, &self.fields.lines, &self.more].map(|lines| lines.as_slice()).concat();
        directive(&format!("reverse_proxy {}", words.join(" ")), &lines)
    }

    /// The `app` of an application that onehop runs itself.
    fn app(&self, context: &Context<'_>, matcher: Option<&str>) -> Option<String> {
        let [only] = self.target.upstreams.as_slice() else { return None };
        context.deployment.app(only.port, matcher)
    }
}

impl Server<'_> {
    /// All servers that requests are passed to, with what is asked of them there.
    pub fn upstreams(&self) -> Result<Vec<Upstream>, Refusal> {
        let mut found = Vec::new();
        let outside = [self.http, self.directive.inner()];
        let mut pending = vec![(self.directive.inner(), outside.to_vec())];
        while let Some((block, levels)) = pending.pop() {
            for pass in block.iter().filter(|directive| directive.name == "proxy_pass") {
                let upstreams = ProxyPass::of(self, pass, None, &levels)?.target.upstreams;
                let is_tls = pass.arg(0).starts_with("https:");
                if is_tls || upstreams.iter().any(|upstream| upstream.host.starts_with(values::UNIX_SOCKET)) {
                    return Err(Refusal::at(
                        &pass.place,
                        format!(
                            "`{}` leads to a Unix socket or over TLS, which is not measured",
                            pass.shown()
                        ),
                        "let the application listen on a port of 127.0.0.1",
                    ));
                }
                found.extend(upstreams);
            }
            let inner = block.iter().rev().map(Directive::inner).filter(|inner| !inner.is_empty());
            pending.extend(inner.map(|inner| (inner, [levels.as_slice(), &[inner]].concat())));
        }
        Ok(found)
    }
}

/// Whether the certificate of an https upstream is verified (ngx_http_proxy_module): by nginx only with `proxy_ssl_verify on`.
fn tls(levels: &[&[Directive]], notes: &mut Vec<String>) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    let of = |name: &str| nearest(name, levels);
    if let Some(odd) =
        ["proxy_ssl_certificate", "proxy_ssl_name", "proxy_ssl_crl"].iter().find_map(|name| of(name))
    {
        return Err(Refusal::at(
            &odd.place,
            format!("`{}`: not carried over for an application over TLS", odd.shown()),
            "write `transport http` with `tls_client_auth` or `tls_server_name`",
        ));
    }
    match (of("proxy_ssl_verify"), of("proxy_ssl_trusted_certificate")) {
        (Some(verify), Some(file)) if verify.arg(0) == "on" => {
            lines.push(format!("\ttls_trust_pool file {}", word(file.arg(0))));
        }
        (Some(verify), None) if verify.arg(0) == "on" => {}
        _ => {
            notes.push(
                "nginx does not verify the certificate of an application over TLS, and neither does onehop with \
                 `tls_insecure_skip_verify`: take that line out if the certificate is valid."
                    .to_owned(),
            );
            lines.push("\ttls_insecure_skip_verify".to_owned());
        }
    }
    Ok(lines)
}

/// How connections are made, and when pieces of a body are sent on.
fn transport(levels: &[&[Directive]], of_tls: Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    if nearest("proxy_buffering", levels).is_some_and(|directive| directive.arg(0) == "off") {
        lines.push("flush_interval -1".to_owned());
    }
    let times = [
        ("proxy_connect_timeout", "dial_timeout"),
        ("proxy_read_timeout", "read_timeout"),
        ("proxy_send_timeout", "write_timeout"),
    ];
    let times = times.iter().filter_map(|(name, ours)| Some(format!("\t{ours} {}s", seconds(name, levels)?)));
    let times: Vec<String> = of_tls.into_iter().chain(times).collect();
    if !times.is_empty() {
        lines.push("transport http {".to_owned());
        lines.extend(times);
        lines.push("}".to_owned());
    }
    lines
}

/// A time that is written, in seconds and at least one.
fn seconds(name: &str, levels: &[&[Directive]]) -> Option<u64> {
    nearest(name, levels)
        .and_then(|directive| values::seconds(directive.arg(0)))
        .map(|seconds| seconds.max(1))
}
