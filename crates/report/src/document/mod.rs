//! The report as a document, before it takes a form: headings, sentences, tables, plots.
//!
//! Owns what is said and in which order, once for all forms. Text within backticks comes from outside (names, URLs,
//! commands); each form shows it in its own way and escapes everything. Never holds a secret: what may be one went
//! through `secrets.rs`.

mod about;
mod collection;
mod comparison;
mod encryption;
mod headline;
mod load;
mod saturation;
mod scenario;
mod side_by_side;
mod streams;
mod sweep;

pub(super) use about::CAVEATS;
pub(super) use collection::FAILED;
pub(super) use encryption::sentence as of_handshakes;
pub(super) use headline::headline;
pub(super) use load::asked;

use onehop_load::caveat::Caveat;

use super::figures;
use super::plot::Plot;
use super::{Findings, Report};

/// All that is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// What it is about, in a line.
    pub(crate) title: String,
    /// What is said, in order.
    pub(crate) blocks: Vec<Block>,
    /// What was measured, for who does not know; between the result and its picture.
    introduction: Option<String>,
    /// Caveats that stand before the figures.
    warned: Vec<Caveat>,
}

/// A piece of the document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// The name of a part.
    Heading(String),
    /// A sentence or more.
    Paragraph(String),
    /// What was found, in a sentence.
    Lead(String),
    /// What must be read before the figures.
    Warning(String),
    /// Things one below the other.
    Items(Vec<String>),
    /// Names and what belongs to them.
    Facts(Vec<(String, String)>),
    /// Figures.
    Table(Table),
    /// Text as it is in a file.
    Code {
        /// What it is.
        name: String,
        /// Its text.
        text: String,
    },
    /// A picture.
    Plot(Plot),
}

/// Figures in rows and columns. Each row is as long as there are columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// What it shows.
    pub(crate) caption: String,
    /// The columns.
    pub(crate) columns: Vec<Column>,
    /// The rows.
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Figures stand at the right.
    pub(crate) is_figure: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// What it says.
    pub(crate) text: String,
    /// How it is meant. It is never said by this alone.
    pub(crate) tone: Tone,
}

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
}

impl Document {
    /// Everything that a report says.
    pub(crate) fn of(report: &Report) -> Document {
        let mut document =
            Document { title: String::new(), blocks: Vec::new(), introduction: None, warned: Vec::new() };
        match &report.findings {
            Findings::Loads(loads) => match loads.as_slice() {
                [load] => load::write(load, &mut document),
                loads => sweep::write(loads, &mut document),
            },
            Findings::Comparison(comparison) => comparison::write(comparison, &mut document),
            Findings::Saturation(saturation) => saturation::write(saturation, &mut document),
            Findings::Scenario(run) => scenario::write(run, &mut document),
            Findings::Collection(run) => collection::write(run, &mut document),
            Findings::SideBySide(side_by_side) => side_by_side::write(side_by_side, &mut document),
        }
        document.open_with_result();
        about::write(report, &mut document);
        document
    }

    /// The result comes first, then the first picture, then what they stand on.
    fn open_with_result(&mut self) {
        let parts = self.blocks.iter().position(|block| matches!(block, Block::Heading(_)));
        let rest = self.blocks.split_off(parts.unwrap_or(self.blocks.len()));
        let is_result = |block: &Block| matches!(block, Block::Lead(_) | Block::Warning(_));
        let (mut results, mut others): (Vec<Block>, Vec<Block>) = self.blocks.drain(..).partition(is_result);
        others.extend(rest);
        results.extend(self.introduction.take().map(Block::Paragraph));
        if let Some(place) = others.iter().position(|block| matches!(block, Block::Plot(_))) {
            results.push(others.remove(place));
        }
        self.blocks = results;
        self.blocks.append(&mut others);
    }

    fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    fn lead(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Lead(text.into()));
    }

    fn warning(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Warning(text.into()));
    }

    fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    fn plot(&mut self, plot: Option<Plot>) {
        self.blocks.extend(plot.map(Block::Plot));
    }
}

impl Table {
    /// A table with a first column of words and others of figures.
    pub(crate) fn of_figures(caption: &str, first: &str, figures: &[&str]) -> Table {
        let first = Column { name: first.to_owned(), is_figure: false };
        let figures = figures.iter().map(|name| Column { name: (*name).to_owned(), is_figure: true });
        Table {
            caption: caption.to_owned(),
            columns: std::iter::once(first).chain(figures).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().take(self.columns.len()).collect();
        row.resize(self.columns.len(), Cell::from(figures::NOTHING));
        self.rows.push(row);
    }
}

impl Cell {
    fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }
}

impl<Text: Into<String>> From<Text> for Cell {
    fn from(text: Text) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

/// A count of failures: zero is no news.
fn failures(count: u64) -> Cell {
    let tone = if count == 0 { Tone::Plain } else { Tone::Bad };
    Cell::toned(figures::count(count), tone)
}
