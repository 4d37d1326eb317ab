//! What is said of something that cannot be packed, with the next step and the exit code.

use std::io;

use onehop_archive::PackError;
use onehop_archive::contents::{ContentsError, Named};

use crate::failure::Failure;
use crate::problems::{self, Look};

/// Links that are listed.
const LISTED_MAX: usize = 50;

/// Patterns of an option.
pub(super) fn of_option(option: &str, error: ContentsError) -> Failure {
    match error {
        ContentsError::TooManyPatterns { max } => {
            Failure::wrong(format!("{option} may be given {max} times"))
        }
        ContentsError::Pattern(written) => Failure::wrong(format!(
            "{option} {written}: patterns begin at the folder of the Onehopfile: dist/*.map, '**/*.map'"
        )),
        error => error.into(),
    }
}

/// What happened while this file was written.
pub(super) fn while_writing(shown: &str, error: ContentsError) -> Failure {
    match error {
        ContentsError::Write(error) => unwritten(shown, error),
        error => error.into(),
    }
}

pub(super) fn unwritten(shown: &str, error: PackError) -> Failure {
    match error {
        PackError::Unwritable(error) => {
            let advice = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "; make room, or name another place with -o FILE"
                }
                _ => "",
            };
            Failure::failed(format!("cannot write {shown}: {error}{advice}"))
        }
        PackError::Io(error) => Failure::failed(format!("what is packed cannot be read: {error}")),
        error => Failure::failed(format!("cannot be packed: {error}")),
    }
}

impl From<ContentsError> for Failure {
    // tidy: table, because it has a sentence for each error
    fn from(error: ContentsError) -> Failure {
        match error {
            ContentsError::Configuration(problems) => {
                Failure::drawn(problems::draw(&problems, Look::of_standard_error()))
            }
            ContentsError::OutsideWorkingDirectory(path) => Failure::wrong(format!(
                "{} does not lie in the working directory, where the paths of a Caddyfile begin: \
                 change into its folder, or copy it here",
                path.display()
            )),
            ContentsError::ImportsFromOutside { .. } => Failure::wrong(format!("{error}: copy it there")),
            ContentsError::LeadsOut { what, path, base } => {
                let absolute = match what {
                    Named::Root => "the root as an absolute path",
                    Named::Folder | Named::File | Named::Runtime => "an absolute path",
                };
                Failure::wrong(format!(
                    "{} {path} leads out of {}, the folder of the configuration\n  \
                     move the Onehopfile to a folder that holds both, or write {absolute}: it is then looked for on \
                     the machine",
                    word(what),
                    base.display()
                ))
            }
            ContentsError::WrittenAbsolute { what, written, below } => {
                let below = match (what, below.as_str()) {
                    (Named::Root, "") => ".".to_owned(),
                    _ => format!("./{below}"),
                };
                Failure::wrong(format!(
                    "{} {written} is written as an absolute path, which a pack would look for on the machine\n  \
                     write it below the Onehopfile, and it is packed:  {below}",
                    word(what)
                ))
            }
            ContentsError::RootWithPlaceholders(below) => Failure::wrong(format!(
                "a root below ./{below} has placeholders: which folders are served shows only with a request, so they \
                 cannot be packed\n  write a site or a route for each folder, or an absolute root on the machine"
            )),
            ContentsError::ExcludedButNeeded(path) => Failure::wrong(format!(
                "--exclude leaves out {path}, which the configuration needs\n  \
                 keep it, or put it on the machine and write its absolute path"
            )),
            ContentsError::TooManyEntries { max, base } => Failure::failed(format!(
                "there are more than {max} files to be packed: is {} the folder that should be? --exclude leaves \
                 folders out",
                base.display()
            )),
            ContentsError::LinksOut { links, base } => {
                let lines = links.iter().map(|(path, target)| format!("  {path} -> {}\n", target.display()));
                let lines: String = lines.take(LISTED_MAX).collect();
                Failure::wrong(format!(
                    "what an application needs lies outside of {}, where a pack does not reach:\n{lines}  \
                     copy it there, or leave it out with --exclude, or put the Onehopfile in a folder that holds both",
                    base.display()
                ))
            }
            ContentsError::NotInstalled(names) => Failure::failed(format!(
                "package.json names dependencies that are not installed: {}\n  \
                 install them and pack again:  npm ci",
                names.join(", ")
            )),
            ContentsError::UnreadableSource { .. } => {
                Failure::failed(format!("{error}\n  leave it out with --exclude, or let this user read it"))
            }
            ContentsError::PackageJson(_)
            | ContentsError::TooManyPatterns { .. }
            | ContentsError::Pattern(_) => Failure::wrong(error.to_string()),
            ContentsError::TooManyLinks { .. }
            | ContentsError::Unreadable { .. }
            | ContentsError::Nowhere { .. }
            | ContentsError::Write(_) => Failure::failed(error.to_string()),
        }
    }
}

fn word(what: Named) -> &'static str {
    match what {
        Named::Root => "the root",
        Named::Folder => "the folder",
        Named::File => "the file",
        Named::Runtime => "the runtime",
    }
}
