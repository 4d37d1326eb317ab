//! `history` of the global block: how much is kept of what sites and applications did.

use super::Context;
use super::value::size;
use crate::checked::History;
use crate::limits::{HISTORY_BYTES_MIN, HISTORY_KEEP_RANGE};
use crate::option_table::{OptionTable, value};
use crate::problem::Problem;
use crate::syntax::Directive;

/// What its block takes.
pub(super) const OPTIONS: OptionTable<History> = OptionTable {
    once: true,
    ..OptionTable::new(
        "history",
        &[
            value("keep", "90d", |_, history, value| {
                let (shortest, longest) = HISTORY_KEEP_RANGE;
                value.within(shortest, longest).map(|keep| history.keep = keep)
            }),
            value("size", "512MiB", |_, history, value| {
                history.bytes = size(value.token)?;
                if history.bytes < HISTORY_BYTES_MIN {
                    return Err(Problem::error("size", &value.token.place, "`size` must be at least 4MiB")
                        .help("50 busy sites take some 460 MiB in 90 days, and a few sites 30"));
                }
                Ok(())
            }),
        ],
    )
};

/// `history off`, or `history { … }`.
pub(super) fn history(cx: &mut Context<'_>, line: &Directive) -> Result<Option<History>, Box<Problem>> {
    match (line.args.as_slice(), &line.block) {
        ([off], None) if off.text == "off" => Ok(None),
        ([], Some(block)) => {
            let mut history = History::default();
            OPTIONS.read(cx, &mut history, Some(block));
            Ok(Some(history))
        }
        _ => Err(Problem::error("arguments", &line.name.place, "the arguments of `history` do not fit")
            .help("it is written `history off`, or `history { keep 90d }` with `keep` on a line of its own")),
    }
}
