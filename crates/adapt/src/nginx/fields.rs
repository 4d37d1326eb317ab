//! Header fields between nginx and an application, as options of `reverse_proxy`, and what `app` says otherwise.
//!
//! `app` sets no fields, so only a value that onehop sends by itself is passed over there; the same name with another
//! value becomes a note.

use super::directive::{Directive, nearest_all};
use super::upstreams::Target;
use super::values;
use crate::onehopfile::word;

/// Fields and the values that onehop sends by itself. Connection and Upgrade end at each server (RFC 9110
/// section 7.6.1) and say nothing about answers, so any value of them will do.
const SENT: [(&str, &[&str]); 4] = [
    ("host", &["$host", "$http_host", "$host:$server_port"]),
    ("x-forwarded-for", &["$proxy_add_x_forwarded_for", "$remote_addr"]),
    ("x-forwarded-proto", &["$scheme"]),
    ("x-forwarded-host", &["$host", "$http_host", "$host:$server_port"]),
];

/// What becomes of the fields at one `proxy_pass`.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// `header_up` and `header_down` of a `reverse_proxy`.
    pub(crate) lines: Vec<String>,
    /// What those cannot say.
    pub(crate) notes: Vec<String>,
    /// What an `app` says otherwise.
    pub(crate) of_app: Vec<String>,
    /// Whether an application behind `app` goes without a field that it may decide by.
    pub(crate) is_lost: bool,
}

/// The fields of requests.
pub(crate) fn fields(pass: &Directive, target: &Target, levels: &[&[Directive]]) -> Fields {
    let mut fields = Fields::default();
    let mut names_host = false;
    for field in nearest_all("proxy_set_header", levels) {
        let name = field.arg(0).to_ascii_lowercase();
        names_host |= name == "host";
        if !matches!(name.as_str(), "connection" | "upgrade") {
            fields.set(field, &name, target);
        }
    }
    if !names_host {
        fields.lines.push(format!("header_up Host {}", word(&target.host)));
        fields.of_app.push(format!(
            "`{}` ({}) tells the application the host {}; onehop tells it the one that the client asked for.",
            pass.shown(),
            pass.place.words(),
            target.host
        ));
    }
    fields
}

impl Fields {
    fn set(&mut self, field: &Directive, name: &str, target: &Target) {
        let value = field.arg(1).replace(['{', '}'], "");
        let sent = SENT.iter().find(|(known, _)| *known == name);
        let is_sent = sent.is_some_and(|(_, values)| values.contains(&value.as_str()));
        let place = format!("`{}` ({})", field.shown(), field.place.words());
        if sent.is_none() && value == format!("$http_{}", name.replace('-', "_")) {
            // It passes as the client sent it, here as everywhere.
            return;
        }
        if is_sent {
            if name == "host" && target.is_tls && value != "$host" {
                // Over TLS it would be the upstream's name.
                self.lines.push(format!("header_up {} {{hostport}}", word(field.arg(0))));
            }
            if value == "$host" {
                // Without the port, which nginx's variable leaves out.
                self.lines.push(format!("header_up {} {{host}}", word(field.arg(0))));
            }
            return;
        }
        let line = line(field, target);
        let note = match (name, sent) {
            ("host", _) => "onehop tells the application the host that the client asked for",
            ("x-real-ip", _) => {
                "onehop tells the client's address in X-Forwarded-For, and in `request.socket` where it runs the \
                 file itself"
            }
            (_, Some(_)) => {
                self.is_lost |= line.is_some();
                "onehop sets this field from the request itself, so the application is told something else and may \
                 answer otherwise"
            }
            _ => {
                self.is_lost |= line.is_some();
                "`app` sets no fields of requests, so the application does not get it"
            }
        };
        self.of_app.push(format!("{place}: {note}."));
        match line {
            Some(line) => self.lines.push(line),
            None => self.notes.push(format!(
                "{place}: it has a variable that onehop does not know, so the application does not get it."
            )),
        }
    }
}

/// The `header_up` of a `proxy_set_header`; nothing where its value has no equal.
fn line(field: &Directive, target: &Target) -> Option<String> {
    let name = word(field.arg(0));
    match field.arg(1) {
        // nginx leaves a field without a value out.
        "" => Some(format!("header_up -{name}")),
        value => {
            let value = value.replace("${proxy_host}", "$proxy_host").replace("$proxy_host", &target.host);
            values::sent(&value).map(|value| format!("header_up {name} {value}"))
        }
    }
}

/// `proxy_redirect`: what becomes of the Location of answers.
pub(crate) fn redirects(
    pass: &Directive,
    location: Option<&str>,
    target: &Target,
    levels: &[&[Directive]],
    fields: &mut Fields,
) {
    let all = nearest_all("proxy_redirect", levels);
    let is_default = all.is_empty() || all.iter().any(|directive| directive.arg(0) == "default");
    if is_default {
        let scheme = if target.is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{}{}", target.host, target.uri.as_deref().unwrap_or("/"));
        let own = if target.uri.is_some() { location.unwrap_or("/") } else { "/" };
        let names_host = nearest_all("proxy_set_header", levels)
            .iter()
            .any(|field| field.arg(0).eq_ignore_ascii_case("host") && !field.arg(1).contains("proxy_host"));
        let is_replaced = target.uri.is_some() || location.is_some();
        if !names_host || is_replaced {
            // An application knows its own address only from its Host, or by heart.
            fields.lines.push(moved(&url, &format!("{{scheme}}://{{hostport}}{own}")));
        }
        if is_replaced {
            fields.of_app.push(format!(
                "`{}` ({}): where the application's Location begins with that address, nginx puts the location's \
                 path in its place; onehop passes it on as it is.",
                pass.shown(),
                pass.place.words()
            ));
        }
    }
    for directive in all {
        let (from, to) = (directive.arg(0), directive.arg(1));
        if matches!(from, "default" | "off") {
            continue;
        }
        let place = format!("`{}` ({})", directive.shown(), directive.place.words());
        let note = "nginx changes Location in the application's answers; onehop passes it on as it is";
        fields.of_app.push(format!("{place}: {note}."));
        let is_plain = !from.starts_with('~') && !from.contains('$');
        match values::text(to).filter(|to| is_plain && !to.starts_with(['`', '"'])) {
            // nginx puts scheme and host before a path.
            Some(path) if path.starts_with('/') => {
                fields.lines.push(moved(from, &format!("{{scheme}}://{{hostport}}{path}")));
            }
            Some(other) => fields.lines.push(moved(from, &other)),
            None => fields.notes.push(format!("{place}: {note}.")),
        }
    }
}

/// A `header_down` that puts another beginning into Location.
fn moved(from: &str, to: &str) -> String {
    let mut expression = String::from("^");
    for character in from.chars() {
        if !character.is_alphanumeric() && !"/:-_~%@=&,;".contains(character) {
            expression.push('\\');
        }
        expression.push(character);
    }
    format!("header_down Location {} {to}", word(&expression))
}
