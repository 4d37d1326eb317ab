//! What is said of a collection's run: each request, and all together.
//!
//! Owns that table and the complaints. Never counts a failed request's time among the latencies.

use onehop_bench::collection::CollectionRun;
use onehop_load::caveat::CaveatCode;
use onehop_load::latency::Latencies;

use super::about::noted;
use super::{Block, Cell, Document, Table, failures};
use crate::plot::{Bar, Plot};
use crate::{figures, secrets};

/// The name of the part that holds complaints.
pub(crate) const FAILED: &str = "What failed";

pub(super) fn write(run: &CollectionRun, document: &mut Document) {
    let passed: u64 = run.requests.iter().map(|request| request.passed).sum();
    let failed: u64 = run.requests.iter().map(|request| request.failed).sum();
    document.title = format!("Collection {}", figures::quoted(&secrets::hide(&run.name)));
    document.paragraph(format!(
        "{} of {} in order, one request at a time.",
        figures::capital(&figures::counted(run.iterations, "iteration")),
        figures::counted(run.requests.len() as u64, "request")
    ));
    let tell = format!(
        "{} in {}: {} passed, {} failed.",
        figures::counted(passed + failed, "request"),
        figures::duration(run.elapsed),
        figures::count(passed),
        figures::count(failed)
    );
    if failed > 0 || passed == 0 {
        document.warning(tell)
    } else {
        document.lead(tell)
    }
    document.table(table(run, passed, failed));
    complaints(run, document);
    document.plot(Plot::bars(bars(run)));
    document.plot(Plot::percentiles([("all requests".to_owned(), &run.latency)]));
    let mut reported = noted(CaveatCode::Note, &run.caveats);
    if run.is_interrupted {
        let text = "It was broken off: not all iterations were made.";
        reported.insert(0, CaveatCode::BrokenOff.says(text));
    }
    document.caveats(reported);
}

fn table(run: &CollectionRun, passed: u64, failed: u64) -> Table {
    let mut table = Table::of_figures(
        "Each request over all iterations; latencies of those that passed",
        "Request",
        &["Passed", "Failed", "Mean", "p50", "p90", "p95", "p99", "max"],
    );
    for request in &run.requests {
        let name = Cell::from(figures::named(&secrets::hide(&request.name)));
        let counts = [Cell::from(figures::count(request.passed)), failures(request.failed)];
        table.row(std::iter::once(name).chain(counts).chain(times(&request.latency)));
    }
    let counts = [Cell::from("All"), Cell::from(figures::count(passed)), failures(failed)];
    table.row(counts.into_iter().chain(times(&run.latency)));
    table
}

fn times(latency: &Latencies) -> Vec<Cell> {
    let values =
        [latency.mean(), latency.at(0.5), latency.at(0.9), latency.at(0.95), latency.at(0.99), latency.max()];
    let tell = |took| if latency.is_empty() { figures::NOTHING.to_owned() } else { figures::duration(took) };
    values.into_iter().map(|took| Cell::from(tell(took))).collect()
}

fn complaints(run: &CollectionRun, document: &mut Document) {
    let mut items = Vec::new();
    for request in &run.requests {
        for (complaint, number) in &request.complaints {
            items.push(format!(
                "{} ({}): {}, {}.",
                figures::named(&secrets::hide(&request.name)),
                figures::quoted(&secrets::hide(&request.line)),
                secrets::hide(&figures::visible(complaint)),
                match number {
                    1 => "once".to_owned(),
                    number => format!("{} times", figures::count(*number)),
                }
            ));
        }
    }
    if !items.is_empty() {
        document.heading(FAILED);
        document.blocks.push(Block::Items(items));
    }
}

fn bars(run: &CollectionRun) -> Vec<Bar> {
    let requests = run.requests.iter().filter(|request| !request.latency.is_empty());
    requests
        .map(|request| Bar {
            name: secrets::hide(&figures::visible(&request.name)),
            p50: figures::as_micros(request.latency.at(0.5)),
            p99: figures::as_micros(request.latency.at(0.99)),
            max: figures::as_micros(request.latency.max()),
            failed: request.failed,
        })
        .collect()
}
