//! Templates of access logs and the lines that are made with them: never a panic, and one line without control characters,
//! whatever the client sends. What stands before the first zero byte is the template, the rest a request.
#![no_main]

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use onehop_config::checked::{AccessLog, LogFormat, LogOutput, LogTemplate, LogTime};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_metrics::access_log::{Entry, EntryFormat};

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (template, request) = data.split_at(at);
    let Ok(template) = std::str::from_utf8(template) else { return };
    let Ok(parts) = LogTemplate::read(template) else { return };
    let template = LogTemplate { parts, empty: "-".to_owned(), time: LogTime::CommonLog };
    let mut head = RequestHead::new();
    let read = ServerCodec::new(Limits::default()).read_head(request.get(1..).unwrap_or_default(), &mut head);
    let head = matches!(read, Ok(Some(_))).then_some(&head);
    let (origin, response) = (Origin::plain(None, 0), Response { status: 200, ..Response::default() });
    let appended = [("x".to_owned(), request.to_vec())];
    let entry = Entry {
        id: None,
        client: None,
        head,
        origin: &origin,
        response: &response,
        sent: 0,
        took: Duration::ZERO,
        upstream: None,
        reason: None,
        error: None,
        error_id: None,
        aborted: false,
        appended: &appended,
    };
    let transform = LogFormat::Transform(Arc::new(template.clone()));
    for format in [LogFormat::Json(LogTime::default()), LogFormat::Combined, transform] {
        let settings = AccessLog {
            name: None,
            output: LogOutput::Discard,
            format,
            roll: None,
            hosts: Vec::new(),
            only_named: false,
            only_errors: false,
            credentials: true,
            sampling: None,
        };
        let mut line = Vec::new();
        EntryFormat::new(&settings).write(&entry, UNIX_EPOCH, &mut line);
        let line = String::from_utf8(line).expect("a line is text");
        let text = line.strip_suffix('\n').expect("a line ends");
        // Control characters in a template are refused by the checker.
        let from_template = matches!(settings.format, LogFormat::Transform(_)) && has_control(&template);
        assert!(from_template || !text.contains(char::is_control), "{text:?}");
    }
});

fn has_control(template: &LogTemplate) -> bool {
    use onehop_config::checked::LogTemplatePart;
    template
        .parts
        .iter()
        .any(|part| matches!(part, LogTemplatePart::Text(text) if text.contains(char::is_control)))
}
