//! The report for a terminal.
//!
//! Owns width, wrapping and colour. Colour only supports what the words say; without it nothing is lost. Nothing is
//! wider than what was asked for, and no control character from outside is written.

mod brief;

use super::document::{Block, Cell, Document, Table, Tone};
use super::figures;
use super::text_plot;
use super::{Findings, Report};

/// The narrowest that is written for; what is narrower breaks lines by itself.
const WIDTH_MIN: usize = 60;

/// The widest: longer lines are hard to read.
const WIDTH_MAX: usize = 200;

/// The widest that sentences become.
const SENTENCE_WIDTH_MAX: usize = 110;

/// The narrowest that a column of words is made.
const COLUMN_MIN: usize = 10;

/// Between columns.
const GAP: &str = "  ";

/// The report as text, `width` columns wide (60 to 200), with colour (ANSI) or without.
pub fn text(report: &Report, colour: bool, width: usize) -> String {
    let document = Document::of(report);
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { out: String::new(), width, colour, is_after_heading: true, is_after_part: false };
    // A load begins with what was asked, which says it all.
    if !matches!(report.findings, Findings::Loads(_)) {
        page.lines(&wrap(&document.title, width), Some(Style::Bold));
        page.line("");
    }
    for block in &document.blocks {
        page.block(block);
    }
    page.out
}

/// What was found, in at most 15 lines; of an application side by side with onehop all of it, as [`text`] does.
pub fn brief(report: &Report, colour: bool, width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { out: String::new(), width, colour, is_after_heading: true, is_after_part: false };
    match &report.findings {
        Findings::Loads(loads) => brief::of_loads(report, loads, &mut page),
        Findings::SideBySide(_) => return text(report, colour, width),
        _ => brief::of_document(&Document::of(report), &mut page),
    }
    page.out
}

struct Page {
    out: String,
    width: usize,
    colour: bool,
    /// A heading has its own distance from what follows.
    is_after_heading: bool,
    /// A picture and a warning keep theirs.
    is_after_part: bool,
}

/// A way of writing. The numbers are those of ECMA-48 section 8.3.117 (SGR).
#[derive(Clone, Copy)]
enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Page {
    fn block(&mut self, block: &Block) {
        let sentence = self.width.min(SENTENCE_WIDTH_MAX);
        let drawn = match block {
            Block::Plot(plot) => text_plot::draw(plot, self.width),
            _ => Vec::new(),
        };
        let stands_apart =
            matches!(block, Block::Lead(_) | Block::Warning(_) | Block::Table(_)) || !drawn.is_empty();
        let is_heading = matches!(block, Block::Heading(_));
        if (stands_apart && !self.is_after_heading) || (self.is_after_part && !is_heading) {
            self.line("");
        }
        self.is_after_heading = is_heading;
        self.is_after_part = matches!(block, Block::Warning(_)) || !drawn.is_empty();
        match block {
            Block::Heading(text) => {
                self.line("");
                let text = figures::visible(text);
                self.styled(&text, Style::Bold);
                self.styled(&"\u{2500}".repeat(text.chars().count().min(self.width)), Style::Dim);
            }
            Block::Paragraph(text) => self.lines(&wrap(text, sentence), None),
            Block::Lead(text) => self.lines(&wrap(text, sentence), Some(Style::Bold)),
            Block::Warning(text) => {
                let lines = hang("! ", &wrap(text, sentence - 2));
                self.lines(&lines, Some(Style::Yellow));
            }
            Block::Items(items) => {
                for item in items {
                    self.lines(&hang("- ", &wrap(item, sentence - 2)), None);
                }
            }
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
            Block::Code { text, .. } => {
                for line in text.lines() {
                    // A file's text is kept as it is, but for what a terminal would obey.
                    self.line(&format!("    {}", figures::visible(&line.replace('\t', "    "))));
                }
            }
            Block::Plot(_) => {
                if let Some((caption, lines)) = drawn.split_first() {
                    self.lines(&wrap(caption, sentence), Some(Style::Dim));
                    self.lines(lines, None);
                }
            }
        }
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        let longest = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let indent = longest.min(self.width / 2);
        for (name, value) in facts {
            let value = wrap(value, self.width - indent - GAP.len());
            let head = format!("{}{GAP}", padded(&cut(name, indent), indent, false));
            self.lines(&hang(&head, &value), None);
        }
    }

    fn table(&mut self, table: &Table) {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        for line in wrap(&table.caption, self.width.min(SENTENCE_WIDTH_MAX)) {
            self.styled(&line, Style::Dim);
        }
        for columns in fitting(table, &all, self.width) {
            self.part(table, &columns);
        }
    }

    /// Those columns of a table that fit beside each other.
    fn part(&mut self, table: &Table, columns: &[usize]) {
        let widths = widths(table, columns, self.width);
        let header: Vec<(Vec<String>, Tone)> = columns
            .iter()
            .zip(&widths)
            .map(|(&column, &width)| (wrap(&bare(&table.columns[column].name), width), Tone::Plain))
            .collect();
        self.row(table, columns, &widths, &header, Some(Style::Bold));
        for row in &table.rows {
            let cells: Vec<(Vec<String>, Tone)> = columns
                .iter()
                .zip(&widths)
                .map(|(&column, &width)| (wrap(&bare(&row[column].text), width), row[column].tone))
                .collect();
            self.row(table, columns, &widths, &cells, None);
        }
    }

    fn row(
        &mut self,
        table: &Table,
        columns: &[usize],
        widths: &[usize],
        cells: &[(Vec<String>, Tone)],
        style: Option<Style>,
    ) {
        let height = cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or_default();
        for place in 0..height {
            let mut line = String::new();
            for (at, ((lines, tone), &width)) in cells.iter().zip(widths).enumerate() {
                if at > 0 {
                    line.push_str(GAP);
                }
                let is_figure = table.columns[columns[at]].is_figure;
                let text = lines.get(place).map_or("", String::as_str);
                let text = padded(text, width, is_figure);
                let style = style.or(match tone {
                    Tone::Plain => None,
                    Tone::Good => Some(Style::Green),
                    Tone::Bad => Some(Style::Red),
                });
                line.push_str(&self.paint(&text, style));
            }
            let end = line.trim_end().len();
            line.truncate(end);
            self.line(&line);
        }
    }

    fn lines(&mut self, lines: &[String], style: Option<Style>) {
        for line in lines {
            let line = self.paint(line, style);
            self.line(&line);
        }
    }

    fn styled(&mut self, text: &str, style: Style) {
        let line = self.paint(text, Some(style));
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn paint(&self, text: &str, style: Option<Style>) -> String {
        let code = match style {
            Some(style) if self.colour && !text.trim().is_empty() => match style {
                Style::Bold => 1,
                Style::Dim => 2,
                Style::Red => 31,
                Style::Green => 32,
                Style::Yellow => 33,
            },
            _ => return text.to_owned(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Lines of at most `width` letters, broken between words, within one only where it is longer than a line.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in figures::bound(&figures::visible(text)).split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() <= width {
            line.push(' ');
            used += 1;
        } else if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.push(word.into_iter().collect());
            word = rest;
        }
        used += word.len();
        line.extend(word);
    }
    lines.push(line);
    lines.iter().map(|line| line.replace(figures::BOUND, " ")).collect()
}

/// Puts a head before the first line and as much space before the others.
fn hang(head: &str, lines: &[String]) -> Vec<String> {
    let space = " ".repeat(head.chars().count());
    let heads = std::iter::once(head).chain(std::iter::repeat(space.as_str()));
    heads.zip(lines).map(|(head, line)| format!("{head}{line}")).collect()
}

/// The columns in groups that fit; each begins with the first column.
fn fitting(table: &Table, columns: &[usize], width: usize) -> Vec<Vec<usize>> {
    let least = |column: usize| {
        let natural = natural(table, column);
        if table.columns[column].is_figure { natural } else { natural.min(COLUMN_MIN) }
    };
    let Some((&first, others)) = columns.split_first() else { return Vec::new() };
    let mut groups = Vec::new();
    let mut group = vec![first];
    let mut used = least(first);
    for &column in others {
        let needs = GAP.len() + least(column);
        if used + needs > width && group.len() > 1 {
            groups.push(std::mem::replace(&mut group, vec![first]));
            used = least(first);
        }
        used += needs;
        group.push(column);
    }
    groups.push(group);
    groups
}

/// The widths of columns beside each other: words give way to figures.
fn widths(table: &Table, columns: &[usize], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|&column| natural(table, column)).collect();
    loop {
        let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if total <= width {
            return widths;
        }
        let is_words = |at: &usize| !table.columns[columns[*at]].is_figure && widths[*at] > COLUMN_MIN;
        let widest = (0..widths.len()).filter(is_words).max_by_key(|&at| widths[at]);
        let widest = widest.or_else(|| (0..widths.len()).max_by_key(|&at| widths[at]));
        match widest {
            Some(at) if widths[at] > 1 => widths[at] -= (total - width).min(widths[at] - 1).clamp(1, 4),
            _ => return widths,
        }
    }
}

/// The width that a column would like. The name of one of figures may be broken at its spaces.
fn natural(table: &Table, column: usize) -> usize {
    let length = |text: &str| bare(text).chars().count();
    let name = &table.columns[column];
    let header = match name.is_figure {
        true => bare(&name.name).split(' ').map(|word| word.chars().count()).max().unwrap_or_default(),
        false => length(&name.name),
    };
    let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell: &Cell| length(&cell.text));
    cells.max().unwrap_or_default().max(header).max(1)
}

/// Within tables the marks around names would only be noise.
fn bare(text: &str) -> String {
    figures::visible(text).replace('`', "")
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(std::iter::once('\u{2026}')).collect()
}

fn padded(text: &str, width: usize, at_the_right: bool) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    if at_the_right { format!("{space}{text}") } else { format!("{text}{space}") }
}
