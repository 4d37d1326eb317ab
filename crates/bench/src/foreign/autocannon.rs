//! autocannon: `autocannon -c 100 -d 40 -w 2 http://localhost:3000`.
//!
//! Options and defaults are those of autocannon's own help and of the module behind it (version 9).

use std::time::Duration;

use onehop_load::plan::Reuse;

use super::options::{Spec, Takes, take};
use super::{Body, ForeignError, Options, Tool};

const fn alone(key: char, long: &'static [&'static str]) -> Spec {
    Spec { key, long, takes: Takes::Nothing }
}

const fn with_value(key: char, long: &'static [&'static str]) -> Spec {
    Spec { key, long, takes: Takes::Value }
}

/// The keys of options that have no letter.
const ON_PORT: char = '\u{1}';
const HAR: char = '\u{2}';
const CERTIFICATE: char = '\u{3}';
const SILENT: char = '\u{4}';

const TABLE: &[Spec] = &[
    with_value('c', &["connections"]),
    with_value('p', &["pipelining"]),
    with_value('d', &["duration"]),
    with_value('a', &["amount"]),
    with_value('L', &["sampleInt"]),
    with_value('S', &["socketPath"]),
    with_value('w', &["workers"]),
    with_value('W', &["warmup"]),
    alone(ON_PORT, &["on-port", "onPort"]),
    with_value('m', &["method"]),
    with_value('t', &["timeout"]),
    with_value('T', &["title"]),
    with_value('b', &["body"]),
    with_value('F', &["form"]),
    with_value('i', &["input"]),
    with_value('H', &["headers", "header"]),
    with_value(HAR, &["har"]),
    with_value('B', &["bailout"]),
    with_value('M', &["maxConnectionRequests"]),
    with_value('O', &["maxOverallRequests"]),
    with_value('r', &["connectionRate"]),
    with_value('R', &["overallRate"]),
    alone('C', &["ignoreCoordinatedOmission"]),
    with_value('D', &["reconnectRate"]),
    alone('n', &["no-progress"]),
    alone('l', &["latency", "renderLatencyTable"]),
    alone('I', &["idReplacement"]),
    alone('j', &["json"]),
    alone('f', &["forever"]),
    with_value('s', &["servername"]),
    alone('x', &["excludeErrorStats"]),
    with_value('E', &["expectBody"]),
    with_value(CERTIFICATE, &["cert", "key", "ca"]),
    alone(SILENT, &["renderStatusCodes", "statusCodes", "debug", "verbose", "progress", "renderProgressBar"]),
    alone('V', &[]),
    alone('v', &["version"]),
];

/// Pieces that become whole only when every option was seen.
#[derive(Default)]
struct Late {
    time: Option<Duration>,
    rate_of_each: Option<u64>,
    rate_of_all: Option<u64>,
    requests_of_each: Option<u64>,
    /// Unlike `-a`, it leaves the time in force.
    requests_of_all: Option<u64>,
    is_on_port: bool,
}

pub(super) fn read(words: &[String], port: Option<u16>) -> Result<Options, ForeignError> {
    let tool = Tool::Autocannon;
    let mut asked = Options::nothing();
    asked.connections = 10;
    asked.timeouts.response = Duration::from_secs(10);
    let words = take_warm_up(words, &mut asked)?;
    let taken = take(tool, &words, TABLE)?;
    let mut late = Late::default();
    for (option, value) in taken.options {
        put(&mut asked, &mut late, option, value)?;
    }
    if asked.requests.is_none() {
        asked.time = Some(late.time.unwrap_or(Duration::from_secs(10)));
    }
    let connections = asked.connections as u64;
    let of_each = late.requests_of_each.map(|each| each.saturating_mul(connections));
    for all in [of_each, late.requests_of_all].into_iter().flatten() {
        asked.requests = Some(asked.requests.map_or(all, |requests| requests.min(all)));
    }
    let rate = late.rate_of_each.map(|rate| rate.saturating_mul(connections)).or(late.rate_of_all);
    asked.rate = rate.map(|rate| rate as f64);
    let behind = taken.behind.unwrap_or_default();
    late.is_on_port |= behind.first().is_some_and(|program| program == "node");
    if late.is_on_port {
        if behind.is_empty() {
            return Err(tool.wrong("--on-port needs the command behind `--`: --on-port / -- node server.js"));
        }
        asked.start = Some(behind);
    } else if !behind.is_empty() {
        return Err(tool.wrong("a command behind `--` needs --on-port"));
    }
    asked.urls = urls(taken.plain, port, late.is_on_port)?;
    asked.ours = taken.ours;
    Ok(asked)
}

fn put(asked: &mut Options, late: &mut Late, option: char, value: String) -> Result<(), ForeignError> {
    let tool = Tool::Autocannon;
    match option {
        'c' => asked.connections = tool.size('c', &value)?,
        'd' => late.time = Some(tool.time('d', &value)?),
        'a' => asked.requests = Some(tool.count(option, &value)?),
        'O' => late.requests_of_all = Some(tool.count(option, &value)?),
        'w' => asked.threads = if value == "0" { 1 } else { tool.size('w', &value)? },
        't' => asked.timeouts.response = tool.time('t', &value)?,
        'm' => asked.method = value,
        'b' => asked.body = Some(Body::Text(value)),
        'i' => asked.body = Some(Body::File(value.into())),
        'H' => asked.fields.push(field(&value)?),
        'S' => asked.socket = Some(value.into()),
        'M' => late.requests_of_each = Some(tool.count('M', &value)?),
        'r' => late.rate_of_each = Some(tool.count('r', &value)?),
        'R' => late.rate_of_all = Some(tool.count('R', &value)?),
        'D' => {
            let requests = u32::try_from(tool.count('D', &value)?);
            asked.reuse = requests.map_or(Reuse::Kept, Reuse::Requests);
        }
        'j' => asked.is_json = true,
        'n' => asked.is_quiet = true,
        ON_PORT => late.is_on_port = true,
        'p' if tool.count('p', &value)? == 1 => {}
        'C' => asked
            .note("autocannon -C is not done: latency counts from the moment a request was meant to begin"),
        'B' => asked.note("autocannon -B: a run ends by itself where not one answer comes"),
        'L' => asked.note("autocannon -L: the series over time has pieces of a length of its own"),
        'v' => asked.note("autocannon -v: this is onehop, which took autocannon's options"),
        'p' | 'F' | 'f' | 'I' | 'E' | 's' | HAR | CERTIFICATE => return Err(not_done(option)),
        // -l, -x, -T, -V and what only changes the output: all is told in any case, and errors never count.
        _ => {}
    }
    Ok(())
}

fn not_done(option: char) -> ForeignError {
    let why = match option {
        'p' => {
            "-p above 1: browsers send no request before the answer to the last one, and the latency of requests \
             that wait behind each other is not that of a request; leave it out, and raise -c for more load"
        }
        'F' => {
            "-F: forms are not put together; write the body into a file and name it with -i, its type with -H"
        }
        'f' => "-f: a run has an end; say one with -d",
        'I' => "-I: bodies are sent as they are; leave it out",
        'E' => {
            "-E: bodies are not compared; statuses are checked, and an answer that was cut off never counts"
        }
        HAR => "--har: requests in order are `onehop bench collection FILE.har`",
        _ => "the name of the server and certificates of the client are not chosen; leave it out",
    };
    Tool::Autocannon.wrong(why)
}

/// `K=V` or `K: V`, by what comes first.
fn field(text: &str) -> Result<(String, String), ForeignError> {
    match text.split_once([':', '=']) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Tool::Autocannon.wrong(format!("-H '{text}' is no header: write 'K=V' or 'K: V'"))),
    }
}

/// `--warmup [ -c 1 -d 3 ]`: the words between the brackets are options of their own, and are taken out.
fn take_warm_up(words: &[String], asked: &mut Options) -> Result<Vec<String>, ForeignError> {
    let tool = Tool::Autocannon;
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_it = |word: &String| ["-W", "--warmup", "--warmup=["].contains(&word.as_str());
    let Some(at) = words.iter().take(end).position(is_it) else {
        return Ok(words.to_vec());
    };
    let unclosed = || tool.wrong("--warmup takes its own options in brackets: --warmup [ -c 1 -d 3 ]");
    let mut left: Vec<String> = words.iter().take(at).cloned().collect();
    let mut rest = words.iter().skip(at + 1);
    // The bracket may be a word of its own or stand close to the first option.
    let inner: Vec<&str> = match rest.next().map(String::as_str) {
        Some("[") => rest.by_ref().map(String::as_str).take_while(|word| *word != "]").collect(),
        Some(word) if word.starts_with('[') && word.ends_with(']') => {
            word.trim_matches(['[', ']']).split_whitespace().collect()
        }
        _ => return Err(unclosed()),
    };
    let inner: Vec<String> = inner.into_iter().map(str::to_owned).collect();
    asked.warm_up = Duration::from_secs(10);
    for (option, value) in take(tool, &inner, TABLE)?.options {
        match option {
            'd' => asked.warm_up = tool.time('d', &value)?,
            'c' => asked.note("autocannon --warmup -c: the warm-up has the connections of the run"),
            _ => return Err(unclosed()),
        }
    }
    left.extend(rest.cloned());
    Ok(left)
}

fn urls(plain: Vec<String>, port: Option<u16>, is_on_port: bool) -> Result<Vec<String>, ForeignError> {
    let tool = Tool::Autocannon;
    if plain.is_empty() {
        return Err(tool.wrong("the URL is missing"));
    }
    let host = |path: &str| match (is_on_port, port) {
        // Port 0 stands for the one on which the command listens.
        (true, _) => Ok(format!("http://127.0.0.1:0{path}")),
        (false, Some(port)) => Ok(format!("http://localhost:{port}{path}")),
        (false, None) => Err(tool.wrong(format!("{path} names no host, and the variable PORT is not set"))),
    };
    plain
        .into_iter()
        .map(|url| match url {
            path if path.starts_with('/') => host(&path),
            url if is_on_port => {
                let path = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                host(path.find('/').and_then(|at| path.get(at..)).unwrap_or("/"))
            }
            url => Ok(url),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{read as read_line, refused, words};

    #[test]
    fn its_own_defaults_hold() {
        let asked = read_line(Tool::Autocannon, "localhost:3000");
        assert_eq!(asked.urls, ["localhost:3000"]);
        assert_eq!((asked.connections, asked.threads, asked.time), (10, 1, Some(Duration::from_secs(10))));
        assert_eq!(asked.timeouts.response, Duration::from_secs(10));
    }

    #[test]
    fn commands_from_blog_posts_are_read() {
        let asked = read_line(Tool::Autocannon, "-c 100 -d 40 -p 1 -w 2 -lj localhost:3000/a");
        assert_eq!((asked.connections, asked.threads, asked.is_json), (100, 2, true));
        let asked =
            read_line(Tool::Autocannon, "http://localhost:3000 -m=POST -H a=b -H c:d -b {} -a 500 -d 5");
        assert_eq!((asked.requests, asked.time, asked.method.as_str()), (Some(500), None, "POST"));
        assert_eq!(asked.fields, [("a".to_owned(), "b".to_owned()), ("c".to_owned(), "d".to_owned())]);
        let asked = read_line(Tool::Autocannon, "-R 1000 -r 50 -c 4 --warmup [ -c 1 -d 3 ] -d 20s http://a/");
        assert_eq!((asked.rate, asked.warm_up), (Some(200.0), Duration::from_secs(3)));
        assert_eq!(asked.time, Some(Duration::from_secs(20)));
        let asked = read_line(Tool::Autocannon, "-S /tmp/a.sock --connections=3 -M 5 -D 7 http://a/");
        assert_eq!((asked.socket, asked.requests), (Some("/tmp/a.sock".into()), Some(15)));
        assert_eq!(asked.reuse, Reuse::Requests(7));
    }

    #[test]
    fn a_program_may_be_started_and_a_path_may_be_enough() {
        let asked = read_line(Tool::Autocannon, "-c 5 --on-port /users -- node server.js --port 1");
        assert_eq!(asked.start, Some(words("node server.js --port 1")));
        assert_eq!(asked.urls, ["http://127.0.0.1:0/users"]);
        let asked = read_line(Tool::Autocannon, "http://localhost/x -- node server.js");
        assert_eq!((asked.start.is_some(), asked.urls), (true, vec!["http://127.0.0.1:0/x".to_owned()]));
        let asked = crate::foreign::read(Tool::Autocannon, &words("/a"), Some(81)).unwrap();
        assert_eq!(asked.urls, ["http://localhost:81/a"]);
        assert!(refused(Tool::Autocannon, "/a").contains("PORT"));
    }

    #[test]
    fn what_is_not_done_says_what_to_do_instead() {
        for (line, part) in [
            ("-p 10 localhost:3000", "browsers"),
            ("--har a.har localhost", "onehop bench collection"),
            ("-E x localhost", "compared"),
            ("-F {} localhost", "-i"),
            ("-f localhost", "-d"),
            ("-W localhost", "brackets"),
            ("-H oops localhost", "K=V"),
            ("localhost -- python x.py", "--on-port"),
            ("--on-port localhost", "behind"),
            ("-c 1", "URL is missing"),
        ] {
            let error = refused(Tool::Autocannon, line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
