//! What an application runs: a file with a handler, a command, or something at an address.
//!
//! Looks at paths through the source, and never at what a file holds, but for the name in a
//! `package.json` of a folder that was written in place of a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use crate::arguments::{some_arguments, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::{AppAddress, AppRun};
use crate::limits::{APP_WORD_BYTES_MAX, APP_WORDS_MAX};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::source::Entry;
use crate::syntax::{Directive, Token};

/// Endings of files that runtimes take.
const HANDLER_ENDINGS: [&str; 6] = ["mjs", "js", "cjs", "mts", "ts", "cts"];
/// Those that only Bun takes.
const BUN_ENDINGS: [&str; 2] = ["jsx", "tsx"];
/// Files that a folder's handler is most likely in.
const USUAL_FILES: [&str; 6] = ["server.mjs", "index.mjs", "server.js", "index.js", "server.ts", "index.ts"];
/// Programs that can run a handler, by name.
const RUNTIMES: [&str; 3] = ["node", "nodejs", "bun"];

/// What is run, and the folder in which.
pub(super) fn program(
    cx: &Context<'_>,
    line: &Directive,
    args: &[Token],
    written: &Draft,
) -> Result<(AppRun, PathBuf), Box<Problem>> {
    let chosen = written.directory.clone();
    if let Some(address) = &written.address {
        return Ok((AppRun::Elsewhere { address: address.clone() }, cx.base.clone()));
    }
    if let Some(option) = written.token("command") {
        let directory = chosen.unwrap_or_else(|| cx.base.clone());
        let mut line = written.command.clone();
        let Some(program) = line.first_mut() else { return Err(no_program(option)) };
        // A name alone is looked for in `PATH` when it is started.
        if program.contains('/') {
            let path = crate::check::absolute(&directory, Path::new(program.as_str()));
            if cx.source.entry(&path) != Some(Entry::File) {
                let message = format!("there is no program `{}`", path.display());
                return Err(Problem::error("no-file", &option.place, message)
                    .help("a relative path starts in `cwd`, or where the Onehopfile is"));
            }
            *program = path.to_string_lossy().into_owned();
        }
        return Ok((AppRun::Command { line }, directory));
    }
    let Some((file, rest)) = args.split_first() else {
        return Err(no_file(cx, line));
    };
    let file = handler_file(cx, file, written).map_err(|problem| matcher_is_file(cx, line, problem))?;
    let directory = chosen.unwrap_or_else(|| project_folder(cx, &file));
    let (runtime, runtime_arguments) = match &written.runtime {
        Some((runtime, arguments)) => (Some(runtime.clone()), arguments.clone()),
        None => (None, Vec::new()),
    };
    let arguments = words(cx, rest)?;
    Ok((AppRun::Handler { file, runtime, runtime_arguments, arguments }, directory))
}

/// Where the matcher is the file that was meant, the help says so.
fn matcher_is_file(cx: &Context<'_>, line: &Directive, problem: Box<Problem>) -> Box<Problem> {
    match line.args.as_slice() {
        [first, _, ..] if cx.source.entry(&cx.absolute(&first.text)) == Some(Entry::File) => {
            problem.help(format!("`{0}` was read as a matcher: write `app * {0}`", first.text))
        }
        _ => problem,
    }
}

fn no_program(option: &Token) -> Box<Problem> {
    Problem::error("arguments", &option.place, "`command` does not say what is run")
        .help("write what starts the application: `command npm start`")
}

/// A matcher and nothing behind it.
fn no_file(cx: &Context<'_>, line: &Directive) -> Box<Problem> {
    let place = line.args.first().map_or(&line.name.place, |matcher| &matcher.place);
    let problem = Problem::error("arguments", place, "`app` does not say what is run");
    match line.args.first() {
        Some(only) if cx.source.entry(&cx.absolute(&only.text)) == Some(Entry::File) => {
            problem.help(format!("`{0}` was read as a matcher: write `app * {0}`", only.text))
        }
        _ => problem.help("write a file behind the matcher, or `command` in the block"),
    }
}

/// The words of a command or the arguments of a program.
pub(super) fn words(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<String>, Box<Problem>> {
    let mut words = Vec::with_capacity(tokens.len());
    for token in tokens {
        let word = fixed(cx.source, token, "an argument of a program")?;
        if word.len() > APP_WORD_BYTES_MAX || words.len() >= APP_WORDS_MAX {
            let message = "the command is longer than a process can have";
            return Err(Problem::error("too-large", &token.place, message));
        }
        if word.contains('\0') {
            return Err(Problem::error("arguments", &token.place, "an argument has a NUL character")
                .help("a process cannot have it: write the argument without it"));
        }
        words.push(word);
    }
    match tokens.first() {
        Some(first) if words.first().is_some_and(String::is_empty) => {
            Err(Problem::error("arguments", &first.place, "the first word is empty")
                .help("a variable or a placeholder may stand for nothing"))
        }
        _ => Ok(words),
    }
}

/// `supervise off <address>`
pub(super) fn address(cx: &Context<'_>, option: &Directive) -> Result<AppAddress, Box<Problem>> {
    let usage = "supervise off <address>";
    let (mode, address) = match some_arguments(option, usage)? {
        [mode] => (mode, None),
        [mode, address] => (mode, Some(address)),
        _ => return Err(wrong_arguments(option, usage)),
    };
    if mode.text != "off" {
        return Err(Problem::error(
            "unknown-option",
            &mode.place,
            format!("`supervise` cannot be `{}`", mode.text),
        )
        .help(
            "onehop watches what it starts; `supervise off 127.0.0.1:3000` uses what somebody else starts",
        ));
    }
    let Some(token) = address else {
        return Err(Problem::error(
            "arguments",
            &mode.place,
            "`supervise off` does not say where the program is",
        )
        .help("write its address: `supervise off 127.0.0.1:3000` or `supervise off unix//run/api.sock`"));
    };
    let text = fixed(cx.source, token, "an address")?;
    let wrong = || {
        Problem::error("address", &token.place, format!("`{text}` is no address of a program"))
            .help("write an IP address and a port, `127.0.0.1:3000`, or `unix//run/api.sock`")
    };
    if let Some(path) = text.strip_prefix("unix/") {
        if path.is_empty() {
            return Err(wrong());
        }
        return Ok(AppAddress::Unix(cx.absolute(path)));
    }
    let bare = text.strip_prefix("http://").unwrap_or(&text).trim_end_matches('/');
    let numeric = match bare.rsplit_once(':') {
        Some(("localhost" | "", port)) => format!("127.0.0.1:{port}"),
        _ => bare.to_owned(),
    };
    let address: SocketAddr = numeric.parse().map_err(|_| wrong())?;
    if address.port() == 0 { Err(wrong()) } else { Ok(AppAddress::Tcp(address)) }
}

/// `runtime <name or path> [<argument>…]`
pub(super) fn runtime(cx: &Context<'_>, tokens: &[Token]) -> Result<(String, Vec<String>), Box<Problem>> {
    let mut words = words(cx, tokens)?.into_iter();
    let (Some(token), Some(name)) = (tokens.first(), words.next()) else { return Ok(Default::default()) };
    let arguments = words.collect();
    if name.contains('/') {
        let path = cx.absolute(&name);
        if cx.source.entry(&path) != Some(Entry::File) {
            let message = format!("there is no runtime at `{}`", path.display());
            return Err(Problem::error("no-file", &token.place, message)
                .help("`which node` tells where one is; `runtime node` looks for it in `PATH`"));
        }
        return Ok((path.to_string_lossy().into_owned(), arguments));
    }
    if RUNTIMES.contains(&name.as_str()) {
        return Ok((name, arguments));
    }
    let problem = Problem::error("runtime", &token.place, format!("`{name}` is no runtime for handlers"));
    Err(match nearest(&name, RUNTIMES) {
        Some(near) => problem.help(format!("did you mean `{near}`? A path has a slash: `./{name}`")),
        None => problem.help(format!(
            "there are `node` and `bun`, or a path to one of them; what `{name}` runs can speak HTTP: `command {name} …`"
        )),
    })
}

/// A folder that must be there.
pub(super) fn folder(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Box<Problem>> {
    let path = cx.absolute(&fixed(cx.source, token, "a folder")?);
    match cx.source.entry(&path) {
        Some(Entry::Folder) => Ok(path),
        Some(_) => {
            Err(Problem::error("no-folder", &token.place, format!("`{}` is no folder", path.display()))
                .help("name the folder in which it is"))
        }
        None => {
            Err(Problem::error("no-folder", &token.place, format!("there is no folder `{}`", path.display()))
                .help(format!("relative paths start in {}", cx.base.display())))
        }
    }
}

/// The file with the handler, which must be there.
fn handler_file(cx: &Context<'_>, token: &Token, written: &Draft) -> Result<PathBuf, Box<Problem>> {
    let text = fixed(cx.source, token, "the file of a handler")?;
    let path = cx.absolute(&text);
    match cx.source.entry(&path) {
        Some(Entry::File) => {}
        Some(Entry::Folder) => return Err(folder_for_file(cx, token, &text, &path)),
        _ => return Err(missing_file(cx, token, &text, &path)),
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let is_bun =
        written.runtime.as_ref().is_some_and(|(name, _)| !name.ends_with("node") && name != "nodejs");
    if HANDLER_ENDINGS.contains(&ending.as_str()) || (is_bun && BUN_ENDINGS.contains(&ending.as_str())) {
        return Ok(path);
    }
    // What npm puts into `bin` often has no ending: `./bin/www`, `node_modules/.bin/next`.
    if ending.is_empty() && cx.source.read(&path).is_ok_and(|text| names_a_runtime(&text)) {
        return Ok(path);
    }
    let message = format!("`{text}` is no file of JavaScript or TypeScript");
    let problem = Problem::error("handler", &token.place, message);
    Err(if BUN_ENDINGS.contains(&ending.as_str()) {
        problem.help("Node.js takes no JSX: write `runtime bun`, or build the file before")
    } else {
        problem.help(
            "a program of any other kind speaks HTTP: write `command` in a block, and how it is started",
        )
    })
}

/// Whether a script's first line (`#!/usr/bin/env node`) asks for one of them.
fn names_a_runtime(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && RUNTIMES.iter().any(|name| first.contains(name))
}

fn folder_for_file(cx: &Context<'_>, token: &Token, text: &str, path: &Path) -> Box<Problem> {
    let problem =
        Problem::error("handler", &token.place, format!("`{text}` is a folder, and `app` takes a file"));
    let folder = text.trim_end_matches('/');
    let main = cx.source.read(&path.join("package.json")).ok().and_then(|text| main_of_package(&text));
    let usual = USUAL_FILES.iter().map(|name| (*name).to_owned());
    let is_file =
        |name: &String| cx.source.entry(&crate::check::absolute(path, Path::new(name))) == Some(Entry::File);
    match main.into_iter().chain(usual).find(is_file) {
        Some(name) => {
            problem.help(format!("did you mean `{folder}/{}`?", name.strip_prefix("./").unwrap_or(&name)))
        }
        None => problem.help(format!("write the application's main file, for example `{folder}/server.js`")),
    }
}

/// The value of `"main"`, found without reading the rest: a wrong guess costs a worse help.
fn main_of_package(text: &str) -> Option<String> {
    let after = text.split_once("\"main\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let value = after.strip_prefix('"')?.split_once('"')?.0;
    (!value.is_empty() && !value.contains('\\')).then(|| value.to_owned())
}

fn missing_file(cx: &Context<'_>, token: &Token, text: &str, path: &Path) -> Box<Problem> {
    let problem = Problem::error("no-file", &token.place, format!("there is no file `{}`", path.display()));
    if text.contains('*') {
        return problem.help(format!(
            "if `{text}` says which requests are meant, the file follows: `app {text} ./api/server.mjs`"
        ));
    }
    let folder = path.parent().unwrap_or(path);
    if cx.source.entry(folder) != Some(Entry::Folder) {
        return problem.help(format!(
            "there is no folder `{}` either; relative paths start in {}",
            folder.display(),
            cx.base.display()
        ));
    }
    let beside = cx.source.glob(&folder.join("*")).unwrap_or_default();
    let names: Vec<String> =
        beside.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let candidates = names.iter().map(String::as_str).filter(|name| {
        HANDLER_ENDINGS.iter().chain(&BUN_ENDINGS).any(|ending| name.ends_with(&format!(".{ending}")))
    });
    match nearest(&name, candidates) {
        Some(near) => {
            let before = text.strip_suffix(&*name).unwrap_or_default();
            problem.help(format!("did you mean `{before}{near}`?"))
        }
        None if text.starts_with('-') => problem
            .help("one argument alone is the file; a matcher before it begins with `/` or `@`, or is `*`"),
        None => problem.help(format!("relative paths start in {}", cx.base.display())),
    }
}

/// The nearest folder with a `package.json`, else the file's own. Where the file lies below the
/// Onehopfile, nothing above that is looked at.
fn project_folder(cx: &Context<'_>, file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(file);
    let is_below = own.starts_with(&cx.base);
    let has_package = |folder: &&Path| cx.source.entry(&folder.join("package.json")) == Some(Entry::File);
    let within = own.ancestors().take_while(|folder| !is_below || folder.starts_with(&cx.base));
    within.into_iter().find(has_package).unwrap_or(own).to_owned()
}
