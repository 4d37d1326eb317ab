//! What workers write to standard output and standard error becomes events.
//!
//! Always reads, so that a worker never waits for its own log: lines are cut, and counted where there are too
//! many.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::events::{AppEvent, AppEventSink};
use crate::limits::{
    WORKER_LAST_LINES_MAX, WORKER_LINE_BYTES_MAX, WORKER_LINES_PER_SECOND_MAX, WORKER_LINES_PERIOD,
};

/// The last lines that a worker wrote to standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= WORKER_LAST_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The lines, each after a line end and two spaces.
    pub(crate) fn indented(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().flat_map(|line| ["\n  ", line]).collect()
    }
}

/// The application and process, and which of its outputs.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) app: String,
    pub(crate) pid: u32,
    pub(crate) is_error: bool,
}

/// Reads an output to its end.
pub(crate) async fn drain(
    mut output: impl AsyncRead + Unpin,
    source: Source,
    events: AppEventSink,
    last: Option<LastLines>,
    mut trace: Option<TraceReader>,
) {
    let mut buffer = vec![0; WORKER_LINE_BYTES_MAX];
    let mut lines = Lines::default();
    let mut rate = Rate::new();
    loop {
        // Lines that were counted are reported a second later, even if nothing follows them.
        let read = tokio::time::timeout_at(rate.report_at(), output.read(&mut buffer)).await;
        let say = |line: String| {
            let Source { app, pid, is_error } = source.clone();
            events(AppEvent::Output { app, pid, is_error, line });
        };
        let is_at_end = matches!(read, Ok(Ok(0) | Err(_)));
        let bytes = match read {
            Ok(Ok(count)) => buffer.get(..count).unwrap_or_default(),
            _ => &[],
        };
        let mut take = |line: String| {
            if trace.as_mut().is_some_and(|trace| trace.takes(&line)) {
                return;
            }
            if let Some(last) = &last {
                last.push(line.clone());
            }
            if rate.may_show() {
                say(line);
            } else {
                rate.dropped += 1;
            }
        };
        lines.push(bytes, &mut take);
        if is_at_end {
            lines.finish(&mut take);
        }
        if let Some(dropped) = rate.tell(is_at_end) {
            say(format!("({dropped} more lines were not shown: they came too fast)"));
        }
        if is_at_end {
            return;
        }
    }
}

/// Removes the stack that Node prints when it is interrupted from standard error.
#[derive(Debug)]
pub(crate) struct TraceReader {
    frames: mpsc::Sender<String>,
    is_asked: Arc<AtomicBool>,
    is_inside: bool,
}

impl TraceReader {
    /// The reader, the flag that says that the process was interrupted, and the frames; an empty line ends them.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>, mpsc::Receiver<String>) {
        let (frames, received) = mpsc::channel(TRACE_LINES_MAX);
        let is_asked = Arc::<AtomicBool>::default();
        (Self { frames, is_asked: Arc::clone(&is_asked), is_inside: false }, is_asked, received)
    }

    /// Whether a line is not to be shown.
    fn takes(&mut self, line: &str) -> bool {
        if !self.is_asked.load(Ordering::Relaxed) {
            return false;
        }
        if !self.is_inside {
            self.is_inside = line.starts_with(TRACE_BEGINNING);
            return self.is_inside;
        }
        self.is_inside = line.starts_with("    at ");
        let _ = self.frames.try_send(if self.is_inside { line.to_owned() } else { String::new() });
        self.is_inside || line.is_empty()
    }
}

/// What Node prints before the stack.
const TRACE_BEGINNING: &str = "KEYBOARD_INTERRUPT: ";

/// Lines of a stack that wait to be read: Node prints ten unless an application asks for more.
const TRACE_LINES_MAX: usize = 256;

/// Splits bytes into lines, none longer than [`WORKER_LINE_BYTES_MAX`].
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8], take: &mut impl FnMut(String)) {
        while !bytes.is_empty() {
            let room = WORKER_LINE_BYTES_MAX.saturating_sub(self.partial.len()).max(1);
            let window = bytes.get(..room.min(bytes.len())).unwrap_or(bytes);
            let end = window.iter().position(|byte| *byte == b'\n');
            let (line, rest) = bytes.split_at(end.unwrap_or(window.len()));
            self.partial.extend_from_slice(line);
            bytes = if end.is_some() { rest.get(1..).unwrap_or_default() } else { rest };
            if end.is_some() || self.partial.len() >= WORKER_LINE_BYTES_MAX {
                take(readable(&self.partial));
                self.partial.clear();
            }
        }
    }

    fn finish(&mut self, take: &mut impl FnMut(String)) {
        if !self.partial.is_empty() {
            take(readable(&self.partial));
            self.partial.clear();
        }
    }
}

/// Escapes what a terminal would take for a command: a log may show what a client sent. Colours go too.
fn readable(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let mut readable = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\u{1b}[")
            && let Some(end) = after.find(|sign: char| !matches!(sign, '0'..='9' | ';'))
            && let Some(next) = after.get(end..).and_then(|after| after.strip_prefix('m'))
        {
            rest = next;
            continue;
        }
        if first.is_control() && first != '\t' {
            readable.extend(first.escape_default());
        } else {
            readable.push(first);
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    readable
}

/// How many lines were shown in this second, and how many were not.
struct Rate {
    started: Instant,
    shown: u32,
    dropped: u64,
}

impl Rate {
    fn new() -> Self {
        Self { started: Instant::now(), shown: 0, dropped: 0 }
    }

    fn may_show(&mut self) -> bool {
        if self.started.elapsed() >= WORKER_LINES_PERIOD && self.dropped == 0 {
            *self = Self::new();
        }
        self.shown += 1;
        self.shown <= WORKER_LINES_PER_SECOND_MAX
    }

    fn report_at(&self) -> Instant {
        // Nothing is to be reported: this only looks again.
        if self.dropped > 0 {
            self.started + WORKER_LINES_PERIOD
        } else {
            Instant::now() + 60 * WORKER_LINES_PERIOD
        }
    }

    fn tell(&mut self, is_at_end: bool) -> Option<u64> {
        if self.dropped == 0 || (!is_at_end && self.started.elapsed() < WORKER_LINES_PERIOD) {
            return None;
        }
        let dropped = self.dropped;
        *self = Self::new();
        Some(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, &mut |line| all.push(line));
        }
        lines.finish(&mut |line| all.push(line));
        all
    }

    #[test]
    fn lines_come_whole_however_they_were_written() {
        assert_eq!(lines_of(&[b"a\nb", b"c\r\n", b"\n", b"d"]), ["a", "bc", "", "d"]);
        assert_eq!(lines_of(&[]), [""; 0]);
    }

    #[test]
    fn a_line_without_end_becomes_lines_of_the_longest_length() {
        let long = vec![b'x'; 2 * WORKER_LINE_BYTES_MAX + 1];
        let lengths: Vec<_> = lines_of(&[&long, b"\n"]).iter().map(String::len).collect();
        assert_eq!(lengths, [WORKER_LINE_BYTES_MAX, WORKER_LINE_BYTES_MAX, 1]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (line, expected) in [
            (&b"\x1b[31mred\x1b[0m"[..], "red"),
            (b"\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            (b"a\tb\x08", "a\tb\\u{8}"),
            (b"\xff\xc3\xa4", "\u{fffd}\u{e4}"),
            (b"\x1b[", "\\u{1b}["),
        ] {
            assert_eq!(readable(line), expected);
        }
    }
}
