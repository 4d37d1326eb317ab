//! `health_*`, `fail_duration`, `max_fails`, `unhealthy_*`: which upstreams are well.
//!
//! Reads what is asked and what counts; who asks is the server.

use super::quantities::status_test;
use crate::arguments::{no_block, some_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::{field_name, field_value, is_token};
use crate::checked::Template;
use crate::checked::proxy::PassiveHealth;
use crate::limits::{PROXY_LIST_MAX, PROXY_TEXT_BYTES_MAX};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Fields that belong to the connection or to framing: no question has its own.
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// `unhealthy_status 5xx 404`
pub(super) fn unhealthy_status(health: &mut PassiveHealth, option: &Directive) -> Result<(), Box<Problem>> {
    for token in some_arguments(option, "unhealthy_status 5xx")? {
        health.unhealthy_status.push(status_test(token)?);
    }
    if health.unhealthy_status.len() <= PROXY_LIST_MAX {
        return Ok(());
    }
    let message = format!("`unhealthy_status` takes at most {PROXY_LIST_MAX} statuses");
    Err(Problem::error("too-large", &option.name.place, message).help("a class counts once: `5xx`"))
}

/// Path and query. What is missing of the path's slash is added, as Caddy does.
pub(super) fn uri(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let uri = text(cx, token, "a path")?;
    let wrong = |message: String, help: &str| {
        Err(Problem::error("arguments", &token.place, message).help(help.to_owned()))
    };
    if uri.contains("://") {
        let help = "write the path alone; `health_port` and `health_upstream` say who else is asked";
        return wrong(format!("`{uri}` is more than a path"), help);
    }
    if uri.is_empty() || !uri.bytes().all(|byte| (0x21..=0x7e).contains(&byte) && byte != b'#') {
        let help = "write it as it stands in a request: `/health?full=1`, other characters as `%20`";
        return wrong(format!("`{uri}` is no path of a request"), help);
    }
    Ok(if uri.starts_with('/') { uri } else { format!("/{uri}") })
}

/// `host:port`
pub(super) fn target(cx: &Context<'_>, token: &Token) -> Result<(String, u16), Box<Problem>> {
    let text = text(cx, token, "an address")?;
    super::upstreams::host_and_port(token, &text)
}

/// A regular expression that compiles.
pub(super) fn expression(token: &Token) -> Result<String, Box<Problem>> {
    match regex_lite::Regex::new(&token.text) {
        Ok(_) => Ok(token.text.clone()),
        Err(error) => {
            Err(Problem::error("regular-expression", &token.place, format!("`{}`: {error}", token.text))
                .help("a backslash before a character takes it as it is; quote with backticks"))
        }
    }
}

/// A block of fields, each with its values. One without a value is sent empty.
pub(super) fn fields(cx: &Context<'_>, option: &Directive) -> Result<Vec<(String, String)>, Box<Problem>> {
    let lines = option.block.as_deref().unwrap_or_default();
    if lines.is_empty() || !option.args.is_empty() {
        let message = "`health_headers` takes a block with a line for each field";
        return Err(Problem::error("arguments", &option.name.place, message)
            .help("write `health_headers {`, `Host app.internal` on a line of its own, and `}`"));
    }
    let mut fields = Vec::new();
    for line in lines {
        no_block(line)?;
        let token = &line.name;
        let name = field_name(token, token.text.strip_suffix(':').unwrap_or(&token.text))?;
        if OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            let message = format!("`{name}` belongs to the connection, which is onehop's own");
            return Err(Problem::error("field-name", &token.place, message).help("take it away"));
        }
        let name = name.to_owned();
        if line.args.is_empty() {
            fields.push((name.clone(), String::new()));
        }
        for token in &line.args {
            let value = Template::text(text(cx, token, "the value of a field")?);
            let value = field_value(token, value)?.as_text().unwrap_or_default().to_owned();
            fields.push((name.clone(), value));
        }
        if fields.len() > PROXY_LIST_MAX {
            let message = format!("`health_headers` takes at most {PROXY_LIST_MAX} fields");
            return Err(Problem::error("too-large", &option.name.place, message));
        }
    }
    Ok(fields)
}

/// The method of the question.
pub(super) fn method(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let method = text(cx, token, "a method")?;
    if !is_token(&method) || method == "CONNECT" {
        return Err(Problem::error(
            "arguments",
            &token.place,
            format!("`{method}` is no method to ask with"),
        )
        .help("`GET` is usual, `HEAD` saves the body"));
    }
    Ok(method)
}

/// A text of a bounded length.
pub(super) fn text(cx: &Context<'_>, token: &Token, what: &str) -> Result<String, Box<Problem>> {
    let text = fixed(cx.source, token, what)?;
    if text.len() > PROXY_TEXT_BYTES_MAX {
        let message = format!("{what} has at most {PROXY_TEXT_BYTES_MAX} bytes here");
        return Err(Problem::error("too-large", &token.place, message));
    }
    Ok(text)
}
