//! `metrics` of the global block: what becomes of metrics besides `/metrics`.

use std::sync::Arc;

use super::Context;
use super::otlp::{Signal, otlp_export};
use crate::checked::OtlpExport;
use crate::option_table::{OptionTable, flag, not_yet};
use crate::problem::Problem;
use crate::syntax::Directive;

/// What its block takes; whether metrics are exported over OTLP.
pub(super) const OPTIONS: OptionTable<bool> = OptionTable {
    once: true,
    ..OptionTable::new(
        "metrics",
        &[
            // They are by site anyway.
            flag("per_host", |_| ()),
            flag("otlp", |is_exported| *is_exported = true),
            not_yet("observe_catchall_hosts"),
        ],
    )
};

/// `metrics`, or `metrics { otlp }`. `/metrics` is there without it.
pub(super) fn metrics(
    cx: &mut Context<'_>,
    line: &Directive,
) -> Result<Option<Arc<OtlpExport>>, Box<Problem>> {
    if let Some(extra) = line.args.first() {
        return Err(Problem::error("arguments", &extra.place, "`metrics` takes only a block")
            .help("it is written `metrics`, or `metrics { otlp }` with `otlp` on a line of its own"));
    }
    let mut is_exported = false;
    OPTIONS.read(cx, &mut is_exported, line.block.as_deref());
    if !is_exported {
        return Ok(None);
    }
    let export = otlp_export(cx, Signal::Metrics, "metrics", &line.name.place)?;
    Ok(export.url.is_some().then(|| Arc::new(export)))
}
