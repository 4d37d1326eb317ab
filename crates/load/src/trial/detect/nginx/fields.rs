//! Fields of requests to an application: which of them it gets otherwise than from nginx, in words.
//!
//! Only a value that onehop sends too is passed over; the same name with another value is told.

use super::nearest_all;
use super::tree::Directive;

/// Fields and the values that onehop sends by itself. Connection and Upgrade end at each server (RFC 9110
/// section 7.6.1) and say nothing about answers, so any value of them will do.
const SENT: [(&str, &[&str]); 4] = [
    ("host", &["$host", "$http_host", "$host:$server_port"]),
    ("x-forwarded-for", &["$proxy_add_x_forwarded_for", "$remote_addr"]),
    ("x-forwarded-proto", &["$scheme"]),
    ("x-forwarded-host", &["$host", "$http_host", "$host:$server_port"]),
];

/// Which fields of requests differ for the application.
pub(super) fn fields(pass: &Directive, levels: &[&[Directive]], address: &str, notes: &mut Vec<String>) {
    let mut names_host = false;
    for field in nearest_all("proxy_set_header", levels) {
        let name = field.arg(0).to_ascii_lowercase();
        names_host |= name == "host";
        let value = field.arg(1).replace(['{', '}'], "");
        let sent = SENT.iter().find(|(known, _)| *known == name);
        let note = match (name.as_str(), sent) {
            ("connection" | "upgrade", _) => continue,
            (_, Some((_, values))) if values.contains(&value.as_str()) => continue,
            ("host", _) => "onehop tells the application the host that the client asked for",
            (_, Some(_)) => {
                "onehop sets this field from the request itself, so the application is told something else and may \
                 answer otherwise"
            }
            ("x-real-ip", _) => {
                "onehop tells the client's address in X-Forwarded-For, and in `request.socket` where it runs the \
                 file itself"
            }
            _ => "onehop does not set fields of requests yet, so the application does not get it",
        };
        notes.push(format!("`{}` ({}): {note}.", field.shown(), field.place.words()));
    }
    if !names_host {
        notes.push(format!(
            "`{}` ({}) tells the application the host {address}; onehop tells it the one that the client asked for.",
            pass.shown(),
            pass.place.words()
        ));
    }
}
