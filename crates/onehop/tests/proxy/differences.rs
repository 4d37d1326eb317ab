//! Where onehop passes something else on than Caddy does, each with its reason.

/// Who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Upstream,
    Client,
}

/// A difference that is known. `:line` is the first line, `:body` the body with its trailers, `:before` the statuses of
/// informational answers, `:error` that there was no whole answer.
pub(crate) struct Difference {
    pub(crate) reason: &'static str,
    pub(crate) side: Side,
    pub(crate) field: &'static str,
    /// Names of the exchanges; empty for all.
    pub(crate) cases: &'static [&'static str],
    /// What Caddy passes on, where the reason holds for that alone; `Some(None)` for nothing.
    pub(crate) caddy: Option<Option<&'static str>>,
    /// What onehop passes on, likewise.
    pub(crate) onehop: Option<Option<&'static str>>,
}

pub(crate) const DIFFERENCES: &[Difference] = &[];
