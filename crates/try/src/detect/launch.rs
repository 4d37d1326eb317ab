//! How an application is started, said twice: as a command for today, as an `app` for onehop.
//!
//! Both get the same program, folder and variables, so that a difference is onehop's and nobody else's.

use std::path::{Path, PathBuf};

use onehop_adapt::onehopfile::{directive, word, words};

use super::environment::Environment;
use super::files::below;
use crate::{AppPort, Application};

/// Variables that onehop passes on by itself, or that say where to listen.
const NOT_PASSED: [&str; 15] = [
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "PORT",
    "HOST",
    "HOSTNAME",
    "PWD",
    "NODE_ENV",
    "npm_package_version",
    "NODE_OPTIONS",
];
/// Endings that onehop starts by themselves.
const SCRIPT_ENDINGS: [&str; 6] = ["mjs", "js", "cjs", "mts", "ts", "cts"];

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program {
    /// A file that a JavaScript runtime is given, which onehop then starts by itself.
    Script {
        /// `node` or `bun`.
        runtime: &'static str,
        /// The runtime's own arguments.
        runtime_arguments: Vec<String>,
        /// The file, from the root.
        file: PathBuf,
        /// What stands behind it.
        arguments: Vec<String>,
    },
    /// Anything that listens on `PORT`.
    Command(Vec<String>),
}

/// An application that is not running yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    /// What runs.
    pub(super) program: Program,
    /// The command of today, where it is not the program itself: a handler needs a server around it.
    pub(super) words_today: Option<Vec<String>>,
    /// Variables that its start sets.
    pub(super) environment: Vec<(String, String)>,
    /// Variables of this process that its sources mention.
    pub(super) passed: Vec<String>,
    /// Where it runs.
    pub(super) directory: PathBuf,
    /// How many processes of it its start asks for, `auto` among them; `None` where it says nothing.
    pub(super) workers: Option<String>,
    /// The option of an `app` that replaces processes which grow, where its start has such a bound.
    pub(super) recycle: Option<String>,
}

impl Launch {
    /// A file for a runtime, as it is started in its folder.
    pub(super) fn script(runtime: &'static str, file: PathBuf, directory: PathBuf) -> Launch {
        let program = Program::Script { runtime, runtime_arguments: Vec::new(), file, arguments: Vec::new() };
        Launch {
            program,
            words_today: None,
            environment: Vec::new(),
            passed: Vec::new(),
            directory,
            workers: None,
            recycle: None,
        }
    }

    /// What is measured as today's. Without a word of its own it is started for production, as onehop starts it.
    pub(super) fn application(&self, port: AppPort, around: &Environment) -> Application {
        let mut environment = self.environment.clone();
        if !self.sets("NODE_ENV") && around.variable("NODE_ENV").is_none() {
            environment.push(("NODE_ENV".to_owned(), "production".to_owned()));
        }
        Application {
            words: self.words(),
            environment,
            passed: self.passed.clone(),
            directory: self.directory.clone(),
            port,
            is_run_by_onehop: true,
        }
    }

    /// The command as one would type it in its folder.
    pub(super) fn words(&self) -> Vec<String> {
        if let Some(words) = &self.words_today {
            return words.clone();
        }
        match &self.program {
            Program::Command(words) => words.clone(),
            Program::Script { runtime, runtime_arguments, file, arguments } => {
                let file = file.strip_prefix(&self.directory).unwrap_or(file);
                let mut words = vec![(*runtime).to_owned()];
                words.extend(runtime_arguments.iter().cloned());
                words.push(file.display().to_string());
                words.extend(arguments.iter().cloned());
                words
            }
        }
    }

    /// The `app` of an Onehopfile in a folder.
    pub(super) fn app(
        &self,
        matcher: Option<&str>,
        folder: &Path,
        more: &[String],
        environment: &Environment,
    ) -> String {
        let mut head = "app".to_owned();
        if let Some(matcher) = matcher {
            head = format!("{head} {matcher}");
        }
        let mut lines = Vec::new();
        match &self.program {
            Program::Script { runtime, runtime_arguments, file, arguments } if starts_by_itself(file) => {
                if matcher.is_none() && !arguments.is_empty() {
                    head.push_str(" *");
                }
                head = format!("{head} {}", word(&below(folder, file)));
                if !arguments.is_empty() {
                    head = format!("{head} {}", words(arguments));
                }
                if *runtime != "node" || !runtime_arguments.is_empty() {
                    let mut line = format!("runtime {runtime}");
                    if !runtime_arguments.is_empty() {
                        line = format!("{line} {}", words(runtime_arguments));
                    }
                    lines.push(line);
                }
                if usual_directory(file, folder) != self.directory {
                    lines.push(format!("cwd {}", word(&below(folder, &self.directory))));
                }
            }
            _ => {
                lines.push(format!("command {}", words(&self.words())));
                if self.directory != folder {
                    lines.push(format!("cwd {}", word(&below(folder, &self.directory))));
                }
                if !self.sets("NODE_ENV") && environment.variable("NODE_ENV").is_none() {
                    lines.push("env NODE_ENV production".to_owned());
                }
            }
        }
        lines.extend(self.environment.iter().map(|(name, value)| format!("env {name} {}", word(value))));
        let mut passed = self.passed.clone();
        if !self.sets("NODE_ENV") && environment.variable("NODE_ENV").is_some() {
            passed.push("NODE_ENV".to_owned());
        }
        if !passed.is_empty() {
            lines.push(format!("env_pass {}", passed.join(" ")));
        }
        lines.extend_from_slice(more);
        directive(&head, &lines)
    }

    /// Whether onehop itself starts the file, and calls it without a second server.
    pub(super) fn is_script(&self) -> bool {
        matches!(&self.program, Program::Script { file, .. } if starts_by_itself(file))
    }

    /// The file that is started, where it is one of JavaScript.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.program {
            Program::Script { file, .. } => Some(file),
            Program::Command(_) => None,
        }
    }

    /// Passes on what the sources mention and this process has.
    pub(super) fn pass(&mut self, mentioned: &[String], environment: &Environment) {
        let wanted = mentioned.iter().filter(|name| {
            !NOT_PASSED.contains(&name.as_str())
                && !name.starts_with("LC_")
                && !name.starts_with("ONEHOP_")
                && !self.sets(name)
                && environment.variable(name).is_some()
        });
        let mut passed: Vec<String> = wanted.cloned().collect();
        passed.sort();
        passed.dedup();
        self.passed = passed;
    }

    fn sets(&self, name: &str) -> bool {
        self.environment.iter().any(|(known, _)| known == name)
    }
}

/// Whether `app FILE` takes it; what has no ending must say itself what runs it.
fn starts_by_itself(file: &Path) -> bool {
    match file.extension() {
        Some(ending) => SCRIPT_ENDINGS.contains(&ending.to_string_lossy().as_ref()),
        None => super::files::read_bounded(file, super::files::TEXT_BYTES_MAX).is_ok_and(|text| {
            let first = text.lines().next().unwrap_or_default();
            first.starts_with("#!") && (first.contains("node") || first.contains("bun"))
        }),
    }
}

/// Where onehop runs a file of which nothing more is said: the nearest folder with a package.json, not above the
/// Onehopfile's, else its own.
fn usual_directory(file: &Path, folder: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(folder);
    let mut above = own.ancestors().take_while(|ancestor| ancestor.starts_with(folder));
    above.find(|ancestor| ancestor.join("package.json").is_file()).unwrap_or(own).to_owned()
}
