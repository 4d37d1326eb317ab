//! The last lines of requests, applications and events, in memory: what `onehop logs` shows.
//!
//! Bounded by [`RECENT_BYTES_MAX`]; what does not fit makes the oldest lines go. Lines of requests come from the threads that
//! write access logs, in whole batches, so that no request pays for it. A reader takes what it has not seen, as one JSON
//! object a line (docs/control-api.md), and learns how many lines it has missed.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_message::calendar::Moment;

use crate::json_string::push_json;
use crate::limits::{RECENT_BYTES_MAX, RECENT_SITES_MAX};

/// One line of an access log within its batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Where it ends in the text of the batch.
    pub(crate) end: usize,
    pub(crate) at: SystemTime,
    /// See [`Recent::site`].
    pub(crate) site: u32,
    pub(crate) status: u16,
    pub(crate) is_json: bool,
    pub(crate) is_error: bool,
}

impl Mark {
    /// The status of what is no response but a message of the server.
    pub(crate) const OF_SERVER: u16 = 0;

    pub(crate) fn is_of_server(&self) -> bool {
        self.status == Self::OF_SERVER
    }
}

/// One line that an application wrote, or one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: SystemTime,
    /// It is a line that an application wrote, not an event.
    pub is_output: bool,
    /// The application that it is about.
    pub app: Option<String>,
    /// It comes from standard error, or is about a failure.
    pub is_error: bool,
    /// For a person.
    pub text: String,
    /// The same as a JSON object.
    pub record: String,
}

/// The last lines.
#[derive(Default)]
pub struct Recent {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    /// Number of the line that comes next, from 0.
    next: u64,
    sites: Vec<Arc<str>>,
    waiting: Vec<Waker>,
}

/// Lines that came together.
struct Chunk {
    /// Number of its first line.
    first: u64,
    lines: Lines,
}

enum Lines {
    Requests { text: Vec<u8>, marks: Vec<Mark> },
    Note(Note),
}

/// What a reader has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// One JSON object a line, in the order of their times.
    pub text: String,
    /// Lines that have gone before they were read.
    pub missed: u64,
    /// What the reader asks for next time.
    pub next: u64,
}

impl Recent {
    /// The number under which lines of a site are kept.
    pub fn site(&self, label: &str) -> u32 {
        let mut state = self.lock();
        let known = state.sites.iter().position(|site| &**site == label);
        let number = known.unwrap_or_else(|| {
            if state.sites.len() < RECENT_SITES_MAX {
                state.sites.push(label.into());
                state.sites.len() - 1
            } else {
                RECENT_SITES_MAX
            }
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Adds lines of an access log. A quiet server's batches have room for many more lines than they hold: that is given back,
    /// or a few lines would be all that is kept.
    pub(crate) fn add_requests(&self, mut text: Vec<u8>, mut marks: Vec<Mark>) {
        if !marks.is_empty() {
            text.shrink_to_fit();
            marks.shrink_to_fit();
            self.add(Lines::Requests { text, marks });
        }
    }

    /// Adds a line of an application, or an event.
    pub fn add_note(&self, note: Note) {
        self.add(Lines::Note(note));
    }

    /// Everything from this line on.
    pub fn read(&self, from: u64) -> Unread {
        let (chunks, sites, next) = {
            let state = self.lock();
            let unread = state.chunks.iter().filter(|chunk| chunk.first + chunk.lines.count() > from);
            (unread.cloned().collect::<Vec<_>>(), state.sites.clone(), state.next)
        };
        let first = chunks.first().map_or(next, |chunk| chunk.first);
        let mut lines: Vec<(SystemTime, Vec<u8>)> = Vec::new();
        for chunk in &chunks {
            chunk.lines.write(
                usize::try_from(from.saturating_sub(chunk.first)).unwrap_or(usize::MAX),
                &sites,
                &mut lines,
            );
        }
        lines.sort_by_key(|(at, _)| *at);
        let text: Vec<u8> = lines.into_iter().flat_map(|(_, line)| line).collect();
        let text = String::from_utf8_lossy(&text).into_owned();
        Unread { text, missed: first.saturating_sub(from), next }
    }

    /// Ready once there is a line of this number.
    pub fn poll_line(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.next > number {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn add(&self, lines: Lines) {
        let mut state = self.lock();
        let chunk = Chunk { first: state.next, lines };
        state.next += chunk.lines.count();
        state.bytes += chunk.lines.bytes();
        state.chunks.push_back(Arc::new(chunk));
        while state.bytes > RECENT_BYTES_MAX
            && let Some(oldest) = state.chunks.pop_front()
        {
            state.bytes -= oldest.lines.bytes();
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn count(&self) -> u64 {
        match self {
            Self::Requests { marks, .. } => marks.len() as u64,
            Self::Note(_) => 1,
        }
    }

    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        match self {
            Self::Requests { text, marks } => text.capacity() + marks.capacity() * size_of::<Mark>(),
            Self::Note(note) => note.text.len() + note.record.len() + size_of::<Chunk>(),
        }
    }

    /// Adds all lines but the first so many.
    fn write(&self, skipped: usize, sites: &[Arc<str>], out: &mut Vec<(SystemTime, Vec<u8>)>) {
        match self {
            Self::Requests { text, marks } => {
                let begins = std::iter::once(0).chain(marks.iter().map(|mark| mark.end));
                for (begin, mark) in begins.zip(marks).skip(skipped) {
                    let line = String::from_utf8_lossy(text.get(begin..mark.end).unwrap_or_default());
                    let site = sites.get(mark.site as usize).map_or("_other", |site| &**site);
                    out.push((mark.at, request(mark, site, line.trim_end_matches('\n'))));
                }
            }
            Self::Note(note) if skipped == 0 => out.push((note.at, note.object())),
            Self::Note(_) => {}
        }
    }
}

impl Note {
    fn object(&self) -> Vec<u8> {
        let kind = if self.is_output { "app" } else { "event" };
        let mut out = begin(self.at, kind, self.is_error);
        if let Some(app) = &self.app {
            out.extend_from_slice(b",\"app\":");
            push_json(&mut out, app.as_bytes());
        }
        out.extend_from_slice(b",\"text\":");
        push_json(&mut out, self.text.as_bytes());
        out.extend_from_slice(b",\"record\":");
        out.extend_from_slice(self.record.as_bytes());
        out.extend_from_slice(b"}\n");
        out
    }
}

fn request(mark: &Mark, site: &str, line: &str) -> Vec<u8> {
    let mut out = begin(mark.at, "request", mark.is_error || mark.status >= 500);
    out.extend_from_slice(b",\"site\":");
    push_json(&mut out, site.as_bytes());
    let _ = write!(out, ",\"status\":{}", mark.status);
    if mark.is_json {
        out.extend_from_slice(b",\"record\":");
        out.extend_from_slice(line.as_bytes());
    } else {
        out.extend_from_slice(b",\"text\":");
        push_json(&mut out, line.as_bytes());
    }
    out.extend_from_slice(b"}\n");
    out
}

/// What all kinds of lines begin with.
fn begin(at: SystemTime, kind: &str, is_error: bool) -> Vec<u8> {
    let milliseconds = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_millis();
    let seconds = Moment::of(at).rfc3339();
    let seconds = seconds.trim_end_matches('Z');
    format!("{{\"time\":\"{seconds}.{milliseconds:03}Z\",\"kind\":\"{kind}\",\"error\":{is_error}")
        .into_bytes()
}

impl std::fmt::Debug for Recent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("Recent")
            .field("bytes", &state.bytes)
            .field("next", &state.next)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(at: u64, text: &str) -> Note {
        Note {
            at: UNIX_EPOCH + Duration::from_millis(at),
            is_output: true,
            app: Some("api".to_owned()),
            is_error: false,
            text: text.to_owned(),
            record: "{}".to_owned(),
        }
    }

    fn mark(at: u64, end: usize, site: u32, status: u16) -> Mark {
        let at = UNIX_EPOCH + Duration::from_millis(at);
        Mark { end, at, site, status, is_json: status == 200, is_error: false }
    }

    #[test]
    fn lines_of_all_kinds_come_in_the_order_of_their_times() {
        let recent = Recent::default();
        let site = recent.site("http://shop.example");
        assert_eq!(recent.site("http://shop.example"), site);
        recent.add_note(note(2, "two \"quoted\""));
        recent.add_requests(b"{\"a\":1}\nplain\n".to_vec(), vec![mark(1, 8, site, 200), mark(3, 14, 9, 502)]);
        let unread = recent.read(0);
        insta::assert_snapshot!(unread.text, @r#"
        {"time":"1970-01-01T00:00:00.001Z","kind":"request","error":false,"site":"http://shop.example","status":200,"record":{"a":1}}
        {"time":"1970-01-01T00:00:00.002Z","kind":"app","error":false,"app":"api","text":"two \"quoted\"","record":{}}
        {"time":"1970-01-01T00:00:00.003Z","kind":"request","error":true,"site":"_other","status":502,"text":"plain"}
        "#);
        assert_eq!((unread.missed, unread.next), (0, 3));
        assert_eq!(recent.read(2).text.lines().count(), 1, "from the middle of a batch");
        assert_eq!(recent.read(3), Unread { text: String::new(), missed: 0, next: 3 });
    }

    #[test]
    fn the_oldest_lines_go_and_a_reader_learns_how_many_it_has_missed() {
        let recent = Recent::default();
        let long = "x".repeat(1024);
        (0..3000).for_each(|number| recent.add_note(note(number, &long)));
        let unread = recent.read(10);
        let kept = unread.text.lines().count() as u64;
        assert!(kept < 1100 && kept > 700, "{kept}");
        assert_eq!((unread.missed, unread.next), (3000 - 10 - kept, 3000));
    }

    #[test]
    fn lines_that_come_one_by_one_are_kept_as_long_as_their_texts_fit() {
        let recent = Recent::default();
        for number in 0..1000 {
            let mut text = Vec::with_capacity(crate::limits::LOG_BATCH_BYTES);
            text.resize(500, b'x');
            let mut marks = Vec::with_capacity(crate::limits::LOG_BATCH_MARKS);
            marks.push(mark(number, text.len(), 0, 502));
            recent.add_requests(text, marks);
        }
        assert_eq!(recent.read(0).text.lines().count(), 1000);
    }

    #[test]
    fn a_reader_that_waits_is_woken_by_a_line() {
        let recent = Recent::default();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(recent.poll_line(0, &mut context), Poll::Pending);
        recent.add_note(note(0, "first"));
        assert_eq!(recent.poll_line(0, &mut context), Poll::Ready(()));
        assert_eq!(recent.poll_line(1, &mut context), Poll::Pending);
        assert_eq!(recent.lock().waiting.len(), 1);
    }
}
