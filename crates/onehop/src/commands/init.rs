//! `onehop init`: an Onehopfile for what is in a folder. And what `onehop` alone says: what it sees here.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use onehop_adapt::onehopfile::{indented, words};
use onehop_config::FileSource;
use onehop_try::Environment;

use super::standard_output::print;
use crate::arguments::Init;
use crate::configuration;
use crate::failure::Failure;

/// Bytes of a Procfile or Dockerfile that are read.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// What a file begins with that has one site on this machine.
const ON_ANY_ADDRESS: &str = ":8080 {";
const ON_THIS_MACHINE: &str = "http://localhost:8080 {";

/// What is in a folder.
struct Found {
    description: String,
    /// Where the Onehopfile belongs.
    folder: PathBuf,
    onehopfile: String,
}

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let found = look(&arguments.folder, false).map_err(Failure::wrong)?;
    let text = commented(&found);
    if arguments.dry_run {
        print(&text);
        return Ok(());
    }
    let path = found.folder.join("Onehopfile");
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let shown = path.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::wrong(format!(
                "{shown} is there already and is not replaced: `onehop init --dry-run` prints what would be written"
            )),
            _ => Failure::failed(format!("{shown} cannot be written: {error}")),
        }
    })?;
    let near = configuration::shown_path(&path);
    let next =
        if near == "Onehopfile" { "onehop run".to_owned() } else { format!("onehop run --config {near}") };
    print(&format!("found    {}\nwritten  {near}\nnext     {next}\n", found.description));
    Ok(())
}

/// `onehop` alone: what is here, and what to type.
pub(crate) fn look_around() {
    let (seen, next): (String, &[(&str, &str)]) = match configuration::find_here() {
        Some(file) => (
            file.path.display().to_string(),
            &[
                ("onehop run", "serves it"),
                ("onehop validate", "checks it"),
                ("onehop routes", "shows what it does"),
            ],
        ),
        None => match look(Path::new("."), true) {
            Ok(found) => (
                found.description,
                &[
                    ("onehop init", "writes an Onehopfile for it"),
                    ("onehop try", "measures it with onehop and without"),
                ],
            ),
            Err(_) => (
                "nothing that says what it serves".to_owned(),
                &[
                    ("onehop serve DIR", "serves a folder"),
                    ("onehop app server.js", "runs an application"),
                    ("onehop bench URL", "measures a server"),
                ],
            ),
        },
    };
    let mut text =
        format!("onehop {}, a web server that runs your application\n\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&format!("Here: {seen}\n\n"));
    for (command, what) in next.iter().chain(&[("onehop help", "lists all commands")]) {
        text.push_str(&format!("  {command:<22}{what}\n"));
    }
    print(&text);
}

/// What says most about how it runs comes first.
fn look(folder: &Path, is_dry_run: bool) -> Result<Found, String> {
    let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let caddyfile = folder.join("Caddyfile");
    if caddyfile.is_file() {
        return Err(format!(
            "{} is there, and onehop takes it as it is: onehop run --config Caddyfile",
            caddyfile.display()
        ));
    }
    let conf = folder.join("nginx.conf");
    if conf.is_file() {
        let adapted = onehop_adapt::adapt(&conf, &FileSource).map_err(|refusal| refusal.to_string())?;
        return Ok(Found { description: "an nginx.conf".to_owned(), folder, onehopfile: adapted.onehopfile });
    }
    let environment = Environment { is_dry_run, ..Environment::look() }.with_all_servers();
    match onehop_try::detect(&folder, &environment) {
        Ok(setup) => {
            let onehopfile = setup.shown_onehopfile();
            Ok(Found { description: setup.found.description, folder: setup.folder, onehopfile })
        }
        Err(error) => from_command(&folder).ok_or_else(|| error.to_string()),
    }
}

/// The command of a Procfile or a Dockerfile.
fn from_command(folder: &Path) -> Option<Found> {
    let read = |name: &str| {
        let path = folder.join(name);
        let is_small = fs::metadata(&path).is_ok_and(|file| file.len() <= TEXT_BYTES_MAX);
        is_small.then(|| fs::read_to_string(path).ok())?
    };
    let of_procfile = || Some(("Procfile", command_of_procfile(&read("Procfile")?)?));
    let of_dockerfile = || Some(("Dockerfile", command_of_dockerfile(&read("Dockerfile")?)?));
    let (name, command) = of_procfile().or_else(of_dockerfile)?;
    let app = match command.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["node", file] if !file.starts_with('-') && folder.join(file).is_file() => {
            format!("app {}\n", words(&[file]))
        }
        _ => format!("app {{\n\tcommand {}\n}}\n", words(&command)),
    };
    Some(Found {
        description: format!("a {name} that starts `{}`", command.join(" ")),
        folder: folder.to_owned(),
        onehopfile: format!("{ON_ANY_ADDRESS}\n{}}}\n", indented(&app)),
    })
}

/// The words of `web: …`, which Heroku's routers ask; a line that needs a shell gets one.
fn command_of_procfile(text: &str) -> Option<Vec<String>> {
    let line = text.lines().find_map(|line| line.strip_prefix("web:"))?.trim();
    (!line.is_empty()).then(|| shell_words(line))
}

/// The words of the last `CMD`, behind those of `ENTRYPOINT` (docs.docker.com/reference/dockerfile).
fn command_of_dockerfile(text: &str) -> Option<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let last = |name: &str| {
        let line = text.lines().rev().map(str::trim).find_map(|line| {
            let (word, rest) = line.split_once(char::is_whitespace)?;
            word.eq_ignore_ascii_case(name).then(|| rest.trim())
        })?;
        match line.starts_with('[') {
            true => serde_json::from_str::<Vec<String>>(line).ok(),
            false => Some(shell_words(line)),
        }
    };
    let words: Vec<String> = [last("ENTRYPOINT"), last("CMD")].into_iter().flatten().flatten().collect();
    (!words.is_empty()).then_some(words)
}

fn shell_words(line: &str) -> Vec<String> {
    let is_plain = |letter: char| !"\"'`\\$&|;<>()*?#~".contains(letter);
    match line.chars().all(is_plain) {
        true => line.split_whitespace().map(str::to_owned).collect(),
        false => ["sh", "-c", line].map(str::to_owned).to_vec(),
    }
}

/// With what to do next; an nginx.conf has comments of its own.
fn commented(found: &Found) -> String {
    let text = match found.onehopfile.strip_prefix(ON_ANY_ADDRESS) {
        Some(rest) => format!("{ON_THIS_MACHINE}{rest}"),
        None => found.onehopfile.clone(),
    };
    let mut head = format!("# For {}, by `onehop init`.\n#\n", found.description);
    head.push_str("#   onehop run                           serves it\n");
    head.push_str("#   onehop validate && onehop reload     after a change\n");
    head.push_str("#   onehop help directive NAME           explains a directive\n#\n");
    if text.starts_with(ON_THIS_MACHINE) {
        head.push_str("# For HTTPS write the domain instead of http://localhost:8080: example.com { … }\n");
    }
    format!("{head}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_a_procfile_and_a_dockerfile() {
        for (text, expected) in [
            ("worker: node w.js\nweb: node server.js --x\n", Some(&["node", "server.js", "--x"][..])),
            ("web: NODE_ENV=x node \"a b.js\"\n", Some(&["sh", "-c", "NODE_ENV=x node \"a b.js\""])),
            ("worker: node w.js\n", None),
        ] {
            let found = command_of_procfile(text);
            assert_eq!(
                found.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>()).as_deref(),
                expected
            );
        }
        for (text, expected) in [
            ("FROM node\nCMD [\"npm\", \"start\"]\nCMD [\"node\", \"a.js\"]\n", Some(&["node", "a.js"][..])),
            ("ENTRYPOINT [\"node\"]\ncmd [\"a.js\"]\n", Some(&["node", "a.js"])),
            ("FROM x\nCMD python app.py\n", Some(&["python", "app.py"])),
            ("FROM x\nRUN make\n", None),
        ] {
            let found = command_of_dockerfile(text);
            assert_eq!(
                found.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>()).as_deref(),
                expected
            );
        }
    }
}
