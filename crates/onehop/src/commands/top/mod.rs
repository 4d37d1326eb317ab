//! `onehop top`: a running onehop, live in the terminal: what `onehop status` shows, each second, with rates.
//!
//! [`page`] makes text of two looks at the server; here is the terminal: what is drawn, which keys there are.

mod page;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use rustix::param::clock_ticks_per_second;

use super::control::ask_within;
use crate::arguments::Top;
use crate::control_client::{list, number};
use crate::failure::Failure;
use page::{Look, Sort};

/// How often the server is looked at: as often as a person can read, and a thousandth of a core for the server.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// How long a look may take: a server answers its control socket within milliseconds.
const LOOK_DEADLINE: Duration = Duration::from_secs(3);

/// What is shown.
#[derive(Default)]
struct View {
    before: Option<Look>,
    now: Option<Look>,
    /// Why there was no newer look.
    failure: Option<String>,
    sort: Sort,
    /// Lines above the screen.
    scrolled: u16,
}

pub(crate) fn top(arguments: &Top) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let next = "`onehop status` prints the same once, `onehop status --json` for programs";
        return Err(Failure::failed(format!("onehop top needs a terminal\n  {next}")));
    }
    // Where no server runs, that is said before the screen is taken.
    let mut view = View { now: Some(look(arguments)?), ..View::default() };
    let mut terminal = ratatui::try_init().map_err(|error| unusable(&error))?;
    let ended = run(&mut terminal, arguments, &mut view);
    ratatui::restore();
    ended.map_err(|error| unusable(&error))
}

fn unusable(error: &io::Error) -> Failure {
    Failure::failed(format!("the terminal cannot be used: {error}"))
}

fn run(terminal: &mut DefaultTerminal, arguments: &Top, view: &mut View) -> io::Result<()> {
    let mut next_look = Instant::now() + LOOK_PERIOD;
    loop {
        terminal.draw(|frame| draw(frame, view))?;
        if event::poll(next_look.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                let is_control_c = key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char('c');
                if is_control_c || !view.press(key.code) {
                    return Ok(());
                }
            }
            continue;
        }
        match look(arguments) {
            Ok(look) => {
                view.failure = None;
                view.before = view.now.replace(look);
            }
            Err(failure) => view.failure = Some(failure.first_line()),
        }
        next_look = Instant::now() + LOOK_PERIOD;
    }
}

impl View {
    /// False: the person is done.
    fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::Right | KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Left => self.sort = self.sort.previous(),
            _ => {}
        }
        true
    }
}

fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let [body, footer] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    let page = view.now.as_ref().map(|now| page::page(view.before.as_ref(), now, view.sort));
    let mut lines: Vec<Line<'_>> = Vec::new();
    for text in page.iter().flat_map(|page| page.lines()) {
        // The heads of tables, each of which follows an empty line.
        let is_head = lines.last().is_some_and(|before| before.width() == 0);
        let style = if is_head { Style::default().add_modifier(Modifier::BOLD) } else { Style::default() };
        lines.push(Line::styled(text, style));
    }
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(body.height);
    view.scrolled = view.scrolled.min(most);
    frame.render_widget(Paragraph::new(Text::from(lines)).scroll((view.scrolled, 0)), body);
    let keys = format!("q quit   up, down scroll   left, right sorted by {}", view.sort.name());
    let footer_text = view.failure.clone().unwrap_or(keys);
    let style = Style::default().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(footer_text).style(style), footer);
}

fn look(arguments: &Top) -> Result<Look, Failure> {
    let status = ask_within(LOOK_DEADLINE, &arguments.target, "GET", "/status")?.body;
    let workers = list(&status, "apps").iter().flat_map(|app| list(app, "workers"));
    let pids = workers.map(|worker| number(worker, "pid")).chain([number(&status, "pid")]);
    let cpu: BTreeMap<u64, f64> = pids.filter_map(|pid| Some((pid, cpu_seconds(pid)?))).collect();
    Ok(Look { at: Instant::now(), status, cpu })
}

/// CPU time that a process on this machine has used, from proc(5).
fn cpu_seconds(pid: u64) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
    Some((user + system) as f64 / clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn view() -> View {
        let (before, now) = page::tests::looks();
        View { before: Some(before), now: Some(now), ..View::default() }
    }

    fn shown(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_rates_between_two_looks() {
        insta::assert_snapshot!(shown(&mut view()));
    }

    #[test]
    fn keys_sort_scroll_and_quit() {
        let mut view = view();
        assert!(view.press(KeyCode::Right));
        assert_eq!(view.sort.name(), "p99");
        assert!(view.press(KeyCode::Left));
        assert_eq!(view.sort.name(), "rate");
        for _ in 0..100 {
            assert!(view.press(KeyCode::Down));
        }
        let screen = shown(&mut view);
        assert!(view.scrolled < 100, "no further than to the end");
        assert!(screen.contains("sorted by rate"), "{screen}");
        assert!(!view.press(KeyCode::Char('q')));
    }

    #[test]
    fn the_cpu_time_of_a_process_is_read() {
        assert!(cpu_seconds(u64::from(std::process::id())).is_some());
        assert_eq!(cpu_seconds(u64::MAX), None);
    }
}
