//! The servers of a comparison as they are typed: `[NAME=]URL`, or `[NAME=]'COMMAND [@ URL]'`.
//!
//! Pure: words in, arms out. Owns how the two are told apart.

use std::time::Duration;

use onehop_bench::compare::{Check, Source, Target};
use onehop_bench::shell_words;
use onehop_load::measure::Start;
use onehop_load::url::{Address, Endpoint, Url};

use super::requests::{RequestOptions, url_failure};
use crate::failure::Failure;

/// Longer commands are shortened where they serve as a name; people read it in the head of a table.
const NAME_LETTERS_MAX: usize = 32;

/// All of them; those without a name are called by what they are, and names differ.
pub(super) fn read(
    texts: &[String],
    url: &str,
    options: &RequestOptions,
    ready_within: Duration,
) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for text in texts {
        let mut target = read_one(text, url, options, ready_within)?;
        let plain = target.name.clone();
        let mut number = 1;
        while targets.iter().any(|other| other.name == target.name) {
            number += 1;
            target.name = format!("{plain} ({number})");
        }
        targets.push(target);
    }
    Ok(targets)
}

fn read_one(
    text: &str,
    url: &str,
    options: &RequestOptions,
    ready_within: Duration,
) -> Result<Target, Failure> {
    let (name, rest) = match text.split_once('=') {
        // `B=:8080` is a name; `PORT=3000 node server.js` and `env PORT=3000 node server.js` have none.
        Some((name, rest)) if is_name(name) && (Url::is_meant(rest.trim()) || !ends_in_variable(name)) => {
            (Some(name.trim().to_owned()), rest.trim())
        }
        _ => (None, text.trim()),
    };
    let name = name.unwrap_or_else(|| shortened(rest));
    if Url::is_meant(rest) {
        let url = Url::parse(rest).map_err(url_failure)?;
        return Ok(Target {
            name,
            source: Source::Running,
            requests: vec![options.to(url, 1)?],
            check: Check::default(),
        });
    }
    let (command, at) = match rest.rsplit_once(" @ ") {
        Some((command, at)) if Url::is_meant(at.trim()) || at.trim().starts_with('/') => {
            (command.trim(), at.trim())
        }
        _ => (rest, url),
    };
    if command.is_empty() {
        return Err(Failure::wrong(format!("`{text}` is neither a URL nor a command")));
    }
    let url = url_of(at)?;
    let (environment, command) = shell_words::variables(command);
    let words = shell_words::words(command).map_err(Failure::wrong)?;
    let reported_port = environment.iter().rfind(|(name, _)| name == "PORT").map(|(_, value)| value);
    let port = match &url.endpoint {
        Endpoint::Tcp { port: 0, .. } => {
            reported_port.and_then(|port| port.parse().ok()).filter(|port| *port != 0)
        }
        Endpoint::Tcp { port, .. } => Some(*port),
        Endpoint::Unix(_) => None,
    };
    let start = Start { words, environment, directory: None, port, behind: Vec::new(), ready_within };
    let mut request = options.to(url, 1)?;
    if let (Address::Tcp(address), Some(port)) = (&mut request.address, port) {
        address.set_port(port);
    }
    Ok(Target { name, source: Source::Command(start), requests: vec![request], check: Check::default() })
}

/// What a command is asked for: a path at its own port (0 stands for that), or a whole URL.
fn url_of(text: &str) -> Result<Url, Failure> {
    let text = if text.starts_with('/') { format!("http://127.0.0.1:0{text}") } else { text.to_owned() };
    Url::parse(&text).map_err(url_failure)
}

/// Before a `=`: short, and neither a path nor a command with an option of its own.
fn is_name(text: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || "-_. +".contains(letter);
    !text.is_empty()
        && text.chars().count() <= NAME_LETTERS_MAX
        && text.chars().all(plain)
        && !text.contains(" -")
        && !text.starts_with(['-', '.', ' '])
}

fn ends_in_variable(name: &str) -> bool {
    name.rsplit(' ').next().is_some_and(shell_words::is_variable)
}

fn shortened(text: &str) -> String {
    let text = text.strip_prefix("http://").unwrap_or(text);
    if text.chars().count() <= NAME_LETTERS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(NAME_LETTERS_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use onehop_load::plan::{Expect, Protocol};
    use onehop_load::tls;

    use super::*;

    fn target(text: &str) -> Target {
        let options = RequestOptions {
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            expect: Expect::Success,
            tls: tls::Client::default(),
            protocol: Protocol::Http1,
        };
        read_one(text, "/path", &options, Duration::from_secs(1)).unwrap()
    }

    fn start(text: &str) -> (String, Start, String) {
        let target = target(text);
        let Source::Command(start) = target.source else { panic!("{text} is a command") };
        (target.name, start, target.requests.first().unwrap().url.to_string())
    }

    #[test]
    fn urls_are_servers_that_run() {
        for (text, name, url) in [
            ("http://127.0.0.1:8080/a?b=c", "127.0.0.1:8080/a?b=c", "http://127.0.0.1:8080/a?b=c"),
            ("nginx=:8080", "nginx", "http://localhost:8080/"),
            ("nginx 1.22=localhost:8080/x", "nginx 1.22", "http://localhost:8080/x"),
            ("B=:8080", "B", "http://localhost:8080/"),
            ("B=8080", "B", "http://localhost:8080/"),
            ("8080/x", "8080/x", "http://localhost:8080/x"),
            ("http://localhost/", "localhost/", "http://localhost/"),
            ("tls=https://localhost:8443/a", "tls", "https://localhost:8443/a"),
        ] {
            let target = target(text);
            assert!(matches!(target.source, Source::Running), "{text}");
            assert_eq!(
                (target.name.as_str(), target.requests.first().unwrap().url.to_string().as_str()),
                (name, url)
            );
        }
    }

    #[test]
    fn everything_else_is_a_command() {
        let (name, found, url) = start("node server.js");
        assert_eq!((name.as_str(), url.as_str()), ("node server.js", "http://127.0.0.1:0/path"));
        assert_eq!((found.words, found.port), (vec!["node".to_owned(), "server.js".to_owned()], None));
        let (name, found, url) = start("old='./old' --port={port} @ /x");
        assert_eq!((name.as_str(), url.as_str()), ("old", "http://127.0.0.1:0/x"));
        assert_eq!(found.words, ["./old", "--port={port}"]);
        let (_, found, url) = start("./fixed --a=b @ http://127.0.0.1:8081/y");
        assert_eq!((found.port, url.as_str()), (Some(8081), "http://127.0.0.1:8081/y"));
        let (_, found, _) = start("NODE_ENV=production PORT=3000 node x.js");
        assert_eq!((found.port, found.words.len(), found.environment.len()), (Some(3000), 2, 2));
        let (name, found, _) = start("env SLOW=1 node x.js");
        assert_eq!((name.as_str(), found.words.len()), ("env SLOW=1 node x.js", 4));
        assert_eq!(start("nginx 1.22=./nginx").0, "nginx 1.22");
        let (_, found, _) = start("cd app && node x.js --port $PORT");
        assert_eq!(found.words.first().map(String::as_str), Some("sh"));
    }

    #[test]
    fn names_differ() {
        let options = RequestOptions {
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            expect: Expect::Success,
            tls: tls::Client::default(),
            protocol: Protocol::Http1,
        };
        let texts = ["node a.js", "node a.js", "b=node a.js"].map(str::to_owned);
        let targets = read(&texts, "/", &options, Duration::from_secs(1)).unwrap();
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["node a.js", "node a.js (2)", "b"]);
        assert!(read(&[" ".to_owned()], "/", &options, Duration::ZERO).is_err());
    }
}
