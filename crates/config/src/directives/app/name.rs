//! What an application is called in logs, metrics and `onehop workers`.
//!
//! A name that nobody wrote is made of what is run, and a number is added where another application has
//! it already. Knows nothing of what the settings mean.

use std::path::Path;
use std::sync::Arc;

use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::limit::Limit;
use crate::checked::{App, AppAddress, AppRun};
use crate::limits::APP_NAME_CHARACTERS_MAX;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Names of files and folders that say nothing: the folder around them says more.
const SAYS_NOTHING: [&str; 14] = [
    "app", "bin", "build", "debug", "dist", "handler", "index", "lib", "main", "out", "release", "server",
    "src", "target",
];

/// Words at the beginning of a command that run something else.
const RUNNERS: [&str; 18] = [
    "bun", "bunx", "bundle", "deno", "env", "exec", "node", "npm", "npx", "pnpm", "pnpx", "poetry", "python",
    "python3", "ruby", "run", "uv", "yarn",
];

/// A name as a person wrote it.
pub(super) fn written_name(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let name = fixed(cx.source, token, "the name of an application")?;
    let wrong = |message: String| {
        Err(Problem::error("name", &token.place, message)
            .help("letters, digits, `-`, `_`, `.` and `:` make a name, as in `name shop-api`"))
    };
    if name.is_empty() || !name.chars().all(fits) {
        return wrong(format!("`{name}` is no name of an application"));
    }
    if name.chars().count() > APP_NAME_CHARACTERS_MAX {
        return wrong(format!("a name has at most {APP_NAME_CHARACTERS_MAX} characters"));
    }
    if is_number(&name) {
        return wrong(format!("`{name}` would be read as a number of workers by `onehop workers`"));
    }
    Ok(name)
}

/// The application under a name that no other one has. The very same settings twice are one application.
/// Its bound is called after it.
pub(super) fn named(cx: &mut Context<'_>, mut app: App, line: &Directive) -> Result<Arc<App>, Box<Problem>> {
    let is_taken = |cx: &Context<'_>, name: &str| cx.apps.apps.iter().any(|known| known.name == name);
    if app.name.is_empty() {
        if let Some((_, name)) = cx.apps.unnamed.iter().find(|(known, _)| *known == app) {
            let app = called(app, name.clone());
            return Ok(cx.apps.shared(app));
        }
        let base = name_of(cx, &app);
        let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(cx, name));
        let name = name.unwrap_or(base);
        cx.apps.unnamed.push((app.clone(), name.clone()));
        return Ok(cx.apps.shared(called(app, name)));
    }
    let name = std::mem::take(&mut app.name);
    let app = called(app, name);
    if is_taken(cx, &app.name) && !cx.apps.apps.iter().any(|known| **known == app) {
        let place = line.block.iter().flatten().find(|option| option.name.text == "name");
        let place = place.map_or(&line.name.place, |option| &option.name.place);
        let message = format!("two applications with different settings are called `{}`", app.name);
        return Err(Problem::error("name", place, message).help("give one of the two another name"));
    }
    Ok(cx.apps.shared(app))
}

/// The application under a name, with all that is called after it.
fn called(app: App, name: String) -> App {
    let limit =
        app.limit.as_deref().map(|limit| Arc::new(Limit { label: format!("app {name}"), ..limit.clone() }));
    App { name, limit, ..app }
}

/// A name made of what is run.
fn name_of(cx: &Context<'_>, app: &App) -> String {
    let found = match &app.run {
        AppRun::Handler { file, .. } => name_of_path(cx, file),
        AppRun::Command { line } => name_of_command(cx, line, &app.directory),
        AppRun::Elsewhere { address: AppAddress::Unix(path) } => name_of_socket(cx, path),
        AppRun::Elsewhere { address: AppAddress::Tcp(address) } if address.is_ipv4() => address.to_string(),
        AppRun::Elsewhere { address: AppAddress::Tcp(address) } => format!("port-{}", address.port()),
    };
    let name: String = found.chars().take(APP_NAME_CHARACTERS_MAX / 2).map(name_character).collect();
    match name.as_str() {
        "" => "app".to_owned(),
        number if is_number(number) => format!("app-{number}"),
        _ => name,
    }
}

/// The last part of a path that says something: `shop` of `/srv/shop/dist/server.mjs`. Where a folder only stands for
/// another, what lies above it is not looked at: the other's name is taken.
fn name_of_path(cx: &Context<'_>, path: &Path) -> String {
    match cx.source.stand_in().and_then(|folder| path.strip_prefix(folder).ok().map(Path::to_path_buf)) {
        Some(below) => telling_name(&below).or_else(|| cx.source.name_of_stand_in()),
        None => telling_name(path),
    }
    .unwrap_or_else(|| stem(path))
}

/// The same for a socket. One that was written relative lies where the program was started, which may be anywhere, too.
fn name_of_socket(cx: &Context<'_>, path: &Path) -> String {
    let below = cx.source.stand_in().and_then(|_| path.strip_prefix(&cx.written_below).ok());
    let found = below.and_then(|below| telling_name(below).or_else(|| cx.source.name_of_stand_in()));
    found.or_else(|| telling_name(path)).unwrap_or_else(|| stem(path))
}

/// The last part of a file's path that says what it is about: `shop` of `/srv/shop/dist/server.mjs`.
fn telling_name(file: &Path) -> Option<String> {
    let stem = Some(stem(file)).filter(|stem| !stem.is_empty() && says_something(stem));
    stem.or_else(|| telling_folder(file.parent()?))
}

/// The last part of a folder's path that says what it is about: `shop` of `/srv/shop/dist`. Applications are called so
/// whose own path says nothing.
pub fn telling_folder(folder: &Path) -> Option<String> {
    let names = folder.ancestors().filter_map(Path::file_name);
    names.map(|name| name.to_string_lossy().into_owned()).find(|name| says_something(name))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The first word that is neither an option nor what runs others: `next` of `npx next start`.
fn name_of_command(cx: &Context<'_>, line: &[String], directory: &Path) -> String {
    let program = |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_telling = |word: &&String| {
        let runs_another = program(word).is_some_and(|name| RUNNERS.contains(&name.as_str()));
        !word.starts_with('-') && !runs_another
    };
    match line.iter().find(is_telling).or(line.first()) {
        Some(word) => name_of_path(cx, &directory.join(word)),
        None => String::new(),
    }
}

fn says_something(name: &str) -> bool {
    !SAYS_NOTHING.contains(&name.to_ascii_lowercase().as_str())
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn fits(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.:".contains(character)
}

fn name_character(character: char) -> char {
    if fits(character) { character } else { '-' }
}
