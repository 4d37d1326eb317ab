//! The report for programs; docs/bench-json.md describes each field.
//!
//! Owns the names, which are stable and say their unit, and the number of the schema, which grows when one changes its
//! meaning or goes. Never holds a secret: texts from outside go through `secrets.rs`.

mod findings;
mod run;

use serde_json::{Value, json};

use super::{Report, caveats, secrets};

/// Grows when a field changes its meaning or goes; new fields do not count.
const SCHEMA: u64 = 2;

/// The report as JSON.
pub fn json(report: &Report) -> Value {
    let (kind, findings) = findings::of(&report.findings);
    let versions = report.versions.iter().map(|(name, version)| json!({ "name": name, "version": version }));
    let machine = &report.machine;
    let mut reported = report.caveats.clone();
    reported.extend(caveats::steal(report.steal));
    json!({
        "schema": SCHEMA,
        "kind": kind,
        "command": secrets::hide(&report.command),
        "onehop_version": report.version,
        "date": report.date,
        "machine": {
            "processor": machine.processor,
            "cores": machine.cores,
            "kernel": machine.kernel,
            "system": machine.system,
            "memory_bytes": machine.memory_bytes,
            "inside": machine.inside,
            "governor": machine.governor,
            "load_average": machine.load_average,
        },
        "steal_share": report.steal,
        "versions": versions.collect::<Vec<_>>(),
        "caveats": run::caveats(&reported),
        kind: findings,
    })
}
