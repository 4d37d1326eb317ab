//! The command of a Procfile or a Dockerfile.
//!
//! `package.rs` takes it apart as it does the scripts of a package.json.

use std::path::Path;

use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, read_bounded};
use super::package::{self, Start};
use super::script;
use crate::{Setup, SideBySideError};

/// `web: COMMAND`, which Heroku and its like ask over HTTP.
const WEB: &str = "web:";

/// The application that a Procfile or a Dockerfile starts.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let folder = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text =
        read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
    let start = if name == "Procfile" { of_procfile(&text) } else { of_dockerfile(&text) };
    let Some(start) = start else {
        let cause = if name == "Procfile" { "it has no `web:`" } else { "it has no CMD that is plain words" };
        return Err(SideBySideError::found(
            path.display(),
            cause,
            "name the file that is started: onehop try FILE",
        ));
    };
    let shown = match &start {
        Start::Text(text) => text.clone(),
        Start::Words(words) => words.join(" "),
    };
    let mut notes = Vec::new();
    let mut launch = package::launch_of(path, &start, environment, &mut notes)?;
    script::around(&mut launch, environment, &mut notes)?;
    let description = format!("a {name} that starts `{shown}`");
    Ok(script::setup(path, folder, launch, description, notes, environment))
}

fn of_procfile(text: &str) -> Option<Start> {
    let line = text.lines().find_map(|line| line.strip_prefix(WEB))?.trim();
    (!line.is_empty()).then(|| Start::Text(line.to_owned()))
}

/// The last CMD, behind the last ENTRYPOINT where both are lists of words (docs.docker.com/reference/dockerfile).
fn of_dockerfile(text: &str) -> Option<Start> {
    let text = text.replace("\\\n", " ");
    let last = |name: &str| {
        text.lines().rev().map(str::trim).find_map(|line| {
            let (word, rest) = line.split_once(char::is_whitespace)?;
            word.eq_ignore_ascii_case(name).then(|| rest.trim().to_owned())
        })
    };
    let list = |line: &str| serde_json::from_str::<Vec<String>>(line).ok();
    match (last("ENTRYPOINT"), last("CMD")) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => match list(&only) {
            Some(words) => Some(Start::Words(words)),
            None => Some(Start::Text(only)),
        },
        (Some(entrypoint), Some(command)) => Some(match (list(&entrypoint), list(&command)) {
            (Some(words), Some(more)) => Start::Words([words, more].concat()),
            // An ENTRYPOINT for a shell takes no CMD.
            (None, _) => Start::Text(entrypoint),
            (Some(_), None) => return None,
        }),
    }
    .filter(|start| !matches!(start, Start::Words(words) if words.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(start: Option<Start>) -> Option<String> {
        start.map(|start| match start {
            Start::Text(text) => text,
            Start::Words(words) => words.join("|"),
        })
    }

    #[test]
    fn the_command_of_a_procfile_is_that_of_web() {
        assert_eq!(shown(of_procfile("worker: a\nweb: node s.js --x\n")).as_deref(), Some("node s.js --x"));
        assert_eq!(shown(of_procfile("worker: a\n")), None);
    }

    #[test]
    fn the_command_of_a_dockerfile_is_its_last_cmd_behind_its_entrypoint() {
        for (text, expected) in [
            ("FROM node\nCMD [\"npm\", \"start\"]\nCMD [\"node\", \"a.js\"]\n", Some("node|a.js")),
            ("ENTRYPOINT [\"node\"]\ncmd [\"a.js\"]\n", Some("node|a.js")),
            ("FROM x\nCMD python \\\n app.py\n", Some("python   app.py")),
            ("ENTRYPOINT exec run\nCMD [\"x\"]\n", Some("exec run")),
            ("ENTRYPOINT [\"run\"]\nCMD x y\n", None),
            ("CMD []\n", None),
            ("FROM x\nRUN make\n", None),
        ] {
            assert_eq!(shown(of_dockerfile(text)).as_deref(), expected, "{text}");
        }
    }
}
