//! `onehop app`: settings for one application, built without a file.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use onehop_config::checked::{Checked, ListenAddress};
use onehop_config::{Entry, FileKind, FileSource, Problem, Source};

use super::serve::reach_at;
use super::serving::{Serving, reporter, serve_until_stopped};
use crate::arguments::{Admin, App};
use crate::configuration;
use crate::failure::Failure;
use crate::listen;
use crate::watch::{Watched, Watching};

pub(crate) fn app(arguments: &App) -> Result<(), Failure> {
    let form = arguments.process.log;
    start(arguments).map_err(|failure| failure.in_form(form))
}

fn start(arguments: &App) -> Result<(), Failure> {
    let reporter = reporter(&arguments.process)?;
    let folder = configuration::working_directory()?;
    let requested = Requested::new(arguments, folder.clone())?;
    let file = arguments.file.iter().map(|file| file.display().to_string());
    let what: Vec<String> = file.chain(arguments.words.iter().cloned()).collect();
    reporter.starting(&format!("runs {}", what.join(" ")));
    let checked = requested.settings().map_err(Failure::wrong)?;
    let watching: Watching = Arc::new(Mutex::new(Watched::of(Vec::new(), &checked)));
    serve_until_stopped(Serving {
        checked,
        process: &arguments.process,
        // The folder, as with `serve`: there `onehop workers` and `onehop stop` need no name.
        subject: &folder,
        load: Arc::new(move || requested.settings()),
        watch: arguments.watch.then_some(watching),
        packed: None,
        reporter,
        keeps_history: false,
    })
}

/// What was asked for, as the text of an Onehopfile, so that every default and every check is the same.
/// What a person wrote stands in it as `{env.N}`: such a value is taken as it is, whatever it holds.
struct Requested {
    text: String,
    values: HashMap<String, String>,
    folder: PathBuf,
    address: ListenAddress,
    admin: Admin,
}

impl Requested {
    fn new(arguments: &App, folder: PathBuf) -> Result<Self, Failure> {
        let address = match &arguments.listen {
            Some(listen::Address(address)) => address.clone(),
            None => listen::from_environment(std::env::var_os("PORT")).map_err(Failure::wrong)?,
        };
        let mut requested =
            Self { text: String::new(), values: HashMap::new(), folder, address, admin: arguments.admin };
        let words: Vec<String> = arguments.words.iter().map(|word| requested.value(word)).collect();
        let words = words.join(" ");
        let mut block = format!("\t\tworkers {}\n", arguments.workers);
        let run = match &arguments.file {
            Some(file) => format!("{} {words}", requested.value(text_of(file)?)),
            None => {
                block.push_str(&format!("\t\tcommand {words}\n"));
                String::new()
            }
        };
        for (option, value) in [("runtime", &arguments.runtime), ("name", &arguments.name)] {
            if let Some(value) = value {
                block.push_str(&format!("\t\t{option} {}\n", requested.value(value)));
            }
        }
        for file in &arguments.env_file {
            block.push_str(&format!("\t\tenv_file {}\n", requested.value(text_of(file)?)));
        }
        for variable in &arguments.env {
            block.push_str(&match variable.split_once('=') {
                Some((name, value)) => {
                    format!("\t\tenv {} {}\n", requested.value(name), requested.value(value))
                }
                None => format!("\t\tenv_pass {}\n", requested.value(variable)),
            });
        }
        requested.text = format!(":8080 {{\n\tapp {run} {{\n{block}\t}}\n}}\n");
        Ok(requested)
    }

    /// What stands for a value in the text.
    fn value(&mut self, value: &str) -> String {
        let name = format!("VALUE{}", self.values.len());
        let written = format!("{{env.{name}}}");
        self.values.insert(name, value.to_owned());
        written
    }

    fn settings(&self) -> Result<Checked, String> {
        let loaded = onehop_config::load(Path::new("Onehopfile"), FileKind::Onehopfile, self);
        let mut checked = loaded.map_err(|problems| in_words(&problems))?.checked;
        reach_at(&mut checked, &self.address, self.admin);
        Ok(checked)
    }
}

/// The text that it points into was written by nobody: only what is wrong is said, and what to do.
pub(super) fn in_words(problems: &[Problem]) -> String {
    let words = problems.iter().map(|problem| match &problem.help {
        Some(help) => format!("{}\n  {help}", problem.message),
        None => problem.message.clone(),
    });
    words.collect::<Vec<_>>().join("\n")
}

fn text_of(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        Failure::wrong(format!(
            "{} is not UTF-8, and the path of an application must be: rename it",
            path.display()
        ))
    })
}

impl Source for Requested {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path == Path::new("Onehopfile") { Ok(self.text.clone()) } else { FileSource.read(path) }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    fn working_directory(&self) -> PathBuf {
        self.folder.clone()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use onehop_config::checked::{AppRun, WorkerCount};

    use super::*;

    fn settings_of(words: &[&str], folder: &Path) -> Result<Checked, String> {
        let line = ["onehop", "app", "--listen", ":0"].iter().chain(words);
        let arguments = crate::arguments::Arguments::parse_from(line);
        let crate::arguments::Command::App(app) = arguments.command else { panic!("another command") };
        Requested::new(&app, folder.to_path_buf()).map_err(|_| "no text".to_owned())?.settings()
    }

    #[test]
    fn what_was_written_is_taken_as_it_is() {
        let folder = std::env::temp_dir().join(format!("onehop app {{host}} {}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = "a b{path}\".mjs";
        std::fs::write(folder.join(file), "").expect("a file");
        let words = [
            file,
            "--workers",
            "auto",
            "--env",
            "TOKEN=a=b {uri} \"c\" {$HOME}",
            "--env",
            "AWS_*",
            "--runtime",
            "bun",
            "--",
            "--x",
            "{host}",
            "",
            "a b",
        ];
        let checked = settings_of(&words, &folder).expect("sound");
        let app = checked.apps().first().map(|app| (*app).clone()).expect("an application");
        let AppRun::Handler { file: found, runtime, arguments, .. } = &app.run else { panic!("{app:?}") };
        assert_eq!((found, runtime.as_deref()), (&folder.join(file), Some("bun")));
        assert_eq!(arguments, &["--x", "{host}", "", "a b"]);
        assert_eq!(app.workers, WorkerCount::Auto);
        assert_eq!(app.environment.set, [("TOKEN".to_owned(), "a=b {uri} \"c\" {$HOME}".to_owned())]);
        assert_eq!(app.environment.pass, ["AWS_*"]);
        std::fs::remove_dir_all(folder).expect("it was there");
    }

    #[test]
    fn without_a_file_what_follows_is_a_program() {
        let checked = settings_of(&["--", "npx", "next", "start"], Path::new("/srv")).expect("sound");
        let app = checked.apps().first().map(|app| (*app).clone()).expect("an application");
        let line = ["npx", "next", "start"].map(str::to_owned).to_vec();
        assert_eq!((app.name.as_str(), &app.run), ("next", &AppRun::Command { line }));
        assert_eq!(checked.sites[0].label, ":0");
    }

    #[test]
    fn a_mistake_is_reported_without_a_place() {
        let wrong = settings_of(&["no-such.mjs", "--env", "A-B=1"], Path::new("/srv")).expect_err("no file");
        assert!(wrong.contains("there is no file `/srv/no-such.mjs`\n"), "{wrong}");
        assert!(wrong.contains("`A-B` is no name of a variable"), "{wrong}");
        assert!(!wrong.contains("VALUE"), "{wrong}");
    }
}
