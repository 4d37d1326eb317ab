//! `onehop logs`: the last requests, lines of applications and events, as the control socket gives them.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::control;
use crate::arguments::Logs;
use crate::control_client::{number, text};
use crate::failure::Failure;
use crate::report::printable;
use crate::units::{bytes, counted, duration, rfc3339_milliseconds};

/// Characters of a line that a person is shown: before an error in minified code, Node.js prints the whole of it as one line.
const SHOWN_CHARACTERS_MAX: usize = 2_000;

pub(crate) fn logs(arguments: &Logs) -> Result<(), Failure> {
    let wanted = Wanted::of(arguments);
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut output = std::io::stdout();
    let is_colored = output.is_terminal() && !no_color && !arguments.json;
    let path = if arguments.follow { "/logs/follow" } else { "/logs" };
    control::lines(&arguments.target, path, arguments.follow, |line| {
        let Ok(object) = serde_json::from_str::<Value>(line) else { return true };
        if !wanted.shows(&object) {
            return true;
        }
        let shown = if arguments.json { line.to_owned() } else { for_a_person(&object) };
        let is_error = object.get("error") == Some(&Value::Bool(true));
        let (begin, end) = if is_colored && is_error { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
        // A reader that has seen enough (`| head`) ends it.
        writeln!(output, "{begin}{shown}{end}").and_then(|()| output.flush()).is_ok()
    })
}

/// Which lines are shown.
struct Wanted<'a> {
    app: Option<&'a str>,
    site: Option<&'a str>,
    /// Times are compared as texts: all have the same form.
    since: Option<String>,
    errors: bool,
}

impl<'a> Wanted<'a> {
    fn of(arguments: &'a Logs) -> Self {
        let since = arguments.since.and_then(|time| SystemTime::now().checked_sub(time));
        Self {
            app: arguments.app.as_deref(),
            site: arguments.site.as_deref(),
            since: since.map(rfc3339_milliseconds),
            errors: arguments.errors,
        }
    }

    fn shows(&self, line: &Value) -> bool {
        if text(line, "kind") == "missed" {
            return true;
        }
        let is_error = line.get("error") == Some(&Value::Bool(true));
        if (self.errors && !is_error) || self.since.as_deref().is_some_and(|since| text(line, "time") < since)
        {
            return false;
        }
        let of_app = self.app.is_some_and(|app| text(line, "app") == app);
        let of_site = self.site.is_some_and(|site| is_of_site(line, site));
        (self.app.is_none() && self.site.is_none()) || of_app || of_site
    }
}

fn is_of_site(line: &Value, wanted: &str) -> bool {
    let site = text(line, "site");
    let host = site.split_once("://").map_or(site, |(_, host)| host);
    let asked = line.pointer("/record/request/host").and_then(Value::as_str).unwrap_or_default();
    let same = |name: &str| {
        let name_alone =
            name.rsplit_once(':').filter(|_| !name.ends_with(']')).map_or(name, |(name, _)| name);
        !name.is_empty() && (name.eq_ignore_ascii_case(wanted) || name_alone.eq_ignore_ascii_case(wanted))
    };
    site == wanted || same(host) || same(asked)
}

/// `2026-05-12T10:15:00.123Z GET shop.example/cart 200 1.2 KiB 14 ms 192.0.2.7`
fn for_a_person(line: &Value) -> String {
    if text(line, "kind") == "missed" {
        return format!("… {} had gone before they were read", counted(number(line, "lines"), "line"));
    }
    let time = text(line, "time");
    let shown = match (text(line, "kind"), line.get("record")) {
        ("request", Some(record)) => format!("{} {}", request(record), status_and_rest(line, record)),
        ("request", None) => printable(text(line, "text")).into_owned(),
        _ => text(line, "text").to_owned(),
    };
    format!("{time} {}", bounded(shown.trim_start()))
}

fn bounded(line: &str) -> Cow<'_, str> {
    let Some((at, _)) = line.char_indices().nth(SHOWN_CHARACTERS_MAX) else { return Cow::Borrowed(line) };
    let (begin, rest) = line.split_at(at);
    let more = counted(rest.chars().count() as u64, "more character");
    Cow::Owned(format!("{begin}… {more}: `onehop logs --json` shows them"))
}

/// Fields that a `format filter` leaves out are left out here, too.
fn request(record: &Value) -> String {
    let of = |name: &str| {
        let value = record.get("request").and_then(|request| request.get(name)).and_then(Value::as_str);
        printable(value.unwrap_or_default()).into_owned()
    };
    format!("{} {}{}", of("method"), of("host"), of("uri")).trim().to_owned()
}

fn status_and_rest(line: &Value, record: &Value) -> String {
    let mut shown = number(line, "status").to_string();
    if let Some(size) = record.get("size").and_then(Value::as_u64) {
        shown.push_str(&format!(" {}", bytes(size)));
    }
    let took = record.get("duration").and_then(Value::as_f64);
    if let Some(took) = took.and_then(|took| Duration::try_from_secs_f64(took).ok()) {
        shown.push_str(&format!(" {}", duration(took)));
    }
    if let Some(client) = record.pointer("/request/client_ip").and_then(Value::as_str) {
        shown.push_str(&format!(" {}", printable(client)));
    }
    for name in ["refused", "detail", "upstream"] {
        if let Some(value) = record.get(name).and_then(Value::as_str) {
            shown.push_str(&format!(" {name}={}", printable(value)));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_of_minified_code_is_shown_by_its_beginning() {
        let code = "ü".repeat(SHOWN_CHARACTERS_MAX);
        let shown = |text: &str| for_a_person(&json!({"time": "T", "kind": "output", "text": text}));
        assert_eq!(shown(&code), format!("T {code}"));
        assert_eq!(
            shown(&format!("{code}x")),
            format!("T {code}… 1 more character: `onehop logs --json` shows them")
        );
        assert!(
            shown(&format!("{code}xyz")).ends_with("… 3 more characters: `onehop logs --json` shows them")
        );
    }

    fn request_line() -> Value {
        json!({
            "time": "2026-05-12T10:15:00.123Z", "kind": "request", "error": false, "site": "http://*.shop.example:8080",
            "status": 200,
            "record": {
                "request": {
                    "client_ip": "192.0.2.7", "method": "GET", "host": "a.shop.example:8080", "uri": "/c\u{9b}31m",
                },
                "size": 1229, "duration": 0.0142, "upstream": "127.0.0.1:3000",
            },
        })
    }

    #[test]
    fn a_line_for_a_person_has_what_is_known_and_nothing_that_acts_on_a_terminal() {
        assert_eq!(
            for_a_person(&request_line()),
            "2026-05-12T10:15:00.123Z GET a.shop.example:8080/c\\u{9b}31m 200 1.2 KiB 14 ms 192.0.2.7 upstream=127.0.0.1:3000"
        );
        let filtered =
            json!({"time": "T", "kind": "request", "status": 404, "record": {"request": {"uri": "/a"}}});
        assert_eq!(for_a_person(&filtered), "T /a 404");
        let text = json!({"time": "T", "kind": "request", "status": 404, "text": "127.0.0.1 - - x"});
        assert_eq!(for_a_person(&text), "T 127.0.0.1 - - x");
        let app = json!({"time": "T", "kind": "app", "text": "api[7] | hello", "record": {}});
        assert_eq!(for_a_person(&app), "T api[7] | hello");
        assert_eq!(
            for_a_person(&json!({"kind": "missed", "lines": 2})),
            "… 2 lines had gone before they were read"
        );
    }

    #[test]
    fn a_site_is_known_by_its_address_its_host_and_the_host_that_was_asked_for() {
        let line = request_line();
        for (wanted, is_shown) in [
            ("http://*.shop.example:8080", true),
            ("*.shop.example", true),
            ("A.shop.example", true),
            ("a.shop.example:8080", true),
            ("shop.example", false),
            ("", false),
        ] {
            assert_eq!(is_of_site(&line, wanted), is_shown, "{wanted}");
        }
    }

    #[test]
    fn filters_are_combined_and_a_site_and_an_application_are_shown_together() {
        let wanted = |app, site, errors, since: Option<&str>| Wanted {
            app,
            site,
            errors,
            since: since.map(str::to_owned),
        };
        let (request, output) = (
            request_line(),
            json!({"time": "2026-05-12T10:15:01.000Z", "kind": "app", "app": "api", "error": true}),
        );
        for (wanted, shown) in [
            (wanted(None, None, false, None), (true, true)),
            (wanted(None, None, true, None), (false, true)),
            (wanted(Some("api"), None, false, None), (false, true)),
            (wanted(Some("web"), None, false, None), (false, false)),
            (wanted(None, Some("a.shop.example"), false, None), (true, false)),
            (wanted(Some("api"), Some("a.shop.example"), false, None), (true, true)),
            (wanted(None, None, false, Some("2026-05-12T10:15:00.500Z")), (false, true)),
        ] {
            assert_eq!((wanted.shows(&request), wanted.shows(&output)), shown);
        }
    }
}
