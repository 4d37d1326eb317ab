//! `return` as `redir` or `respond`.

use super::directive::Directive;
use super::values;
use crate::onehopfile::word;
use crate::refusal::Refusal;

/// A `return`.
pub(crate) fn returned(directive: &Directive, kind: Option<&str>) -> Result<String, Refusal> {
    let refuse = |cause: &str| {
        Err(Refusal::at(
            &directive.place,
            format!("`{}`: {cause}", directive.shown()),
            "take it out of a copy of the file, and try that: onehop try COPY.conf",
        ))
    };
    let (code, text) = match (directive.arg(0).parse::<u16>(), directive.arg(1)) {
        (Ok(code), text) => (code, text),
        (Err(_), _) => (302, directive.arg(0)),
    };
    if code == 444 {
        return refuse("onehop does not close connections without an answer");
    }
    let Some(value) = values::text(text) else {
        return refuse("it has a variable that onehop does not know");
    };
    if (300..400).contains(&code) && !text.is_empty() {
        let all = if value.starts_with('/') { "* " } else { "" };
        return Ok(format!("redir {all}{value} {code}\n"));
    }
    if text.is_empty() {
        return Ok(format!("respond {code}\n"));
    }
    let all = if text.starts_with(['/', '@', '*']) { "* " } else { "" };
    let kind = kind.map(|kind| format!("header Content-Type {}\n", word(kind))).unwrap_or_default();
    Ok(format!("{kind}respond {all}{value} {code}\n"))
}
