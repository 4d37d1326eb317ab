//! Where we stand: the checkout, its target folder, this machine, today's date, the options given.
//!
//! It looks and never changes anything but its own folders.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What every command gives back: an error is a sentence for the person who typed it.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The command line asks for something that does not exist.
#[derive(Debug)]
pub(crate) struct WrongUsage(pub(crate) String);

impl fmt::Display for WrongUsage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// The checkout's top folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Where cargo builds to.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A folder of ours below the target folder, made if it is missing.
pub(crate) fn target_folder(name: &str) -> Outcome<PathBuf> {
    let folder = target().join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

/// How the program is built that people get, and that published measurements are of.
pub(crate) const PUBLISHED_PROFILE: &str = "release-lto";

/// Set where another build than the release is under test.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program under test: what the environment names, else what [`use_program`] was told, else the release build.
pub(crate) fn program() -> PathBuf {
    match (std::env::var_os("ONEHOP_PROGRAM"), PROGRAM.get()) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(path)) => path.clone(),
        (None, None) => target().join("release/onehop"),
    }
}

/// From now on this one is under test.
pub(crate) fn use_program(path: PathBuf) {
    // Set once: the second check of one process would test the same build.
    let _ = PROGRAM.set(path);
}

/// Standard output of a command, trimmed; `None` when it cannot run or fails.
pub(crate) fn output_of(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    output.status.success().then(|| String::from_utf8_lossy(&text).trim().to_owned())
}

/// Today, as `2026-01-31`.
pub(crate) fn date() -> String {
    output_of("date", &["+%Y-%m-%d"]).unwrap_or_else(|| "undated".to_owned())
}

/// What identifies this machine in a result's folder name: processor and number of cores. Never its
/// host name.
pub(crate) fn machine_name() -> String {
    let mut name = String::new();
    for letter in cpu_model().to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => name.push(letter),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    format!("{}-{}core", name.trim_end_matches('-'), cores())
}

/// The processor's name as the kernel has it.
pub(crate) fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(|| "unknown cpu".to_owned(), |(_, model)| model.trim().to_owned())
}

/// Cores of the machine, also those that this process has left to the servers.
pub(crate) fn cores() -> usize {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count().max(1)
}

/// What describes the machine in a result.
pub(crate) fn machine() -> serde_json::Value {
    serde_json::json!({
        "cpu": cpu_model(),
        "cores": cores(),
        "kernel": output_of("uname", &["-sr"]),
        "memory_kib": proc_meminfo_total(),
        "rustc": output_of("rustc", &["--version"]),
        "commit": output_of("git", &["-C", &root().display().to_string(), "rev-parse", "--short", "HEAD"]),
    })
}

fn proc_meminfo_total() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
}

/// Options of a command, taken out one by one; what is left at the end is wrong usage.
pub(crate) struct Options {
    words: Vec<String>,
}

impl Options {
    /// The words after a command.
    pub(crate) fn new(words: &[&str]) -> Options {
        Options { words: words.iter().map(|&word| word.to_owned()).collect() }
    }

    /// Whether `--name` was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let found = self.words.iter().position(|word| word == name);
        found.map(|place| self.words.remove(place)).is_some()
    }

    /// The word after `--name`.
    pub(crate) fn value(&mut self, name: &str) -> Outcome<Option<String>> {
        let Some(place) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        self.words.remove(place);
        if place >= self.words.len() {
            return Err(WrongUsage(format!("{name} needs a value")).into());
        }
        Ok(Some(self.words.remove(place)))
    }

    /// The number after `--name`, or `default`.
    pub(crate) fn number(&mut self, name: &str, default: u64) -> Outcome<u64> {
        match self.value(name)? {
            None => Ok(default),
            Some(word) => {
                word.parse().map_err(|_| WrongUsage(format!("{name} needs a number, not {word}")).into())
            }
        }
    }

    /// The names after `--name`, separated by commas, each one of `known`; all of `default` if absent.
    pub(crate) fn names(&mut self, name: &str, known: &[&str], default: &[&str]) -> Outcome<Vec<String>> {
        let Some(list) = self.value(name)? else {
            return Ok(default.iter().map(|&word| word.to_owned()).collect());
        };
        let words: Vec<String> = list.split(',').map(|word| word.trim().to_owned()).collect();
        for word in &words {
            if !known.contains(&word.as_str()) {
                return Err(WrongUsage(format!("{name} {word}: known are {}", known.join(", "))).into());
            }
        }
        Ok(words)
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Outcome {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(WrongUsage(format!("no such option: {word}")).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_nobody_took_is_wrong_usage() {
        let mut options = Options::new(&["--smoke", "--round", "3"]);
        assert!(options.flag("--smoke"));
        assert_eq!(options.number("--rounds", 7).unwrap(), 7);
        let error = options.finish().unwrap_err();
        assert!(error.is::<WrongUsage>());
        assert_eq!(error.to_string(), "no such option: --round");
    }

    #[test]
    fn a_list_of_names_knows_its_words() {
        let known = ["nginx", "caddy"];
        assert_eq!(
            Options::new(&["--targets", "caddy"]).names("--targets", &known, &known).unwrap(),
            ["caddy"]
        );
        assert!(Options::new(&["--targets", "apache"]).names("--targets", &known, &known).is_err());
        assert_eq!(Options::new(&[]).names("--targets", &known, &["nginx"]).unwrap(), ["nginx"]);
    }
}
