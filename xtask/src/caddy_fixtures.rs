//! Caddy's own fixtures of its Caddyfile adapter: how many of them onehop's configuration accepts, and why it refuses others.
//!
//! The fixtures come with Caddy's Go module. As in Caddy's own test only the configuration is read: certificates and
//! folders that a fixture names need not exist. The result is kept in tests/caddy/adapt.txt, with its date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use onehop_config::{Entry, FileKind, FileSource, Source, load};

use crate::{Outcome, install, workspace};

/// The committed result.
const RECORD: &str = "tests/caddy/adapt.txt";
/// Where Caddy's test runs, in its module; relative imports start there.
const FOLDER: &str = "caddytest/integration";
/// The name that a fixture is read under.
const CADDYFILE: &str = "Caddyfile";
/// Stands between a fixture's Caddyfile and what Caddy makes of it.
const SEPARATOR: &str = "----------";

/// What onehop makes of one fixture.
#[derive(Debug)]
struct Verdict {
    name: String,
    /// Caddy adapts it to JSON; it refuses the others.
    is_accepted_by_caddy: bool,
    /// The first error; `None` where onehop accepts the fixture.
    refusal: Option<String>,
}

/// Reads all fixtures and writes the record.
pub(crate) fn record() -> Outcome {
    let verdicts = verdicts()?;
    let text = text(&verdicts);
    print!("{}", text.split("\neach:\n").next().unwrap_or_default());
    let path = workspace::root().join(RECORD);
    std::fs::write(&path, text)?;
    println!("written to {}", path.display());
    Ok(())
}

/// Reads all fixtures; an error where one is refused that the record has as accepted.
pub(crate) fn compare() -> Outcome {
    let verdicts = verdicts()?;
    let known = std::fs::read_to_string(workspace::root().join(RECORD))?;
    let lost = lost(&verdicts, &known);
    let accepted = verdicts.iter().filter(|verdict| verdict.refusal.is_none()).count();
    println!("    {accepted} of {} fixtures are accepted", verdicts.len());
    if lost.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{RECORD} has these as accepted, and they are refused now; `cargo xtask suites --only caddy-fixtures` writes it \
         anew:\n{}",
        lost.join("\n")
    )
    .into())
}

fn verdicts() -> Outcome<Vec<Verdict>> {
    let folder = install::caddy_source()?.join(FOLDER);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder.join("caddyfile_adapt"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "caddyfiletest"));
    paths.sort();
    paths.iter().map(|path| verdict(&folder, path)).collect()
}

fn verdict(folder: &Path, path: &Path) -> Outcome<Verdict> {
    let fixture = std::fs::read_to_string(path)?;
    let Some((caddyfile, expected)) = fixture.split_once(SEPARATOR) else {
        return Err(format!("{} has no line {SEPARATOR}", path.display()).into());
    };
    let source = Fixture { folder, text: format!("{}\n", caddyfile.trim()) };
    let refusal = load(&folder.join(CADDYFILE), FileKind::Caddyfile, &source).err();
    let first =
        refusal.map(|problems| problems.first().map_or_else(String::new, |first| first.message.clone()));
    Ok(Verdict {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        is_accepted_by_caddy: expected.trim_start().starts_with('{'),
        refusal: first,
    })
}

/// A fixture's Caddyfile, in the folder in which Caddy's test runs.
struct Fixture<'a> {
    folder: &'a Path,
    text: String,
}

impl Source for Fixture<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path == self.folder.join(CADDYFILE) {
            true => Ok(self.text.clone()),
            false => FileSource.read(path),
        }
    }

    /// What a fixture names and does not exist counts as a file where its name has an extension, else as a folder.
    fn entry(&self, path: &Path) -> Option<Entry> {
        let named = if path.extension().is_some() { Entry::File } else { Entry::Folder };
        Some(FileSource.entry(path).unwrap_or(named))
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }

    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn working_directory(&self) -> PathBuf {
        self.folder.to_owned()
    }
}

fn text(verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "date: {}\ncommit: {}\nfixtures: {FOLDER}/caddyfile_adapt of Caddy {}\ncommand: cargo xtask suites --only caddy-fixtures\n\n",
        workspace::date(),
        workspace::output_of("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_default(),
        install::CADDY_VERSION
    );
    for (is_accepted, what) in [(true, "Caddy accepts"), (false, "Caddy refuses")] {
        let these = verdicts.iter().filter(|verdict| verdict.is_accepted_by_caddy == is_accepted);
        let (accepted, refused): (Vec<_>, Vec<_>) = these.partition(|verdict| verdict.refusal.is_none());
        let all = accepted.len() + refused.len();
        let _ = writeln!(text, "{all} that {what}: {} accepted, {} refused", accepted.len(), refused.len());
    }
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| verdict.is_accepted_by_caddy) {
        if let Some(cause) = &verdict.refusal {
            *causes.entry(cause).or_default() += 1;
        }
    }
    let mut causes: Vec<(&str, usize)> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, count)| (std::cmp::Reverse(*count), *cause));
    text.push_str("\nfirst errors in those that Caddy accepts:\n");
    for (cause, count) in causes {
        let _ = writeln!(text, "{count:>4}  {cause}");
    }
    text.push_str("\neach:\n");
    for Verdict { name, is_accepted_by_caddy, refusal } in verdicts {
        let by_caddy = if *is_accepted_by_caddy { "" } else { " (Caddy refuses it)" };
        let _ = match refusal {
            None => writeln!(text, "{name}: accepted{by_caddy}"),
            Some(cause) => writeln!(text, "{name}: refused{by_caddy}: {cause}"),
        };
    }
    text
}

/// Fixtures that a record has as accepted and that are refused now.
fn lost<'a>(verdicts: &'a [Verdict], record: &str) -> Vec<&'a str> {
    let was_accepted = |name: &str| record.lines().any(|line| line.strip_suffix(": accepted") == Some(name));
    let refused = verdicts.iter().filter(|verdict| verdict.refusal.is_some());
    refused.map(|verdict| verdict.name.as_str()).filter(|name| was_accepted(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, refusal: Option<&str>) -> Verdict {
        Verdict { name: name.to_owned(), is_accepted_by_caddy: true, refusal: refusal.map(str::to_owned) }
    }

    #[test]
    fn a_fixture_that_was_accepted_and_is_refused_is_found() {
        let before = text(&[verdict("a", None), verdict("b", Some("no `b`")), verdict("c", None)]);
        assert!(before.contains("3 that Caddy accepts: 2 accepted, 1 refused\n"));
        assert!(before.contains("   1  no `b`\n"));
        let now = [verdict("a", Some("broken")), verdict("b", Some("no `b`")), verdict("c", None)];
        assert_eq!(lost(&now, &before), ["a"]);
    }
}
