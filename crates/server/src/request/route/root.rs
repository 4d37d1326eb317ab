//! The roots of files.

use onehop_config::checked::Template;

/// A directory in which files are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// In memory: the numbers of the stores of that root, without and with links that leave it.
    Stores {
        /// As served by default.
        inside: Option<u32>,
        /// As served with `symlinks follow`.
        following: Option<u32>,
    },
    /// On disk, because its path is only known with the request.
    Disk(Template),
}

impl Root {
    /// The store to look into; the other one where only that is there.
    pub(crate) fn store(&self, follow_outside: bool) -> Option<u32> {
        match self {
            Self::Stores { inside, .. } if !follow_outside => *inside,
            Self::Stores { inside, following } => following.or(*inside),
            Self::Disk(_) => None,
        }
    }
}
