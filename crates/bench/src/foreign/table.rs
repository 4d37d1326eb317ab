//! oha, hey, k6 and h2load: `oha -z 10s -c 100 http://localhost:8080/`, `hey -n 1000 -c 50 …`, `k6 run --vus 10 …`,
//! `h2load -n 1000 -c 1 -m 64 …`.
//!
//! Owns one table of their common flags with what each means; defaults are those of oha 1, hey 0.1, k6 0.50 and h2load 1.52. What
//! would change the figures and is not done is an error that says what to do instead.

use std::time::Duration;

use onehop_load::plan::{Protocol, Reuse, STREAMS_MAX};

use super::options::{Spec, Takes, take};
use super::{Body, ForeignError, Options, Tool};
use crate::basic;

/// A flag of some of the tools.
struct Flag {
    tools: &'static [Tool],
    /// Its letter, where it has one.
    letter: Option<char>,
    long: &'static [&'static str],
    means: Means,
}

/// What a flag means here.
#[derive(Clone, Copy)]
enum Means {
    Requests,
    Connections,
    /// Over HTTP/2.
    Http2,
    /// Concurrent streams of each connection.
    Streams,
    /// The version of HTTP by its number or its name in ALPN.
    Version,
    /// Over HTTP/1.1.
    Http1,
    Threads,
    WarmUp,
    Time,
    /// Requests per second of all connections together.
    Rate,
    /// Requests per second of each connection.
    RateOfEach,
    Method,
    Field,
    /// A header field of this name.
    FieldOf(&'static str),
    Text,
    File,
    /// The same, with the method POST.
    FileToPost,
    Basic,
    Timeout,
    ConnectTimeout,
    Socket,
    NewConnections,
    NoCompression,
    Json,
    /// `--output-format json`.
    Format,
    Quiet,
    /// Nothing: about the tool's output, or done in any case.
    Nothing,
    /// The same, with a value.
    NothingOfValue,
    /// Done in another way: what to know.
    Note(&'static str),
    /// Not done: what to do instead. With a value, if `true`.
    Refused(bool, &'static str),
}

use Means as M;
use Tool::{H2load, Hey, K6, Oha};

const fn flag(
    tools: &'static [Tool],
    letter: Option<char>,
    long: &'static [&'static str],
    means: Means,
) -> Flag {
    Flag { tools, letter, long, means }
}

const PROXY: &str = "proxies are not asked; measure the proxy itself by its URL";
const REDIRECTS: &str = "redirects are not followed: name the URL that they lead to";
const PIPELINING: &str = "over HTTP/1.1 several requests at a time are more connections (-c)";
const LISTS: &str = "a list of URLs is `onehop bench collection FILE`";
const WINDOWS: &str = "windows are as large as Chrome's: 6 MiB of a stream, 15 MiB of a connection";
const TABLES: &str = "header tables and frames are as large as RFC 9113 has them by default";
const CIPHERS: &str = "key exchange groups are --tls-curves; cipher suites are the library's";
const TLS: &str = "certificates of clients are not shown; leave it out";
const STEPS: &str = "steps are `onehop bench -c 1,8,64 URL` (connections) and `onehop bench -r 100..1000 URL` (requests per second)";

const FLAGS: &[Flag] = &[
    flag(&[Oha, Hey], Some('n'), &[], M::Requests),
    flag(&[Oha, Hey], Some('c'), &["connections"], M::Connections),
    flag(&[Oha, Hey], Some('z'), &["duration"], M::Time),
    flag(&[Oha], Some('q'), &["query-per-second", "qps"], M::Rate),
    flag(&[Hey], Some('q'), &[], M::RateOfEach),
    flag(&[Oha, Hey], Some('m'), &["method"], M::Method),
    flag(&[Oha, Hey], Some('H'), &["header"], M::Field),
    flag(&[Oha, Hey], Some('A'), &["accept"], M::FieldOf("Accept")),
    flag(&[Oha, Hey], Some('T'), &["content-type"], M::FieldOf("Content-Type")),
    flag(&[Hey], Some('U'), &[], M::FieldOf("User-Agent")),
    flag(&[Oha, Hey], None, &["host"], M::FieldOf("Host")),
    flag(&[Oha, Hey], Some('d'), &["body"], M::Text),
    flag(&[Oha, Hey], Some('D'), &["body-path"], M::File),
    flag(&[Oha, Hey], Some('a'), &["basic-auth"], M::Basic),
    flag(&[Oha, Hey], Some('t'), &["timeout"], M::Timeout),
    flag(&[Oha], None, &["connect-timeout"], M::ConnectTimeout),
    flag(&[Oha], None, &["unix-socket"], M::Socket),
    flag(&[Oha, Hey], None, &["disable-keepalive"], M::NewConnections),
    flag(&[Oha, Hey], None, &["disable-compression"], M::NoCompression),
    flag(&[Oha], Some('j'), &["json"], M::Json),
    flag(&[Oha], None, &["output-format"], M::Format),
    flag(&[Oha], None, &["no-tui"], M::Quiet),
    flag(&[Oha], None, &["latency-correction", "disable-color", "ipv4", "ipv6"], M::Nothing),
    flag(&[Oha], Some('w'), &["wait-ongoing-requests-after-deadline"], M::Nothing),
    flag(&[Oha], None, &["fps", "stats-success-breakdown"], M::NothingOfValue),
    flag(&[Oha], Some('p'), &["http2-parallel"], M::Streams),
    flag(&[Oha], None, &["http2"], M::Http2),
    flag(&[Oha], None, &["http-version"], M::Version),
    flag(&[Hey], None, &["h2"], M::Http2),
    flag(&[Oha, Hey], Some('x'), &["proxy"], M::Refused(true, PROXY)),
    flag(&[Oha], Some('r'), &["redirect"], M::Refused(true, REDIRECTS)),
    flag(&[Oha], None, &["cert", "key"], M::Refused(true, TLS)),
    flag(
        &[Oha],
        None,
        &["rand-regex-url"],
        M::Refused(false, "URLs at random are several URLs of `onehop bench`"),
    ),
    flag(&[Oha], None, &["urls-from-file"], M::Refused(false, LISTS)),
    flag(&[Oha], None, &["burst-delay", "burst-rate", "burst-duration"], M::Refused(true, STEPS)),
    flag(&[Hey], None, &["disable-redirects"], M::Nothing),
    flag(&[Hey], None, &["cpus"], M::NothingOfValue),
    flag(
        &[Hey],
        Some('o'),
        &[],
        M::Refused(true, "`--json FILE` holds every percentile and the series over time"),
    ),
    flag(&[K6], Some('u'), &["vus"], M::Connections),
    flag(&[K6], Some('d'), &["duration"], M::Time),
    flag(&[K6], Some('i'), &["iterations"], M::Requests),
    flag(&[K6], None, &["rps"], M::Rate),
    flag(&[K6], Some('s'), &["stage"], M::Refused(true, STEPS)),
    flag(&[K6], None, &["user-agent"], M::FieldOf("User-Agent")),
    flag(&[K6], None, &["no-connection-reuse", "no-vu-connection-reuse"], M::NewConnections),
    flag(&[K6], Some('q'), &["quiet"], M::Quiet),
    flag(&[K6], None, &["no-summary", "no-color", "no-usage-report", "no-thresholds"], M::Nothing),
    flag(&[K6], None, &["summary-trend-stats", "summary-time-unit", "tag"], M::NothingOfValue),
    flag(&[K6], None, &["summary-export"], M::Note("`--json FILE` holds every figure")),
    flag(
        &[K6],
        Some('o'),
        &["out"],
        M::Refused(true, "`--json FILE` holds every figure and the series over time"),
    ),
    flag(
        &[K6],
        Some('e'),
        &["env"],
        M::Refused(true, "it is for scripts, which are not run: name the URL itself"),
    ),
    flag(&[K6], None, &["http-debug"], M::Nothing),
    flag(&[H2load], Some('n'), &["requests"], M::Requests),
    flag(&[H2load], Some('c'), &["clients"], M::Connections),
    flag(&[H2load], Some('t'), &["threads"], M::Threads),
    flag(&[H2load], Some('m'), &["max-concurrent-streams"], M::Streams),
    flag(&[H2load], Some('D'), &["duration"], M::Time),
    flag(&[H2load], None, &["warm-up-time"], M::WarmUp),
    flag(&[H2load], None, &["rps"], M::RateOfEach),
    flag(&[H2load], Some('H'), &["header"], M::Field),
    flag(&[H2load], Some('d'), &["data"], M::FileToPost),
    flag(&[H2load], Some('N'), &["connection-inactivity-timeout"], M::Timeout),
    flag(&[H2load], None, &["h1"], M::Http1),
    flag(&[H2load], Some('p'), &["no-tls-proto"], M::Version),
    flag(&[H2load], None, &["alpn-list", "npn-list"], M::Version),
    flag(&[H2load], Some('w'), &["window-bits"], M::Note(WINDOWS)),
    flag(&[H2load], Some('W'), &["connection-window-bits"], M::Note(WINDOWS)),
    flag(&[H2load], Some('f'), &["max-frame-size"], M::Note(TABLES)),
    flag(&[H2load], None, &["header-table-size", "encoder-header-table-size"], M::Note(TABLES)),
    flag(&[H2load], Some('v'), &["verbose"], M::Nothing),
    flag(&[H2load], None, &["log-file"], M::Note("`--json FILE` holds every figure")),
    flag(&[H2load], None, &["ciphers", "tls13-ciphers", "groups"], M::Refused(true, CIPHERS)),
    flag(&[H2load], Some('i'), &["input-file"], M::Refused(true, LISTS)),
    flag(&[H2load], None, &["timing-script-file"], M::Refused(true, LISTS)),
    flag(
        &[H2load],
        Some('r'),
        &["rate"],
        M::Refused(true, "it opens connections at a rate; requests at a rate are --rps"),
    ),
    flag(&[H2load], None, &["rate-period"], M::Refused(true, "requests at a rate are --rps")),
    flag(
        &[H2load],
        Some('T'),
        &["connection-active-timeout"],
        M::Refused(true, "a connection ends with its requests: `onehop bench --requests-per-connection N`"),
    ),
    flag(&[H2load], Some('B'), &["base-uri"], M::Refused(true, "write the whole URL")),
    flag(
        &[H2load],
        None,
        &["connect-to"],
        M::Refused(true, "write the address into the URL, and -H 'Host: …'"),
    ),
];

/// The field that oha and hey send by themselves.
const ENCODINGS: &str = "Accept-Encoding";
/// hey's `-t 0` waits for ever; an hour is as long as a run.
const TIMEOUT_OF_NONE: Duration = Duration::from_secs(3600);

/// The keys of flags without a letter: places of the table, in a private area of Unicode.
const KEYS_FROM: u32 = 0xE000;

fn key(place: usize, flag: &Flag) -> char {
    let private = u32::try_from(place).ok().and_then(|place| char::from_u32(KEYS_FROM + place));
    flag.letter.or(private).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn takes(means: Means) -> Takes {
    match means {
        M::NewConnections
        | M::NoCompression
        | M::Json
        | M::Quiet
        | M::Http1
        | M::Http2
        | M::Nothing
        | M::Refused(false, _) => Takes::Nothing,
        _ => Takes::Value,
    }
}

pub(super) fn read(tool: Tool, words: &[String]) -> Result<Options, ForeignError> {
    let own = || FLAGS.iter().enumerate().filter(|(_, flag)| flag.tools.contains(&tool));
    let specs: Vec<Spec> = own()
        .map(|(place, flag)| Spec { key: key(place, flag), long: flag.long, takes: takes(flag.means) })
        .collect();
    let words: Vec<String> = words.iter().map(|word| long_dashes(tool, word, &specs)).collect();
    let taken = take(tool, &words, &specs)?;
    let mut asked = defaults(tool);
    let (mut requests, mut rate_of_each) = (None, None);
    for (key_of_flag, value) in taken.options {
        let flag = own().find(|(place, flag)| key(*place, flag) == key_of_flag);
        let Some((_, flag)) = flag else { continue };
        match flag.means {
            M::Requests => requests = Some(tool.count(letter(flag), &value)?),
            M::RateOfEach => rate_of_each = Some(tool.count(letter(flag), &value)?),
            _ => put(tool, flag, value, &mut asked)?,
        }
    }
    // A number beside a time is what comes first with k6, and nothing with the others.
    asked.requests = match (asked.time, requests) {
        (Some(_), requests) => requests.filter(|_| tool == K6),
        (None, requests) => requests.or(asked.requests),
    };
    share_a_connection(tool, &mut asked);
    if let Some(rate) = rate_of_each {
        asked.rate = Some(rate.saturating_mul(asked.connections as u64) as f64);
    }
    if let Some(requests) = asked.requests {
        asked.connections = asked.connections.min(usize::try_from(requests).unwrap_or(usize::MAX));
    }
    let mut plain = taken.plain;
    plain.extend(taken.behind.unwrap_or_default());
    if tool == K6 {
        plain = of_script(plain)?;
    }
    tool.one_url(plain, &mut asked)?;
    asked.ours = taken.ours;
    Ok(asked)
}

/// What hey does with -h2: all its workers share a connection.
fn share_a_connection(tool: Tool, asked: &mut Options) {
    if let (Hey, Protocol::Http2 { .. }) = (tool, asked.protocol) {
        let workers = asked.connections;
        asked.protocol =
            Protocol::Http2 { streams: u32::try_from(workers).unwrap_or(STREAMS_MAX).min(STREAMS_MAX) };
        asked.connections = 1;
        asked
            .note(format!("hey -h2: {workers} workers are {workers} streams of one connection, as with hey"));
    }
}

fn defaults(tool: Tool) -> Options {
    let mut asked = Options::nothing();
    let encodings = match tool {
        Oha => {
            (asked.connections, asked.requests) = (50, Some(200));
            "gzip, compress, deflate, br"
        }
        Hey => {
            (asked.connections, asked.requests) = (50, Some(200));
            asked.timeouts.response = Duration::from_secs(20);
            "gzip"
        }
        H2load => {
            asked.requests = Some(1);
            asked.protocol = Protocol::Http2 { streams: 1 };
            return asked;
        }
        _ => {
            asked.requests = Some(1);
            asked.timeouts.response = Duration::from_secs(60);
            return asked;
        }
    };
    asked.fields.push((ENCODINGS.to_owned(), encodings.to_owned()));
    asked
}

/// hey's flags are those of Go: `-disable-keepalive` is `--disable-keepalive`.
fn long_dashes(tool: Tool, word: &str, specs: &[Spec]) -> String {
    let name = word.strip_prefix('-').map(|rest| rest.split('=').next().unwrap_or(rest));
    match name {
        Some(name) if tool == Hey && specs.iter().any(|spec| spec.long.contains(&name)) => format!("-{word}"),
        _ => word.to_owned(),
    }
}

/// `run URL`: k6 has a script there, which is not run.
fn of_script(plain: Vec<String>) -> Result<Vec<String>, ForeignError> {
    let plain: Vec<String> = plain.into_iter().skip_while(|word| word == "run").collect();
    match plain.iter().find(|word| word.as_str() == "-" || word.ends_with(".js") || word.ends_with(".ts")) {
        Some(script) if !script.contains("://") => Err(K6.wrong(format!(
            "{script}: scripts are not run. Write the URL that it asks in its place; a method, headers and a body are \
             -m, -H and -b of `onehop bench`, and requests in order are a file for `onehop bench collection`"
        ))),
        _ => Ok(plain),
    }
}

fn letter(flag: &Flag) -> char {
    flag.letter.unwrap_or('-')
}

fn put(tool: Tool, flag: &Flag, value: String, asked: &mut Options) -> Result<(), ForeignError> {
    let name = match (flag.letter, flag.long.first()) {
        (Some(letter), _) => format!("-{letter}"),
        (None, long) => format!("--{}", long.copied().unwrap_or_default()),
    };
    match flag.means {
        M::Connections => asked.connections = tool.size(letter(flag), &value)?,
        M::Threads => asked.threads = tool.size(letter(flag), &value)?,
        M::WarmUp => asked.warm_up = tool.time(letter(flag), &value)?,
        M::Http1 => asked.protocol = version(tool, &name, "1.1", asked.protocol)?,
        M::Http2 => asked.protocol = Protocol::Http2 { streams: asked.protocol.streams() },
        M::Streams => {
            let streams = tool.count(letter(flag), &value)?;
            let streams = u32::try_from(streams).ok().filter(|streams| *streams <= STREAMS_MAX);
            let streams =
                streams.ok_or_else(|| tool.wrong(format!("{name} {value}: {STREAMS_MAX} is the most")))?;
            if tool == H2load && asked.protocol == Protocol::Http1 && streams > 1 {
                return Err(tool.wrong(format!("{name}: {PIPELINING}")));
            }
            asked.protocol = Protocol::Http2 { streams };
        }
        M::Version => asked.protocol = version(tool, &name, &value, asked.protocol)?,
        M::Time => asked.time = Some(tool.time(letter(flag), &value)?),
        M::Rate => asked.rate = Some(tool.count(letter(flag), &value)? as f64),
        M::Method => asked.method = value,
        M::Field => {
            let field = tool.field(&value)?;
            // A field given twice is sent twice; only the tool's own default is replaced.
            if field.0.eq_ignore_ascii_case(ENCODINGS) {
                asked.fields.retain(|(name, _)| name != ENCODINGS);
            }
            asked.fields.push(field);
        }
        M::FieldOf(field) => asked.fields.push((field.to_owned(), value)),
        M::Text => asked.body = Some(Body::Text(value)),
        M::FileToPost => {
            asked.body = Some(Body::File(value.into()));
            asked.method = "POST".to_owned();
        }
        M::File => asked.body = Some(Body::File(value.into())),
        M::Basic => asked.fields.push(basic::authorization(&value)),
        M::Timeout if value == "0" => asked.timeouts.response = TIMEOUT_OF_NONE,
        M::Timeout => asked.timeouts.response = tool.time(letter(flag), &value)?,
        M::ConnectTimeout => asked.timeouts.connect = tool.time(letter(flag), &value)?,
        M::Socket => asked.socket = Some(value.into()),
        M::NewConnections => asked.reuse = Reuse::New,
        M::NoCompression => asked.fields.retain(|(name, _)| name != ENCODINGS),
        M::Json => asked.is_json = true,
        M::Format => asked.is_json = value == "json",
        M::Quiet => asked.is_quiet = true,
        M::Note(why) => asked.note(format!("{} {name}: {why}", tool.name())),
        M::Refused(_, why) => return Err(tool.wrong(format!("{name}: {why}"))),
        M::Requests | M::RateOfEach | M::Nothing | M::NothingOfValue => {}
    }
    Ok(())
}

/// `2`, `h2`, `h2c`, `1.1`, `http/1.1`; of a list the first counts.
fn version(tool: Tool, name: &str, value: &str, before: Protocol) -> Result<Protocol, ForeignError> {
    match value.split(',').next().unwrap_or_default().trim() {
        "2" | "2.0" | "h2" | "h2c" => Ok(Protocol::Http2 { streams: before.streams() }),
        "1.1" | "http/1.1" if before.streams() > 1 => Err(tool.wrong(format!("{name}: {PIPELINING}"))),
        "1.1" | "http/1.1" => Ok(Protocol::Http1),
        _ => Err(tool.wrong(format!("{name} {value}: HTTP/1.1 and HTTP/2 are spoken, nothing else"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{read as read_line, refused};

    #[test]
    fn defaults_of_each_tool_hold() {
        let url = "http://localhost:8080/";
        for (tool, connections, requests, timeout) in [(Oha, 50, 200, 30), (Hey, 50, 200, 20), (K6, 1, 1, 60)]
        {
            let asked = read_line(tool, url);
            assert_eq!((asked.connections, asked.requests, asked.time), (connections, Some(requests), None));
            assert_eq!(
                (asked.timeouts.response, asked.urls),
                (Duration::from_secs(timeout), vec![url.to_owned()])
            );
        }
    }

    #[test]
    fn commands_from_blog_posts_are_read() {
        let asked = read_line(Oha, "-z 30s -c 100 -q 500 --no-tui --latency-correction -H a:b http://a/");
        assert_eq!((asked.time, asked.requests), (Some(Duration::from_secs(30)), None));
        assert_eq!((asked.connections, asked.rate, asked.is_quiet), (100, Some(500.0), true));
        let asked = read_line(Oha, "-n 10 --disable-keepalive -m POST -d {} -T text/x --json a:1 --runs 1");
        assert_eq!((asked.requests, asked.connections, asked.reuse), (Some(10), 10, Reuse::New));
        assert_eq!((asked.method.as_str(), asked.is_json), ("POST", true));
        assert!(asked.fields.contains(&("Content-Type".to_owned(), "text/x".to_owned())));
        assert_eq!(asked.ours, ["--runs=1"]);

        let asked = read_line(Hey, "-n 2000 -c 20 -q 5 -disable-keepalive -host b -t=3 http://a/");
        assert_eq!((asked.requests, asked.connections, asked.rate), (Some(2000), 20, Some(100.0)));
        assert_eq!((asked.reuse, asked.timeouts.response), (Reuse::New, Duration::from_secs(3)));
        assert!(asked.fields.contains(&("Host".to_owned(), "b".to_owned())));
        let asked = read_line(Hey, "-z 5s -n 100 -disable-compression http://a/");
        assert_eq!((asked.time, asked.requests), (Some(Duration::from_secs(5)), None));
        assert!(asked.fields.is_empty());

        let asked = read_line(K6, "run --vus 10 --duration 30s --rps 50 http://a/");
        assert_eq!((asked.connections, asked.time), (10, Some(Duration::from_secs(30))));
        assert_eq!((asked.rate, asked.requests), (Some(50.0), None));
        assert_eq!(read_line(K6, "run -u 5 -i 100 http://a/").requests, Some(100));
    }

    #[test]
    fn commands_for_http_2_are_read() {
        let streams = |streams| Protocol::Http2 { streams };
        let asked = read_line(H2load, "-n 100000 -c 10 -m 32 -t 2 -H accept:x https://a/");
        assert_eq!((asked.requests, asked.connections, asked.threads), (Some(100_000), 10, 2));
        assert_eq!((asked.protocol, asked.time), (streams(32), None));
        let asked = read_line(H2load, "-D 10 --warm-up-time=2 -c 4 --rps 25 -w 30 http://a/");
        assert_eq!((asked.time, asked.warm_up), (Some(Duration::from_secs(10)), Duration::from_secs(2)));
        assert_eq!((asked.rate, asked.protocol, asked.notes.len()), (Some(100.0), streams(1), 1));
        assert_eq!(read_line(H2load, "--h1 http://a/").protocol, Protocol::Http1);
        assert_eq!(read_line(H2load, "-p http/1.1 http://a/").protocol, Protocol::Http1);
        let asked = read_line(H2load, "-d body.json http://a/");
        assert_eq!((asked.method.as_str(), asked.body), ("POST", Some(Body::File("body.json".into()))));
        assert_eq!(read_line(Oha, "--http2 -p 10 https://a/").protocol, streams(10));
        assert_eq!(read_line(Oha, "-p 10 --http2 https://a/").protocol, streams(10));
        assert_eq!(read_line(Oha, "--http-version 2 https://a/").protocol, streams(1));
        let asked = read_line(Hey, "-h2 -n 100 -c 20 https://a/");
        assert_eq!((asked.connections, asked.protocol), (1, streams(20)));
        assert_eq!(read_line(K6, "run --http2 --streams 4 http://a/").ours, ["--http2", "--streams=4"]);
    }

    #[test]
    fn what_is_not_done_says_what_to_do_instead() {
        for (tool, line, part) in [
            (Oha, "--http-version 3 http://a/", "HTTP/1.1 and HTTP/2"),
            (Oha, "-p 100000 http://a/", "the most"),
            (Oha, "-x http://p http://a/", "proxies"),
            (Oha, "--urls-from-file list.txt", "collection"),
            (Oha, "--cert a.pem https://a/", "certificates"),
            (H2load, "-r 10 http://a/", "--rps"),
            (H2load, "--h1 -m 4 http://a/", "more connections"),
            (H2load, "-m 4 -p http/1.1 http://a/", "more connections"),
            (H2load, "-i list.txt http://a/", "collection"),
            (Hey, "-o csv http://a/", "--json FILE"),
            (Hey, "-y http://a/", "no option -y"),
            (K6, "run script.js", "Write the URL"),
            (K6, "run -s 30s:10 http://a/", "-c 1,8,64"),
            (K6, "run", "URL is missing"),
        ] {
            let error = refused(tool, line);
            assert!(error.contains(part) && error.starts_with(tool.name()), "{line}: {error}");
        }
    }
}
