//! What is seen while a measurement goes on: a few lines on standard error.
//!
//! Owns the drawing by hand (ECMA-48 sequences), cleared at the end so that nothing of it remains. Where standard error
//! is no terminal (or a dumb one), a line at each stage and one now and then. Never costs the load anything: it draws at
//! most some times a second, and an error in writing is no error of the measurement.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onehop_load::progress::{Observer, Progress};

use super::{figures, text_plot};

/// Between two drawings: as often as an eye follows figures.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Between two lines where there is no terminal: often enough to see that it lives, in a log that stays short.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Rates that are kept for the small curve: the width of a wide terminal.
const HISTORY_MAX: usize = 120;

/// Columns where the terminal does not tell: what they have been since the VT100.
const WIDTH_UNKNOWN: usize = 80;

/// The width of the progress bar.
const BAR: usize = 24;

/// A live view of a measurement.
pub struct Live {
    out: Box<dyn Write>,
    form: Display,
    interrupt: Option<Arc<AtomicBool>>,
    stage: String,
    last: Option<Progress>,
    rates: VecDeque<f64>,
    drawn_at: Option<Instant>,
    /// Widths of the lines that stand on the screen.
    on_screen: Vec<usize>,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Display {
    /// Lines that are drawn again and again.
    Drawn { colour: bool },
    /// A line now and then.
    Lines,
}

impl Live {
    /// A view on standard error. `NO_COLOR` (where it is not empty) and `TERM=dumb` are honoured.
    pub fn new() -> Live {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|kind| kind == "dumb" || kind.is_empty());
        let form = match io::stderr().is_terminal() && !is_dumb {
            true => Display::Drawn { colour: !is_set("NO_COLOR") },
            false => Display::Lines,
        };
        Live::on(Box::new(io::stderr()), form)
    }

    /// Breaks the measurement off once the flag is set.
    #[must_use]
    pub fn interruptible(mut self, flag: Arc<AtomicBool>) -> Live {
        self.interrupt = Some(flag);
        self
    }

    /// Takes the view off the screen.
    pub fn finish(&mut self) {
        self.clear();
    }

    fn on(out: Box<dyn Write>, form: Display) -> Live {
        Live {
            out,
            form,
            interrupt: None,
            stage: String::new(),
            last: None,
            rates: VecDeque::new(),
            drawn_at: None,
            on_screen: Vec::new(),
        }
    }

    fn is_due(&self, after: Duration) -> bool {
        self.drawn_at.is_none_or(|drawn| drawn.elapsed() >= after)
    }

    fn show(&mut self) {
        match self.form {
            Display::Drawn { colour } => {
                let width = width_of_terminal();
                let lines = view(&self.stage, self.last.as_ref(), self.rates.make_contiguous(), width);
                self.clear_at(width);
                let mut text = String::new();
                for (place, line) in lines.iter().enumerate() {
                    match colour && place == 0 {
                        true => text.push_str(&format!("\x1b[1m{line}\x1b[0m\r\n")),
                        false => text.push_str(&format!("{line}\r\n")),
                    }
                }
                let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
                self.on_screen = lines.iter().map(|line| line.chars().count()).collect();
            }
            Display::Lines => {
                let text = match &self.last {
                    Some(progress) => line(&self.stage, progress),
                    None => format!("{}\n", self.stage),
                };
                let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
            }
        }
        self.drawn_at = Some(Instant::now());
    }

    fn clear(&mut self) {
        self.clear_at(width_of_terminal());
    }

    /// Goes up to the first line and erases from there. A terminal that became narrower has wrapped what stood there:
    /// the lines are counted as they lie now.
    fn clear_at(&mut self, width: usize) {
        let lines: usize = self.on_screen.iter().map(|letters| letters.div_ceil(width.max(1)).max(1)).sum();
        if lines > 0 {
            let _ = write!(self.out, "\r\x1b[{lines}A\x1b[J").and_then(|()| self.out.flush());
        }
        self.on_screen.clear();
    }
}

impl Default for Live {
    fn default() -> Self {
        Live::new()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Live")
            .field("form", &self.form)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Observer for Live {
    fn stage(&mut self, words: &str) {
        self.stage = super::secrets::hide(&figures::visible(words));
        self.last = None;
        self.rates.clear();
        self.show();
    }

    fn progress(&mut self, progress: &Progress) {
        self.last = Some(*progress);
        if self.rates.len() == HISTORY_MAX {
            self.rates.pop_front();
        }
        self.rates.push_back(progress.rate);
        let every = match self.form {
            Display::Drawn { .. } => DRAW_EVERY,
            Display::Lines => LINE_EVERY,
        };
        if self.is_due(every) {
            self.show();
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The lines of the view, none wider than the terminal less one: a full line would wrap on some.
fn view(stage: &str, progress: Option<&Progress>, rates: &[f64], width: usize) -> Vec<String> {
    let room = width.saturating_sub(1).max(1);
    let mut lines = vec![stage.to_owned()];
    if let Some(progress) = progress {
        let phase = if progress.is_warming_up { "warming up, " } else { "" };
        lines.push(format!("  {phase}{}", how_far(progress)));
        lines.push(format!("  {}", figures(progress)));
        let top = rates.iter().copied().fold(0.0, f64::max);
        let newest = rates.len().saturating_sub(room.saturating_sub(30).max(1));
        let newest = rates.get(newest..).unwrap_or_default();
        if top > 0.0 {
            lines.push(format!(
                "  {} up to {}",
                text_plot::sparkline(newest, newest.len().max(1), 0.0, top),
                figures::rate(top)
            ));
        }
    }
    lines.into_iter().map(|line| line.chars().take(room).collect()).collect()
}

fn how_far(progress: &Progress) -> String {
    let elapsed = figures::duration(progress.elapsed);
    let Some(share) = progress.share.filter(|share| share.is_finite()) else {
        return format!("{elapsed} so far");
    };
    let share = share.clamp(0.0, 1.0);
    let done = (share * BAR as f64) as usize;
    let bar = format!("[{}{}]", "#".repeat(done), ".".repeat(BAR - done));
    let left = if share > 0.0 { progress.elapsed.as_secs_f64() * (1.0 - share) / share } else { f64::NAN };
    match Duration::try_from_secs_f64(left) {
        Ok(left) => format!("{bar} {:.0} %, {} left", share * 100.0, figures::length(left)),
        Err(_) => format!("{bar} {elapsed}"),
    }
}

fn figures(progress: &Progress) -> String {
    format!(
        "{}  p50 {}  p99 {}  good {}  bad {}",
        figures::rate(progress.rate),
        figures::duration(progress.p50),
        figures::duration(progress.p99),
        figures::count(progress.good),
        figures::count(progress.bad)
    )
}

fn line(stage: &str, progress: &Progress) -> String {
    let phase = if progress.is_warming_up { " (warming up)" } else { "" };
    let share = progress.share.map_or_else(String::new, |share| format!(", {:.0} %", share * 100.0));
    format!("{stage}{phase}: {}{share}, {}\n", figures::duration(progress.elapsed), figures(progress))
}

/// Asked each time, since a terminal changes its size as it likes.
fn width_of_terminal() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH_UNKNOWN)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What was written, shared with the test.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn progress() -> Progress {
        Progress {
            is_warming_up: false,
            elapsed: Duration::from_secs(3),
            share: Some(0.25),
            good: 144_000,
            bad: 2,
            rate: 48_210.0,
            p50: Duration::from_micros(1250),
            p99: Duration::from_micros(2870),
        }
    }

    #[test]
    fn the_view_tells_how_far_it_is_and_is_never_wider_than_the_terminal() {
        let rates: Vec<f64> = (1..=40).map(|place| 40_000.0 + f64::from(place) * 100.0).collect();
        let lines = view("round 3 of 10: nginx", Some(&progress()), &rates, 80);
        insta::assert_snapshot!(lines.join("\n"));
        for width in [1, 2, 10, 40, 200] {
            for line in view("a stage with quite a long name", Some(&progress()), &rates, width) {
                assert!(line.chars().count() < width.max(2), "{width}: {line}");
            }
        }
        let strange = Progress { share: Some(f64::NAN), elapsed: Duration::ZERO, ..progress() };
        assert!(view("", Some(&strange), &[f64::NAN], 80)[1].contains("so far"));
        let begun = Progress { share: Some(0.0), ..progress() };
        assert!(!view("", Some(&begun), &[], 80)[1].contains("left"));
    }

    #[test]
    fn what_was_drawn_is_taken_away_again() {
        let written = Written::default();
        let mut live = Live::on(Box::new(written.clone()), Display::Drawn { colour: false });
        live.stage("warming up \u{1b}[31m");
        live.drawn_at = None;
        live.progress(&progress());
        live.finish();
        let text = written.text();
        assert!(text.starts_with("warming up \\u{1b}[31m\r\n"), "nothing from outside is obeyed: {text:?}");
        assert!(text.contains("\r\x1b[1A\x1b[J"), "the stage's line is taken away before the next: {text:?}");
        assert!(text.ends_with("\r\x1b[4A\x1b[J"), "nothing remains at the end: {text:?}");
        assert!(!text.contains("\x1b[1m"), "no colour where none was wanted");
    }

    #[test]
    fn without_a_terminal_there_is_a_line_for_each_stage_and_few_more() {
        let written = Written::default();
        let mut live = Live::on(Box::new(written.clone()), Display::Lines);
        live.stage("run 1 of 2");
        for _ in 0..100 {
            live.progress(&progress());
        }
        live.drawn_at = Instant::now().checked_sub(LINE_EVERY);
        live.progress(&progress());
        live.finish();
        let expected =
            "run 1 of 2\nrun 1 of 2: 3.00 s, 25 %, 48,210/s  p50 1.25 ms  p99 2.87 ms  good 144,000  bad 2\n";
        assert_eq!(written.text(), expected);
    }

    #[test]
    fn a_flag_breaks_it_off() {
        let flag = Arc::new(AtomicBool::new(false));
        let live = Live::on(Box::new(io::sink()), Display::Lines).interruptible(Arc::clone(&flag));
        assert!(!live.is_interrupted());
        flag.store(true, Ordering::Relaxed);
        assert!(live.is_interrupted());
    }
}
