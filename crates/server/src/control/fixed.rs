//! Global options that a reload does not change.

use std::num::NonZeroUsize;

use onehop_config::checked::{Admin, Global};

/// Those of the start.
pub(super) struct Fixed {
    admin: Admin,
    /// `None`: the command line says how many.
    threads: Option<Option<NonZeroUsize>>,
}

impl Fixed {
    pub(super) fn of(global: &Global, threads: Option<NonZeroUsize>) -> Self {
        Self { admin: global.admin, threads: threads.is_none().then_some(global.threads) }
    }

    /// Those that this configuration wants to be others.
    pub(super) fn unlike(&self, global: &Global) -> Vec<&'static str> {
        let has_other_threads = self.threads.is_some_and(|threads| threads != global.threads);
        let others = [("admin", self.admin != global.admin), ("threads", has_other_threads)];
        others.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}
