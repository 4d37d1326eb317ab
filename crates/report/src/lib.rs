//! Reports of measurements: text, a live view, JSON, Markdown, one HTML page.
//!
//! A [`Report`] holds what was measured: loads, a comparison, a scenario, a search, a collection or a side-by-side run.
//! `document/` turns it into headings, tables and plots once for all formats; `text.rs`, `markdown.rs` and `html/` write
//! these, `json/` is for programs, [`Live`] shows progress on a terminal until then. `secrets.rs` hides passwords and
//! tokens in commands and configurations.
//!
//! Never computes a figure that it was not given, and never leaves out a caveat. `examples/sample.rs` writes reports of
//! all kinds.
#![forbid(unsafe_code)]

mod caveats;
mod document;
mod dry_run;
mod figures;
mod html;
mod json;
mod live;
mod markdown;
mod plot;
#[doc(hidden)]
pub mod sample;
mod secrets;
#[cfg(test)]
mod tests;
mod text;
mod text_plot;

use onehop_bench::collection::CollectionRun;
use onehop_bench::compare::Comparison;
use onehop_bench::saturation::Saturation;
use onehop_bench::scenario::ScenarioRun;
use onehop_load::caveat::Caveat;
use onehop_load::measure::Machine;
use onehop_load::outcome::Run;
use onehop_load::plan::Plan;
use onehop_try::SideBySide;

pub use dry_run::dry_run;
pub use html::html;
pub use json::json;
pub use live::Live;
pub use markdown::markdown;
pub use secrets::hidden_words;
pub use text::{brief, text};

/// Everything that a report is made of.
#[derive(Debug, Clone)]
pub struct Report {
    /// The command as it was typed.
    pub command: String,
    /// The version of onehop.
    pub version: String,
    /// When, as RFC 3339 in UTC.
    pub date: String,
    /// Where.
    pub machine: Machine,
    /// Share of the machine's time that was stolen by others meanwhile, 0 to 1, where the kernel tells.
    pub steal: Option<f64>,
    /// Versions of the programs that took part, name and version.
    pub versions: Vec<(String, String)>,
    /// What was found.
    pub findings: Findings,
    /// What a reader must know that is not said with the findings.
    pub caveats: Vec<Caveat>,
}

/// What was found.
#[derive(Debug, Clone)]
pub enum Findings {
    /// Loads: one entry for each step of a sweep, each with its repetitions.
    Loads(Vec<Load>),
    /// Targets side by side.
    Comparison(Comparison),
    /// Cases of a scenario.
    Scenario(ScenarioRun),
    /// The highest rate.
    Saturation(Saturation),
    /// A collection of requests.
    Collection(CollectionRun),
    /// An application, today and with onehop.
    SideBySide(Box<SideBySide>),
}

/// One load and its repetitions.
#[derive(Debug, Clone)]
pub struct Load {
    /// What was asked, and how.
    pub plan: Plan,
    /// Every repetition.
    pub runs: Vec<Run>,
    /// How the repetitions disagree, for people; empty where they agree.
    pub disagreements: Vec<String>,
}
