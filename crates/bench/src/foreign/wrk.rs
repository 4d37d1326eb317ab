//! wrk: `wrk -t2 -c100 -d30s --latency http://localhost:8080/`, and wrk2's `-R`.
//!
//! Options and defaults are those of wrk 4.1's own help.

use std::time::Duration;

use super::options::{Spec, Takes, take};
use super::{ForeignError, Options, Tool};

const TABLE: &[Spec] = &[
    Spec { key: 'c', long: &["connections"], takes: Takes::Value },
    Spec { key: 'd', long: &["duration"], takes: Takes::Value },
    Spec { key: 't', long: &["threads"], takes: Takes::Value },
    Spec { key: 's', long: &["script"], takes: Takes::Value },
    Spec { key: 'H', long: &["header"], takes: Takes::Value },
    Spec { key: 'L', long: &["latency"], takes: Takes::Nothing },
    Spec { key: 'T', long: &["timeout"], takes: Takes::Value },
    Spec { key: 'R', long: &["rate"], takes: Takes::Value },
    Spec { key: 'v', long: &["version"], takes: Takes::Nothing },
];
/// wrk counts an answer that takes longer as a timeout.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn read(words: &[String]) -> Result<Options, ForeignError> {
    let tool = Tool::Wrk;
    let taken = take(tool, words, TABLE)?;
    let mut asked = Options::nothing();
    (asked.threads, asked.connections) = (2, 10);
    asked.timeouts.response = TIMEOUT;
    let mut time = Duration::from_secs(10);
    for (option, value) in taken.options {
        match option {
            'c' => asked.connections = tool.size('c', &value)?,
            't' => asked.threads = tool.size('t', &value)?,
            'd' => time = tool.time('d', &value)?,
            'T' => asked.timeouts.response = tool.time('T', &value)?,
            'H' => asked.fields.push(tool.field(&value)?),
            'R' => asked.rate = Some(tool.count('R', &value)? as f64),
            's' => {
                return Err(tool.wrong(format!(
                    "-s {value}: scripts are not run. A method, headers and a body are -m, -H and -b of `onehop \
                     bench`, several URLs stand one after the other with `3=URL` for one that is asked three times \
                     as often, and steps in order are a file for `onehop bench collection`"
                )));
            }
            'v' => asked.note("wrk -v: this is onehop, which took wrk's options"),
            // --latency: percentiles are always told.
            _ => {}
        }
    }
    asked.time = Some(time);
    if asked.connections < asked.threads {
        return Err(tool.wrong("the number of connections (-c) must not be below that of threads (-t)"));
    }
    let mut plain = taken.plain;
    plain.extend(taken.behind.unwrap_or_default());
    tool.one_url(plain, &mut asked)?;
    asked.ours = taken.ours;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{read as read_line, refused};

    #[test]
    fn its_own_defaults_hold() {
        let asked = read_line(Tool::Wrk, "http://localhost:8080/");
        assert_eq!((asked.threads, asked.connections, asked.time), (2, 10, Some(Duration::from_secs(10))));
        assert_eq!(asked.timeouts.response, TIMEOUT);
    }

    #[test]
    fn commands_from_blog_posts_are_read() {
        let asked =
            read_line(Tool::Wrk, "-t12 -c400 -d30s --latency -H Accept:x -T5s http://127.0.0.1:8080/a");
        assert_eq!((asked.threads, asked.connections, asked.time), (12, 400, Some(Duration::from_secs(30))));
        assert_eq!(asked.fields, [("Accept".to_owned(), "x".to_owned())]);
        let asked =
            read_line(Tool::Wrk, "-c 1k -d 1m --threads=4 --html=out.html --runs 1 -- http://localhost/");
        assert_eq!((asked.connections, asked.time), (1000, Some(Duration::from_secs(60))));
        assert_eq!(asked.ours, ["--html=out.html", "--runs=1"]);
        let asked = read_line(Tool::Wrk, "-t2 -c100 -d30s -R2000 http://127.0.0.1/");
        assert_eq!(asked.rate, Some(2000.0));
    }

    #[test]
    fn what_is_not_done_says_what_to_do_instead() {
        for (line, part) in [
            ("-s post.lua http://localhost/", "collection"),
            ("-t 20 http://localhost/", "threads"),
            ("-c ten http://localhost/", "-c ten"),
            ("-c", "needs a value"),
            ("-c 10", "URL is missing"),
            ("http://a/ http://b/", "too much"),
            ("-x http://a/", "no option -x"),
            ("--fast http://a/", "no option --fast"),
            ("-d 0 http://a/", "-d 0"),
        ] {
            let error = refused(Tool::Wrk, line);
            assert!(error.contains(part) && error.starts_with("wrk: "), "{line}: {error}");
        }
    }
}
