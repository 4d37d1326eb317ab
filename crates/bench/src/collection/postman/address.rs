//! A request's URL, as text or in parts.

use std::collections::BTreeMap;

use onehop_load::url::{Url, UrlError};
use serde_json::Value;

use super::{Reader, is_disabled, list_of};
use crate::collection::encode;
use crate::collection::problem::Problem;
use crate::collection::variables::text_of;

impl Reader<'_> {
    /// Where a request goes, with one more parameter where an API key belongs there.
    pub(super) fn url(
        &mut self,
        url: &Value,
        parameter: Option<(String, String)>,
        request: &str,
    ) -> Result<Url, Problem> {
        let text = match url {
            Value::String(text) => text.clone(),
            Value::Object(_) if url.get("host").is_some_and(|host| !host.is_null()) => {
                self.put_together(url, request)
            }
            Value::Object(_) => url.get("raw").map(text_of).unwrap_or_default(),
            _ => String::new(),
        };
        if text.trim().is_empty() {
            return Err(Problem::new("it has no URL", "Give it one in Postman."));
        }
        let filled = self.variables.fill(&text)?;
        let mut filled = filled.trim().to_owned();
        if let Some((key, value)) = parameter {
            filled = with_parameter(&filled, &key, &value);
        }
        Url::parse(&encode::url(&filled)).map_err(|error| {
            let next = match &error {
                UrlError::Malformed { why, .. } if why.contains("--user") => "Use Postman's Basic Auth.",
                _ => "Mend the URL in Postman, or the variable in it.",
            };
            Problem::new(error.to_string(), next)
        })
    }

    /// A URL of its parts. The parts count and not `raw`, which is only how Postman shows them.
    fn put_together(&mut self, url: &Value, request: &str) -> String {
        let mut text = String::new();
        if let Some(protocol) = url.get("protocol").map(text_of).filter(|protocol| !protocol.is_empty()) {
            text.push_str(protocol.trim_end_matches("://"));
            text.push_str("://");
        }
        text.push_str(&joined(url.get("host"), "."));
        if let Some(port) = url.get("port").map(text_of).filter(|port| !port.is_empty()) {
            text.push(':');
            text.push_str(&port);
        }
        let path = joined(url.get("path"), "/");
        let values = values_of(list_of(url, "variable"));
        let segments: Vec<String> = path
            .trim_start_matches('/')
            .split('/')
            .map(|segment| match path_variable(segment) {
                Some(name) => match values.get(name) {
                    Some(value) => {
                        format!("{value}{}", segment.get(name.len() + 1..).unwrap_or_default())
                    }
                    None => {
                        self.notes
                            .push(&format!("`{request}`: `:{name}` has no value and is sent as it stands"));
                        segment.to_owned()
                    }
                },
                None => segment.to_owned(),
            })
            .collect();
        text.push('/');
        text.push_str(&segments.join("/"));
        let query: Vec<String> = match url.get("query") {
            Some(Value::String(query)) => vec![query.clone()],
            _ => list_of(url, "query").iter().filter(|query| !is_disabled(query)).map(parameter).collect(),
        };
        if !query.is_empty() {
            text.push('?');
            text.push_str(&query.join("&"));
        }
        text
    }
}

/// `key=value`, or `key` alone where there is no value.
fn parameter(entry: &Value) -> String {
    let part = |name| entry.get(name).filter(|part| !part.is_null()).map(text_of);
    let key = escaped(&part("key").unwrap_or_default(), true);
    match part("value") {
        Some(value) => format!("{key}={}", escaped(&value, false)),
        None => key,
    }
}

/// What would end a parameter is percent-encoded, outside of variables' names.
fn escaped(text: &str, is_key: bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (plain, name) =
            match rest.find("{{").and_then(|at| Some((at, at + rest.get(at..)?.find("}}")? + 2))) {
                Some((begin, end)) => {
                    let parts = (rest.get(..begin), rest.get(begin..end));
                    rest = rest.get(end..).unwrap_or_default();
                    (parts.0.unwrap_or_default(), parts.1.unwrap_or_default())
                }
                None => (std::mem::take(&mut rest), ""),
            };
        for letter in plain.chars() {
            match letter {
                '&' => out.push_str("%26"),
                '#' => out.push_str("%23"),
                '=' if is_key => out.push_str("%3D"),
                letter => out.push(letter),
            }
        }
        out.push_str(name);
    }
    out
}

/// A URL with one more parameter, in place of others of its name.
fn with_parameter(url: &str, key: &str, value: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some(key);
    let mut pairs: Vec<String> = query.split('&').filter(is_other).map(str::to_owned).collect();
    pairs.push(format!("{}={}", escaped(key, true), escaped(value, false)));
    format!("{before}?{}", pairs.join("&"))
}

/// The name in a segment `:name` or `:name.suffix`.
fn path_variable(segment: &str) -> Option<&str> {
    let name = segment.strip_prefix(':')?.split('.').next()?;
    (!name.is_empty()).then_some(name)
}

/// The values of path variables by name; of several with one name the first.
fn values_of(variables: &[Value]) -> BTreeMap<&str, String> {
    let mut values = BTreeMap::new();
    for entry in variables.iter().filter(|entry| !is_disabled(entry)) {
        let name = entry.get("key").or_else(|| entry.get("id")).and_then(Value::as_str);
        let value = entry.get("value").map(text_of).filter(|value| !value.is_empty());
        if let (Some(name), Some(value)) = (name, value) {
            values.entry(name).or_insert(value);
        }
    }
    values
}

/// Text, or a list of texts (or of `{"value": …}`) put together.
fn joined(parts: Option<&Value>, between: &str) -> String {
    match parts {
        Some(Value::Array(parts)) => {
            let text = |part: &Value| part.get("value").map_or_else(|| text_of(part), text_of);
            parts.iter().map(text).collect::<Vec<_>>().join(between)
        }
        Some(other) => text_of(other),
        None => String::new(),
    }
}
