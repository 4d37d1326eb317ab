//! Lines as JSON, shaped like Caddy's. Where a `format filter` has a rule for a field, the rule decides.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use onehop_config::checked::{FieldAction, LogField, LogTime};
use onehop_http1::RequestHead;

use super::filter::{self, Filter};
use super::{Entry, EntryFormat, time};
use crate::json_string::{push_address, push_filled, push_json, push_json_text, push_number};

/// A line in the making.
struct Writer<'o, 'f> {
    out: &'o mut Vec<u8>,
    filter: Option<&'f Filter>,
}

/// The key of a field behind another one, in one piece.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":").as_bytes()
    };
}

/// Adds the line of a request.
pub(super) fn line(
    entry: &Entry<'_>,
    line: &EntryFormat,
    at: SystemTime,
    form: LogTime,
    filter: Option<&Filter>,
    out: &mut Vec<u8>,
) {
    let level = if entry.is_error() { "error" } else { "info" };
    out.extend_from_slice(b"{\"level\":\"");
    out.extend_from_slice(level.as_bytes());
    out.extend_from_slice(b"\",\"ts\":");
    time::push(out, at, form, "\"");
    out.extend_from_slice(b",\"logger\":");
    push_json(out, line.logger.as_bytes());
    out.extend_from_slice(b",\"msg\":\"");
    out.extend_from_slice(entry.message().as_bytes());
    out.push(b'"');
    match filter {
        // Apart, so that the compiler leaves out what asks for rules.
        None => Writer { out, filter: None }.entry(entry, line),
        Some(filter) => Writer { out, filter: Some(filter) }.entry(entry, line),
    }
    out.extend_from_slice(b"}\n");
}

impl<'f> Writer<'_, 'f> {
    #[inline(always)]
    fn entry(&mut self, entry: &Entry<'_>, line: &EntryFormat) {
        self.object(&LogField::Request, key!("request"), |writer| writer.request(entry, line));
        self.plain(&LogField::Duration, key!("duration"), |out| push_seconds(out, entry.took));
        self.plain(&LogField::Size, key!("size"), |out| push_number(out, entry.sent));
        self.plain(&LogField::Status, key!("status"), |out| push_number(out, entry.response.status.into()));
        if let Some(id) = entry.id {
            self.plain(&LogField::RequestId, key!("request_id"), |out| _ = write!(out, "\"{id:016x}\""));
        }
        if let Some(upstream) = entry.upstream {
            self.text(&LogField::Upstream, key!("upstream"), upstream.as_bytes());
        }
        if let Some(error) = entry.error {
            self.text(&LogField::Refused, key!("refused"), error.name().as_bytes());
            if let Some(detail) = error.detail().or(entry.reason) {
                self.text(&LogField::Detail, key!("detail"), detail.as_bytes());
            }
        }
        if let Some(id) = entry.error_id {
            self.text(&LogField::ErrorId, key!("err_id"), &id);
        }
        if entry.aborted {
            self.plain(&LogField::Aborted, key!("aborted"), |out| out.extend_from_slice(b"true"));
        }
        self.object(&LogField::ResponseHeaders, key!("resp_headers"), |writer| {
            writer.fields(|| entry.response.fields.iter(), line, Filter::response_header);
        });
        for (number, (key, value)) in entry.appended.iter().enumerate() {
            // The last one of a name counts.
            if entry.appended.iter().skip(number + 1).all(|(later, _)| later != key) {
                let rule = self.filter.and_then(|filter| filter.appended(key));
                self.ruled_text(rule, key.as_bytes(), value);
            }
        }
    }

    #[inline(always)]
    fn request(&mut self, entry: &Entry<'_>, line: &EntryFormat) {
        match (entry.origin.peer, entry.client) {
            (Some(peer), Some(client)) if self.filter.is_none() => {
                let remote = peer.ip().to_canonical();
                self.out.extend_from_slice(b"\"remote_ip\":\"");
                let begin = self.out.len();
                push_address(self.out, remote);
                let end = self.out.len();
                self.out.extend_from_slice(b"\",\"remote_port\":\"");
                push_number(self.out, peer.port().into());
                self.out.extend_from_slice(b"\",\"client_ip\":\"");
                match client == remote {
                    true => self.out.extend_from_within(begin..end),
                    false => push_address(self.out, client),
                }
                self.out.push(b'"');
            }
            (peer, client) => {
                let shown = |address: Option<IpAddr>| {
                    address.map_or_else(|| "@".to_owned(), |address| address.to_string())
                };
                let ip = shown(peer.map(|peer| peer.ip().to_canonical()));
                let port = peer.map_or_else(String::new, |peer| peer.port().to_string());
                self.text(&LogField::RemoteIp, key!("remote_ip"), ip.as_bytes());
                self.text(&LogField::RemotePort, key!("remote_port"), port.as_bytes());
                self.text(&LogField::ClientIp, key!("client_ip"), shown(client).as_bytes());
            }
        }
        if let Some(head) = entry.head {
            self.head(head, line);
        }
    }

    #[inline(always)]
    fn head(&mut self, head: &RequestHead, line: &EntryFormat) {
        self.text(&LogField::Protocol, key!("proto"), head.version().name().as_bytes());
        self.text(&LogField::Method, key!("method"), head.method_bytes());
        self.text(&LogField::Host, key!("host"), head.host().unwrap_or_default());
        self.text(&LogField::Uri, key!("uri"), head.target());
        self.object(&LogField::RequestHeaders, key!("headers"), |writer| {
            writer.fields(|| head.fields(), line, Filter::request_header);
        });
    }

    #[inline(always)]
    fn rule(&self, field: &LogField) -> Option<&'f FieldAction> {
        self.filter.and_then(|filter| filter.rule(field))
    }

    fn named_key(&mut self, name: &[u8]) {
        // No value ends so: this is the first field of its object.
        if !self.out.ends_with(b"{") {
            self.out.push(b',');
        }
        push_json(self.out, name);
        self.out.push(b':');
    }

    /// Adds a [`key!`]. Inlined, so that its length is known.
    #[inline(always)]
    fn key(&mut self, key: &'static [u8]) {
        match self.out.ends_with(b"{") {
            true => self.out.extend_from_slice(key.get(1..).unwrap_or_default()),
            false => self.out.extend_from_slice(key),
        }
    }

    #[inline(always)]
    fn text(&mut self, field: &LogField, key: &'static [u8], value: &[u8]) {
        match self.rule(field) {
            None => {
                self.key(key);
                push_json(self.out, value);
            }
            rule => self.ruled_text(rule, name_in(key), value),
        }
    }

    fn ruled_text(&mut self, rule: Option<&FieldAction>, name: &[u8], value: &[u8]) {
        match rule {
            None => {
                self.named_key(name);
                push_json(self.out, value);
            }
            Some(FieldAction::Delete) => {}
            Some(FieldAction::Rename(other)) => {
                self.named_key(other.as_bytes());
                push_json(self.out, value);
            }
            Some(rule) => {
                self.named_key(name);
                push_json(self.out, &filter::changed(rule, self.filter, value));
            }
        }
    }

    /// A number or a truth value: as in Caddy, only what does not look at the value applies.
    #[inline(always)]
    fn plain(&mut self, field: &LogField, key: &'static [u8], value: impl FnOnce(&mut Vec<u8>)) {
        if self.begins(field, key) {
            value(self.out);
        }
    }

    #[inline(always)]
    fn object(&mut self, field: &LogField, key: &'static [u8], fill: impl FnOnce(&mut Self)) {
        if self.begins(field, key) {
            self.out.push(b'{');
            fill(self);
            self.out.push(b'}');
        }
    }

    /// Adds the key of a field that is no text; false where a rule has added all of it, or left it out.
    #[inline(always)]
    fn begins(&mut self, field: &LogField, key: &'static [u8]) -> bool {
        match self.rule(field) {
            Some(FieldAction::Delete) => return false,
            Some(FieldAction::Replace(text)) => {
                self.key(key);
                push_json(self.out, text.as_bytes());
                return false;
            }
            Some(FieldAction::Rename(other)) => self.named_key(other.as_bytes()),
            _ => self.key(key),
        }
        true
    }

    /// The header fields of a message.
    fn fields<'a, I: Iterator<Item = (&'a [u8], &'a [u8])>>(
        &mut self,
        fields: impl Fn() -> I,
        line: &EntryFormat,
        find: for<'r> fn(&'r Filter, &[u8]) -> Option<&'r FieldAction>,
    ) {
        if self.filter.is_some() {
            return self.merged_fields(&fields().collect::<Vec<_>>(), line, find);
        }
        let begin = self.out.len();
        let mut names = Names::default();
        for (number, (name, value)) in fields().enumerate() {
            if names.may_have(name) && fields().take(number).any(|(other, _)| is_same_name(other, name)) {
                self.out.truncate(begin);
                return self.merged_fields(&fields().collect::<Vec<_>>(), line, find);
            }
            self.out.extend_from_slice(if number == 0 { b"\"" } else { b",\"" });
            push_json_text(self.out, name);
            self.out.extend_from_slice(b"\":[\"");
            push_json_text(self.out, line.shown(name, value));
            self.out.extend_from_slice(b"\"]");
        }
    }

    /// Fields of one name become one array; a head holds a bounded number of them.
    fn merged_fields(
        &mut self,
        fields: &[(&[u8], &[u8])],
        line: &EntryFormat,
        find: for<'r> fn(&'r Filter, &[u8]) -> Option<&'r FieldAction>,
    ) {
        for (number, (name, first)) in fields.iter().enumerate() {
            let is_same = |(other, _): &&(&[u8], &[u8])| is_same_name(other, name);
            if fields.iter().take(number).any(|field| is_same(&field)) {
                continue;
            }
            let later = fields.iter().skip(number + 1).filter(is_same).map(|(_, value)| *value);
            let mut values = std::iter::once(*first).chain(later).map(|value| line.shown(name, value));
            match self.filter.and_then(|filter| find(filter, name)) {
                None => {
                    self.named_key(name);
                    push_list(self.out, values);
                }
                Some(FieldAction::Delete) => {}
                Some(FieldAction::Rename(other)) => {
                    self.named_key(other.as_bytes());
                    push_list(self.out, values);
                }
                // As in Caddy, one text takes the place of the list.
                Some(FieldAction::Replace(text)) => {
                    self.named_key(name);
                    push_json(self.out, text.as_bytes());
                }
                Some(FieldAction::Cookie(rules)) if !values.clone().any(|value| value == super::REDACTED) => {
                    let cookies = filter::cookies(rules, &mut values);
                    self.named_key(name);
                    push_list(self.out, cookies.iter().map(Vec::as_slice));
                }
                Some(FieldAction::Cookie(_)) => {
                    self.named_key(name);
                    push_list(self.out, values);
                }
                Some(rule) => {
                    let changed: Vec<_> =
                        values.map(|value| filter::changed(rule, self.filter, value)).collect();
                    self.named_key(name);
                    push_list(self.out, changed.iter().map(AsRef::as_ref));
                }
            }
        }
    }
}

/// The name in a [`key!`].
fn name_in(key: &'static [u8]) -> &'static [u8] {
    key.get(2..key.len().saturating_sub(2)).unwrap_or_default()
}

/// Names that have come, so that few of them are compared with each other: a bit for each length and last letter.
#[derive(Default)]
struct Names(u64);

impl Names {
    /// False only if none of the names before was the same.
    fn may_have(&mut self, name: &[u8]) -> bool {
        // In lower case, where it is a letter.
        let last = name.last().map_or(0, |byte| usize::from(byte | 0x20));
        let bit = 1 << ((name.len() * 7 + last) % 64);
        let may_have = self.0 & bit != 0;
        self.0 |= bit;
        may_have
    }
}

fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.eq_ignore_ascii_case(other)
}

/// Seconds with their nanoseconds.
fn push_seconds(out: &mut Vec<u8>, time: Duration) {
    push_number(out, time.as_secs());
    out.push(b'.');
    push_filled(out, time.subsec_nanos(), 9);
}

/// A list of texts.
pub(super) fn push_list<'v>(out: &mut Vec<u8>, values: impl Iterator<Item = &'v [u8]>) {
    out.push(b'[');
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_json(out, value);
    }
    out.push(b']');
}

/// The header fields of a message as an object.
pub(super) fn push_fields<'a, I: Iterator<Item = (&'a [u8], &'a [u8])>>(
    out: &mut Vec<u8>,
    fields: impl Fn() -> I,
    line: &EntryFormat,
) {
    out.push(b'{');
    Writer { out, filter: None }.fields(fields, line, Filter::request_header);
    out.push(b'}');
}
