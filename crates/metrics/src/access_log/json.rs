//! Lines as JSON, shaped like Caddy's. Where a `format filter` has a rule for a field, the rule decides.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use onehop_config::checked::{FieldAction, LogField, LogTime};
use onehop_http1::RequestHead;

use super::filter::{self, Filter};
use super::{Entry, EntryFormat, time};
use crate::json_string::{push_address, push_filled, push_json, push_number};

/// A line in the making.
struct Writer<'o, 'f> {
    out: &'o mut String,
    filter: Option<&'f Filter>,
}

/// Adds the line of a request.
pub(super) fn line(
    entry: &Entry<'_>,
    line: &EntryFormat,
    at: SystemTime,
    form: LogTime,
    filter: Option<&Filter>,
    out: &mut String,
) {
    let level = if entry.is_error() { "error" } else { "info" };
    out.push_str("{\"level\":\"");
    out.push_str(level);
    out.push_str("\",\"ts\":");
    time::push(out, at, form, "\"");
    out.push_str(",\"logger\":");
    push_json(out, line.logger.as_bytes());
    out.push_str(",\"msg\":\"");
    out.push_str(entry.message());
    out.push('"');
    let mut writer = Writer { out, filter };
    writer.object(&LogField::Request, "request", |writer| writer.request(entry, line));
    writer.plain(&LogField::Duration, "duration", |out| push_seconds(out, entry.took));
    writer.plain(&LogField::Size, "size", |out| push_number(out, entry.sent));
    writer.plain(&LogField::Status, "status", |out| push_number(out, entry.response.status.into()));
    if let Some(id) = entry.id {
        writer.plain(&LogField::RequestId, "request_id", |out| _ = write!(out, "\"{id:016x}\""));
    }
    if let Some(upstream) = entry.upstream {
        writer.text(&LogField::Upstream, "upstream", upstream.as_bytes());
    }
    if let Some(error) = entry.error {
        writer.text(&LogField::Refused, "refused", error.name().as_bytes());
        if let Some(detail) = error.detail().or(entry.reason) {
            writer.text(&LogField::Detail, "detail", detail.as_bytes());
        }
    }
    if let Some(id) = entry.error_id {
        writer.text(&LogField::ErrorId, "err_id", &id);
    }
    if entry.aborted {
        writer.plain(&LogField::Aborted, "aborted", |out| out.push_str("true"));
    }
    writer.object(&LogField::ResponseHeaders, "resp_headers", |writer| {
        writer.fields(entry.response.fields.iter(), line, Filter::response_header);
    });
    for (number, (key, value)) in entry.appended.iter().enumerate() {
        // The last one of a name counts.
        if entry.appended.iter().skip(number + 1).all(|(later, _)| later != key) {
            let rule = filter.and_then(|filter| filter.appended(key));
            writer.ruled_text(rule, key.as_bytes(), value);
        }
    }
    writer.out.push_str("}\n");
}

impl Writer<'_, '_> {
    fn request(&mut self, entry: &Entry<'_>, line: &EntryFormat) {
        match (entry.origin.peer, entry.client) {
            (Some(peer), Some(client)) if self.filter.is_none() => {
                self.out.push_str("\"remote_ip\":\"");
                push_address(self.out, peer.ip().to_canonical());
                self.out.push_str("\",\"remote_port\":\"");
                push_number(self.out, peer.port().into());
                self.out.push_str("\",\"client_ip\":\"");
                push_address(self.out, client);
                self.out.push('"');
            }
            (peer, client) => {
                let shown = |address: Option<IpAddr>| {
                    address.map_or_else(|| "@".to_owned(), |address| address.to_string())
                };
                let ip = shown(peer.map(|peer| peer.ip().to_canonical()));
                let port = peer.map_or_else(String::new, |peer| peer.port().to_string());
                self.text(&LogField::RemoteIp, "remote_ip", ip.as_bytes());
                self.text(&LogField::RemotePort, "remote_port", port.as_bytes());
                self.text(&LogField::ClientIp, "client_ip", shown(client).as_bytes());
            }
        }
        if let Some(head) = entry.head {
            self.head(head, line);
        }
    }

    fn head(&mut self, head: &RequestHead, line: &EntryFormat) {
        self.text(&LogField::Protocol, "proto", head.version().name().as_bytes());
        self.text(&LogField::Method, "method", head.method_bytes());
        self.text(&LogField::Host, "host", head.host().unwrap_or_default());
        self.text(&LogField::Uri, "uri", head.target());
        self.object(&LogField::RequestHeaders, "headers", |writer| {
            writer.fields(head.fields(), line, Filter::request_header);
        });
    }

    fn rule(&self, field: &LogField) -> Option<&FieldAction> {
        self.filter.and_then(|filter| filter.rule(field))
    }

    fn key(&mut self, name: &[u8]) {
        // No value ends so: this is the first field of its object.
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        push_json(self.out, name);
        self.out.push(':');
    }

    /// A name that needs no escape. Inlined, so that its length is known.
    #[inline(always)]
    fn literal_key(&mut self, name: &'static str) {
        self.out.push_str(if self.out.ends_with('{') { "\"" } else { ",\"" });
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    #[inline(always)]
    fn text(&mut self, field: &LogField, name: &'static str, value: &[u8]) {
        match self.filter.and_then(|filter| filter.rule(field)) {
            None => {
                self.literal_key(name);
                push_json(self.out, value);
            }
            rule => self.ruled_text(rule, name.as_bytes(), value),
        }
    }

    fn ruled_text(&mut self, rule: Option<&FieldAction>, name: &[u8], value: &[u8]) {
        match rule {
            None => {
                self.key(name);
                push_json(self.out, value);
            }
            Some(FieldAction::Delete) => {}
            Some(FieldAction::Rename(other)) => {
                self.key(other.as_bytes());
                push_json(self.out, value);
            }
            Some(rule) => {
                self.key(name);
                push_json(self.out, &filter::changed(rule, self.filter, value));
            }
        }
    }

    /// A number or a truth value: as in Caddy, only what does not look at the value applies.
    fn plain(&mut self, field: &LogField, name: &'static str, value: impl FnOnce(&mut String)) {
        match self.rule(field).cloned() {
            Some(FieldAction::Delete) => {}
            Some(FieldAction::Replace(text)) => {
                self.key(name.as_bytes());
                push_json(self.out, text.as_bytes());
            }
            rule => {
                match rule {
                    Some(FieldAction::Rename(other)) => self.key(other.as_bytes()),
                    _ => self.literal_key(name),
                }
                value(self.out);
            }
        }
    }

    fn object(&mut self, field: &LogField, name: &'static str, fill: impl FnOnce(&mut Self)) {
        match self.rule(field).cloned() {
            Some(FieldAction::Delete) => return,
            Some(FieldAction::Replace(text)) => {
                self.key(name.as_bytes());
                push_json(self.out, text.as_bytes());
                return;
            }
            Some(FieldAction::Rename(other)) => self.key(other.as_bytes()),
            _ => self.literal_key(name),
        }
        self.out.push('{');
        fill(self);
        self.out.push('}');
    }

    /// Fields of one name become one array; a head holds a bounded number of them.
    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        line: &EntryFormat,
        find: for<'r> fn(&'r Filter, &[u8]) -> Option<&'r FieldAction>,
    ) {
        let fields: Vec<_> = fields.collect();
        for (number, (name, first)) in fields.iter().enumerate() {
            let is_same =
                |(other, _): &&(&[u8], &[u8])| other.len() == name.len() && other.eq_ignore_ascii_case(name);
            if fields.iter().take(number).any(|field| is_same(&field)) {
                continue;
            }
            let later = fields.iter().skip(number + 1).filter(is_same).map(|(_, value)| *value);
            let mut values = std::iter::once(*first).chain(later).map(|value| line.shown(name, value));
            match self.filter.and_then(|filter| find(filter, name)) {
                None => {
                    self.key(name);
                    push_list(self.out, values);
                }
                Some(FieldAction::Delete) => {}
                Some(FieldAction::Rename(other)) => {
                    self.key(other.as_bytes());
                    push_list(self.out, values);
                }
                // As in Caddy, one text takes the place of the list.
                Some(FieldAction::Replace(text)) => {
                    self.key(name);
                    push_json(self.out, text.as_bytes());
                }
                Some(FieldAction::Cookie(rules)) if !values.clone().any(|value| value == super::REDACTED) => {
                    let cookies = filter::cookies(rules, &mut values);
                    self.key(name);
                    push_list(self.out, cookies.iter().map(Vec::as_slice));
                }
                Some(FieldAction::Cookie(_)) => {
                    self.key(name);
                    push_list(self.out, values);
                }
                Some(rule) => {
                    let changed: Vec<_> =
                        values.map(|value| filter::changed(rule, self.filter, value)).collect();
                    self.key(name);
                    push_list(self.out, changed.iter().map(AsRef::as_ref));
                }
            }
        }
    }
}

/// Seconds with their nanoseconds.
fn push_seconds(out: &mut String, time: Duration) {
    push_number(out, time.as_secs());
    out.push('.');
    push_filled(out, time.subsec_nanos(), 9);
}

/// A list of texts.
pub(super) fn push_list<'v>(out: &mut String, values: impl Iterator<Item = &'v [u8]>) {
    out.push('[');
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_json(out, value);
    }
    out.push(']');
}

/// The header fields of a message as an object.
pub(super) fn push_fields<'a>(
    out: &mut String,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    line: &EntryFormat,
) {
    out.push('{');
    Writer { out, filter: None }.fields(fields, line, Filter::request_header);
    out.push('}');
}
