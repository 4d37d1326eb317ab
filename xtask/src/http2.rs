//! `http2`: the cases of h2spec against the real program, in clear text and over TLS, without and with its strict cases.
//!
//! It decides nothing about HTTP/2: a case passes, or is in a list with the reason why it cannot.

use std::path::Path;

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, Onehop, Program};

use crate::steps::command;
use crate::{Outcome, install, workspace};

/// Cases that fail in clear text: h2spec's name of the case, and why the program is right all the same.
const EXPECTED_IN_CLEAR_TEXT: &[(&str, &str)] = &[(
    "http2/3.5: Sends invalid connection preface",
    "what is not the preface of HTTP/2 is a request of HTTP/1 there, and is answered with 400 (RFC 9113 section 3.4: an \
     invalid preface indicates that the peer is not using HTTP/2)",
)];

/// Cases of h2spec 2.2.1 without the strict ones, of which it has one; fewer in a report mean that it was cut off.
const CASES: usize = 145;

/// How long h2spec waits for each answer: a case that passes does not wait for it.
const SECONDS: &str = "5";

/// Runs all cases in each way.
pub(crate) fn run() -> Outcome {
    let h2spec = install::h2spec()?;
    let folder = Folder::new();
    // A response that follows the whole request: one that does not wait for the body may come before its client's error.
    let upstream = Upstream::answering(|_| {
        let body = "A body that is longer than the windows of some cases.";
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let clear = serve(&folder, "http", &upstream);
    let encrypted = serve(&folder, "https", &upstream);
    let port = |onehop: &Onehop| onehop.address.rsplit(':').next().unwrap_or_default().to_owned();
    let (clear, encrypted) = (port(&clear), port(&encrypted));
    let in_clear_text = ["--port", &clear, "--strict"];
    let over_tls = ["--port", &encrypted, "--tls", "--insecure", "--strict"];
    let ways: [(&str, &[&str], _); 4] = [
        ("clear text", &in_clear_text[..2], EXPECTED_IN_CLEAR_TEXT),
        ("clear text, strict", &in_clear_text, EXPECTED_IN_CLEAR_TEXT),
        ("TLS", &over_tls[..4], &[]),
        ("TLS, strict", &over_tls, &[]),
    ];
    let mut wrong = Vec::new();
    for (way, words, expected) in ways {
        let failed = failures(&h2spec, words, &folder.join("report.xml"))?;
        println!("    {way}: {} of {} cases failed, {} should", failed.len(), cases(words), expected.len());
        let unexpected = failed.iter().filter(|case| expected.iter().all(|(name, _)| *name != case.name));
        wrong.extend(unexpected.map(|case| format!("{way}: {}: {}", case.name, case.text)));
        let fixed = expected.iter().filter(|(name, _)| failed.iter().all(|case| case.name != *name));
        wrong.extend(fixed.map(|(name, _)| format!("{way}: {name} passes: take it out of the list")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn cases(words: &[&str]) -> usize {
    CASES + usize::from(words.contains(&"--strict"))
}

/// The program with one site of this scheme on a free port.
fn serve(folder: &Folder, scheme: &str, upstream: &Upstream) -> Onehop {
    let data = folder.join("data");
    let globals = format!("admin off\n\tauto_https disable_redirects\n\tdata_dir {}", data.display());
    let site = format!("bind 127.0.0.1\n\treverse_proxy {}", upstream.address());
    let text = format!("{{\n\t{globals}\n}}\n{scheme}://localhost:0 {{\n\t{site}\n}}\n");
    let file = folder.write(&format!("Onehopfile.{scheme}"), text);
    let line = ["run", "--log", "json", "--control", "off", "--config"].map(str::to_owned);
    let line = line.into_iter().chain([file.display().to_string()]);
    Program::of(&workspace::program(), line).inside(folder.path()).serve()
}

/// A case that failed.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    name: String,
    text: String,
}

/// Runs all cases in one way; those that failed.
fn failures(h2spec: &Path, words: &[&str], report: &Path) -> Outcome<Vec<Failure>> {
    let mut run = command(h2spec, &["--host", "localhost", "--timeout", SECONDS]);
    let output = run.args(words).arg("--junit-report").arg(report).output()?;
    // It ends with 1 where a case failed, and writes its report all the same.
    let text = std::fs::read_to_string(report).map_err(|error| {
        format!("h2spec wrote no report: {error}\n{}", String::from_utf8_lossy(&output.stderr))
    })?;
    std::fs::remove_file(report)?;
    let (count, failed) = read(&text);
    if count == cases(words) {
        Ok(failed)
    } else {
        Err(format!("h2spec reports {count} cases instead of {}", cases(words)).into())
    }
}

/// How many cases a report has, and those that failed.
fn read(report: &str) -> (usize, Vec<Failure>) {
    let cases: Vec<&str> = report.split("<testcase ").skip(1).collect();
    let failed = cases.iter().filter_map(|case| {
        let (_, text) = case.split_once("<error>").or_else(|| case.split_once("<failure>"))?;
        let text = text.split("</").next().unwrap_or_default().replace('\n', " | ");
        let name = format!("{}: {}", attribute(case, "package"), attribute(case, "classname"));
        Some(Failure { name, text })
    });
    (cases.len(), failed.collect())
}

fn attribute(case: &str, name: &str) -> String {
    let value = case.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split('"').next());
    value.unwrap_or_default().replace("&#34;", "\"").replace("&#39;", "'").replace("&gt;", ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_which_cases_failed() {
        let report = r#"<testsuites><testsuite name="4.2. Frame Size" package="http2/4.2" tests="2">
    <testcase package="http2/4.2" classname="Sends a &#34;DATA&#34; frame" time="2.2"><error>GOAWAY Frame
Timeout</error>
    </testcase><testcase package="http2/4.3" classname="Sends another" time="0.1"></testcase></testsuite></testsuites>"#;
        let failure = Failure {
            name: "http2/4.2: Sends a \"DATA\" frame".into(),
            text: "GOAWAY Frame | Timeout".into(),
        };
        assert_eq!(read(report), (2, vec![failure]));
    }
}
