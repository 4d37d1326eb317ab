//! `--runtime`: Node.js or Bun goes into the pack, with its libraries, so that the machine needs neither.
//!
//! The program is asked who it is, and where it really lies: what is on PATH may be the stand-in of a version manager.
//! How it is made fit to lie anywhere is onehop_archive's `runtime`.

use std::env::{self, consts};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onehop_archive::runtime::{Places, Portable, make_portable, node_version_in};

use crate::arguments::{RuntimeChoice, RuntimeKind};
use crate::failure::Failure;

/// One that can be taken along.
pub(super) struct Found {
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) portable: Portable,
}

/// Finds one for this target (`x86_64-linux`) and reads it.
///
/// # Errors
///
/// It is not there, too old, for another target, or cannot be made portable.
pub(super) fn find(choice: &RuntimeChoice, target: &str) -> Result<Found, Failure> {
    let name = choice.kind.name();
    let path = match &choice.path {
        Some(path) => path.clone(),
        None => on_path(name).ok_or_else(|| {
            Failure::failed(format!(
                "`{name}` is not on PATH: install it, or name its path with `--runtime {name}=PATH`"
            ))
        })?,
    };
    let reported = ask(&path);
    let real = reported.as_ref().map_or(&path, |reported| &reported.path);
    let portable = make_portable(real, name, &Places::of_this_machine())
        .map_err(|error| Failure::failed(format!("--runtime {name}: {error}")))?;
    if portable.target != target {
        return Err(Failure::wrong(format!(
            "--runtime {name}: {} is for {}, and the pack is for {target}: name one for {target} with \
             `--runtime {name}=PATH`",
            real.display(),
            portable.target
        )));
    }
    let version = match reported {
        Ok(reported) => check(choice.kind, &path, reported)?,
        // One for another machine cannot be asked.
        Err(_) if portable.target != format!("{}-{}", consts::ARCH, consts::OS) => {
            node_version_in(&portable.program)
        }
        Err(why) => {
            return Err(Failure::failed(format!("--runtime {name}: {}: {why}", path.display())));
        }
    };
    Ok(Found { name, version, portable })
}

/// Node.js 20 is the oldest that the workers' library runs on.
const NODE_MAJOR_MIN: u32 = 20;

/// Bytes that a runtime says of itself: four lines.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// What is asked: who it is, its version, where it lies, and whether parts of it lie elsewhere (Debian's own package
/// of Node.js takes some from /usr/share/nodejs).
const QUESTION: &str = "const own = process.versions.bun ? 'bun' : 'node';\
    const settings = Object.entries(process.config?.variables ?? {});\
    const shared = settings.find(([name, path]) => name.startsWith('node_shared_builtin_') && path);\
    console.log([own, process.versions.bun ?? process.version, process.execPath, shared?.[1] ?? ''].join('\\n'))";

/// What a runtime says of itself.
struct RuntimeReport {
    name: String,
    version: String,
    path: PathBuf,
    /// A file elsewhere that it needs.
    elsewhere: Option<String>,
}

fn ask(path: &Path) -> Result<RuntimeReport, String> {
    let failed = |error: std::io::Error| format!("cannot be executed: {error}");
    let mut child = Command::new(path)
        .args(["-e", QUESTION])
        // Preloads of whoever packs are not asked.
        .env_remove("NODE_OPTIONS")
        .env_remove("BUN_OPTIONS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut text = String::new();
    if let Some(answer) = child.stdout.take() {
        answer.take(ANSWER_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let mut lines = text.lines().map(str::to_owned);
    let mut line = || lines.next().filter(|_| status.success());
    match (line(), line(), line()) {
        (Some(name), Some(version), Some(path)) => {
            let elsewhere = line().filter(|line| !line.is_empty());
            Ok(RuntimeReport { name, version, path: path.into(), elsewhere })
        }
        _ => Err("does not answer as Node.js and Bun do when it is asked for its version".to_owned()),
    }
}

/// The version, if it is what was asked for and can be taken along.
fn check(kind: RuntimeKind, path: &Path, reported: RuntimeReport) -> Result<String, Failure> {
    let (name, path) = (kind.name(), path.display());
    if reported.name != name {
        return Err(Failure::wrong(format!(
            "--runtime {name}: {path} is {} {}: write --runtime {}={path}",
            reported.name, reported.version, reported.name
        )));
    }
    if let Some(elsewhere) = reported.elsewhere {
        return Err(Failure::failed(format!(
            "--runtime {name}: {path} takes parts of itself from other files of this system ({elsewhere}), as the \
             package of Debian and Ubuntu does: take the one from nodejs.org and name its path with \
             `--runtime {name}=PATH`"
        )));
    }
    let major = reported
        .version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if kind == RuntimeKind::Node && major.is_none_or(|major| major < NODE_MAJOR_MIN) {
        return Err(Failure::failed(format!(
            "--runtime {name}: {path} is {}, and applications need Node.js {NODE_MAJOR_MIN} or later",
            reported.version
        )));
    }
    Ok(reported.version)
}

impl Found {
    /// As people call it: `node v20.19.0`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// As a shell would find it.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(name: &str, version: &str, elsewhere: Option<&str>) -> RuntimeReport {
        let elsewhere = elsewhere.map(str::to_owned);
        RuntimeReport { name: name.to_owned(), version: version.to_owned(), path: "/n".into(), elsewhere }
    }

    #[test]
    fn only_what_was_asked_for_new_enough_and_whole_is_taken_along() {
        let check =
            |kind, reported| check(kind, Path::new("/n"), reported).map_err(|failure| format!("{failure:?}"));
        assert_eq!(check(RuntimeKind::Node, reported("node", "v20.1.0", None)).as_deref(), Ok("v20.1.0"));
        assert_eq!(check(RuntimeKind::Bun, reported("bun", "1.2.0", None)).as_deref(), Ok("1.2.0"));
        for (kind, reported, expected) in [
            (RuntimeKind::Node, reported("node", "v18.20.0", None), "need Node.js 20 or later"),
            (RuntimeKind::Node, reported("bun", "1.2.0", None), "--runtime bun=/n"),
            (RuntimeKind::Node, reported("node", "v20.1.0", Some("/usr/share/nodejs/a.js")), "nodejs.org"),
        ] {
            let text = check(kind, reported).expect_err("refused");
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_runtime_does_not_answer_like_one() {
        let Err(why) = ask(Path::new("/bin/true")) else { panic!("it is no runtime") };
        assert!(why.contains("does not answer"), "{why}");
        let Err(why) = ask(Path::new("/nothing/node")) else { panic!("it is not there") };
        assert!(why.contains("cannot be executed"), "{why}");
    }
}
