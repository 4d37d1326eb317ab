//! What is asked in each case, and the one answer that counts: status, content type and bytes.
//!
//! The values are those of benchmarks/servers/app/work.mjs. This file must never accept an answer that
//! differs between two arms.

use std::net::SocketAddr;

use serde_json::Value;

use crate::{Outcome, ground};

use super::super::probe::{self, Answer};

/// Bytes of the content that `Asked::Stream` gets.
const STREAM_BYTES: usize = 1024 * 1024;
/// Bytes of the body that `Asked::Upload` sends.
const UPLOAD_BYTES: usize = 50 * 1024 * 1024;
/// Bytes of the body that `Asked::Echo` sends.
const ECHO_BYTES: usize = 1024;

const JSON_TYPE: &str = "application/json; charset=utf-8";
const BYTES_TYPE: &str = "application/octet-stream";
const ITEM: &str =
    r#"{"id":"42","name":"A thing among others","price":1999,"tags":["small","green"],"available":true}"#;
const TOKEN: &str = "c2f1a9d4";

/// What a browser sends with a request that a page's script makes, beside Host and Connection.
const BROWSER_FIELDS: [(&str, &str); 12] = [
    ("Accept", "application/json, text/plain, */*"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Language", "en-GB,en;q=0.9,de;q=0.8"),
    ("Cache-Control", "no-cache"),
    ("Cookie", "session=7b1f0c5e4a6d49d6a3c2b8e1f0a9d7c6; theme=dark; consent=1"),
    ("Priority", "u=1, i"),
    ("Referer", "http://localhost/items/42"),
    ("Sec-Fetch-Dest", "empty"),
    ("Sec-Fetch-Mode", "cors"),
    ("Sec-Fetch-Site", "same-origin"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    ("X-Requested-With", "XMLHttpRequest"),
];

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// A small JSON answer, with no field but Host.
    Item,
    /// The same with what a browser sends.
    ItemFromBrowser,
    /// A JSON body of 1 KiB, of which one field comes back.
    Echo,
    /// 100 us of work.
    Burn,
    /// 1 MiB in pieces.
    Stream,
    /// A body of 50 MiB, whose bytes the handler counts.
    Upload,
}

/// The questions with what had to be found out or written for them.
pub(super) struct Questions {
    /// Steps of `Asked::Burn`, so many that they take 100 us here.
    pub(super) burn_rounds: u64,
    burnt: i64,
}

impl Asked {
    pub(super) fn path(self) -> &'static str {
        match self {
            Asked::Item | Asked::ItemFromBrowser => "/api/items/42",
            Asked::Echo => "/api/echo",
            Asked::Burn => "/api/burn",
            Asked::Stream => "/api/stream",
            Asked::Upload => "/api/upload",
        }
    }

    /// Header fields beside what the client always sends.
    pub(super) fn fields(self) -> Vec<(String, String)> {
        let fields: &[(&str, &str)] = match self {
            Asked::ItemFromBrowser => &BROWSER_FIELDS,
            Asked::Echo => &[("Content-Type", "application/json")],
            Asked::Upload => &[("Content-Type", BYTES_TYPE)],
            Asked::Item | Asked::Burn | Asked::Stream => &[],
        };
        fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Bytes that one request moves, where the case is about them.
    pub(super) fn moved_bytes(self) -> Option<u64> {
        match self {
            Asked::Stream => Some(STREAM_BYTES as u64),
            Asked::Upload => Some(UPLOAD_BYTES as u64),
            Asked::Item | Asked::ItemFromBrowser | Asked::Echo | Asked::Burn => None,
        }
    }
}

impl Questions {
    /// Measures how many steps 100 us are.
    pub(super) fn prepare(node: &str) -> Outcome<Questions> {
        let script = ground::root().join("benchmarks/servers/app/calibrate.mjs").display().to_string();
        let text =
            ground::output_of(node, &[&script]).ok_or_else(|| format!("{node} cannot run {script}"))?;
        let value: Value = serde_json::from_str(&text)?;
        Ok(Questions {
            burn_rounds: value["rounds"].as_u64().ok_or("no number of steps")?,
            burnt: value["burnt"].as_i64().ok_or("no result of the steps")?,
        })
    }

    /// What the load sends where that is not a GET.
    pub(super) fn body(&self, asked: Asked) -> Option<Vec<u8>> {
        match asked {
            Asked::Echo => Some(echo_body()),
            Asked::Upload => Some(vec![b'u'; UPLOAD_BYTES]),
            Asked::Item | Asked::ItemFromBrowser | Asked::Burn | Asked::Stream => None,
        }
    }

    /// Uploads once as the load does, and looks at the answer: the load sees its status only.
    pub(super) fn complaint_of_upload(&self, address: SocketAddr) -> Outcome<Option<String>> {
        let owned = Asked::Upload.fields();
        let fields: Vec<(&str, String)> =
            owned.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let body = self.body(Asked::Upload).unwrap_or_default();
        let answer = probe::ask(address, "POST", Asked::Upload.path(), &fields, Some(&body))?;
        let is_right = answer.status == 200 && answer.body == self.expected_body(Asked::Upload);
        let text =
            || format!("answers an upload {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        Ok((!is_right).then(text))
    }

    /// Asks once. An upload is asked with a short body here.
    pub(super) fn ask(&self, asked: Asked, address: SocketAddr) -> Outcome<Answer> {
        let owned = asked.fields();
        let fields: Vec<(&str, String)> =
            owned.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        match asked {
            Asked::Echo => probe::ask(address, "POST", asked.path(), &fields, Some(&echo_body())),
            Asked::Upload => probe::ask(address, "POST", asked.path(), &fields, Some(&[b'u'; ECHO_BYTES])),
            _ => probe::get(address, asked.path(), &fields),
        }
    }

    /// The content that every arm must send.
    pub(super) fn expected_body(&self, asked: Asked) -> Vec<u8> {
        match asked {
            Asked::Item | Asked::ItemFromBrowser => ITEM.as_bytes().to_vec(),
            Asked::Echo => format!("{{\"token\":\"{TOKEN}\"}}").into_bytes(),
            Asked::Burn => format!("{{\"burnt\":{}}}", self.burnt).into_bytes(),
            Asked::Stream => vec![b'o'; STREAM_BYTES],
            Asked::Upload => format!("{{\"bytes\":{UPLOAD_BYTES}}}").into_bytes(),
        }
    }

    /// What is wrong with an answer to `ask`, if anything: a measurement of the wrong answer is void.
    pub(super) fn complaint(&self, asked: Asked, answer: &Answer) -> Option<String> {
        if answer.status != 200 {
            return Some(format!("answers {}", answer.status));
        }
        let wanted = if asked == Asked::Stream { BYTES_TYPE } else { JSON_TYPE };
        let content_type = answer.field("content-type").unwrap_or_default();
        if content_type != wanted {
            return Some(format!("its content type is {content_type:?} instead of {wanted:?}"));
        }
        let expected = match asked {
            Asked::Upload => format!("{{\"bytes\":{ECHO_BYTES}}}").into_bytes(),
            _ => self.expected_body(asked),
        };
        let start = String::from_utf8_lossy(&answer.body[..answer.body.len().min(80)]).into_owned();
        (answer.body != expected).then(|| format!("sends another content: {start}"))
    }
}

/// JSON of exactly `ECHO_BYTES`.
fn echo_body() -> Vec<u8> {
    let head = format!("{{\"token\":\"{TOKEN}\",\"padding\":\"");
    let padding = "p".repeat(ECHO_BYTES.saturating_sub(head.len() + 2));
    format!("{head}{padding}\"}}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_that_is_sent_is_json_of_its_promised_size() {
        assert_eq!(echo_body().len(), ECHO_BYTES);
        assert_eq!(serde_json::from_slice::<Value>(&echo_body()).unwrap()["token"], TOKEN);
        serde_json::from_str::<Value>(ITEM).unwrap();
    }
}
