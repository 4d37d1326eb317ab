//! A package.json: which framework, how it is started, whether it can be.
//!
//! Follows `scripts.start` as npm would, and starts nothing. What needs a shell is left to one.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::environment::Environment;
use super::files::{below, upwards};
use super::launch::{Launch, Program};
use super::manifest::{FRAMEWORKS, framework, range, read, require_installed};
use super::script;
use super::shell::{assignments, commands};
use crate::{Setup, SideBySideError};

/// Scripts that start scripts.
const SCRIPTS_MAX: usize = 8;
/// Files that are an application's start where nothing says so.
const USUAL_FILES: [&str; 12] = [
    "server.js",
    "server.mjs",
    "index.js",
    "index.mjs",
    "app.js",
    "app.mjs",
    "main.js",
    "src/server.js",
    "src/index.js",
    "src/app.js",
    "server.ts",
    "src/index.ts",
];
/// Programs that only watch over what they start.
const WATCHERS: [&str; 5] = ["nodemon", "forever", "pm2", "pm2-runtime", "node-dev"];
/// Options of Node.js that take their value as the next word.
const OPTIONS_WITH_VALUE: [&str; 7] =
    ["-r", "--require", "--import", "--loader", "-C", "--conditions", "--env-file"];

/// Whether a package.json is that of something that runs, and not of a site that is built.
pub(super) fn is_application(path: &Path) -> Result<bool, SideBySideError> {
    let package = read(path)?;
    let folder = path.parent().unwrap_or(path);
    let has_framework = FRAMEWORKS.iter().any(|(name, _)| range(&package, name).is_some());
    let start = package.pointer("/scripts/start").and_then(Value::as_str);
    // `vite preview`, `react-scripts start` and the like serve a build while one works on it.
    let starts_site = start.is_some_and(|start| {
        ["vite", "react-scripts", "ng serve", "serve ", "http-server", "webpack", "parcel", "astro dev"]
            .iter()
            .any(|tool| start.contains(tool))
    });
    Ok((start.is_some() && !starts_site) || has_framework || folder.join("server.js").is_file())
}

/// An application with a package.json.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let folder = path.parent().unwrap_or(path);
    let mut notes = Vec::new();
    let (launch, started_by) = launch(path, environment, &mut notes)?;
    let description = match framework(path) {
        Some((framework, version)) => format!("{framework} ({version} in package.json, {started_by})"),
        None => format!("an application ({started_by} in package.json)"),
    };
    Ok(script::setup(path, folder, launch, description, notes, environment))
}

/// How the package's application is started, and in which words that is said.
pub(super) fn launch(
    path: &Path,
    environment: &Environment,
    notes: &mut Vec<String>,
) -> Result<(Launch, String), SideBySideError> {
    let package = read(path)?;
    let folder = path.parent().unwrap_or(path).to_owned();
    require_installed(path)?;
    let follow = Follow { package: &package, path, folder: &folder, environment };
    let (mut launch, started_by) = match package.pointer("/scripts/start").and_then(Value::as_str) {
        Some(start) => {
            if package.pointer("/scripts/prestart").is_some() {
                notes.push("`prestart` is not run: what it prepares has to be there.".to_owned());
            }
            (follow.script("start", start, notes, 0)?, format!("start: {start}"))
        }
        None => {
            let file = usual_file(&package, &folder).ok_or_else(|| no_start(path, &package, &folder))?;
            let name = below(&folder, &file);
            let runtime = script::runtime_for(&file, environment)?;
            (Launch::script(runtime, file, folder.clone()), name.trim_start_matches("./").to_owned())
        }
    };
    if range(&package, "next").is_some() && !folder.join(".next").is_dir() {
        return Err(SideBySideError::found(
            path.display(),
            "the Next.js application is not built",
            "npm run build",
        ));
    }
    script::around(&mut launch, environment, notes)?;
    Ok((launch, started_by))
}

/// A command that starts an application.
#[derive(Debug)]
pub(super) enum Start {
    /// For a shell.
    Text(String),
    /// A program with its arguments.
    Words(Vec<String>),
}

/// How a command that another file names starts the application of its folder.
pub(super) fn launch_of(
    path: &Path,
    start: &Start,
    environment: &Environment,
    notes: &mut Vec<String>,
) -> Result<Launch, SideBySideError> {
    let folder = path.parent().unwrap_or(path);
    let package = folder.join("package.json");
    let package = if package.is_file() {
        require_installed(&package)?;
        read(&package)?
    } else {
        Value::Null
    };
    let follow = Follow { package: &package, path, folder, environment };
    match start {
        Start::Text(text) => follow.script("web", text, notes, 0),
        Start::Words(words) => follow.command(words, &words.join(" "), notes, 0),
    }
}

/// What scripts are followed in.
struct Follow<'a> {
    package: &'a Value,
    path: &'a Path,
    folder: &'a Path,
    environment: &'a Environment,
}

impl Follow<'_> {
    /// What a script comes down to.
    fn script(
        &self,
        name: &str,
        text: &str,
        notes: &mut Vec<String>,
        depth: usize,
    ) -> Result<Launch, SideBySideError> {
        if depth >= SCRIPTS_MAX {
            return Err(SideBySideError::found(
                self.path.display(),
                format!("its scripts start each other without end, at `{name}`"),
                "name the file that is started: onehop try server.js",
            ));
        }
        let Some(mut commands) = commands(text) else { return Ok(self.shell(text)) };
        let Some(last) = commands.pop() else { return Ok(self.shell(text)) };
        for before in &commands {
            notes.push(format!("`{}` of the script `{name}` is not run.", before.join(" ")));
        }
        let (environment, mut words) = assignments(last);
        if words.first().is_some_and(|word| word == "cross-env") {
            words.remove(0);
        }
        let (more, words) = assignments(words);
        let mut launch = self.command(&words, text, notes, depth)?;
        // What is nearer to the program wins, as in a shell.
        for (name, value) in environment.into_iter().chain(more) {
            if !launch.environment.iter().any(|(known, _)| *known == name) {
                launch.environment.push((name, value));
            }
        }
        launch.environment.retain(|(name, _)| name != "PORT" && name != "HOST");
        Ok(launch)
    }

    fn command(
        &self,
        words: &[String],
        text: &str,
        notes: &mut Vec<String>,
        depth: usize,
    ) -> Result<Launch, SideBySideError> {
        let words =
            words.iter().position(|word| word != "npx" && word != "bunx").and_then(|at| words.get(at..));
        let words = words.unwrap_or_default();
        let (program, rest) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
        match program {
            "npm" | "yarn" | "pnpm" | "bun" if self.named_script(rest).is_some() => {
                let (name, text) = self.named_script(rest).unwrap_or_default();
                self.script(name, text, notes, depth + 1)
            }
            "node" | "nodejs" => self.runtime("node", rest, notes),
            "bun" => {
                let rest = rest.strip_prefix(&["run".to_owned()]).unwrap_or(rest);
                self.runtime("bun", rest, notes)
            }
            _ if WATCHERS.contains(&program) => self.watched(program, rest, notes),
            "" => Ok(self.shell(text)),
            _ => Ok(self.installed(words)),
        }
    }

    /// `run NAME`, `start`, or the name alone.
    fn named_script<'a>(&'a self, words: &'a [String]) -> Option<(&'a str, &'a str)> {
        let name = match words {
            [run, name, ..] if run == "run" || run == "run-script" => name,
            [name, ..] => name,
            [] => return None,
        };
        Some((name, self.package.get("scripts")?.get(name)?.as_str()?))
    }

    /// A file for `node` or `bun`, with the options before it.
    fn runtime(
        &self,
        runtime: &'static str,
        words: &[String],
        notes: &mut Vec<String>,
    ) -> Result<Launch, SideBySideError> {
        let mut options = Vec::new();
        let mut rest = words.iter();
        let name = loop {
            let Some(word) = rest.next() else {
                let text = format!("{runtime} {}", words.join(" "));
                return Ok(self.shell(text.trim()));
            };
            if !word.starts_with('-') {
                break word;
            }
            if word.starts_with("--watch") || word.starts_with("--inspect") || word == "--hot" {
                notes.push(format!("`{word}` is left out: it is for working on the application."));
                continue;
            }
            if ["-e", "--eval", "-p", "--print"].contains(&word.as_str()) {
                let mut all = vec![runtime.to_owned()];
                all.extend(words.iter().cloned());
                return Ok(self.launch(Program::Command(all)));
            }
            options.push(word.clone());
            if OPTIONS_WITH_VALUE.contains(&word.as_str()) {
                options.extend(rest.next().cloned());
            }
        };
        let Some(file) = script::resolve(self.folder, name) else {
            let is_built =
                ["dist", "build", "out", ".output", "lib"].iter().any(|folder| name.contains(folder));
            let has_build = self.package.pointer("/scripts/build").is_some();
            return Err(SideBySideError::found(
                self.path.display(),
                format!("it starts `{name}`, which is not there"),
                if is_built && has_build {
                    "build it: npm run build"
                } else {
                    "name the file that is started: onehop try FILE"
                },
            ));
        };
        let installed = if runtime == "bun" { &self.environment.bun } else { &self.environment.node };
        if installed.is_none() {
            return Err(SideBySideError::found(
                self.path.display(),
                format!("it starts with `{runtime}`, which is not installed"),
                if runtime == "bun" { "install Bun" } else { "install Node.js 20 or later" },
            ));
        }
        Ok(self.launch(Program::Script {
            runtime,
            runtime_arguments: options,
            file,
            arguments: rest.cloned().collect(),
        }))
    }

    /// What a watcher would start; the watcher itself is none of the application.
    fn watched(
        &self,
        watcher: &str,
        words: &[String],
        notes: &mut Vec<String>,
    ) -> Result<Launch, SideBySideError> {
        let name = words.iter().find(|word| script::resolve(self.folder, word).is_some());
        let Some(name) = name else {
            return Err(SideBySideError::found(
                self.path.display(),
                format!("`{watcher} {}` does not name the file that it starts", words.join(" ")),
                "name it: onehop try server.js",
            ));
        };
        notes.push(format!(
            "`{watcher}` is left out, and the application measured as one process of its own: onehop watches over \
             its workers by itself."
        ));
        self.runtime("node", std::slice::from_ref(name), notes)
    }

    /// A program, from node_modules where it is there: npx and npm would stay beside it as processes.
    fn installed(&self, words: &[String]) -> Launch {
        let mut words = words.to_vec();
        if let Some(program) = words.first_mut().filter(|program| !program.contains('/')) {
            let local = upwards(self.folder)
                .map(|folder| folder.join("node_modules/.bin").join(program.as_str()))
                .find(|path| path.exists());
            if let Some(local) = local {
                *program = below(self.folder, &local);
            }
        }
        self.launch(Program::Command(words))
    }

    /// A command that only a shell understands, with the programs that npm would find.
    fn shell(&self, text: &str) -> Launch {
        let text = format!("PATH=\"$PWD/node_modules/.bin:$PATH\"; {text}");
        self.launch(Program::Command(vec!["sh".to_owned(), "-c".to_owned(), text]))
    }

    fn launch(&self, program: Program) -> Launch {
        Launch {
            program,
            words_today: None,
            environment: Vec::new(),
            passed: Vec::new(),
            directory: self.folder.to_owned(),
            workers: None,
            recycle: None,
        }
    }
}

/// The file that is started where no script says so: what npm would, then `main`, then what such files are called.
fn usual_file(package: &Value, folder: &Path) -> Option<PathBuf> {
    let server = Some(folder.join("server.js")).filter(|file| file.is_file());
    let main = package.get("main").and_then(Value::as_str).and_then(|main| script::resolve(folder, main));
    server.or(main).or_else(|| USUAL_FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file()))
}

fn no_start(path: &Path, package: &Value, folder: &Path) -> SideBySideError {
    if package.pointer("/scripts/build").is_some() && !folder.join("dist").exists() {
        return SideBySideError::found(
            path.display(),
            "it has no start script and no server, and what it builds is not there",
            "build it, and try the folder: npm run build && onehop try dist",
        );
    }
    SideBySideError::found(
        path.display(),
        "it has no start script, no main file and no server.js",
        "name the file that is started: onehop try src/server.js",
    )
}
