//! Lines as a whole, of every format.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use onehop_config::checked::{
    AccessLog, FieldAction, FieldRule, LogField, LogFilter, LogFormat, LogOutput, LogTemplate, LogTime,
    ValueAction, ValueRule,
};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use proptest::prelude::*;

use super::{Entry, EntryFormat};

fn log(format: LogFormat) -> AccessLog {
    AccessLog {
        name: None,
        output: LogOutput::Discard,
        format,
        roll: None,
        hosts: Vec::new(),
        only_named: false,
        only_errors: false,
        credentials: false,
        sampling: None,
    }
}

fn template(text: &str) -> LogFormat {
    let parts = LogTemplate::read(text).expect("a template");
    LogFormat::Transform(Arc::new(LogTemplate { parts, empty: "-".to_owned(), time: LogTime::Iso8601 }))
}

fn filter(rules: &[(&str, FieldAction)]) -> LogFormat {
    let rules = rules.iter().map(|(path, action)| FieldRule {
        field: LogField::of(path).expect("a field"),
        action: action.clone(),
    });
    LogFormat::Filter(Arc::new(LogFilter { time: LogTime::UnixSeconds, rules: rules.collect() }))
}

fn head(bytes: &[u8]) -> Option<RequestHead> {
    let mut head = RequestHead::new();
    ServerCodec::new(Limits::default()).read_head(bytes, &mut head).ok()??;
    Some(head)
}

/// Whom a proxy names.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77));

fn lines(settings: &AccessLog, head: Option<&RequestHead>, appended: &[(String, Vec<u8>)]) -> String {
    let mut response = Response { status: 200, ..Response::default() };
    response.fields.add("Content-Type", b"text/html");
    response.fields.add("Set-Cookie", b"id=1");
    let origin = Origin::plain(Some(SocketAddr::from(([192, 0, 2, 77], 4711))), 0);
    let entry = Entry {
        id: None,
        head,
        origin: &origin,
        client: Some(CLIENT),
        response: &response,
        sent: 5,
        took: Duration::from_millis(3),
        upstream: Some("10.0.0.2:3000"),
        reason: None,
        error: None,
        error_id: None,
        aborted: false,
        appended,
    };
    let mut out = Vec::new();
    EntryFormat::new(settings).write(&entry, UNIX_EPOCH + Duration::from_secs(1_767_225_600), &mut out);
    String::from_utf8(out).expect("text")
}

const REQUEST: &[u8] = b"GET /a?token=1&b=2 HTTP/1.1\r\nHost: a.example\r\nCookie: id=7; theme=dark\r\nX-Key: secret\r\nX-Key: other\r\nUser-Agent: curl \"8\"\r\n\r\n";

fn appended() -> Vec<(String, Vec<u8>)> {
    let field = |key: &str, value: &str| (key.to_owned(), value.as_bytes().to_vec());
    vec![field("area", "static"), field("peer", "a\"b"), field("area", "api")]
}

#[test]
fn lines_of_json_have_appended_fields_and_the_name_of_their_log() {
    let settings = AccessLog { name: Some("health".to_owned()), ..log(LogFormat::Json(LogTime::Rfc3339)) };
    insta::assert_snapshot!(lines(&settings, head(REQUEST).as_ref(), &appended()), @r#"{"level":"info","ts":"2026-01-01T00:00:00Z","logger":"http.log.access.health","msg":"handled request","request":{"remote_ip":"192.0.2.77","remote_port":"4711","client_ip":"192.0.2.77","proto":"HTTP/1.1","method":"GET","host":"a.example","uri":"/a?token=1&b=2","headers":{"Host":["a.example"],"Cookie":["REDACTED"],"X-Key":["secret","other"],"User-Agent":["curl \"8\""]}},"duration":0.003000000,"size":5,"status":200,"upstream":"10.0.0.2:3000","resp_headers":{"Content-Type":["text/html"],"Set-Cookie":["REDACTED"]},"peer":"a\"b","area":"api"}"#);
}

#[test]
fn a_filter_changes_or_leaves_out_what_it_names() {
    let query = FieldAction::Query(vec![ValueRule { name: "token".to_owned(), action: ValueAction::Delete }]);
    let cookie = FieldAction::Cookie(vec![ValueRule { name: "id".to_owned(), action: ValueAction::Hash }]);
    let rules = [
        ("request>remote_ip", FieldAction::Delete),
        ("request>remote_port", FieldAction::Delete),
        ("request>client_ip", FieldAction::IpMask { ipv4: 16, ipv6: 0 }),
        ("request>uri", query),
        ("request>headers>Host", FieldAction::Delete),
        ("request>headers>Cookie", cookie.clone()),
        ("request>headers>X-Key", FieldAction::Hash),
        ("request>headers>User-Agent", FieldAction::Replace("hidden".to_owned())),
        ("resp_headers", FieldAction::Rename("headers".to_owned())),
        ("duration", FieldAction::Delete),
        ("status", FieldAction::Rename("code".to_owned())),
        ("size", FieldAction::Replace("some".to_owned())),
        ("upstream", FieldAction::Regexp { find: r"\d+$".to_owned(), replace: "PORT".to_owned() }),
        ("area", FieldAction::Delete),
    ];
    let settings = log(filter(&rules));
    insta::assert_snapshot!(lines(&settings, head(REQUEST).as_ref(), &appended()), @r#"{"level":"info","ts":1767225600.000000,"logger":"http.log.access","msg":"handled request","request":{"client_ip":"192.0.0.0","proto":"HTTP/1.1","method":"GET","host":"a.example","uri":"/a?b=2","headers":{"Cookie":["REDACTED"],"X-Key":["2bb80d53","d9298a10"],"User-Agent":"hidden"}},"size":"some","code":200,"upstream":"10.0.0.2:PORT","headers":{"Content-Type":["text/html"],"Set-Cookie":["REDACTED"]},"peer":"a\"b"}"#);
    // With `log_credentials`, the filter sees cookies.
    let settings = AccessLog {
        credentials: true,
        ..log(filter(&[("request>headers>Cookie", cookie), ("request>headers", FieldAction::Hash)]))
    };
    let line = lines(&settings, head(REQUEST).as_ref(), &[]);
    assert!(
        line.contains(r#""Cookie":["id=7902699b; theme=dark"]"#) && line.contains(r#""Set-Cookie":["id=1"]"#),
        "{line}"
    );
    let line = lines(&log(filter(&[("request", FieldAction::Delete)])), head(REQUEST).as_ref(), &[]);
    assert!(line.contains(r#""msg":"handled request","duration":"#), "{line}");
}

#[test]
fn a_template_has_the_fields_that_it_names() {
    let text = "{ts} {request>method} {request>uri} [{request>headers>X-Key>[1]}] {request>headers>X-Key} {request>headers>X-None:area} {user_id} {status} \\{{request>headers>Cookie>[0]}\\} {request>tls>version} {upstream}";
    insta::assert_snapshot!(
        lines(&log(template(text)), head(REQUEST).as_ref(), &appended()),
        @r#"2026-01-01T00:00:00.000Z GET /a?token=1&b=2 [other] ["secret","other"] api - 200 {REDACTED} - 10.0.0.2:3000"#
    );
    assert_eq!(
        lines(&log(template("{request>headers>User-Agent>[0]}")), head(REQUEST).as_ref(), &[]),
        "curl \\x228\\x22\n"
    );
    assert_eq!(
        lines(&log(template("{request>method} {request>host} {msg}")), None, &[]),
        "- - refused request\n"
    );
}

/// One line of each format, with the fields that come from outside.
fn all_formats(cookies: ValueAction) -> [LogFormat; 5] {
    let rules = |name: &str| vec![ValueRule { name: name.to_owned(), action: cookies.clone() }];
    [
        LogFormat::Json(LogTime::UnixSeconds),
        LogFormat::Common,
        LogFormat::Combined,
        filter(&[
            ("request>uri", FieldAction::Query(rules("a"))),
            ("request>headers>A", FieldAction::Cookie(rules("b"))),
            ("request>headers>User-Agent", FieldAction::IpMask { ipv4: 8, ipv6: 8 }),
            (
                "request>headers>Referer",
                FieldAction::Regexp { find: "a+".to_owned(), replace: "$0$0".to_owned() },
            ),
        ]),
        template(
            "{request>method} {request>uri} {request>headers} {request>headers>A>[0]} {request>headers>A} {request>host} {x}",
        ),
    ]
}

proptest! {
    #[test]
    fn whatever_a_client_sends_is_one_line(
        target in "/[!-~\\x80-\\u{ff}]{0,40}",
        value in prop::collection::vec(any::<u8>(), 0..60),
        appended in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n").into_bytes();
        for name in ["A", "User-Agent", "Referer", "Cookie"] {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend(value.iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let head = head(&bytes);
        let appended = [("x".to_owned(), appended)];
        for format in all_formats(ValueAction::Replace("\u{1}\"".to_owned())) {
            let is_json = matches!(format, LogFormat::Json(_) | LogFormat::Filter(_));
            let settings = AccessLog { credentials: true, ..log(format) };
            let line = lines(&settings, head.as_ref(), &appended);
            let text = line.strip_suffix('\n').expect("a line ends");
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            if is_json {
                prop_assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn every_template_is_read_or_refused(text in "[a{}>:\\[\\]\\\\0-9request]{0,60}") {
        if let Ok(parts) = LogTemplate::read(&text) {
            prop_assert!(parts.len() <= text.len());
            let format = LogTemplate { parts, empty: "-".to_owned(), time: LogTime::UnixSeconds };
            let line = lines(&log(LogFormat::Transform(Arc::new(format))), head(REQUEST).as_ref(), &appended());
            prop_assert!(line.ends_with('\n') && line.lines().count() <= 1);
        }
    }
}
