//! What stands at the end of every report: the caveats, the machine, the versions, the command.
//!
//! Owns that no caveat is lost and none is told twice.

use onehop_load::caveat::{Caveat, CaveatCode};

use super::{Block, Document};
use crate::{Report, caveats, figures, secrets};

/// The name of the part that holds what must be known before the figures are believed.
pub(crate) const CAVEATS: &str = "What to know before believing this";

impl Document {
    /// A caveat that makes the figures worthless. It is printed before them, and not again among the others.
    pub(super) fn warn(&mut self, caveat: &Caveat) {
        self.warning(caveat.to_string());
        self.warned.push(caveat.clone());
    }

    /// Adds to the caveats; those that are there already, or stand before the figures, are not told again.
    pub(super) fn caveats(&mut self, reported: Vec<Caveat>) {
        let place = self.blocks.iter().position(|block| *block == Block::Heading(CAVEATS.to_owned()));
        let mut items = match place.and_then(|place| self.blocks.get_mut(place + 1)) {
            Some(Block::Items(items)) => std::mem::take(items),
            _ => Vec::new(),
        };
        let is_warned = |one: &Caveat| {
            self.warned.iter().any(|warned| (warned.code, &warned.text) == (one.code, &one.text))
        };
        for one in reported.iter().filter(|one| !is_warned(one)) {
            let one = figures::sentence(&secrets::hide(&figures::visible(&one.to_string())));
            if !items.contains(&one) && !one.trim().is_empty() {
                items.push(one);
            }
        }
        if let Some(place) = place {
            self.blocks.drain(place..place + 2);
        }
        if !items.is_empty() {
            self.heading(CAVEATS);
            self.blocks.push(Block::Items(items));
        }
    }
}

/// Notes of a code.
pub(super) fn noted(code: CaveatCode, texts: &[String]) -> Vec<Caveat> {
    texts.iter().map(|text| code.says(text)).collect()
}

pub(super) fn write(report: &Report, document: &mut Document) {
    let mut reported = report.caveats.clone();
    reported.extend(caveats::steal(report.steal));
    document.caveats(reported);
    let machine = &report.machine;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.trim().is_empty() {
            facts.push((name.to_owned(), value));
        }
    };
    let processor = match machine.cores {
        0 => machine.processor.clone(),
        cores => format!("{}, {}", machine.processor, figures::counted(cores as u64, "core")),
    };
    fact("Processor", processor);
    if machine.memory_bytes > 0 {
        fact("Memory", figures::bytes(machine.memory_bytes as f64));
    }
    fact("System", [machine.system.as_str(), machine.kernel.as_str()].join(", kernel "));
    fact("Container or VM", machine.inside.clone());
    fact("Clock governor", machine.governor.clone().unwrap_or_else(|| "not told by the kernel".to_owned()));
    fact("Load average at the start", figures::number(machine.load_average));
    fact("Stolen time", report.steal.map_or_else(|| "not told by the kernel".to_owned(), figures::percent));
    let versions: Vec<String> =
        report.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    fact(
        "Versions",
        std::iter::once(format!("onehop {}", report.version)).chain(versions).collect::<Vec<_>>().join(", "),
    );
    fact("Command", figures::quoted(&secrets::hide(&report.command)));
    fact("Date", report.date.clone());
    for (_, value) in &mut facts {
        *value = secrets::hide(&figures::visible(value));
    }
    document.heading("Where and how");
    document.blocks.push(Block::Facts(facts));
}
