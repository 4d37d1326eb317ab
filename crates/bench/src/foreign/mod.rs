//! The command lines of wrk, ab, autocannon, oha, hey, k6 and h2load, so that a command written for one of them works unchanged.
//!
//! Pure: words in, what they ask for out. Owns these tools' options, with their own defaults. Never takes an
//! option for another, and never drops one in silence that would change the figures: it is an error that says what
//! to do instead, or a note. Reads no file and opens no connection; whoever called does.

mod ab;
mod autocannon;
mod options;
mod table;
mod wrk;

use std::path::PathBuf;
use std::time::Duration;

use onehop_load::plan::{Protocol, Reuse, Timeouts};

/// Whose options they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// wrk 4, and the rate of wrk2.
    Wrk,
    /// ApacheBench 2.3.
    Ab,
    /// autocannon 8.
    Autocannon,
    /// oha 1.
    Oha,
    /// hey 0.1.
    Hey,
    /// k6, with a URL in the place of its script.
    K6,
    /// h2load 1, of nghttp2.
    H2load,
}

/// What such a command asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The URLs, as typed.
    pub urls: Vec<String>,
    /// Connections.
    pub connections: usize,
    /// Threads of the load.
    pub threads: usize,
    /// How long.
    pub time: Option<Duration>,
    /// How many requests.
    pub requests: Option<u64>,
    /// Requests per second over all connections, evenly: an open loop.
    pub rate: Option<f64>,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// The method.
    pub method: String,
    /// Header fields.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Option<Body>,
    /// How long a connection is used.
    pub reuse: Reuse,
    /// How long is waited for what.
    pub timeouts: Timeouts,
    /// A Unix socket in the place of the URL's host.
    pub socket: Option<PathBuf>,
    /// Load before the measurement.
    pub warm_up: Duration,
    /// A program to start; it is asked where it listens.
    pub start: Option<Vec<String>>,
    /// The result as JSON to standard output.
    pub is_json: bool,
    /// No view of the progress.
    pub is_quiet: bool,
    /// Options of ours that stood among theirs, each as one word: `--html=report.html`.
    pub ours: Vec<String>,
    /// What is done in another way than that tool does it, for people.
    pub notes: Vec<String>,
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// This text.
    Text(String),
    /// What this file holds.
    File(PathBuf),
}

/// Why such a command is not understood. Its text is for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tool}: {why}")]
pub struct ForeignError {
    tool: &'static str,
    why: String,
}

/// Reads the words that followed the tool's name. `port` is the variable `PORT`, which autocannon makes URLs of.
///
/// # Errors
/// For what the tool itself would refuse, and for what is not done here, with what to do instead.
pub fn read(tool: Tool, words: &[String], port: Option<u16>) -> Result<Options, ForeignError> {
    match tool {
        Tool::Wrk => wrk::read(words),
        Tool::Ab => ab::read(words),
        Tool::Autocannon => autocannon::read(words, port),
        Tool::Oha | Tool::Hey | Tool::K6 | Tool::H2load => table::read(tool, words),
    }
}

impl Tool {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Wrk => "wrk",
            Tool::Ab => "ab",
            Tool::Autocannon => "autocannon",
            Tool::Oha => "oha",
            Tool::Hey => "hey",
            Tool::K6 => "k6",
            Tool::H2load => "h2load",
        }
    }

    fn wrong(self, why: impl Into<String>) -> ForeignError {
        ForeignError { tool: self.name(), why: why.into() }
    }
}

impl Options {
    /// One request after the other to nobody, without a limit: each tool puts its own defaults over it.
    fn nothing() -> Options {
        Options {
            urls: Vec::new(),
            connections: 1,
            threads: 1,
            time: None,
            requests: None,
            rate: None,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            reuse: Reuse::Kept,
            timeouts: Timeouts::default(),
            socket: None,
            warm_up: Duration::ZERO,
            start: None,
            is_json: false,
            is_quiet: false,
            ours: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn read(tool: Tool, line: &str) -> Options {
        super::read(tool, &words(line), None).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(super) fn refused(tool: Tool, line: &str) -> String {
        super::read(tool, &words(line), None).expect_err(line).to_string()
    }

    #[test]
    fn no_words_make_it_panic() {
        let odd = ["-", "--", "-c", "-c=", "--=", "---", "[", "]", "-W", "é", "-é", "", "--html", "-H", ":"];
        for tool in [Tool::Wrk, Tool::Ab, Tool::Autocannon, Tool::Oha, Tool::Hey, Tool::K6, Tool::H2load] {
            for first in odd {
                for second in odd {
                    let words = [first.to_owned(), second.to_owned(), "http://a/".to_owned()];
                    let _ = super::read(tool, &words, Some(80));
                }
            }
        }
    }
}
