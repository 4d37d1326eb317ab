//! Recordings of a browser: HAR 1.2.
//!
//! Owns making requests of entries. What belongs to the recorded connection (pseudo-header fields, framing) is left
//! out; the status that was recorded is the one that is expected.

use onehop_load::plan::{Expect, Protocol, Request};
use onehop_load::url::Url;
use serde::Deserialize;

use super::kind::of_json;
use super::limits::REQUESTS_MAX;
use super::notes::Notes;
use super::problem::{Problem, printable};
use super::{Collection, check, encode, nowhere};

/// Only what is read; recorded answers may be many times as large and are passed over.
#[derive(Debug, Deserialize)]
struct Har {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    entries: Vec<Entry>,
    #[serde(default)]
    pages: Vec<Page>,
}

#[derive(Debug, Deserialize)]
struct Page {
    #[serde(default)]
    title: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    request: HarRequest,
    #[serde(default)]
    response: Option<HarResponse>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
    #[serde(default)]
    body_size: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct HarResponse {
    #[serde(default)]
    status: f64,
}

pub(super) fn read(text: &str) -> Result<Collection, Problem> {
    let har: Har = serde_json::from_str(text).map_err(|error| of_json(&error))?;
    let mut requests = Vec::new();
    let mut notes = Notes::default();
    for (index, entry) in har.log.entries.into_iter().enumerate() {
        let place = format!("/log/entries/{index}");
        let status = entry.response.map_or(0.0, |response| response.status);
        // An upgrade's answer is no answer, and what follows it no request.
        if status == 101.0 || entry.request.url.starts_with("ws:") || entry.request.url.starts_with("wss:") {
            notes.push("WebSockets were recorded too: they are left out");
            continue;
        }
        let url = match Url::parse(&encode::url(&entry.request.url)) {
            Ok(url) => url,
            Err(_) if is_local(&entry.request.url) => {
                notes.push("what the browser had itself (data:, blob:, extensions) is left out");
                continue;
            }
            Err(error) => {
                return Err(Problem::at(place, error.to_string(), "Remove the entry from the recording."));
            }
        };
        if requests.len() == REQUESTS_MAX {
            let cause = format!("there are more than {REQUESTS_MAX} requests");
            return Err(Problem::at(place, cause, "Record a shorter time."));
        }
        let request = request(entry.request, url, expected(status), &mut notes);
        check(&request, "Remove the entry from the recording.").map_err(|problem| problem.placed(place))?;
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(Problem::at(
            "/log/entries",
            "no request over http or https is in it",
            "Record again, and export with content.",
        ));
    }
    let title = har.log.pages.into_iter().find_map(|page| page.title);
    // A title that is an address is the browser's, and says less than the file's name.
    let name = title.filter(|title| !title.contains("://")).unwrap_or_default();
    let name = printable(&name);
    Ok(Collection { name, requests, notes: notes.into_lines(), varying: Default::default() })
}

fn request(request: HarRequest, url: Url, expect: Expect, notes: &mut Notes) -> Request {
    let method = request.method;
    let name = format!("{method} {}", url.path);
    let mut fields: Vec<(String, String)> = Vec::new();
    for Pair { name, value } in request.headers {
        let value = value.unwrap_or_default();
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // RFC 9113 section 8.3: not fields but the request line of HTTP/2. The others belong to the connection.
        if name.starts_with(':')
            || is("host")
            || is("content-length")
            || is("connection")
            || is("transfer-encoding")
        {
            continue;
        }
        // RFC 9113 section 8.2.3: HTTP/2 may cut the cookies up, HTTP/1 has one field.
        match fields.iter_mut().find(|(known, _)| is("cookie") && known.eq_ignore_ascii_case("cookie")) {
            Some((_, cookies)) => {
                cookies.push_str("; ");
                cookies.push_str(&value);
            }
            None => fields.push((name, value)),
        }
    }
    let is_sent = request.post_data.is_some() || request.body_size.is_some_and(|size| size > 0.0);
    let body = request.post_data.and_then(|data| body(data, &mut fields));
    if body.is_none() && is_sent {
        notes.push(&format!("`{name}`: the body was not recorded, it is asked without"));
    }
    Request {
        name,
        url,
        address: nowhere(),
        tls: None,
        protocol: Protocol::Http1,
        method,
        fields,
        body,
        weight: 1,
        expect,
    }
}

/// The text as it was sent; of parameters alone, the form that they were.
fn body(data: PostData, fields: &mut Vec<(String, String)>) -> Option<Vec<u8>> {
    let text = match data.text.filter(|text| !text.is_empty()) {
        Some(text) => text,
        // Its boundary and its files are not in the parameters.
        None if data.mime_type.as_ref().is_some_and(|media| media.starts_with("multipart/")) => return None,
        None => {
            let mut text = String::new();
            for Pair { name, value } in &data.params {
                if !text.is_empty() {
                    text.push('&');
                }
                encode::form(name, &mut text);
                text.push('=');
                encode::form(value.as_deref().unwrap_or_default(), &mut text);
            }
            text
        }
    };
    if text.is_empty() {
        return None;
    }
    let has_type = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if let Some(media) = data.mime_type.filter(|media| !media.is_empty() && !has_type) {
        fields.push(("Content-Type".to_owned(), media));
    }
    Some(text.into_bytes())
}

/// The recorded status; 0 is an answer that never came.
fn expected(status: f64) -> Expect {
    match status as u16 {
        // Whether it is still so depends on what is held now, and both are an answer (RFC 9110 section 15.4.5).
        304 => Expect::Exactly(vec![200, 304]),
        status @ 100..=599 => Expect::Exactly(vec![status]),
        _ => Expect::Any,
    }
}

/// Addresses that never leave the browser.
fn is_local(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    matches!(scheme, "data" | "blob" | "about" | "file" | "filesystem" | "javascript")
        || scheme.ends_with("-extension")
        || scheme == "chrome"
}
