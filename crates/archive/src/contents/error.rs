//! Why something cannot be packed. The next step for a person is the program's to say.

use std::io;
use std::path::PathBuf;

use onehop_config::Problem;

use crate::PackError;

/// What a setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A folder that is served.
    Root,
    /// A folder of an application.
    Folder,
    /// A file of an application or the configuration.
    File,
    /// What runs an application.
    Runtime,
}

/// Why something cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// More patterns than one command may have.
    #[error("more than {max} patterns")]
    TooManyPatterns {
        /// So many may be given.
        max: usize,
    },
    /// A pattern that does not begin at the base.
    #[error("the pattern {0} does not begin at the folder of the configuration")]
    Pattern(String),
    /// The configuration is wrong.
    #[error("the configuration has {} errors", .0.len())]
    Configuration(Vec<Problem>),
    /// A Caddyfile elsewhere than in the working directory, where its paths begin.
    #[error("{} does not lie in the working directory", .0.display())]
    OutsideWorkingDirectory(PathBuf),
    /// The configuration imports a file from out of its folder.
    #[error("the configuration imports {path}, which does not lie below {}", .base.display())]
    ImportsFromOutside {
        /// As it is written.
        path: String,
        /// The folder of the configuration.
        base: PathBuf,
    },
    /// A relative path that leads out of the base.
    #[error("{path} leads out of {}", .base.display())]
    LeadsOut {
        /// What it is.
        what: Named,
        /// As `../x`.
        path: String,
        /// The folder of the configuration.
        base: PathBuf,
    },
    /// An absolute path of something that lies below the base.
    #[error("{written} is written as an absolute path")]
    WrittenAbsolute {
        /// What it is.
        what: Named,
        /// As it is written.
        written: String,
        /// The same below the base.
        below: String,
    },
    /// A root below the base that depends on the request.
    #[error("a root below ./{0} has placeholders")]
    RootWithPlaceholders(String),
    /// What must be there is excluded.
    #[error("{0} is excluded, and the configuration needs it")]
    ExcludedButNeeded(String),
    /// More files than a pack holds.
    #[error("more than {max} files in {}", .base.display())]
    TooManyEntries {
        /// So many may be there.
        max: usize,
        /// The folder of the configuration.
        base: PathBuf,
    },
    /// Links that lead in a circle, or as good as.
    #[error("{path} lies behind more than {max} links")]
    TooManyLinks {
        /// The last of the way.
        path: String,
        /// So many are followed.
        max: usize,
    },
    /// What an application needs lies out of the base.
    #[error("what an application needs lies outside of {}", .base.display())]
    LinksOut {
        /// Each link, and where it leads.
        links: Vec<(String, PathBuf)>,
        /// The folder of the configuration.
        base: PathBuf,
    },
    /// Dependencies of an application that are not there.
    #[error("dependencies are not installed: {}", .0.join(", "))]
    NotInstalled(Vec<String>),
    /// A `package.json` that is none.
    #[error("{0}")]
    PackageJson(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The same, of what may be excluded.
    #[error("cannot read {}: {error}", .path.display())]
    UnreadableSource {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path that cannot be made absolute.
    #[error("cannot tell where {} is: {error}", .path.display())]
    Nowhere {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The pack cannot be written.
    #[error(transparent)]
    Write(#[from] PackError),
}
