//! Whether two stacks answer the same: asked before anything is measured.
//!
//! Owns the questions and what counts as a difference. Each stack is asked everything twice, in turn with the other,
//! and what differs once more after a pause: so what changes by itself (a time, a random number, a counter) is told
//! from what differs. Never counts as a difference what [`IGNORED`] names, and always says that.

mod aspects;

use std::time::Duration;

use onehop_load::client::Client;
use onehop_load::plan::{Request, Timeouts};
use onehop_load::url::Address;

use super::Compared;
use super::route::PATHS_MAX;
use super::stacks::{Stack, accept};
use aspects::{Aspect, Seen};

/// What is not compared, in words for a caveat.
pub(super) const IGNORED: &str = "Not counted as differences: Date, Server, Via, Connection, Keep-Alive, the framing \
    (Content-Length or Transfer-Encoding), the characters of an ETag, the values of cookies and the time at which they \
    end (their names and other attributes are compared), Last-Modified of a 304, the server's own address in Location, \
    the text of nginx's own error pages, whether an answer is compressed (it must be the same when it is decoded) and \
    Accept-Encoding in Vary, which follows from that.";

/// Questions altogether.
const QUESTIONS_MAX: usize = 32;
/// Paths that are asked in every variant.
const PATHS_IN_ALL_FORMS_MAX: usize = 3;
/// Folders below which a page that is not there is asked for.
const FOLDERS_MAX: usize = 5;
/// A clock in seconds, and most caches of one, have moved on after this.
const PAUSE: Duration = Duration::from_millis(1_100);
/// A page that takes longer is no page to measure.
pub(super) const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(2), response: Duration::from_secs(10) };
/// Nobody has it, and the name says to whoever reads a log where it came from.
pub const MISSING: &str = "/onehop-try-asks-for-a-page-that-is-not-there";

/// What came of asking.
#[derive(Debug)]
pub(super) struct Sameness {
    /// Each question, with what differs.
    pub(super) compared: Vec<Compared>,
    /// What changes by itself, for people.
    pub(super) changing: Vec<String>,
    /// Paths and what their plain GET came to, in the order in which they were given.
    pub(super) paths: Vec<PathSeen>,
}

/// What the plain GET of a path came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathSeen {
    pub(super) path: String,
    /// Both answered 200.
    pub(super) is_served: bool,
    /// Why figures for it would compare different things: its status or body differs.
    pub(super) differs: Option<String>,
    /// Bytes of its body.
    pub(super) bytes: usize,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    method: &'static str,
    path: String,
    variant: Variant,
}

/// The variant of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Nothing is asked of the coding.
    Plain,
    /// With this coding accepted.
    Coded(&'static str),
    /// With the ETag that came with the plain answer.
    Conditional,
}

/// One of the two sides.
struct Side<'a> {
    stack: &'a Stack,
    client: Client,
    /// ETags that came with plain answers, by path.
    etags: Vec<(String, String)>,
    /// Paths to which the server answered with an error page of its own.
    own_errors: Vec<String>,
}

/// Asks both.
pub(super) fn compare(today: &Stack, onehop: &Stack, paths: &[String]) -> Sameness {
    let questions = questions(paths);
    let mut sides = [Side::new(today), Side::new(onehop)];
    let mut responses: Vec<[Vec<Seen>; 2]> = Vec::new();
    for question in &questions {
        let mut seen = [Vec::new(), Vec::new()];
        for _ in 0..2 {
            for (side, seen) in sides.iter_mut().zip(&mut seen) {
                seen.push(side.request(question));
            }
        }
        responses.push(seen);
    }
    request_again(&questions, &mut sides, &mut responses);
    let names = [today.name.as_str(), onehop.name.as_str()];
    let mut sameness = reported(&questions, &responses, names);
    // Those with a query of ours are twins of the given ones.
    sameness.paths.retain(|seen| paths.contains(&seen.path));
    sameness
}

/// Asks once more for what differs, after a pause.
fn request_again(questions: &[Question], sides: &mut [Side<'_>; 2], responses: &mut [[Vec<Seen>; 2]]) {
    let differs = |seen: &[Vec<Seen>; 2]| !aspects::differences(seen, ["", ""]).differing.is_empty();
    if !responses.iter().any(differs) {
        return;
    }
    std::thread::sleep(PAUSE);
    for (question, seen) in questions.iter().zip(responses).filter(|(_, seen)| differs(seen)) {
        for (side, seen) in sides.iter_mut().zip(seen) {
            seen.push(side.request(question));
        }
    }
}

fn reported(questions: &[Question], responses: &[[Vec<Seen>; 2]], names: [&str; 2]) -> Sameness {
    let mut sameness = Sameness { compared: Vec::new(), changing: Vec::new(), paths: Vec::new() };
    for (question, seen) in questions.iter().zip(responses) {
        let found = aspects::differences(seen, names);
        let request = question.words();
        if !found.changing.is_empty() {
            let what: Vec<String> = found.changing.iter().map(Aspect::to_string).collect();
            let verb = if what.len() == 1 { "changes" } else { "change" };
            let what = what.join(", ");
            sameness.changing.push(format!("{request}: {what} {verb} from one answer to the next by itself"));
        }
        if question.method == "GET" && question.variant == Variant::Plain {
            let weighty = found.differing.iter().find(|(aspect, _)| aspect.is_weighty());
            sameness.paths.push(PathSeen {
                path: question.path.clone(),
                is_served: seen.iter().flatten().all(|seen| seen.status() == Some(200)),
                differs: weighty.map(|(_, words)| words.clone()),
                bytes: seen.iter().flatten().map(Seen::body_bytes).max().unwrap_or(0),
            });
        }
        let differences = found.differing.into_iter().map(|(_, words)| words).collect();
        sameness.compared.push(Compared { request, differences });
    }
    sameness
}

fn questions(paths: &[String]) -> Vec<Question> {
    let mut seen = std::collections::HashSet::new();
    let paths: Vec<&String> =
        paths.iter().filter(|path| seen.insert(path.as_str())).take(PATHS_MAX).collect();
    let of = |method, path: &str, variant| Question { method, path: path.to_owned(), variant };
    let mut questions: Vec<Question> = paths.iter().map(|path| of("GET", path, Variant::Plain)).collect();
    for path in paths.iter().take(PATHS_IN_ALL_FORMS_MAX) {
        questions.push(of("HEAD", path, Variant::Plain));
        questions.push(of("GET", path, Variant::Coded("gzip")));
        questions.push(of("GET", path, Variant::Coded("br")));
        questions.push(of("GET", path, Variant::Conditional));
    }
    if let Some(first) = paths.first() {
        let mark = if first.contains('?') { '&' } else { '?' };
        questions.push(of("GET", &format!("{first}{mark}onehop=try"), Variant::Plain));
        questions.push(of("HEAD", &format!("{first}{mark}onehop=try"), Variant::Plain));
    }
    questions.push(of("GET", MISSING, Variant::Plain));
    questions.push(of("HEAD", MISSING, Variant::Plain));
    questions.push(of("GET", MISSING, Variant::Coded("gzip")));
    // What is not there is often decided for each prefix by itself, as by `try_files`.
    let folders = paths.iter().filter_map(|path| path.strip_suffix('/')).filter(|folder| !folder.is_empty());
    questions.extend(
        folders.take(FOLDERS_MAX).map(|folder| of("GET", &format!("{folder}{MISSING}"), Variant::Plain)),
    );
    questions.truncate(QUESTIONS_MAX);
    questions
}

impl Question {
    fn words(&self) -> String {
        let form = match self.variant {
            Variant::Plain => String::new(),
            Variant::Coded(coding) => format!(" (Accept-Encoding: {coding})"),
            Variant::Conditional => " (If-None-Match)".to_owned(),
        };
        format!("{} {}{form}", self.method, self.path)
    }
}

impl<'a> Side<'a> {
    fn new(stack: &'a Stack) -> Self {
        Side {
            stack,
            client: Client::new(Address::Tcp(stack.address)),
            etags: Vec::new(),
            own_errors: Vec::new(),
        }
    }

    fn request(&mut self, question: &Question) -> Seen {
        let mut request: Request = self.stack.request(&question.path);
        question.method.clone_into(&mut request.method);
        request.fields.retain(|(name, _)| name != "Accept");
        request.fields.push(accept(&question.path));
        match question.variant {
            Variant::Plain => {}
            Variant::Coded(coding) => request.fields.push(("Accept-Encoding".to_owned(), coding.to_owned())),
            Variant::Conditional => {
                if let Some((_, etag)) = self.etags.iter().find(|(path, _)| *path == question.path) {
                    request.fields.push(("If-None-Match".to_owned(), etag.clone()));
                }
            }
        }
        let response = self.client.request(&request, TIMEOUTS);
        if let Ok(response) = &response
            && question.method == "GET"
            && question.variant == Variant::Plain
            && let Some(etag) = response.field("etag")
        {
            self.etags.retain(|(path, _)| *path != question.path);
            self.etags.push((question.path.clone(), etag.to_owned()));
        }
        let is_own_error = response.as_ref().is_ok_and(aspects::is_own_error_page)
            || (question.method == "HEAD" && self.own_errors.contains(&question.path));
        let seen = Seen::new(response, self.stack.address);
        if !is_own_error {
            return seen;
        }
        if !self.own_errors.contains(&question.path) {
            self.own_errors.push(question.path.clone());
        }
        seen.without_text()
    }
}

#[cfg(test)]
pub(super) mod tests;
