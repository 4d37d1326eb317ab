//! ab: `ab -n 10000 -c 100 -k http://localhost:8080/`.
//!
//! Options and defaults are those of ApacheBench 2.3's own help.

use std::time::Duration;

use onehop_load::plan::Reuse;

use super::options::{Spec, Takes, take};
use super::{Body, ForeignError, Options, Tool};
use crate::basic;

const fn alone(key: char) -> Spec {
    Spec { key, long: &[], takes: Takes::Nothing }
}

const fn with_value(key: char) -> Spec {
    Spec { key, long: &[], takes: Takes::Value }
}

const TABLE: &[Spec] = &[
    with_value('n'),
    with_value('c'),
    with_value('t'),
    with_value('s'),
    with_value('b'),
    with_value('B'),
    with_value('p'),
    with_value('u'),
    with_value('T'),
    with_value('v'),
    alone('w'),
    alone('i'),
    with_value('x'),
    with_value('y'),
    with_value('z'),
    with_value('C'),
    with_value('H'),
    with_value('A'),
    with_value('P'),
    with_value('X'),
    alone('V'),
    alone('k'),
    alone('d'),
    alone('S'),
    alone('q'),
    alone('l'),
    with_value('g'),
    with_value('e'),
    alone('r'),
    with_value('m'),
    alone('I'),
    with_value('Z'),
    with_value('f'),
    with_value('E'),
];
/// `-t` implies so many requests, where `-n` does not follow.
const REQUESTS_OF_A_TIME: u64 = 50_000;

pub(super) fn read(words: &[String]) -> Result<Options, ForeignError> {
    let tool = Tool::Ab;
    let taken = take(tool, words, TABLE)?;
    let mut asked = Options::nothing();
    asked.requests = Some(1);
    asked.reuse = Reuse::New;
    asked.timeouts.response = Duration::from_secs(30);
    asked.fields.push(("Accept".to_owned(), "*/*".to_owned()));
    let mut content_type = "text/plain".to_owned();
    for (option, value) in taken.options {
        match option {
            'n' => asked.requests = Some(tool.count('n', &value)?),
            'c' => asked.connections = tool.size('c', &value)?,
            't' => {
                asked.time = Some(tool.time('t', &value)?);
                asked.requests = Some(REQUESTS_OF_A_TIME);
            }
            's' => asked.timeouts.response = tool.time('s', &value)?,
            'p' | 'u' => {
                asked.method = if option == 'p' { "POST" } else { "PUT" }.to_owned();
                asked.body = Some(Body::File(value.into()));
            }
            'T' => content_type = value,
            'm' => asked.method = value,
            'i' => asked.method = "HEAD".to_owned(),
            'k' => asked.reuse = Reuse::Kept,
            'C' => asked.fields.push(("Cookie".to_owned(), value)),
            'A' => asked.fields.push(basic::authorization(&value)),
            'H' => {
                let field = tool.field(&value)?;
                // ab lets a header of the same name take the place of its own.
                asked.fields.retain(|(name, _)| name != "Accept" || !field.0.eq_ignore_ascii_case("accept"));
                asked.fields.push(field);
            }
            'B' | 'P' | 'X' | 'Z' | 'f' | 'E' => return Err(not_done(option)),
            'w' | 'x' | 'y' | 'z' => asked.note("ab -w: tables in HTML are `--html FILE` here"),
            'g' | 'e' => asked.note(format!(
                "ab -{option}: {value} is not written; `--json FILE` holds every percentile and the series over time"
            )),
            'b' => asked.note("ab -b: the size of the sockets' buffers is left to the system"),
            'V' => asked.note("ab -V: this is onehop, which took ab's options"),
            // -q, -d, -S, -r, -l, -v, -I: about what ab prints, or what is done in any case.
            _ => {}
        }
    }
    if asked.body.is_some() && !asked.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        asked.fields.push(("Content-Type".to_owned(), content_type));
    }
    if asked.requests.is_some_and(|requests| requests < asked.connections as u64) {
        return Err(tool.wrong("more connections (-c) than requests (-n)"));
    }
    asked.note("requests are HTTP/1.1; ab itself sends HTTP/1.0, which some servers answer at another cost");
    if asked.reuse == Reuse::New {
        asked.note(
            "without -k each request has a connection of its own, and connecting is part of its latency",
        );
    }
    let mut plain = taken.plain;
    plain.extend(taken.behind.unwrap_or_default());
    tool.one_url(plain, &mut asked)?;
    asked.ours = taken.ours;
    Ok(asked)
}

fn not_done(option: char) -> ForeignError {
    let why = match option {
        'B' => "-B: the own address is left to the system; leave it out",
        'P' | 'X' => "-X and -P: requests through a proxy are not made; name the proxy itself as the URL",
        _ => "-Z, -f and -E: suites, versions and certificates of the client are not chosen; leave it out",
    };
    Tool::Ab.wrong(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{read as read_line, refused};

    #[test]
    fn its_own_defaults_hold() {
        let asked = read_line(Tool::Ab, "http://localhost:8080/");
        assert_eq!((asked.requests, asked.connections, asked.time), (Some(1), 1, None));
        assert_eq!(asked.reuse, Reuse::New);
        assert!(asked.notes.iter().any(|note| note.contains("without -k")), "{:?}", asked.notes);
    }

    #[test]
    fn commands_from_blog_posts_are_read() {
        let asked = read_line(Tool::Ab, "-n 10000 -c100 -kq -H Accept-Encoding:gzip http://127.0.0.1:8080/x");
        assert_eq!((asked.requests, asked.connections, asked.reuse), (Some(10_000), 100, Reuse::Kept));
        assert_eq!(asked.fields.last().map(|(name, _)| name.as_str()), Some("Accept-Encoding"));
        let asked =
            read_line(Tool::Ab, "-p data.json -T application/json -c 10 -n 200 -rl http://localhost:1/");
        assert_eq!((asked.method.as_str(), asked.body), ("POST", Some(Body::File("data.json".into()))));
        assert!(asked.fields.contains(&("Content-Type".to_owned(), "application/json".to_owned())));
        let asked = read_line(Tool::Ab, "-t 5 -c 2 -A me:secret -C a=1 http://localhost/");
        assert_eq!((asked.time, asked.requests), (Some(Duration::from_secs(5)), Some(50_000)));
        assert!(asked.fields.iter().any(|(_, value)| value == "Basic bWU6c2VjcmV0"), "{:?}", asked.fields);
        let asked = read_line(Tool::Ab, "-t 5 -n 100 -H accept:text/html http://localhost/");
        assert_eq!(asked.requests, Some(100));
        assert_eq!(asked.fields, [("accept".to_owned(), "text/html".to_owned())]);
    }

    #[test]
    fn what_is_not_done_says_what_to_do_instead() {
        for (line, part) in [
            ("-X proxy:3128 http://a/", "proxy"),
            ("-n 1 -c 2 http://a/", "more connections"),
            ("-E cert.pem http://a/", "certificates"),
            ("-n 0 http://a/", "-n 0"),
            ("-O http://a/", "no option -O"),
            ("-n 10", "URL is missing"),
        ] {
            let error = refused(Tool::Ab, line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
