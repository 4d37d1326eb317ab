//! Onehopfiles of a side-by-side run, whose site listens on a port that is known when it starts.

use onehop_adapt::onehopfile::indented;

/// A whole Onehopfile with one site on `{port}`.
pub(super) fn site(body: &str) -> String {
    format!(":{{port}} {{\n{}}}\n", indented(body))
}
